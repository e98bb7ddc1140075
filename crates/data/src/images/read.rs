//! Files into memory, leaving the page cache as it was.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;

use super::fault::PictureFault;
use super::probe::unreadable;
use crate::direct::is_unsupported;
use crate::input::{RWF_DONTCACHE, read_uncached};

/// Reads a file of so many bytes. What is in the page cache already is taken from there and stays; what had to be read is
/// dropped again, for it would count as ours.
pub(crate) fn read_whole(file: &File, bytes: u64, into: &mut Vec<u8>) -> Result<(), PictureFault> {
    let bytes = usize::try_from(bytes).map_err(|_| unreadable(io::ErrorKind::FileTooLarge.into()))?;
    if into.capacity() < bytes {
        // Not a copy of what it held before.
        *into = Vec::with_capacity(bytes);
    }
    into.resize(bytes, 0);
    let cached = read_cached(file, into);
    read_at(file, cached as u64, &mut into[cached..]).map_err(unreadable)
}

/// Fills the buffer with what stands at `start`, leaving the page cache as it was.
pub(crate) fn read_at(file: &File, start: u64, into: &mut [u8]) -> io::Result<()> {
    let (mut at, mut supported) = (0, true);
    while at < into.len() {
        match read_uncached(file, &mut into[at..], start + at as u64, &mut supported) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => at += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A file as decoders read it, in pieces; leaves the page cache as it was.
pub(crate) struct Uncached {
    file: File,
    at: u64,
    supported: bool,
}

impl Uncached {
    pub(crate) fn new(file: File) -> Uncached {
        Uncached {
            file,
            at: 0,
            supported: true,
        }
    }
}

impl Read for Uncached {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = read_uncached(&self.file, bytes, self.at, &mut self.supported)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Uncached {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// As much of the beginning as needs no disk; 0 where the system cannot tell.
fn read_cached(file: &File, into: &mut [u8]) -> usize {
    let buffer = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let read = |flags| {
        // SAFETY: `buffer` describes memory that is ours alone and outlives the call.
        unsafe { libc::preadv2(file.as_raw_fd(), &raw const buffer, 1, 0, flags) }
    };
    // A read that does not wait still asks the disk, and what comes of that would stay unless it is said here, too.
    match read(libc::RWF_NOWAIT | RWF_DONTCACHE) {
        read if read >= 0 => read.cast_unsigned(),
        _ if !is_unsupported(&io::Error::last_os_error()) => 0,
        _ => usize::try_from(read(libc::RWF_NOWAIT)).unwrap_or(0),
    }
}
