//! SQLite: the rows of a query, or of the only table of a file.
//!
//! The file is opened for reading only, with a small page cache of a fixed size; sorting spills to temporary files
//! beyond that. Rows come in the order in which SQLite hands them out, which is the same each time as long as the
//! file is.

use std::fs::File;
use std::path::Path;

use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator as _;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Rows};
use tidegate_memory::Ledger;

use super::cells::{NUMBER_LETTERS, push_float, push_integer};
use super::cursor::{Cursor, Feed, piece_size, pieces, places};
use super::{Kind, Part, Piece, PieceSize, Pieces, Place, Position, Reading, SourceColumn, sample};
use crate::chunk::{Chunk, Read, Wanted};
use crate::input::drop_cached;
use crate::profile::{Profile, name_columns};
use crate::sketch::hash::hash;
use crate::{Error, Fault, Input, Result};

/// The page cache, in KiB, and what it, the sorter and a statement take at the most.
const CACHE_KIB: i64 = 2048;
const READER_BYTES: u64 = 6 << 20;
/// The longest text that is read at all, where the budget has little left.
const SHORTEST_LIMIT: u64 = 1 << 20;
/// Pages that the kernel keeps are dropped after so many bytes of rows.
const DROP_BYTES: u64 = 8 << 20;

/// A query to an SQLite file.
pub(super) struct SqlitePart {
    input: Input,
    query: String,
    columns: Vec<SourceColumn>,
    rows_guess: Option<u64>,
}

impl SqlitePart {
    /// Opens the file and prepares the query, or one for its only table.
    pub(super) fn open(input: Input, query: Option<&str>) -> Result<SqlitePart> {
        let connection = connect(&input, SHORTEST_LIMIT)?;
        let failed = |error| failed(input.path(), error);
        let (query, rows_guess) = match query {
            Some(query) => (query.to_string(), None),
            None => {
                let table = only_table(&connection, input.path())?;
                // The highest number of a row; tables without such numbers are not guessed at.
                let last = connection.query_row(&format!("SELECT max(rowid) FROM {table}"), [], |row| {
                    row.get::<_, Option<i64>>(0)
                });
                let guess = last.ok().flatten().and_then(|last| u64::try_from(last).ok());
                (format!("SELECT * FROM {table}"), guess)
            }
        };
        let columns = {
            let statement = connection.prepare(&query).map_err(failed)?;
            let refused = |what: &str| Error::Query {
                path: input.path().into(),
                what: what.into(),
            };
            if !statement.readonly() || statement.column_count() == 0 {
                return Err(refused("it does not select rows"));
            }
            let names: Vec<String> = statement.column_names().map(String::from).collect();
            let kinds: Vec<Kind> = statement
                .columns()
                .map(|column| declared(column.decl_type()))
                .collect();
            let names = name_columns(&names, true);
            let column = |(name, kind)| SourceColumn { name, kind };
            names.into_iter().zip(kinds).map(column).collect()
        };
        Ok(SqlitePart {
            input,
            query,
            columns,
            rows_guess,
        })
    }
}

/// A connection that only reads, in little memory, and refuses longer texts than the limit.
fn connect(input: &Input, longest: u64) -> Result<Connection> {
    let failed = |error| failed(input.path(), error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(input.path(), flags).map_err(failed)?;
    connection
        .execute_batch(&format!(
            "PRAGMA cache_size = -{CACHE_KIB}; PRAGMA mmap_size = 0; PRAGMA temp_store = FILE; PRAGMA query_only = 1;"
        ))
        .map_err(failed)?;
    let longest = i32::try_from(longest).unwrap_or(i32::MAX);
    connection
        .set_limit(Limit::SQLITE_LIMIT_LENGTH, longest)
        .map_err(failed)?;
    Ok(connection)
}

fn failed(path: &Path, error: rusqlite::Error) -> Error {
    let what = match error {
        rusqlite::Error::SqliteFailure(code, Some(message)) if message.is_empty() => code.to_string(),
        rusqlite::Error::SqliteFailure(_, Some(message)) => message,
        rusqlite::Error::SqlInputError { msg, offset, .. } => match usize::try_from(offset) {
            Ok(offset) => format!("{msg} (character {})", offset + 1),
            Err(_) => msg,
        },
        other => other.to_string(),
    };
    Error::Query {
        path: path.into(),
        what,
    }
}

/// The name of the only table, quoted.
fn only_table(connection: &Connection, path: &Path) -> Result<String> {
    let failed = |error| failed(path, error);
    let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
               ORDER BY name";
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let names = statement
        .query_map([], |row| row.get::<_, String>(0))
        .map_err(failed)?;
    let mut tables = names.collect::<Result<Vec<String>, _>>().map_err(failed)?;
    match tables.len() {
        1 => Ok(format!("\"{}\"", tables.swap_remove(0).replace('"', "\"\""))),
        _ => Err(Error::WhichTable {
            path: path.into(),
            tables,
        }),
    }
}

/// What a column is declared to hold. SQLite enforces none of it, and what was imported from CSV is often declared
/// text: only declared numbers, truths and bytes count, and the values have to bear them out.
fn declared(name: Option<&str>) -> Kind {
    let name = name.unwrap_or_default().to_uppercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match () {
        _ if has(&["BOOL"]) => Kind::Boolean,
        _ if has(&["INT", "REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL"]) => Kind::Number,
        _ if has(&["BLOB"]) => Kind::Unsupported,
        _ => Kind::Untyped,
    }
}

impl Part for SqlitePart {
    fn path(&self) -> &Path {
        self.input.path()
    }

    fn columns(&self) -> &[SourceColumn] {
        &self.columns
    }

    fn bytes(&self) -> u64 {
        self.input.bytes()
    }

    fn n_rows(&self) -> Option<u64> {
        None
    }

    fn rows_guess(&self) -> Option<u64> {
        self.rows_guess
    }

    fn fingerprint(&self) -> Result<u64> {
        // What is written but not yet in the file itself stands beside it.
        let mut log = self.input.path().as_os_str().to_owned();
        log.push("-wal");
        let logged = std::fs::metadata(log).map_or(0, |metadata| metadata.len());
        Ok(self.input.fingerprint()? ^ hash(self.query.as_bytes()) ^ logged)
    }

    fn piece_size(&self, reading: &Reading) -> PieceSize {
        piece_size(reading, READER_BYTES)
    }

    fn profile(&self, reading: &Reading, ledger: &Ledger) -> Result<Profile> {
        sample::profile_declared(self, reading, ledger)
    }

    fn read<'a>(
        &'a self,
        reading: &'a Reading,
        start: Position,
        ledger: &Ledger,
    ) -> Result<Box<dyn Pieces + 'a>> {
        let file = self.input.open_unchanged()?;
        let (input, query) = (self.input.clone(), self.query.clone());
        let longest = SHORTEST_LIMIT.max(ledger.free() / 4);
        let wanted: Vec<_> = places(&self.columns, reading)
            .into_iter()
            .zip(&reading.wanted)
            .map(|(place, wanted)| (place, wanted.clone()))
            .collect();
        let words = !reading.missing.is_empty();
        let run = move |feed: &mut Feed| {
            let connection = connect(&input, longest)?;
            let failed = |error| failed(input.path(), error);
            let mut statement = connection.prepare(&query).map_err(failed)?;
            let mut cursor = SqliteCursor {
                input: &input,
                rows: statement.query([]).map_err(failed)?,
                wanted,
                words,
                file,
                read: 0,
            };
            feed.serve(&mut cursor)
        };
        Ok(Box::new(pieces(self, reading, start, ledger, run)?))
    }

    fn decode(&self, _place: &Place, _reading: &Reading, _piece: &mut Piece) -> Result<()> {
        Ok(())
    }
}

struct SqliteCursor<'c> {
    input: &'c Input,
    rows: Rows<'c>,
    /// The wanted columns, and where each stands in the answer.
    wanted: Vec<(Option<usize>, Wanted)>,
    words: bool,
    file: File,
    /// Bytes of rows since pages were last dropped.
    read: u64,
}

impl SqliteCursor<'_> {
    fn cell(&self, place: Option<usize>) -> ValueRef<'_> {
        match (self.rows.get(), place) {
            (Some(row), Some(place)) => row.get_ref(place).unwrap_or(ValueRef::Null),
            _ => ValueRef::Null,
        }
    }
}

impl Cursor for SqliteCursor<'_> {
    fn advance(&mut self) -> Result<bool> {
        self.rows
            .advance()
            .map_err(|error| failed(self.input.path(), error))?;
        if self.read > DROP_BYTES {
            self.read = 0;
            drop_cached(&self.file);
        }
        Ok(self.rows.get().is_some())
    }

    fn text_bytes(&self) -> Result<u64> {
        let texts = self.wanted.iter().filter(|(_, wanted)| wanted.read == Read::Text);
        let bytes = texts.map(|(place, _)| match self.cell(*place) {
            ValueRef::Text(text) => text.len() as u64,
            ValueRef::Null => 0,
            _ => NUMBER_LETTERS,
        });
        Ok(bytes.sum())
    }

    fn push(&mut self, chunk: &mut Chunk) -> Result<(), Fault> {
        let mut read = 0;
        for (at, (place, wanted)) in self.wanted.iter().enumerate() {
            read += 8;
            match self.cell(*place) {
                ValueRef::Null => chunk.push_missing(at),
                ValueRef::Integer(value) => push_integer(chunk, at, value.into(), self.words),
                ValueRef::Real(value) => push_float(chunk, at, value, self.words),
                ValueRef::Text(text) => {
                    read += text.len() as u64;
                    if std::str::from_utf8(text).is_err() {
                        let column = wanted.name.clone();
                        return Err(Fault::NotUtf8 { column });
                    }
                    chunk.push_text(at, text, None);
                }
                ValueRef::Blob(blob) => {
                    return Err(Fault::Blob {
                        column: wanted.name.clone(),
                        bytes: blob.len(),
                    });
                }
            }
        }
        self.read += read;
        Ok(())
    }
}
