//! Lines that hold the words of a message and are none, and messages that the program coped with.

use super::*;
use crate::why::Cause;

/// Ordinary output that goes on after something.
fn going_on(lines: usize) -> String {
    (1..=lines)
        .map(|step| format!("epoch 2 step {step} loss 0.{step}\n"))
        .collect()
}

#[test]
fn words_alone_are_no_message() {
    for text in [
        "retrying after CUDA out of memory, batch halved",
        "To avoid CUDA out of memory errors, reduce the batch size",
        "If you are getting CUDA out of memory errors, you should reduce the size of your batch",
        "|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |",
        "  --oom-policy {retry,fail}  what to do on CUDA out of memory (default: fail)",
        "2022-02-11 12:56:42: W tensorflow/core/common_runtime/bfc_allocator.cc:462] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.20GiB with freed_by_count=0. The caller indicates that this is not a failure, but this may mean that there could be performance gains if more memory were available.",
        "OutOfMemoryError is raised where the batch does not fit",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory",
        "0 oom events",
        "oom_kill 0",
        "memory.events: oom 0 oom_kill 0",
        "slurmstepd: error: Detected 0 oom_kill events in StepId=440575.0.",
        "            \"OOMKilled\": false,",
        "Restart policy: on OOMKilled containers are restarted",
        "usage: train.py [--memory-limit BYTES]  MemoryError is raised above it",
        "Handling MemoryError gracefully since version 2",
        "except MemoryError:",
        "catching std::bad_alloc in the loader",
        "Unable to allocate a free port, trying the next one",
        "memory allocation of tensors is lazy",
        "distributed.worker.memory - WARNING - Unmanaged memory use is high. This may indicate a memory leak or the memory may not be released to the OS; -- Unmanaged memory: 1.49 GiB -- Worker memory limit: 2.33 GiB",
        "distributed.worker - WARNING - Worker is at 85% memory usage. Pausing worker.  Process memory: 3.69 GB -- Worker memory limit: 4.29 GB",
        "earlyoom[1460]: sending SIGTERM when mem <=  4.00% and swap <= 10.00%,",
        "mem avail:  1524 of 13855 MiB (10 %), swap free:    0 of    0 MiB ( 0 %)",
        "systemd-oomd[93234]: Considered 97 cgroups for killing, top candidates were:",
        "Could not lock memory - continuing anyway: Cannot allocate memory",
        "DataLoader workers are killed by signal when the parent ends",
        "A DataLoader worker (pid 12) started",
        "the process pool was terminated after 12 tasks",
        "Killed 3 stale lock files",
        "Aborted runs so far: 0",
        "Terminated early: no improvement for 5 epochs",
        "Segmentation fault tests passed: 12",
        "segmentation model loaded (deeplabv3)",
        "Error: ENOSPC: System limit for number of file watchers reached, watch '/work'",
        "42 GB left on device cuda:0",
        "Too many open files would need ulimit -n 4096",
        "max open files: 1024",
        "threads: can't exceed 64",
        "/sbin/ldconfig: Can't create temporary cache file /etc/ld.so.cache~: Permission denied",
        "RuntimeWarning: overflow encountered in exp",
        "RuntimeWarning: invalid value encountered in true_divide",
        "Warning: NaN or Inf found in input tensor.",
        "   age  fare\n0  NaN   7.2\n1  NaN  71.3",
        "Epoch 00001: val_loss improved from inf to 0.43210, saving model to best.h5",
        "best loss: inf",
        "loss_scale: inf",
        "step 12 grad_norm: inf",
        "Dropped 12 rows with NaN in the loss column",
        "index out of range is checked by --strict",
        "Checking tensor shapes ... shapes match",
        "Incompatible shapes are skipped",
        "UserWarning: Failed to initialize NumPy: No module named 'numpy' (Triggered internally at tensor_numpy.cpp:68.)",
        "WARNING - apex is not there: No module named 'apex'",
        "2024-01-01 00:00:00: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory",
        "RuntimeWarning: numpy.dtype size changed, may indicate binary incompatibility. Expected 96, got 88",
        "config.yaml: no such file, using defaults",
        "kernel 3x3, died out",
        "time limit: 3600 s",
        "walltime 3600 of limit 7200 used",
        "Job was submitted with OUT_OF_MEMORY handling on",
        "The runner is ready to receive jobs",
        "maximum recursion depth: 1000",
        "Java heap space: 4 GB",
        "all workers exited cleanly",
        "free(): called 12 times",
        "double free rooms or corruption of data: see manual",
        "",
    ] {
        let found = said(&log(text));
        assert!(found.is_empty(), "{text}\n{found:?}");
    }
}

#[test]
fn what_the_program_copes_with_is_handled() {
    let oom = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 4.00 GiB total capacity; 3.00 GiB already allocated; 1.00 GiB free; 3.50 GiB reserved in total by PyTorch)";
    let fairseq = "| WARNING: ran out of memory with exception: CUDA out of memory. Tried to allocate 3.07 GiB (GPU 0; 31.72 GiB total capacity; 29.28 GiB already allocated; 767.56 MiB free; 556.92 MiB cached);\n Skipping batch";
    let caught = "Traceback (most recent call last):\n  File \"train.py\", line 3, in load\n    x = np.ones(10**12)\nMemoryError";
    let ignored = "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f0>\nTraceback (most recent call last):\n  File \"/usr/lib/python3.10/site-packages/torch/utils/data/dataloader.py\", line 1466, in __del__\n    self._shutdown_workers()\nAssertionError: can only test a child process";
    for text in [
        format!("{oom}\n{}", going_on(25)),
        format!("{fairseq}\n"),
        format!("{caught}\n{}", going_on(20)),
        format!("WARNING: {oom}; retrying with half the batch"),
        ignored.into(),
        format!("--- Logging error ---\n{caught}"),
    ] {
        let found = said(&log(&text));
        assert!(
            !found.is_empty() && found.iter().all(|said| said.handled),
            "{text}\n{found:?}"
        );
    }
    for text in [
        oom.to_string(),
        format!("{}{oom}\n", going_on(40)),
        format!("{oom}\n{}", going_on(5)),
        format!(
            "{caught}\nwandb: Waiting for W&B process to finish... (failed 1)\nsrun: error: node01: task 0: Exited with exit code 1\n"
        ),
        // A dump of the allocator is no output of the program.
        format!("{oom}\n{}", "    parameter allocation:  372.76MiB\n".repeat(50)),
        format!(
            "{oom}\n{}",
            "[bt] (0) /usr/lib/libxgboost.so(+0x455449) [0x7f1e00064449]\n".repeat(50)
        ),
    ] {
        let found = said(&log(&text));
        assert!(
            found.iter().any(|said| !said.handled && said.cause.is_memory()),
            "{text}\n{found:?}"
        );
    }
}

#[test]
fn time_tells_too() {
    let text = format!(
        "MemoryError: Unable to allocate 7.45 GiB for an array with shape (1000000000,) and data type float64\n{}",
        going_on(3)
    );
    let handled = |later: i64| {
        let log = log_at(&text, |number| {
            Some(if number == 1 { 1_000 } else { 1_000 + later })
        });
        said(&log).iter().all(|said| said.handled)
    };
    assert!(!handled(100));
    assert!(handled(2_000));
    // One farewell of a script is no progress.
    let farewell = "MemoryError: std::bad_alloc\nreal 0m12.3s";
    let found = said(&log_at(farewell, |number| Some(number as i64 * 10_000)));
    assert!(found.iter().all(|said| !said.handled));
}

#[test]
fn code_that_is_quoted_says_nothing() {
    let text = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    raise ValueError(\"CUDA out of memory. Tried to allocate 2.00 GiB\")\nValueError: nothing of the kind";
    let found = said(&log(text));
    assert_eq!(
        found.iter().map(|said| said.cause).collect::<Vec<_>>(),
        [Cause::Failed]
    );
}

#[test]
fn what_is_said_many_times_is_said_once() {
    let text = "OpenBLAS blas_thread_init: pthread_create failed for thread 1 of 64: Resource temporarily unavailable\n".repeat(63);
    assert_eq!(said(&log(&text)).len(), 1);
}
