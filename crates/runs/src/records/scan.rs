//! A recording read a part at a time: found by time, gone through in large pieces, checked where it matters.

use std::fs::File;
use std::io::ErrorKind;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{FlightHeader, HEADER, Record, SEQUENCE, body, check_header, decode_record};
use crate::error::{Error, Result};

/// What is read at once stays in the processor's cache.
const BLOCK: usize = 256 * 1024;
/// So many damaged records in a row are looked past for one that tells its time.
const LOOKED_PAST: u64 = 64;
/// The first and the last intact record are looked for no further than this.
const LOOKED_FOR: u64 = 64 * 1024;

/// A recording that may still grow: what is appended later is not seen.
#[derive(Debug)]
pub(crate) struct RecordFile<R> {
    file: File,
    path: PathBuf,
    pub(crate) header: Option<FlightHeader>,
    size: usize,
    /// Whole records.
    pub(crate) count: u64,
    /// It ends inside of a record.
    pub(crate) is_torn: bool,
    kind: PhantomData<fn() -> R>,
}

impl<R: Record> RecordFile<R> {
    pub(crate) fn open(path: &Path) -> Result<RecordFile<R>> {
        let failed = Error::reading(path);
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut head = vec![0; HEADER.min(usize::try_from(length).unwrap_or(HEADER))];
        file.read_exact_at(&mut head, 0).map_err(failed)?;
        let (header, size) = check_header::<R>(path, &head)?;
        let records = length - HEADER as u64;
        Ok(RecordFile {
            file,
            path: path.into(),
            header,
            size,
            count: records / size as u64,
            is_torn: !records.is_multiple_of(size as u64),
            kind: PhantomData,
        })
    }

    /// Goes through the records of a range as they stand, with their places. Those that stand in a wrong place are counted
    /// and left out; whether the others are intact, [`RecordFile::is_intact`] tells.
    pub(crate) fn scan(&self, range: Range<u64>, mut each: impl FnMut(u64, &[u8])) -> Result<u64> {
        let at_once = (BLOCK / self.size) as u64;
        let mut buffer = vec![0; at_once as usize * self.size];
        let mut misplaced = 0;
        let mut at = range.start;
        while at < range.end {
            let wanted = (range.end - at).min(at_once) as usize * self.size;
            let bytes = self.read(at, &mut buffer[..wanted])?;
            if bytes.is_empty() {
                break;
            }
            for record in bytes.chunks_exact(self.size) {
                match number(record, 0) == at {
                    true => each(at, record),
                    false => misplaced += 1,
                }
                at += 1;
            }
        }
        Ok(misplaced)
    }

    pub(crate) fn is_intact(&self, record: &[u8]) -> bool {
        body(record, self.size).is_some()
    }

    /// The record in this place, unless it is damaged.
    pub(crate) fn get(&self, at: u64) -> Result<Option<R>> {
        let mut buffer = vec![0; self.size];
        let bytes = self.read(at, &mut buffer)?;
        let decoded = decode_record(bytes, self.size).filter(|(found, _)| *found == at);
        Ok(decoded.map(|(_, record)| record))
    }

    /// The records that can be of these times, `from` and `to` among them. Damaged ones can be of any.
    pub(crate) fn between(&self, from: Option<u64>, to: Option<u64>) -> Result<Range<u64>> {
        let start = match from {
            Some(from) => self.boundary(|time| time < from)?.0,
            None => 0,
        };
        let end = match to {
            Some(to) => self.boundary(|time| time <= to)?.1,
            None => self.count,
        };
        Ok(start..end.max(start))
    }

    /// Times of the first and the last intact record.
    pub(crate) fn ends(&self) -> Result<Option<(u64, u64)>> {
        let Some((first, from)) = self.first_time(0..self.count.min(LOOKED_FOR))? else {
            return Ok(None);
        };
        let mut end = self.count;
        let lowest = self.count.saturating_sub(LOOKED_FOR).max(first);
        while end > lowest {
            let start = end.saturating_sub(LOOKED_PAST).max(lowest);
            for at in (start..end).rev() {
                if let Some((_, time)) = self.first_time(at..at + 1)? {
                    return Ok(Some((from, time.max(from))));
                }
            }
            end = start;
        }
        Ok(Some((from, from)))
    }

    /// Between which places a condition that holds for the first times ceases to.
    fn boundary(&self, holds: impl Fn(u64) -> bool) -> Result<(u64, u64)> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.first_time(middle..high.min(middle + LOOKED_PAST))? {
                Some((at, time)) if holds(time) => low = at + 1,
                Some(_) => high = middle,
                None => break,
            }
        }
        Ok((low, high))
    }

    /// The first intact record of a range: its place, and its time.
    fn first_time(&self, range: Range<u64>) -> Result<Option<(u64, u64)>> {
        let mut buffer = vec![0; self.size];
        for at in range {
            let bytes = self.read(at, &mut buffer)?;
            if number(bytes, 0) == at && self.is_intact(bytes) {
                return Ok(Some((at, time_of(bytes))));
            }
        }
        Ok(None)
    }

    /// As many whole records as there are.
    fn read<'a>(&self, at: u64, buffer: &'a mut [u8]) -> Result<&'a [u8]> {
        let offset = HEADER as u64 + at * self.size as u64;
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(Error::Io {
                        action: "read",
                        path: self.path.clone(),
                        source,
                    });
                }
            }
        }
        Ok(&buffer[..filled / self.size * self.size])
    }

    pub(crate) fn not_a_recording(&self) -> Error {
        Error::NotAFlight {
            path: self.path.clone(),
            found: "neither header nor records are intact",
        }
    }
}

/// The number at this place; of what is too short, one that nothing has.
pub(crate) fn number(record: &[u8], at: usize) -> u64 {
    let bytes = record.get(at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes))
}

/// A size or a counter at this place.
pub(crate) fn size(record: &[u8], at: usize) -> Option<u64> {
    Some(number(record, at)).filter(|size| *size != u64::MAX)
}

/// The first field of every kind of record.
pub(crate) fn time_of(record: &[u8]) -> u64 {
    number(record, SEQUENCE)
}
