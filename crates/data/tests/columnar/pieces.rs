//! Pieces depend on the file alone, and reading can be taken up behind any of them.

use arrow_array::{Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;
use tidegate_data::Position;
use tidegate_data::chunk::Read;
use tidegate_memory::Ledger;

use crate::files::{Format, column, open, reading, scan, table, write};

fn rows(n: i64) -> RecordBatch {
    let texts = (0..n).map(|i| (i % 7 != 3).then(|| format!("text number {} of many", i % 1000)));
    table(vec![
        ("id", column(Int64Array::from_iter_values(0..n))),
        (
            "x",
            column(
                (0..n)
                    .map(|i| (i % 5 != 1).then(|| i as f64 / 8.0))
                    .collect::<Float64Array>(),
            ),
        ),
        ("text", column(texts.collect::<StringArray>())),
        (
            "long",
            column(StringArray::from_iter_values(
                (0..n).map(|i| "x".repeat(i as usize % 300)),
            )),
        ),
    ])
}

fn formats() -> Vec<Format> {
    let small_pages = WriterProperties::builder()
        .set_max_row_group_row_count(Some(7_000))
        .set_data_page_row_count_limit(900)
        .set_write_batch_size(300)
        .build();
    let mut formats = Format::all();
    formats.push(Format::Parquet(Box::new(small_pages)));
    formats
}

#[test]
fn pieces_are_the_same_under_any_budget_and_from_any_position() {
    let whole = rows(40_000);
    let batches: Vec<RecordBatch> = (0..4).map(|i| whole.slice(i * 10_000, 10_000)).collect();
    let wanted = reading(&[("long", Read::Text), ("id", Read::Number), ("text", Read::Text)]);
    for format in formats() {
        let folder = TempDir::new().unwrap();
        let path = write(&folder, &batches, &format);
        let ledger = Ledger::new(1 << 30);
        let source = open(&path, &ledger).unwrap();
        let pieces = scan(&source, &wanted, Position::default(), &ledger).unwrap();
        assert!(pieces.len() > 5, "{} pieces of {format:?}", pieces.len());
        let cells: Vec<&String> = pieces.iter().flat_map(|(rows, _)| rows).collect();
        assert_eq!(cells.len(), 40_000);
        let text = if 12_345 % 7 == 3 {
            "-"
        } else {
            "text number 345 of many"
        };
        assert_eq!(
            *cells[12_345],
            format!("{}|12345|{text}", "x".repeat(12_345 % 300))
        );
        let small = Ledger::new(24 << 20);
        assert_eq!(
            scan(&source, &wanted, Position::default(), &small).unwrap(),
            pieces,
            "{format:?}"
        );
        assert_eq!(small.used(), 0);
        for i in 0..pieces.len() {
            let rest = scan(&source, &wanted, pieces[i].1, &ledger).unwrap();
            assert_eq!(rest, pieces[i + 1..], "{format:?} behind piece {i}");
        }
        assert_eq!(pieces.last().unwrap().1.consumed, source.bytes());
    }
}

#[test]
fn a_column_wanted_twice_is_read_twice() {
    let folder = TempDir::new().unwrap();
    let path = write(&folder, &[rows(3)], &Format::parquet());
    let ledger = Ledger::new(64 << 20);
    let source = open(&path, &ledger).unwrap();
    let wanted = reading(&[("id", Read::Text), ("id", Read::Number)]);
    let pieces = scan(&source, &wanted, Position::default(), &ledger).unwrap();
    assert_eq!(pieces[0].0, ["0|0", "1|1", "2|2"]);
}
