//! Numbers, durations and columns as people read them.

use tidegate_memory::format_bytes;

/// `1234567` as `1,234,567`.
pub(super) fn thousands(n: u64) -> String {
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
pub(super) fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", thousands(n), if n == 1 { "" } else { "s" })
}

/// `1.31 M`, `48 k`, `312`.
pub(super) fn short(n: f64) -> String {
    match n {
        n if n >= 1e9 => format!("{:.2} G", n / 1e9),
        n if n >= 1e6 => format!("{:.2} M", n / 1e6),
        n if n >= 1e3 => format!("{:.0} k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

/// `0.8 s`, `12 s`, `3:07`, `2:05:09`.
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 9.95 => format!("{seconds:.1} s"),
        0..60 => format!("{whole} s"),
        60..3600 => format!("{}:{:02}", whole / 60, whole % 60),
        _ => format!("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60),
    }
}

/// How long ago: `just now`, `5 min ago`, `3 h ago`, `2 days ago`.
pub(super) fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => "just now".into(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// Four significant digits, without an exponent where one would not help.
pub(super) fn figure(value: f64) -> String {
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

/// `log_loss` as `log loss`, `r2` as `R²`.
pub(super) fn metric_name(name: &str) -> String {
    match name {
        "r2" => "R²".into(),
        "auc" => "AUC".into(),
        "rmse" => "RMSE".into(),
        "mae" => "MAE".into(),
        "mape" => "MAPE".into(),
        "f1" => "F1".into(),
        "macro_f1" => "macro F1".into(),
        "brier" => "Brier score".into(),
        name => name.replace('_', " "),
    }
}

/// `64 MB of 256 MB`, or what is known of it.
pub(super) fn against(used: Option<u64>, line: Option<u64>) -> String {
    match (used, line) {
        (Some(used), Some(line)) => format!("{} of {}", format_bytes(used), format_bytes(line)),
        (Some(used), None) => format_bytes(used),
        (None, Some(line)) => format!("unavailable of {}", format_bytes(line)),
        (None, None) => "unavailable".into(),
    }
}

/// How far a plan was off: `+2.1%` above the peak, `-0.4%` below it, `-` where either is not known.
pub(super) fn off(error: Option<f64>) -> String {
    error.map_or("-".into(), |error| format!("{:+.1}%", error * 100.0))
}

/// Rows of cells with every column as wide as its widest cell.
pub(super) fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let n = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..n)
        .map(|i| {
            rows.iter()
                .filter_map(|row| row.get(i))
                .map(|cell| console::measure_text_width(cell))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let pad = |(i, cell): (usize, &String)| {
        let blanks = widths[i] - console::measure_text_width(cell);
        format!("{cell}{}", " ".repeat(blanks))
    };
    rows.iter()
        .map(|row| {
            row.iter()
                .enumerate()
                .map(pad)
                .collect::<Vec<_>>()
                .join("  ")
                .trim_end()
                .to_string()
        })
        .collect()
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
