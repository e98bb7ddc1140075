//! What programs say at limits that are not memory: shared memory, open files, threads, disks.

use super::wording::Mark::After;
use super::wording::{Wording, wording};
use crate::why::Cause::{DiskFull, OpenFiles, Processes, SharedMemory};

/// Programs run out of file watches with the same error as of disk.
const NOT_THE_DISK: &[&str] = &["file watchers", "inotify"];

pub(super) const WORDINGS: &[Wording] = &[
    wording(
        &[
            "Unexpected bus error encountered in worker",
            "insufficient shared memory",
        ],
        SharedMemory,
        "A data-loader worker could not write to /dev/shm",
    )
    .likely()
    .anywhere(),
    wording(
        &["DataLoader worker (pid ", "is killed by signal: Bus error"],
        SharedMemory,
        "A data-loader worker could not write to /dev/shm",
    )
    .likely()
    .pid(After("(pid ")),
    wording(
        &["DataLoader worker (pid(s) ", "is killed by signal: Bus error"],
        SharedMemory,
        "A data-loader worker could not write to /dev/shm",
    )
    .likely()
    .pid(After("(pid(s) ")),
    wording(
        &["unable to write to file </torch_", "Too many open files"],
        OpenFiles,
        "PyTorch had too many files open to share another tensor",
    ),
    wording(
        &["unable to write to file </torch_"],
        SharedMemory,
        "PyTorch could not write a tensor to /dev/shm",
    ),
    wording(
        &[
            "unable to allocate shared memory(shm) for file </torch_",
            "No space left on device",
        ],
        SharedMemory,
        "PyTorch could not make a tensor in /dev/shm",
    ),
    wording(
        &["unable to resize file </torch_", "No space left on device"],
        SharedMemory,
        "PyTorch could not make a tensor in /dev/shm",
    ),
    wording(
        &["No space left on device", "/dev/shm"],
        SharedMemory,
        "/dev/shm was full",
    )
    .anywhere(),
    wording(
        &["/dev/shm", "No space left on device"],
        SharedMemory,
        "/dev/shm was full",
    )
    .anywhere(),
    wording(
        &["Error while creating shared memory segment /dev/shm"],
        SharedMemory,
        "NCCL got no shared memory",
    )
    .anywhere()
    .asked(After("(size ")),
    // Files.
    wording(
        &["[Errno 24] Too many open files"],
        OpenFiles,
        "A process had too many files open",
    ),
    wording(
        &["[Errno 23] Too many open files in system"],
        OpenFiles,
        "The machine had too many files open",
    ),
    wording(
        &["Too many open files. Communication with the workers is no longer possible"],
        OpenFiles,
        "A process had too many files open to share tensors with its workers",
    ),
    wording(
        &["unable to open shared memory object <", "Too many open files"],
        OpenFiles,
        "A process had too many files open to share another tensor",
    ),
    wording(
        &["received 0 items of ancdata"],
        OpenFiles,
        "A process had too many files open to take a tensor",
    )
    .likely(),
    wording(
        &["Too many open files (os error 24)"],
        OpenFiles,
        "A process had too many files open",
    )
    .anywhere(),
    wording(
        &["errno = 24, error message = 'Too many open files'"],
        OpenFiles,
        "A process had too many files open",
    )
    .anywhere(),
    wording(
        &["socket: too many open files"],
        OpenFiles,
        "A process had too many files open",
    )
    .anywhere(),
    wording(
        &["EMFILE: too many open files"],
        OpenFiles,
        "A process had too many files open",
    ),
    // Threads and processes.
    wording(
        &["can't start new thread"],
        Processes,
        "Python could not start another thread",
    ),
    wording(
        &["libgomp: Thread creation failed"],
        Processes,
        "OpenMP could not start another thread",
    ),
    wording(
        &["OpenBLAS blas_thread_init: pthread_create"],
        Processes,
        "OpenBLAS could not start another thread",
    )
    .likely(),
    wording(
        &["System unable to allocate necessary resources for OMP thread"],
        Processes,
        "OpenMP could not start another thread",
    ),
    wording(
        &["pthread_create failed"],
        Processes,
        "No further thread could be started",
    )
    .likely()
    .anywhere(),
    wording(
        &["fork: retry: "],
        Processes,
        "The shell could not start another process",
    )
    .likely(),
    wording(
        &["fork: Resource temporarily unavailable"],
        Processes,
        "The shell could not start another process",
    ),
    wording(
        &["failed to create new OS thread"],
        Processes,
        "A Go program could not start another thread",
    )
    .anywhere(),
    wording(
        &["failed to spawn thread", "Resource temporarily unavailable"],
        Processes,
        "A Rust program could not start another thread",
    )
    .anywhere(),
    wording(
        &["what():  Resource temporarily unavailable"],
        Processes,
        "C++ code could not start another thread",
    )
    .likely(),
    wording(
        &["what():  thread: Resource temporarily"],
        Processes,
        "C++ code could not start another thread",
    ),
    // Disks.
    wording(
        &["[Errno 28] No space left on device"],
        DiskFull,
        "A disk was full",
    )
    .unless(NOT_THE_DISK),
    wording(
        &["[Errno 122] Disk quota exceeded"],
        DiskFull,
        "The quota of disk space was used up",
    ),
    wording(
        &["No space left on device (os error 28)"],
        DiskFull,
        "A disk was full",
    )
    .anywhere()
    .unless(NOT_THE_DISK),
    wording(
        &["errno = 28, error message = 'No space left on device'"],
        DiskFull,
        "A disk was full",
    )
    .anywhere(),
    wording(&["ENOSPC: no space left on device"], DiskFull, "A disk was full").unless(NOT_THE_DISK),
    wording(
        &["write error: No space left on device"],
        DiskFull,
        "A disk was full",
    ),
    wording(
        &["java.io.IOException: No space left on device"],
        DiskFull,
        "A disk was full",
    )
    .anywhere(),
    wording(&[": No space left on device"], DiskFull, "A disk was full")
        .likely()
        .anywhere()
        .unless(NOT_THE_DISK),
    wording(
        &["Disk quota exceeded"],
        DiskFull,
        "The quota of disk space was used up",
    )
    .likely(),
    // NumPy's `tofile` counts what it wrote, and does not say why it was not more.
    wording(
        &["OSError: ", " requested and ", " written"],
        DiskFull,
        "NumPy could not write an array to its end, as happens when a disk is full",
    )
    .likely(),
    wording(&["database or disk is full"], DiskFull, "A disk was full"),
    wording(
        &["[enforce fail at inline_container.cc", "unexpected pos "],
        DiskFull,
        "PyTorch could not write a checkpoint to its end, as happens when a disk is full",
    )
    .likely()
    .anywhere(),
    wording(
        &["PytorchStreamWriter failed writing file"],
        DiskFull,
        "PyTorch could not write a checkpoint, as happens when a disk is full",
    )
    .likely(),
];
