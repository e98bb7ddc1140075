# cause: device_memory
# exit: 1
"""PyTorch on CUDA."""


class OutOfMemoryError(RuntimeError):
    __module__ = "torch"


def forward(batch):
    raise OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.12 GiB is "
        "free. Including non-PyTorch memory, this process has 22.56 GiB memory in use. Of the allocated memory 21.80 GiB "
        "is allocated by PyTorch, and 318.15 MiB is reserved by PyTorch but unallocated. If reserved but unallocated "
        "memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
        "documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
    )


print("epoch 1 step 0", flush=True)
forward(256)
