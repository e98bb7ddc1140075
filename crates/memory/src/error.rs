//! What can go wrong here, as fields: a size nobody can read, a machine that tells nothing, no cgroup.

use crate::{Bound, format_bytes};

/// The errors of this crate. A refused request for bytes is a [`Refused`](crate::Refused) instead: it is
/// an answer to plan with, not a failure.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("`{text}` is not an amount of memory: {problem} (write `2GB`, `1.5GiB`, `512M` or `80%`)")]
    Size { text: String, problem: SizeProblem },

    #[error("this machine tells no memory limit and no available memory ({} bounds were tried)", .bounds.len())]
    NoBound { bounds: Vec<Bound> },

    #[error("no memory is left for a job: {} allows {} B", .bound.name, .bytes)]
    NothingLeft { bound: Bound, bytes: u64 },

    #[error("process {process} is in no memory cgroup that is visible here: {reason}")]
    NoCgroup { process: String, reason: String },
}

impl Error {
    /// What a person can do about it, where there is something to do.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Size { problem, .. } => problem.hint(),
            Error::NoBound { .. } => Some("give the budget in bytes, for example --memory 2GB".to_owned()),
            Error::NothingLeft { bound, .. } => Some(format!("raise or remove it: {}", bound.name)),
            Error::NoCgroup { .. } => None,
        }
    }
}

/// Why a text is not an amount of memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeProblem {
    #[error("it is empty")]
    Empty,
    #[error("it is negative")]
    Negative,
    #[error("it has no number in front")]
    NoNumber,
    #[error("it is zero, or less than one byte")]
    Zero,
    #[error("it is more than 100%")]
    OverWhole,
    #[error("`{unit}` is not a unit")]
    UnknownUnit { unit: String },
    #[error("it is more than {} can be counted to", format_bytes(u64::MAX))]
    Overflow,
}

impl SizeProblem {
    fn hint(&self) -> Option<String> {
        match self {
            SizeProblem::UnknownUnit { .. } => {
                Some("units are B, K, M, G, T (also KB, MB, ...), KiB, MiB, GiB, TiB and %".to_owned())
            }
            SizeProblem::OverWhole => Some("100% is all that the machine or container allows".to_owned()),
            _ => None,
        }
    }
}
