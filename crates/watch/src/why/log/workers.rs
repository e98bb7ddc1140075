//! What programs say when one of their own processes is gone.

use super::size::Unit::{Binary, Decimal};
use super::wording::Mark::After;
use super::wording::{Wording, wording};
use crate::why::Cause::{Abort, ChildOom, Failed, IllegalInstruction, OomDaemon, SegmentationFault, Stopped};

pub(super) const WORDINGS: &[Wording] = &[
    wording(
        &["DataLoader worker (pid", "is killed by signal: Killed"],
        ChildOom,
        "A data-loader worker was killed with SIGKILL",
    )
    .likely()
    .pid(After("DataLoader worker (pid ")),
    wording(
        &[
            "DataLoader worker (pid",
            "is killed by signal: Segmentation fault",
        ],
        SegmentationFault,
        "A data-loader worker touched memory that is not its own",
    )
    .pid(After("DataLoader worker (pid ")),
    wording(
        &[
            "DataLoader worker (pid",
            "is killed by signal: Illegal instruction",
        ],
        IllegalInstruction,
        "A data-loader worker came to an instruction that this processor does not have",
    )
    .pid(After("DataLoader worker (pid ")),
    wording(
        &["DataLoader worker (pid", "is killed by signal: Aborted"],
        Abort,
        "A data-loader worker aborted",
    )
    .likely()
    .pid(After("DataLoader worker (pid ")),
    wording(
        &["DataLoader worker (pid", "is killed by signal: Terminated"],
        Stopped,
        "A data-loader worker was told to stop",
    )
    .likely()
    .pid(After("DataLoader worker (pid ")),
    wording(
        &["DataLoader worker (pid", "is killed by signal: "],
        Failed,
        "A data-loader worker was ended by a signal",
    )
    .pid(After("DataLoader worker (pid ")),
    wording(
        &["DataLoader worker (pid(s) ", "exited unexpectedly"],
        ChildOom,
        "A data-loader worker went away without a word, as after a kill for memory",
    )
    .unknown()
    .pid(After("(pid(s) ")),
    wording(
        &["DataLoader worker (pid ", "exited unexpectedly"],
        ChildOom,
        "A data-loader worker went away without a word, as after a kill for memory",
    )
    .unknown()
    .pid(After("(pid ")),
    wording(
        &["The exit codes of the workers are {", "SIGKILL(-9)"],
        ChildOom,
        "A worker process was killed with SIGKILL",
    )
    .anywhere()
    .likely(),
    wording(
        &["The exit codes of the workers are {", "SIGSEGV(-11)"],
        SegmentationFault,
        "A worker process touched memory that is not its own",
    )
    .anywhere(),
    wording(
        &["The exit codes of the workers are {", "SIGABRT(-6)"],
        Abort,
        "A worker process aborted",
    )
    .anywhere()
    .likely(),
    wording(
        &["The exit codes of the workers are {", "SIGTERM(-15)"],
        Stopped,
        "A worker process was told to stop",
    )
    .anywhere()
    .likely(),
    wording(
        &["A worker process managed by the executor was unexpectedly terminated"],
        ChildOom,
        "A worker process went away without a word, as after a kill for memory",
    )
    .unknown(),
    wording(
        &["A worker stopped while some jobs were given to the executor"],
        ChildOom,
        "A worker process went away in the middle of its work; loky takes it for a leak or a kill for memory",
    )
    .unknown()
    .anywhere(),
    wording(
        &["A process in the process pool was terminated abruptly"],
        ChildOom,
        "A worker process went away without a word, as after a kill for memory",
    )
    .unknown(),
    wording(
        &["A child process terminated abruptly, the process pool is not usable anymore"],
        ChildOom,
        "A worker process went away without a word, as after a kill for memory",
    )
    .unknown(),
    // nnU-Net and batchgenerators.
    wording(
        &["One or more background workers are no longer alive"],
        ChildOom,
        "A worker process went away without a word, as after a kill for memory",
    )
    .unknown(),
    // Ray: its monitor kills a worker at 95 % of the node's memory.
    wording(
        &["OutOfMemoryError: Task was killed due to the node running low on memory"],
        OomDaemon,
        "Ray killed a task because the node was low on memory",
    )
    .anywhere()
    .further(2)
    .unit(Binary)
    .pid(After("pid="))
    .used(&[After("was running was ")])
    .total(After("GB / ")),
    wording(
        &["Task was killed due to the node running low on memory"],
        OomDaemon,
        "Ray killed a task because the node was low on memory",
    ),
    wording(
        &["Workers (tasks / actors) killed due to memory pressure (OOM)"],
        OomDaemon,
        "Ray killed workers because the node was low on memory",
    )
    .anywhere()
    .unless(&[" 0 Workers (tasks / actors) killed"]),
    wording(
        &["RayOutOfMemoryError: More than ", "of the memory on node"],
        OomDaemon,
        "Ray stopped because the node was low on memory",
    )
    .anywhere(),
    // Dask: its nanny restarts a worker at 95 % of its share.
    wording(
        &["exceeded ", "% memory budget. ", "Restarting"],
        OomDaemon,
        "Dask killed a worker that was over its share of memory",
    )
    .anywhere()
    .unit(Decimal)
    .pid(After("(pid=")),
    wording(
        &["distributed.nanny", "Worker process ", "was killed by signal 9"],
        ChildOom,
        "A Dask worker was killed with SIGKILL",
    )
    .anywhere()
    .likely()
    .pid(After("Worker process ")),
    wording(
        &["KilledWorker: "],
        ChildOom,
        "Dask gave a task up because the workers that ran it died",
    )
    .unknown()
    .anywhere(),
    // Spark on YARN: the node's manager kills a container over its limit.
    wording(
        &["Container killed by YARN for exceeding ", "memory limits"],
        OomDaemon,
        "YARN killed a container for its memory",
    )
    .anywhere()
    .used(&[After("limits. ")])
    .total(After("B of ")),
    wording(
        &["is running beyond physical memory limits", "Killing container"],
        OomDaemon,
        "YARN killed a container for its memory",
    )
    .anywhere()
    .used(&[After("Current usage: ")])
    .total(After("B of ")),
    wording(
        &[
            "is running ",
            "beyond the 'VIRTUAL' memory limit",
            "Killing container",
        ],
        OomDaemon,
        "YARN killed a container for its address space",
    )
    .anywhere(),
    wording(
        &[
            "is running ",
            "beyond the 'PHYSICAL' memory limit",
            "Killing container",
        ],
        OomDaemon,
        "YARN killed a container for its memory",
    )
    .anywhere()
    .used(&[After("Current usage: ")])
    .total(After("B of ")),
    // Jupyter.
    wording(
        &["KernelRestarter: restarting kernel "],
        ChildOom,
        "The kernel of a notebook died, as after a kill for memory",
    )
    .unknown()
    .anywhere(),
    wording(
        &["DeadKernelError: Kernel died"],
        ChildOom,
        "The kernel of a notebook died, as after a kill for memory",
    )
    .unknown()
    .anywhere(),
    wording(
        &["Kernel died before replying to kernel_info"],
        Failed,
        "The kernel of a notebook did not start",
    )
    .anywhere(),
    wording(
        &["Kernel died"],
        ChildOom,
        "The kernel of a notebook died, as after a kill for memory",
    )
    .unknown(),
];
