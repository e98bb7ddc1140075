//! The judge: from what is left of a run to why it ended.
//!
//! Every rule looks at one kind of end and says what shows it. They stand in the order of how much they explain: what the
//! kernel did before what the job said, and that before a bare exit status. The first that is more than a guess wins.

mod crash;
mod device;
mod doubt;
mod ends;
mod foreign;
mod hang;
mod machine;
mod memory;
mod rlimit;
mod spoken;
mod thrashing;

use std::collections::HashSet;

use tidegate_runs::Frame;

use super::cause::Cause;
use super::devices::devices;
use super::facts::Case;
use super::log::{KernelEvent, Said, Traceback, kernel_events, said};
use super::script::{Scripts, in_its_source, read_sources, remedies};
use super::series::{growing_now, growth, pattern};
use super::verdict::{Evidence, Grade, Standing, Verdict};
use crate::plain::readable;

/// A case with what its texts say.
struct Reading<'c> {
    case: &'c Case,
    said: Vec<Said>,
    kernel: Vec<KernelEvent>,
    traceback: Option<Traceback>,
    /// Lines whose words something speaks against: they prove nothing.
    doubted: HashSet<u64>,
    /// The numbers that processes of the run ever had.
    pids: HashSet<i32>,
}

/// What a rule found.
#[derive(Debug, Clone, PartialEq)]
struct Finding {
    cause: Cause,
    grade: Grade,
    sentence: String,
    evidence: Vec<Evidence>,
}

type Rule = fn(&Reading) -> Option<Finding>;

const RULES: &[Rule] = &[
    ends::never_started,
    foreign::by_its_number,
    memory::taken_away,
    memory::stopped_at_the_line,
    memory::ended_by_the_warning,
    memory::killed_by_the_kernel,
    memory::killed_by_a_daemon,
    thrashing::waited_for_pages,
    hang::hung,
    memory::killed_otherwise,
    spoken::at_its_time_limit,
    ends::asked_to_stop,
    ends::told_by_the_worker,
    memory::out_of_address_space,
    memory::out_of_shared_memory,
    spoken::could_not_start,
    device::failing,
    spoken::said_so,
    foreign::near_its_log,
    machine::failing,
    spoken::by_the_system,
    ends::by_a_signal,
    ends::success,
    ends::failed,
];

/// Why a run ended, as far as what is left of it says.
pub fn judge(case: &Case) -> Verdict {
    judge_told(case, None)
}

/// The same, with what an exit status says by itself.
pub fn judge_told(case: &Case, told: Option<Said>) -> Verdict {
    let mut reading = Reading::of(case);
    reading.said.extend(told);
    let found: Vec<Finding> = RULES.iter().filter_map(|rule| rule(&reading)).collect();
    let sure = found.iter().position(|finding| finding.grade > Grade::Unknown);
    let best = foreign::lives(&reading).or_else(|| found.into_iter().nth(sure.unwrap_or(0)));
    let lost = || {
        case.facts
            .lost
            .clone()
            .unwrap_or_else(|| "how it ended is not known".into())
    };
    let finding = best.unwrap_or_else(|| Finding {
        cause: Cause::Unknown,
        grade: Grade::Unknown,
        sentence: lost(),
        evidence: Vec::new(),
    });
    let beside = device::beside(&reading, &finding);
    let mut evidence = finding.evidence;
    evidence.extend(crash::place(&reading, finding.cause));
    evidence.extend(beside);
    let sources = read_sources(case);
    let scripts = Scripts::parse(&case.facts.folder, &sources);
    if finding.cause.is_memory() && finding.cause != Cause::DeviceMemory {
        // A kernel's name for a cell says nothing to a person.
        let place = growing_now(case, &scripts).filter(|place| !place.file.contains("/ipykernel_"));
        evidence.extend(place.map(|place| grew_last(&place)));
    }
    evidence.extend(reading.unseen());
    let growth = in_its_source(case, growth(case, &scripts), &sources);
    let remedies = remedies(case, finding.cause, &growth, &sources);
    let verdict = Verdict {
        cause: finding.cause,
        grade: finding.grade,
        sentence: finding.sentence,
        evidence,
        pattern: pattern(case, &scripts),
        growth,
        remedies,
        notes: machine::notes(&reading)
            .into_iter()
            .chain(thrashing::note(&reading).filter(|_| finding.cause != Cause::Thrashing))
            .collect(),
        devices: devices(case),
    };
    cleaned(verdict)
}

/// A sentence, and any other text that was taken from elsewhere, of this many characters is long enough.
const LONGEST_SENTENCE: usize = 400;
const LONGEST_TEXT: usize = 2_000;

/// Whatever its texts are shown on, what a log, a kernel or a script had in them does nothing to it.
fn cleaned(mut verdict: Verdict) -> Verdict {
    let clean = |text: &mut String| *text = readable(text, LONGEST_TEXT);
    verdict.sentence = readable(&verdict.sentence, LONGEST_SENTENCE);
    verdict.notes.iter_mut().for_each(clean);
    for evidence in &mut verdict.evidence {
        clean(&mut evidence.text);
        clean(&mut evidence.source);
    }
    verdict
        .growth
        .iter_mut()
        .filter_map(|growth| growth.code.as_mut())
        .for_each(clean);
    verdict
}

impl<'c> Reading<'c> {
    fn of(case: &'c Case) -> Reading<'c> {
        let facts = &case.facts;
        let ended = facts.ended_children.iter().map(|child| child.pid);
        let recorded = case.processes.iter().map(|process| process.pid);
        let mut reading = Reading {
            case,
            said: said(&case.log),
            kernel: kernel_events(&facts.kernel),
            traceback: None,
            doubted: HashSet::new(),
            pids: facts.pid.into_iter().chain(ended).chain(recorded).collect(),
        };
        doubt::weigh(&mut reading);
        reading
    }

    /// As sure as a traceback can make it.
    fn grade_of(&self, traceback: &Traceback) -> Grade {
        match self.doubted.contains(&traceback.number) {
            true => Grade::Likely,
            false => Grade::Proven,
        }
    }

    /// Events of the kernel that are about this run.
    fn of_this_run(&self) -> impl Iterator<Item = &KernelEvent> {
        self.kernel
            .iter()
            .filter(|event| event.pid.is_some_and(|pid| self.pids.contains(&pid)))
    }

    /// What should have been looked at and could not.
    fn unseen(&self) -> Vec<Evidence> {
        let mut unseen = self.case.unseen.clone();
        let kernel = &self.case.facts.kernel;
        if let Some(why) = &kernel.unavailable {
            unseen.push(Evidence {
                standing: Standing::Unavailable,
                text: why.clone(),
                source: format!("the kernel's log, {}", kernel.source),
            });
        }
        unseen
    }
}

fn observed(text: impl Into<String>, source: impl Into<String>) -> Evidence {
    Evidence {
        standing: Standing::Observed,
        text: text.into(),
        source: source.into(),
    }
}

/// What runs last need not be what has grown most.
fn grew_last(place: &Frame) -> Evidence {
    Evidence {
        standing: Standing::Partial,
        text: format!(
            "it was growing at {}:{} in {}",
            place.file, place.line, place.function
        ),
        source: "the stacks of Python before the end".into(),
    }
}

fn of_event(event: &KernelEvent, source: &str) -> Evidence {
    observed(&event.text, format!("the kernel's log, {source}"))
}

fn of_said(said: &Said) -> Evidence {
    let source = match said.number {
        0 => "exit status".into(),
        number => format!("log line {number}"),
    };
    observed(said.text.trim(), source)
}
