//! Writing a file so that whoever reads it finds the old one or the new one, whole.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::error::{Error, Result};

/// Writes beside the file, syncs, and puts it in its place.
pub fn write_beside(path: &Path, bytes: &[u8]) -> Result<()> {
    let beside = path.with_extension("new");
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().map_err(|source| {
        // Half a file on a full disk helps nobody.
        let _ = fs::remove_file(&beside);
        Error::Io {
            action: "write",
            path: path.to_path_buf(),
            source,
        }
    })
}
