//! What can be wrong with data, with the place where it is wrong and what to do about it.

pub(crate) mod names;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_memory::{Refused, format_bytes};

use names::{nearest, quoted};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{}: no such file", path.display())]
    NotFound { path: PathBuf },
    #[error(transparent)]
    Outside(crate::Outside),
    #[error("{}: is a folder, not a file", path.display())]
    Directory { path: PathBuf },
    #[error("{}: is neither a file nor a folder", path.display())]
    NotAFile { path: PathBuf },
    #[error("{}: the file is empty", path.display())]
    Empty { path: PathBuf },
    #[error("{}: cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}: changed while it was being read", path.display())]
    Changed { path: PathBuf },
    #[error("{}: the {format} data is broken near byte {at}", path.display())]
    Compressed {
        path: PathBuf,
        format: &'static str,
        at: u64,
        #[source]
        source: io::Error,
    },
    #[error("{}: decompressing it needs a window of {}, more than the budget has left", path.display(), format_bytes(*window))]
    Window {
        path: PathBuf,
        window: u64,
        #[source]
        source: Box<Refused>,
    },
    #[error("{}: is not a text table: {what}", path.display())]
    NotText { path: PathBuf, what: &'static str },
    #[error("{}: holds a header and no rows", path.display())]
    HeaderOnly { path: PathBuf },
    #[error("{}:{line}: {fault}", path.display())]
    BadRow {
        path: PathBuf,
        line: u64,
        fault: Box<Fault>,
    },
    #[error("{}: none of the first {rows} rows can be used; line {line} has {fault}", path.display())]
    NoRowFits {
        path: PathBuf,
        rows: u64,
        line: u64,
        fault: Box<Fault>,
    },
    #[error("{}:{line}: this row is larger than the memory left for it: over {} of {}", path.display(), format_bytes(*bytes), format_bytes(*budget))]
    RowTooLarge {
        path: PathBuf,
        line: u64,
        bytes: u64,
        budget: u64,
        in_quotes: bool,
    },
    #[error("{}:{line}: a quoted field starts on this row and never ends", path.display())]
    UnclosedQuote { path: PathBuf, line: u64 },
    #[error("{} and {} have different columns{}", first.display(), other.display(), drift(missing, extra))]
    Drift {
        first: PathBuf,
        other: PathBuf,
        /// Columns of the first that the other lacks, and those that only the other has.
        missing: Vec<String>,
        extra: Vec<String>,
    },
    #[error("{}: there is no column {name:?}", path.display())]
    UnknownColumn {
        path: PathBuf,
        name: String,
        columns: Vec<String>,
    },
    #[error("{}: has none of the columns that the model was trained on: {}", path.display(), quoted(expected))]
    OtherTable {
        path: PathBuf,
        expected: Vec<String>,
        found: Vec<String>,
    },
    #[error("{}: the target {column:?} has no value in any row", path.display())]
    TargetMissing { path: PathBuf, column: String },
    /// Which rows were asked for, as `meets --where "age > 30"`.
    #[error("{}: no row {which}", path.display())]
    NoRowUsed { path: PathBuf, which: String },
    #[error("{}: the target {column:?} has only one value, {value:?}", path.display())]
    TargetConstant {
        path: PathBuf,
        column: String,
        value: String,
    },
    #[error("{}: the target {column:?} holds texts, not numbers: {}", path.display(), quoted(values))]
    TargetNotANumber {
        path: PathBuf,
        column: String,
        values: Vec<String>,
    },
    #[error("{}: the target {column:?} has more than {most} different values", path.display())]
    TooManyClasses {
        path: PathBuf,
        column: String,
        most: usize,
    },
    #[error("{}: the target {column:?} has more than two values: {}", path.display(), quoted(values))]
    TargetNotBinary {
        path: PathBuf,
        column: String,
        values: Vec<String>,
    },
    #[error("{}: no column beside the target {target:?} tells anything", path.display())]
    NoFeatures {
        path: PathBuf,
        target: String,
        left_out: Vec<String>,
    },
    #[error("trees take dense columns, and {} would need {} for {places} columns of zeros", quoted(columns), format_bytes(*dense_bytes))]
    SparseForTrees {
        columns: Vec<String>,
        places: u64,
        dense_bytes: u64,
    },
    #[error("{}: its {columns} columns are more than the budget can hold", path.display())]
    Columns {
        path: PathBuf,
        columns: u64,
        needed: u64,
        #[source]
        source: Box<Refused>,
    },
    #[error("not enough memory for {what}")]
    Memory {
        what: &'static str,
        #[source]
        source: Box<Refused>,
    },
    #[error("{}: holds no data files", path.display())]
    EmptyFolder { path: PathBuf },
    #[error("{}: holds folders, such as {}", path.display(), inner.display())]
    NestedFolder { path: PathBuf, inner: PathBuf },
    #[error("{pattern}: no file matches this pattern")]
    NothingMatches { pattern: String },
    #[error("{pattern}: not a pattern: {what} (character {at})")]
    Pattern {
        pattern: String,
        at: usize,
        what: &'static str,
    },
    #[error("{} is {first_format} and {} is {other_format}", first.display(), other.display())]
    MixedFormats {
        first: PathBuf,
        first_format: &'static str,
        other: PathBuf,
        other_format: &'static str,
    },
    #[error("{}: the zip archive is broken", path.display())]
    Archive {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}: the pack is damaged in batch {batch}", path.display())]
    PackDamaged { path: PathBuf, batch: u64 },
    #[error("{}: the packs there cannot be changed", path.display())]
    Packs {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}: holds no table: {members} files{}", path.display(), among(first))]
    NoTables {
        path: PathBuf,
        members: u64,
        first: Vec<String>,
    },
    #[error("{}: cannot be read from its archive: it {what}", path.display())]
    Member { path: PathBuf, what: String },
    #[error("{}: is one JSON list instead of an object a line", path.display())]
    JsonList { path: PathBuf },
    #[error("{}:{line}: {fault}, and no other line seen holds an object", path.display())]
    NotJsonLines {
        path: PathBuf,
        line: u64,
        fault: Box<Fault>,
    },
    #[error("{}: there is no database to ask among what was named", path.display())]
    NothingToAsk { path: PathBuf },
    #[error("{}: the query fails: {what}", path.display())]
    Query { path: PathBuf, what: String },
    #[error("{}: holds {}", path.display(), tables_held(tables))]
    WhichTable { path: PathBuf, tables: Vec<String> },
    #[error("{}: the query ended without an answer", path.display())]
    Stopped { path: PathBuf },
    #[error("{}: the {format} data is broken{place}", path.display())]
    Broken {
        path: PathBuf,
        format: &'static str,
        /// Where in the file, as ` in row group 3, column "x"`; empty for all of it.
        place: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("{}: {place} needs {}, more than is left of {}", path.display(), format_bytes(*bytes), format_bytes(*budget))]
    PieceTooLarge {
        path: PathBuf,
        format: &'static str,
        /// What is too large: `a page of column "text" in row group 3`.
        place: String,
        bytes: u64,
        budget: u64,
    },
    #[error("{}: column {column:?} holds {what}, not single values", path.display())]
    Unsupported {
        path: PathBuf,
        column: String,
        /// The type, as `List(Int64)`.
        what: String,
    },
    #[error("{}: holds no rows", path.display())]
    NoRows { path: PathBuf },
    #[error("{}: cannot be reached: {what}", path.display())]
    Connect { path: PathBuf, what: String },
    #[error("{}: a database needs a query", path.display())]
    QueryNeeded { path: PathBuf },
    #[error("{}: column {column:?} is of type {what}, which is no number, time or text", path.display())]
    ColumnType {
        path: PathBuf,
        column: String,
        what: String,
    },
    #[error("character {at} of the condition {text:?}: {what}")]
    Condition {
        text: String,
        /// The place, from 1.
        at: usize,
        what: String,
    },
    #[error("the condition compares {column:?} with {compared_with}, and {column:?} holds {holds}")]
    OtherKind {
        column: String,
        compared_with: String,
        holds: &'static str,
        such_as: &'static str,
    },
    #[error(transparent)]
    NoPack(#[from] crate::PackProblem),
    #[error(transparent)]
    Array(Box<crate::arrays::ArrayProblem>),
    #[error(transparent)]
    Images(Box<crate::images::ImageProblem>),
}

/// What is wrong with one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
pub enum Fault {
    #[error("{found} fields where the table has {expected} columns")]
    Ragged { expected: usize, found: usize },
    #[error("column {column:?}: bytes that are not UTF-8")]
    NotUtf8 { column: String },
    #[error("target {column:?}: {value:?} is another value beside {}", quoted(known))]
    OtherValue {
        column: String,
        value: String,
        known: Vec<String>,
    },
    #[error("target {column:?}: {value:?} is not a number")]
    TargetNotANumber { column: String, value: String },
    #[error("character {at}: {what}")]
    Json { at: usize, what: String },
    #[error("column {column:?}: {bytes} bytes that are no text")]
    Blob { column: String, bytes: usize },
}

impl Error {
    /// Why a path cannot be looked at.
    pub(crate) fn of_path(path: &Path, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::NotFound => Error::NotFound { path: path.into() },
            _ => Error::Unreadable {
                path: path.into(),
                source,
            },
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Error::NotFound { .. } => "check the path".into(),
            Error::Outside(outside) => outside.hint(),
            Error::Directory { .. } => "name one CSV file in it".into(),
            Error::NotAFile { .. } => "write the data to a file first: every epoch reads it again".into(),
            Error::Empty { .. } => "check what wrote the file".into(),
            Error::HeaderOnly { .. } => {
                "check what wrote the file; if the first row is data, say --header no".into()
            }
            Error::Unreadable { .. } => return None,
            Error::Changed { .. } => "train on a copy, or wait until the file is complete".into(),
            Error::Compressed { .. } => "the file is cut off or damaged: copy or compress it again".into(),
            Error::Window { .. } => "give more --memory, or compress it again without --long".into(),
            Error::NotText { .. } => "give a CSV file: plain, gzip or zstd".into(),
            Error::BadRow { fault, .. } => return fault.hint(),
            Error::RowTooLarge { in_quotes: true, .. } | Error::UnclosedQuote { .. } => {
                "a quote may be missing its partner; if quotes mean nothing in this file, say --quote none"
                    .into()
            }
            Error::RowTooLarge { bytes, .. } => {
                format!(
                    "give more --memory (at least {}), or check that the file has line ends",
                    format_bytes(bytes * 4)
                )
            }
            Error::Drift { .. } => {
                "name files with the same columns, or train on one kind of them at a time".into()
            }
            Error::UnknownColumn { columns, .. } | Error::OtherTable { found: columns, .. }
                if columns.len() == 1 && columns[0].contains([',', ';', '\t', '|']) =>
            {
                format!(
                    "the file has one column, {:?}: name its separator with --delimiter",
                    columns[0]
                )
            }
            Error::UnknownColumn { name, columns, .. } => match nearest(name, columns) {
                Some(near) => format!("did you mean {near:?}? The columns are {}", quoted(columns)),
                None => format!("the columns are {}", quoted(columns)),
            },
            Error::OtherTable { expected, found, .. } => {
                let near = expected.iter().find_map(|name| nearest(name, found));
                let meant = near.map_or(String::new(), |near| format!("; is {near:?} one of them?"));
                format!("the columns are {}{meant}", quoted(found))
            }
            Error::TargetMissing { .. } => "choose another --target".into(),
            Error::NoRowUsed { .. } => "ask for other rows with --where, or for more with --sample".into(),
            Error::OtherKind { such_as, .. } => format!("compare it with {such_as}, or ask whether it is null"),
            Error::TargetConstant { .. } => {
                "there is nothing to learn: choose another --target, or check how the file was filtered"
                    .into()
            }
            Error::TargetNotANumber { .. } => {
                "leave out --task regression to predict one of the values".into()
            }
            Error::TooManyClasses { .. } => {
                "choose another --target; if it is a number to predict, say --task regression".into()
            }
            Error::TargetNotBinary { values, .. } if values.iter().all(|value| is_number(value)) => {
                "for a number say --task regression, for several values --task multiclass".into()
            }
            Error::TargetNotBinary { .. } => "say --task multiclass".into(),
            Error::NoFeatures { left_out, .. } if !left_out.is_empty() => {
                format!(
                    "these were left out: {}; give one a role in [features] of a job file",
                    quoted(left_out)
                )
            }
            Error::NoFeatures { .. } => {
                "if all fields ended up in one column, name the separator: --delimiter ';'".into()
            }
            Error::SparseForTrees { .. } => {
                "encode = \"impact\" takes one column for each, fewer bits less, --model linear takes them as they are"
                    .into()
            }
            Error::NoRowFits { .. } => "check the separator (--delimiter) and the header (--header)".into(),
            // The program itself and its buffers take about as much again as a narrow table needs.
            Error::Columns { needed, .. } => format!(
                "give at least --memory {}MB",
                (needed * 3 / 2 + 24_000_000).div_ceil(1_000_000)
            ),
            Error::Memory { .. } => "give more --memory".into(),
            Error::EmptyFolder { .. } => {
                "check the path; files whose names begin with . or _ are passed over".into()
            }
            Error::NestedFolder { path, .. } => format!(
                "name the folder that holds the files, or all of them by a pattern: '{}/**/*.csv'",
                path.display()
            ),
            Error::NothingMatches { .. } => {
                "check the pattern: * and ? stay within one folder, ** crosses folders".into()
            }
            Error::Pattern { .. } => "write [[] for a bracket that stands for itself".into(),
            Error::MixedFormats { .. } => "name the files of one format by a pattern, such as '*.csv'".into(),
            Error::Archive { .. } => "the archive is cut off or damaged: copy or pack it again".into(),
            Error::NoTables { .. } => {
                "pack files named .csv, .tsv or .jsonl; save a spreadsheet as CSV".into()
            }
            Error::JsonList { path } => format!(
                "write an object a line: jq -c '.[]' {} > rows.jsonl",
                path.display()
            ),
            Error::NotJsonLines { path, .. } => {
                format!("write an object a line: jq -c . {} > rows.jsonl", path.display())
            }
            Error::NothingToAsk { .. } => "leave --query away, or name a database".into(),
            Error::Query { .. } => "try the query in the database's own shell".into(),
            Error::WhichTable { tables, .. } => match tables.first() {
                Some(table) => format!("say which: --query 'SELECT * FROM {table:?}'"),
                None => "check the path".into(),
            },
            Error::Stopped { .. } => "this is a fault of the program: please report it".into(),
            Error::Connect { .. } => {
                "check the address; the password comes with it or in PGPASSWORD; TLS is not spoken".into()
            }
            Error::QueryNeeded { .. } => "say what to read: --query 'SELECT …'".into(),
            Error::ColumnType { column, .. } => {
                format!("leave it out of the query, or read it as text: {column}::text")
            }
            Error::Condition { .. } => {
                "columns stand bare or in backticks, texts in quotes: age >= 18 and `home town` = 'Oslo'"
                    .into()
            }
            Error::Member { .. } => "pack it again with the usual compression and without a password".into(),
            Error::Broken { .. } => "the file is cut off or damaged: copy or write it again".into(),
            Error::PieceTooLarge {
                path,
                format,
                bytes,
                budget,
                ..
            } => {
                let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
                let smaller = match *format {
                    "Parquet" => format!(
                        "python -c \"import pyarrow.parquet as p; \
                         p.write_table(p.read_table({name:?}), 'smaller.parquet', \
                         row_group_size=50000, data_page_size=65536)\""
                    ),
                    _ => format!(
                        "python -c \"import pyarrow.feather as f; \
                         f.write_feather(f.read_table({name:?}), 'smaller.arrow', chunksize=10000)\""
                    ),
                };
                format!(
                    "give at least --memory {}MB, or write it in smaller pieces: {smaller}",
                    (budget + bytes).div_ceil(1_000_000)
                )
            }
            Error::Unsupported { .. } => "write its parts as columns of their own, or leave it out".into(),
            Error::NoRows { .. } => "check what wrote the file".into(),
            Error::PackDamaged { .. } => "run it again: the pack was removed and will be built anew".into(),
            Error::Packs { .. } => "check who owns the folder".into(),
            Error::Array(problem) => return problem.hint(),
            Error::Images(problem) => return problem.hint(),
            Error::NoPack(_) => "make room on the disk, or name another folder with --home".into(),
        };
        Some(hint)
    }

    /// Whether more memory is what it wanted.
    pub fn is_for_memory(&self) -> bool {
        use Error::{Columns, Memory, PieceTooLarge, RowTooLarge};
        matches!(
            self,
            Columns { .. } | Memory { .. } | PieceTooLarge { .. } | RowTooLarge { .. }
        )
    }

    /// Whether the request was wrong rather than the data: a path, a name, a choice.
    pub fn is_usage(&self) -> bool {
        if let Error::Array(problem) = self {
            return problem.is_usage();
        }
        if let Error::Images(problem) = self {
            return problem.is_usage();
        }
        matches!(
            self,
            Error::NotFound { .. }
                | Error::Outside(_)
                | Error::Directory { .. }
                | Error::NotAFile { .. }
                | Error::Drift { .. }
                | Error::UnknownColumn { .. }
                | Error::OtherTable { .. }
                | Error::Columns { .. }
                | Error::EmptyFolder { .. }
                | Error::NestedFolder { .. }
                | Error::NothingMatches { .. }
                | Error::Pattern { .. }
                | Error::MixedFormats { .. }
                | Error::NoTables { .. }
                | Error::NothingToAsk { .. }
                | Error::Query { .. }
                | Error::WhichTable { .. }
                | Error::Unsupported { .. }
                | Error::Connect { .. }
                | Error::QueryNeeded { .. }
                | Error::ColumnType { .. }
                | Error::Condition { .. }
                | Error::OtherKind { .. }
        )
    }
}

impl From<Refused> for Error {
    fn from(source: Refused) -> Error {
        let source = Box::new(source);
        Error::Memory {
            what: "reading the data",
            source,
        }
    }
}

impl From<crate::arrays::ArrayProblem> for Error {
    fn from(problem: crate::arrays::ArrayProblem) -> Error {
        Error::Array(Box::new(problem))
    }
}

impl From<crate::images::ImageProblem> for Error {
    fn from(problem: crate::images::ImageProblem) -> Error {
        Error::Images(Box::new(problem))
    }
}

impl Fault {
    pub fn hint(&self) -> Option<String> {
        Some(
            match self {
                Fault::Ragged { .. } => {
                    "mend the row, name the separator with --delimiter, or leave such rows out: --bad-rows skip"
                }
                Fault::NotUtf8 { .. } => {
                    "convert the file (iconv -f latin1 -t utf-8), or leave such rows out: --bad-rows skip"
                }
                Fault::OtherValue { value, known, .. } if !(is_number(value) && known.iter().all(|known| is_number(known))) => {
                    "for more than two values say --task multiclass; or mend the value, or leave such rows out: --bad-rows skip"
                }
                Fault::OtherValue { .. } => {
                    "for more than two values say --task multiclass, for a number to predict --task regression; \
                     to leave such rows out: --bad-rows skip"
                }
                Fault::Blob { .. } => "leave the column out of the query, or make text of it: CAST(x AS TEXT)",
                Fault::Json { .. } => "mend the line, or leave such rows out: --bad-rows skip",
                Fault::TargetNotANumber { .. } => {
                    "mend the value, name the word for missing values (--missing WORD), \
                     or leave such rows out: --bad-rows skip"
                }
            }
            .into(),
        )
    }
}

fn is_number(text: &str) -> bool {
    matches!(crate::parse_number(text.as_bytes()), crate::Number::Value(_))
}

/// What one file lacks and what it has beside.
fn drift(missing: &[String], extra: &[String]) -> String {
    let mut text = String::new();
    if !missing.is_empty() {
        text.push_str(&format!(": the second lacks {}", quoted(missing)));
    }
    if !extra.is_empty() {
        let begin = if missing.is_empty() {
            ": the second"
        } else {
            " and"
        };
        text.push_str(&format!("{begin} has {} beside", quoted(extra)));
    }
    text
}

fn tables_held(tables: &[String]) -> String {
    match tables.is_empty() {
        true => "no tables".into(),
        false => format!("several tables: {}", quoted(tables)),
    }
}

fn among(first: &[String]) -> String {
    match first.is_empty() {
        true => String::new(),
        false => format!(", {} among them", quoted(first)),
    }
}
