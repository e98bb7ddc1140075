//! Tracebacks of Python as notebooks and the `rich` library draw them.

use std::ops::RangeInclusive;

use tidegate_runs::Frame;

use super::python::{HEADER, exception};
use super::traceback::{Page, Role, Traceback};

/// A notebook prints every line of every function on the way.
const LONGEST: usize = 3000;

pub(super) fn traceback(page: &mut Page<'_>, at: usize) -> Option<(Traceback, usize)> {
    let text = page.lines.get(at)?.text.as_ref();
    let (before, after) = text.split_once(HEADER)?;
    if before.contains('─') && after.contains('─') {
        return rich(page, at);
    }
    let name = before.trim();
    let is_name = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    (after.trim().is_empty() && is_name && before.ends_with("  ")).then(|| notebook(page, at, name))?
}

/// ```text
/// MemoryError                               Traceback (most recent call last)
/// Cell In[3], line 2
///       1 import numpy as np
/// ----> 2 a = np.ones(10**12)
///
/// File /usr/lib/python3/site-packages/numpy/core/numeric.py:205, in ones(shape, dtype)
///
/// MemoryError: Unable to allocate 7.28 TiB for an array with shape (1000000000000,) and data type float64
/// ```
fn notebook(page: &mut Page<'_>, first: usize, name: &str) -> Option<(Traceback, usize)> {
    let mut frames: Vec<Frame> = Vec::new();
    for (at, line) in page.lines.iter().enumerate().skip(first + 1).take(LONGEST) {
        let text = line.text.trim_end();
        if let Some((exception, message)) = exception(text)
            && exception.rsplit('.').next() == name.rsplit('.').next()
        {
            page.roles[first..at].fill(Role::Trace);
            page.roles[at] = Role::Exception;
            return Some((finished(page, first..=at, (exception, message), frames), at + 1));
        }
        if let Some(frame) = notebook_frame(text) {
            frames.push(frame);
        } else if let Some(arrow) = text.trim_start().strip_prefix("--")
            && let Some((_, code)) = arrow.split_once("> ")
            && let Some(last) = frames.last_mut().filter(|last| last.line == 0)
        {
            let digits = code.find(|c: char| !c.is_ascii_digit()).unwrap_or(code.len());
            last.line = code[..digits].parse().unwrap_or(0);
        } else if text.contains(HEADER) {
            return None;
        }
    }
    None
}

fn notebook_frame(text: &str) -> Option<Frame> {
    let named = |file: &str, line: &str, function: &str| {
        Some(Frame {
            file: file.trim().into(),
            line: line.trim().parse().ok()?,
            function: function.split('(').next().unwrap_or("").trim().into(),
        })
    };
    if let Some(rest) = text.strip_prefix("File ") {
        let (place, function) = rest.split_once(", in ").unwrap_or((rest, ""));
        let (file, line) = place.rsplit_once(':')?;
        return named(file, line, function);
    }
    if text.starts_with("Cell In[") || text.starts_with("Cell In [") {
        let (file, line) = text.split_once(", line ")?;
        return named(file, line, "");
    }
    if let Some((file, rest)) = text
        .strip_prefix("Input ")
        .and_then(|rest| rest.split_once(", in "))
    {
        return named(file, "0", rest.trim_matches(['<', '>', '(', ')']));
    }
    // Before IPython 8: the line stands at the arrow.
    let (file, function) = text.split_once(" in ")?;
    let place = file.ends_with(".py") || file.ends_with(".pyx") || file.starts_with("<ipython-input");
    if place && !file.contains(' ') {
        named(file, "0", function)
    } else {
        None
    }
}

/// ```text
/// ╭───────────────────── Traceback (most recent call last) ──────────────────────╮
/// │ /home/ada/train.py:12 in main                                                │
/// │ ❱ 12 model.fit(x, y)                                                         │
/// ╰──────────────────────────────────────────────────────────────────────────────╯
/// OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
/// ```
fn rich(page: &mut Page<'_>, first: usize) -> Option<(Traceback, usize)> {
    let mut frames = Vec::new();
    let mut closed = false;
    for (at, line) in page.lines.iter().enumerate().skip(first + 1).take(LONGEST) {
        let text = line.text.trim();
        if closed && !text.is_empty() {
            let (exception, message) = exception(text)?;
            page.roles[first..at].fill(Role::Trace);
            page.roles[at] = Role::Exception;
            return Some((finished(page, first..=at, (exception, message), frames), at + 1));
        }
        closed |= text.starts_with('╰');
        let inner = text.trim_matches(['│', ' ']);
        if let Some((place, function)) = inner.split_once(" in ")
            && let Some((file, line)) = place.rsplit_once(':')
            && let Ok(line) = line.parse()
        {
            frames.push(Frame {
                file: file.into(),
                line,
                function: function.into(),
            });
        }
    }
    None
}

fn finished(
    page: &Page<'_>,
    span: RangeInclusive<usize>,
    (exception, message): (&str, &str),
    frames: Vec<Frame>,
) -> Traceback {
    let number = page.lines[*span.end()].number;
    Traceback {
        exception: exception.into(),
        message: message.into(),
        frames,
        lines: page.lines[*span.start()].number..=number,
        number,
        chained: None,
        worker: None,
        handled: false,
    }
}
