//! Why a run ended: the verdict with its grade, what shows it, where memory grew, and what would help.

use maud::{Markup, html};
use serde::Deserialize;
use tidegate_memory::format_bytes;
use tidegate_runs::{Run, Status};

use super::parts::{bar, capital, copy};
use crate::query::encoded;

/// Places and remedies that are shown; the API has all.
const PLACES: usize = 8;
const REMEDIES: usize = 8;
/// Characters of a line of evidence that are looked for in the log.
const SOUGHT: usize = 120;

/// As `tidegate why --json` says it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Verdict {
    cause: String,
    grade: String,
    sentence: String,
    evidence: Vec<Evidence>,
    pattern: Option<Pattern>,
    growth: Vec<Growth>,
    remedies: Vec<Remedy>,
    notes: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Evidence {
    standing: String,
    text: String,
    source: String,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Pattern {
    sentence: String,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Growth {
    place: Place,
    bytes: u64,
    share: f64,
    within: Vec<Place>,
    cell: Option<u32>,
    code: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Place {
    file: String,
    line: u32,
    function: String,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Remedy {
    title: String,
    place: Option<Place>,
    before: Option<String>,
    after: Option<String>,
    command: Option<String>,
    saves: Option<u64>,
    measured: bool,
    why: String,
}

impl Place {
    /// Of a notebook the function names the cell.
    fn words(&self) -> String {
        match self.file.ends_with(".ipynb") {
            true => format!("{} {} line {}", self.file, self.function, self.line),
            false => format!("{}:{}", self.file, self.line),
        }
    }
}

/// What a run ended of, in a few words, by its cause and where the line was.
fn in_short(cause: &str, line: Option<u64>) -> Option<String> {
    let line = line.map_or(String::new(), |bytes| format!(" of {}", format_bytes(bytes)));
    Some(match cause {
        "cgroup_oom" => format!("killed by the kernel at its line{line}"),
        "line" => format!("stopped at its line{line}"),
        other => IN_SHORT.iter().find(|(cause, _)| *cause == other)?.1.into(),
    })
}

const IN_SHORT: [(&str, &str); 27] = [
    (
        "host_oom",
        "killed by the kernel because the machine ran out of memory",
    ),
    (
        "child_oom",
        "failed because the kernel killed one of its processes for want of memory",
    ),
    ("oom_daemon", "killed by a watcher for want of memory"),
    ("memory_taken", "stopped by itself because others took its memory"),
    ("killed", "killed from outside, and not for memory"),
    ("stopped", "stopped on request"),
    ("time_limit", "ended at its time limit"),
    ("memory_error", "out of memory, as Python says"),
    ("bad_alloc", "out of memory, as its native code says"),
    ("address_space", "out of address space"),
    ("device_memory", "out of memory on the accelerator"),
    ("shared_memory", "out of shared memory: /dev/shm was full"),
    ("thrashing", "slowed to a halt by swapping"),
    ("open_files", "out of open files"),
    ("processes", "out of threads or processes"),
    ("disk_full", "failed because the disk was full"),
    ("segmentation_fault", "crashed: a segmentation fault"),
    (
        "illegal_instruction",
        "crashed: an instruction that this processor does not know",
    ),
    ("stack_overflow", "crashed: the stack overflowed"),
    ("abort", "crashed: native code gave up by itself"),
    ("hang", "hung: nothing moved any more"),
    ("not_a_number", "failed because the loss was no number any more"),
    ("shape_error", "failed: shapes do not fit together"),
    (
        "library_version",
        "failed: a library is missing, or of another version",
    ),
    ("permission", "failed: something may not be read or written"),
    ("missing_file", "failed: a file is missing"),
    ("hardware", "failed of an error of the machine itself"),
];

/// How a run that failed ended: `Killed by the kernel at its line of 1 GB`.
pub(super) fn ended(run: &Run) -> String {
    let verdict = run.verdict.as_ref().filter(|verdict| verdict.grade != "unknown");
    let known = verdict.and_then(|verdict| {
        let words = in_short(&verdict.cause, run.budget_bytes)?;
        Some(match verdict.grade.as_str() {
            "proven" => words,
            _ => format!("most likely {words}"),
        })
    });
    let words = known.unwrap_or_else(|| match (run.signal, run.exit_code) {
        (Some(signal), _) => format!("ended by signal {signal}"),
        (None, Some(code)) => format!("failed with exit code {code}"),
        (None, None) => "failed".into(),
    });
    capital(&words)
}

/// The whole of it; `asking` where the answer is still to come.
pub(super) fn section(run: &Run, verdict: Option<&Verdict>, asking: bool, trouble: Option<&str>) -> Markup {
    let failed = run.status == Status::Failed;
    let Some(verdict) = verdict else {
        return html! {
            section.card.verdict {
                h2 { "Why it ended" }
                @if let Some(told) = &run.verdict {
                    (headline(&told.grade, &told.sentence))
                } @else if let Some(error) = &run.error {
                    p.lead { (error) }
                }
                @if asking {
                    p.asking data-ask={ "/api/runs/" (run.id) "/why" } { "What is left of it is being looked through. " a href={ "/runs/" (run.id) } { "Look again" } }
                } @else if let Some(trouble) = trouble {
                    p.hint { "It could not be explained: " (trouble) }
                }
                (hint(run))
                (logs(run))
            }
        };
    };
    let (seen, unseen): (Vec<&Evidence>, Vec<&Evidence>) = verdict
        .evidence
        .iter()
        .partition(|evidence| ["observed", "partial"].contains(&evidence.standing.as_str()));
    html! {
        section.card.verdict {
            h2 { @if failed { "Why it ended" } @else { "What was seen" } }
            (headline(&verdict.grade, &verdict.sentence))
            @if let Some(pattern) = &verdict.pattern { p { (capital(&pattern.sentence)) "." } }
            @if failed { (hint(run)) (logs(run)) }
            @if !seen.is_empty() {
                h3 { "Evidence" }
                (evidence(run, &seen))
            }
            @if !verdict.growth.is_empty() {
                h3 { "Where memory grew" }
                (growth(&verdict.growth))
            }
            @if !verdict.remedies.is_empty() {
                h3 { "What would help" }
                ol.remedies { @for one in verdict.remedies.iter().take(REMEDIES) { li { (remedy(one)) } } }
            }
            @for note in &verdict.notes { p.hint { "Note: " (note) } }
            @if !unseen.is_empty() {
                details { summary { "What could not be looked at (" (unseen.len()) ")" } (evidence(run, &unseen)) }
            }
        }
    }
}

/// Whether a run that is well has anything to say: a warning, memory that grew, something to save.
pub(super) fn is_worth_telling(verdict: &Verdict) -> bool {
    verdict.cause != "success"
        || !verdict.notes.is_empty()
        || verdict.remedies.iter().any(|remedy| remedy.measured)
}

fn headline(grade: &str, sentence: &str) -> Markup {
    let title = match grade {
        "proven" => "A counter or a message shows it that nothing else produces",
        "likely" => "Everything that was seen fits, but another cause would look the same",
        _ => "What is left allows several answers",
    };
    html! {
        p.lead { span class={ "grade " (grade) } title=(title) { (grade) } " " (capital(sentence)) "." }
    }
}

fn hint(run: &Run) -> Markup {
    html! { @if let Some(hint) = &run.hint { p.hint { "Hint: " (hint) } } }
}

/// The way to the log, at the moment that matters.
fn logs(run: &Run) -> Markup {
    html! {
        p.buttons {
            a.button.main href={ "/runs/" (run.id) "/log?at=death" } { "Read the logs" }
            a.button href={ "/runs/" (run.id) "/log?at=error" } { "The first error" }
        }
    }
}

fn evidence(run: &Run, all: &[&Evidence]) -> Markup {
    html! {
        ul.evidence {
            @for one in all {
                li {
                    span class={ "standing " (one.standing) } { (one.standing) }
                    div {
                        code { (one.text) }
                        div.about {
                            @if one.source.starts_with("log line ") {
                                @let sought: String = one.text.trim().chars().take(SOUGHT).collect();
                                a href={ "/runs/" (run.id) "/log?find=" (encoded(&sought)) } { (one.source) }
                            } @else { (one.source) }
                        }
                    }
                }
            }
        }
    }
}

fn growth(all: &[Growth]) -> Markup {
    let most = all.iter().map(|one| one.share).fold(0.0, f64::max);
    html! {
        div.wide tabindex="0" role="region" aria-label="Where memory grew" {
            table.growth {
                thead { tr {
                    th.number scope="col" { "Grew by" }
                    th scope="col" { "Share" }
                    th scope="col" { "While this ran" }
                } }
                tbody {
                    @for one in all.iter().take(PLACES) {
                        tr {
                            td.number { (format_bytes(one.bytes)) }
                            td { (bar(one.share, most)) " " (format!("{:.0}%", one.share * 100.0)) }
                            th scope="row" {
                                @if let Some(code) = &one.code { code.line { (code.trim()) } }
                                div.about {
                                    @match one.cell {
                                        Some(cell) => { (one.place.file) " cell " (cell) " line " (one.place.line) }
                                        None => { (one.place.words()) " in " (one.place.function) }
                                    }
                                    @if let Some(inner) = one.within.last() { ", within " (inner.function) " (" (inner.words()) ")" }
                                    " " (copy(&one.place.words(), "the place"))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn remedy(remedy: &Remedy) -> Markup {
    let text = remedy.after.as_ref().or(remedy.command.as_ref());
    html! {
        div.title {
            strong { (capital(&remedy.title)) }
            @if let Some(bytes) = remedy.saves {
                " " span.saves { "saves about " (format_bytes(bytes)) }
            } @else if !remedy.measured && remedy.place.is_some() {
                " " span.hint { "a hint: little or no growth was seen there" }
            }
        }
        @if let Some(place) = &remedy.place { div.about { (place.words()) } }
        @if remedy.before.is_some() || text.is_some() {
            div.change {
                pre.diff {
                    @if remedy.after.is_some() {
                        @for line in remedy.before.iter().flat_map(|text| text.lines()) { del { "- " (line) } }
                        @for line in remedy.after.iter().flat_map(|text| text.lines()) { ins { "+ " (line) } }
                    } @else if let Some(text) = text.or(remedy.before.as_ref()) { (text) }
                }
                @if let Some(text) = text { (copy(text, "the change")) }
            }
            @if remedy.after.is_some() { @if let Some(command) = &remedy.command {
                div.change { pre { (command) } (copy(command, "the command")) }
            } }
        }
        p { (remedy.why) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cause_is_told_twice_and_all_read_as_a_sentence() {
        for (i, (cause, words)) in IN_SHORT.iter().enumerate() {
            assert!(IN_SHORT[..i].iter().all(|(other, _)| other != cause), "{cause}");
            assert!(
                !words.ends_with('.') && words.starts_with(char::is_lowercase),
                "{words}"
            );
        }
        assert_eq!(
            in_short("cgroup_oom", Some(1_000_000_000)).unwrap(),
            "killed by the kernel at its line of 1 GB"
        );
        assert_eq!(in_short("line", None).unwrap(), "stopped at its line");
        assert_eq!(in_short("something_newer", None), None);
    }
}
