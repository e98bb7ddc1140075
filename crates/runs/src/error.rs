//! What can go wrong with the store, split by what the caller can do about it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action} {}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },

    #[error("cannot use the run database {}", path.display())]
    Database {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },

    #[error("{} was written by a newer version: its schema is {found}, this one knows up to {known}", path.display())]
    NewerSchema { path: PathBuf, found: i64, known: i64 },

    #[error("{name:?} cannot name a run")]
    Name { name: String },

    #[error("no run is called {reference:?}")]
    NotFound {
        reference: String,
        /// How many runs there are to choose from.
        known: u64,
    },

    #[error("{reference:?} fits {} runs: {}", candidates.len(), candidates.join(", "))]
    Ambiguous {
        reference: String,
        candidates: Vec<String>,
    },

    #[error("nothing was recorded at {}", path.display())]
    NotRecorded { path: PathBuf },

    #[error("run {id} is already over")]
    Over { id: String },

    #[error("{} is not a flight record: {found}", path.display())]
    NotAFlight { path: PathBuf, found: &'static str },

    #[error("{} is a flight record of version {found}, this one reads version {known}", path.display())]
    FlightVersion { path: PathBuf, found: u32, known: u32 },
}

impl Error {
    /// Of reading a recording, which may be none.
    pub(crate) fn reading(path: &Path) -> impl Fn(std::io::Error) -> Error + Copy {
        |source| match source.kind() {
            ErrorKind::NotFound => Error::NotRecorded { path: path.into() },
            _ => Error::Io {
                action: "read",
                path: path.into(),
                source,
            },
        }
    }

    /// Of beginning a file.
    pub(crate) fn creating(path: &Path) -> impl Fn(std::io::Error) -> Error + Copy {
        |source| Error::Io {
            action: "create",
            path: path.into(),
            source,
        }
    }

    /// What to do about it, where there is something to do.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Io { source, path, .. } => match source.kind() {
                ErrorKind::StorageFull => Some("free some disk space, or use another --home".into()),
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    Some("choose a writable folder with --home DIR".into())
                }
                ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
                    Some(format!("something else is in the way of {}: choose another --home DIR", path.display()))
                }
                _ => None,
            },
            Error::Database { path, source } => match source.sqlite_error_code() {
                Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
                    Some(format!("move {} away; the folders under runs/ stay as they are", path.display()))
                }
                Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                    Some("another program holds the database; try again".into())
                }
                Some(rusqlite::ErrorCode::DiskFull) => Some("free some disk space".into()),
                Some(rusqlite::ErrorCode::SystemIoFailure) => {
                    Some("check the disk: it may be full, or failing".into())
                }
                _ => None,
            },
            Error::NewerSchema { .. } | Error::FlightVersion { .. } => {
                Some("use the newer version, or another --home DIR".into())
            }
            Error::Name { .. } => Some(
                "use 1 to 64 letters, digits, dots, dashes or underscores, and not \"last\": --name flights-v2"
                    .into(),
            ),
            Error::NotFound { known: 0, .. } => Some("this home has no runs yet".into()),
            Error::NotFound { .. } => Some("`tidegate runs` lists them; `last` is the newest".into()),
            Error::Ambiguous { .. } => Some("write more of it".into()),
            Error::Over { .. } | Error::NotRecorded { .. } | Error::NotAFlight { .. } => None,
        }
    }
}
