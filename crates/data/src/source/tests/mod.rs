//! What a source hands out, cell by cell: the help of the tests of all formats.

mod json;
mod listing;
mod postgres;
mod sqlite;
mod zip;

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tidegate_memory::Ledger;

use super::{Piece, Place, Position, Reading, Source, SourceOptions};
use crate::chunk::{Chunk, Read, Wanted};
use crate::csv::blocks::TextBuffer;
use crate::{BadRows, Error, Result};

pub(super) const ROOMY: u64 = 64 << 20;

/// Files in a folder of their own.
pub(super) struct Folder(TempDir);

impl Folder {
    pub(super) fn new(files: &[(&str, &[u8])]) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        for (name, bytes) in files {
            folder.write(name, bytes);
        }
        folder
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn open(&self, name: &str) -> Result<Source> {
        open(&self.path(name))
    }

    /// The error of opening, without the folder's own name in it.
    pub(super) fn refused(&self, name: &str) -> String {
        let error = self.open(name).err().expect("it is refused");
        assert!(error.hint().is_some(), "{error}");
        error
            .to_string()
            .replace(&format!("{}/", self.0.path().display()), "")
    }
}

pub(super) fn open(path: &Path) -> Result<Source> {
    open_with(path, &SourceOptions::default())
}

pub(super) fn open_with(path: &Path, options: &SourceOptions) -> Result<Source> {
    let ledger = Ledger::new(ROOMY);
    let source = Source::open(&[path.into()], options, &[], &ledger);
    assert_eq!(ledger.used(), 0, "opening gives everything back");
    source
}

/// All columns as texts.
pub(super) fn texts(source: &Source) -> Reading {
    reading(source, Read::Text)
}

pub(super) fn reading(source: &Source, read: Read) -> Reading {
    let wanted = |column: &super::SourceColumn| Wanted {
        name: column.name.clone(),
        read,
    };
    Reading {
        wanted: source.columns().iter().map(wanted).collect(),
        missing: Vec::new(),
        bad_rows: BadRows::Fail,
    }
}

/// A row: its part, its line and its cells.
pub(super) type Row = (usize, u64, Vec<String>);

pub(super) struct Pieces {
    pub rows: Vec<Row>,
    /// Where each piece ended, with the rows before that.
    pub places: Vec<(Position, usize)>,
    pub bad: u64,
}

/// Reads a source from `start` on under a budget; every grant has to come back.
pub(super) fn read(source: &Source, reading: &Reading, start: Position, budget: u64) -> Result<Pieces> {
    let ledger = Ledger::new(budget);
    let mut pieces = Pieces {
        rows: Vec::new(),
        places: Vec::new(),
        bad: 0,
    };
    let result = read_into(source, reading, start, &ledger, &mut pieces);
    assert_eq!(ledger.used(), 0, "reading gives everything back");
    result.map(|()| pieces)
}

fn read_into(
    source: &Source,
    reading: &Reading,
    start: Position,
    ledger: &Ledger,
    pieces: &mut Pieces,
) -> Result<()> {
    let holder = ledger.holder("test");
    let size = source.piece_size(reading);
    let mut piece = Piece {
        text: (size.text > 0).then(|| TextBuffer::new(&holder)).transpose()?,
        chunk: Chunk::new(&reading.wanted, &reading.missing, &holder)?,
    };
    let mut reader = source.read(reading, start, ledger)?;
    while let Some(place) = reader.read(&mut piece, &mut || false)? {
        source.decode(&place, reading, &mut piece)?;
        take(&place, reading, &piece.chunk, pieces);
        assert!(place.consumed <= source.bytes(), "{place:?}");
    }
    Ok(())
}

fn take(place: &Place, reading: &Reading, chunk: &Chunk, pieces: &mut Pieces) {
    for row in 0..chunk.n_rows() {
        let cell = |column: usize| match reading.wanted[column].read {
            Read::Text => chunk.text(column, row).map_or("-".into(), |text| {
                String::from_utf8(text.to_vec()).expect("texts are UTF-8")
            }),
            Read::Number | Read::Boolean | Read::Time(_) => match chunk.numbers(column)[row] {
                number if number.is_nan() => "-".into(),
                number => number.to_string(),
            },
        };
        let cells = (0..reading.wanted.len()).map(cell).collect();
        pieces.rows.push((place.start.part, chunk.lines[row], cells));
    }
    assert!(
        chunk.n_rows() as u64 + chunk.bad <= place.lines,
        "a piece makes room for its rows"
    );
    pieces.bad += chunk.bad;
    pieces.places.push((place.end(), pieces.rows.len()));
}

/// Reads everything as text.
pub(super) fn rows(source: &Source) -> Result<Vec<Row>> {
    Ok(read(source, &texts(source), Position::default(), ROOMY)?.rows)
}

/// The cells of all rows as text, a row as one string.
pub(super) fn lines(source: &Source) -> Vec<String> {
    let rows = rows(source).unwrap();
    rows.into_iter().map(|(.., cells)| cells.join(" ")).collect()
}

/// Pieces are the same under any budget that serves, and reading can be taken up after every one of them.
pub(super) fn check_pieces(source: &Source, small: u64) {
    let reading = texts(source);
    let whole = read(source, &reading, Position::default(), ROOMY).unwrap();
    let tight = read(source, &reading, Position::default(), small).unwrap();
    assert!(!whole.rows.is_empty());
    assert_eq!(whole.rows, tight.rows);
    assert_eq!(whole.places, tight.places);
    for (place, before) in &whole.places {
        let rest = read(source, &reading, *place, ROOMY).unwrap();
        assert_eq!(rest.rows, whole.rows[*before..], "taken up at {place:?}");
        assert_eq!(
            rest.places
                .last()
                .map_or(whole.places.last().unwrap().0, |last| last.0),
            whole.places.last().unwrap().0
        );
    }
}

#[test]
fn too_small_a_budget_is_refused_and_never_exceeded() {
    let folder = Folder::new(&[("a.csv", b"a,b\n1,2\n")]);
    let source = folder.open("a.csv").unwrap();
    let error = read(&source, &texts(&source), Position::default(), 4096).err();
    assert!(matches!(error, Some(Error::Memory { .. })), "{error:?}");
}
