//! What the program answers about data and plans, and how it looks.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;
use tidegate_memory::{counted, duration, format_bytes};

use crate::error::{Error, Result};
use crate::html::size;
use crate::plans::{Alternative, Change, Times};

/// Parts of a plan that have a colour of their own; the others share one.
const COLOURS: usize = 7;
/// Columns of which it is told what they become.
const TOLD_COLUMNS: usize = 200;

/// A first look at data.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Looked {
    pub(crate) kind: String,
    pub(crate) rows: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) columns: Vec<Column>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) role: String,
    pub(crate) distinct: Option<u64>,
    pub(crate) missing: f64,
    pub(crate) examples: Vec<String>,
    pub(crate) why: String,
}

/// A no, in the program's own words, and the least budget that would do.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct No {
    pub(crate) error: String,
    pub(crate) hint: Option<String>,
    pub(crate) least: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Planned {
    holders: Vec<(String, u64)>,
    needs: u64,
    interval: Option<(u64, u64)>,
    budget: Option<u64>,
    threads: Option<u64>,
    disk_bytes: Option<u64>,
    times: Option<Times>,
    changes: Vec<Change>,
    alternatives: Vec<Alternative>,
    encoding: Option<Encoding>,
    notices: Vec<String>,
    warnings: Vec<String>,
    containment: String,
    seconds: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Encoding {
    columns: Vec<Encoded>,
    shape: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Encoded {
    name: String,
    role: String,
    encoding: String,
    dense: u64,
    sparse: u64,
    why: String,
}

/// A yes, or a no that the program has given reasons for.
#[derive(Debug)]
pub(crate) enum Answer<T> {
    Yes(Box<T>),
    No(No),
}

impl<T: for<'de> Deserialize<'de>> Answer<T> {
    pub(crate) fn of(value: Value) -> Result<Answer<T>> {
        let read = match value.get("error") {
            Some(_) => serde_json::from_value(value).map(Answer::No),
            None => serde_json::from_value(value).map(Answer::Yes),
        };
        read.map_err(|_| Error::Bug)
    }
}

impl From<No> for Error {
    fn from(no: No) -> Error {
        Error::Asked {
            message: no.error,
            hint: no.hint,
        }
    }
}

/// The plan as a section of the page.
pub(crate) fn plan(planned: &Planned) -> Markup {
    let fits = match planned.budget {
        Some(budget) => format!(
            "It fits: {} of {}",
            format_bytes(planned.needs),
            format_bytes(budget)
        ),
        None => format!("It takes {}", format_bytes(planned.needs)),
    };
    html! {
        p.verdict.good { strong { (fits) }
            @if let Some((low, high)) = planned.interval {
                span.about { "; its peak is expected between " (format_bytes(low)) " and " (format_bytes(high)) }
            }
        }
        (bar(planned))
        @for notice in &planned.notices { p.about { (notice) } }
        @for warning in &planned.warnings { p.warning { strong { "Warning: " } (warning) } }
        dl.facts {
            dt { "Time" } dd { (times(planned.times.as_ref())) }
            dt { "Disk" } dd { @match planned.disk_bytes {
                None => { span.unavailable { "unavailable" } }
                Some(0) => { "nothing more than is there" }
                Some(bytes) => { (size(Some(bytes))) " for the pack" }
            } }
            @if let Some(threads) = planned.threads { dt { "Threads" } dd { (threads) } }
            dt { "Held to it by" } dd { (planned.containment) }
            dt { "Planned in" } dd { (duration(planned.seconds)) }
        }
        (changes(&planned.changes))
        (alternatives(&planned.alternatives))
        @if let Some(encoding) = &planned.encoding { (encoded(encoding)) }
    }
}

/// Why it cannot be, with what would do.
pub(crate) fn refusal(no: &No) -> Markup {
    html! {
        p.verdict.bad role="alert" { strong { @if no.least.is_some() { "It does not fit: " } (no.error) } }
        @if let (Some(hint), None) = (&no.hint, no.least) { p.hint { (hint) } }
        @if let Some(least) = no.least {
            p { button type="submit" name="least" value=(spoken(least)) formmethod="get" formaction="/start" {
                "Plan with " (format_bytes(spoken_bytes(least))) ", the least that would do"
            } }
        }
    }
}

/// Whole megabytes, upwards: what is named must be enough.
pub(crate) fn spoken(bytes: u64) -> String {
    format!("{}MB", bytes.div_ceil(1_000_000))
}

fn spoken_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(1_000_000) * 1_000_000
}

/// Holders side by side against the line, and the same as a table.
fn bar(planned: &Planned) -> Markup {
    const WIDTH: f64 = 1000.0;
    let held: u64 = planned.holders.iter().map(|(_, bytes)| bytes).sum();
    let whole = planned.budget.unwrap_or(0).max(held).max(planned.needs).max(1);
    let x = |bytes: u64| bytes as f64 / whole as f64 * WIDTH;
    let mut largest: Vec<&(String, u64)> = planned.holders.iter().filter(|(_, bytes)| *bytes > 0).collect();
    largest.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let mut left = 0;
    let parts: Vec<(usize, u64, u64)> = largest
        .iter()
        .enumerate()
        .map(|(i, (_, bytes))| {
            left += bytes;
            (i.min(COLOURS) + 1, left - bytes, *bytes)
        })
        .collect();
    html! {
        svg.memory-bar viewBox="0 0 1000 44" preserveAspectRatio="none" role="img" aria-label={ "Parts of the plan, " (format_bytes(held)) " together" } {
            rect.whole x="0" y="8" width="1000" height="28" {}
            @for (colour, from, bytes) in &parts {
                rect class={ "c" (colour) } x=(format!("{:.1}", x(*from))) y="8" width=(format!("{:.1}", x(*bytes))) height="28" {}
            }
            @if let Some(budget) = planned.budget {
                line.line x1=(format!("{:.1}", x(budget) - 1.0)) x2=(format!("{:.1}", x(budget) - 1.0)) y1="0" y2="44" {}
            }
        }
        table.holders {
            caption.hidden { "Who will hold what" }
            thead.hidden { tr { th scope="col" { "Holder" } th scope="col" { "Bytes" } } }
            tbody {
                @for (i, (name, bytes)) in largest.iter().enumerate() {
                    tr { th scope="row" { span class={ "key c" (i.min(COLOURS) + 1) } {} (name) } td.number { (size(Some(*bytes))) } }
                }
                @if held > planned.needs {
                    tr.about { th scope="row" { "of these, granted and not touched" } td.number { (size(Some(held - planned.needs))) } }
                }
            }
        }
    }
}

fn times(times: Option<&Times>) -> Markup {
    let Some(times) = times else {
        return html! { span.unavailable { "unavailable" } };
    };
    let each = |seconds: Option<f64>, unit: &str| {
        let article = if unit.starts_with('e') { "an" } else { "a" };
        seconds.map(|seconds| format!("{} {article} {unit}", moment(seconds)))
    };
    let parts = [
        each(times.step_seconds, &times.step),
        each(times.epoch_seconds, &times.epoch),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    html! {
        @if parts.is_empty() { span.unavailable { "unavailable" } } @else { (parts.join(", ")) }
        @if !times.basis.is_empty() { span.about { ", " (times.basis) } }
    }
}

/// `75 ms`, `1.2 s`, `3:07`.
fn moment(seconds: f64) -> String {
    match seconds {
        s if s < 0.001 => format!("{:.2} ms", s * 1e3),
        s if s < 0.0995 => format!("{:.0} ms", s * 1e3),
        s => duration(s),
    }
}

fn slower(slowdown: f64) -> String {
    format!("{slowdown:.2}×")
}

fn changes(changes: &[Change]) -> Markup {
    html! {
        @if changes.is_empty() { p.about { "Nothing has to be changed so that it fits." } } @else {
            h3 { "Changed so that it fits" }
            div.wide tabindex="0" role="region" aria-label="Changes" { table {
                thead { tr { th scope="col" { "What" } th scope="col" { "To" } th.number scope="col" { "Saves" } th.number scope="col" { "Time" } th scope="col" { "Alters" } } }
                tbody { @for change in changes { tr {
                    th scope="row" { (change.knob) } td { (change.to) } td.number { (size(Some(change.saves))) }
                    td.number { @match change.slowdown { Some(times) => { (slower(times)) } None => { span.unavailable { "unavailable" } } } }
                    td { (change.alters.as_deref().unwrap_or("nothing")) }
                } } }
            } }
        }
    }
}

fn alternatives(others: &[Alternative]) -> Markup {
    html! {
        @if !others.is_empty() {
            details {
                summary { (counted(others.len() as u64, "other way")) }
                div.wide tabindex="0" role="region" aria-label="Other ways" { table {
                    thead { tr { th scope="col" { "What" } th.number scope="col" { "Peak" } th.number scope="col" { "Time" } th scope="col" { "Alters" } th scope="col" { "Asked for by" } } }
                    tbody { @for other in others { tr {
                        th scope="row" { (other.what) } td.number { (size(Some(other.peak))) } td.number { (slower(other.slowdown)) }
                        td { (other.alters.as_deref().unwrap_or("nothing")) } td { code { (other.how) } }
                    } } }
                } }
            }
        }
    }
}

fn encoded(encoding: &Encoding) -> Markup {
    html! {
        details {
            summary { "What every column becomes" }
            p.about { (encoding.shape) }
            div.wide tabindex="0" role="region" aria-label="Encoding" { table {
                thead { tr { th scope="col" { "Column" } th scope="col" { "Role" } th scope="col" { "Encoding" } th.number scope="col" { "Columns" } th scope="col" { "Why" } } }
                tbody { @for column in encoding.columns.iter().take(TOLD_COLUMNS) { tr {
                    th scope="row" { (column.name) } td { (column.role) } td { (column.encoding) }
                    td.number { @match column.dense + column.sparse { 0 => { "–" } width => { (tidegate_memory::thousands(width)) } } }
                    td.about { (column.why) }
                } } }
            } }
        }
    }
}
