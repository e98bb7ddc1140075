//! JSON lines: one object a line, its keys the columns, decoded on several threads.
//!
//! A line end inside a JSON string is always written as an escape, so a line is a row, and blocks are cut as those
//! of CSV are. Values of nested objects are columns named `a.b`. Lists have no place in a table: in a column that
//! also holds other values they count as broken, and a key that holds nothing else is no column. Keys that the
//! sample does not show are passed over.

mod look;
mod object;

pub(super) use look::look;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tidegate_memory::Ledger;

use super::cells::{push_float, push_integer, push_truth};
use super::{Part, Piece, PieceSize, Pieces, Place, Position, Reading, SourceColumn};
use crate::chunk::{Chunk, Read};
use crate::csv::Dialect;
use crate::csv::blocks::{BlockReader, TextBuffer};
use crate::profile::{ColumnProfile, Profile};
use crate::{BadRows, Compression, Error, Fault, Input, Result};
use object::{Sink, Value, walk};

/// A file of JSON lines.
pub(super) struct JsonPart {
    input: Input,
    /// The keys of all files of the source.
    columns: Arc<[SourceColumn]>,
    /// A look at the file, where one was taken.
    profile: Option<Profile>,
    /// Bytes of a row, by this file or another one.
    row_bytes: f64,
}

/// Lines as rows: nothing is quoted, for the cutter.
pub(super) fn dialect() -> Dialect {
    Dialect {
        quote: None,
        header: false,
        ..Dialect::default()
    }
}

/// Makes parts of files, some of which were looked at: their columns are the keys that any of them showed.
pub(super) fn parts(files: Vec<(Input, Option<Profile>)>) -> Vec<JsonPart> {
    let mut columns: Vec<SourceColumn> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let (mut rows, mut bytes) = (0, 0);
    for profile in files.iter().filter_map(|(_, profile)| profile.as_ref()) {
        (rows, bytes) = (rows + profile.rows, bytes + profile.bytes);
        for look in &profile.columns {
            let at = *places.entry(look.name.clone()).or_insert(columns.len());
            match columns.get_mut(at) {
                Some(column) if column.kind == look.kind => {}
                Some(column) => column.kind = super::Kind::Untyped,
                None => columns.push(SourceColumn {
                    name: look.name.clone(),
                    kind: look.kind,
                }),
            }
        }
    }
    let columns: Arc<[SourceColumn]> = columns.into();
    let part = |(input, profile): (Input, Option<Profile>)| JsonPart {
        input,
        profile: profile.map(|profile| aligned(profile, &columns)),
        columns: columns.clone(),
        row_bytes: bytes as f64 / rows.max(1) as f64,
    };
    files.into_iter().map(part).collect()
}

/// A profile with all columns of the source, in their order; what the file lacks is missing in all its rows.
fn aligned(mut profile: Profile, columns: &[SourceColumn]) -> Profile {
    let mut looks: HashMap<String, ColumnProfile> = std::mem::take(&mut profile.columns)
        .into_iter()
        .map(|look| (look.name.clone(), look))
        .collect();
    let rows = profile.rows;
    let column = |column: &SourceColumn| {
        let mut look = looks.remove(&column.name).unwrap_or_else(|| {
            let mut look = ColumnProfile::new(&column.name, column.kind);
            look.missing = rows;
            look
        });
        look.kind = column.kind;
        look
    };
    profile.columns = columns.iter().map(column).collect();
    profile
}

impl Part for JsonPart {
    fn path(&self) -> &Path {
        self.input.path()
    }

    fn columns(&self) -> &[SourceColumn] {
        &self.columns
    }

    fn may_have_more_columns(&self) -> bool {
        true
    }

    fn bytes(&self) -> u64 {
        self.input.bytes()
    }

    fn n_rows(&self) -> Option<u64> {
        let profile = self.profile.as_ref()?;
        profile.complete.then_some(profile.rows)
    }

    fn rows_guess(&self) -> Option<u64> {
        let plain = self.input.compression() == Compression::Plain && self.row_bytes > 0.0;
        self.n_rows()
            .or_else(|| plain.then(|| (self.input.bytes() as f64 / self.row_bytes) as u64))
    }

    fn fingerprint(&self) -> Result<u64> {
        self.input.fingerprint()
    }

    fn piece_size(&self, reading: &Reading) -> PieceSize {
        let text = match self.input.compression() {
            Compression::Plain => TextBuffer::bytes_needed().min(self.input.bytes()),
            _ => TextBuffer::bytes_needed(),
        };
        // Some more rows than the sample says, as buffers are made for them.
        let likely_rows = (text as f64 / self.row_bytes.max(1.0)).ceil() as u64;
        let rows = likely_rows + likely_rows / 6 + 1;
        PieceSize {
            text: TextBuffer::bytes_needed(),
            rows,
            likely_rows: likely_rows + likely_rows / 16,
            texts: text_bytes(reading, rows, text),
            reader: 0,
        }
    }

    fn profile(&self, reading: &Reading, ledger: &Ledger) -> Result<Profile> {
        match &self.profile {
            Some(profile) => Ok(profile.clone()),
            None => Ok(aligned(
                look(&self.input, &reading.missing, ledger)?,
                &self.columns,
            )),
        }
    }

    fn read<'a>(
        &'a self,
        reading: &'a Reading,
        start: Position,
        ledger: &Ledger,
    ) -> Result<Box<dyn Pieces + 'a>> {
        let holder = ledger.holder(crate::BUFFERS);
        let blocks = BlockReader::new(&self.input, &dialect(), &holder, ledger.budget(), start)?;
        Ok(Box::new(JsonPieces { blocks, reading }))
    }

    fn decode(&self, place: &Place, reading: &Reading, piece: &mut Piece) -> Result<()> {
        let Piece { text, chunk } = piece;
        let Some(text) = text else { return Ok(()) };
        let (padded, end) = text.padded();
        chunk.clear();
        let mut cells = Cells::new(&self.columns, reading, chunk);
        let mut key = String::new();
        for (line, number) in lines(&padded[..end]).zip(place.start.line..) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match walk(line, &mut key, &mut cells) {
                Ok(()) => cells.end_row(number),
                Err(error) => cells.bad_row(&self.input, number, fault(line, &error))?,
            }
        }
        Ok(())
    }
}

/// The lines of a text whose last one ends.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    memchr::memchr_iter(b'\n', text).map(move |end| {
        let line = &text[start..end];
        start = end + 1;
        line
    })
}

/// What is wrong with a line, and at which of its characters.
fn fault(line: &[u8], error: &serde_json::Error) -> Fault {
    let at = error.column().min(line.len());
    let text = error.to_string();
    Fault::Json {
        at: String::from_utf8_lossy(&line[..at]).chars().count().max(1),
        // The place stands in its words too, as line 1 of the one line that it was given.
        what: text
            .rsplit_once(" at line ")
            .map_or(text.as_str(), |(what, _)| what)
            .into(),
    }
}

/// Bytes of texts that a block can come to. `1e15` takes four letters more often than not, and sixteen where it is
/// written as text; with its key and comma that is at most twice what it was.
fn text_bytes(reading: &Reading, rows: u64, length: u64) -> u64 {
    let is_text = |wanted: &&crate::chunk::Wanted| wanted.read == Read::Text;
    match reading.wanted.iter().filter(is_text).count() as u64 {
        0 => 0,
        n => (length + 16 * rows * n).min(2 * length),
    }
}

struct JsonPieces<'a> {
    blocks: BlockReader,
    reading: &'a Reading,
}

impl Pieces for JsonPieces<'_> {
    fn read(&mut self, piece: &mut Piece, make_room: &mut dyn FnMut() -> bool) -> Result<Option<Place>> {
        let Piece {
            text: Some(text),
            chunk,
        } = piece
        else {
            return Ok(None);
        };
        let Some(place) = self.blocks.read(text, make_room)? else {
            return Ok(None);
        };
        let texts = text_bytes(self.reading, place.lines, place.length);
        while !chunk.reserve(place.lines, texts) {
            if !make_room() {
                return Err(self.blocks.too_large(text, place.start.line, false));
            }
        }
        Ok(Some(place))
    }
}

/// Takes values into a chunk by their keys.
struct Cells<'c> {
    chunk: &'c mut Chunk,
    bad_rows: BadRows,
    /// The keys in the order that most objects have, and where their values go.
    order: Vec<(&'c str, Option<usize>)>,
    /// Where the next key is expected.
    next: usize,
    places: HashMap<&'c str, usize>,
    /// The row in which each wanted column last got a value, from 1.
    filled: Vec<u64>,
    row: u64,
    words: bool,
}

impl<'c> Cells<'c> {
    fn new(columns: &'c [SourceColumn], reading: &'c Reading, chunk: &'c mut Chunk) -> Cells<'c> {
        let places: HashMap<&str, usize> = reading
            .wanted
            .iter()
            .enumerate()
            .map(|(at, wanted)| (wanted.name.as_str(), at))
            .collect();
        let order = columns
            .iter()
            .map(|column| (column.name.as_str(), places.get(column.name.as_str()).copied()));
        Cells {
            chunk,
            bad_rows: reading.bad_rows,
            order: order.collect(),
            next: 0,
            places,
            filled: vec![0; reading.wanted.len()],
            row: 1,
            words: !reading.missing.is_empty(),
        }
    }

    #[inline]
    fn find(&mut self, key: &str) -> Option<usize> {
        match self.order.get(self.next) {
            Some((name, at)) if *name == key => {
                self.next += 1;
                *at
            }
            _ => self.places.get(key).copied(),
        }
    }

    fn end_row(&mut self, line: u64) {
        for (at, filled) in self.filled.iter().enumerate() {
            if *filled != self.row {
                self.chunk.push_missing(at);
            }
        }
        self.chunk.end_row(line);
        self.begin_row();
    }

    fn begin_row(&mut self) {
        self.row += 1;
        self.next = 0;
    }

    #[cold]
    fn bad_row(&mut self, input: &Input, line: u64, fault: Fault) -> Result<()> {
        self.chunk.drop_row();
        self.begin_row();
        match self.bad_rows {
            BadRows::Fail => Err(Error::BadRow {
                path: input.path().into(),
                line,
                fault: fault.into(),
            }),
            BadRows::Skip => {
                self.chunk.bad += 1;
                self.chunk.first_bad.get_or_insert((line, fault));
                Ok(())
            }
        }
    }
}

impl Sink for Cells<'_> {
    fn value(&mut self, key: &str, value: Value) -> Result<(), String> {
        let Some(at) = self.find(key) else { return Ok(()) };
        if std::mem::replace(&mut self.filled[at], self.row) == self.row {
            return Err(format!("the key {key:?} stands twice in one object"));
        }
        match value {
            Value::Null => self.chunk.push_missing(at),
            Value::Boolean(value) => push_truth(self.chunk, at, value),
            Value::Integer(value) => push_integer(self.chunk, at, value.into(), self.words),
            Value::Unsigned(value) => push_integer(self.chunk, at, value.into(), self.words),
            Value::Float(value) => push_float(self.chunk, at, value, self.words),
            Value::Text(text) => self.chunk.push_text(at, text.as_bytes(), None),
            Value::List if self.chunk.columns[at].read == Read::Text => self.chunk.push_missing(at),
            Value::List => self.chunk.push_text(at, b"[...]", None),
        }
        Ok(())
    }
}
