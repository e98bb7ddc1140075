//! Labels as they stand in their arrays: read in pieces, row by row, with nothing lost.

use tidegate_memory::Holder;

use super::element::{Value, swap_bytes};
use super::header::{Header, Holds};
use super::problem::ArrayProblem;
use crate::{Input, Result};

/// Rows are read in pieces of about this size.
const PIECE_BYTES: usize = 64 << 10;

/// An array of labels: a value, or a row of them, for each sample.
pub(crate) struct Answers {
    pub input: Input,
    header: Header,
}

/// One label as it stands.
#[derive(Debug, Clone, PartialEq, PartialOrd, Eq, Ord)]
pub(crate) enum Answer {
    Integer(i128),
    /// Bits of a finite number, so turned that they are in order.
    Float(u64),
    Text(String),
}

impl Answers {
    pub(crate) fn new(input: Input, header: Header) -> Result<Answers, ArrayProblem> {
        match header.shape.len() {
            1 | 2 => Ok(Answers { input, header }),
            _ => Err(ArrayProblem::LabelShape {
                path: input.path().into(),
                shape: header.shape,
            }),
        }
    }

    pub(crate) fn n(&self) -> u64 {
        self.header.shape.first().map_or(0, |n| *n as u64)
    }

    /// Values for each sample.
    pub(crate) fn width(&self) -> usize {
        self.header.shape.get(1).copied().unwrap_or(1)
    }

    pub(crate) fn holds(&self) -> Holds {
        self.header.holds
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.header.shape
    }

    /// Takes every row: which it is, from 0, and its bytes in the order of the machine.
    pub(crate) fn each_row(
        &self,
        holder: &Holder,
        mut take: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let row_bytes = self.width() * self.header.holds.bytes();
        let most = (PIECE_BYTES / row_bytes).max(1).min(self.n() as usize);
        let _granted = holder.try_grant((most * row_bytes) as u64)?;
        let mut piece = vec![0; most * row_bytes];
        let mut text = self.input.text(holder)?;
        text.skip(self.header.data_at)?;
        let mut row = 0;
        while row < self.n() {
            let n = (self.n() - row).min(most as u64) as usize;
            let piece = &mut piece[..n * row_bytes];
            let filled = text.fill(piece)?;
            if filled < piece.len() {
                let before = self.header.data_at + row * row_bytes as u64;
                let found = before + filled as u64;
                return Err(self.header.truncated(&self.input, found).into());
            }
            if self.header.big_endian {
                let width = match self.header.holds {
                    Holds::Number(element) => element.bytes(),
                    Holds::Bytes(_) => 1,
                    Holds::Letters(_) => 4,
                };
                swap_bytes(piece, width);
            }
            for bytes in piece.chunks_exact(row_bytes) {
                take(row, bytes)?;
                row += 1;
            }
        }
        Ok(())
    }

    /// The same for numbers; a text among them is an error.
    pub(crate) fn each_number(
        &self,
        holder: &Holder,
        mut take: impl FnMut(u64, usize, Value) -> Result<()>,
    ) -> Result<()> {
        self.each_row(holder, |row, bytes| {
            let Holds::Number(element) = self.header.holds else {
                return Err(ArrayProblem::TextLabels {
                    path: self.input.path().into(),
                    value: self.text(bytes),
                }
                .into());
            };
            for (column, bytes) in bytes.chunks_exact(element.bytes()).enumerate() {
                let value = element.value(bytes);
                // What no f32 can hold would reach the model as infinite.
                if !(value.number() as f32).is_finite() {
                    return Err(ArrayProblem::NotFinite {
                        path: self.input.path().into(),
                        sample: row,
                        value: value.to_string(),
                    }
                    .into());
                }
                take(row, column, value)?;
            }
            Ok(())
        })
    }

    /// The same for rows of one value, whatever it is.
    pub(crate) fn each_answer(
        &self,
        holder: &Holder,
        mut take: impl FnMut(u64, Answer) -> Result<()>,
    ) -> Result<()> {
        match self.header.holds {
            Holds::Number(_) => self.each_number(holder, |row, _, value| take(row, Answer::of(value))),
            _ => self.each_row(holder, |row, bytes| take(row, Answer::Text(self.text(bytes)))),
        }
    }

    /// A text without the zeros that fill it up.
    fn text(&self, bytes: &[u8]) -> String {
        match self.header.holds {
            Holds::Letters(_) => {
                let letters = bytes
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|code| u32::from_le_bytes(*code));
                let letters = letters.map(|code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                let text: String = letters.collect();
                text.trim_end_matches('\0').into()
            }
            _ => String::from_utf8_lossy(bytes).trim_end_matches('\0').into(),
        }
    }
}

impl Answer {
    fn of(value: Value) -> Answer {
        match value {
            Value::Bool(value) => Answer::Integer(value.into()),
            Value::Integer(value) => Answer::Integer(value),
            Value::Float(value) => {
                // No negative zero: it is equal to zero.
                let bits = (value + 0.0).to_bits();
                Answer::Float(if bits >> 63 == 0 { bits | 1 << 63 } else { !bits })
            }
        }
    }

    /// As people write it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Answer::Integer(value) => value.to_string(),
            Answer::Float(bits) => {
                let bits = if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits };
                f64::from_bits(bits).to_string()
            }
            Answer::Text(text) => text.clone(),
        }
    }

    /// The whole number that it is.
    pub(crate) fn integer(&self) -> Option<i128> {
        match self {
            Answer::Integer(value) => Some(*value),
            Answer::Float(_) | Answer::Text(_) => {
                let value: f64 = self.shown().parse().ok()?;
                (value.fract() == 0.0 && value.abs() < 1e15).then_some(value as i128)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_in_order_and_come_back() {
        let values = [-1e300, -2.5, -1.0, -1e-300, 0.0, 1e-300, 0.5, 3.0, 1e300];
        let answers = values.map(|value| Answer::of(Value::Float(value)));
        assert!(answers.is_sorted());
        for (answer, value) in answers.iter().zip(values) {
            assert_eq!(answer.shown(), value.to_string());
        }
        assert_eq!(Answer::of(Value::Float(-0.0)), Answer::of(Value::Float(0.0)));
        assert_eq!(Answer::of(Value::Float(3.0)).integer(), Some(3));
        assert_eq!(Answer::of(Value::Float(2.5)).integer(), None);
    }
}
