//! The wall clock of lines of the kernel's log.

use std::time::{SystemTime, UNIX_EPOCH};

/// When this machine started, in milliseconds since 1970.
pub(super) fn booted_ms() -> Option<i64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let mut since = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call fills in the struct that it is given.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut since) };
    let since_ms = since.tv_sec * 1_000 + since.tv_nsec / 1_000_000;
    (done == 0).then_some(i64::try_from(now.as_millis()).ok()? - since_ms)
}

/// Clock ticks, as `/proc/PID/stat` counts them, in milliseconds.
pub(super) fn ticks_ms(ticks: u64) -> i64 {
    // SAFETY: asks for a number.
    let a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1);
    i64::try_from(ticks).unwrap_or(i64::MAX).saturating_mul(1_000) / a_second
}

/// When a line was written: `3,1234,5678901,-;text` of `/dev/kmsg` counts microseconds from the start of the machine,
/// `Nov 16 05:00:00 host kernel: text` of the journal is local time without a year.
pub(in crate::why) fn wall_ms(line: &str, booted_ms: Option<i64>) -> Option<i64> {
    if let Some((head, _)) = line.split_once(';')
        && let Some(micros) = head.split(',').nth(2).and_then(|field| field.parse::<i64>().ok())
    {
        return Some(booted_ms? + micros / 1_000);
    }
    local_ms(line)
}

fn local_ms(line: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut words = line.split_whitespace();
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)?;
    let day: i32 = words.next()?.parse().ok()?;
    let mut time = words.next()?.split(':').map(|part| part.parse::<i32>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    let now = libc::time_t::try_from(now).ok()?;
    // SAFETY: all-zero bytes are a valid tm, and both calls only read and write what they are given.
    let seconds = unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const now, &raw mut parts);
        let year = parts.tm_year;
        let mut at = |year| {
            parts.tm_year = year;
            parts.tm_mon = i32::try_from(month).unwrap_or(0);
            (parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec) = (day, hour, minute, second);
            parts.tm_isdst = -1;
            libc::mktime(&raw mut parts)
        };
        // In January the lines of December are of the year before.
        match at(year) {
            later if later > now + 86_400 => at(year - 1),
            seconds => seconds,
        }
    };
    Some(seconds * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_time() {
        let kmsg = "3,1234,5678901,-;Out of memory: Killed process 7 (a)";
        assert_eq!(wall_ms(kmsg, Some(1_000_000)), Some(1_005_678));
        assert_eq!(wall_ms(kmsg, None), None);
        let journal = |time: &str| wall_ms(&format!("{time} host kernel: Killed process 7 (a)"), None);
        let (early, late) = (
            journal("Jan  2 05:00:00").unwrap(),
            journal("Jan  2 05:01:30").unwrap(),
        );
        assert_eq!(late - early, 90_000);
        let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
        assert!(late <= now + 86_400_000 && now - late < 367 * 86_400_000);
        for line in [
            "",
            "Killed process 7 (a)",
            "x;y",
            "Nov",
            "Nov 16 05",
            "Nov 16 05:00",
        ] {
            assert_eq!(wall_ms(line, Some(0)), None, "{line}");
        }
    }
}
