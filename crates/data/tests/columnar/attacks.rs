//! Files that are cut off, damaged or made to hurt end in an error, never in a panic or beyond the budget.

use std::fs;

use arrow_array::types::Int32Type;
use arrow_array::{BooleanArray, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use tempfile::TempDir;
use tidegate_data::chunk::Read;
use tidegate_data::{Error, Position};
use tidegate_memory::Ledger;

use crate::files::{Format, column, everything, open, scan, table, write};

fn batch() -> RecordBatch {
    let words: DictionaryArray<Int32Type> = (0..300).map(|i| Some(["red", "green", "blue"][i % 3])).collect();
    table(vec![
        ("i", column(Int64Array::from_iter_values(0..300))),
        (
            "x",
            column(
                (0..300)
                    .map(|i| (i % 3 > 0).then_some(f64::from(i)))
                    .collect::<Float64Array>(),
            ),
        ),
        (
            "b",
            column((0..300).map(|i| Some(i % 2 == 0)).collect::<BooleanArray>()),
        ),
        (
            "t",
            column(StringArray::from_iter_values(
                (0..300).map(|i| format!("some text, number {i}")),
            )),
        ),
        ("d", column(words)),
    ])
}

fn formats() -> Vec<Format> {
    let parquet = |properties: WriterProperties| Format::Parquet(Box::new(properties));
    let builder = WriterProperties::builder;
    let mut formats = Format::all();
    for compression in [
        Compression::SNAPPY,
        Compression::ZSTD(Default::default()),
        Compression::LZ4_RAW,
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
    ] {
        formats.push(parquet(builder().set_compression(compression).build()));
    }
    for encoding in [Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY] {
        let properties = builder()
            .set_dictionary_enabled(false)
            .set_column_encoding("t".into(), encoding)
            .set_column_encoding("i".into(), Encoding::DELTA_BINARY_PACKED)
            .set_column_encoding("x".into(), Encoding::BYTE_STREAM_SPLIT)
            .set_writer_version(parquet::file::properties::WriterVersion::PARQUET_2_0);
        formats.push(parquet(properties.build()));
    }
    formats
}

/// Reads what it can of these bytes; a panic fails the test, and so do bytes that are not given back.
fn attack(bytes: &[u8]) -> Result<usize, Error> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("table");
    fs::write(&path, bytes).unwrap();
    let ledger = Ledger::new(16 << 20);
    let result: Result<usize, Error> = (|| {
        let source = open(&path, &ledger)?;
        let profile = source.profile(&everything(&source, Read::Text), &ledger);
        let pieces = scan(
            &source,
            &everything(&source, Read::Text),
            Position::default(),
            &ledger,
        )?;
        profile?;
        Ok(pieces.iter().map(|(rows, _)| rows.len()).sum())
    })();
    assert_eq!(ledger.used(), 0);
    if let Err(error) = &result {
        let text = error.to_string();
        assert!(text.contains("table"), "the file is named: {text}");
        assert!(
            error.hint().is_some() || matches!(error, Error::Unreadable { .. }),
            "{text}"
        );
    }
    result
}

fn written(format: &Format) -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    fs::read(write(&folder, &[batch()], format)).unwrap()
}

#[test]
fn whole_files_are_read() {
    for format in formats() {
        assert_eq!(attack(&written(&format)).unwrap(), 300, "{format:?}");
    }
}

#[test]
fn cut_files_end_in_an_error() {
    for format in formats() {
        let bytes = written(&format);
        for end in (8..bytes.len()).step_by(bytes.len() / 60 + 1) {
            let result = attack(&bytes[..end]);
            // A stream may end behind any message.
            if !matches!(format, Format::ArrowStream(_)) {
                assert!(result.is_err(), "{format:?} cut at {end} of {}", bytes.len());
            }
        }
    }
}

#[test]
fn absurd_lengths_are_refused() {
    for format in [Format::parquet(), Format::ArrowFile(None)] {
        let whole = written(&format);
        let tail = if whole.starts_with(b"PAR1") { 8 } else { 10 };
        for length in [0u32, 1, 1000, 0x7fff_ffff, 0xffff_ffff] {
            let mut bytes = whole.clone();
            let at = bytes.len() - tail;
            bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
            attack(&bytes).unwrap_err();
        }
    }
    for length in [0u32, 5, 0x7fff_ffff, 0xffff_ffff] {
        let mut bytes = written(&Format::ArrowStream(None));
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        attack(&bytes).unwrap_err();
    }
    attack(b"PAR1").unwrap_err();
    attack(b"PAR1PAR1").unwrap_err();
    attack(b"ARROW1\0\0").unwrap_err();
    attack(b"ARROW1\0\0ARROW1").unwrap_err();
    attack(&[0xff; 64]).unwrap_err();
}

#[test]
fn a_file_without_rows_says_so() {
    for format in Format::all() {
        let folder = TempDir::new().unwrap();
        let path = write(&folder, &[batch().slice(0, 0)], &format);
        let error = open(&path, &Ledger::new(16 << 20)).err().unwrap();
        assert!(matches!(error, Error::NoRows { .. }), "{format:?}: {error}");
    }
}

#[test]
fn a_file_that_changed_is_refused() {
    for format in [Format::parquet(), Format::ArrowFile(None)] {
        let folder = TempDir::new().unwrap();
        let path = write(&folder, &[batch()], &format);
        let ledger = Ledger::new(16 << 20);
        let source = open(&path, &ledger).unwrap();
        write(&folder, &[batch().slice(0, 200)], &format);
        let result = scan(
            &source,
            &everything(&source, Read::Text),
            Position::default(),
            &ledger,
        );
        assert!(matches!(result.unwrap_err(), Error::Changed { .. }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn damaged_files_never_panic(
        format in 0..formats().len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        near_end in any::<bool>(),
    ) {
        let mut bytes = written(&formats()[format]);
        // Half of the damage goes where the lengths are: to the footer.
        let from = if near_end { bytes.len() * 2 / 3 } else { 0 };
        for (at, value) in changes {
            let at = from + at.index(bytes.len() - from);
            bytes[at] = value;
        }
        let _ = attack(&bytes);
    }
}
