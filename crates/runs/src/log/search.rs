//! Searching a log, as fast as it can be read, in a buffer of fixed size.

use std::path::Path;

use memchr::memmem::Finder;
use memchr::{memchr, memrchr};
use serde::Serialize;

use super::errors::{self, is_error, may_be_error, without_escapes};
use super::lines::{BLOCK, LogFile, LogLine, cut, parts};
use crate::error::Result;

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Needle {
    /// Words in a line, its time and stream aside, whatever colours they are printed in. ASCII letters are found in
    /// either case.
    Text(String),
    /// Lines that look like an error: tracebacks, exceptions, what a program, a runtime or the kernel says when it gives up.
    Errors,
}

/// What was found in a piece of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogHits {
    pub lines: Vec<LogLine>,
    /// Where to go on; `None` at the end of the file.
    pub next: Option<u64>,
    /// Everything before it was searched: where to look when the file has grown.
    pub searched_to: u64,
}

/// What colours and other sequences for a terminal begin with.
const ESCAPE: &[u8] = b"\x1b";

/// More than this is not found at once, however many hits are asked for: hostile lines may be long.
const MOST_TEXT: usize = 512 * 1024;

/// Lines that hold the needle, from the first that begins at or after `from`: at most so many, and no further than about so
/// many bytes.
pub fn log_search(
    path: &Path,
    what: &Needle,
    from: u64,
    most_hits: usize,
    most_bytes: u64,
) -> Result<LogHits> {
    let mut file = LogFile::open(path)?;
    let mut search = Search::new(what);
    let begin = file.start_after(from)?;
    let end = file.end()?;
    let mut hits = LogHits {
        lines: Vec::new(),
        next: None,
        searched_to: begin,
    };
    let mut lower = Vec::with_capacity(BLOCK);
    let (mut text, mut counted) = (0, 0);
    while hits.searched_to < end {
        let (at, read) = (hits.searched_to, hits.searched_to - begin);
        text += hits.lines[counted..]
            .iter()
            .map(|line| line.text.len())
            .sum::<usize>();
        counted = hits.lines.len();
        if hits.lines.len() >= most_hits.max(1) || text >= MOST_TEXT || read >= most_bytes {
            hits.next = Some(at);
            break;
        }
        let room = (end - at).min(BLOCK as u64);
        let bytes = file.view(at, room)?;
        let bytes = &bytes[..bytes.len().min(room as usize)];
        let whole = whole_lines(bytes, at, end);
        if whole == 0 {
            // The file was cut short while it was read.
            break;
        }
        let bytes = &bytes[..whole];
        lower.clear();
        lower.extend_from_slice(bytes);
        lower.make_ascii_lowercase();
        hits.searched_to += search.block(at, bytes, &lower, most_hits.max(1), &mut hits.lines) as u64;
    }
    Ok(hits)
}

/// How many of these bytes are whole lines; `end` is where the file ends.
fn whole_lines(bytes: &[u8], at: u64, end: u64) -> usize {
    let length = bytes.len() as u64;
    if at + length >= end {
        return bytes.len();
    }
    let start = memrchr(b'\n', bytes).map_or(at, |newline| at + newline as u64 + 1);
    // Of a line without an end, the pieces that are whole.
    let mut last = start;
    while cut(last) <= at + length {
        last = cut(last);
    }
    (last - at) as usize
}

struct Search {
    /// Of the words of errors; or of the one text, and of what begins a colour: that may stand between its letters.
    finders: Vec<Finder<'static>>,
    of_errors: bool,
    /// Where each of them finds its words next, in the block at hand.
    next: Vec<Option<usize>>,
}

impl Search {
    fn new(what: &Needle) -> Search {
        let finders: Vec<Finder<'static>> = match what {
            Needle::Text(text) => vec![
                Finder::new(&text.to_ascii_lowercase()).into_owned(),
                Finder::new(ESCAPE),
            ],
            Needle::Errors => errors::WORDS.iter().map(|word| Finder::new(*word)).collect(),
        };
        Search {
            next: vec![None; finders.len()],
            finders,
            of_errors: *what == Needle::Errors,
        }
    }

    /// Which of the words come next, and where.
    fn first(&self) -> Option<(usize, usize)> {
        let found = self.next.iter().enumerate();
        found
            .filter_map(|(which, next)| Some((which, (*next)?)))
            .min_by_key(|(_, at)| *at)
    }

    /// Searches whole lines; `lower` is the same in lower case. Returns how far it came: to the end, or behind the last
    /// line that may be found.
    fn block(&mut self, at: u64, bytes: &[u8], lower: &[u8], most: usize, found: &mut Vec<LogLine>) -> usize {
        let mut done = 0;
        let next: Vec<Option<usize>> = self.finders.iter().map(|finder| finder.find(lower)).collect();
        self.next = next;
        while let Some((which, hit)) = self.first() {
            // An empty needle is found behind the end, too.
            if hit >= lower.len() {
                break;
            }
            if self.of_errors && !may_be_error(&lower[hit..], which) {
                self.next[which] = self.finders[which]
                    .find(&lower[hit + 1..])
                    .map(|found| hit + 1 + found);
                continue;
            }
            let (start, end) = line_around(at, bytes, done, hit);
            let line = &bytes[start..end];
            let (_, _, text) = parts(line);
            let is_one = match self.of_errors {
                true => is_error(text),
                false => {
                    let first = start + (text.as_ptr() as usize - line.as_ptr() as usize);
                    let text = &lower[first..first + text.len()];
                    match memchr(ESCAPE[0], text) {
                        None => self.finders[0].find(text).is_some(),
                        Some(_) => self.finders[0].find(&without_escapes(text)).is_some(),
                    }
                }
            };
            if is_one {
                found.push(LogLine::new(at + start as u64, line));
            }
            done = end;
            if found.len() >= most {
                return done;
            }
            for (next, finder) in self.next.iter_mut().zip(&self.finders) {
                if next.is_some_and(|next| next < done) {
                    *next = finder.find(&lower[done..]).map(|found| done + found);
                }
            }
        }
        bytes.len()
    }
}

/// The line around a byte. A line begins at `done`.
fn line_around(at: u64, bytes: &[u8], done: usize, hit: usize) -> (usize, usize) {
    let mut start = memrchr(b'\n', &bytes[done..hit]).map_or(done, |newline| done + newline + 1);
    loop {
        let most = ((cut(at + start as u64) - at) as usize).min(bytes.len());
        if hit < most {
            let end = memchr(b'\n', &bytes[hit..most]).map_or(most, |newline| hit + newline + 1);
            return (start, end);
        }
        start = most;
    }
}
