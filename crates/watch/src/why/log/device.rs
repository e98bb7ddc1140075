//! What programs say when an accelerator has no memory left, or is not well.

use super::wording::Mark::{After, Before, Shape};
use super::wording::{Wording, wording};
use crate::why::Cause::{DeviceMemory, Failed, Hang, Hardware, IndexError, LibraryVersion};

pub(super) const WORDINGS: &[Wording] = &[
    // PyTorch since 2.1; «capacty» is how 2.1 spelled it.
    wording(
        &["CUDA out of memory. Tried to allocate ", " has a total capac"],
        DeviceMemory,
        "PyTorch ran out of GPU memory",
    )
    .asked(After("Tried to allocate "))
    .free(After("of which "))
    .total(After("ty of ")),
    // PyTorch before.
    wording(
        &["CUDA out of memory. Tried to allocate ", " total capacity; "],
        DeviceMemory,
        "PyTorch ran out of GPU memory",
    )
    .asked(After("Tried to allocate "))
    .free(Before(" free"))
    .total(Before(" total capacity")),
    wording(
        &["CUDA out of memory. Tried to allocate "],
        DeviceMemory,
        "PyTorch ran out of GPU memory",
    )
    .asked(After("Tried to allocate ")),
    wording(
        &["HIP out of memory. Tried to allocate ", " has a total capac"],
        DeviceMemory,
        "PyTorch ran out of GPU memory",
    )
    .asked(After("Tried to allocate "))
    .free(After("of which "))
    .total(After("ty of ")),
    wording(
        &["HIP out of memory. Tried to allocate ", " total capacity; "],
        DeviceMemory,
        "PyTorch ran out of GPU memory",
    )
    .asked(After("Tried to allocate "))
    .free(Before(" free"))
    .total(Before(" total capacity")),
    wording(
        &["HIP out of memory. Tried to allocate "],
        DeviceMemory,
        "PyTorch ran out of GPU memory",
    )
    .asked(After("Tried to allocate ")),
    wording(
        &["XPU out of memory. Tried to allocate "],
        DeviceMemory,
        "PyTorch ran out of GPU memory",
    )
    .asked(After("Tried to allocate "))
    .free(After("of which "))
    .total(After("ty of ")),
    wording(
        &["MPS backend out of memory (MPS allocated: ", "max allowed: "],
        DeviceMemory,
        "PyTorch ran out of the GPU memory that it may use",
    )
    .asked(After("Tried to allocate "))
    .total(After("max allowed: "))
    .used(&[After("MPS allocated: "), After("other allocations: ")]),
    wording(
        &["CUDA error: out of memory"],
        DeviceMemory,
        "The GPU had no memory left",
    ),
    wording(
        &["CUDA driver error: out of memory"],
        DeviceMemory,
        "The GPU had no memory left",
    ),
    wording(
        &["HIP error: out of memory"],
        DeviceMemory,
        "The GPU had no memory left",
    ),
    wording(
        &["cuda runtime error (2) : out of memory"],
        DeviceMemory,
        "The GPU had no memory left",
    ),
    wording(
        &["THCudaCheck FAIL file=", "error=2 : out of memory"],
        DeviceMemory,
        "The GPU had no memory left",
    ),
    wording(
        &["Cuda failure 2 'out of memory'"],
        DeviceMemory,
        "NCCL got no GPU memory",
    )
    .anywhere(),
    wording(
        &["Failed to CUDA calloc "],
        DeviceMemory,
        "NCCL got no GPU memory",
    )
    .asked(After("calloc async ")),
    wording(
        &["No executable batch size found, reached zero"],
        DeviceMemory,
        "Not even one row a batch fitted on the GPU",
    )
    .likely(),
    wording(
        &["CUBLAS_STATUS_ALLOC_FAILED"],
        DeviceMemory,
        "cuBLAS got no GPU memory",
    )
    .anywhere(),
    wording(
        &["CUDNN_STATUS_ALLOC_FAILED"],
        DeviceMemory,
        "cuDNN got no GPU memory",
    )
    .anywhere(),
    wording(
        &["CUSOLVER_STATUS_ALLOC_FAILED"],
        DeviceMemory,
        "cuSOLVER got no GPU memory",
    )
    .anywhere(),
    wording(&["CUFFT_ALLOC_FAILED"], DeviceMemory, "cuFFT got no GPU memory").anywhere(),
    // TensorFlow. Some attempts are only tries, and it says so.
    wording(
        &["OOM when allocating tensor ", " on /job:", "device:GPU:"],
        DeviceMemory,
        "TensorFlow ran out of GPU memory",
    )
    .asked(Shape),
    wording(
        &["OOM when allocating tensor ", " and type "],
        DeviceMemory,
        "TensorFlow ran out of memory, most likely of the GPU's",
    )
    .likely()
    .unless(&["device:CPU:"])
    .asked(Shape),
    wording(
        &["ResourceExhaustedError", "OOM when allocating tensor "],
        DeviceMemory,
        "TensorFlow ran out of memory, most likely of the GPU's",
    )
    .likely()
    .unless(&["device:CPU:"])
    .anywhere(),
    wording(
        &["ResourceExhaustedError: ", "failed to allocate memory"],
        DeviceMemory,
        "TensorFlow ran out of memory, most likely of the GPU's",
    )
    .likely()
    .anywhere(),
    wording(
        &["Allocator (GPU_", "ran out of memory trying to allocate "],
        DeviceMemory,
        "TensorFlow ran out of GPU memory",
    )
    .likely()
    .unless(&["this is not a failure"])
    .asked(After("trying to allocate ")),
    wording(
        &["failed to alloc", " from device: CUDA_ERROR_OUT_OF_MEMORY"],
        DeviceMemory,
        "The GPU had no memory left for TensorFlow",
    )
    .likely()
    .asked(After(" (")),
    wording(
        &["failed to alloc ", " unified memory", "CUDA_ERROR_OUT_OF_MEMORY"],
        DeviceMemory,
        "The GPU had no memory left",
    )
    .likely()
    .asked(After("failed to alloc ")),
    // JAX.
    wording(
        &["RESOURCE_EXHAUSTED: Out of memory while trying to allocate "],
        DeviceMemory,
        "XLA ran out of memory of the accelerator",
    )
    .asked(After("trying to allocate ")),
    wording(
        &["Resource exhausted: Out of memory while trying to allocate "],
        DeviceMemory,
        "XLA ran out of memory of the accelerator",
    )
    .asked(After("trying to allocate ")),
    wording(
        &["RESOURCE_EXHAUSTED: Out of memory allocating "],
        DeviceMemory,
        "XLA ran out of memory of the accelerator",
    )
    .asked(After("memory allocating ")),
    wording(
        &["RESOURCE_EXHAUSTED: ", "Ran out of memory in memory space "],
        DeviceMemory,
        "XLA cannot fit the program",
    )
    .asked(After("Used ")),
    // CuPy: «total» is what its pool already holds, not the size of the device.
    wording(
        &["OutOfMemoryError: Out of memory allocating "],
        DeviceMemory,
        "CuPy ran out of GPU memory",
    )
    .asked(After("memory allocating "))
    .anywhere(),
    wording(
        &["OutOfMemoryError: out of memory to allocate "],
        DeviceMemory,
        "CuPy ran out of GPU memory",
    )
    .asked(After("memory to allocate "))
    .anywhere(),
    wording(
        &["cudaErrorMemoryAllocation: out of memory", "Free memory: "],
        DeviceMemory,
        "XGBoost ran out of GPU memory",
    )
    .asked(After("Requested memory: "))
    .free(After("Free memory: "))
    .anywhere(),
    wording(
        &[
            "Memory allocation error on worker ",
            "cudaErrorMemoryAllocation: out of memory",
        ],
        DeviceMemory,
        "XGBoost ran out of GPU memory",
    )
    .further(2)
    .asked(After("Requested memory: "))
    .free(After("Free memory: ")),
    wording(
        &["std::bad_alloc: out_of_memory: CUDA error at"],
        DeviceMemory,
        "RAPIDS ran out of GPU memory",
    )
    .anywhere(),
    wording(
        &["std::bad_alloc: out_of_memory: RMM failure at"],
        DeviceMemory,
        "RAPIDS ran out of GPU memory",
    )
    .anywhere(),
    wording(
        &["std::bad_alloc: RMM failure at", "Maximum pool size exceeded"],
        DeviceMemory,
        "RAPIDS ran out of GPU memory",
    )
    .anywhere(),
    wording(
        &["std::bad_alloc: CUDA error at", "cudaErrorMemoryAllocation"],
        DeviceMemory,
        "RAPIDS ran out of GPU memory",
    )
    .anywhere(),
    wording(
        &["cudaErrorMemoryAllocation: out of memory"],
        DeviceMemory,
        "The GPU had no memory left",
    )
    .anywhere(),
    wording(
        &["cudaErrorMemoryAllocation out of memory"],
        DeviceMemory,
        "The GPU had no memory left",
    )
    .anywhere(),
    wording(
        &["results in CUDA_ERROR_OUT_OF_MEMORY"],
        DeviceMemory,
        "Numba got no GPU memory",
    )
    .anywhere(),
    wording(
        &["CUDA_ERROR_OUT_OF_MEMORY"],
        DeviceMemory,
        "The GPU had no memory left",
    )
    .likely()
    .anywhere(),
    wording(
        &["Memory Object Allocation Failure"],
        DeviceMemory,
        "LightGBM got no memory of the GPU",
    ),
    wording(
        &["[CUDA] out of memory "],
        DeviceMemory,
        "LightGBM ran out of GPU memory",
    )
    .anywhere(),
    wording(
        &["CUDA error 2: out of memory"],
        DeviceMemory,
        "CatBoost ran out of GPU memory",
    ),
    wording(
        &["Out of memory error on GPU "],
        DeviceMemory,
        "Paddle ran out of GPU memory",
    )
    .asked(After("Cannot allocate "))
    .free(After("available memory is only ")),
    wording(
        &["cudaMalloc retry failed: out of memory"],
        DeviceMemory,
        "MXNet ran out of GPU memory",
    ),
    wording(
        &["cudaMalloc failed: out of memory"],
        DeviceMemory,
        "The GPU had no memory left",
    )
    .asked(After("allocating ")),
    wording(
        &["No available memory for the cache blocks"],
        DeviceMemory,
        "vLLM has no GPU memory left for its cache",
    ),
    wording(
        &[
            "Free memory on device ",
            " is less than desired GPU memory utilization",
        ],
        DeviceMemory,
        "vLLM found less free GPU memory than it was told to use",
    )
    .likely(),
    // Not for want of memory.
    wording(
        &["uncorrectable ECC error encountered"],
        Hardware,
        "The GPU reported an error of its memory that it could not correct",
    ),
    wording(
        &["GPU is lost.", "Reboot the system"],
        Hardware,
        "The GPU is lost: the driver cannot reach it any more",
    )
    .anywhere(),
    wording(
        &["Assertion `", "index out of bounds\"", "failed"],
        IndexError,
        "An index on the GPU was out of bounds",
    )
    .anywhere(),
    wording(
        &["Assertion `t >= 0 && t < n_classes", "failed"],
        IndexError,
        "A label is not below the number of classes",
    )
    .anywhere(),
    wording(
        &["Assertion `cur_target >= 0 && cur_target < n_classes", "failed"],
        IndexError,
        "A label is not below the number of classes",
    )
    .anywhere(),
    wording(
        &["Assertion `srcIndex < srcSelectDimSize", "failed"],
        IndexError,
        "An index on the GPU was out of bounds",
    )
    .anywhere(),
    wording(
        &["device-side assert triggered"],
        IndexError,
        "An assertion on the GPU failed, most often of an index or a label",
    )
    .likely()
    .anywhere(),
    wording(
        &["CUDA error: an illegal memory access was encountered"],
        Failed,
        "Code on the GPU touched memory that is not its own",
    ),
    wording(
        &["CUDA error: unspecified launch failure"],
        Failed,
        "Code on the GPU failed for a reason it does not tell",
    ),
    wording(
        &["Watchdog caught collective operation timeout"],
        Hang,
        "One of the processes did not come to a collective operation in time",
    )
    .likely(),
    wording(
        &["no kernel image is available for execution on the device"],
        LibraryVersion,
        "The library was built for other GPUs than this one",
    ),
    wording(
        &["CUDA driver version is insufficient for CUDA runtime version"],
        LibraryVersion,
        "The GPU driver is too old for the CUDA library",
    )
    .anywhere(),
    wording(
        &["The NVIDIA driver on your system is too old"],
        LibraryVersion,
        "The GPU driver is too old for the library",
    )
    .unless(&["UserWarning"]),
    wording(
        &["Found no NVIDIA driver on your system"],
        LibraryVersion,
        "There is no GPU driver here",
    ),
    wording(
        &["Torch not compiled with CUDA enabled"],
        LibraryVersion,
        "This PyTorch was built without CUDA",
    ),
    wording(
        &["cuDNN version incompatibility: "],
        LibraryVersion,
        "cuDNN is not of the version that PyTorch needs",
    ),
    wording(
        &["Loaded runtime CuDNN library: ", "but source was compiled with: "],
        LibraryVersion,
        "cuDNN is not of the version that TensorFlow needs",
    ),
];
