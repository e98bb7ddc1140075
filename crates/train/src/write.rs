//! Writing files that are either whole or absent: beside, synced, renamed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tidegate_data::pack::WriteBehind;

use crate::{Error, Result};

/// Fills a new folder through `fill` and puts it in the place of `folder` in one step.
pub(crate) fn replace_folder(folder: &Path, fill: impl FnOnce(&Folder) -> Result<()>) -> Result<()> {
    let beside = sibling(folder, "new");
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| Error::Write { path, source }
    };
    if beside.exists() {
        fs::remove_dir_all(&beside).map_err(failed(&beside))?;
    }
    fs::create_dir_all(&beside).map_err(failed(&beside))?;
    let filled = fill(&Folder { path: beside.clone() }).and_then(|()| sync(&beside).map_err(failed(&beside)));
    if let Err(error) = filled {
        // Half a folder is worth nothing, least of all on a full disk.
        let _ = fs::remove_dir_all(&beside);
        return Err(error);
    }
    let old = sibling(folder, "old");
    if folder.exists() {
        if old.exists() {
            fs::remove_dir_all(&old).map_err(failed(&old))?;
        }
        fs::rename(folder, &old).map_err(failed(folder))?;
    }
    fs::rename(&beside, folder).map_err(failed(folder))?;
    if let Some(parent) = folder.parent() {
        sync(parent).map_err(failed(parent))?;
    }
    if old.exists() {
        fs::remove_dir_all(&old).map_err(failed(&old))?;
    }
    Ok(())
}

/// `folder`, or what was put aside of it by a writer that was killed between its two renames.
pub fn present(folder: &Path) -> PathBuf {
    let old = sibling(folder, "old");
    if !folder.exists() && old.exists() {
        old
    } else {
        folder.to_path_buf()
    }
}

/// Removes what a writer that was killed has left beside `folder`. One that was killed between taking the old away and
/// putting the new in its place has left the old: it is put back.
pub fn sweep(folder: &Path) {
    let old = sibling(folder, "old");
    let _ = fs::remove_dir_all(sibling(folder, "new"));
    let _ = match folder.exists() {
        true => fs::remove_dir_all(old),
        false => fs::rename(old, folder),
    };
}

/// A folder being filled.
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.write_with(name, |file| file.write_all(bytes))
    }

    /// A value as JSON, written as it is made.
    pub(crate) fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        self.write_with(name, |file| {
            let mut buffered = io::BufWriter::new(file);
            serde_json::to_writer(&mut buffered, value)?;
            buffered.flush()
        })
    }

    /// A file that is written piece by piece.
    pub(crate) fn write_with(
        &self,
        name: &str,
        write: impl FnOnce(&mut Sequence) -> io::Result<()>,
    ) -> Result<()> {
        let path = self.path.join(name);
        let written = File::create(&path).and_then(|file| {
            let mut sequence = Sequence(WriteBehind::new(file));
            write(&mut sequence)?;
            sequence.0.sync()
        });
        written.map_err(|source| Error::Write { path, source })
    }
}

/// A file written from its beginning to its end, of which the page cache keeps little: that would count against the
/// budget.
pub(crate) struct Sequence(WriteBehind);

impl Write for Sequence {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn sibling(folder: &Path, suffix: &str) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_os_string();
    name.push(".");
    name.push(suffix);
    folder.with_file_name(name)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_writer_took_away_is_put_back() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("model");
        replace_folder(&folder, |new| new.write("a", b"1")).unwrap();
        fs::rename(&folder, sibling(&folder, "old")).unwrap();
        fs::create_dir(sibling(&folder, "new")).unwrap();
        sweep(&folder);
        assert_eq!(fs::read(folder.join("a")).unwrap(), b"1");
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_leaves_the_old_folder() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("model");
        replace_folder(&folder, |new| new.write("a", b"1")).unwrap();
        let failed = replace_folder(&folder, |new| {
            new.write("a", b"2")?;
            new.write("no/such/place", b"")
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(folder.join("a")).unwrap(), b"1");
        replace_folder(&folder, |new| new.write("a", b"3")).unwrap();
        assert_eq!(fs::read(folder.join("a")).unwrap(), b"3");
        let left: Vec<_> = fs::read_dir(temp.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(left, ["model"]);
    }
}
