//! Where rows come from: files of several formats, folders of them, queries.
//!
//! A [`Source`] is one or more parts with the same columns, read one after another as pieces. A piece is cut
//! by the data alone, never by threads or budget, so that everything computed piece by piece comes out the same
//! on any machine. Text formats hand out text and decode it on several threads; typed formats fill the chunk
//! while they read.

mod arrow;
mod cells;
mod columns;
mod cursor;
mod files;
mod head;
mod json;
mod listing;
mod parquet;
mod pool;
mod postgres;
mod reader;
mod sample;
mod sqlite;
#[cfg(test)]
mod tests;
pub(crate) mod zip;

pub use self::postgres::without_password;
pub use files::SourceOptions;
pub(crate) use reader::SourceReader;

use std::ops::ControlFlow;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tidegate_memory::Ledger;

use crate::chunk::{Chunk, Wanted};
use crate::csv::blocks::TextBuffer;
use crate::{BadRows, Error, Profile, Result};

/// One or more parts with the same columns.
pub struct Source {
    parts: Vec<Box<dyn Part>>,
}

impl Source {
    /// The columns, in the order of the first part.
    pub fn columns(&self) -> &[SourceColumn] {
        self.parts[0].columns()
    }

    /// The first file, for messages that concern all of them.
    pub fn path(&self) -> &Path {
        self.parts[0].path()
    }

    /// The file of a part, or the database that is asked: as it may be shown.
    pub fn part_path(&self, part: usize) -> &Path {
        self.parts[part].path()
    }

    /// Whether rows may have columns that the first ones did not show.
    pub fn may_have_more_columns(&self) -> bool {
        self.parts.iter().any(|part| part.may_have_more_columns())
    }

    pub fn n_parts(&self) -> usize {
        self.parts.len()
    }

    /// Bytes on disk, of all parts.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes()).sum()
    }

    /// The number of rows where all formats tell it.
    pub fn n_rows(&self) -> Option<u64> {
        self.parts.iter().map(|part| part.n_rows()).sum()
    }

    /// The number of rows, or a guess by the size of the first ones.
    pub fn rows_guess(&self) -> Option<u64> {
        self.parts.iter().map(|part| part.rows_guess()).sum()
    }

    /// A number that changes when the contents do; the same for a copy.
    pub fn fingerprint(&self) -> Result<u64> {
        self.parts.iter().try_fold(self.parts.len() as u64, |sum, part| {
            Ok(sum.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ part.fingerprint()?)
        })
    }

    /// What the largest pieces take.
    pub(crate) fn piece_size(&self, reading: &Reading) -> PieceSize {
        let sizes = self.parts.iter().map(|part| part.piece_size(reading));
        let largest = sizes.reduce(|a, b| PieceSize {
            text: a.text.max(b.text),
            rows: a.rows.max(b.rows),
            likely_rows: a.likely_rows.max(b.likely_rows),
            texts: a.texts.max(b.texts),
            reader: a.reader.max(b.reader),
        });
        largest.expect("a source has at least one part")
    }

    /// Looks at a bounded sample: of one part, or of several spread over all of them.
    pub fn profile(&self, reading: &Reading, ledger: &Ledger) -> Result<Profile> {
        let n = self.parts.len();
        let mut profile = self.parts[0].profile(reading, ledger)?;
        for part in (1..n).filter(|i| is_looked_at(*i, n)).map(|i| &self.parts[i]) {
            profile.add(&part.profile(reading, ledger)?);
        }
        profile.complete &= n <= LOOKED_AT;
        Ok(profile)
    }

    /// Starts reading at `start`.
    pub(crate) fn read<'a>(
        &'a self,
        reading: &'a Reading,
        start: Position,
        ledger: &Ledger,
    ) -> Result<SourceReader<'a>> {
        SourceReader::new(&self.parts, reading, start, ledger)
    }

    /// Reads chunk by chunk on the calling thread, from `start` on; `take` is given each with the position behind it
    /// and may stop.
    pub fn scan(
        &self,
        reading: &Reading,
        start: Position,
        ledger: &Ledger,
        mut take: impl FnMut(&Chunk, Position) -> ControlFlow<()>,
    ) -> Result<()> {
        let holder = ledger.holder(crate::BUFFERS);
        let is_text = self.piece_size(reading).text > 0;
        let mut piece = Piece {
            text: is_text.then(|| TextBuffer::new(&holder)).transpose()?,
            chunk: Chunk::new(&reading.wanted, &reading.missing, &holder)?,
        };
        let mut reader = self.read(reading, start, ledger)?;
        while let Some(place) = reader.read(&mut piece, &mut || false)? {
            self.decode(&place, reading, &mut piece)?;
            if take(&piece.chunk, place.end()).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// What the reader of these columns holds beside the rows of a piece.
    pub fn reader_bytes(&self, reading: &Reading) -> u64 {
        self.piece_size(reading).reader
    }

    /// Makes a chunk of what was read, on any thread.
    pub(crate) fn decode(&self, place: &Place, reading: &Reading, piece: &mut Piece) -> Result<()> {
        self.parts[place.start.part].decode(place, reading, piece)
    }

    /// The error for a row of `place`.
    pub(crate) fn bad_row(&self, place: &Place, line: u64, fault: crate::Fault) -> Error {
        Error::BadRow {
            path: self.parts[place.start.part].path().into(),
            line,
            fault: fault.into(),
        }
    }
}

/// Parts that are looked at, at the most.
const LOOKED_AT: usize = 8;

/// Whether part `i` of `n` is among those that are looked at: all, or some from the first to the last.
fn is_looked_at(i: usize, n: usize) -> bool {
    n <= LOOKED_AT || (0..LOOKED_AT).any(|look| look * (n - 1) / (LOOKED_AT - 1) == i)
}

/// What a source says of a column before a value is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceColumn {
    pub name: String,
    pub kind: Kind,
}

/// The type that a source declares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// None: every value is text, and the values tell.
    #[default]
    Untyped,
    Number,
    Boolean,
    /// Seconds since 1970, UTC.
    Time,
    Text,
    /// Lists, structs and the like: left aside, and refused by name where they are asked for.
    Unsupported,
}

/// A place between two pieces: where reading can be taken up again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Pieces before this place.
    pub piece: u64,
    /// Parts before the one that this place is in.
    pub part: usize,
    /// The next row's line in its part, or its number; from 1, and 0 stands for the start of the part.
    pub line: u64,
    /// Bytes of decompressed text, or rows, before this place in its part.
    pub offset: u64,
    /// Bytes read so far, of all parts.
    pub consumed: u64,
}

/// What one piece is: where it starts and how much it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub start: Position,
    pub lines: u64,
    /// Bytes of text, or rows: what is added to the offset.
    pub length: u64,
    /// Bytes read when this piece was complete, of all parts.
    pub consumed: u64,
}

impl Place {
    pub(crate) fn end(&self) -> Position {
        Position {
            piece: self.start.piece + 1,
            part: self.start.part,
            line: self.start.line + self.lines,
            offset: self.start.offset + self.length,
            consumed: self.consumed,
        }
    }
}

/// The memory of one piece on its way.
pub(crate) struct Piece {
    /// For formats that are decoded from text.
    pub text: Option<TextBuffer>,
    pub chunk: Chunk,
}

/// What is to be read of a source, and what to do with what cannot be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    pub wanted: Vec<Wanted>,
    /// The user's own words for missing values.
    pub missing: Vec<String>,
    pub bad_rows: BadRows,
}

/// What pieces of a part take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PieceSize {
    /// Bytes of the text buffer; 0 for typed formats.
    pub text: u64,
    /// Rows that there is room for, and those that are likely there.
    pub rows: u64,
    pub likely_rows: u64,
    /// Bytes of the texts of all wanted columns.
    pub texts: u64,
    /// What the reader itself holds beside the pieces: pages, windows, rows under way.
    pub reader: u64,
}

/// One file, or one query.
pub(crate) trait Part: Send + Sync {
    /// The file, or the database that is asked.
    fn path(&self) -> &Path;
    fn columns(&self) -> &[SourceColumn];
    /// Whether rows may have columns beside these: where every row names its own.
    fn may_have_more_columns(&self) -> bool {
        false
    }
    /// Bytes on disk, as progress counts them.
    fn bytes(&self) -> u64;
    /// The number of rows where the format tells it.
    fn n_rows(&self) -> Option<u64>;
    /// A guess at the number of rows, where there is one.
    fn rows_guess(&self) -> Option<u64> {
        self.n_rows()
    }
    /// Changes when the contents do.
    fn fingerprint(&self) -> Result<u64>;
    fn piece_size(&self, reading: &Reading) -> PieceSize;
    /// Looks at a bounded sample.
    fn profile(&self, reading: &Reading, ledger: &Ledger) -> Result<Profile>;
    /// Starts reading at `start`, which is in this part.
    fn read<'a>(
        &'a self,
        reading: &'a Reading,
        start: Position,
        ledger: &Ledger,
    ) -> Result<Box<dyn Pieces + 'a>>;
    /// Makes a chunk of the text of a piece, on any thread; typed formats have done so while reading.
    fn decode(&self, place: &Place, reading: &Reading, piece: &mut Piece) -> Result<()>;
}

/// Reads a part piece by piece.
pub(crate) trait Pieces: Send {
    /// Fills `piece` with the next rows and makes its chunk large enough for them; `None` at the end. `make_room`
    /// is called when the budget refuses: it frees what it can and says whether it did.
    fn read(&mut self, piece: &mut Piece, make_room: &mut dyn FnMut() -> bool) -> Result<Option<Place>>;
}
