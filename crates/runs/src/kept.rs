//! What was worked out of a run and is kept beside it, so that it need not be worked out again: a verdict, what a model
//! relies on. Only the version that wrote it reads it back, for another one may know better.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::beside::write_beside;
use crate::error::Result;

/// Nothing that is kept comes near it.
const MOST_BYTES: u64 = 16 << 20;

#[derive(Serialize, Deserialize)]
struct Kept<T> {
    version: String,
    value: T,
}

/// Writes it down, in the place of what was there.
pub fn keep(path: &Path, version: &str, value: &impl Serialize) -> Result<()> {
    let version = version.into();
    let text = serde_json::to_vec(&Kept { version, value }).expect("plain data serializes");
    write_beside(path, &text)
}

/// What was kept; `None` if there is nothing that this version wrote and can read.
pub fn kept<T: DeserializeOwned>(path: &Path, version: &str) -> Option<T> {
    let mut text = Vec::new();
    File::open(path)
        .ok()?
        .take(MOST_BYTES)
        .read_to_end(&mut text)
        .ok()?;
    let kept: Kept<T> = serde_json::from_slice(&text).ok()?;
    (kept.version == version).then_some(kept.value)
}
