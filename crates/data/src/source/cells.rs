//! Typed values into the cells of a chunk: as numbers, or written as people write them.

use std::io::Write;

use crate::chunk::{Chunk, Read};

/// The most letters that a number takes where texts are wanted.
pub(super) const NUMBER_LETTERS: u64 = 24;

/// Appends a number. `words` says that the user has words for missing values, which may be numbers.
#[inline]
pub(super) fn push_float(chunk: &mut Chunk, column: usize, value: f64, words: bool) {
    if (chunk.columns[column].read == Read::Number && !words) || !value.is_finite() {
        return chunk.push_number(column, value);
    }
    let size = value.abs();
    if size == 0.0 || (1e-5..1e16).contains(&size) {
        push_written(chunk, column, format_args!("{value}"));
    } else {
        push_written(chunk, column, format_args!("{value:e}"));
    }
}

/// Appends a whole number; where texts are wanted, with all its digits.
#[inline]
pub(super) fn push_integer(chunk: &mut Chunk, column: usize, value: i128, words: bool) {
    if chunk.columns[column].read == Read::Number && !words {
        return chunk.push_number(column, value as f64);
    }
    push_written(chunk, column, format_args!("{value}"));
}

#[inline]
pub(super) fn push_truth(chunk: &mut Chunk, column: usize, value: bool) {
    match chunk.columns[column].read {
        Read::Text => chunk.push_text(column, if value { b"true" } else { b"false" }, None),
        Read::Number | Read::Boolean | Read::Time(_) => {
            chunk.push_number(column, f64::from(u8::from(value)));
        }
    }
}

fn push_written(chunk: &mut Chunk, column: usize, value: std::fmt::Arguments) {
    let mut letters = [0u8; NUMBER_LETTERS as usize];
    let mut rest = letters.as_mut_slice();
    // Seventeen digits, a sign, a point and an exponent of five letters: they fit.
    let _ = rest.write_fmt(value);
    let len = NUMBER_LETTERS as usize - rest.len();
    chunk.push_text(column, &letters[..len], None);
}
