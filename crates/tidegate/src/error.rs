//! What can go wrong with a verb, what to do about it, and the exit code it stands for.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use tidegate_memory::format_bytes;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Memory(#[from] tidegate_memory::Error),
    #[error(transparent)]
    Data(#[from] tidegate_data::Error),
    #[error(transparent)]
    Train(#[from] tidegate_train::Error),
    #[error(transparent)]
    Runs(#[from] tidegate_runs::Error),
    #[error(transparent)]
    Watch(#[from] tidegate_watch::Error),
    #[error(transparent)]
    Page(#[from] tidegate_page::Error),
    #[error("{}: {what}", path.display())]
    Job { path: PathBuf, what: String },
    #[error("{what}")]
    Usage { what: String, hint: String },
    #[error("{}: {what}", path.display())]
    Io {
        path: PathBuf,
        what: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("{}: {} are needed and {} are free", path.display(), format_bytes(*needed), format_bytes(*free))]
    DiskTooSmall { path: PathBuf, needed: u64, free: u64 },
    #[error("run {run} left no checkpoint")]
    NoCheckpoint { run: String },
    #[error("run {run} has no model: it {status}")]
    NoModel { run: String, status: String },
    /// The worker did not finish; its own words or what was measured of its death.
    #[error("{message}")]
    Ended {
        message: String,
        hint: Option<String>,
        exit_code: i32,
        run: Option<String>,
        /// The least budget that would do, where it was too small.
        least: Option<u64>,
    },
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Memory(error) => error.hint(),
            Error::Data(error) => error.hint(),
            Error::Train(error) => error.hint(),
            Error::Runs(error) => error.hint(),
            Error::Watch(error) => error.hint(),
            Error::Page(error) => error.hint(),
            Error::Job { .. } => Some("the README shows a job file".into()),
            Error::Usage { hint, .. } => Some(hint.clone()),
            Error::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free some disk space, or choose another folder".into())
            }
            Error::Io { .. } => None,
            Error::DiskTooSmall { .. } => {
                Some("free some space, choose another folder with --home, or a smaller --memory".into())
            }
            Error::NoCheckpoint { .. } => Some("start a new training".into()),
            Error::NoModel { run, .. } => Some(format!("see `tidegate show {run}`")),
            Error::Ended { hint, .. } => hint.clone(),
        }
    }

    /// 1: the run failed; 2: the request was wrong; 130, 143: stopped by a signal.
    pub fn exit_code(&self) -> i32 {
        match self {
            Error::Memory(_)
            | Error::Job { .. }
            | Error::Usage { .. }
            | Error::NoCheckpoint { .. }
            | Error::NoModel { .. } => 2,
            Error::Data(error) if error.is_usage() => 2,
            Error::Train(error) if error.is_usage() => 2,
            Error::Runs(
                tidegate_runs::Error::NotFound { .. }
                | tidegate_runs::Error::Ambiguous { .. }
                | tidegate_runs::Error::Name { .. },
            ) => 2,
            Error::Ended { exit_code, .. } => *exit_code,
            _ => 1,
        }
    }

    /// Whether more memory is what it wanted.
    pub(crate) fn is_for_memory(&self) -> bool {
        match self {
            Error::Data(error) => error.is_for_memory(),
            Error::Train(error) => error.is_for_memory(),
            _ => false,
        }
    }

    /// The least budget that would do, where it was too small.
    pub fn least(&self) -> Option<u64> {
        match self {
            Error::Train(tidegate_train::Error::BudgetTooSmall { least, .. }) => Some(*least),
            Error::Ended { least, .. } => *least,
            _ => None,
        }
    }

    /// The message with its causes, on one line.
    pub fn message(&self) -> String {
        let mut message = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // A transparent variant shows the same words as what it wraps, and some libraries repeat their
            // source in their own words.
            if !message.contains(&text) && !text.ends_with(last_part(&message)) {
                message.push_str(": ");
                message.push_str(&text);
            }
            cause = error.source();
        }
        message
    }
}

/// What stands behind the last colon.
fn last_part(message: &str) -> &str {
    message.rsplit(": ").next().unwrap_or(message)
}
