//! A CSV file as a part of a source: blocks of text, decoded into chunks on several threads.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_memory::Ledger;

use super::blocks::{BlockReader, Cutter, TextBuffer};
use super::dialect::first_row;
use super::rows::{RowSink, walk_rows};
use super::{Dialect, DialectOptions, PADDING};
use crate::chunk::{Chunk, Read};
use crate::profile::{ColumnProfile, Look, Profile, look_at_csv, name_columns};
use crate::source::{Kind, Part, Piece, PieceSize, Pieces, Place, Position, Reading, SourceColumn};
use crate::{BadRows, Compression, Error, Fault, Input, Result};

/// A CSV file with the dialect that its first rows show.
pub(crate) struct CsvPart {
    input: Input,
    shape: CsvShape,
    /// A look at the file, where it was taken when the file was opened; of thousands of files only a few are
    /// looked at.
    /// What a look showed, until somebody asks: it is large for a table of many columns.
    profile: Mutex<Option<Profile>>,
    n_rows: Option<u64>,
}

/// What the files of a table have in common.
#[derive(Clone)]
pub(crate) struct CsvShape {
    pub dialect: Dialect,
    pub columns: Arc<[SourceColumn]>,
    /// Bytes of a row, as the file that was looked at has them.
    row_bytes: f64,
}

impl CsvPart {
    /// Looks at the file. `names` are columns that the user spoke of.
    pub(crate) fn open(
        input: Input,
        options: &DialectOptions,
        names: &[&str],
        missing: &[String],
        ledger: &Ledger,
    ) -> Result<CsvPart> {
        let look = Look {
            options,
            names,
            missing,
            budget: ledger.budget(),
        };
        let (dialect, profile) = look_at_csv(&input, &look, &ledger.holder("sample"))?;
        let shape = CsvShape {
            dialect,
            columns: untyped(profile.columns.iter().map(|look| look.name.clone())),
            row_bytes: profile.bytes as f64 / profile.rows.max(1) as f64,
        };
        Ok(CsvPart {
            input,
            shape,
            n_rows: profile.complete.then_some(profile.rows),
            profile: Mutex::new(Some(profile)),
        })
    }

    pub(crate) fn shape(&self) -> &CsvShape {
        &self.shape
    }
}

impl CsvShape {
    /// The same dialect, said rather than inferred.
    pub(crate) fn dialect_options(&self) -> DialectOptions {
        DialectOptions {
            delimiter: Some(self.dialect.delimiter),
            quote: Some(self.dialect.quote),
            header: Some(self.dialect.header),
        }
    }

    /// Opens another file of the table by its first row alone, which is in `padded[..end]`, the beginning of its
    /// text or all of it. `None` where that row says that the file is another table, or is not whole.
    pub(crate) fn open_like(&self, input: &Input, padded: &[u8], end: usize, all: bool) -> Option<CsvPart> {
        let mut cutter = Cutter::default();
        cutter.advance(padded, end, &self.dialect, all);
        let end = if all { end } else { cutter.last_row_end? };
        let names = name_columns(&first_row(padded, end, &self.dialect)?, self.dialect.header);
        let mut shape = self.clone();
        if !names.iter().eq(self.columns.iter().map(|column| &column.name)) {
            let is_known = |name: &String| self.columns.iter().any(|column| column.name == *name);
            if names.len() != self.columns.len() || !names.iter().all(is_known) {
                return None;
            }
            shape.columns = untyped(names.into_iter());
        }
        Some(CsvPart {
            input: input.clone(),
            shape,
            profile: Mutex::new(None),
            n_rows: None,
        })
    }
}

fn untyped(names: impl Iterator<Item = String>) -> Arc<[SourceColumn]> {
    let column = |name| SourceColumn {
        name,
        kind: Kind::Untyped,
    };
    names.map(column).collect()
}

impl Part for CsvPart {
    fn path(&self) -> &Path {
        self.input.path()
    }

    fn columns(&self) -> &[SourceColumn] {
        &self.shape.columns
    }

    fn bytes(&self) -> u64 {
        self.input.bytes()
    }

    fn n_rows(&self) -> Option<u64> {
        self.n_rows
    }

    fn rows_guess(&self) -> Option<u64> {
        let plain = self.input.compression() == Compression::Plain;
        self.n_rows().or_else(|| {
            (plain && self.shape.row_bytes > 0.0)
                .then(|| (self.input.bytes() as f64 / self.shape.row_bytes) as u64)
        })
    }

    fn fingerprint(&self) -> Result<u64> {
        self.input.fingerprint()
    }

    fn piece_size(&self, reading: &Reading) -> PieceSize {
        let text = match self.input.compression() {
            Compression::Plain => TextBuffer::bytes_needed().min(self.input.bytes()),
            Compression::Gzip | Compression::Zstd | Compression::Deflate => TextBuffer::bytes_needed(),
        };
        let likely_rows = (text as f64 / self.shape.row_bytes.max(1.0)).ceil() as u64;
        let has_texts = reading.wanted.iter().any(|wanted| wanted.read == Read::Text);
        PieceSize {
            text: TextBuffer::bytes_needed(),
            // Some more rows than the sample says, as buffers are made for them: a block is shorter than the sample, and its
            // rows differ more.
            rows: likely_rows + likely_rows / 6 + 1,
            // In large pages the kernel counts some of the rest, too.
            likely_rows: likely_rows + likely_rows / 16,
            texts: if has_texts { text } else { 0 },
            reader: 0,
        }
    }

    fn profile(&self, reading: &Reading, ledger: &Ledger) -> Result<Profile> {
        let known = self.profile.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(profile) = known {
            return Ok(profile);
        }
        let look = Look {
            options: &self.shape.dialect_options(),
            names: &[],
            missing: &reading.missing,
            budget: ledger.budget(),
        };
        match look_at_csv(&self.input, &look, &ledger.holder("sample")) {
            Ok((_, profile)) => Ok(profile),
            // One of many files may have no rows.
            Err(Error::HeaderOnly { .. }) => Ok(Profile {
                columns: self
                    .columns()
                    .iter()
                    .map(|column| ColumnProfile::new(&column.name, column.kind))
                    .collect(),
                rows: 0,
                bytes: 0,
                complete: true,
            }),
            Err(error) => Err(error),
        }
    }

    fn read<'a>(
        &'a self,
        _reading: &'a Reading,
        start: Position,
        ledger: &Ledger,
    ) -> Result<Box<dyn Pieces + 'a>> {
        let holder = ledger.holder(crate::BUFFERS);
        let blocks = BlockReader::new(&self.input, &self.shape.dialect, &holder, ledger.budget(), start)?;
        Ok(Box::new(CsvPieces { blocks }))
    }

    fn decode(&self, place: &Place, reading: &Reading, piece: &mut Piece) -> Result<()> {
        let Piece { text, chunk } = piece;
        let Some(text) = text else { return Ok(()) };
        let (padded, end) = text.padded();
        chunk.clear();
        let mut places = vec![None; self.columns().len()];
        for (at, wanted) in reading.wanted.iter().enumerate() {
            if let Some(column) = self
                .columns()
                .iter()
                .position(|column| column.name == wanted.name)
            {
                places[column] = Some(at);
            }
        }
        let quote = self
            .shape
            .dialect
            .quote
            .filter(|quote| memchr::memchr(*quote, &padded[..end]).is_some());
        let mut rows = Rows {
            part: self,
            bad_rows: reading.bad_rows,
            places: &places,
            quote,
            chunk,
            active: !(place.start.line == 1 && self.shape.dialect.header),
            // Whole blocks are checked at once; only a block that fails is checked row by row.
            check_utf8: std::str::from_utf8(&padded[..end]).is_err(),
            line: 0,
            failed: None,
        };
        walk_rows(padded, end, place.start.line, &self.shape.dialect, &mut rows);
        match rows.failed {
            Some((line, fault)) => Err(Error::BadRow {
                path: self.path().into(),
                line,
                fault: fault.into(),
            }),
            None => Ok(()),
        }
    }
}

struct CsvPieces {
    blocks: BlockReader,
}

impl Pieces for CsvPieces {
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
        while !chunk.reserve(place.lines, place.length) {
            if !make_room() {
                return Err(self.blocks.too_large(text, place.start.line, false));
            }
        }
        Ok(Some(place))
    }
}

/// Takes the rows of one block into a chunk.
struct Rows<'t> {
    part: &'t CsvPart,
    bad_rows: BadRows,
    /// Where the cells of each column go.
    places: &'t [Option<usize>],
    /// Set where the block holds quotes.
    quote: Option<u8>,
    chunk: &'t mut Chunk,
    /// Fields are of interest: neither those of the header nor those behind a fatal row.
    active: bool,
    check_utf8: bool,
    line: u64,
    /// The first bad row, where those are fatal.
    failed: Option<(u64, Fault)>,
}

impl Rows<'_> {
    #[cold]
    fn bad_row(&mut self, fault: Fault) {
        self.chunk.drop_row();
        match self.bad_rows {
            BadRows::Fail => {
                self.failed = Some((self.line, fault));
                self.active = false;
            }
            BadRows::Skip => {
                self.chunk.bad += 1;
                self.chunk.first_bad.get_or_insert((self.line, fault));
            }
        }
    }

    /// The column that holds the first byte of `row` which is not UTF-8.
    #[cold]
    fn not_utf8(&self, row: &[u8]) -> Option<Fault> {
        let broken = std::str::from_utf8(row).err()?.valid_up_to();
        let column = self
            .part
            .columns()
            .get(field_at(row, broken, &self.part.shape.dialect));
        Some(Fault::NotUtf8 {
            column: column.map(|column| column.name.clone()).unwrap_or_default(),
        })
    }
}

/// The field of a row in which a byte stands. Separators inside quotes do not count.
#[cold]
fn field_at(row: &[u8], byte: usize, dialect: &Dialect) -> usize {
    struct Before {
        address: usize,
        field: usize,
    }
    impl RowSink for Before {
        fn begin_row(&mut self, _line: u64) {}
        fn field(&mut self, column: usize, bytes: &[u8]) {
            if bytes.as_ptr() as usize <= self.address {
                self.field = column;
            }
        }
        fn end_row(&mut self, _fields: usize, _row: &[u8]) {}
    }
    let mut padded = row.to_vec();
    padded.resize(row.len() + PADDING, 0);
    let mut before = Before {
        address: padded.as_ptr() as usize + byte,
        field: 0,
    };
    walk_rows(&padded, row.len(), 1, dialect, &mut before);
    before.field
}

impl RowSink for Rows<'_> {
    #[inline(always)]
    fn begin_row(&mut self, line: u64) {
        if self.failed.is_none() {
            self.line = line;
        }
    }

    #[inline(always)]
    fn field(&mut self, column: usize, bytes: &[u8]) {
        if let (true, Some(&Some(at))) = (self.active, self.places.get(column)) {
            self.chunk.push_text(at, bytes, self.quote);
        }
    }

    #[inline(always)]
    fn end_row(&mut self, fields: usize, row: &[u8]) {
        if self.failed.is_some() || !std::mem::replace(&mut self.active, true) {
            return;
        }
        if fields != self.places.len() {
            return self.bad_row(Fault::Ragged {
                expected: self.places.len(),
                found: fields,
            });
        }
        if self.check_utf8
            && let Some(fault) = self.not_utf8(row)
        {
            return self.bad_row(fault);
        }
        self.chunk.end_row(self.line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_inside_quotes_part_no_fields() {
        let field = |row: &[u8]| {
            let byte = row.iter().position(|byte| *byte == 0xff).unwrap();
            field_at(row, byte, &Dialect::default())
        };
        assert_eq!(field(b"\xff,b,1"), 0);
        assert_eq!(field(b"a,\xff,1"), 1);
        assert_eq!(field(b"\"r,s\",\xff,1"), 1);
        assert_eq!(field(b"\"r,\n\"\",s\",\"x,\xff\",1"), 1);
        assert_eq!(field(b"a,\"r,s\"\xff,1\r"), 1);
        assert_eq!(field(b"a,b,\xff"), 2);
    }
}
