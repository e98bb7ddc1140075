//! A forest under way, kept so that its training can be taken up again.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{FeatureBins, Forest, Options};
use crate::model::{FOREST, damaged};
use crate::write::{present, replace_folder};
use crate::{Error, Result};

/// What a forest was begun with: going on with anything else would not be the same training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub options: Options,
    /// The fingerprint of the data.
    pub data: u64,
}

#[derive(Serialize)]
struct Keep<'f> {
    settings: &'f Settings,
    forest: &'f Forest,
}

#[derive(Deserialize)]
struct Kept {
    settings: Settings,
    forest: Forest,
}

/// Writes a checkpoint beside the last one and puts it in its place.
pub fn save_checkpoint(folder: &Path, settings: &Settings, forest: &Forest) -> Result<()> {
    replace_folder(folder, |new| new.write_json(FOREST, &Keep { settings, forest }))
}

/// The forest of a checkpoint, if it was begun with the same settings and features.
pub fn load_checkpoint(folder: &Path, settings: &Settings, features: &[FeatureBins]) -> Result<Forest> {
    let path = present(folder).join(FOREST);
    let text = fs::read(&path).map_err(|source| Error::Read {
        path: path.clone(),
        source,
    })?;
    let kept: Kept = serde_json::from_slice(&text).map_err(|error| damaged(&path, &error.to_string()))?;
    if kept.settings.data != settings.data {
        return Err(Error::OtherCheckpoint { what: "table" });
    }
    if kept.settings.options != settings.options {
        return Err(Error::OtherCheckpoint { what: "job" });
    }
    if kept.forest.features != features {
        return Err(Error::OtherCheckpoint { what: "encoding" });
    }
    if let Some(fault) = kept.forest.fault() {
        return Err(damaged(&path, fault));
    }
    Ok(kept.forest)
}
