//! Which process, in which boot, in which namespace: so that a number is never taken for another's.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::{fs, io};

use tidegate_memory::{Host, start_time};
use tidegate_runs::ProcessRef;

/// A process with its start time, or `None` when there is no such process.
pub fn process_ref(host: &Host, pid: i32) -> Option<ProcessRef> {
    start_time(host, pid).map(|start_time| ProcessRef { pid, start_time })
}

/// Ourselves, for [`NewRun::supervisor`](tidegate_runs::NewRun).
pub fn this_process(host: &Host) -> Option<ProcessRef> {
    process_ref(host, std::process::id().cast_signed())
}

/// The boot and the process namespace in which our process numbers mean something: a number from
/// another container or another machine that shares the folder says nothing here.
pub fn boot_id() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

/// Whether exactly this process still runs. A zombie does not run.
pub(crate) fn is_alive(host: &Host, process: ProcessRef) -> bool {
    start_time(host, process.pid) == Some(process.start_time) && !is_zombie(process.pid)
}

/// Sends a signal to exactly this process, and to no later one of its number; `false` where it is gone.
pub fn send_signal(host: &Host, process: ProcessRef, signal: i32) -> io::Result<bool> {
    // SAFETY: a plain system call; the result is a new descriptor that nothing else owns.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, process.pid, 0) };
    let held = match fd {
        // SAFETY: as above.
        0.. => Some(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }),
        _ => match io::Error::last_os_error().raw_os_error() {
            Some(libc::ESRCH) => return Ok(false),
            // A kernel before 5.3: the number may change hands between the two looks below, in theory.
            _ => None,
        },
    };
    // What was opened is held: if it is the right one now, it stays so.
    if !is_alive(host, process) {
        return Ok(false);
    }
    let none: *const libc::siginfo_t = std::ptr::null();
    let answer = match &held {
        // SAFETY: a plain system call on a descriptor that we own.
        Some(held) => unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, held.as_raw_fd(), signal, none, 0)
        },
        // SAFETY: a plain system call.
        None => i64::from(unsafe { libc::kill(process.pid, signal) }),
    };
    match answer {
        0 => Ok(true),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            error => Err(error),
        },
    }
}

fn is_zombie(pid: i32) -> bool {
    // The state follows the name, which is in parentheses and may itself hold any character.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('Z'))
    })
}
