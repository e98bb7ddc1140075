//! Files that are read and written past the page cache, through buffers of whole pages: nothing of them counts against a
//! budget but those buffers, and the kernel has less to do.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::JoinHandle;

/// What places, lengths and buffers are multiples of: as much as any disk of today asks for.
pub const PAGE_BYTES: usize = 4096;

#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// A file past the page cache. It can be used from several threads; each then has a buffer as large as what it read last.
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
        let buffer = self.fetch(offset, length(parts))?;
        self.hand_out(buffer, offset, parts);
        Ok(())
    }

    /// Writes whole pages at `offset`, which is a multiple of their size: the last one is filled up.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        assert_eq!(offset as usize % PAGE_BYTES, 0, "whole pages are written");
        let n_pages = bytes.len().div_ceil(PAGE_BYTES);
        let mut buffer = self.buffer(n_pages);
        let pages = bytes_of(&mut buffer[..n_pages]);
        pages[..bytes.len()].copy_from_slice(bytes);
        let written = self.file.write_all_at(pages, offset);
        self.lock().push(buffer);
        written
    }

    /// Reads so many bytes into a buffer of whole pages.
    fn fetch(&self, offset: u64, length: usize) -> io::Result<Vec<Page>> {
        let before = offset as usize % PAGE_BYTES;
        let (start, wanted) = (offset - before as u64, before + length);
        let n_pages = wanted.div_ceil(PAGE_BYTES);
        let mut buffer = self.buffer(n_pages);
        let (bytes, mut read) = (bytes_of(&mut buffer[..n_pages]), 0);
        while read < wanted {
            match self.file.read_at(&mut bytes[read..], start + read as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => read += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(buffer)
    }

    /// Copies what was fetched to where it is wanted, and takes the buffer back.
    fn hand_out(&self, mut buffer: Vec<Page>, offset: u64, parts: &mut [IoSliceMut<'_>]) {
        let mut rest = &bytes_of(&mut buffer)[offset as usize % PAGE_BYTES..];
        for part in parts {
            let (bytes, behind) = rest.split_at(part.len());
            part.copy_from_slice(bytes);
            rest = behind;
        }
        self.lock().push(buffer);
    }

    /// A buffer of so many pages at the least.
    fn buffer(&self, n_pages: usize) -> Vec<Page> {
        match self.lock().pop() {
            Some(buffer) if buffer.len() >= n_pages => buffer,
            _ => vec![Page([0; PAGE_BYTES]); n_pages],
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<Page>>> {
        self.buffers.lock().expect("no thread panics with it")
    }
}

fn length(parts: &[IoSliceMut<'_>]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}

fn bytes_of(pages: &mut [Page]) -> &mut [u8] {
    // SAFETY: pages are plain bytes without padding, and the slice covers exactly theirs.
    unsafe { std::slice::from_raw_parts_mut(pages.as_mut_ptr().cast(), size_of_val(pages)) }
}

/// Threads that read ahead, and the places that are read ahead at the most: one waits for the disk while another has it.
pub const READERS: usize = 2;

/// A file past the page cache that reads what is asked for later before that.
#[derive(Debug)]
pub struct AheadFile {
    shared: Arc<Shared>,
    readers: OnceLock<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    file: DirectFile,
    places: Mutex<Places>,
    asked: Condvar,
    fetched: Condvar,
}

/// Places of the file, each by where it begins.
#[derive(Debug, Default)]
struct Places {
    asked: VecDeque<(u64, usize)>,
    under_way: Vec<u64>,
    fetched: VecDeque<Fetched>,
    closed: bool,
}

impl Places {
    fn n(&self) -> usize {
        self.asked.len() + self.under_way.len() + self.fetched.len()
    }

    fn is_known(&self, offset: u64) -> bool {
        self.asked.iter().any(|(other, _)| *other == offset)
            || self.under_way.contains(&offset)
            || self.fetched.iter().any(|other| other.offset == offset)
    }
}

struct Fetched {
    offset: u64,
    length: usize,
    buffer: io::Result<Vec<Page>>,
}

impl std::fmt::Debug for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes at {}", self.length, self.offset)
    }
}

impl AheadFile {
    pub fn new(file: DirectFile) -> AheadFile {
        AheadFile {
            shared: Arc::new(Shared {
                file,
                places: Mutex::default(),
                asked: Condvar::new(),
                fetched: Condvar::new(),
            }),
            readers: OnceLock::new(),
        }
    }

    /// Has `length` bytes at `offset` read soon. Until somebody reads them they hold a buffer; where nobody came for what
    /// was asked for earlier, that makes room.
    pub fn ask(&self, offset: u64, length: usize) {
        self.readers.get_or_init(|| {
            let reader = || {
                let shared = Arc::clone(&self.shared);
                let thread = std::thread::Builder::new().name("read ahead".into());
                // Without threads, what is asked for is read when somebody comes for it.
                thread.spawn(move || shared.read_what_is_asked_for()).ok()
            };
            (0..READERS).filter_map(|_| reader()).collect()
        });
        let mut places = self.shared.lock();
        if places.is_known(offset) {
            return;
        }
        if places.n() >= READERS {
            let Some(first) = places.fetched.pop_front() else {
                return;
            };
            first
                .buffer
                .into_iter()
                .for_each(|buffer| self.shared.file.lock().push(buffer));
        }
        places.asked.push_back((offset, length));
        self.shared.asked.notify_one();
    }

    /// Fills the parts with what stands at `offset`, from what was read ahead where it was asked for.
    pub fn read(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        let fetched = self.shared.take(offset);
        match fetched.filter(|fetched| fetched.length >= length(parts)) {
            Some(fetched) => {
                self.shared.file.hand_out(fetched.buffer?, offset, parts);
                Ok(())
            }
            None => self.shared.file.read(offset, parts),
        }
    }
}

impl Drop for AheadFile {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.asked.notify_all();
        for reader in self.readers.take().into_iter().flatten() {
            let _ = reader.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().expect("no thread panics with it")
    }

    fn read_what_is_asked_for(&self) {
        let mut places = self.lock();
        while !places.closed {
            let Some((offset, length)) = places.asked.pop_front() else {
                places = self.asked.wait(places).expect("no thread panics with it");
                continue;
            };
            places.under_way.push(offset);
            drop(places);
            let buffer = self.file.fetch(offset, length);
            places = self.lock();
            places.under_way.retain(|other| *other != offset);
            places.fetched.push_back(Fetched {
                offset,
                length,
                buffer,
            });
            self.fetched.notify_all();
        }
    }

    /// What was read ahead at `offset`, after waiting for it where it is under way; `None` where nobody began.
    fn take(&self, offset: u64) -> Option<Fetched> {
        let mut places = self.lock();
        loop {
            if let Some(at) = places.fetched.iter().position(|other| other.offset == offset) {
                return places.fetched.remove(at);
            }
            if !places.under_way.contains(&offset) {
                places.asked.retain(|(other, _)| *other != offset);
                return None;
            }
            places = self.fetched.wait(places).expect("no thread panics with it");
        }
    }
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
        let all: Vec<u8> = (0..50_000u32).map(|i| (i * 7 + i / 251) as u8).collect();
        file.write(0, &all).unwrap();
        for (offset, lens) in [
            (0, [1, 0, 4096]),
            (4095, [2, 300, 9000]),
            (40_000, [10, 20, 9970]),
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
            .read(60_000, &mut [IoSliceMut::new(&mut beyond)])
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        // What is written later stands where it was put, and nothing else moves.
        file.write(8192, &[9; 100]).unwrap();
        let mut read = [0; 4097];
        file.read(8191, &mut [IoSliceMut::new(&mut read)]).unwrap();
        assert_eq!((read[0], read[1], read[100]), (all[8191], 9, 9));
    }

    #[test]
    fn what_is_asked_for_is_there_when_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let Some(file) = made(folder.path()) else {
            return;
        };
        let all: Vec<u8> = (0..300_000u32).map(|i| (i * 31 + i / 97) as u8).collect();
        file.write(0, &all).unwrap();
        let file = AheadFile::new(file);
        let read = |offset: usize, n: usize| {
            let mut bytes = vec![0; n];
            file.read(offset as u64, &mut [IoSliceMut::new(&mut bytes)])
                .unwrap();
            assert!(bytes == all[offset..offset + n], "{offset}");
        };
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (read, file) = (&read, &file);
                scope.spawn(move || {
                    for i in 0..100 {
                        let offset = thread * 100_000 + i * 777;
                        file.ask(offset as u64, 5_000);
                        // What nobody asked for, less than was asked for, and more.
                        read(thread * 100_000 + 50 + i, 10);
                        read(offset, [100, 5_000, 9_000][i % 3]);
                    }
                });
            }
        });
        // Asked for and never read: nobody waits for it, and it takes no more buffers.
        for i in 0..200 {
            file.ask(i * 1_000, 10_000);
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        file.ask(1_000_000, 10);
        let buffers = file.shared.file.lock().len() + file.shared.lock().n();
        assert!(buffers <= 3 + READERS, "{buffers} buffers for three threads");
    }
}
