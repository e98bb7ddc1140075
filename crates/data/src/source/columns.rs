//! Arrays of typed columns into chunks: numbers in bulk, texts as bytes, times as seconds.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::{ArrowError, DataType, Fields, TimeUnit};

use super::{Kind, Part};
use crate::chunk::{Chunk, Read};
use crate::{Error, Result, guard};

/// What a column of this type is to the rest of the program.
pub(crate) fn kind(data_type: &DataType) -> Kind {
    match data_type {
        DataType::Boolean => Kind::Boolean,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => Kind::Time,
        DataType::Dictionary(_, value) => match kind(value) {
            // Dictionaries are of texts or numbers; what else there might be is rare and refused.
            kind @ (Kind::Text | Kind::Number) => kind,
            _ => Kind::Unsupported,
        },
        data_type if is_text(data_type) => Kind::Text,
        DataType::Null
        | DataType::Float16
        | DataType::Float32
        | DataType::Float64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Duration(_)
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => Kind::Number,
        data_type if data_type.is_integer() => Kind::Number,
        _ => Kind::Unsupported,
    }
}

pub(crate) fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    )
}

/// The most bytes that the cells of `array` take as texts.
pub(crate) fn text_bytes(array: &dyn Array, read: Read) -> u64 {
    if read != Read::Text {
        return 0;
    }
    let rows = array.len() as u64;
    match array.data_type() {
        DataType::Boolean => 5 * rows,
        // A float is written out in full: up to 309 digits before the point, or 324 behind it.
        DataType::Float16 | DataType::Float32 => 50 * rows,
        DataType::Float64 => {
            let long = |value: &&f64| !(1e-5..1e16).contains(&value.abs()) && **value != 0.0;
            let values = array.as_primitive::<Float64Type>().values();
            25 * rows + 330 * values.iter().filter(long).count() as u64
        }
        DataType::Decimal256(..) => 80 * rows,
        DataType::Dictionary(_, value) if !is_text(value) => 350 * rows,
        data_type if kind(data_type) == Kind::Text => {
            let mut sum = 0;
            let mut add = |text: Option<&[u8]>| sum += text.map_or(0, |text| text.len() as u64);
            match array.as_any_dictionary_opt() {
                None => for_each_text(array, &mut add),
                Some(dictionary) if dictionary.values().is_empty() => {}
                Some(dictionary) if dictionary.values().len() <= array.len() => {
                    for_each_text(dictionary.values(), &mut add);
                }
                Some(dictionary) => {
                    for key in dictionary.normalized_keys() {
                        for_each_text(&dictionary.values().slice(key, 1), &mut add);
                    }
                }
            }
            sum
        }
        _ => 45 * rows,
    }
}

/// Appends all cells of `array` to a column of `chunk`, which has room for them.
pub(crate) fn fill(chunk: &mut Chunk, column: usize, array: &dyn Array) {
    use DataType::*;
    match array.data_type() {
        Int8 => integers::<Int8Type>(chunk, column, array, f64::from),
        Int16 => integers::<Int16Type>(chunk, column, array, f64::from),
        Int32 => integers::<Int32Type>(chunk, column, array, f64::from),
        Int64 => integers::<Int64Type>(chunk, column, array, |value| value as f64),
        UInt8 => integers::<UInt8Type>(chunk, column, array, f64::from),
        UInt16 => integers::<UInt16Type>(chunk, column, array, f64::from),
        UInt32 => integers::<UInt32Type>(chunk, column, array, f64::from),
        UInt64 => integers::<UInt64Type>(chunk, column, array, |value| value as f64),
        Float16 => numbers::<Float16Type>(chunk, column, array, |value| value.to_f64()),
        Float32 => numbers::<Float32Type>(chunk, column, array, f64::from),
        Float64 => numbers::<Float64Type>(chunk, column, array, |value| value),
        Date32 => numbers::<Date32Type>(chunk, column, array, |days| f64::from(days) * 86_400.0),
        Date64 => numbers::<Date64Type>(chunk, column, array, |value| value as f64 / 1e3),
        Timestamp(unit, _) => {
            let scale = per_second(unit);
            match unit {
                TimeUnit::Second => numbers::<TimestampSecondType>(chunk, column, array, |v| v as f64),
                TimeUnit::Millisecond => {
                    numbers::<TimestampMillisecondType>(chunk, column, array, |v| v as f64 / scale)
                }
                TimeUnit::Microsecond => {
                    numbers::<TimestampMicrosecondType>(chunk, column, array, |v| v as f64 / scale)
                }
                TimeUnit::Nanosecond => {
                    numbers::<TimestampNanosecondType>(chunk, column, array, |v| v as f64 / scale)
                }
            }
        }
        Time32(TimeUnit::Second) => numbers::<Time32SecondType>(chunk, column, array, f64::from),
        Time32(_) => numbers::<Time32MillisecondType>(chunk, column, array, |v| f64::from(v) / 1e3),
        Time64(TimeUnit::Microsecond) => {
            numbers::<Time64MicrosecondType>(chunk, column, array, |v| v as f64 / 1e6);
        }
        Time64(_) => numbers::<Time64NanosecondType>(chunk, column, array, |v| v as f64 / 1e9),
        Duration(unit) => {
            let scale = per_second(unit);
            match unit {
                TimeUnit::Second => numbers::<DurationSecondType>(chunk, column, array, |v| v as f64),
                TimeUnit::Millisecond => {
                    numbers::<DurationMillisecondType>(chunk, column, array, |v| v as f64 / scale)
                }
                TimeUnit::Microsecond => {
                    numbers::<DurationMicrosecondType>(chunk, column, array, |v| v as f64 / scale)
                }
                TimeUnit::Nanosecond => {
                    numbers::<DurationNanosecondType>(chunk, column, array, |v| v as f64 / scale)
                }
            }
        }
        Decimal32(_, scale) => decimals::<Decimal32Type>(chunk, column, array, *scale, f64::from),
        Decimal64(_, scale) => decimals::<Decimal64Type>(chunk, column, array, *scale, |v| v as f64),
        Decimal128(_, scale) => decimals::<Decimal128Type>(chunk, column, array, *scale, |v| v as f64),
        Decimal256(_, scale) => decimals::<Decimal256Type>(chunk, column, array, *scale, |value| {
            // By its magnitude: the halves of a small negative number would cancel each other out.
            let (low, high) = value.wrapping_abs().to_parts();
            let magnitude = high.unsigned_abs() as f64 * 2f64.powi(128) + low as f64;
            if value.is_negative() {
                -magnitude
            } else {
                magnitude
            }
        }),
        Boolean => {
            let array = array.as_boolean();
            for row in 0..array.len() {
                match array.is_valid(row) {
                    true => chunk.push_boolean(column, array.value(row)),
                    false => chunk.push_missing(column),
                }
            }
        }
        Dictionary(..) => dictionary(chunk, column, array),
        data_type if is_text(data_type) => texts(chunk, column, array),
        // Null, and types that were refused before they got here.
        _ => (0..array.len()).for_each(|_| chunk.push_missing(column)),
    }
}

fn per_second(unit: &TimeUnit) -> f64 {
    match unit {
        TimeUnit::Second => 1.0,
        TimeUnit::Millisecond => 1e3,
        TimeUnit::Microsecond => 1e6,
        TimeUnit::Nanosecond => 1e9,
    }
}

/// Values that have an `f64` of their own.
fn numbers<T: ArrowPrimitiveType>(
    chunk: &mut Chunk,
    column: usize,
    array: &dyn Array,
    as_number: impl Fn(T::Native) -> f64,
) {
    let array = array.as_primitive::<T>();
    if !push_numbers(chunk, column, array, &as_number) {
        for value in array.iter() {
            chunk.push_number(column, value.map_or(f64::NAN, &as_number));
        }
    }
}

fn push_numbers<T: ArrowPrimitiveType>(
    chunk: &mut Chunk,
    column: usize,
    array: &PrimitiveArray<T>,
    as_number: impl Fn(T::Native) -> f64,
) -> bool {
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => chunk.push_numbers(column, array.values().iter().map(|value| as_number(*value))),
        Some(nulls) => {
            let cells = array.values().iter().zip(nulls.iter());
            let number = |(value, valid): (&T::Native, bool)| match valid {
                true => as_number(*value),
                false => f64::NAN,
            };
            chunk.push_numbers(column, cells.map(number))
        }
    }
}

/// Integers: as texts they keep all their digits.
fn integers<T: ArrowPrimitiveType>(
    chunk: &mut Chunk,
    column: usize,
    array: &dyn Array,
    as_number: impl Fn(T::Native) -> f64,
) where
    T::Native: std::fmt::Display,
{
    let array = array.as_primitive::<T>();
    if !push_numbers(chunk, column, array, as_number) {
        written(chunk, column, array.iter());
    }
}

fn decimals<T: ArrowPrimitiveType + DecimalType>(
    chunk: &mut Chunk,
    column: usize,
    array: &dyn Array,
    scale: i8,
    as_number: impl Fn(T::Native) -> f64,
) {
    let array = array.as_primitive::<T>();
    let power = 10f64.powi(i32::from(scale).abs());
    let scaled = |value| match scale > 0 {
        true => as_number(value) / power,
        false => as_number(value) * power,
    };
    if !push_numbers(chunk, column, array, scaled) {
        let cells = (0..array.len()).map(|row| array.is_valid(row).then(|| array.value_as_string(row)));
        written(chunk, column, cells);
    }
}

fn written(chunk: &mut Chunk, column: usize, values: impl Iterator<Item = Option<impl std::fmt::Display>>) {
    use std::fmt::Write;
    let mut text = String::new();
    for value in values {
        text.clear();
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = write!(text, "{value}");
        }
        chunk.push_text(column, text.as_bytes(), None);
    }
}

fn texts(chunk: &mut Chunk, column: usize, array: &dyn Array) {
    let sure = matches!(
        array.data_type(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    );
    for_each_text(array, &mut |text| match text {
        Some(text) if sure || std::str::from_utf8(text).is_ok() => chunk.push_text(column, text, None),
        Some(bytes) => chunk.push_broken(column, bytes),
        None => chunk.push_missing(column),
    });
}

/// Calls `take` with each cell of an array of texts.
#[inline(always)]
fn for_each_text(array: &dyn Array, take: &mut impl FnMut(Option<&[u8]>)) {
    macro_rules! each {
        ($array:expr) => {{
            let array = $array;
            match array.nulls().filter(|nulls| nulls.null_count() > 0) {
                None => (0..array.len()).for_each(|row| take(Some(array.value(row).as_ref()))),
                Some(nulls) => {
                    (0..array.len())
                        .for_each(|row| take(nulls.is_valid(row).then(|| array.value(row).as_ref())));
                }
            }
        }};
    }
    match array.data_type() {
        DataType::Utf8 => each!(array.as_string::<i32>()),
        DataType::LargeUtf8 => each!(array.as_string::<i64>()),
        DataType::Binary => each!(array.as_binary::<i32>()),
        DataType::LargeBinary => each!(array.as_binary::<i64>()),
        DataType::FixedSizeBinary(_) => each!(array.as_fixed_size_binary()),
        DataType::BinaryView => each!(array.as_binary_view()),
        DataType::Utf8View => each!(&array.as_string_view().clone().to_binary_view()),
        _ => {}
    }
}

/// A dictionary of at most so many values is taken in value by value; with a larger one, a table of what was seen
/// would cost more than it saves.
const REMEMBERED: usize = 1 << 16;

/// Each value of a dictionary is taken in once; further rows repeat the row that held it first.
fn dictionary(chunk: &mut Chunk, column: usize, array: &dyn Array) {
    const NEW: u32 = u32::MAX;
    let array = array.as_any_dictionary();
    let values = array.values();
    let mut seen = match values.len() {
        0 => return (0..array.len()).for_each(|_| chunk.push_missing(column)),
        n @ ..=REMEMBERED => vec![NEW; n],
        _ => Vec::new(),
    };
    for (row, key) in array.normalized_keys().into_iter().enumerate() {
        if array.is_null(row) {
            chunk.push_missing(column);
            continue;
        }
        if let Some(earlier) = seen.get(key).filter(|earlier| **earlier != NEW) {
            chunk.push_again(column, *earlier as usize);
            continue;
        }
        let broken = chunk.columns[column].broken;
        fill(chunk, column, values.slice(key, 1).as_ref());
        if let Some(seen) = seen.get_mut(key)
            // What is broken is counted row by row.
            && chunk.columns[column].broken == broken
        {
            *seen = row as u32;
        }
    }
}

/// Makes room in `chunk`, with some to spare, so that texts that differ a little in length seldom make it grow.
pub(crate) fn reserve(chunk: &mut Chunk, rows: u64, text_bytes: u64) -> bool {
    const STEP: u64 = 64 << 10;
    chunk.reserve(rows, text_bytes.next_multiple_of(STEP))
}

/// The rows of a piece, by the metadata of a file alone: about a megabyte of values.
pub(crate) fn piece_rows(row_texts: f64, n_columns: usize, n_rows: u64) -> u64 {
    const PIECE_BYTES: f64 = 1e6;
    const MOST_ROWS: u64 = 16 << 10;
    // Fewer rows than this make a piece only where their texts are long: below it, what each page and column costs
    // anew in every piece begins to show.
    const FEW_ROWS: f64 = 256.0;
    const FEW_ROWS_TEXTS: f64 = 4e6;
    let rows = PIECE_BYTES / (row_texts + 8.0 * n_columns as f64).max(1.0);
    let few = (FEW_ROWS_TEXTS / row_texts.max(1.0)).min(FEW_ROWS);
    (rows.max(few) as u64).clamp(1, MOST_ROWS).min(n_rows.max(1))
}

/// The column of that name, which is one that can be read.
pub(crate) fn find(part: &dyn Part, name: &str, fields: &Fields) -> Result<usize> {
    let columns = part.columns();
    let Some(at) = columns.iter().position(|column| column.name == name) else {
        return Err(Error::UnknownColumn {
            path: part.path().into(),
            name: name.into(),
            columns: columns.iter().map(|column| column.name.clone()).collect(),
        });
    };
    if columns[at].kind == Kind::Unsupported {
        return Err(Error::Unsupported {
            path: part.path().into(),
            column: name.into(),
            what: fields[at].data_type().to_string(),
        });
    }
    Ok(at)
}

/// The libraries are meant not to panic on broken files; where they do, the file is broken all the same.
pub(crate) fn guarded<T, E: From<ArrowError>>(read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let broken = || ArrowError::ParseError("its values contradict each other".into()).into();
    guard::guarded(read).unwrap_or_else(|| Err(broken()))
}
