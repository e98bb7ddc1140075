//! Lines of a log as a person would see them: no colours, and what a progress bar overwrote apart.

use std::borrow::Cow;

use tidegate_runs::Stream;

use crate::why::LogLine;

/// More of one line than this is data, not a message.
const LONGEST: usize = 16 << 10;

/// A line, or the part of one between two carriage returns.
#[derive(Debug, Clone)]
pub(super) struct Line<'a> {
    pub(super) number: u64,
    pub(super) time_ms: Option<i64>,
    pub(super) stream: Stream,
    pub(super) text: Cow<'a, str>,
}

/// A progress bar writes `10%\r20%\r30%` and then, on the same line, whatever ended it: every part is a line of its own.
pub(super) fn clean(log: &[LogLine]) -> Vec<Line<'_>> {
    let mut lines = Vec::with_capacity(log.len());
    for line in log {
        let mut parts = line
            .text
            .split(['\r', '\n'])
            .filter(|part| !part.is_empty())
            .peekable();
        let first = parts.next().unwrap_or("");
        lines.extend(std::iter::once(first).chain(parts).map(|part| Line {
            number: line.number,
            time_ms: line.time_ms,
            stream: line.stream,
            text: plain(cut(part, LONGEST)),
        }));
    }
    lines
}

/// At most so many bytes of it, whole characters.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Without terminal control sequences: `ESC [ … letter`, `ESC ] … BEL`, and lone control characters.
fn plain(text: &str) -> Cow<'_, str> {
    if !text
        .bytes()
        .any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f)
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => match rest.next() {
                Some('[') => {
                    rest.by_ref().find(|c| ('@'..='~').contains(c));
                }
                Some(']') => {
                    while let Some(c) = rest.next() {
                        if c == '\u{7}' || (c == '\u{1b}' && rest.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                _ => {}
            },
            // What was struck through by going back is not there.
            '\u{8}' => {
                out.pop();
            }
            '\t' => out.push('\t'),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_progress_bars_are_taken_apart() {
        for (text, expected) in [
            ("plain", vec!["plain"]),
            ("", vec![""]),
            ("\u{1b}[1;31mMemoryError\u{1b}[0m: x", vec!["MemoryError: x"]),
            (
                "\r 10%|█ | 1/10\r 20%|██ | 2/10 [1it/s]Traceback (most recent call last):",
                vec![
                    " 10%|█ | 1/10",
                    " 20%|██ | 2/10 [1it/s]Traceback (most recent call last):",
                ],
            ),
            ("\u{1b}]0;title\u{7}text", vec!["text"]),
            ("\u{1b}]0;title\u{1b}\\text", vec!["text"]),
            ("ab\u{8}c\tq", vec!["ac\tq"]),
            ("\u{1b}", vec![""]),
            ("\u{1b}[", vec![""]),
        ] {
            let log = [LogLine {
                number: 7,
                time_ms: None,
                stream: Stream::Err,
                text: text.into(),
            }];
            let lines = clean(&log);
            assert_eq!(
                lines.iter().map(|line| line.text.as_ref()).collect::<Vec<_>>(),
                expected,
                "{text:?}"
            );
            assert!(lines.iter().all(|line| line.number == 7));
        }
    }
}
