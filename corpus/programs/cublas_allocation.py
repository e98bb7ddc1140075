# cause: device_memory
# exit: 1
"""A library of CUDA that could not have its workspace."""

raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
