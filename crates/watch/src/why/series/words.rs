//! Figures as a person reads them.

use tidegate_memory::format_bytes;

/// A size that was computed: never below nothing.
pub(super) fn size(bytes: f64) -> String {
    format_bytes(bytes.max(0.0).round() as u64)
}

/// A length of time: `0.4 s`, `40 s`, `3 min`, `2 h 5 min`, `3 days`.
pub(super) fn length(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 9.95 => {
            let text = format!("{seconds:.1}");
            format!("{} s", text.trim_end_matches(".0"))
        }
        0..120 => format!("{whole} s"),
        120..7_200 => format!("{:.0} min", seconds / 60.0),
        7_200..172_800 => match whole % 3_600 / 60 {
            0 => format!("{} h", whole / 3_600),
            minutes => format!("{} h {minutes} min", whole / 3_600),
        },
        _ => format!("{:.0} days", seconds / 86_400.0),
    }
}

/// A moment since the start: `0:07`, `3:07`, `2:05:09`; of the first seconds with a tenth, `1.4 s`.
pub(super) fn moment(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 9.95 => format!("{seconds:.1} s"),
        0..3600 => format!("{}:{:02}", whole / 60, whole % 60),
        _ => format!("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60),
    }
}
