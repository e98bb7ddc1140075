//! Lines of a log as rows: their time, where they came from, and what they say in the colours that they were printed in.

use maud::{Markup, html};
use tidegate_runs::{LogLine, Run, Stream, timestamp};

use super::Window;
use crate::ansi::{Span, spans};

/// Words that are marked in a line.
const MARKS: usize = 100;

/// The list of a window, with what a script needs to go on from it.
pub(super) fn list(run: &Run, window: &Window, find: Option<&str>) -> Markup {
    html! {
        ol #lines.lines data-start=(window.start) data-end=(window.end) data-length=(window.length) data-status=(run.status)
            data-next=[window.next] {
            @for line in &window.lines {
                (row(line, window.here == Some(line.offset), find))
                @if window.death == Some(line.offset) { (death(run)) }
            }
        }
    }
}

/// One line. Its address is that of its first byte, which stays the same whatever comes behind it.
fn row(line: &LogLine, is_here: bool, find: Option<&str>) -> Markup {
    let is_error = line.stream == Some(Stream::Err);
    let is_hit = find.is_some_and(|find| !matches(&line.text, find).is_empty());
    let classes: Vec<&str> = [("err", is_error), ("hit", is_hit), ("here", is_here)]
        .into_iter()
        .filter_map(|(class, is_so)| is_so.then_some(class))
        .collect();
    html! {
        li #{ "o" (line.offset) } class=[(!classes.is_empty()).then(|| classes.join(" "))] {
            @if is_here { span #here {} }
            a.when href={ "?offset=" (line.offset) "#o" (line.offset) } data-ms=[line.time_ms] { (clock(line.time_ms)) }
            span.from { @if is_error { "err" } }
            span.said { (dressed(&line.text, find)) }
        }
    }
}

/// What comes where the run ended.
fn death(run: &Run) -> Markup {
    let why = run
        .verdict
        .as_ref()
        .map(|verdict| verdict.sentence.as_str())
        .or(run.error.as_deref());
    html! {
        li.death { span.when { (clock(run.ended_ms)) } span.from {} span.said { strong { "The run " (run.status) " here" } @if let Some(why) = why { ": " (why) } } }
    }
}

/// `20:15:30.123`, which a script makes the reader's own.
pub(super) fn clock(ms: Option<i64>) -> String {
    let stamp = ms.map(timestamp);
    let clock = stamp.as_deref().and_then(|stamp| stamp.get(11..23));
    clock.unwrap_or("–").into()
}

/// A line in its colours, with the words that are looked for marked.
pub(super) fn dressed(text: &str, find: Option<&str>) -> Markup {
    let spans = spans(text);
    let plain: String = spans.iter().map(|span| span.text.as_str()).collect();
    let marks = find.map(|find| matches(&plain, find)).unwrap_or_default();
    let mut at = 0;
    let pieces = spans.iter().flat_map(|span| {
        let from = at;
        at += span.text.len();
        cut(span, from, &marks)
    });
    let pieces: Vec<(String, &str, bool)> = pieces.collect();
    html! {
        @for (classes, text, is_marked) in &pieces {
            @match (classes.is_empty(), is_marked) {
                (true, false) => { (text) }
                (false, false) => { span class=(classes) { (text) } }
                (true, true) => { mark { (text) } }
                (false, true) => { mark class=(classes) { (text) } }
            }
        }
    }
}

/// A piece of a line, which begins at a byte of it, cut where marks begin and end.
fn cut<'s>(span: &'s Span, from: usize, marks: &[(usize, usize)]) -> Vec<(String, &'s str, bool)> {
    let (classes, to) = (span.style.classes(), from + span.text.len());
    let mut pieces = Vec::new();
    let mut push = |start: usize, end: usize, is_marked: bool| {
        if start < end {
            pieces.push((classes.clone(), &span.text[start - from..end - from], is_marked));
        }
    };
    let mut at = from;
    for (start, end) in marks.iter().filter(|(start, end)| *start < to && *end > from) {
        let (start, end) = ((*start).max(at), (*end).min(to));
        push(at, start, false);
        push(start, end, true);
        at = end;
    }
    push(at, to, false);
    pieces
}

/// Where the words stand in a text; ASCII letters in either case, as the search finds them.
fn matches(text: &str, find: &str) -> Vec<(usize, usize)> {
    if find.is_empty() {
        return Vec::new();
    }
    let (text, find) = (text.to_ascii_lowercase(), find.to_ascii_lowercase());
    let found = text.match_indices(&find);
    found
        .take(MARKS)
        .map(|(at, words)| (at, at + words.len()))
        .collect()
}
