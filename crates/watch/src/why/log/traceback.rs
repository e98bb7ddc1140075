//! Tracebacks: what a program said of where it failed, in whatever form it says it.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use tidegate_runs::Frame;

use super::crash;
use super::handled::Output;
use super::lines::{Line, clean};
use super::python;
use crate::why::LogLine;

/// An exception, a panic or a crash, with the calls that led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traceback {
    /// As it is printed: `numpy._core._exceptions._ArrayMemoryError`, `panic`, `std::bad_alloc`, `Segmentation fault`.
    pub exception: String,
    /// What it says; several lines where it has them.
    pub message: String,
    /// The outermost first.
    pub frames: Vec<Frame>,
    /// The lines of the log that it takes up, with those of what it is chained to.
    pub lines: RangeInclusive<u64>,
    /// The line that names the exception.
    pub number: u64,
    /// What it arose from: the exception that was being handled, or the one in the worker.
    pub chained: Option<Box<Traceback>>,
    /// The process or thread that it is of, where that is said: `DataLoader worker process 0`, `SpawnProcess-1`, `rank 3`.
    pub worker: Option<String>,
    /// It ended nothing: output went on for long after it, or Python said that it ignores it.
    pub handled: bool,
}

impl Traceback {
    /// The innermost line of the user's own code, or of any code where there is none.
    pub fn place(&self) -> Option<&Frame> {
        self.frames
            .iter()
            .rev()
            .find(|frame| is_own(frame))
            .or(self.frames.last())
    }

    /// This one and what it arose from, the root cause last.
    pub fn chain(&self) -> impl Iterator<Item = &Traceback> {
        std::iter::successors(Some(self), |traceback| traceback.chained.as_deref())
    }

    /// The name without its modules: `OutOfMemoryError` of `torch.cuda.OutOfMemoryError`.
    pub(super) fn name(&self) -> &str {
        self.exception.rsplit('.').next().unwrap_or(&self.exception)
    }
}

/// Not a library's, not the interpreter's.
fn is_own(frame: &Frame) -> bool {
    let file = frame.file.as_str();
    let library = [
        "site-packages",
        "dist-packages",
        "/lib/python",
        "\\lib\\",
        "/rustc/",
        "/.cargo/registry/",
        "/libsanitizer/",
        ".pyx",
        ".pxi",
    ];
    let inner = file.starts_with('<')
        && !file.starts_with("<stdin>")
        && !file.starts_with("<string>")
        && !file.starts_with("<ipython-input");
    !inner && !library.iter().any(|part| file.contains(part))
}

/// All tracebacks of a log, in order.
pub fn tracebacks(log: &[LogLine]) -> Vec<Traceback> {
    let lines = clean(log);
    let (mut found, roles) = scan(&lines);
    mark_handled(&mut found, &Output::of(&lines, &roles));
    found
}

/// The one that counts: the last that was not handled, and of several the last that is not merely the consequence of a
/// process that had failed before.
pub(in crate::why) fn last_of(mut found: Vec<Traceback>) -> Option<Traceback> {
    found.retain(|traceback| !traceback.handled);
    let at = found.iter().rposition(|traceback| !is_consequence(traceback));
    match at {
        Some(at) => Some(found.swap_remove(at)),
        None => found.pop(),
    }
}

/// What a launcher or a neighbour says when another process has gone.
pub(super) fn is_consequence(traceback: &Traceback) -> bool {
    const NAMES: [&str; 8] = [
        "ChildFailedError",
        "ProcessExitedException",
        "CalledProcessError",
        "BrokenPipeError",
        "ConnectionResetError",
        "ConnectionRefusedError",
        "EOFError",
        "KeyboardInterrupt",
    ];
    traceback.chained.is_none() && NAMES.contains(&traceback.name())
}

pub(super) fn mark_handled(found: &mut [Traceback], output: &Output) {
    for traceback in found {
        traceback.handled |= output.went_on_after(*traceback.lines.end());
    }
}

/// What a line is for those who look for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Plain,
    /// A frame, or a line of code that is quoted: words in it are nobody's message.
    Trace,
    /// It names the exception.
    Exception,
}

/// A log that is being read, with what is known of each line.
pub(super) struct Page<'a> {
    pub(super) lines: &'a [Line<'a>],
    pub(super) roles: Vec<Role>,
}

pub(super) fn scan(lines: &[Line<'_>]) -> (Vec<Traceback>, Vec<Role>) {
    let mut page = Page {
        lines,
        roles: vec![Role::Plain; lines.len()],
    };
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let parsed = python::traceback(&mut page, at).or_else(|| crash::crash(&mut page, at));
        at = match parsed {
            Some((traceback, next)) => {
                found.push(traceback);
                next.max(at + 1)
            }
            None => at + 1,
        };
    }
    (found, page.roles)
}
