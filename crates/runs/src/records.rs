//! Files of fixed-size records, written so that they survive the death of either side.
//!
//! A header of 64 bytes, then records of one size, all little endian, each with its own checksum. Every record is one
//! `write(2)` with nothing buffered in the process, so a `kill -9` of the worker or of its supervisor loses nothing
//! that was seen; only a power cut can. A figure that was not available is `u64::MAX` (or NaN) on disk and `None` in
//! memory. A later version of a kind may only add fields at the end: files of earlier ones are read, without them.
//!
//! ```text
//! header   0 magic, 8 bytes · 8 version u32 · 12 record size u32 · 16 run id, 16 bytes, zero-padded
//!         32 start, ms since 1970, i64 · 40 zero · 60 crc32 of bytes 0..60
//! record   0 sequence u64 · 8 the fields, zero to the end · crc32 of all before it u32
//! ```

pub(crate) mod scan;

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};

const HEADER: usize = 64;
const SEQUENCE: usize = 8;
const CHECKSUM: usize = 4;

/// A kind of record. Its first field is the time, in milliseconds since the start of the recording.
pub trait Record: Sized {
    const MAGIC: &'static [u8; 8];
    /// The bytes of a record in each version, the first one first; the last is what is written.
    const SIZES: &'static [usize];
    fn put(&self, fields: &mut Fields);
    fn take(fields: &mut Fields) -> Self;
}

/// What a file says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlightHeader {
    pub run_id: String,
    /// Wall clock at `time_ms` 0, in milliseconds since 1970.
    pub start_ms: i64,
}

/// A recording as far as it can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording<R> {
    /// `None` when the header is damaged but records behind it are not.
    pub header: Option<FlightHeader>,
    pub records: Vec<R>,
    /// Records that were torn or do not match their checksum.
    pub damaged: usize,
}

/// Appends records. After the first failed write it stays quiet: a full disk must not end a run.
#[derive(Debug)]
pub struct RecordWriter<R> {
    file: File,
    path: PathBuf,
    sequence: u64,
    quiet: bool,
    kind: PhantomData<fn(R)>,
}

impl<R: Record> RecordWriter<R> {
    /// Begins a recording. An existing file is not overwritten.
    pub fn create(path: &Path, header: &FlightHeader) -> Result<RecordWriter<R>> {
        let failed = |source| Error::Io {
            action: "create",
            path: path.to_path_buf(),
            source,
        };
        let mut file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(failed)?;
        file.write_all(&encode_header::<R>(header)).map_err(failed)?;
        Ok(RecordWriter {
            file,
            path: path.to_path_buf(),
            sequence: 0,
            quiet: false,
            kind: PhantomData,
        })
    }

    /// Writes one record. The first failure is reported, later calls do nothing and succeed.
    pub fn append(&mut self, record: &R) -> Result<()> {
        if self.quiet {
            return Ok(());
        }
        // A single write: `write_all` would go on after a short write, which only happens on a full disk, and there
        // the torn record is the honest end of the recording.
        let bytes = encode_record(self.sequence, record);
        let written = loop {
            match self.file.write(&bytes) {
                Ok(written) if written == bytes.len() => break Ok(()),
                Ok(_) => break Err(io::Error::from(io::ErrorKind::StorageFull)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        match written {
            Ok(()) => {
                self.sequence += 1;
                Ok(())
            }
            Err(source) => {
                self.quiet = true;
                Err(Error::Io {
                    action: "record into",
                    path: self.path.clone(),
                    source,
                })
            }
        }
    }

    /// Whether a failed write has ended the recording.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }
}

/// Reads a recording, skips what is damaged and says how much that was.
pub fn read_records<R: Record>(path: &Path) -> Result<Recording<R>> {
    let failed = |source| Error::Io {
        action: "read",
        path: path.to_path_buf(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let mut reader = BufReader::with_capacity(32 << 10, file);
    let mut head = [0u8; HEADER];
    let read = fill(&mut reader, &mut head).map_err(failed)?;
    let (header, size) = check_header::<R>(path, &head[..read])?;
    let mut recording = Recording {
        header,
        records: Vec::new(),
        damaged: 0,
    };
    let mut bytes = vec![0u8; size];
    for sequence in 0u64.. {
        let read = fill(&mut reader, &mut bytes).map_err(failed)?;
        if read == 0 {
            break;
        }
        match decode_record(&bytes[..read], size) {
            Some((found, record)) if found == sequence => recording.records.push(record),
            _ => recording.damaged += 1,
        }
    }
    if recording.header.is_none() && recording.records.is_empty() {
        return Err(Error::NotAFlight {
            path: path.to_path_buf(),
            found: "neither header nor records are intact",
        });
    }
    Ok(recording)
}

/// The newest intact record and the header, without reading the whole file.
pub(crate) fn last_of<R: Record>(path: &Path) -> Result<(Option<FlightHeader>, Option<R>)> {
    let failed = |source| Error::Io {
        action: "read",
        path: path.to_path_buf(),
        source,
    };
    let mut file = File::open(path).map_err(failed)?;
    let mut head = [0u8; HEADER];
    let read = fill(&mut file, &mut head).map_err(failed)?;
    let (header, size) = check_header::<R>(path, &head[..read])?;
    let length = file.metadata().map_err(failed)?.len();
    let records = length.saturating_sub(HEADER as u64).div_ceil(size as u64);
    let mut bytes = vec![0u8; size];
    for sequence in (0..records).rev() {
        file.seek(SeekFrom::Start(HEADER as u64 + sequence * size as u64))
            .map_err(failed)?;
        let read = fill(&mut file, &mut bytes).map_err(failed)?;
        if let Some((found, record)) = decode_record(&bytes[..read], size)
            && found == sequence
        {
            return Ok((header, Some(record)));
        }
    }
    Ok((header, None))
}

/// Like `read_exact`, but says how much there was.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn newest<R: Record>() -> usize {
    R::SIZES[R::SIZES.len() - 1]
}

fn encode_header<R: Record>(header: &FlightHeader) -> [u8; HEADER] {
    let mut bytes = [0u8; HEADER];
    bytes[..8].copy_from_slice(R::MAGIC);
    bytes[8..12].copy_from_slice(&(R::SIZES.len() as u32).to_le_bytes());
    bytes[12..16].copy_from_slice(&(newest::<R>() as u32).to_le_bytes());
    let id = header.run_id.as_bytes();
    let kept = id.len().min(16);
    bytes[16..16 + kept].copy_from_slice(&id[..kept]);
    bytes[32..40].copy_from_slice(&header.start_ms.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..60]);
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The header with the size of the records. `None` is one that was ours and is damaged; the records may still be read,
/// as the newest version writes them.
fn check_header<R: Record>(path: &Path, bytes: &[u8]) -> Result<(Option<FlightHeader>, usize)> {
    let refused = |found| {
        Err(Error::NotAFlight {
            path: path.to_path_buf(),
            found,
        })
    };
    if bytes.is_empty() {
        return refused("it is empty");
    }
    let Some(bytes) = bytes.first_chunk::<HEADER>() else {
        return refused("it ends inside its header");
    };
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if crc32fast::hash(&bytes[..60]) != word(60) {
        return Ok((None, newest::<R>()));
    }
    if &bytes[..8] != R::MAGIC {
        return refused("it begins with other bytes");
    }
    let size = (word(8) as usize).checked_sub(1).and_then(|at| R::SIZES.get(at));
    let Some(&size) = size.filter(|size| **size == word(12) as usize) else {
        return Err(Error::FlightVersion {
            path: path.to_path_buf(),
            found: word(8),
            known: R::SIZES.len() as u32,
        });
    };
    let id = bytes[16..32].iter().copied().take_while(|&byte| byte != 0);
    let mut start = [0u8; 8];
    start.copy_from_slice(&bytes[32..40]);
    let header = FlightHeader {
        run_id: String::from_utf8_lossy(&id.collect::<Vec<u8>>()).into_owned(),
        start_ms: i64::from_le_bytes(start),
    };
    Ok((Some(header), size))
}

fn encode_record<R: Record>(sequence: u64, record: &R) -> Vec<u8> {
    let size = newest::<R>();
    let mut fields = Fields {
        bytes: vec![0; size],
        at: 0,
        end: size - CHECKSUM,
    };
    fields.put(&sequence.to_le_bytes());
    record.put(&mut fields);
    let mut bytes = fields.bytes;
    let crc = crc32fast::hash(&bytes[..size - CHECKSUM]);
    bytes[size - CHECKSUM..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// What its checksum is of, if it fits.
fn body(bytes: &[u8], size: usize) -> Option<&[u8]> {
    let (body, checksum) = bytes.split_last_chunk::<CHECKSUM>()?;
    let fits = bytes.len() == size && crc32fast::hash(body) == u32::from_le_bytes(*checksum);
    fits.then_some(body)
}

fn decode_record<R: Record>(bytes: &[u8], size: usize) -> Option<(u64, R)> {
    let body = body(bytes, size)?;
    let sequence = u64::from_le_bytes(*body.first_chunk::<SEQUENCE>()?);
    let mut fields = Fields {
        bytes: bytes.to_vec(),
        at: SEQUENCE,
        end: body.len(),
    };
    Some((sequence, R::take(&mut fields)))
}

/// The fields of a record, one after the other. What is behind the end of an earlier version is not there.
#[derive(Debug)]
pub struct Fields {
    bytes: Vec<u8>,
    at: usize,
    end: usize,
}

impl Fields {
    fn put(&mut self, field: &[u8]) {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let field = self.bytes[..self.end].get(self.at..)?.first_chunk::<N>().copied();
        self.at += N;
        field
    }

    pub fn put_number(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    pub fn put_count(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    /// Sizes and counters that may be unavailable.
    pub fn put_sizes(&mut self, sizes: &[Option<u64>]) {
        sizes
            .iter()
            .for_each(|size| self.put_number(size.unwrap_or(u64::MAX)));
    }

    pub fn put_share(&mut self, share: Option<f32>) {
        self.put(&share.unwrap_or(f32::NAN).to_le_bytes());
    }

    /// The first `N` bytes of a text.
    pub fn put_text<const N: usize>(&mut self, text: &str) {
        let mut bytes = [0u8; N];
        let kept = text.len().min(N);
        bytes[..kept].copy_from_slice(&text.as_bytes()[..kept]);
        self.put(&bytes);
    }

    pub fn number(&mut self) -> u64 {
        self.take().map_or(0, u64::from_le_bytes)
    }

    pub fn count(&mut self) -> u32 {
        self.take().map_or(0, u32::from_le_bytes)
    }

    pub fn size(&mut self) -> Option<u64> {
        self.take()
            .map(u64::from_le_bytes)
            .filter(|size| *size != u64::MAX)
    }

    pub fn share(&mut self) -> Option<f32> {
        self.take()
            .map(f32::from_le_bytes)
            .filter(|share| !share.is_nan())
    }

    pub fn text<const N: usize>(&mut self) -> String {
        let bytes = self.take::<N>().unwrap_or([0; N]);
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }
}
