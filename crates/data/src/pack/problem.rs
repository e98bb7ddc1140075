//! Why there is no pack: something to tell the user, never a reason to stop.

use std::io;
use std::path::PathBuf;

use tidegate_memory::{Refused, format_bytes};

/// Why a pack is not made, or not used. Training goes on from the source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackProblem {
    #[error("no pack: it needs {} and the disk has {} free", format_bytes(*needed), format_bytes(*free))]
    NoSpace { needed: u64, free: u64 },
    #[error("no pack: the disk was full after {}", format_bytes(*written))]
    Full { written: u64 },
    #[error("no pack: {} cannot be written", path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("no pack: {} cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("no pack: the budget has no room for it")]
    Memory,
    #[error(
        "no pack: {} is in memory (a tmpfs), where its {} would count against the budget; choose a folder on a disk, by --home",
        path.display(),
        format_bytes(*needed)
    )]
    InMemory { path: PathBuf, needed: u64 },
    #[error("{}: the pack was damaged and is dropped: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
}

impl From<Refused> for PackProblem {
    fn from(_: Refused) -> PackProblem {
        PackProblem::Memory
    }
}
