//! Rows of one piece of a source, column by column, before they are encoded.
//!
//! Whatever a source holds, text fields or typed values, its rows become a [`Chunk`]: the columns that are
//! wanted, each as numbers or as texts, in memory that was granted beforehand. Filters, fits and encoders read
//! chunks and know nothing of formats.

use serde::{Deserialize, Serialize};
use tidegate_memory::{Grant, Holder};

use crate::encode::TimeFormat;
use crate::number::{Number, parse_number};
use crate::profile::{is_missing_or, is_word};
use crate::{Fault, Result};

/// How the cells of a column are taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Read {
    /// As a number; what is none is counted and missing.
    Number,
    /// As 0 or 1: true, yes, t, y, 1 and their opposites.
    Boolean,
    /// As a date, in seconds since 1970, UTC.
    Time(TimeFormat),
    /// As text, without surrounding blanks.
    Text,
}

/// A column that is to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    pub name: String,
    pub read: Read,
}

/// Some rows of a source.
pub struct Chunk {
    /// In the order of what was wanted.
    pub columns: Vec<Column>,
    /// Where each row stands: the line of a text file on which it starts, otherwise its number; from 1.
    pub lines: Vec<u64>,
    /// Rows of this piece that could not be read and are left out.
    pub bad: u64,
    pub first_bad: Option<(u64, Fault)>,
    /// The user's own words for missing values, and those of them that are numbers.
    missing: Vec<String>,
    missing_numbers: Vec<f64>,
    /// The bytes of all texts.
    texts: Vec<u8>,
    grant: Grant,
}

/// A number that is not one, because something else stood in its place: missing like any other NaN, but one can tell.
const BROKEN: f64 = f64::from_bits(0x7ff8_0000_0000_0001);

/// The cells of a column.
pub struct Column {
    pub name: String,
    pub read: Read,
    cells: Cells,
    /// Values that are not what the column should hold: they count as missing.
    pub broken: u64,
    /// The first of them, with its place among the rows of the chunk.
    pub first_broken: Option<(usize, String)>,
}

enum Cells {
    /// NaN where there is none.
    Numbers(Vec<f64>),
    Texts(Vec<Span>),
}

/// Where a text stands among the texts of its chunk.
#[derive(Clone, Copy)]
struct Span {
    start: u32,
    len: u32,
}

/// No text at all; an empty one cannot occur, it is missing.
const NO_TEXT: Span = Span { start: 0, len: 0 };

impl Chunk {
    pub(crate) fn new(wanted: &[Wanted], missing: &[String], holder: &Holder) -> Result<Chunk> {
        let column = |wanted: &Wanted| Column {
            name: wanted.name.clone(),
            read: wanted.read,
            cells: match wanted.read {
                Read::Text => Cells::Texts(Vec::new()),
                Read::Number | Read::Boolean | Read::Time(_) => Cells::Numbers(Vec::new()),
            },
            broken: 0,
            first_broken: None,
        };
        Ok(Chunk {
            columns: wanted.iter().map(column).collect(),
            lines: Vec::new(),
            bad: 0,
            first_bad: None,
            missing: missing.to_vec(),
            missing_numbers: missing.iter().filter_map(|word| number(word)).collect(),
            texts: Vec::new(),
            grant: holder.try_grant(0)?,
        })
    }

    /// What a row takes beside its texts: eight bytes a cell and the line.
    pub(crate) fn row_bytes(n_columns: usize) -> u64 {
        8 * (n_columns as u64 + 1)
    }

    /// Makes room for so many rows with so many bytes of text in all; `false` when the budget refuses.
    pub(crate) fn reserve(&mut self, rows: u64, text_bytes: u64) -> bool {
        let has_texts = self.columns.iter().any(|column| column.read == Read::Text);
        let text_bytes = if has_texts { text_bytes } else { 0 };
        let (old_rows, old_texts) = (self.lines.capacity() as u64, self.texts.capacity() as u64);
        if rows <= old_rows && text_bytes <= old_texts {
            return true;
        }
        // Pieces differ a little: some room to spare, so that few of them make a chunk grow.
        let rows = if rows > old_rows {
            rows + rows / 8
        } else {
            old_rows
        };
        let text_bytes = text_bytes.max(old_texts);
        let needed = rows * Chunk::row_bytes(self.columns.len()) + text_bytes;
        if self
            .grant
            .try_grow(needed.saturating_sub(self.grant.bytes()))
            .is_err()
        {
            return false;
        }
        self.clear();
        // Written once here, so that memory is taken now and not little by little.
        fn fill<T: Clone>(cells: &mut Vec<T>, n: u64, value: T) {
            cells.reserve_exact(n as usize);
            cells.resize(n as usize, value);
            cells.clear();
        }
        for column in &mut self.columns {
            match &mut column.cells {
                Cells::Numbers(cells) => fill(cells, rows, 1.0),
                Cells::Texts(cells) => fill(cells, rows, Span { start: 1, len: 1 }),
            }
        }
        fill(&mut self.lines, rows, 1);
        fill(&mut self.texts, text_bytes, b' ');
        true
    }

    pub(crate) fn clear(&mut self) {
        for column in &mut self.columns {
            match &mut column.cells {
                Cells::Numbers(cells) => cells.clear(),
                Cells::Texts(cells) => cells.clear(),
            }
            column.broken = 0;
            column.first_broken = None;
        }
        self.lines.clear();
        self.texts.clear();
        self.bad = 0;
        self.first_bad = None;
    }

    /// Bytes of text that there is room for in all; any number where none are wanted.
    pub(crate) fn text_room(&self) -> u64 {
        match self.columns.iter().any(|column| column.read == Read::Text) {
            true => self.texts.capacity() as u64,
            false => u64::MAX,
        }
    }

    pub fn n_rows(&self) -> usize {
        self.lines.len()
    }

    /// The numbers of a column, NaN where one is missing; empty for a column of texts.
    pub fn numbers(&self, column: usize) -> &[f64] {
        match &self.columns[column].cells {
            Cells::Numbers(cells) => cells,
            Cells::Texts(_) => &[],
        }
    }

    /// Whether something stood in the place of a number that is none.
    pub(crate) fn is_broken(&self, column: usize, row: usize) -> bool {
        match &self.columns[column].cells {
            Cells::Numbers(cells) => cells[row].to_bits() == BROKEN.to_bits(),
            Cells::Texts(_) => false,
        }
    }

    /// The bytes of all texts of a column.
    pub(crate) fn text_bytes(&self, column: usize) -> usize {
        match &self.columns[column].cells {
            Cells::Texts(cells) => cells.iter().map(|span| span.len as usize).sum(),
            Cells::Numbers(_) => 0,
        }
    }

    /// The text of a cell; `None` where it is missing, and in a column of numbers.
    #[inline]
    pub fn text(&self, column: usize, row: usize) -> Option<&[u8]> {
        match &self.columns[column].cells {
            Cells::Texts(cells) => {
                let Span { start, len } = cells[row];
                (len > 0).then(|| &self.texts[start as usize..][..len as usize])
            }
            Cells::Numbers(_) => None,
        }
    }

    /// Appends a cell that the source holds as text. Doubled `quote`s become one.
    #[inline(always)]
    pub(crate) fn push_text(&mut self, column: usize, bytes: &[u8], quote: Option<u8>) {
        let target = &mut self.columns[column];
        match (&mut target.cells, target.read) {
            (Cells::Numbers(cells), Read::Number) => match parse_number(bytes) {
                Number::Value(value) if self.missing.is_empty() || !is_word(bytes, &self.missing) => {
                    cells.push(value);
                }
                Number::Missing => cells.push(f64::NAN),
                _ => target.push_odd(bytes, &self.missing),
            },
            (Cells::Numbers(cells), Read::Time(format)) => match format.parse(bytes) {
                Some(value) => cells.push(value),
                None => target.push_odd(bytes, &self.missing),
            },
            (Cells::Numbers(cells), _) => match parse_boolean(bytes) {
                Some(value) => cells.push(f64::from(u8::from(value))),
                None => target.push_odd(bytes, &self.missing),
            },
            (Cells::Texts(cells), _) => {
                let trimmed = bytes.trim_ascii();
                if is_missing_or(trimmed, &self.missing) {
                    cells.push(NO_TEXT);
                    return;
                }
                let start = self.texts.len();
                match quote {
                    Some(quote) => push_unquoted(&mut self.texts, trimmed, quote),
                    None => self.texts.extend_from_slice(trimmed),
                }
                cells.push(span(start, self.texts.len()));
            }
        }
    }

    /// Appends a cell that the source holds as a number; written as text where texts are wanted.
    #[inline]
    pub(crate) fn push_number(&mut self, column: usize, value: f64) {
        let target = &mut self.columns[column];
        match &mut target.cells {
            Cells::Numbers(cells) if value.is_finite() => cells.push(value),
            Cells::Numbers(cells) => {
                cells.push(f64::NAN);
                if value.is_infinite() {
                    target.count_broken(&value.to_string());
                }
            }
            Cells::Texts(cells) if value.is_nan() || self.missing_numbers.contains(&value) => {
                cells.push(NO_TEXT)
            }
            Cells::Texts(cells) => {
                use std::io::Write;
                let start = self.texts.len();
                // Writing to a vector cannot fail.
                let _ = write!(self.texts, "{value}");
                cells.push(span(start, self.texts.len()));
            }
        }
    }

    /// Appends a truth; written as text where texts are wanted.
    #[inline]
    pub(crate) fn push_boolean(&mut self, column: usize, value: bool) {
        match &mut self.columns[column].cells {
            Cells::Numbers(cells) => cells.push(f64::from(u8::from(value))),
            Cells::Texts(_) => self.push_text(column, if value { b"true" } else { b"false" }, None),
        }
    }

    /// Appends many cells that the source holds as numbers, NaN where one is missing. Returns `false`, with
    /// nothing done, where texts are wanted.
    pub(crate) fn push_numbers(&mut self, column: usize, values: impl Iterator<Item = f64>) -> bool {
        let target = &mut self.columns[column];
        let Cells::Numbers(cells) = &mut target.cells else {
            return false;
        };
        let start = cells.len();
        cells.extend(values);
        if !self.missing_numbers.is_empty() {
            for cell in &mut cells[start..] {
                *cell = if self.missing_numbers.contains(cell) {
                    f64::NAN
                } else {
                    *cell
                };
            }
        }
        if cells[start..].iter().any(|cell| cell.is_infinite()) {
            target.drop_infinite(start);
        }
        true
    }

    #[inline]
    pub(crate) fn push_missing(&mut self, column: usize) {
        match &mut self.columns[column].cells {
            Cells::Numbers(cells) => cells.push(f64::NAN),
            Cells::Texts(cells) => cells.push(NO_TEXT),
        }
    }

    /// Appends a cell that is no text, in a column of texts.
    #[cold]
    pub(crate) fn push_broken(&mut self, column: usize, bytes: &[u8]) {
        self.push_missing(column);
        self.columns[column].count_broken(&String::from_utf8_lossy(bytes));
    }

    /// Appends the cell of an earlier row of the same column again.
    #[inline]
    pub(crate) fn push_again(&mut self, column: usize, row: usize) {
        match &mut self.columns[column].cells {
            Cells::Numbers(cells) => cells.push(cells[row]),
            Cells::Texts(cells) => cells.push(cells[row]),
        }
    }

    /// Ends rows whose cells were all pushed: `n` of them, numbered from `line` on.
    pub(crate) fn end_rows(&mut self, line: u64, n: usize) {
        self.lines.extend(line..line + n as u64);
    }

    /// Ends a row whose cells were all pushed.
    #[inline(always)]
    pub(crate) fn end_row(&mut self, line: u64) {
        self.lines.push(line);
    }

    /// Takes back the cells pushed since the last row ended; columns that lack one are as they were.
    pub(crate) fn drop_row(&mut self) {
        let rows = self.lines.len();
        for column in &mut self.columns {
            match &mut column.cells {
                Cells::Numbers(cells) => cells.truncate(rows),
                Cells::Texts(cells) => cells.truncate(rows),
            }
            if column.first_broken.as_ref().is_some_and(|(row, _)| *row >= rows) {
                column.first_broken = None;
                column.broken = 0;
            }
        }
    }
}

impl Column {
    /// Counts infinite numbers from `start` on as broken.
    #[cold]
    fn drop_infinite(&mut self, start: usize) {
        let Cells::Numbers(cells) = &mut self.cells else {
            return;
        };
        for (row, cell) in cells.iter_mut().enumerate().skip(start) {
            if cell.is_infinite() {
                self.broken += 1;
                self.first_broken.get_or_insert_with(|| (row, cell.to_string()));
                *cell = BROKEN;
            }
        }
    }

    /// A text where a number or a truth was wanted: a word for missing, or something broken.
    #[cold]
    fn push_odd(&mut self, bytes: &[u8], missing: &[String]) {
        if let Cells::Numbers(cells) = &mut self.cells {
            cells.push(f64::NAN);
        }
        if !is_missing_or(bytes, missing) {
            self.count_broken(&String::from_utf8_lossy(bytes.trim_ascii()));
        }
    }

    #[cold]
    fn count_broken(&mut self, value: &str) {
        self.broken += 1;
        if self.first_broken.is_none() {
            let row = match &self.cells {
                Cells::Numbers(cells) => cells.len(),
                Cells::Texts(cells) => cells.len(),
            };
            self.first_broken = Some((row - 1, shown(value)));
        }
        if let Cells::Numbers(cells) = &mut self.cells
            && let Some(cell) = cells.last_mut()
        {
            *cell = BROKEN;
        }
    }
}

fn number(word: &str) -> Option<f64> {
    match parse_number(word.as_bytes()) {
        Number::Value(value) => Some(value),
        _ => None,
    }
}

fn span(start: usize, end: usize) -> Span {
    Span {
        start: u32::try_from(start).unwrap_or(u32::MAX),
        len: u32::try_from(end - start).unwrap_or(u32::MAX),
    }
}

/// A value as a message shows it: at most 40 characters.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

fn push_unquoted(texts: &mut Vec<u8>, bytes: &[u8], quote: u8) {
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(quote, rest) {
        texts.extend_from_slice(&rest[..=at]);
        let doubled = rest.get(at + 1) == Some(&quote);
        rest = &rest[at + 1 + usize::from(doubled)..];
    }
    texts.extend_from_slice(rest);
}

/// Reads a truth as people and programs write it.
pub(crate) fn parse_boolean(bytes: &[u8]) -> Option<bool> {
    let word = bytes.trim_ascii();
    if word.len() > 5 {
        return None;
    }
    let mut lower = [0; 5];
    lower[..word.len()].copy_from_slice(word);
    lower.make_ascii_lowercase();
    match &lower[..word.len()] {
        b"true" | b"t" | b"yes" | b"y" | b"1" | b"on" | b"1.0" => Some(true),
        b"false" | b"f" | b"no" | b"n" | b"0" | b"off" | b"0.0" => Some(false),
        _ => None,
    }
}
