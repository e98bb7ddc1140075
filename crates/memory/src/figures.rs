//! Numbers as people read them.

use crate::size::format_bytes;

/// `1234567` as `1,234,567`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 row`, `2,000 rows`.
pub fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", thousands(n), if n == 1 { "" } else { "s" })
}

/// `1.31 M`, `48 k`, `312`.
pub fn short(n: f64) -> String {
    match n {
        n if n >= 1e9 => format!("{:.2} G", n / 1e9),
        n if n >= 1e6 => format!("{:.2} M", n / 1e6),
        n if n >= 1e3 => format!("{:.0} k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

/// `0.8 s`, `12 s`, `3:07`, `2:05:09`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 9.95 => format!("{seconds:.1} s"),
        0..60 => format!("{whole} s"),
        60..3600 => format!("{}:{:02}", whole / 60, whole % 60),
        _ => format!("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60),
    }
}

/// How long ago: `just now`, `5 min ago`, `3 h ago`, `2 days ago`.
pub fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => "just now".into(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// Four significant digits, without an exponent where one would not help.
pub fn figure(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 || (1e-3..1e6).contains(&magnitude) {
        let digits = if magnitude > 0.0 {
            3 - magnitude.log10().floor() as i32
        } else {
            3
        };
        format!("{value:.*}", digits.clamp(0, 6) as usize)
    } else {
        format!("{value:.3e}")
    }
}

/// `64 MB of 256 MB`, or what is known of it.
pub fn against(used: Option<u64>, line: Option<u64>) -> String {
    match (used, line) {
        (Some(used), Some(line)) => format!("{} of {}", format_bytes(used), format_bytes(line)),
        (Some(used), None) => format_bytes(used),
        (None, Some(line)) => format!("unavailable of {}", format_bytes(line)),
        (None, None) => "unavailable".into(),
    }
}

/// How far a plan was off: `+2.1%` above the peak, `-0.4%` below it, `-` where either is not known.
pub fn off(error: Option<f64>) -> String {
    error.map_or("-".into(), |error| format!("{:+.1}%", error * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_as_people_read_them() {
        assert_eq!(thousands(8_500_000), "8,500,000");
        assert_eq!(thousands(12), "12");
        assert_eq!(
            [short(312.0), short(48_000.0), short(1_312_345.0)],
            ["312", "48 k", "1.31 M"]
        );
        assert_eq!(
            [duration(0.84), duration(12.3), duration(187.0), duration(7509.0)],
            ["0.8 s", "12 s", "3:07", "2:05:09"]
        );
        assert_eq!(
            [figure(0.64713), figure(123.456), figure(0.0), figure(51_234.5)],
            ["0.6471", "123.5", "0.000", "51234"]
        );
        assert_eq!(
            [figure(1.5e-9), figure(-0.25), figure(2.5e8)],
            ["1.500e-9", "-0.2500", "2.500e8"]
        );
        assert_eq!(ago(7_300), "2 h ago");
    }
}
