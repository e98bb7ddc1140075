//! The flight recorder: what a run's memory did, written so that it survives the death of either side.
//!
//! A header of 64 bytes, then records of 144 bytes, all little endian, each with its own checksum.
//! Every record is one `write(2)` with nothing buffered in the process, so a `kill -9` of the worker or
//! of its supervisor loses nothing that was seen; only a power cut can. A figure that was not available
//! is `u64::MAX` (or NaN) on disk and `None` in memory.
//!
//! ```text
//! header   0 magic "TGFLIGHT" · 8 version u32 · 12 record size u32 · 16 run id, 16 bytes, zero-padded
//!         32 start, ms since 1970, i64 · 40 zero · 60 crc32 of bytes 0..60
//! record   0 sequence u64 · 8 time_ms u64 · 16 twelve u64 · 112 two f32 · 120 processes u32
//!        124 epoch u32 · 128 step u64 · 136 zero · 140 crc32 of bytes 0..140
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};

const MAGIC: &[u8; 8] = b"TGFLIGHT";
const VERSION: u32 = 1;
const HEADER: usize = 64;
const RECORD: usize = 144;

/// What the file says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlightHeader {
    pub run_id: String,
    /// Wall clock at `time_ms` 0, in milliseconds since 1970.
    pub start_ms: i64,
}

/// One look at a run. Sizes are bytes; `None` is "not available" or "not read this time".
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct FlightRecord {
    /// Milliseconds since the start of the recording.
    pub time_ms: u64,
    /// Of the worker and its descendants together, like the five that follow.
    pub resident: Option<u64>,
    pub proportional: Option<u64>,
    pub anonymous: Option<u64>,
    pub file: Option<u64>,
    pub shared: Option<u64>,
    pub swap: Option<u64>,
    pub cgroup_usage: Option<u64>,
    pub cgroup_peak: Option<u64>,
    pub oom_kills: Option<u64>,
    pub ledger_used: Option<u64>,
    pub ledger_peak: Option<u64>,
    pub budget: Option<u64>,
    /// Share of the last 10 s in which some (all) tasks waited for memory, in percent.
    pub pressure_some: Option<f32>,
    pub pressure_full: Option<f32>,
    pub processes: u32,
    pub epoch: u32,
    pub step: u64,
}

/// A recording as far as it can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Flight {
    /// `None` when the header is damaged but records behind it are not.
    pub header: Option<FlightHeader>,
    pub records: Vec<FlightRecord>,
    /// Records that were torn or do not match their checksum.
    pub damaged: usize,
}

/// Appends records. After the first failed write it stays quiet: a full disk must not end a run.
#[derive(Debug)]
pub struct FlightWriter {
    file: File,
    path: PathBuf,
    sequence: u64,
    quiet: bool,
}

impl FlightWriter {
    /// Begins a recording. An existing file is not overwritten.
    pub fn create(path: &Path, header: &FlightHeader) -> Result<FlightWriter> {
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
        file.write_all(&encode_header(header)).map_err(failed)?;
        Ok(FlightWriter {
            file,
            path: path.to_path_buf(),
            sequence: 0,
            quiet: false,
        })
    }

    /// Writes one record. The first failure is reported, later calls do nothing and succeed.
    pub fn append(&mut self, record: &FlightRecord) -> Result<()> {
        if self.quiet {
            return Ok(());
        }
        // A single write of 144 bytes: `write_all` would go on after a short write, which only
        // happens on a full disk, and there the torn record is the honest end of the recording.
        let bytes = encode_record(self.sequence, record);
        let written = loop {
            match self.file.write(&bytes) {
                Ok(RECORD) => break Ok(()),
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
pub fn read_flight(path: &Path) -> Result<Flight> {
    let failed = |source| Error::Io {
        action: "read",
        path: path.to_path_buf(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let mut reader = BufReader::with_capacity(RECORD * 256, file);
    let mut head = [0u8; HEADER];
    let read = fill(&mut reader, &mut head).map_err(failed)?;
    let header = check_header(path, &head[..read])?;

    let mut flight = Flight {
        header,
        records: Vec::new(),
        damaged: 0,
    };
    let mut bytes = [0u8; RECORD];
    for sequence in 0u64.. {
        let read = fill(&mut reader, &mut bytes).map_err(failed)?;
        if read == 0 {
            break;
        }
        match decode_record(&bytes[..read]) {
            Some((found, record)) if found == sequence => flight.records.push(record),
            _ => flight.damaged += 1,
        }
    }
    if flight.header.is_none() && flight.records.is_empty() {
        return Err(Error::NotAFlight {
            path: path.to_path_buf(),
            found: "neither header nor records are intact",
        });
    }
    Ok(flight)
}

/// The newest intact record and the header, without reading the whole file.
pub fn last_record(path: &Path) -> Result<(Option<FlightHeader>, Option<FlightRecord>)> {
    let failed = |source| Error::Io {
        action: "read",
        path: path.to_path_buf(),
        source,
    };
    let mut file = File::open(path).map_err(failed)?;
    let mut head = [0u8; HEADER];
    let read = fill(&mut file, &mut head).map_err(failed)?;
    let header = check_header(path, &head[..read])?;
    let length = file.metadata().map_err(failed)?.len();
    let records = length.saturating_sub(HEADER as u64).div_ceil(RECORD as u64);
    for sequence in (0..records).rev() {
        file.seek(SeekFrom::Start(HEADER as u64 + sequence * RECORD as u64))
            .map_err(failed)?;
        let mut bytes = [0u8; RECORD];
        let read = fill(&mut file, &mut bytes).map_err(failed)?;
        if let Some((found, record)) = decode_record(&bytes[..read])
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

fn encode_header(header: &FlightHeader) -> [u8; HEADER] {
    let mut bytes = [0u8; HEADER];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&(RECORD as u32).to_le_bytes());
    let id = header.run_id.as_bytes();
    let kept = id.len().min(16);
    bytes[16..16 + kept].copy_from_slice(&id[..kept]);
    bytes[32..40].copy_from_slice(&header.start_ms.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..60]);
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// `Ok(None)` is a header that was ours and is damaged; the records may still be read.
fn check_header(path: &Path, bytes: &[u8]) -> Result<Option<FlightHeader>> {
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
        return Ok(None);
    }
    if &bytes[..8] != MAGIC {
        return refused("it begins with other bytes");
    }
    if word(8) != VERSION || word(12) != RECORD as u32 {
        return Err(Error::FlightVersion {
            path: path.to_path_buf(),
            found: word(8),
            known: VERSION,
        });
    }
    let id: Vec<u8> = bytes[16..32]
        .iter()
        .copied()
        .take_while(|&byte| byte != 0)
        .collect();
    let mut start = [0u8; 8];
    start.copy_from_slice(&bytes[32..40]);
    Ok(Some(FlightHeader {
        run_id: String::from_utf8_lossy(&id).into_owned(),
        start_ms: i64::from_le_bytes(start),
    }))
}

fn encode_record(sequence: u64, record: &FlightRecord) -> [u8; RECORD] {
    let mut out = Cursor {
        bytes: [0u8; RECORD],
        at: 0,
    };
    out.put(&sequence.to_le_bytes());
    out.put(&record.time_ms.to_le_bytes());
    for size in [
        record.resident,
        record.proportional,
        record.anonymous,
        record.file,
        record.shared,
        record.swap,
        record.cgroup_usage,
        record.cgroup_peak,
        record.oom_kills,
        record.ledger_used,
        record.ledger_peak,
        record.budget,
    ] {
        out.put(&size.unwrap_or(u64::MAX).to_le_bytes());
    }
    out.put(&record.pressure_some.unwrap_or(f32::NAN).to_le_bytes());
    out.put(&record.pressure_full.unwrap_or(f32::NAN).to_le_bytes());
    out.put(&record.processes.to_le_bytes());
    out.put(&record.epoch.to_le_bytes());
    out.put(&record.step.to_le_bytes());
    let crc = crc32fast::hash(&out.bytes[..RECORD - 4]);
    out.at = RECORD - 4;
    out.put(&crc.to_le_bytes());
    out.bytes
}

fn decode_record(bytes: &[u8]) -> Option<(u64, FlightRecord)> {
    let mut input = Cursor {
        bytes: *bytes.first_chunk::<RECORD>()?,
        at: RECORD - 4,
    };
    if crc32fast::hash(&bytes[..RECORD - 4]) != u32::from_le_bytes(input.take()) {
        return None;
    }
    input.at = 0;
    let sequence = u64::from_le_bytes(input.take());
    let record = FlightRecord {
        time_ms: u64::from_le_bytes(input.take()),
        resident: input.size(),
        proportional: input.size(),
        anonymous: input.size(),
        file: input.size(),
        shared: input.size(),
        swap: input.size(),
        cgroup_usage: input.size(),
        cgroup_peak: input.size(),
        oom_kills: input.size(),
        ledger_used: input.size(),
        ledger_peak: input.size(),
        budget: input.size(),
        pressure_some: input.share(),
        pressure_full: input.share(),
        processes: u32::from_le_bytes(input.take()),
        epoch: u32::from_le_bytes(input.take()),
        step: u64::from_le_bytes(input.take()),
    };
    Some((sequence, record))
}

/// A place in a record's bytes; the layout is fixed, so it never runs over.
struct Cursor {
    bytes: [u8; RECORD],
    at: usize,
}

impl Cursor {
    fn put(&mut self, field: &[u8]) {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut field = [0u8; N];
        field.copy_from_slice(&self.bytes[self.at..self.at + N]);
        self.at += N;
        field
    }

    fn size(&mut self) -> Option<u64> {
        let value = u64::from_le_bytes(self.take());
        (value != u64::MAX).then_some(value)
    }

    fn share(&mut self) -> Option<f32> {
        let value = f32::from_le_bytes(self.take());
        (!value.is_nan()).then_some(value)
    }
}
