//! Writing a log.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::time::{now_ms, timestamp};

/// Longer lines are cut and say how much was left out.
const LINE_LIMIT: usize = 8 * 1024;

/// Which of the two outputs a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Out,
    Err,
}

impl Stream {
    pub fn as_str(self) -> &'static str {
        match self {
            Stream::Out => "out",
            Stream::Err => "err",
        }
    }
}

/// Appends lines such as `2026-11-15T20:15:30.123Z out epoch 1`. They are written when [`LogWriter::flush`] is called, or
/// much has come together: whoever reads many lines at once writes them at once.
/// After the first failed write it stays quiet: a full disk must not end a run.
#[derive(Debug)]
pub struct LogWriter {
    file: File,
    path: PathBuf,
    lines: Vec<u8>,
    /// The last time that was written, and how.
    stamp: (i64, String),
    quiet: bool,
}

/// No more than this waits to be written.
const BUFFER: usize = 64 * 1024;

impl LogWriter {
    /// Opens the log to append to it.
    pub fn open(path: &Path) -> Result<LogWriter> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(|source| Error::Io {
                action: "create",
                path: path.to_path_buf(),
                source,
            })?;
        Ok(LogWriter {
            file,
            path: path.to_path_buf(),
            lines: Vec::new(),
            stamp: (0, timestamp(0)),
            quiet: false,
        })
    }

    /// Takes one line; `text` may hold any bytes, and what is not UTF-8 is shown as `\u{fffd}`.
    /// The first failure is reported, later calls do nothing and succeed.
    pub fn line(&mut self, stream: Stream, text: &[u8]) -> Result<()> {
        if self.quiet {
            return Ok(());
        }
        let (kept, left_out) = text.split_at(text.len().min(LINE_LIMIT));
        let now = now_ms();
        if self.stamp.0 != now {
            self.stamp = (now, timestamp(now));
        }
        let lines = &mut self.lines;
        lines.extend_from_slice(self.stamp.1.as_bytes());
        lines.push(b' ');
        lines.extend_from_slice(stream.as_str().as_bytes());
        lines.push(b' ');
        // A stray newline would make the next line look like one without a time.
        let first = lines.len();
        lines.extend_from_slice(String::from_utf8_lossy(kept).as_bytes());
        lines[first..]
            .iter_mut()
            .filter(|byte| **byte == b'\n')
            .for_each(|byte| *byte = b' ');
        if !left_out.is_empty() {
            lines.extend_from_slice(format!(" … ({} bytes more)", left_out.len()).as_bytes());
        }
        lines.push(b'\n');
        match lines.len() >= BUFFER {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Writes what has come together.
    pub fn flush(&mut self) -> Result<()> {
        let lines = std::mem::take(&mut self.lines);
        if lines.is_empty() || self.quiet {
            return Ok(());
        }
        let written = self.file.write_all(&lines);
        // The room is used again.
        self.lines = lines;
        self.lines.clear();
        written.map_err(|source| {
            self.quiet = true;
            Error::Io {
                action: "log into",
                path: self.path.clone(),
                source,
            }
        })
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        // Whoever wants to know of a failure has called `flush`.
        let _ = self.flush();
    }
}
