//! Values of every type, from every format, as numbers and as texts.

use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::i256;
use tempfile::TempDir;
use tidegate_data::chunk::Read;
use tidegate_data::source::Kind;
use tidegate_data::{Error, Position};
use tidegate_memory::Ledger;

use crate::files::{Format, column, everything, open, reading, scan, table, write};

/// Writes one column in every format and compares what is read of it.
fn check(array: ArrayRef, kind: Kind, as_numbers: &[&str], as_texts: &[&str]) {
    for format in Format::all() {
        let folder = TempDir::new().unwrap();
        let path = write(&folder, &[table(vec![("x", array.clone())])], &format);
        let ledger = Ledger::new(64 << 20);
        let source = open(&path, &ledger).unwrap();
        let of = format!("{:?} in {format:?}", array.data_type());
        assert_eq!(source.columns()[0].kind, kind, "{of}");
        assert_eq!(source.n_rows(), Some(array.len() as u64), "{of}");
        for (read, expected) in [(Read::Number, as_numbers), (Read::Text, as_texts)] {
            if expected.is_empty() {
                continue;
            }
            let pieces = scan(&source, &everything(&source, read), Position::default(), &ledger).unwrap();
            let cells: Vec<String> = pieces.into_iter().flat_map(|(rows, _)| rows).collect();
            assert_eq!(cells, expected, "{of}, as {read:?}");
        }
        drop(source);
        assert_eq!(ledger.used(), 0, "{of}: all is given back");
    }
}

#[test]
fn integers_keep_their_digits_as_texts() {
    let most = i64::MAX;
    let numbers = ["1", "-", "-3", "9223372036854776000"];
    let texts = ["1", "-", "-3", "9223372036854775807"];
    let values = Int64Array::from(vec![Some(1), None, Some(-3), Some(most)]);
    check(column(values), Kind::Number, &numbers, &texts);
    let small = ["1", "-", "-3"];
    check(
        column(Int8Array::from(vec![Some(1), None, Some(-3)])),
        Kind::Number,
        &small,
        &small,
    );
    check(
        column(Int16Array::from(vec![Some(1), None, Some(-3)])),
        Kind::Number,
        &small,
        &small,
    );
    check(
        column(Int32Array::from(vec![Some(1), None, Some(-3)])),
        Kind::Number,
        &small,
        &small,
    );
    let unsigned = ["1", "-", "200"];
    check(
        column(UInt8Array::from(vec![Some(1), None, Some(200)])),
        Kind::Number,
        &unsigned,
        &unsigned,
    );
    check(
        column(UInt16Array::from(vec![Some(1), None, Some(200)])),
        Kind::Number,
        &unsigned,
        &unsigned,
    );
    check(
        column(UInt32Array::from(vec![Some(1), None, Some(200)])),
        Kind::Number,
        &unsigned,
        &unsigned,
    );
    let large = UInt64Array::from(vec![Some(1), None, Some(u64::MAX)]);
    check(
        column(large),
        Kind::Number,
        &["1", "-", "18446744073709552000"],
        &["1", "-", "18446744073709551615"],
    );
}

#[test]
fn floats_and_decimals() {
    let cells = ["1.5", "-", "-0.25", "-"];
    let values = vec![Some(1.5), None, Some(-0.25), Some(f64::NAN)];
    check(
        column(Float64Array::from(values.clone())),
        Kind::Number,
        &cells,
        &cells,
    );
    let singles: Vec<Option<f32>> = values
        .iter()
        .map(|value| value.map(|value| value as f32))
        .collect();
    check(column(Float32Array::from(singles)), Kind::Number, &cells, &cells);
    type Half = <Float16Type as ArrowPrimitiveType>::Native;
    let halves: Vec<Option<Half>> = values.iter().map(|value| value.map(Half::from_f64)).collect();
    check(column(Float16Array::from(halves)), Kind::Number, &cells, &cells);
    let cells = ["12.34", "-", "-0.05"];
    let values = vec![Some(1234), None, Some(-5)];
    let array = Decimal128Array::from(values.clone())
        .with_precision_and_scale(20, 2)
        .unwrap();
    check(column(array), Kind::Number, &cells, &cells);
    let wide: Vec<Option<i256>> = values
        .into_iter()
        .map(|value| value.map(i256::from_i128))
        .collect();
    let array = Decimal256Array::from(wide)
        .with_precision_and_scale(50, 2)
        .unwrap();
    check(column(array), Kind::Number, &cells, &cells);
    let array = Decimal64Array::from(vec![Some(1234), None, Some(-5)])
        .with_precision_and_scale(10, 2)
        .unwrap();
    check(column(array), Kind::Number, &cells, &cells);
}

#[test]
fn truths_are_words_where_texts_are_wanted() {
    let array = BooleanArray::from(vec![Some(true), None, Some(false)]);
    check(
        column(array),
        Kind::Boolean,
        &["1", "-", "0"],
        &["true", "-", "false"],
    );
}

#[test]
fn texts_of_every_kind() {
    let texts = vec![
        Some("red"),
        None,
        Some(" a text of more than twelve bytes "),
        Some("NA"),
        Some("42"),
    ];
    let numbers = ["-", "-", "-", "-", "42"];
    let cells = ["red", "-", "a text of more than twelve bytes", "-", "42"];
    check(
        column(StringArray::from(texts.clone())),
        Kind::Text,
        &numbers,
        &cells,
    );
    check(
        column(LargeStringArray::from(texts.clone())),
        Kind::Text,
        &numbers,
        &cells,
    );
    check(
        column(StringViewArray::from(texts.clone())),
        Kind::Text,
        &numbers,
        &cells,
    );
    let bytes: Vec<Option<&[u8]>> = texts.iter().map(|text| text.map(str::as_bytes)).collect();
    check(
        column(BinaryArray::from(bytes.clone())),
        Kind::Text,
        &numbers,
        &cells,
    );
    check(
        column(LargeBinaryArray::from(bytes.clone())),
        Kind::Text,
        &numbers,
        &cells,
    );
    check(column(BinaryViewArray::from(bytes)), Kind::Text, &numbers, &cells);
    let dictionary: DictionaryArray<Int8Type> = texts.into_iter().collect();
    check(column(dictionary), Kind::Text, &numbers, &cells);
    let odd: Vec<Option<&[u8]>> = vec![Some(b"ok"), Some(b"\xff\xfe"), None];
    check(column(BinaryArray::from(odd)), Kind::Text, &[], &["ok", "-", "-"]);
}

#[test]
fn dictionaries_of_numbers() {
    let keys = Int32Array::from(vec![Some(1), None, Some(0), Some(1)]);
    let array = DictionaryArray::new(keys, column(Int64Array::from(vec![10, 20])));
    let cells = ["20", "-", "10", "20"];
    check(column(array), Kind::Number, &cells, &cells);
}

#[test]
fn times_are_seconds() {
    let cells = ["1500", "-", "-1"];
    check(
        column(TimestampSecondArray::from(vec![Some(1500), None, Some(-1)])),
        Kind::Time,
        &cells,
        &[],
    );
    let scaled = |scale: i64| vec![Some(1500 * scale), None, Some(-scale)];
    let utc = TimestampMillisecondArray::from(scaled(1_000)).with_timezone("+02:00");
    check(column(utc), Kind::Time, &cells, &[]);
    check(
        column(TimestampMicrosecondArray::from(scaled(1_000_000))),
        Kind::Time,
        &cells,
        &[],
    );
    check(
        column(TimestampNanosecondArray::from(scaled(1_000_000_000))),
        Kind::Time,
        &cells,
        &[],
    );
    check(
        column(DurationMillisecondArray::from(scaled(1_000))),
        Kind::Number,
        &cells,
        &[],
    );
    check(
        column(DurationNanosecondArray::from(scaled(1_000_000_000))),
        Kind::Number,
        &cells,
        &[],
    );
    let days = ["86400", "-", "-86400"];
    check(
        column(Date32Array::from(vec![Some(1), None, Some(-1)])),
        Kind::Time,
        &days,
        &[],
    );
    let milliseconds = vec![Some(86_400_000), None, Some(-86_400_000)];
    check(column(Date64Array::from(milliseconds)), Kind::Time, &days, &[]);
    let clock = ["1.5", "-"];
    check(
        column(Time32MillisecondArray::from(vec![Some(1500), None])),
        Kind::Number,
        &clock,
        &[],
    );
    check(
        column(Time64MicrosecondArray::from(vec![Some(1_500_000), None])),
        Kind::Number,
        &clock,
        &[],
    );
    check(
        column(Time64NanosecondArray::from(vec![Some(1_500_000_000), None])),
        Kind::Number,
        &clock,
        &[],
    );
}

#[test]
fn lists_are_left_aside_and_refused_by_name() {
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(1), Some(2)]), None]);
    let pair = StructArray::from(vec![(
        Arc::new(arrow_schema::Field::new("a", arrow_schema::DataType::Int64, true)),
        column(Int64Array::from(vec![1, 2])),
    )]);
    let batch = table(vec![
        ("list", column(lists)),
        ("pair", column(pair)),
        ("x", column(Int64Array::from(vec![7, 8]))),
    ]);
    for format in Format::all() {
        let folder = TempDir::new().unwrap();
        let path = write(&folder, std::slice::from_ref(&batch), &format);
        let ledger = Ledger::new(64 << 20);
        let source = open(&path, &ledger).unwrap();
        let kinds: Vec<Kind> = source.columns().iter().map(|column| column.kind).collect();
        assert_eq!(kinds, [Kind::Unsupported, Kind::Unsupported, Kind::Number]);
        let wanted = reading(&[("x", Read::Number)]);
        let pieces = scan(&source, &wanted, Position::default(), &ledger).unwrap();
        assert_eq!(pieces[0].0, ["7", "8"]);
        let profile = source.profile(&wanted, &ledger).unwrap();
        assert_eq!(
            (profile.rows, profile.complete, profile.columns.len()),
            (2, true, 3)
        );
        assert_eq!(profile.columns[2].numbers, 2);
        let wanted = reading(&[("list", Read::Number)]);
        let error = scan(&source, &wanted, Position::default(), &ledger).unwrap_err();
        assert!(
            matches!(error, Error::Unsupported { ref column, .. } if column == "list"),
            "{error}"
        );
        let wanted = reading(&[("y", Read::Number)]);
        let error = scan(&source, &wanted, Position::default(), &ledger).unwrap_err();
        assert!(matches!(error, Error::UnknownColumn { .. }), "{error}");
    }
}

#[test]
fn infinite_numbers_are_broken_and_own_words_are_missing() {
    let folder = TempDir::new().unwrap();
    let values = Float64Array::from(vec![f64::INFINITY, -999.0, 3.0]);
    let path = write(&folder, &[table(vec![("x", column(values))])], &Format::parquet());
    let ledger = Ledger::new(64 << 20);
    let source = open(&path, &ledger).unwrap();
    let mut wanted = everything(&source, Read::Number);
    wanted.missing = vec!["-999".into()];
    let mut seen = 0;
    let take = |chunk: &tidegate_data::chunk::Chunk, _| {
        seen += chunk.n_rows();
        assert_eq!(chunk.columns[0].broken, 1);
        assert_eq!(chunk.columns[0].first_broken, Some((0, "inf".into())));
        assert!(chunk.numbers(0)[0].is_nan() && chunk.numbers(0)[1].is_nan());
        assert_eq!(chunk.numbers(0)[2], 3.0);
        std::ops::ControlFlow::Continue(())
    };
    source.scan(&wanted, Position::default(), &ledger, take).unwrap();
    assert_eq!(seen, 3);
}

#[test]
fn dictionaries_may_grow_and_change_within_a_stream() {
    let words = |words: &[&str]| -> ArrayRef {
        let array: DictionaryArray<Int32Type> = words.iter().map(|word| Some(*word)).collect();
        column(array)
    };
    let batches = [
        table(vec![("x", words(&["a", "b", "a"]))]),
        table(vec![("x", words(&["c", "b"]))]),
        table(vec![("x", words(&["c", "b", "d"]))]),
    ];
    let folder = TempDir::new().unwrap();
    let path = write(&folder, &batches, &Format::ArrowStream(None));
    let ledger = Ledger::new(64 << 20);
    let source = open(&path, &ledger).unwrap();
    let pieces = scan(
        &source,
        &everything(&source, Read::Text),
        Position::default(),
        &ledger,
    )
    .unwrap();
    let cells: Vec<String> = pieces.into_iter().flat_map(|(rows, _)| rows).collect();
    assert_eq!(cells, ["a", "b", "a", "c", "b", "c", "b", "d"]);
}

#[test]
fn a_profile_tells_kinds_and_counts() {
    let batch = table(vec![
        (
            "number",
            column(Float64Array::from(vec![Some(0.5), None, Some(2.0)])),
        ),
        ("truth", column(BooleanArray::from(vec![true, false, true]))),
        ("text", column(StringArray::from(vec!["two words", "one", "one"]))),
    ]);
    for format in Format::all() {
        let folder = TempDir::new().unwrap();
        let path = write(&folder, std::slice::from_ref(&batch), &format);
        let ledger = Ledger::new(64 << 20);
        let source = open(&path, &ledger).unwrap();
        let before = ledger.used();
        let profile = source.profile(&reading(&[]), &ledger).unwrap();
        assert_eq!(ledger.used(), before);
        let [number, truth, text] = &profile.columns[..] else {
            panic!()
        };
        assert_eq!((number.numbers, number.missing, number.integers), (2, 1, 1));
        assert_eq!((truth.booleans, truth.kind), (3, Kind::Boolean));
        assert_eq!((text.text, text.words, text.n_distinct()), (3, 4, Some(2)));
        assert!(profile.complete && profile.rows == 3 && profile.bytes > 0);
    }
}
