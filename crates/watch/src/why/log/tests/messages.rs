//! Messages about memory, workers and limits, as programs really print them.

use super::*;
use crate::why::Cause::*;
use crate::why::Grade::{Likely, Proven, Unknown};

#[test]
fn memory() {
    check(&[
        (
            "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape (1000000000,) and data type float64",
            MemoryError,
            Proven,
            [Some(sized(7.45, GIB)), None, None],
        ),
        (
            "MemoryError: Unable to allocate 184. MiB for an array with shape (64, 26, 26, 3, 371) and data type float32",
            MemoryError,
            Proven,
            [Some(184 * MIB), None, None],
        ),
        (
            "MemoryError: Unable to allocate array with shape (1000, 1000, 1000) and data type float64",
            MemoryError,
            Proven,
            [Some(8_000_000_000), None, None],
        ),
        (
            "2020-11-28 09:40:14.816077: W tensorflow/core/framework/op_kernel.cc:1751] Resource exhausted: MemoryError: Unable to allocate 184. MiB for an array with shape (64, 26, 26, 3, 371) and data type float32",
            MemoryError,
            Proven,
            [Some(184 * MIB), None, None],
        ),
        (
            "pyarrow.lib.ArrowMemoryError: malloc of size 128 failed",
            MemoryError,
            Proven,
            [Some(128), None, None],
        ),
        (
            "pyarrow.lib.ArrowMemoryError: realloc of size 2172846080 failed",
            MemoryError,
            Proven,
            [Some(2172846080), None, None],
        ),
        (
            "ArrowMemoryError: malloc of size 2417947094267967360 failed",
            MemoryError,
            Proven,
            [Some(2417947094267967360), None, None],
        ),
        (
            "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 9663676416 bytes. Error code 12 (Cannot allocate memory)",
            BadAlloc,
            Proven,
            [Some(9663676416), None, None],
        ),
        (
            "RuntimeError: [enforce fail at CPUAllocator.cpp:64] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 35389440000 bytes. Error code 12 (Cannot allocate memory)",
            BadAlloc,
            Proven,
            [Some(35389440000), None, None],
        ),
        (
            "RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: not enough memory: you tried to allocate 9437184 bytes.",
            BadAlloc,
            Proven,
            [Some(9437184), None, None],
        ),
        (
            "RuntimeError: $ Torch: not enough memory: you tried to allocate 12GB. Buy new RAM! at /pytorch/aten/src/TH/THGeneral.cpp:204",
            BadAlloc,
            Proven,
            [Some(12 * GIB), None, None],
        ),
        (
            "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
            BadAlloc,
            Proven,
            NONE,
        ),
        (
            "libc++abi: terminating due to uncaught exception of type std::bad_alloc: std::bad_alloc",
            BadAlloc,
            Proven,
            NONE,
        ),
        ("MemoryError: std::bad_alloc", BadAlloc, Proven, NONE),
        (
            "duckdb.duckdb.OutOfMemoryException: Out of Memory Error: could not allocate block of size 256.0 KiB (5.5 GiB/5.5 GiB used)",
            BadAlloc,
            Proven,
            [Some(256 * KIB), None, None],
        ),
        (
            "memory allocation of 34359738368 bytes failed",
            BadAlloc,
            Proven,
            [Some(34359738368), None, None],
        ),
        (
            "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space",
            BadAlloc,
            Proven,
            NONE,
        ),
        (
            "java.lang.OutOfMemoryError: GC overhead limit exceeded",
            BadAlloc,
            Proven,
            NONE,
        ),
        (
            "Caused by: java.lang.OutOfMemoryError: Metaspace",
            BadAlloc,
            Proven,
            NONE,
        ),
        (
            "java.lang.OutOfMemoryError: unable to create new native thread",
            Processes,
            Proven,
            NONE,
        ),
        (
            "# There is insufficient memory for the Java Runtime Environment to continue.\n# Native memory allocation (mmap) failed to map 715849728 bytes for committing reserved memory.",
            BadAlloc,
            Proven,
            NONE,
        ),
        (
            "# Native memory allocation (mmap) failed to map 715849728 bytes for committing reserved memory.",
            BadAlloc,
            Proven,
            [Some(715849728), None, None],
        ),
        (
            "OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory(0x00000000d5550000, 715849728, 0) failed; error='Cannot allocate memory' (errno=12)",
            BadAlloc,
            Proven,
            NONE,
        ),
        (
            "Error: cannot allocate vector of size 2.0 Gb",
            BadAlloc,
            Proven,
            [Some(2 * GIB), None, None],
        ),
        (
            "Error: cannot allocate vector of size 512 Mb",
            BadAlloc,
            Proven,
            [Some(512 * MIB), None, None],
        ),
        (
            "Error: vector memory exhausted (limit reached?)",
            BadAlloc,
            Proven,
            NONE,
        ),
        ("ERROR: LoadError: OutOfMemoryError()", BadAlloc, Proven, NONE),
        ("ERROR: OutOfMemoryError()", BadAlloc, Proven, NONE),
        (
            "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
            BadAlloc,
            Proven,
            NONE,
        ),
        (
            "FATAL ERROR: CALL_AND_RETRY_LAST Allocation failed - JavaScript heap out of memory",
            BadAlloc,
            Proven,
            NONE,
        ),
        ("fatal error: runtime: out of memory", BadAlloc, Proven, NONE),
        (
            "runtime: out of memory: cannot allocate 4194304-byte block (2147483648 in use)",
            BadAlloc,
            Proven,
            [Some(4194304), None, None],
        ),
        (
            "OSError: [Errno 12] Cannot allocate memory",
            BadAlloc,
            Proven,
            NONE,
        ),
        ("bash: fork: Cannot allocate memory", BadAlloc, Proven, NONE),
        (
            "RuntimeError: unable to mmap 29764 bytes from file </torch_10182_3020184674_63991>: Cannot allocate memory (12)",
            BadAlloc,
            Proven,
            [Some(29764), None, None],
        ),
        (
            "RecursionError: maximum recursion depth exceeded while calling a Python object",
            StackOverflow,
            Proven,
            NONE,
        ),
        (
            "thread 'main' has overflowed its stack",
            StackOverflow,
            Proven,
            NONE,
        ),
        (
            "Error: C stack usage  7971652 is too close to the limit",
            StackOverflow,
            Proven,
            NONE,
        ),
        (
            "Exception in thread \"main\" java.lang.StackOverflowError",
            StackOverflow,
            Proven,
            NONE,
        ),
    ]);
}

#[test]
fn limits() {
    check(&[
        (
            "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
            SharedMemory,
            Likely,
            NONE,
        ),
        (
            "RuntimeError: DataLoader worker (pid 46794) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
            SharedMemory,
            Likely,
            NONE,
        ),
        (
            "RuntimeError: unable to write to file </torch_15769_1517813162>",
            SharedMemory,
            Proven,
            NONE,
        ),
        (
            "RuntimeError: unable to write to file </torch_31911_952036340_6686>: No space left on device (28)",
            SharedMemory,
            Proven,
            NONE,
        ),
        (
            "RuntimeError: unable to write to file </torch_76_3625483894> at /pytorch/aten/src/TH/THAllocator.c:383",
            SharedMemory,
            Proven,
            NONE,
        ),
        (
            "OSError: [Errno 28] No space left on device: '/dev/shm/pym-77-abc'",
            SharedMemory,
            Proven,
            NONE,
        ),
        (
            "OSError: [Errno 28] No space left on device",
            DiskFull,
            Proven,
            NONE,
        ),
        (
            "OSError: [Errno 28] No space left on device: '/data/checkpoints/last.pt'",
            DiskFull,
            Proven,
            NONE,
        ),
        ("OSError: [Errno 122] Disk quota exceeded", DiskFull, Proven, NONE),
        (
            "Error: No space left on device (os error 28)",
            DiskFull,
            Proven,
            NONE,
        ),
        (
            "cp: error writing '/data/x': No space left on device",
            DiskFull,
            Likely,
            NONE,
        ),
        (
            "sqlite3.OperationalError: database or disk is full",
            DiskFull,
            Proven,
            NONE,
        ),
        (
            "OSError: 1000000 requested and 262016 written",
            DiskFull,
            Likely,
            NONE,
        ),
        (
            "numpy._core._exceptions._UFuncOutputCastingError: Cannot cast ufunc 'add' output from dtype('float64') to dtype('int64') with casting rule 'same_kind'",
            TypeError,
            Proven,
            NONE,
        ),
        (
            "AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead.",
            LibraryVersion,
            Proven,
            NONE,
        ),
        (
            "RuntimeError: [enforce fail at inline_container.cc:274] . unexpected pos 4260986880 vs 4260986768",
            DiskFull,
            Likely,
            NONE,
        ),
        (
            "RuntimeError: PytorchStreamWriter failed writing file data/3: file write failed",
            DiskFull,
            Likely,
            NONE,
        ),
        (
            "OSError: [Errno 24] Too many open files: '/data/train/0001.jpg'",
            OpenFiles,
            Proven,
            NONE,
        ),
        (
            "RuntimeError: Too many open files. Communication with the workers is no longer possible. Please increase the limit using `ulimit -n` in the shell or change the sharing strategy by calling `torch.multiprocessing.set_sharing_strategy('file_system')` at the beginning of your code",
            OpenFiles,
            Proven,
            NONE,
        ),
        (
            "RuntimeError: unable to open shared memory object </torch_29919_1396182366> in read-write mode: Too many open files (24)",
            OpenFiles,
            Proven,
            NONE,
        ),
        (
            "RuntimeError: received 0 items of ancdata",
            OpenFiles,
            Likely,
            NONE,
        ),
        ("RuntimeError: can't start new thread", Processes, Proven, NONE),
        (
            "libgomp: Thread creation failed: Resource temporarily unavailable",
            Processes,
            Proven,
            NONE,
        ),
        (
            "OpenBLAS blas_thread_init: pthread_create failed for thread 86 of 128: Resource temporarily unavailable",
            Processes,
            Likely,
            NONE,
        ),
        (
            "OpenBLAS blas_thread_init: pthread_create: Resource temporarily unavailable",
            Processes,
            Likely,
            NONE,
        ),
        (
            "OMP: Error #34: System unable to allocate necessary resources for OMP thread:",
            Processes,
            Proven,
            NONE,
        ),
        (
            "bash: fork: retry: Resource temporarily unavailable",
            Processes,
            Likely,
            NONE,
        ),
        ("-bash: fork: retry: No child processes", Processes, Likely, NONE),
        (
            "runtime: failed to create new OS thread (have 2 already; errno=11)",
            Processes,
            Proven,
            NONE,
        ),
        (
            "thread 'main' panicked at library/std/src/thread/mod.rs:729:29:\nfailed to spawn thread: Os { code: 11, kind: WouldBlock, message: \"Resource temporarily unavailable\" }",
            Processes,
            Proven,
            NONE,
        ),
    ]);
}

#[test]
fn workers() {
    check(&[
        (
            "RuntimeError: DataLoader worker (pid 123) is killed by signal: Killed.",
            ChildOom,
            Likely,
            NONE,
        ),
        (
            "RuntimeError: DataLoader worker (pid 77) is killed by signal: Segmentation fault.",
            SegmentationFault,
            Proven,
            NONE,
        ),
        (
            "RuntimeError: DataLoader worker (pid 77) is killed by signal: Aborted.",
            Abort,
            Likely,
            NONE,
        ),
        (
            "RuntimeError: DataLoader worker (pid(s) 12, 34) exited unexpectedly",
            ChildOom,
            Unknown,
            NONE,
        ),
        (
            "joblib.externals.loky.process_executor.TerminatedWorkerError: A worker process managed by the executor was unexpectedly terminated. This could be caused by a segmentation fault while calling the function or by an excessive memory usage causing the Operating System to kill the worker. The exit codes of the workers are {SIGKILL(-9)}",
            ChildOom,
            Likely,
            NONE,
        ),
        (
            "The exit codes of the workers are {SIGSEGV(-11)}",
            SegmentationFault,
            Proven,
            NONE,
        ),
        (
            "The exit codes of the workers are {SIGABRT(-6), SIGABRT(-6)}",
            Abort,
            Likely,
            NONE,
        ),
        (
            "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly while the future was running or pending.",
            ChildOom,
            Unknown,
            NONE,
        ),
        (
            "BrokenProcessPool: A child process terminated abruptly, the process pool is not usable anymore",
            ChildOom,
            Unknown,
            NONE,
        ),
        (
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory on the node (IP: 192.168.0.107, ID: fc2befb2) where the task (actor ID: f9cc340f, name=SimEnv.__init__, pid=4331, memory used=2.22GB) was running was 59.49GB / 62.58GB (0.950744), which exceeds the memory usage threshold of 0.95. Ray killed this worker (ID: d98ac96c) because it was the most recently scheduled task",
            OomDaemon,
            Proven,
            [
                None,
                Some(sized(62.58, GIB) - sized(59.49, GIB)),
                Some(sized(62.58, GIB)),
            ],
        ),
        (
            "(raylet) [2025-12-07 09:57:19,206 E 393463 393463] (raylet) node_manager.cc:3277: 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 8289f8, IP: 172.24.0.226) over the last time period.",
            OomDaemon,
            Proven,
            NONE,
        ),
        (
            "ray.memory_monitor.RayOutOfMemoryError: More than 95% of the memory on node eric-ThinkPad is used (11.8 / 12.3 GB). The top 5 memory consumers are:",
            OomDaemon,
            Proven,
            NONE,
        ),
        (
            "distributed.nanny - WARNING - Worker exceeded 95% memory budget.  Restarting",
            OomDaemon,
            Proven,
            NONE,
        ),
        (
            "distributed.nanny.memory - WARNING - Worker tls://192.168.204.84:34937 (pid=129) exceeded 95% memory budget. Restarting...",
            OomDaemon,
            Proven,
            NONE,
        ),
        (
            "ExecutorLostFailure (executor 7 exited caused by one of the running tasks) Reason: Container killed by YARN for exceeding memory limits. 10.4 GB of 10 GB physical memory used. Consider boosting spark.yarn.executor.memoryOverhead.",
            OomDaemon,
            Proven,
            [None, Some(0), Some(10 * GIB)],
        ),
        (
            "Container [pid=15344,containerID=container_1421351425698_0002_01_000006] is running beyond physical memory limits. Current usage: 1.1 GB of 1 GB physical memory used; 1.7 GB of 2.1 GB virtual memory used. Killing container.",
            OomDaemon,
            Proven,
            [None, Some(0), Some(GIB)],
        ),
        (
            "[I 12:00:01.123 LabApp] AsyncIOLoopKernelRestarter: restarting kernel (1/5), keep random ports",
            ChildOom,
            Unknown,
            NONE,
        ),
        (
            "[I 12:00:01.123 NotebookApp] KernelRestarter: restarting kernel (1/5), keep random ports",
            ChildOom,
            Unknown,
            NONE,
        ),
        (
            "nbclient.exceptions.DeadKernelError: Kernel died",
            ChildOom,
            Unknown,
            NONE,
        ),
        (
            "distributed.nanny - WARNING - Worker process 22204 was killed by signal 9",
            ChildOom,
            Likely,
            NONE,
        ),
        (
            "distributed.scheduler.KilledWorker: Attempted to run task counts-6ec2db25 on 4 different workers, but all those workers died while running it.",
            ChildOom,
            Unknown,
            NONE,
        ),
    ]);
    assert_eq!(
        first("RuntimeError: DataLoader worker (pid 123) is killed by signal: Killed.").pid,
        Some(123)
    );
    assert_eq!(
        first("RuntimeError: DataLoader worker (pid(s) 12, 34) exited unexpectedly").pid,
        Some(12)
    );
}

#[test]
fn a_message_tells_its_sizes_in_a_sentence() {
    for (text, sentence) in [
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.02 GiB is free.",
            "PyTorch ran out of GPU memory: it asked for 2.15 GB, and 1.1 GB of 25.4 GB was free.",
        ),
        (
            "MemoryError: Unable to allocate 7.45 GiB for an array with shape (1000000000,) and data type float64",
            "NumPy got no memory for an array: it asked for 8 GB.",
        ),
        (
            "Killed",
            "A process ended by SIGKILL: who sent it, the kernel for want of memory or somebody else, it does not say.",
        ),
        (
            "=>> PBS: job killed: mem 8401756kb exceeded limit 8388608kb",
            "PBS ended the job for its memory: 8.6 GB of 8.59 GB was in use.",
        ),
    ] {
        assert_eq!(first(text).sentence, sentence, "{text}");
    }
}
