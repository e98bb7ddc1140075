//! From what a person names to files: a file, a folder, a pattern.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_memory::Grant;

use crate::{Error, Result};

/// What one name stands for: a file, or those of a folder or pattern in the order of their names.
pub(super) struct Listed {
    pub files: Vec<PathBuf>,
    /// The files were found rather than named: they are to be of one format, and empty ones are passed over.
    pub found: bool,
}

/// What a name takes as long as a source lives, beside its letters: the path, the part, what both are boxed in.
const FILE_BYTES: u64 = 512;

/// Endings of data files; behind them may stand an ending of [`PACKED`].
const DATA: [&str; 14] = [
    "csv", "tsv", "tab", "psv", "jsonl", "ndjson", "json", "parquet", "arrow", "feather", "ipc", "sqlite",
    "db", "zip",
];
const PACKED: [&str; 4] = ["gz", "gzip", "zst", "zstd"];

/// Resolves one name. Room for the list is taken from `grant`.
pub(super) fn list(path: &Path, grant: &mut Grant) -> Result<Listed> {
    let mut files = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => folder(path, grant)?,
        Ok(_) => return Ok(single(path)),
        Err(_) => match path.to_str().filter(|name| name.contains(['*', '?', '['])) {
            Some(name) => pattern(name, grant)?,
            // Opening it says what is wrong.
            None => return Ok(single(path)),
        },
    };
    files.sort();
    Ok(Listed { files, found: true })
}

fn single(path: &Path) -> Listed {
    Listed {
        files: vec![path.into()],
        found: false,
    }
}

/// The data files of a folder. Folders inside it are refused rather than walked: they may hold another table, and
/// where their names hold values (`year=2020`) those would be lost without a word.
fn folder(path: &Path, grant: &mut Grant) -> Result<Vec<PathBuf>> {
    let unreadable = |source| Error::Unreadable {
        path: path.into(),
        source,
    };
    let (mut files, mut inner) = (Vec::new(), None);
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?.path();
        if is_hidden(&entry) {
            continue;
        }
        if entry.is_dir() {
            inner = Some(inner.map_or(entry.clone(), |inner: PathBuf| inner.min(entry)));
            continue;
        }
        grant.try_grow(FILE_BYTES + entry.as_os_str().len() as u64)?;
        files.push(entry);
    }
    if let Some(inner) = inner {
        return Err(Error::NestedFolder {
            path: path.into(),
            inner,
        });
    }
    if files.iter().any(|file| is_data(file)) {
        files.retain(|file| is_data(file));
    }
    match files.is_empty() {
        true => Err(Error::EmptyFolder { path: path.into() }),
        false => Ok(files),
    }
}

/// The files that a pattern matches; folders are not among them.
fn pattern(name: &str, grant: &mut Grant) -> Result<Vec<PathBuf>> {
    let options = glob::MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };
    let found = glob::glob_with(name, options).map_err(|error| Error::Pattern {
        pattern: name.into(),
        at: error.pos + 1,
        what: error.msg,
    })?;
    let asks_for_hidden = Path::new(name).file_name().is_some_and(|name| {
        let name = name.as_encoded_bytes();
        name.starts_with(b"_") || name.starts_with(b".")
    });
    let mut files = Vec::new();
    for path in found {
        let path = path.map_err(|error| Error::Unreadable {
            path: error.path().into(),
            source: error.into(),
        })?;
        if !path.is_dir() && (asks_for_hidden || !is_hidden(&path)) {
            grant.try_grow(FILE_BYTES + path.as_os_str().len() as u64)?;
            files.push(path);
        }
    }
    match files.is_empty() {
        true => Err(Error::NothingMatches { pattern: name.into() }),
        false => Ok(files),
    }
}

/// Hidden files, and the marks that writers leave beside their data: `_SUCCESS`, `_committed_1234`, `__MACOSX`.
pub(super) fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| matches!(name.as_encoded_bytes().first(), Some(b'.' | b'_')))
}

/// Whether the ending is that of a data file. Where a folder has such files, the others are about them.
pub(super) fn is_data(path: &Path) -> bool {
    ending(path).is_some_and(|ending| DATA.contains(&ending.as_str()))
}

/// The ending that tells the format, in small letters: `csv` of `a.CSV.gz`.
pub(super) fn ending(path: &Path) -> Option<String> {
    let lower = |path: &Path| path.extension()?.to_str().map(str::to_lowercase);
    match lower(path) {
        Some(ending) if PACKED.contains(&ending.as_str()) => lower(Path::new(path.file_stem()?)),
        ending => ending,
    }
}
