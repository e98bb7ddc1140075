//! Small files of a run, read with care: any may be missing, damaged or of another version.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::de::DeserializeOwned;

/// Larger ones are for programs: the page is to stay small.
const MOST_BYTES: u64 = 4 << 20;

/// What became of looking for a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found<T> {
    Yes(T),
    No,
    /// It is there and cannot be shown, and why.
    Damaged(String),
}

impl<T> Found<T> {
    pub(crate) fn value(&self) -> Option<&T> {
        match self {
            Found::Yes(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn trouble(&self) -> Option<&str> {
        match self {
            Found::Damaged(why) => Some(why),
            _ => None,
        }
    }

    fn and<U>(self, read: impl FnOnce(T) -> Result<U, String>) -> Found<U> {
        match self {
            Found::Yes(value) => read(value).map_or_else(Found::Damaged, Found::Yes),
            Found::No => Found::No,
            Found::Damaged(why) => Found::Damaged(why),
        }
    }
}

fn bytes(path: &Path) -> Found<Vec<u8>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Ok(file) = File::open(path) else {
        return Found::No;
    };
    let mut bytes = Vec::new();
    match file.take(MOST_BYTES + 1).read_to_end(&mut bytes) {
        Ok(n) if n as u64 > MOST_BYTES => Found::Damaged(format!("{name} is too large to be shown here")),
        Ok(_) => Found::Yes(bytes),
        Err(error) => Found::Damaged(format!("{name} cannot be read: {error}")),
    }
}

/// A file of JSON.
pub(crate) fn json<T: DeserializeOwned>(path: &Path) -> Found<T> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    bytes(path)
        .and(|bytes| serde_json::from_slice(&bytes).map_err(|error| format!("{name} is damaged: {error}")))
}

/// A file of text; what is no text in it is shown as such.
pub(crate) fn text(path: &Path) -> Found<String> {
    bytes(path).and(|bytes| Ok(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Whether a folder is there and has something in it.
pub(crate) fn is_filled(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}
