//! The names of many files in little memory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tidegate_memory::{Grant, Holder};

use crate::Result;

/// What a file takes beside the letters of its name: where they end, and its folder.
const FILE_BYTES: u64 = 12;
/// While lists grow they are copied into larger ones: the old, and a new one with as much room again.
const GROWTH: u64 = 3;
/// What a folder takes beside the letters of its path.
const FOLDER_BYTES: u64 = 64;

/// Files in order, each by its folder and its name.
pub(crate) struct List {
    folders: Vec<PathBuf>,
    folder_of: Vec<u32>,
    /// All names, end to end, and where each ends.
    names: Vec<u8>,
    ends: Vec<u64>,
    grant: Grant,
}

impl List {
    pub(crate) fn new(holder: &Holder) -> Result<List> {
        Ok(List {
            folders: Vec::new(),
            folder_of: Vec::new(),
            names: Vec::new(),
            ends: Vec::new(),
            grant: holder.try_grant(0)?,
        })
    }

    /// Adds a folder that files are to be in; the number by which they name it.
    pub(crate) fn add_folder(&mut self, path: &Path) -> Result<u32> {
        self.grant
            .try_grow(GROWTH * (FOLDER_BYTES + path.as_os_str().len() as u64))?;
        self.folders.push(path.into());
        Ok(self.folders.len() as u32 - 1)
    }

    pub(crate) fn n_folders(&self) -> usize {
        self.folders.len()
    }

    /// Forgets folders from this one on. No file may be in them.
    pub(crate) fn drop_folders(&mut self, from: usize) {
        self.folders.truncate(from);
    }

    /// The number of the folder that a file is in.
    pub(crate) fn folder_of(&self, file: usize) -> u32 {
        self.folder_of[file]
    }

    pub(crate) fn push(&mut self, folder: u32, name: &OsStr) -> Result<()> {
        self.grant.try_grow(GROWTH * (FILE_BYTES + name.len() as u64))?;
        self.names.extend_from_slice(name.as_bytes());
        self.ends.push(self.names.len() as u64);
        self.folder_of.push(folder);
        Ok(())
    }

    /// Puts the files from `first` on in the order of their names. They must be of one folder.
    pub(crate) fn sort_from(&mut self, first: usize) -> Result<()> {
        let start = self.start(first);
        let letters = (self.names.len() - start) as u64;
        let n = self.len() - first;
        // Names and ends once more, and their order.
        let sorting = letters + 12 * n as u64;
        self.grant.try_grow(sorting)?;
        let mut order: Vec<u32> = (0..n as u32).collect();
        let name =
            |i: u32| &self.names[self.start(first + i as usize)..self.ends[first + i as usize] as usize];
        order.sort_unstable_by(|a, b| name(*a).cmp(name(*b)));
        let mut sorted = Vec::with_capacity(letters as usize);
        let mut ends = Vec::with_capacity(n);
        for i in &order {
            sorted.extend_from_slice(name(*i));
            ends.push((start + sorted.len()) as u64);
        }
        self.names[start..].copy_from_slice(&sorted);
        self.ends[first..].copy_from_slice(&ends);
        self.grant.shrink(sorting);
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    fn start(&self, file: usize) -> usize {
        file.checked_sub(1).map_or(0, |before| self.ends[before] as usize)
    }

    fn name(&self, file: usize) -> &OsStr {
        OsStr::from_bytes(&self.names[self.start(file)..self.ends[file] as usize])
    }

    pub(crate) fn path(&self, file: usize) -> PathBuf {
        self.folders[self.folder_of[file] as usize].join(self.name(file))
    }

    /// Gives back what growing took.
    pub(crate) fn close(&mut self) {
        self.folders.shrink_to_fit();
        self.folder_of.shrink_to_fit();
        self.names.shrink_to_fit();
        self.ends.shrink_to_fit();
        let folders = self
            .folders
            .iter()
            .map(|path| FOLDER_BYTES + path.as_os_str().len() as u64);
        let bytes = folders.sum::<u64>() + self.names.len() as u64 + FILE_BYTES * self.len() as u64;
        self.grant.shrink(self.grant.bytes().saturating_sub(bytes));
    }

    /// Leaves out files that `keep` refuses.
    pub(crate) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let (mut n, mut end, mut start) = (0, 0, 0);
        for file in 0..self.ends.len() {
            let stop = self.ends[file] as usize;
            if keep(file) {
                self.names.copy_within(start..stop, end);
                end += stop - start;
                (self.ends[n], self.folder_of[n]) = (end as u64, self.folder_of[file]);
                n += 1;
            }
            start = stop;
        }
        self.names.truncate(end);
        self.ends.truncate(n);
        self.folder_of.truncate(n);
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use tidegate_memory::Ledger;

    use super::*;

    fn names(list: &List) -> Vec<String> {
        (0..list.len())
            .map(|file| list.path(file).display().to_string())
            .collect()
    }

    #[test]
    fn files_are_sorted_within_their_folder() {
        let ledger = Ledger::new(1 << 20);
        let mut list = List::new(&ledger.holder("files")).unwrap();
        for (folder, files) in [("b", ["9.png", "10.png", "1.png"]), ("a", ["z", "", "yy"])] {
            let (number, first) = (list.add_folder(Path::new(folder)).unwrap(), list.len());
            for file in files {
                list.push(number, OsStr::new(file)).unwrap();
            }
            list.sort_from(first).unwrap();
        }
        list.close();
        assert_eq!(
            names(&list),
            ["b/1.png", "b/10.png", "b/9.png", "a/", "a/yy", "a/z"]
        );
        list.retain(|file| file % 2 == 1);
        assert_eq!(names(&list), ["b/10.png", "a/", "a/z"]);
        assert!(ledger.used() < 400, "{}", ledger.used());
        drop(list);
        assert_eq!(ledger.used(), 0);
    }
}
