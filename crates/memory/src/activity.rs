//! What a process does beside holding memory: processor time, page faults, disks, files, threads; and how it ended,
//! as long as nobody has taken its status.

use std::ffi::CString;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::process::stat_fields;

/// One line of `/proc/PID/stat`, which is there as long as the process or its zombie is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessActivity {
    pub pid: i32,
    pub parent: i32,
    pub name: String,
    /// `R` runs, `S` sleeps, `D` waits for a disk, `T` is stopped, `Z` is dead and not waited for.
    pub state: char,
    /// Clock ticks since boot.
    pub start_time: u64,
    pub threads: u32,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub cpu_ms: u64,
    pub virtual_size: u64,
    /// As `wait` would give it, of a zombie that we may look at.
    pub wait_status: Option<i32>,
}

/// `None` when the process is gone.
pub fn process_activity(host: &Host, pid: i32) -> Option<ProcessActivity> {
    let text = host.read(format!("proc/{pid}/stat")).ok()?;
    parse(&text, pid, ticks_a_second())
}

fn parse(text: &str, pid: i32, ticks: u64) -> Option<ProcessActivity> {
    let name = text.get(text.find('(')? + 1..text.rfind(')')?)?;
    // The state is field 3 of the manual page, and the first here.
    let fields: Vec<&str> = stat_fields(text)?.collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let state = fields.first()?.chars().next()?;
    Some(ProcessActivity {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        name: name.to_owned(),
        state,
        start_time: number(22)?,
        threads: u32::try_from(number(20)?).ok()?,
        minor_faults: number(10)?,
        major_faults: number(12)?,
        cpu_ms: (number(14)? + number(15)?) * 1000 / ticks,
        virtual_size: number(23)?,
        wait_status: match state {
            'Z' => number(52).and_then(|status| i32::try_from(status).ok()),
            _ => None,
        },
    })
}

fn ticks_a_second() -> u64 {
    // SAFETY: sysconf has no memory effects.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(100).max(1)
}

/// The memory of a process that is its own to give back, resident and not of a file; cheap enough to be read a hundred
/// times a second.
pub fn held_memory(host: &Host, pid: i32) -> Option<u64> {
    let text = host.read(format!("proc/{pid}/statm")).ok()?;
    let mut pages = text
        .split_whitespace()
        .skip(1)
        .map(|pages| pages.parse::<u64>().ok());
    let (resident, of_files) = (pages.next()??, pages.next()??);
    // SAFETY: sysconf has no memory effects.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    Some(resident.saturating_sub(of_files) * page)
}

/// Bytes that a process had read from disks and written to them; `None` where we may not look.
pub fn process_disk(host: &Host, pid: i32) -> Option<(u64, u64)> {
    let text = host.read(format!("proc/{pid}/io")).ok()?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    Some((value("read_bytes:")?, value("write_bytes:")?))
}

/// The files that a process has open; `None` where we may not look.
pub fn open_files(host: &Host, pid: i32) -> Option<u64> {
    let entries = fs::read_dir(host.path(format!("proc/{pid}/fd"))).ok()?;
    Some(entries.count() as u64)
}

/// Whether a process runs Python, by the files that are mapped into it: the interpreter may be called anything.
pub fn runs_python(host: &Host, pid: i32) -> bool {
    let named = |name: &str| {
        let name = name.strip_prefix("lib").unwrap_or(name);
        let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        name.strip_prefix("python")
            .is_some_and(|rest| rest.is_empty() || digit(rest))
    };
    let program = fs::read_link(host.path(format!("proc/{pid}/exe")));
    let program = program
        .ok()
        .and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    if program.is_some_and(|name| named(&name)) {
        return true;
    }
    let Ok(maps) = host.read(format!("proc/{pid}/maps")) else {
        return false;
    };
    let files = maps
        .lines()
        .filter_map(|line| line.rsplit_once('/').map(|(_, name)| name));
    files
        .into_iter()
        .any(|name| name.starts_with("libpython") && named(name))
}

/// Bytes in use of the file system for shared memory, `/dev/shm`, and its size.
/// As a process sees it: a container has its own.
pub fn shared_memory(host: &Host, pid: i32) -> Option<(u64, u64)> {
    if !host.is_live() {
        return None;
    }
    let path = CString::new(format!("/proc/{pid}/root/dev/shm")).ok()?;
    // SAFETY: all-zero bytes are a valid statvfs, which the call fills.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends in a zero and the structure is ours.
    if unsafe { libc::statvfs(path.as_ptr(), &mut stat) } != 0 {
        return None;
    }
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Some((
        bytes(stat.f_blocks - stat.f_bfree.min(stat.f_blocks)),
        bytes(stat.f_blocks),
    ))
}

/// A counter of the whole machine, out of `/proc/vmstat`: `oom_kill`, `pswpin`, …
pub fn vm_counter(host: &Host, name: &str) -> Option<u64> {
    let text = host.read("proc/vmstat").ok()?;
    let line = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
    text.lines().find_map(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_process_is_read() {
        let text = "42 (a ) b) Z 17 42 42 0 -1 4194560 11 0 7 0 150 50 0 0 20 0 3 0 987 65536 2 1 0 0 0 0 0 0 0 0 0 \
                    0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 9\n";
        let found = parse(text, 42, 100).unwrap();
        assert_eq!(
            (found.name.as_str(), found.state, found.parent),
            ("a ) b", 'Z', 17)
        );
        assert_eq!(
            (found.minor_faults, found.major_faults, found.cpu_ms),
            (11, 7, 2000)
        );
        assert_eq!(
            (found.threads, found.start_time, found.virtual_size),
            (3, 987, 65536)
        );
        assert_eq!(found.wait_status, Some(9));
        assert_eq!(parse("42 (x) S 1 2", 42, 100), None);
    }

    #[test]
    fn this_process_tells_of_itself() {
        let host = Host::live();
        let pid = std::process::id().cast_signed();
        let found = process_activity(&host, pid).unwrap();
        assert!(found.threads >= 1 && found.minor_faults > 0 && found.wait_status.is_none());
        assert!(open_files(&host, pid).unwrap() >= 3);
        assert!(process_disk(&host, pid).is_some());
        assert!(held_memory(&host, pid).unwrap() > 0);
        assert!(!runs_python(&host, pid));
        assert!(vm_counter(&host, "pgfault").unwrap() > 0);
        assert_eq!(vm_counter(&host, "pgfaul"), None);
    }
}
