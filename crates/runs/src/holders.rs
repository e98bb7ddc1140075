//! Who held how much of the budget, over time: JSON lines, so that a torn end costs one.
//!
//! ```text
//! {"holder":0,"name":"rows"}
//! {"time_ms":1200,"used":[[0,81264640]]}
//! ```
//!
//! A name is written once, before the first snapshot that has it. Who is not in a snapshot held nothing, and between two
//! snapshots everybody held what the first one says, within a hundredth of the budget.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A snapshot is written when one holder moved by this part of the budget, and not more often than this, in milliseconds.
const MOVE: u64 = 100;
const AT_MOST_EVERY_MS: u64 = 1_000;
/// Twice as seldom each time that the file has grown by so much: a job whose memory never rests fills 2 MB in some hours.
const SELDOMER_AFTER: u64 = 2 << 20;
/// Snapshots that would make the file larger are left out; by then there would be one in four minutes.
const MOST_BYTES: u64 = 16 << 20;
/// No snapshot of ours is as long.
const LONGEST_LINE: u64 = 64 << 10;

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Holder { holder: usize, name: String },
    Snapshot { time_ms: u64, used: Vec<(usize, u64)> },
}

/// Takes every snapshot, and writes those that say something. After the first failed write it stays quiet.
#[derive(Debug)]
pub struct HolderWriter {
    file: File,
    path: PathBuf,
    numbers: HashMap<String, usize>,
    /// The last one written, by the numbers of the holders.
    last: Option<(u64, Vec<u64>)>,
    /// A later one, not written.
    held_back: Option<(u64, Vec<u64>)>,
    written: u64,
    quiet: bool,
}

impl HolderWriter {
    /// Begins a file. An existing one is not overwritten.
    pub fn create(path: &Path) -> Result<HolderWriter> {
        let file = OpenOptions::new().append(true).create_new(true).open(path);
        Ok(HolderWriter {
            file: file.map_err(Error::creating(path))?,
            path: path.to_path_buf(),
            numbers: HashMap::new(),
            last: None,
            held_back: None,
            written: 0,
            quiet: false,
        })
    }

    /// Takes what each of them holds at a time since the start of the recording, in milliseconds. The first failure is
    /// reported, later calls do nothing and succeed.
    pub fn append(&mut self, time_ms: u64, holders: &[(String, u64)], budget: u64) -> Result<()> {
        if self.quiet || self.written > MOST_BYTES {
            return Ok(());
        }
        let mut lines = Vec::new();
        let mut used = Vec::new();
        for (name, bytes) in holders {
            let number = self.number(name, &mut lines);
            used.resize(used.len().max(number + 1), 0);
            used[number] += *bytes;
        }
        let pause = AT_MOST_EVERY_MS << (self.written / SELDOMER_AFTER);
        let is_due = self.last.as_ref().is_none_or(|(last_ms, last)| {
            let at = |held: &[u64], number: usize| held.get(number).copied().unwrap_or(0);
            let moved = |number: usize| at(last, number).abs_diff(at(&used, number)) > budget / MOVE;
            time_ms >= last_ms + pause && (0..last.len().max(used.len())).any(moved)
        });
        if is_due {
            self.held_back = None;
            return self.write(lines, (time_ms, used));
        }
        self.held_back = Some((time_ms, used));
        // The names are known from now on.
        self.put(&lines)
    }

    /// Writes the last snapshot, if it was held back.
    pub fn end(&mut self) -> Result<()> {
        match self.held_back.take() {
            Some(snapshot) if !self.quiet => self.write(Vec::new(), snapshot),
            _ => Ok(()),
        }
    }

    fn number(&mut self, name: &str, lines: &mut Vec<u8>) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.numbers.len();
        self.numbers.insert(name.into(), number);
        push_line(
            lines,
            &Line::Holder {
                holder: number,
                name: name.into(),
            },
        );
        number
    }

    fn write(&mut self, mut lines: Vec<u8>, snapshot: (u64, Vec<u64>)) -> Result<()> {
        let used = snapshot
            .1
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, bytes)| *bytes > 0);
        let line = Line::Snapshot {
            time_ms: snapshot.0,
            used: used.collect(),
        };
        push_line(&mut lines, &line);
        self.last = Some(snapshot);
        self.put(&lines)
    }

    fn put(&mut self, lines: &[u8]) -> Result<()> {
        self.written += lines.len() as u64;
        self.file.write_all(lines).map_err(|source| {
            self.quiet = true;
            Error::Io {
                action: "record into",
                path: self.path.clone(),
                source,
            }
        })
    }
}

fn push_line(text: &mut Vec<u8>, line: &Line) {
    // Numbers and texts always serialize.
    if serde_json::to_writer(&mut *text, line).is_ok() {
        text.push(b'\n');
    }
}

/// What a file of holders says, one after the other.
pub(crate) enum Told {
    /// The next number is this name's.
    Name(String),
    /// By numbers that were told before.
    Snapshot { time_ms: u64, used: Vec<(usize, u64)> },
}

/// Goes through what is intact of a file of holders, whatever it holds in small memory.
pub(crate) fn read_holders(path: &Path, mut told: impl FnMut(Told)) -> Result<()> {
    let failed = Error::reading(path);
    let file = File::open(path).map_err(failed)?;
    let mut reader = BufReader::new(file.take(2 * MOST_BYTES));
    let (mut line, mut known) = (Vec::new(), 0);
    loop {
        line.clear();
        let mut piece = reader.by_ref().take(LONGEST_LINE);
        if piece.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            return Ok(());
        }
        match serde_json::from_slice(&line) {
            Ok(Line::Holder { holder, name }) if holder == known => {
                known += 1;
                told(Told::Name(name));
            }
            Ok(Line::Snapshot { time_ms, used }) if used.iter().all(|(holder, _)| *holder < known) => {
                told(Told::Snapshot { time_ms, used });
            }
            _ => {}
        }
    }
}
