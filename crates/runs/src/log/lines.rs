//! Where the lines of a log begin and end, found from any place in the file by looking at a few kilobytes around it.
//!
//! A line ends with a newline. One that is far longer than [`LogWriter`](super::LogWriter) makes them is cut into pieces,
//! each a line of its own, at places that depend on nothing but what stands right before them: at a multiple of 16 KiB
//! when the 16 KiB before it hold no newline. So a line is never longer than 32 KiB, and those who read forward, backward
//! and from the middle find the same lines.

use std::fs::File;
use std::io::{ErrorKind, Result as IoResult};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use memchr::{memchr, memrchr};
use serde::Serialize;

use super::Stream;
use crate::error::{Error, Result};
use crate::time::parse_timestamp;

const CELL: u64 = 16 * 1024;

/// What is read at once.
pub(super) const BLOCK: usize = 256 * 1024;

/// A last line without its newline may be in the middle of being written; after so long it is not.
const SETTLED: Duration = Duration::from_secs(2);

/// `2026-11-15T20:15:30.123Z`.
const STAMP: usize = 24;

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// Milliseconds since 1970; `None` where no time stands before it.
    pub time_ms: Option<i64>,
    pub stream: Option<Stream>,
    /// What was printed, escape sequences included.
    pub text: String,
}

impl LogLine {
    pub(super) fn new(offset: u64, bytes: &[u8]) -> LogLine {
        let (time_ms, stream, text) = parts(bytes);
        LogLine {
            offset,
            time_ms,
            stream,
            text: String::from_utf8_lossy(text).into_owned(),
        }
    }
}

/// The parts of a line, its newline aside.
pub(super) fn parts(line: &[u8]) -> (Option<i64>, Option<Stream>, &[u8]) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let Some(time_ms) = time_of(line) else {
        return (None, None, line);
    };
    let rest = line.get(STAMP + 1..).unwrap_or_default();
    for stream in [Stream::Out, Stream::Err] {
        match rest.strip_prefix(stream.as_str().as_bytes()) {
            Some(b"") => return (Some(time_ms), Some(stream), b""),
            Some([b' ', text @ ..]) => return (Some(time_ms), Some(stream), text),
            _ => {}
        }
    }
    (Some(time_ms), None, rest)
}

/// The time that stands before a line.
pub(super) fn time_of(line: &[u8]) -> Option<i64> {
    let (stamp, rest) = line.split_at_checked(STAMP)?;
    if !matches!(rest.first(), None | Some(b' ' | b'\n')) {
        return None;
    }
    parse_timestamp(std::str::from_utf8(stamp).ok()?)
}

/// The longest that a line that begins there can be: where it is cut.
pub(super) fn cut(start: u64) -> u64 {
    (start.div_ceil(CELL) + 1) * CELL
}

/// A log as it is at one moment, read through one buffer.
pub(super) struct LogFile {
    file: File,
    path: PathBuf,
    pub(super) length: u64,
    settled: bool,
    buffer: Vec<u8>,
    /// Where in the file the buffer begins.
    begin: u64,
}

/// A line in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl LogFile {
    pub(super) fn open(path: &Path) -> Result<LogFile> {
        let failed = Error::reading(path);
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let age = metadata.modified().map(|at| at.elapsed().unwrap_or(SETTLED));
        Ok(LogFile {
            file,
            path: path.into(),
            length: metadata.len(),
            settled: age.map_err(failed)? >= SETTLED,
            buffer: Vec::new(),
            begin: 0,
        })
    }

    /// The bytes from there on: at least so many, unless the file ends before.
    pub(super) fn view(&mut self, from: u64, least: u64) -> Result<&[u8]> {
        let until = from.saturating_add(least).min(self.length);
        let held = self.begin..=self.begin + self.buffer.len() as u64;
        if !held.contains(&from) || !held.contains(&until) {
            self.buffer.resize(BLOCK.max((until - from) as usize), 0);
            let room = usize::try_from(self.length.saturating_sub(from)).unwrap_or(usize::MAX);
            let wanted = self.buffer.len().min(room);
            let read = fill(&self.file, &mut self.buffer[..wanted], from).map_err(|source| Error::Io {
                action: "read",
                path: self.path.clone(),
                source,
            })?;
            self.buffer.truncate(read);
            self.begin = from;
        }
        Ok(&self.buffer[(from - self.begin) as usize..])
    }

    /// The last place at or before this one where a line begins, or would.
    pub(super) fn start_before(&mut self, offset: u64) -> Result<u64> {
        let cell = offset / CELL * CELL;
        let from = cell.saturating_sub(CELL);
        let bytes = self.view(from, offset - from)?;
        // The file may have been cut short meanwhile.
        let end = bytes.len().min((offset - from) as usize);
        let (before, within) = bytes[..end].split_at(end.min((cell - from) as usize));
        Ok(match (memrchr(b'\n', within), memrchr(b'\n', before)) {
            (Some(at), _) => cell + at as u64 + 1,
            (None, Some(at)) => from + at as u64 + 1,
            (None, None) => cell,
        })
    }

    /// The line that begins here. `None` at the end of the file, and where its newline is still to come.
    pub(super) fn line(&mut self, start: u64) -> Result<Option<Place>> {
        let most = cut(start) - start;
        let (length, settled) = (self.length, self.settled);
        let bytes = self.view(start, most)?;
        let bytes = &bytes[..bytes.len().min(most as usize)];
        let end = match memchr(b'\n', bytes) {
            Some(at) => start + at as u64 + 1,
            None if bytes.len() as u64 == most => start + most,
            None if settled && !bytes.is_empty() && start < length => start + bytes.len() as u64,
            None => return Ok(None),
        };
        Ok(Some(Place { start, end }))
    }

    /// The first place at or after this one where a line begins.
    pub(super) fn start_after(&mut self, offset: u64) -> Result<u64> {
        let offset = offset.min(self.length);
        let start = self.start_before(offset)?;
        Ok(match start == offset {
            true => offset,
            false => self.line(start)?.map_or(self.length, |line| line.end),
        })
    }

    /// Behind the last line that is whole.
    pub(super) fn end(&mut self) -> Result<u64> {
        let last = self.start_before(self.length)?;
        Ok(self.line(last)?.map_or(last, |line| line.end))
    }

    pub(super) fn read(&mut self, place: Place) -> Result<&[u8]> {
        let length = place.end - place.start;
        let bytes = self.view(place.start, length)?;
        Ok(&bytes[..bytes.len().min(length as usize)])
    }
}

/// As much as there is.
fn fill(file: &File, buffer: &mut [u8], offset: u64) -> IoResult<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
