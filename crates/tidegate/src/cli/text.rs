//! Columns of text, and the words for numbers that every verb uses.

pub(super) use tidegate_memory::{against, ago, counted, duration, figure, off, short, thousands};
pub(super) use tidegate_runs::metric_name;

/// Whether a metric tells how a training is run rather than how good the model is: such belong to curves, not to a line.
pub(super) fn is_pace(name: &str) -> bool {
    matches!(name, "learning_rate" | "rows_per_second")
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
