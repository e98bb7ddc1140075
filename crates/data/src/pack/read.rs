//! Reading a batch of a pack straight into the buffers where it is used, leaving nothing in the page cache.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_ipc::Block;
use tidegate_memory::Grant;

use super::PackProblem;
use super::frame::{self, ALIGN, MOST_HEADER_BYTES};
use super::layout::Body;
use super::manifest::{Entry, Manifest};
use super::store::{DATA, PackKey, PackStore};
use crate::direct::{DirectFile, is_unsupported};
use crate::input::{RWF_DONTCACHE, expect_single_pieces};
use crate::{Error, Result};

/// A complete pack, open for reading. It can be read from several threads, and to its end even when it is removed.
#[derive(Debug)]
pub(crate) struct PackFile {
    pub store: PackStore,
    pub key: PackKey,
    pub manifest: Manifest,
    pub entries: Vec<Entry>,
    file: File,
    /// The same file past the page cache, for whoever reads it again and again.
    direct: Option<DirectFile>,
    uncached: AtomicBool,
    #[expect(dead_code, reason = "held for its drop")]
    grant: Grant,
}

impl PackFile {
    pub(crate) fn new(
        store: &PackStore,
        key: PackKey,
        manifest: Manifest,
        entries: Vec<Entry>,
        grant: Grant,
    ) -> Result<PackFile, PackProblem> {
        let path = store.folder(key).join(DATA);
        let file = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (bytes, file) = match file {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(store.damaged(key, "its data is missing".into()));
            }
            Err(source) => return Err(PackProblem::Unreadable { path, source }),
        };
        if bytes != manifest.data_bytes {
            let what = format!("its data has {bytes} of {} bytes", manifest.data_bytes);
            return Err(store.damaged(key, what));
        }
        if let Err(what) = check_entries(&manifest, &entries) {
            return Err(store.damaged(key, what.into()));
        }
        expect_single_pieces(&file);
        Ok(PackFile {
            store: store.clone(),
            key,
            manifest,
            entries,
            file,
            direct: None,
            uncached: AtomicBool::new(true),
            grant,
        })
    }

    /// Reads past the page cache from now on, where the file system can. Whoever reads then has a buffer of what is read.
    pub(crate) fn read_directly(&mut self) {
        // Without it, the pages that were read are dropped from the cache.
        let file = DirectFile::open(&self.path(), OpenOptions::new().read(true));
        self.direct = file.unwrap_or_default();
    }

    pub(crate) fn body(&self, batch: usize) -> Body {
        let entry = &self.entries[batch];
        self.manifest
            .layout
            .body(entry.n_rows.into(), entry.n_values.into())
    }

    /// The largest header of a batch.
    pub(crate) fn largest_header(&self) -> usize {
        self.entries
            .iter()
            .map(|entry| entry.header_bytes as usize)
            .max()
            .unwrap_or(0)
    }

    /// Reads the header of a batch.
    pub(crate) fn read_header(&self, batch: usize, header: &mut [u8]) -> Result<()> {
        self.read(batch, header, &Body::default(), &mut [])
    }

    /// Reads the body of a batch into one buffer for each segment, and the header too if there is room for it.
    pub(crate) fn read(
        &self,
        batch: usize,
        header: &mut [u8],
        body: &Body,
        into: &mut [&mut [u8]],
    ) -> Result<()> {
        let entry = &self.entries[batch];
        debug_assert_eq!(into.len(), body.segments.len());
        let start = match header.is_empty() {
            true => entry.offset + u64::from(entry.header_bytes),
            false => entry.offset,
        };
        let mut gaps = [[0u8; ALIGN as usize]; 16];
        let mut gaps = gaps.iter_mut();
        let mut parts = Vec::with_capacity(2 * into.len() + 1);
        parts.push(IoSliceMut::new(header));
        let mut at = 0;
        for (segment, bytes) in body.segments.iter().zip(into) {
            if segment.at > at {
                let gap = gaps.next().expect("a layout has fewer gaps");
                parts.push(IoSliceMut::new(&mut gap[..(segment.at - at) as usize]));
            }
            at = segment.at + segment.bytes;
            debug_assert_eq!(bytes.len() as u64, segment.bytes);
            parts.push(IoSliceMut::new(bytes));
        }
        self.read_or_damaged(batch, &mut parts, start)
    }

    fn read_or_damaged(&self, batch: usize, parts: &mut [IoSliceMut<'_>], start: u64) -> Result<()> {
        match self.read_all(parts, start) {
            Ok(()) => Ok(()),
            // Shorter than it was when it was opened.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(self.damaged(batch)),
            Err(source) => Err(Error::Unreadable {
                path: self.path(),
                source,
            }),
        }
    }

    /// Reads a part of the body of a batch.
    pub(crate) fn read_part(&self, batch: usize, at: u64, into: &mut [u8]) -> Result<()> {
        let Some(entry) = self.entries.get(batch) else {
            return Err(self.damaged(batch));
        };
        let start = entry.offset + u64::from(entry.header_bytes) + at;
        self.read_or_damaged(batch, &mut [IoSliceMut::new(into)], start)
    }

    /// Drops the pack and says which batch was not what it should be.
    pub(crate) fn damaged(&self, batch: usize) -> Error {
        // Whoever reads it meanwhile finds the same out.
        let _ = self.store.remove(self.key);
        Error::PackDamaged {
            path: self.path(),
            batch: batch as u64,
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.store.folder(self.key).join(DATA)
    }

    fn read_all(&self, mut parts: &mut [IoSliceMut<'_>], mut offset: u64) -> io::Result<()> {
        if let Some(direct) = &self.direct {
            match direct.read(offset, parts) {
                Err(error) if is_unsupported(&error) => {}
                done => return done,
            }
        }
        // Empty buffers would look like the end of the file.
        IoSliceMut::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            match self.read_some(parts, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    offset += read as u64;
                    IoSliceMut::advance_slices(&mut parts, read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read_some(&self, parts: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let (file, n) = (self.file.as_raw_fd(), parts.len() as libc::c_int);
        // The standard library promises that these are laid out as the system has them.
        let buffers = parts.as_mut_ptr().cast::<libc::iovec>();
        if self.uncached.load(Ordering::Relaxed) {
            // SAFETY: `buffers` are `n` descriptions of memory that is ours alone and outlives the call.
            let read = unsafe { libc::preadv2(file, buffers, n, offset as libc::off_t, RWF_DONTCACHE) };
            if read >= 0 {
                return Ok(read as usize);
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => {
                    self.uncached.store(false, Ordering::Relaxed);
                }
                _ => return Err(error),
            }
        }
        // SAFETY: as above.
        let read = unsafe { libc::preadv(file, buffers, n, offset as libc::off_t) };
        if read < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: advice on an open descriptor touches no memory of ours.
        unsafe { libc::posix_fadvise(file, offset as _, read as _, libc::POSIX_FADV_DONTNEED) };
        Ok(read as usize)
    }
}

/// Whether the batches stand one behind the other, inside of the file.
fn check_entries(manifest: &Manifest, entries: &[Entry]) -> std::result::Result<(), &'static str> {
    let (mut at, mut n_rows) = (entries.first().map_or(0, |entry| entry.offset), 0);
    for entry in entries {
        let body = manifest.layout.body(entry.n_rows.into(), entry.n_values.into());
        let header = u64::from(entry.header_bytes);
        if entry.offset != at || !header.is_multiple_of(ALIGN) || !(8..=MOST_HEADER_BYTES).contains(&header) {
            return Err("its batches do not follow each other");
        }
        at = at.saturating_add(header).saturating_add(body.bytes);
        n_rows += u64::from(entry.n_rows);
    }
    if at > manifest.data_bytes {
        return Err("its batches reach beyond its end");
    }
    if n_rows != manifest.n_rows {
        return Err("its batches do not hold its rows");
    }
    Ok(())
}

/// The end of a file with these batches.
pub(crate) fn closing(manifest: &Manifest, entries: &[Entry]) -> Vec<u8> {
    let block = |entry: &Entry| {
        let body = manifest.layout.body(entry.n_rows.into(), entry.n_values.into());
        Block::new(entry.offset as i64, entry.header_bytes as i32, body.bytes as i64)
    };
    frame::closing(&manifest.layout, entries.iter().map(block))
}
