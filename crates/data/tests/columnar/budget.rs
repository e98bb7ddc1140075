//! Files far larger than the budget, judged by the ledger and by the peak that the kernel measured.

use std::ops::ControlFlow;
use std::process::Command;

use arrow_array::types::Int32Type;
use arrow_array::{DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;
use tidegate_data::chunk::Read;
use tidegate_data::source::{Kind, Reading};
use tidegate_data::{Error, Position, Source};
use tidegate_memory::Ledger;

use crate::files::{Format, column, everything, open, reading, scan, table, write};

/// Numbers that repeat and numbers that do not, short, long and repeated texts.
fn rows(start: i64, n: i64) -> RecordBatch {
    let range = || start..start + n;
    let noise = |i: i64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15u64 as i64) >> 20) as f64;
    let words: DictionaryArray<Int32Type> = range()
        .map(|i| Some(["red", "green", "blue", "a long name of a colour"][i as usize % 4]))
        .collect();
    table(vec![
        ("id", column(Int64Array::from_iter_values(range()))),
        (
            "noise",
            column(Float64Array::from_iter_values(range().map(noise))),
        ),
        (
            "half",
            column(
                range()
                    .map(|i| (i % 2 == 0).then(|| noise(i)))
                    .collect::<Float64Array>(),
            ),
        ),
        (
            "code",
            column(StringArray::from_iter_values(
                range().map(|i| format!("code-{}", i * 7919 % 100_003)),
            )),
        ),
        ("word", column(words)),
        (
            "text",
            column(StringArray::from_iter_values(
                range().map(|i| format!("{:?}", [noise(i); 10])),
            )),
        ),
    ])
}

/// One row group, however large.
fn one_group(compression: Compression) -> WriterProperties {
    WriterProperties::builder()
        .set_max_row_group_row_count(None)
        .set_compression(compression)
        .build()
}

fn natural(source: &Source) -> Reading {
    let read = |kind| {
        if kind == Kind::Text {
            Read::Text
        } else {
            Read::Number
        }
    };
    let columns = source.columns().iter();
    let wanted: Vec<_> = columns
        .map(|column| (column.name.as_str(), read(column.kind)))
        .collect();
    reading(&wanted)
}

#[test]
fn a_row_group_far_larger_than_the_budget_is_read_in_pages() {
    let folder = TempDir::new().unwrap();
    let batches: Vec<RecordBatch> = (0..10).map(|i| rows(i * 40_000, 40_000)).collect();
    let path = write(
        &folder,
        &batches,
        &Format::Parquet(Box::new(one_group(Compression::UNCOMPRESSED))),
    );
    let bytes = path.metadata().unwrap().len();
    let budget = 16 << 20;
    assert!(bytes > 5 * budget, "{bytes}");
    let ledger = Ledger::new(budget);
    let source = open(&path, &ledger).unwrap();
    let mut rows = 0;
    source
        .scan(&natural(&source), Position::default(), &ledger, |chunk, _| {
            rows += chunk.n_rows();
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(rows, 400_000);
    drop(source);
    assert_eq!(ledger.used(), 0);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let long =
        StringArray::from_iter_values((0..20).map(|i| "x".repeat(if i == 7 { 6_000_000 } else { 10 })));
    let batch = table(vec![
        ("x", column(Int64Array::from_iter_values(0..20))),
        ("long", column(long)),
    ]);
    let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
    let folder = TempDir::new().unwrap();
    let path = write(
        &folder,
        std::slice::from_ref(&batch),
        &Format::Parquet(Box::new(properties)),
    );
    let ledger = Ledger::new(4 << 20);
    let source = open(&path, &ledger).unwrap();
    let error = scan(
        &source,
        &everything(&source, Read::Text),
        Position::default(),
        &ledger,
    )
    .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("a page of column \"long\" in row group 0 needs"),
        "{text}"
    );
    let hint = error.hint().unwrap();
    assert!(
        hint.contains("--memory") && hint.contains("data_page_size"),
        "{hint}"
    );
    // What is not wanted costs nothing.
    let pieces = scan(
        &source,
        &reading(&[("x", Read::Number)]),
        Position::default(),
        &ledger,
    )
    .unwrap();
    assert_eq!(pieces.iter().map(|(rows, _)| rows.len()).sum::<usize>(), 20);

    let path = write(&folder, &[batch], &Format::ArrowFile(None));
    let source = open(&path, &ledger).unwrap();
    let error = scan(
        &source,
        &everything(&source, Read::Text),
        Position::default(),
        &ledger,
    )
    .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("record batch 0 with 20 rows needs"), "{text}");
    assert!(error.hint().unwrap().contains("chunksize"), "{:?}", error.hint());
    assert!(matches!(error, Error::PieceTooLarge { .. }));
}

/// Reads the file named in the environment and prints what it held and by how much it was foretold. Run by the test
/// below in a process of its own, which has a peak of its own.
#[test]
fn reads_alone() {
    let Ok(path) = std::env::var("TIDEGATE_TEST_PEAK") else {
        return;
    };
    tidegate_memory::give_freed_memory_back();
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    };
    let ledger = Ledger::new(1 << 30);
    let before = peak();
    let source = open(path.as_ref(), &ledger).unwrap();
    let wanted = natural(&source);
    let take = |_: &tidegate_data::chunk::Chunk, _| ControlFlow::Continue(());
    source.scan(&wanted, Position::default(), &ledger, take).unwrap();
    let (grown, granted) = (peak() - before, ledger.peak());
    println!("peak: {grown} {granted} {}", source.reader_bytes(&wanted));
}

#[test]
fn the_kernel_counts_what_was_granted() {
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::LZ4_RAW,
        Compression::ZSTD(Default::default()),
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
    ];
    let batches: Vec<RecordBatch> = (0..5).map(|i| rows(i * 40_000, 40_000)).collect();
    for format in codecs
        .map(|codec| Format::Parquet(Box::new(one_group(codec))))
        .into_iter()
        .chain([Format::ArrowFile(None)])
    {
        let folder = TempDir::new().unwrap();
        let path = write(&folder, &batches, &format);
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["reads_alone", "--exact", "--nocapture", "--test-threads=1"])
            .arg("budget::reads_alone")
            .env("TIDEGATE_TEST_PEAK", &path)
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = output
            .lines()
            .find_map(|line| line.split_once("peak: "))
            .unwrap_or_else(|| panic!("{output}"));
        let numbers: Vec<u64> = line
            .1
            .split_whitespace()
            .map(|word| word.parse().unwrap())
            .collect();
        let [grown, granted, foretold] = numbers[..] else {
            panic!("{output}")
        };
        let name = match &format {
            Format::Parquet(properties) => format!("{:?}", properties.compression(&"id".into())),
            other => format!("{other:?}"),
        };
        eprintln!("{name}: {grown} measured, {granted} granted, {foretold} foretold for the reader");
        // Code that is run for the first time, thread stacks and what the allocator keeps back.
        let slack = 5 << 20;
        assert!(
            grown <= granted + slack,
            "{name}: the peak grew by {grown}, {granted} were granted"
        );
        assert!(
            granted <= foretold + foretold / 2 + (4 << 20),
            "{name}: {granted} granted, {foretold} foretold"
        );
    }
}
