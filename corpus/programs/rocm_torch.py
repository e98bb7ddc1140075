# cause: device_memory
# exit: 1
"""PyTorch on ROCm."""


class OutOfMemoryError(RuntimeError):
    __module__ = "torch"


raise OutOfMemoryError(
    "HIP out of memory. Tried to allocate 978.00 MiB. GPU 0 has a total capacity of 15.98 GiB of which 630.00 MiB is "
    "free. Of the allocated memory 14.20 GiB is allocated by PyTorch, and 96.00 MiB is reserved by PyTorch but "
    "unallocated. If reserved but unallocated memory is large try setting PYTORCH_HIP_ALLOC_CONF="
    "expandable_segments:True to avoid fragmentation."
)
