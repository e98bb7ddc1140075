//! A disk that is soon full.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small disk in memory, which takes root.
pub(crate) struct SmallDisk(pub PathBuf);

impl SmallDisk {
    /// Mounts one in a hidden folder; says so where that is not allowed.
    pub(crate) fn mount(under: &Path, megabytes: u64) -> Option<SmallDisk> {
        let path = under.join(".disk");
        fs::create_dir(&path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"])
            .arg(&path)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(SmallDisk(path)),
            _ => {
                eprintln!("skipped: a small disk cannot be mounted here");
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
