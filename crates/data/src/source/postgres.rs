//! PostgreSQL: the rows of a query, streamed by the server as text.
//!
//! `COPY (SELECT …) TO STDOUT` sends rows as fast as they are read, and neither side holds the answer. Only the
//! columns that are wanted are sent, times as seconds since 1970. Each pass is one transaction that only reads and
//! sees one state of the database; rows come in the order of the query, so a query without `ORDER BY` is asked
//! without the means (parallel workers, scans that join others) by which its order would change from pass to pass.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Duration;

use postgres::types::{Kind as TypeKind, Type};
use postgres::{Client, Config, NoTls, SimpleQueryMessage};
use tidegate_memory::Ledger;

use super::cursor::{Cursor, Feed, piece_size, pieces, places};
use super::{Kind, Part, Piece, PieceSize, Pieces, Place, Position, Reading, SourceColumn, sample};
use crate::chunk::{Chunk, Read, Wanted};
use crate::profile::Profile;
use crate::sketch::hash::hash;
use crate::{Error, Fault, Result};

/// What the connection holds: its buffers, a few rows, the event loop.
const READER_BYTES: u64 = 2 << 20;
const CONNECT_SECONDS: u64 = 10;
/// The longest row that is read at all, where the budget has little left.
const SHORTEST_LIMIT: u64 = 1 << 20;

/// A query to a PostgreSQL database.
pub(super) struct PostgresPart {
    config: Config,
    /// The address without the password.
    name: PathBuf,
    query: String,
    columns: Vec<SourceColumn>,
    types: Vec<Type>,
    /// As the planner guesses.
    rows: u64,
    row_bytes: u64,
}

/// Whether a name is the address of a database rather than a path.
pub(super) fn is_address(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.starts_with(b"postgres://") || bytes.starts_with(b"postgresql://")
}

/// The name as it may be shown and written down: addresses lose their password.
pub fn without_password(path: &Path) -> PathBuf {
    if !is_address(path) {
        return path.into();
    }
    match path.to_str().and_then(|address| address.parse::<Config>().ok()) {
        Some(config) => shown(&config),
        None => "postgresql://…".into(),
    }
}

fn shown(config: &Config) -> PathBuf {
    let mut name = String::from("postgresql://");
    if let Some(user) = config.get_user() {
        name.push_str(user);
        name.push('@');
    }
    match config.get_hosts().first() {
        Some(postgres::config::Host::Tcp(host)) => name.push_str(host),
        Some(postgres::config::Host::Unix(folder)) => name.push_str(&folder.to_string_lossy()),
        None => {}
    }
    if let Some(port) = config.get_ports().first().filter(|port| **port != 5432) {
        name.push_str(&format!(":{port}"));
    }
    name.push('/');
    name.push_str(config.get_dbname().unwrap_or_default());
    name.into()
}

impl PostgresPart {
    pub(super) fn open(address: &Path, query: Option<&str>) -> Result<PostgresPart> {
        let name = without_password(address);
        let parsed = address
            .to_str()
            .and_then(|address| address.parse::<Config>().ok());
        let Some(mut config) = parsed else {
            // The parser's own words may quote the password.
            return Err(Error::Connect {
                path: name,
                what: "the address is not one of the form postgresql://user@host/database".into(),
            });
        };
        let Some(query) = query else {
            return Err(Error::QueryNeeded { path: name });
        };
        if let (None, Ok(password)) = (config.get_password(), std::env::var("PGPASSWORD")) {
            config.password(password);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(CONNECT_SECONDS));
        }
        config.application_name("tidegate");
        let mut client = connect(&config, &name)?;
        let failed = |error| failed(&name, &error);
        let query = query.trim().trim_end_matches(';').to_string();
        let statement = client.prepare(&query).map_err(failed)?;
        let column = |column: &postgres::Column| SourceColumn {
            name: column.name().into(),
            kind: kind(column.type_()),
        };
        let columns: Vec<SourceColumn> = statement.columns().iter().map(column).collect();
        let refused = |what: String| Error::Query {
            path: name.clone(),
            what,
        };
        if columns.is_empty() {
            return Err(refused("it does not select rows".into()));
        }
        for (at, column) in columns.iter().enumerate() {
            if columns[..at].iter().any(|before| before.name == column.name) {
                return Err(refused(format!(
                    "two columns are named {:?}: name one of them anew with AS",
                    column.name
                )));
            }
        }
        let (rows, row_bytes) = guess(&mut client, &query).map_err(failed)?;
        let types = statement.columns().iter().map(|column| column.type_().clone());
        Ok(PostgresPart {
            types: types.collect(),
            config,
            name,
            query,
            columns,
            rows,
            row_bytes,
        })
    }

    /// The command that sends the wanted columns, from row `offset` on.
    fn copy(&self, reading: &Reading, offset: u64) -> Result<String> {
        let mut selected = Vec::new();
        for (place, wanted) in places(&self.columns, reading).into_iter().zip(&reading.wanted) {
            selected.push(match place {
                Some(place) => self.select(place, wanted)?,
                None => "NULL".into(),
            });
        }
        Ok(format!(
            "COPY (SELECT {} FROM (\n{}\n) AS q OFFSET {offset}) TO STDOUT",
            selected.join(", "),
            self.query
        ))
    }

    fn select(&self, place: usize, wanted: &Wanted) -> Result<String> {
        let name = format!("q.\"{}\"", wanted.name.replace('"', "\"\""));
        Ok(match (self.columns[place].kind, wanted.read) {
            (Kind::Unsupported, _) => {
                return Err(Error::ColumnType {
                    path: self.name.clone(),
                    column: wanted.name.clone(),
                    what: self.types[place].name().into(),
                });
            }
            (Kind::Time, Read::Number) => format!("extract(epoch FROM {name})"),
            (Kind::Number, Read::Number) if is_span(&self.types[place]) => {
                format!("extract(epoch FROM {name})")
            }
            (Kind::Boolean, Read::Number) => format!("{name}::int"),
            (_, Read::Text) => format!("{name}::text"),
            _ => name,
        })
    }
}

fn is_span(of: &Type) -> bool {
    matches!(*of, Type::INTERVAL | Type::TIME)
}

fn kind(of: &Type) -> Kind {
    match (of.kind(), of) {
        (TypeKind::Domain(inner), _) => kind(inner),
        (TypeKind::Enum(_), _) => Kind::Text,
        (
            _,
            &(Type::INT2
            | Type::INT4
            | Type::INT8
            | Type::FLOAT4
            | Type::FLOAT8
            | Type::NUMERIC
            | Type::OID
            | Type::INTERVAL
            | Type::TIME),
        ) => Kind::Number,
        (_, &Type::BOOL) => Kind::Boolean,
        (_, &(Type::DATE | Type::TIMESTAMP | Type::TIMESTAMPTZ)) => Kind::Time,
        (_, &(Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::CHAR | Type::UUID)) => {
            Kind::Text
        }
        (_, other) if other.name() == "citext" => Kind::Text,
        _ => Kind::Unsupported,
    }
}

fn connect(config: &Config, name: &Path) -> Result<Client> {
    config.connect(NoTls).map_err(|error| Error::Connect {
        path: name.into(),
        what: told(&error),
    })
}

/// What an error and its causes say.
fn told(error: &postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().into();
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn failed(name: &Path, error: &postgres::Error) -> Error {
    use postgres::error::ErrorPosition;
    let place = match error.as_db_error().and_then(|error| error.position()) {
        Some(ErrorPosition::Original(place)) => format!(" (character {place})"),
        _ => String::new(),
    };
    Error::Query {
        path: name.into(),
        what: told(error) + &place,
    }
}

/// How many rows the planner expects, and their bytes.
fn guess(client: &mut Client, query: &str) -> Result<(u64, u64), postgres::Error> {
    let answer = client.simple_query(&format!("EXPLAIN (FORMAT JSON) {query}"))?;
    let text = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let plan: serde_json::Value = text
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let number = |name: &str| plan[0]["Plan"][name].as_f64().unwrap_or(1.0).max(1.0) as u64;
    Ok((number("Plan Rows"), number("Plan Width")))
}

impl Part for PostgresPart {
    fn path(&self) -> &Path {
        &self.name
    }

    fn columns(&self) -> &[SourceColumn] {
        &self.columns
    }

    fn bytes(&self) -> u64 {
        self.rows.saturating_mul(self.row_bytes)
    }

    fn n_rows(&self) -> Option<u64> {
        None
    }

    fn rows_guess(&self) -> Option<u64> {
        Some(self.rows)
    }

    /// Of the question alone: what a database answers to it can change unnoticed.
    fn fingerprint(&self) -> Result<u64> {
        let text = format!("{} {} {:?}", self.name.display(), self.query, self.types);
        Ok(hash(text.as_bytes()))
    }

    fn piece_size(&self, reading: &Reading) -> PieceSize {
        piece_size(reading, READER_BYTES)
    }

    fn profile(&self, reading: &Reading, ledger: &Ledger) -> Result<Profile> {
        sample::profile(self, reading, &[Position::default()], ledger)
    }

    fn read<'a>(
        &'a self,
        reading: &'a Reading,
        start: Position,
        ledger: &Ledger,
    ) -> Result<Box<dyn Pieces + 'a>> {
        let copy = self.copy(reading, start.offset)?;
        let (config, name) = (self.config.clone(), self.name.clone());
        let longest = SHORTEST_LIMIT.max(ledger.free() / 4);
        let has_texts = reading.wanted.iter().any(|wanted| wanted.read == Read::Text);
        let n_columns = reading.wanted.len();
        let run = move |feed: &mut Feed| {
            feed.skipped();
            let mut client = connect(&config, &name)?;
            let cancel = client.cancel_token();
            let failed = |error: postgres::Error| failed(&name, &error);
            client
                .batch_execute(
                    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL synchronize_seqscans = off; \
                     SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL TimeZone = 'UTC'; \
                     SET LOCAL DateStyle = 'ISO'; SET LOCAL extra_float_digits = 1;",
                )
                .map_err(failed)?;
            let mut cursor = CopyCursor {
                name: &name,
                rows: client.copy_out(&copy).map_err(failed)?,
                row: Vec::new(),
                text: Vec::new(),
                n_columns,
                has_texts,
                longest,
                ended: false,
            };
            let served = feed.serve(&mut cursor);
            if !cursor.ended {
                // Otherwise the server would send the rest before the connection can end.
                let _ = cancel.cancel_query(NoTls);
            }
            served
        };
        Ok(Box::new(pieces(self, reading, start, ledger, run)?))
    }

    fn decode(&self, _place: &Place, _reading: &Reading, _piece: &mut Piece) -> Result<()> {
        Ok(())
    }
}

/// The rows of an answer in the text format of `COPY`: a line each, tabs between fields, `\N` for no value.
struct CopyCursor<'c> {
    name: &'c Path,
    rows: postgres::CopyOutReader<'c>,
    row: Vec<u8>,
    /// A field without its escapes.
    text: Vec<u8>,
    n_columns: usize,
    has_texts: bool,
    longest: u64,
    ended: bool,
}

impl Cursor for CopyCursor<'_> {
    fn advance(&mut self) -> Result<bool> {
        self.row.clear();
        loop {
            let bytes = self.rows.fill_buf().map_err(|error| {
                self.ended = true;
                let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
                match cause {
                    Some(cause) => failed(self.name, cause),
                    None => Error::Query {
                        path: self.name.into(),
                        what: error.to_string(),
                    },
                }
            })?;
            if bytes.is_empty() {
                self.ended = true;
                return Ok(false);
            }
            let end = memchr::memchr(b'\n', bytes);
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if (self.row.len() + part.len()) as u64 > self.longest {
                return Err(Error::Query {
                    path: self.name.into(),
                    what: format!("a row is larger than {} bytes", self.longest),
                });
            }
            self.row.extend_from_slice(part);
            let taken = part.len() + usize::from(end.is_some());
            self.rows.consume(taken);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    fn text_bytes(&self) -> Result<u64> {
        Ok(if self.has_texts { self.row.len() as u64 } else { 0 })
    }

    fn push(&mut self, chunk: &mut Chunk) -> Result<(), Fault> {
        let mut fields = self.row.split(|byte| *byte == b'\t');
        for at in 0..self.n_columns {
            match fields.next() {
                None | Some(b"\\N") => chunk.push_missing(at),
                Some(field) if memchr::memchr(b'\\', field).is_none() => chunk.push_text(at, field, None),
                Some(field) => {
                    unescape(field, &mut self.text);
                    chunk.push_text(at, &self.text, None);
                }
            }
        }
        Ok(())
    }
}

/// Undoes the escapes of `COPY`: a backslash before one of seven letters, or before itself.
fn unescape(field: &[u8], text: &mut Vec<u8>) {
    text.clear();
    let mut bytes = field.iter().copied();
    while let Some(byte) = bytes.next() {
        text.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'b') => 8,
                Some(b'f') => 12,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'v') => 11,
                Some(other) => other,
                None => b'\\',
            },
            byte => byte,
        });
    }
}
