//! A look at a table counts what it remembers of every column.

use std::fmt::Write;

use tidegate_data::{Source, SourceOptions};
use tidegate_memory::Ledger;

/// What a look at JSON lines held at its peak, beside its buffers.
fn held(rows: usize, columns: usize, cell: impl Fn(usize, usize) -> usize) -> u64 {
    let mut text = String::new();
    for row in 0..rows {
        let cells: Vec<String> = (0..columns)
            .map(|column| format!("\"c{column}\":{}", cell(row, column)))
            .collect();
        writeln!(text, "{{{}}}", cells.join(",")).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    std::fs::write(&path, text).unwrap();
    let ledger = Ledger::new(64 << 20);
    Source::open(&[path], &SourceOptions::default(), &[], &ledger).unwrap();
    let snapshot = ledger.snapshot();
    let sample = snapshot.holders.iter().find(|holder| holder.name == "sample");
    assert_eq!(ledger.used(), 0);
    sample.unwrap().peak
}

#[test]
fn a_look_at_json_lines_counts_the_values_that_it_remembers() {
    let (rows, columns) = (400, 100);
    let alike = held(rows, columns, |row, _| 1000 + row % 2);
    let different = held(rows, columns, |row, column| 1000 + row * 7 + column);
    let more = different - alike;
    assert!(more >= (columns * (rows - 64) * 4) as u64, "{alike} {different}");
    assert!(more <= (columns * (rows + 64) * 5) as u64, "{alike} {different}");
}
