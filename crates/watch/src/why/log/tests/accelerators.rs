//! Messages of accelerators, as programs really print them.

use super::*;
use crate::why::Cause::*;
use crate::why::Grade::{Likely, Proven};

#[test]
fn accelerators() {
    check(&[
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.02 GiB is free. Process 20398 has 14.52 GiB memory in use. Of the allocated memory 14.06 GiB is allocated by PyTorch, and 330.42 MiB is reserved by PyTorch but unallocated.",
            DeviceMemory,
            Proven,
            [Some(2 * GIB), Some(sized(1.02, GIB)), Some(sized(23.69, GIB))],
        ),
        (
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 55.57 GiB. GPU 0 has a total capacty of 12.00 GiB of which 9.02 GiB is free. Of the allocated memory 984.52 MiB is allocated by PyTorch, and 463.48 MiB is reserved by PyTorch but unallocated.",
            DeviceMemory,
            Proven,
            [Some(sized(55.57, GIB)), Some(sized(9.02, GIB)), Some(12 * GIB)],
        ),
        (
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.70 GiB. GPU 0 has a total capacty of 6.00 GiB of which 0 bytes is free. Of the allocated memory 2.93 GiB is allocated by PyTorch",
            DeviceMemory,
            Proven,
            [Some(sized(1.7, GIB)), Some(0), Some(6 * GIB)],
        ),
        (
            "RuntimeError: CUDA out of memory. Tried to allocate 2.87 GiB (GPU 0; 14.76 GiB total capacity; 8.77 GiB already allocated; 19.75 MiB free; 13.71 GiB reserved in total by PyTorch)",
            DeviceMemory,
            Proven,
            [
                Some(sized(2.87, GIB)),
                Some(sized(19.75, MIB)),
                Some(sized(14.76, GIB)),
            ],
        ),
        (
            "RuntimeError: CUDA out of memory. Tried to allocate 26.00 MiB (GPU 0; 1024.00 MiB total capacity; 435.61 MiB already allocated; 24.17 MiB free; 26.39 MiB cached)",
            DeviceMemory,
            Proven,
            [Some(26 * MIB), Some(sized(24.17, MIB)), Some(1024 * MIB)],
        ),
        (
            "OutOfMemoryError: CUDA out of memory. Tried to allocate 192.00 MiB (GPU 0; 4.00 GiB total capacity; 3.08 GiB already allocated; 0 bytes free; 3.47 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
            DeviceMemory,
            Proven,
            [Some(192 * MIB), Some(0), Some(4 * GIB)],
        ),
        (
            "RuntimeError:CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 5.80 GiB total capacity; 4.36 GiB already allocated; 6.69 MiB free; 4.63 GiB reserved in total by PyTorch)",
            DeviceMemory,
            Proven,
            [Some(20 * MIB), Some(sized(6.69, MIB)), Some(sized(5.8, GIB))],
        ),
        (
            "[rank0]: torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 15.98 GiB of which 480.00 MiB is free.",
            DeviceMemory,
            Proven,
            [Some(sized(1.5, GIB)), Some(480 * MIB), Some(sized(15.98, GIB))],
        ),
        (
            "RuntimeError: MPS backend out of memory (MPS allocated: 18.02 GB, other allocations: 107.10 MB, max allowed: 18.13 GB). Tried to allocate 4.50 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure).",
            DeviceMemory,
            Proven,
            [
                Some(sized(4.5, MIB)),
                Some(sized(18.13, GIB) - sized(18.02, GIB) - sized(107.1, MIB)),
                Some(sized(18.13, GIB)),
            ],
        ),
        (
            "MPS backend out of memory (MPS allocated: 16.00 GB, other allocations: 3.31 GB, max allowed: 18.13 GB). Tried to allocate 256 bytes on shared pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0",
            DeviceMemory,
            Proven,
            [Some(256), Some(0), Some(sized(18.13, GIB))],
        ),
        (
            "RuntimeError: CUDA error: out of memory",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "torch.AcceleratorError: CUDA error: out of memory",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "THCudaCheck FAIL file=/home/suxia/pytorch/aten/src/THC/generic/THCStorage.cu line=58 error=2 : out of memory",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "RuntimeError: No executable batch size found, reached zero.",
            DeviceMemory,
            Likely,
            NONE,
        ),
        (
            "node01:77:99 [0] include/alloc.h:112 NCCL WARN Cuda failure 2 'out of memory'",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "ResourceExhaustedError: OOM when allocating tensor with shape[25088,4096] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
            DeviceMemory,
            Proven,
            [Some(25088 * 4096 * 4), None, None],
        ),
        (
            "ResourceExhaustedError (see above for traceback): OOM when allocating tensor with shape[500,17,17,4032] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc.",
            DeviceMemory,
            Proven,
            [Some(500 * 17 * 17 * 4032 * 4), None, None],
        ),
        (
            "  (0) Resource exhausted: OOM when allocating tensor with shape[16,112,112,147] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
            DeviceMemory,
            Proven,
            [Some(16 * 112 * 112 * 147 * 4), None, None],
        ),
        (
            "ResourceExhaustedError (see above for traceback): OOM when allocating tensor of shape [563354,256] and type float",
            DeviceMemory,
            Likely,
            [Some(563354 * 256 * 4), None, None],
        ),
        (
            "ResourceExhaustedError (see above for traceback): OOM when allocating tensor with shape[100,4096,32]",
            DeviceMemory,
            Likely,
            NONE,
        ),
        (
            "ResourceExhaustedError: failed to allocate memory [Op:AddV2]",
            DeviceMemory,
            Likely,
            NONE,
        ),
        (
            "2020-11-28 09:40:14.792808: W tensorflow/core/framework/op_kernel.cc:1763] OP_REQUIRES failed at image_resizer_state.h:142 : Resource exhausted: OOM when allocating tensor with shape[1,416,416,3] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu",
            BadAlloc,
            Proven,
            [Some(416 * 416 * 3 * 4), None, None],
        ),
        (
            "2022-05-19 11:10:00.1: E tensorflow/stream_executor/cuda/cuda_driver.cc:794] failed to allocate 17.79G (19104890880 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
            DeviceMemory,
            Likely,
            [Some(19104890880), None, None],
        ),
        (
            "2021-10-15 15:01:44.577626: E external/org_tensorflow/tensorflow/stream_executor/cuda/cuda_driver.cc:764] failed to alloc 2740606464 bytes unified memory; result: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
            DeviceMemory,
            Likely,
            [Some(2740606464), None, None],
        ),
        (
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7406166528 bytes.",
            DeviceMemory,
            Proven,
            [Some(7406166528), None, None],
        ),
        (
            "RuntimeError: Resource exhausted: Out of memory while trying to allocate 12582912 bytes.",
            DeviceMemory,
            Proven,
            [Some(12582912), None, None],
        ),
        (
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 20029400304 bytes.",
            DeviceMemory,
            Proven,
            [Some(20029400304), None, None],
        ),
        (
            "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 25,600,000 bytes (allocated so far: 3,635,267,072 bytes).",
            DeviceMemory,
            Proven,
            [Some(25_600_000), None, None],
        ),
        (
            "cupy.cuda.memory.OutOfMemoryError: out of memory to allocate 1073741824 bytes (total 12373894656 bytes)",
            DeviceMemory,
            Proven,
            [Some(GIB), None, None],
        ),
        (
            "MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /usr/local/miniconda3/envs/rapids-22.02/include/rmm/mr/device/cuda_memory_resource.hpp",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "MemoryError: std::bad_alloc: CUDA error at: /usr/include/rmm/mr/device/cuda_memory_resource.hpp:69: cudaErrorMemoryAllocation out of memory",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "MemoryError: std::bad_alloc: RMM failure at:/home/adolf/cupoch/third_party/rmm/include/rmm/mr/device/pool_memory_resource.hpp:179: Maximum pool size exceeded",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "MemoryError: std::bad_alloc: cudaErrorMemoryAllocation: out of memory",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "../src/tree/updater_gpu_hist.cu:784: Exception in gpu_hist: [11:01:50] ../src/c_api/../data/../common/device_helpers.cuh:431: Memory allocation error on worker 0: std::bad_alloc: cudaErrorMemoryAllocation: out of memory\n- Free memory: 8126464\n- Requested memory: 33554432",
            DeviceMemory,
            Proven,
            [Some(33554432), Some(8126464), None],
        ),
        (
            "numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "terminate called after throwing an instance of 'boost::wrapexcept<boost::compute::opencl_error>'\n  what():  Memory Object Allocation Failure",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "lightgbm.basic.LightGBMError: Memory Object Allocation Failure",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "[LightGBM] [Fatal] [CUDA] out of memory /tmp/LightGBM/src/cuda/cuda_utils.cpp 200",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "_catboost.CatBoostError: catboost/cuda/cuda_lib/cuda_base.h:281: CUDA error 2: out of memory",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 8192.00 MiB on device 0: cudaMalloc failed: out of memory",
            DeviceMemory,
            Proven,
            [Some(8192 * MIB), None, None],
        ),
        (
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
            DeviceMemory,
            Proven,
            NONE,
        ),
        (
            "RuntimeError: CUDA error: uncorrectable ECC error encountered",
            Hardware,
            Proven,
            NONE,
        ),
        (
            "RuntimeError: CUDA error: an illegal memory access was encountered",
            Failed,
            Proven,
            NONE,
        ),
        (
            "[rank1]:[E ProcessGroupNCCL.cpp:563] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1216, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.",
            Hang,
            Likely,
            NONE,
        ),
    ]);
}
