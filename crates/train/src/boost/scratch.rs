//! A scratch file: what is kept of rows and does not stay in memory.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_data::direct::{DirectFile, PAGE_BYTES, is_unsupported};

use crate::{Error, Result};

/// Pages that went through the cache are dropped whole; no machine of ours has larger ones.
const CACHED_BYTES: u64 = 64 << 10;

/// So many bytes, and what is left of their last page.
pub(super) fn whole_pages(bytes: usize) -> u64 {
    bytes.next_multiple_of(PAGE_BYTES) as u64
}

/// A file without a name: it is gone when the training is, however that ends. Past the page cache where the file system
/// can.
#[derive(Debug)]
pub(super) struct Scratch {
    through: Through,
    path: PathBuf,
}

#[derive(Debug)]
enum Through {
    Direct(DirectFile),
    Cache(File),
}

impl Scratch {
    pub(super) fn new(folder: &Path) -> Result<Scratch> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".boost-{}-{count}", std::process::id()));
        match Through::create(&path) {
            Ok(through) => Ok(Scratch { through, path }),
            Err(source) => Err(Error::Write { path, source }),
        }
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let read = match &self.through {
            Through::Direct(file) => file.read(offset, &mut [IoSliceMut::new(bytes)]),
            Through::Cache(file) => file.read_exact_at(bytes, offset),
        };
        self.drop_cached(offset, bytes.len());
        read.map_err(|source| {
            let path = self.path.clone();
            Error::Read { path, source }
        })
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let written = match &self.through {
            Through::Direct(file) => file.write(offset, bytes),
            Through::Cache(file) => file.write_all_at(bytes, offset),
        };
        self.drop_cached(offset, bytes.len());
        written.map_err(|source| {
            let path = self.path.clone();
            Error::Write { path, source }
        })
    }

    /// Waits until what was written is on disk and drops it from the page cache, where it would count against the budget.
    /// Best effort: a file system that knows no advice keeps its pages, and the kernel takes them when needed.
    fn drop_cached(&self, offset: u64, n_bytes: usize) {
        let Through::Cache(file) = &self.through else {
            return;
        };
        // Whole pages: a part of one would stay.
        let start = offset / CACHED_BYTES * CACHED_BYTES;
        let end = (offset + n_bytes as u64).next_multiple_of(CACHED_BYTES);
        let (fd, offset, len) = (file.as_raw_fd(), start as i64, (end - start) as i64);
        const WAIT: u32 = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        // SAFETY: system calls on a descriptor that is open; they touch no memory of ours.
        unsafe {
            libc::sync_file_range(fd, offset, len, WAIT);
            libc::posix_fadvise(fd, offset, len, libc::POSIX_FADV_DONTNEED);
        }
    }
}

#[cfg(test)]
impl Scratch {
    /// As on a file system that always goes through the page cache.
    pub(super) fn cached(folder: &Path) -> Scratch {
        Scratch {
            through: Through::Cache(tempfile::tempfile_in(folder).expect("a file can be made")),
            path: folder.into(),
        }
    }
}

impl Through {
    fn create(path: &Path) -> io::Result<Through> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let direct = DirectFile::open(path, &mut options.clone())?;
        // One that was refused may have been made all the same.
        let removed = std::fs::remove_file(path);
        if let Some(file) = direct {
            removed?;
            // Some file systems say only now that they cannot.
            match file.write(0, &[0; PAGE_BYTES]) {
                Err(error) if is_unsupported(&error) => {}
                done => return done.map(|()| Through::Direct(file)),
            }
        }
        let file = options.open(path)?;
        std::fs::remove_file(path)?;
        // Nothing is read that was not asked for: it would stay in the page cache and count.
        // SAFETY: advice on an open descriptor touches no memory of ours.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
        Ok(Through::Cache(file))
    }
}

/// Numbers that any bytes make up and that have no padding.
pub(super) trait Plain: Copy {}
impl Plain for u8 {}
impl Plain for f32 {}
impl Plain for u32 {}
impl Plain for u16 {}
impl Plain for [u32; 2] {}

pub(super) fn bytes_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: plain values have no padding, any bytes make them up, and the slice covers exactly their bytes.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

pub(super) fn bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}
