//! What one process holds: `smaps_rollup` for proportional shares, `status` for the peak and as a fallback.

use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::meminfo::kilobytes;

/// The memory of one process in bytes. `None` is "unavailable", never zero.
///
/// Where the kernel lets us read `smaps_rollup`, the split into anonymous, file and shared pages is by
/// proportional share, so that sums over a tree of processes count each page once. Otherwise
/// (`proportional` is `None`) it is by residence, and pages that processes share are counted by each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMemory {
    pub pid: i32,
    pub name: Option<String>,
    pub resident: Option<u64>,
    pub proportional: Option<u64>,
    /// Pages that no other process has; only told with the shares.
    pub private: Option<u64>,
    pub anonymous: Option<u64>,
    pub file: Option<u64>,
    pub shared: Option<u64>,
    pub swap: Option<u64>,
    /// The most it ever had resident (`VmHWM`).
    pub peak_resident: Option<u64>,
}

/// The memory of `pid` with proportional shares; `None` when the process is gone, or a zombie, which has
/// none. Reading shares makes the kernel walk the process's pages: about a millisecond per gigabyte.
pub fn process_memory(host: &Host, pid: i32) -> Option<ProcessMemory> {
    let mut memory = process_status(host, pid)?;
    if let Ok(text) = host.read(format!("proc/{pid}/smaps_rollup")) {
        apply_rollup(&text, &mut memory);
    }
    Some(memory)
}

/// The memory of `pid` from `status` alone: cheap at any size, without proportional shares.
pub fn process_status(host: &Host, pid: i32) -> Option<ProcessMemory> {
    let text = host.read(format!("proc/{pid}/status")).ok()?;
    parse_status(&text, pid)
}

/// When `pid` started, in clock ticks since boot: the same pid with another start time is another process.
pub fn start_time(host: &Host, pid: i32) -> Option<u64> {
    let text = host.read(format!("proc/{pid}/stat")).ok()?;
    // Field 22, counted after the state (field 3).
    stat_fields(&text)?.nth(19)?.parse().ok()
}

/// The fields of `stat` from the third on. The second is the name in brackets and may hold brackets and
/// blanks itself, so what follows its last bracket counts.
pub(crate) fn stat_fields(text: &str) -> Option<std::str::SplitWhitespace<'_>> {
    Some(text.get(text.rfind(')')? + 1..)?.split_whitespace())
}

fn parse_status(text: &str, pid: i32) -> Option<ProcessMemory> {
    let mut memory = ProcessMemory {
        pid,
        ..ProcessMemory::default()
    };
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let field = match name {
            "Name" => {
                memory.name = Some(value.trim().to_owned());
                continue;
            }
            "State" if value.trim_start().starts_with(['Z', 'X']) => return None,
            "VmHWM" => &mut memory.peak_resident,
            "VmRSS" => &mut memory.resident,
            "RssAnon" => &mut memory.anonymous,
            "RssFile" => &mut memory.file,
            "RssShmem" => &mut memory.shared,
            "VmSwap" => &mut memory.swap,
            _ => continue,
        };
        *field = kilobytes(value);
    }
    memory.name.is_some().then_some(memory)
}

/// Puts proportional shares in place of resident sizes.
fn apply_rollup(text: &str, memory: &mut ProcessMemory) {
    let mut private = None;
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let field = match name {
            "Rss" => &mut memory.resident,
            "Pss" => &mut memory.proportional,
            "Pss_Anon" => &mut memory.anonymous,
            "Pss_File" => &mut memory.file,
            "Pss_Shmem" => &mut memory.shared,
            "SwapPss" => &mut memory.swap,
            "Private_Clean" | "Private_Dirty" | "Private_Hugetlb" => {
                private = kilobytes(value)
                    .map(|bytes| bytes + private.unwrap_or(0))
                    .or(private);
                continue;
            }
            _ => continue,
        };
        if let Some(bytes) = kilobytes(value) {
            *field = Some(bytes);
        }
    }
    memory.private = private;
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tpython3 (train)\nUmask:\t0022\nState:\tS (sleeping)\nVmPeak:\t  900 kB\n\
        VmHWM:\t     512 kB\nVmRSS:\t     500 kB\nRssAnon:\t     300 kB\nRssFile:\t     150 kB\n\
        RssShmem:\t      50 kB\nVmSwap:\t       7 kB\n";

    #[test]
    fn shares_replace_resident_sizes() {
        let mut memory = parse_status(STATUS, 7).expect("a living process");
        assert_eq!(
            (memory.resident, memory.anonymous),
            (Some(500 << 10), Some(300 << 10))
        );
        assert_eq!(memory.proportional, None);
        let rollup = "55d0-7ffc ---p 00000000 00:00 0      [rollup]\nRss:         502 kB\nPss:         210 kB\n\
            Private_Clean: 3 kB\nPrivate_Dirty: 190 kB\nPss_Anon:    200 kB\nPss_File:      8 kB\nPss_Shmem:     2 kB\nSwap: 7 kB\nSwapPss: 3 kB\n";
        apply_rollup(rollup, &mut memory);
        let shares = (
            memory.proportional,
            memory.anonymous,
            memory.file,
            memory.shared,
            memory.swap,
        );
        assert_eq!(
            shares,
            (
                Some(210 << 10),
                Some(200 << 10),
                Some(8 << 10),
                Some(2 << 10),
                Some(3 << 10)
            )
        );
        assert_eq!(
            (memory.resident, memory.peak_resident, memory.private),
            (Some(502 << 10), Some(512 << 10), Some(193 << 10))
        );
    }

    #[test]
    fn a_zombie_has_no_memory_and_a_kernel_thread_tells_none() {
        assert_eq!(parse_status("Name:\tx\nState:\tZ (zombie)\n", 7), None);
        assert_eq!(parse_status("", 7), None);
        let thread = parse_status("Name:\tkthreadd\nState:\tS (sleeping)\n", 2).expect("alive");
        assert_eq!((thread.resident, thread.swap), (None, None));
    }

    #[test]
    fn names_with_brackets_do_not_shift_fields() {
        let text = "42 (a ) b (c) S 17 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 2 3";
        let mut fields = stat_fields(text).expect("fields");
        assert_eq!((fields.next(), fields.next()), (Some("S"), Some("17")));
        assert_eq!(stat_fields(text).and_then(|mut f| f.nth(19)), Some("987654"));
        assert!(stat_fields("no bracket").is_none());
    }
}
