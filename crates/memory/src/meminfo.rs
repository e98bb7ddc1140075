//! What the whole machine has: `/proc/meminfo`.

use serde::{Deserialize, Serialize};

use crate::host::Host;

/// The machine's memory in bytes. A line that is missing is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemInfo {
    pub total: Option<u64>,
    pub free: Option<u64>,
    /// The kernel's estimate of what can be taken without swapping.
    pub available: Option<u64>,
    pub cached: Option<u64>,
    pub shared: Option<u64>,
    pub swap_total: Option<u64>,
    pub swap_free: Option<u64>,
}

/// Reads `/proc/meminfo`; all fields are `None` where there is none.
pub fn meminfo(host: &Host) -> MemInfo {
    host.read("proc/meminfo")
        .map(|text| parse(&text))
        .unwrap_or_default()
}

pub(crate) fn parse(text: &str) -> MemInfo {
    let mut info = MemInfo::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let field = match name {
            "MemTotal" => &mut info.total,
            "MemFree" => &mut info.free,
            "MemAvailable" => &mut info.available,
            "Cached" => &mut info.cached,
            "Shmem" => &mut info.shared,
            "SwapTotal" => &mut info.swap_total,
            "SwapFree" => &mut info.swap_free,
            _ => continue,
        };
        *field = kilobytes(value);
    }
    info
}

/// `   24682416 kB`, as in `meminfo`, `status` and `smaps_rollup`: the kernel's kB are 1,024 bytes.
pub(crate) fn kilobytes(value: &str) -> Option<u64> {
    value
        .trim()
        .strip_suffix("kB")?
        .trim_end()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_line_is_not_zero() {
        let info = parse(
            "MemTotal:       24682416 kB\nSwapTotal:             0 kB\nMemFree: junk kB\nHugePages_Total: 0\n",
        );
        assert_eq!(info.total, Some(24_682_416 * 1024));
        assert_eq!(info.swap_total, Some(0));
        assert_eq!((info.free, info.available, info.swap_free), (None, None, None));
    }
}
