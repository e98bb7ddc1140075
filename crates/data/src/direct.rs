//! Files that are read and written past the page cache, through buffers of whole pages: nothing of them counts against a
//! budget but those buffers, and the kernel has less to do.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// What places, lengths and buffers are multiples of: as much as any disk of today asks for.
pub const PAGE_BYTES: usize = 4096;

/// The most that is read or written at once. Four threads that read 128 KB each get as much of a disk as with 256 KB.
const MOST_PAGES: usize = 32;

/// What a thread has in its buffer when it reads or writes so much at a time.
pub const fn buffer_bytes(bytes: u64) -> u64 {
    // It may begin and end within a page.
    let pages = bytes.div_ceil(PAGE_BYTES as u64) + 1;
    let pages = if pages < MOST_PAGES as u64 {
        pages
    } else {
        MOST_PAGES as u64
    };
    pages * PAGE_BYTES as u64
}

#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// A file past the page cache. It can be used from several threads; each then has a buffer of
/// its own, see [`buffer_bytes`].
pub struct DirectFile {
    file: File,
    buffers: Mutex<Vec<Vec<Page>>>,
}

impl std::fmt::Debug for DirectFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectFile").field("file", &self.file).finish()
    }
}

impl DirectFile {
    /// Opens a file; `None` where its file system always goes through the page cache.
    pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<Option<DirectFile>> {
        match options.custom_flags(libc::O_DIRECT).open(path) {
            Ok(file) => Ok(Some(DirectFile {
                file,
                buffers: Mutex::new(Vec::new()),
            })),
            Err(error) if is_unsupported(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Fills the parts with what stands at `offset`, one after another.
    pub fn read(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        let before = offset as usize % PAGE_BYTES;
        let wanted = before + parts.iter().map(|part| part.len()).sum::<usize>();
        let mut buffer = self.buffer(wanted.div_ceil(PAGE_BYTES));
        let bytes = bytes_of(&mut buffer);
        let (mut parts, mut skip, mut at) = (parts, before, offset - before as u64);
        // Empty parts would never be filled.
        IoSliceMut::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let left = skip + parts.iter().map(|part| part.len()).sum::<usize>();
            let n = left.next_multiple_of(PAGE_BYTES).min(bytes.len());
            let read = self.fill(&mut bytes[..n], left.min(n), at)?;
            let mut rest = &bytes[skip..read.min(left)];
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.len().min(parts[0].len()));
                parts[0][..now.len()].copy_from_slice(now);
                IoSliceMut::advance_slices(&mut parts, now.len());
                rest = later;
            }
            (skip, at) = (0, at + n as u64);
        }
        self.lock().push(buffer);
        Ok(())
    }

    /// Reads until there are `wanted` bytes, and says how many there are.
    fn fill(&self, bytes: &mut [u8], wanted: usize, start: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < wanted {
            match self.file.read_at(&mut bytes[read..], start + read as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => read += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    /// Writes whole pages at `offset`, which is a multiple of their size: the last one is filled up.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        assert_eq!(offset as usize % PAGE_BYTES, 0, "whole pages are written");
        let mut buffer = self.buffer(bytes.len().div_ceil(PAGE_BYTES));
        let pages = bytes_of(&mut buffer);
        let mut at = offset;
        let written = bytes.chunks(pages.len()).try_for_each(|chunk| {
            let n = chunk.len().next_multiple_of(PAGE_BYTES);
            pages[..chunk.len()].copy_from_slice(chunk);
            let written = self.file.write_all_at(&pages[..n], at);
            at += n as u64;
            written
        });
        self.lock().push(buffer);
        written
    }

    /// A buffer of so many pages at the least, or of as many as are used at once.
    fn buffer(&self, n_pages: usize) -> Vec<Page> {
        let n_pages = n_pages.clamp(1, MOST_PAGES);
        match self.lock().pop() {
            Some(buffer) if buffer.len() >= n_pages => buffer,
            _ => vec![Page([0; PAGE_BYTES]); n_pages],
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<Page>>> {
        self.buffers.lock().expect("no thread panics with it")
    }
}

fn bytes_of(pages: &mut [Page]) -> &mut [u8] {
    // SAFETY: pages are plain bytes without padding, and the slice covers exactly theirs.
    unsafe { std::slice::from_raw_parts_mut(pages.as_mut_ptr().cast(), size_of_val(pages)) }
}

/// Whether an error says that a file cannot be used past the page cache.
pub fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file to write to and read from, where that is possible.
    fn made(folder: &Path) -> Option<DirectFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let file = DirectFile::open(&folder.join("file"), &mut options).unwrap();
        if file.is_none() {
            eprintln!("skipped: this file system always goes through the page cache");
        }
        file
    }

    #[test]
    fn any_place_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let Some(file) = made(folder.path()) else {
            return;
        };
        let all: Vec<u8> = (0..500_000u32).map(|i| (i * 7 + i / 251) as u8).collect();
        file.write(0, &all).unwrap();
        for (offset, lens) in [
            (0, [1, 0, 4096]),
            (4095, [2, 300, 9000]),
            (40_000, [10, 20, 9970]),
            // More than is read at once.
            (131_071, [2, 131_072, 131_073]),
            (0, [300_000, 100_000, 100_000]),
            (490_000, [0, 10_000, 0]),
        ] {
            let mut read = lens.map(|len| vec![0; len]);
            let mut parts: Vec<IoSliceMut<'_>> = read.iter_mut().map(|part| IoSliceMut::new(part)).collect();
            file.read(offset, &mut parts).unwrap();
            let n: usize = lens.iter().sum();
            let offset = offset as usize;
            assert!(read.concat() == all[offset..offset + n], "{offset} {lens:?}");
        }
        let mut beyond = [0; 10];
        let error = file
            .read(600_000, &mut [IoSliceMut::new(&mut beyond)])
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        // What is written later stands where it was put, and nothing else moves.
        file.write(8192, &[9; 100]).unwrap();
        let mut read = [0; 4097];
        file.read(8191, &mut [IoSliceMut::new(&mut read)]).unwrap();
        assert_eq!((read[0], read[1], read[100]), (all[8191], 9, 9));
    }
}
