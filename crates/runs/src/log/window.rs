//! Pieces of a log, from any place on, back from any place, or from a time on.

use std::path::Path;

use serde::Serialize;

use super::lines::{BLOCK, LogFile, LogLine, Place, time_of};
use crate::error::Result;

/// Lines that follow each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogWindow {
    pub lines: Vec<LogLine>,
    /// The bytes of the file that the lines cover: the next window begins at `end`, the one before ends at `start`.
    pub start: u64,
    pub end: u64,
    /// Of the whole file, now.
    pub length: u64,
}

/// A window never holds more than this, however many lines are asked for, unless one line alone does.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// How far is looked for a line that has a time.
const WITHOUT_TIME: u64 = 4 * 1024 * 1024;

/// At most `n` lines, from the first that begins at or after `offset`. A last line that may still be written is left for
/// later.
pub fn log_after(path: &Path, offset: u64, n: usize) -> Result<LogWindow> {
    let mut file = LogFile::open(path)?;
    let start = file.start_after(offset)?;
    let mut window = LogWindow {
        lines: Vec::new(),
        start,
        end: start,
        length: file.length,
    };
    while window.lines.len() < n && window.end - start < MOST_BYTES {
        let Some(line) = file.line(window.end)? else { break };
        window.lines.push(LogLine::new(line.start, file.read(line)?));
        window.end = line.end;
    }
    Ok(window)
}

/// The last `n` lines that end at or before `offset`; of those that end the file with `u64::MAX`.
pub fn log_before(path: &Path, offset: u64, n: usize) -> Result<LogWindow> {
    let mut file = LogFile::open(path)?;
    let end = match offset < file.length {
        true => file.start_before(offset)?,
        false => file.end()?,
    };
    let mut window = LogWindow {
        lines: Vec::new(),
        start: end,
        end,
        length: file.length,
    };
    // The last line first.
    while window.lines.len() < n && window.start > 0 && end - window.start < MOST_BYTES {
        let from = file.start_before(window.start.saturating_sub(BLOCK as u64 / 2))?;
        let mut places: Vec<Place> = Vec::new();
        let mut at = from;
        while at < window.start {
            let Some(line) = file.line(at)? else { break };
            places.push(line);
            at = line.end;
        }
        // The file was cut short while it was read.
        if at != window.start || places.is_empty() {
            break;
        }
        for line in places.into_iter().rev() {
            if window.lines.len() == n || end - window.start >= MOST_BYTES {
                break;
            }
            window.lines.push(LogLine::new(line.start, file.read(line)?));
            window.start = line.start;
        }
    }
    window.lines.reverse();
    Ok(window)
}

/// Where the first line stands that came at or after a time, in milliseconds since 1970; the end of the file if there is
/// none. Lines without a time belong to the one before them.
pub fn log_at_time(path: &Path, ms: i64) -> Result<u64> {
    let mut file = LogFile::open(path)?;
    let (mut low, mut high) = (0, file.length);
    let mut found = None;
    while high - low > BLOCK as u64 / 4 {
        let middle = file.start_after(low + (high - low) / 2)?;
        if middle >= high {
            break;
        }
        match with_time(&mut file, middle, high.min(middle + WITHOUT_TIME))? {
            Some((line, time)) if time < ms => low = line.end,
            Some((line, _)) => (found, high) = (Some(line.start), middle),
            None => high = middle,
        }
    }
    while let Some((line, time)) = with_time(&mut file, low, high)? {
        if time >= ms {
            return Ok(line.start);
        }
        low = line.end;
    }
    Ok(found.unwrap_or(file.length))
}

/// The first line with a time that begins between these places.
fn with_time(file: &mut LogFile, mut from: u64, to: u64) -> Result<Option<(Place, i64)>> {
    while from < to {
        let Some(line) = file.line(from)? else { break };
        if let Some(time) = time_of(file.read(line)?) {
            return Ok(Some((line, time)));
        }
        from = line.end;
    }
    Ok(None)
}
