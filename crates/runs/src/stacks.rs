//! Where the Python code of a run was, and how large its process was there: JSON lines, so that a torn end costs one.
//!
//! ```text
//! {"frame":0,"file":"/home/ada/train.py","line":12,"function":"load"}
//! {"time_ms":1200,"pid":77,"start_time":9876,"held":81264640,"threads":[{"name":"MainThread","active":true,"gil":true,"frames":[0]}]}
//! ```
//!
//! A frame is written once, before the first sample that has it; the innermost frame of a thread comes first.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A place in Python code.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    pub file: String,
    /// From 1; 0 where it is not known.
    pub line: u32,
    pub function: String,
}

/// The stack of one thread, the innermost frame first, as places in [`Stacks::frames`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadStack {
    #[serde(default)]
    pub name: Option<String>,
    /// It ran, or was ready to, when it was looked at.
    pub active: bool,
    /// It had the interpreter's lock.
    pub gil: bool,
    pub frames: Vec<u32>,
}

/// One look at a Python process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackSample {
    pub time_ms: u64,
    pub pid: i32,
    pub start_time: u64,
    /// Its anonymous and swapped memory at that moment, in bytes.
    pub held: Option<u64>,
    pub threads: Vec<ThreadStack>,
}

/// All samples of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stacks {
    pub frames: Vec<Frame>,
    pub samples: Vec<StackSample>,
    /// Lines that could not be read.
    pub damaged: usize,
}

/// A thread as it was seen, before its frames are numbered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenThread {
    pub name: Option<String>,
    pub active: bool,
    pub gil: bool,
    /// The innermost first.
    pub frames: Vec<Frame>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Frame {
        frame: u32,
        #[serde(flatten)]
        place: Frame,
    },
    Sample(StackSample),
}

/// Appends samples, up to a size. After the first failed write it stays quiet.
#[derive(Debug)]
pub struct StackWriter {
    file: File,
    path: PathBuf,
    known: HashMap<Frame, u32>,
    written: u64,
    quiet: bool,
}

/// Samples that would make the file larger are left out; long before that they should be taken less often.
const MOST_BYTES: u64 = 64 << 20;

impl StackWriter {
    /// Begins a file. An existing one is not overwritten.
    pub fn create(path: &Path) -> Result<StackWriter> {
        let file = OpenOptions::new().append(true).create_new(true).open(path);
        Ok(StackWriter {
            file: file.map_err(Error::creating(path))?,
            path: path.to_path_buf(),
            known: HashMap::new(),
            written: 0,
            quiet: false,
        })
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.written
    }

    /// Writes one sample, with the frames that are new. The first failure is reported, later calls do nothing and
    /// succeed.
    pub fn append(&mut self, sample: &StackSample, threads: &[SeenThread]) -> Result<()> {
        if self.quiet || self.written > MOST_BYTES {
            return Ok(());
        }
        let mut text = Vec::new();
        let mut numbered = sample.clone();
        numbered.threads = threads
            .iter()
            .map(|thread| ThreadStack {
                name: thread.name.clone(),
                active: thread.active,
                gil: thread.gil,
                frames: thread
                    .frames
                    .iter()
                    .map(|frame| self.number(frame, &mut text))
                    .collect(),
            })
            .collect();
        push_line(&mut text, &Line::Sample(numbered));
        self.written += text.len() as u64;
        self.file.write_all(&text).map_err(|source| {
            self.quiet = true;
            Error::Io {
                action: "record into",
                path: self.path.clone(),
                source,
            }
        })
    }

    fn number(&mut self, frame: &Frame, text: &mut Vec<u8>) -> u32 {
        if let Some(number) = self.known.get(frame) {
            return *number;
        }
        let number = self.known.len() as u32;
        self.known.insert(frame.clone(), number);
        push_line(
            text,
            &Line::Frame {
                frame: number,
                place: frame.clone(),
            },
        );
        number
    }
}

fn push_line(text: &mut Vec<u8>, line: &Line) {
    // Numbers and texts always serialize.
    if serde_json::to_writer(&mut *text, line).is_ok() {
        text.push(b'\n');
    }
}

/// Reads what is intact of a file of stacks.
pub fn read_stacks(path: &Path) -> Result<Stacks> {
    let failed = |source| Error::Io {
        action: "read",
        path: path.to_path_buf(),
        source,
    };
    let mut reader = BufReader::new(File::open(path).map_err(failed)?);
    let mut stacks = Stacks::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            return Ok(stacks);
        }
        let known = stacks.frames.len() as u32;
        match serde_json::from_slice(&line) {
            Ok(Line::Frame { frame, place }) if frame == known => stacks.frames.push(place),
            Ok(Line::Sample(sample)) if sample.frames().all(|frame| frame < known) => {
                stacks.samples.push(sample)
            }
            _ => stacks.damaged += 1,
        }
    }
}

impl StackSample {
    fn frames(&self) -> impl Iterator<Item = u32> {
        self.threads
            .iter()
            .flat_map(|thread| thread.frames.iter().copied())
    }
}
