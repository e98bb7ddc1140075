# cause: device_memory
# exit: 1
"""PyTorch on CUDA, as older versions said it."""


class OutOfMemoryError(RuntimeError):
    __module__ = "torch.cuda"


raise OutOfMemoryError(
    "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.93 GiB total capacity; 6.98 GiB already allocated; "
    "17.56 MiB free; 7.21 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting "
    "max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
)
