//! The verb `packs`: the encoded rows that runs keep on disk, listed and removed.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tidegate_data::PackStore;
use tidegate_data::pack::{Layout, PackInfo, Prune};

use crate::{Result, Session};

/// A pack as a person sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pack {
    pub key: String,
    /// On disk.
    pub bytes: u64,
    /// When it was last used, in milliseconds since 1970.
    pub used_ms: Option<i64>,
    /// `None` when it is torn: the next run that looks for it makes it anew.
    pub contents: Option<PackedRows>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PackedRows {
    pub rows: u64,
    /// Values of a row: dense ones and places of sparse ones, or bins of features.
    pub layout: Layout,
    pub created_ms: i64,
    /// What it was made from.
    pub source: String,
}

/// The packs of a home, the one used last first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Packs {
    pub folder: PathBuf,
    pub bytes: u64,
    pub packs: Vec<Pack>,
}

/// Which packs are to go. Torn ones always do.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PruneOptions {
    /// Those used longest ago, until the others take no more than this.
    pub keep_bytes: Option<u64>,
    /// Those that were not used for so long.
    pub unused_for: Option<Duration>,
    pub all: bool,
}

/// What a pruning removed, and what is left.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pruned {
    pub freed_bytes: u64,
    pub removed: Vec<Pack>,
    pub left: Packs,
}

/// Lists the packs of a home.
pub fn packs(session: &Session) -> Result<Packs> {
    let folder = session.packs();
    let packs: Vec<Pack> = PackStore::at(&folder).list()?.into_iter().map(Pack::of).collect();
    Ok(Packs {
        folder,
        bytes: packs.iter().map(|pack| pack.bytes).sum(),
        packs,
    })
}

/// Removes packs, and what killed builders left of some. A run that reads one of them reads on.
pub fn prune_packs(session: &Session, options: &PruneOptions) -> Result<Pruned> {
    let prune = Prune {
        keep_bytes: if options.all { Some(0) } else { options.keep_bytes },
        older_than: options.unused_for,
    };
    let removed = PackStore::at(session.packs()).prune(&prune)?;
    Ok(Pruned {
        freed_bytes: removed.iter().map(|pack| pack.bytes).sum(),
        removed: removed.into_iter().map(Pack::of).collect(),
        left: packs(session)?,
    })
}

impl Pack {
    fn of(info: PackInfo) -> Pack {
        Pack {
            key: info.key.to_string(),
            bytes: info.bytes,
            used_ms: info.last_used.map(ms),
            contents: info.contents.map(|contents| PackedRows {
                rows: contents.n_rows,
                layout: contents.layout,
                created_ms: ms(contents.created),
                source: contents.description,
            }),
        }
    }
}

/// Milliseconds since 1970.
fn ms(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
