//! Real messages, messages that merely look like them, and nonsense.

use tidegate_runs::{Frame, Stream};

use super::{Said, said};
use crate::why::{Cause, Grade, LogLine};

mod accelerators;
mod hostile;
mod kernel;
mod messages;
mod near_misses;
mod programs;
mod tracebacks;

/// A log without times, all of it on the error output.
fn log(text: &str) -> Vec<LogLine> {
    log_at(text, |_| None)
}

fn log_at(text: &str, time_ms: impl Fn(u64) -> Option<i64>) -> Vec<LogLine> {
    (1..)
        .zip(text.lines())
        .map(|(number, text)| LogLine {
            number,
            time_ms: time_ms(number),
            stream: Stream::Err,
            text: text.into(),
        })
        .collect()
}

/// The first thing that a text says.
fn first(text: &str) -> Said {
    let found = said(&log(text));
    found
        .into_iter()
        .next()
        .unwrap_or_else(|| panic!("says nothing: {text}"))
}

fn frame(file: &str, line: u32, function: &str) -> Frame {
    Frame {
        file: file.into(),
        line,
        function: function.into(),
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A size with a fraction, as it is printed.
fn sized(number: f64, unit: u64) -> u64 {
    (number * unit as f64).round() as u64
}

/// Text, cause, grade, and the sizes: asked, free, total.
type Row = (&'static str, Cause, Grade, [Option<u64>; 3]);

const NONE: [Option<u64>; 3] = [None; 3];

fn check(rows: &[Row]) {
    for (text, cause, grade, [asked, free, total]) in rows {
        let said = first(text);
        assert_eq!((said.cause, said.grade), (*cause, *grade), "{text}\n{said:?}");
        assert_eq!(
            [said.asked, said.free, said.total],
            [*asked, *free, *total],
            "{text}\n{said:?}"
        );
        assert!(!said.handled, "{text}");
        assert!(
            said.sentence.ends_with('.') && !said.sentence.ends_with(".."),
            "{}",
            said.sentence
        );
    }
}
