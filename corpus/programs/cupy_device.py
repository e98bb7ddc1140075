# cause: device_memory
# exit: 1
"""CuPy."""


class OutOfMemoryError(MemoryError):
    __module__ = "cupy.cuda.memory"


raise OutOfMemoryError(
    "Out of memory allocating 8,000,000,000 bytes (allocated so far: 16,000,000,000 bytes)."
)
