//! A bounded look at JSON lines: their keys in the order of first appearance, and what they hold.

use std::collections::HashMap;

use tidegate_memory::{Grant, Ledger};

use super::object::{Sink, Value, walk};
use super::{dialect, fault, lines};
use crate::csv::PADDING;
use crate::csv::blocks::{BlockReader, LOOK_BYTES, TextBuffer};
use crate::profile::{COLUMN_BYTES, ColumnProfile, Profile, VALUE_BYTES};
use crate::source::Kind;
use crate::{Compression, Error, Fault, Input, Result};

/// Beside the first block, a plain file is looked at in this many places: keys may come late.
const PLACES: u64 = 32;
const PLACE_BYTES: usize = 64 << 10;
/// Values of a column are granted by so many: most keys of a wide file have few.
const VALUES: u64 = 64;

pub(in crate::source) fn look(input: &Input, words: &[String], ledger: &Ledger) -> Result<Profile> {
    let holder = ledger.holder("sample");
    let mut buffer = TextBuffer::of(LOOK_BYTES, &holder)?;
    let mut reader = BlockReader::looking(input, &dialect(), &holder, ledger.budget())?;
    let mut sample = Sample {
        words,
        columns: Vec::new(),
        shapes: Vec::new(),
        places: HashMap::new(),
        grant: holder.try_grant(0)?,
        refused: None,
        rows: 0,
        bytes: 0,
        bad: 0,
        first_fault: None,
    };
    // Lines larger than a block may leave the first blocks without an object.
    while sample.rows + sample.bad == 0 && reader.has_more() {
        let Some(place) = reader.read(&mut buffer, &mut || false)? else {
            break;
        };
        let (padded, end) = buffer.padded();
        if place.start.piece == 0 {
            refuse_list(input, &padded[..end])?;
        }
        sample.take(input, &padded[..end], place.start.line)?;
    }
    let complete = !reader.has_more();
    drop(reader);
    if !complete && input.compression() == Compression::Plain {
        look_around(input, &mut buffer, &mut sample)?;
    }
    match sample.first_fault.take() {
        Some((line, fault)) if sample.rows == 0 => Err(Error::NotJsonLines {
            path: input.path().into(),
            line,
            fault: Box::new(fault),
        }),
        _ if sample.rows == 0 => Err(Error::Empty {
            path: input.path().into(),
        }),
        _ => Ok(sample.finish(complete)),
    }
}

/// A file that is one list instead of a line for each row.
fn refuse_list(input: &Input, text: &[u8]) -> Result<()> {
    match text.trim_ascii_start().first() {
        Some(b'[') => Err(Error::JsonList {
            path: input.path().into(),
        }),
        _ => Ok(()),
    }
}

/// Looks at whole lines in places spread over the rest of a plain file.
fn look_around(input: &Input, buffer: &mut TextBuffer, sample: &mut Sample) -> Result<()> {
    let places = input.places()?;
    for i in 1..=PLACES {
        let offset = input.bytes() / (PLACES + 1) * i;
        let bytes = buffer.scratch();
        let room = PLACE_BYTES.min(bytes.len() - PADDING);
        let read = places.read_at(&mut bytes[..room], offset)?;
        let text = &bytes[..read];
        let start = memchr::memchr(b'\n', text).map_or(read, |at| at + 1);
        let end = memchr::memrchr(b'\n', text).map_or(start, |at| at + 1);
        sample.take(input, &text[start..end.max(start)], 0)?;
    }
    Ok(())
}

struct Sample<'w> {
    words: &'w [String],
    columns: Vec<ColumnProfile>,
    shapes: Vec<Shape>,
    places: HashMap<String, usize>,
    grant: Grant,
    /// The budget refused another column, or another value.
    refused: Option<Error>,
    rows: u64,
    bytes: u64,
    bad: u64,
    first_fault: Option<(u64, Fault)>,
}

/// What a key's values were in JSON.
#[derive(Default)]
struct Shape {
    numbers: u64,
    truths: u64,
    texts: u64,
    /// Distinct values that there is room for.
    room: u64,
}

/// A line has to be whole before its values count.
struct Nothing;

impl Sink for Nothing {
    fn value(&mut self, _key: &str, _value: Value) -> Result<(), String> {
        Ok(())
    }
}

impl Sample<'_> {
    fn take(&mut self, input: &Input, text: &[u8], first_line: u64) -> Result<()> {
        let mut key = String::new();
        for (line, number) in lines(text).zip(first_line..) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let Err(error) = walk(line, &mut key, &mut Nothing) {
                self.bad += 1;
                self.first_fault.get_or_insert((number, fault(line, &error)));
                continue;
            }
            self.rows += 1;
            self.bytes += line.len() as u64 + 1;
            // All that it refuses is what the budget does, and that is told below.
            let _ = walk(line, &mut key, self);
            if let Some(Error::Memory { source, .. }) = self.refused.take() {
                return Err(Error::Columns {
                    path: input.path().into(),
                    columns: self.columns.len() as u64,
                    needed: self.grant.bytes() + COLUMN_BYTES + VALUES * VALUE_BYTES,
                    source,
                });
            }
        }
        Ok(())
    }

    fn column(&mut self, key: &str) -> Result<usize> {
        if let Some(at) = self.places.get(key) {
            return Ok(*at);
        }
        self.grant.try_grow(COLUMN_BYTES + 3 * key.len() as u64)?;
        let at = self.columns.len();
        self.columns.push(ColumnProfile::new(key, Kind::Untyped));
        self.shapes.push(Shape::default());
        self.places.insert(key.into(), at);
        Ok(at)
    }

    /// Takes in a value. The room for another distinct one is granted before there is one.
    fn look(&mut self, at: usize, value: Value) -> Result<()> {
        if self.columns[at]
            .n_distinct()
            .is_some_and(|n| n >= self.shapes[at].room)
        {
            self.grant.try_grow(VALUES * VALUE_BYTES)?;
            self.shapes[at].room += VALUES;
        }
        let (look, shape) = (&mut self.columns[at], &mut self.shapes[at]);
        let mut number = |value: f64, letters: &str| {
            shape.numbers += 1;
            // Words for missing values may be numbers.
            match self.words.is_empty() {
                true => look.look_at_typed(value),
                false => look.look(letters.as_bytes(), None, self.words, None),
            }
        };
        match value {
            Value::Null | Value::List => {}
            Value::Integer(value) => number(value as f64, &value.to_string()),
            Value::Unsigned(value) => number(value as f64, &value.to_string()),
            Value::Float(value) => number(value, &value.to_string()),
            Value::Boolean(value) => {
                shape.truths += 1;
                look.look(if value { b"true" } else { b"false" }, None, self.words, None);
            }
            Value::Text(text) => {
                shape.texts += 1;
                look.look(text.as_bytes(), None, self.words, None);
            }
        }
        Ok(())
    }

    fn finish(mut self, complete: bool) -> Profile {
        for (look, shape) in self.columns.iter_mut().zip(&self.shapes) {
            look.kind = match (shape.numbers, shape.truths, shape.texts) {
                (1.., 0, 0) => Kind::Number,
                (0, 1.., 0) => Kind::Boolean,
                _ => Kind::Untyped,
            };
            look.missing = self.rows.saturating_sub(look.values());
        }
        Profile {
            columns: self.columns,
            rows: self.rows,
            bytes: self.bytes,
            complete,
        }
    }
}

impl Sink for Sample<'_> {
    fn value(&mut self, key: &str, value: Value) -> Result<(), String> {
        if value == Value::List && !self.places.contains_key(key) {
            return Ok(());
        }
        let looked = self.column(key).and_then(|at| self.look(at, value));
        looked.map_err(|error| {
            self.refused = Some(error);
            String::new()
        })
    }
}
