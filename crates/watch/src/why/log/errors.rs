//! What the name of an exception alone shows, where no wording fits its message.

use super::signals::by_number;
use super::traceback::Traceback;
use crate::why::{Cause, Grade};

/// Names of exceptions, without their modules.
const NAMES: &[(&str, Cause, Grade, &str)] = &[
    (
        "MemoryError",
        Cause::MemoryError,
        Grade::Proven,
        "Python got no memory",
    ),
    (
        "_ArrayMemoryError",
        Cause::MemoryError,
        Grade::Proven,
        "NumPy got no memory for an array",
    ),
    (
        "ArrowMemoryError",
        Cause::MemoryError,
        Grade::Proven,
        "Arrow got no memory",
    ),
    (
        "OutOfMemoryError",
        Cause::DeviceMemory,
        Grade::Likely,
        "The accelerator had no memory left",
    ),
    (
        "ResourceExhaustedError",
        Cause::DeviceMemory,
        Grade::Likely,
        "TensorFlow ran out of memory",
    ),
    (
        "std::bad_alloc",
        Cause::BadAlloc,
        Grade::Proven,
        "C++ code got no memory",
    ),
    (
        "std::out_of_range",
        Cause::IndexError,
        Grade::Proven,
        "An index in C++ code is out of bounds",
    ),
    (
        "RecursionError",
        Cause::StackOverflow,
        Grade::Proven,
        "Python came to its limit of recursion",
    ),
    (
        "KeyboardInterrupt",
        Cause::Stopped,
        Grade::Proven,
        "It was interrupted",
    ),
    (
        "IndexError",
        Cause::IndexError,
        Grade::Proven,
        "An index is out of bounds",
    ),
    (
        "TypeError",
        Cause::TypeError,
        Grade::Proven,
        "A value is of another type than was expected",
    ),
    (
        "ModuleNotFoundError",
        Cause::LibraryVersion,
        Grade::Proven,
        "A module is not installed",
    ),
    (
        "ImportError",
        Cause::LibraryVersion,
        Grade::Likely,
        "A module could not be imported",
    ),
    (
        "DistributionNotFound",
        Cause::LibraryVersion,
        Grade::Proven,
        "A library is not installed",
    ),
    (
        "PackageNotFoundError",
        Cause::LibraryVersion,
        Grade::Proven,
        "A library is not installed",
    ),
    (
        "PermissionError",
        Cause::Permission,
        Grade::Proven,
        "The system does not permit this",
    ),
    (
        "FileNotFoundError",
        Cause::MissingFile,
        Grade::Proven,
        "A file is not there",
    ),
    (
        "NotADirectoryError",
        Cause::MissingFile,
        Grade::Proven,
        "A folder is not there",
    ),
    (
        "Segmentation fault",
        Cause::SegmentationFault,
        Grade::Proven,
        "Native code touched memory that is not its own",
    ),
    (
        "Bus error",
        Cause::SharedMemory,
        Grade::Unknown,
        "/dev/shm was full, a mapped file was cut short, or the machine is at fault",
    ),
    (
        "Illegal instruction",
        Cause::IllegalInstruction,
        Grade::Proven,
        "Native code was built for another processor",
    ),
    ("Aborted", Cause::Abort, Grade::Likely, "Native code gave up"),
    (
        "Floating point exception",
        Cause::Failed,
        Grade::Likely,
        "Native code divided a whole number by zero",
    ),
    (
        "glibc",
        Cause::Abort,
        Grade::Proven,
        "Native code damaged the heap",
    ),
    (
        "MemorySanitizer",
        Cause::Abort,
        Grade::Proven,
        "A sanitizer stopped native code",
    ),
    (
        "ThreadSanitizer",
        Cause::Abort,
        Grade::Unknown,
        "A sanitizer saw two threads at the same memory",
    ),
];

/// `[Errno 28]` of an `OSError`.
const NUMBERS: &[(i32, Cause, Grade, &str)] = &[
    (
        libc::ENOMEM,
        Cause::BadAlloc,
        Grade::Proven,
        "The kernel gave no memory",
    ),
    (
        libc::EMFILE,
        Cause::OpenFiles,
        Grade::Proven,
        "A process had too many files open",
    ),
    (
        libc::ENFILE,
        Cause::OpenFiles,
        Grade::Proven,
        "The machine had too many files open",
    ),
    (libc::ENOSPC, Cause::DiskFull, Grade::Proven, "A disk was full"),
    (
        libc::EDQUOT,
        Cause::DiskFull,
        Grade::Proven,
        "The quota of disk space was used up",
    ),
    (
        libc::EIO,
        Cause::Hardware,
        Grade::Likely,
        "A disk or the network to it failed",
    ),
    (
        libc::EACCES,
        Cause::Permission,
        Grade::Proven,
        "A file may not be read or written",
    ),
    (
        libc::EPERM,
        Cause::Permission,
        Grade::Proven,
        "The system does not permit this",
    ),
    (
        libc::EROFS,
        Cause::Permission,
        Grade::Proven,
        "A file system may not be written",
    ),
    (
        libc::ENOENT,
        Cause::MissingFile,
        Grade::Proven,
        "A file is not there",
    ),
    (
        libc::ENOTDIR,
        Cause::MissingFile,
        Grade::Proven,
        "A folder is not there",
    ),
];

/// Cause, grade and sentence of an exception.
pub(super) fn explain(traceback: &Traceback) -> (Cause, Grade, String) {
    let told = |cause: Cause, grade: Grade, sentence: &str| {
        let message = first_line(&traceback.message);
        let message = message.trim_end_matches(['.', ':', ' ']);
        let stop = if message.ends_with(['?', '!']) { "" } else { "." };
        let sentence = match message.is_empty() {
            true => format!("{sentence}."),
            false => format!("{sentence}: {message}{stop}"),
        };
        (cause, grade, sentence)
    };
    if let Some(number) = error_number(&traceback.message) {
        if number == libc::EAGAIN && is_fork(traceback) {
            return told(
                Cause::Processes,
                Grade::Proven,
                "No further process could be started",
            );
        }
        if number == libc::ENOSPC && in_shared_memory(traceback) {
            return told(Cause::SharedMemory, Grade::Likely, "/dev/shm was full");
        }
        if let Some((_, cause, grade, sentence)) = NUMBERS.iter().find(|row| row.0 == number) {
            return told(*cause, *grade, sentence);
        }
    }
    let name = traceback.name();
    if name == "OutOfMemoryError" && traceback.exception.starts_with("ray.") {
        return told(
            Cause::OomDaemon,
            Grade::Proven,
            "Ray killed a task because the node was low on memory",
        );
    }
    if name == "OutOfMemoryError" && traceback.exception.starts_with("java.") {
        return told(
            Cause::BadAlloc,
            Grade::Proven,
            "Java's heap, or another of its memory areas, was full",
        );
    }
    if name == "CalledProcessError"
        && let Some(code) = traceback
            .message
            .rsplit(' ')
            .next()
            .and_then(|code| code.trim_end_matches('.').parse::<i32>().ok())
        && let Some(signal) = by_number(code - 128)
    {
        return told(
            signal.cause,
            signal.grade,
            &format!("A command ended by {}", signal.name),
        );
    }
    if name == "AddressSanitizer" {
        let cause = match traceback.message.as_str() {
            message if message.starts_with("SEGV") => Cause::SegmentationFault,
            message if message.starts_with("stack-overflow") => Cause::StackOverflow,
            message if message.contains("out of memory") || message.contains("allocation size") => {
                Cause::BadAlloc
            }
            _ => Cause::Abort,
        };
        return told(cause, Grade::Proven, "A sanitizer stopped native code");
    }
    if let Some((_, cause, grade, sentence)) = NAMES.iter().find(|row| row.0 == name) {
        return told(*cause, *grade, sentence);
    }
    if traceback.exception.contains("::") {
        return told(
            Cause::Abort,
            Grade::Proven,
            &format!("C++ code ended with {}", traceback.exception),
        );
    }
    if name == "panic" && traceback.message.contains("capacity overflow") {
        return told(
            Cause::BadAlloc,
            Grade::Likely,
            "An allocation was larger than can be",
        );
    }
    // These follow from another process that had gone, and say nothing of why.
    let grade = if super::traceback::is_consequence(traceback) {
        Grade::Unknown
    } else {
        Grade::Proven
    };
    let place = traceback
        .worker
        .as_ref()
        .map(|worker| format!(" in {worker}"))
        .unwrap_or_default();
    told(
        Cause::Failed,
        grade,
        &format!("It failed with {}{place}", traceback.exception),
    )
}

fn first_line(text: &str) -> &str {
    super::lines::cut(text.lines().next().unwrap_or(""), 300).trim()
}

/// 28 of `[Errno 28] No space left on device`.
fn error_number(message: &str) -> Option<i32> {
    let rest = message.strip_prefix("[Errno ")?;
    rest.split_once(']')?.0.parse().ok()
}

/// A lock file can be «temporarily unavailable», too.
fn is_fork(traceback: &Traceback) -> bool {
    traceback.frames.last().is_some_and(|frame| {
        frame.file.ends_with("popen_fork.py")
            || frame.file.ends_with("subprocess.py")
            || frame.function.contains("fork")
            || frame.function == "_execute_child"
    })
}

/// Semaphores and shared arrays of `multiprocessing` are files in `/dev/shm`, and its errors name no path.
pub(super) fn in_shared_memory(traceback: &Traceback) -> bool {
    traceback.frames.iter().rev().take(2).any(|frame| {
        [
            "multiprocessing/synchronize.py",
            "multiprocessing/heap.py",
            "multiprocessing/shared_memory.py",
        ]
        .iter()
        .any(|file| frame.file.replace('\\', "/").ends_with(file))
    })
}
