//! Which process, in which boot, in which namespace: so that a number is never taken for another's.

use std::fs;

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

fn is_zombie(pid: i32) -> bool {
    // The state follows the name, which is in parentheses and may itself hold any character.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('Z'))
    })
}
