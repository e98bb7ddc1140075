//! What a log says of why a run ended: messages that are known by their wording, with their figures.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use tidegate_runs::Frame;

use super::errors;
use super::handled::{Output, says_so};
use super::lines::{Line, clean, cut};
use super::loss::{Loss, loss};
use super::signals::spoken;
use super::traceback::{Role, Traceback, mark_handled, scan};
use super::wording::{Figures, Pairs, Wording};
use super::{code, device, limits, memory, scheduler, workers};
use crate::why::{Cause, Grade, LogLine};

/// A message, and what it shows by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    pub cause: Cause,
    pub grade: Grade,
    /// One sentence with the sizes in it.
    pub sentence: String,
    /// The line of the log; 0 where it is from elsewhere.
    pub number: u64,
    /// The line as it stands there, without colours and what a progress bar overwrote.
    pub text: String,
    /// The process that it is about, where it is named.
    pub pid: Option<i32>,
    /// Bytes that were asked for, that were free, and that there are.
    pub asked: Option<u64>,
    pub free: Option<u64>,
    pub total: Option<u64>,
    /// Where in the code, where a traceback tells.
    pub place: Option<Frame>,
    /// The program coped with it: it says so, or ordinary output went on for long after it.
    pub handled: bool,
}

/// In the order in which they are tried: an accelerator's `MemoryError` is one of the accelerator.
const TABLES: [&[Wording]; 5] = [
    device::WORDINGS,
    limits::WORDINGS,
    workers::WORDINGS,
    memory::WORDINGS,
    scheduler::WORDINGS,
];

/// Longer texts are cut: a message, not a dump.
const LONGEST: usize = 2000;

/// All that a log says of why the run ended, in the order of its lines. Repetitions are left out.
pub fn said(log: &[LogLine]) -> Vec<Said> {
    let lines = clean(log);
    let (mut tracebacks, roles) = scan(&lines);
    let output = Output::of(&lines, &roles);
    mark_handled(&mut tracebacks, &output);
    let mut found: Vec<Said> = (0..lines.len())
        .filter(|at| roles[*at] != Role::Trace)
        .filter_map(|at| recognize(&lines, at, roles[at]))
        .collect();
    for traceback in &tracebacks {
        place_messages(traceback, &mut found);
    }
    let more: Vec<Said> = tracebacks
        .iter()
        .flat_map(|traceback| exceptions(traceback, &lines, &found))
        .collect();
    found.extend(more);
    for said in &mut found {
        if said.cause != Cause::NotANumber {
            said.handled |= output.went_on_after(said.number);
        }
    }
    found.extend(losses(&lines, &roles));
    found.sort_by_key(|said| said.number);
    without_repetitions(found)
}

/// What one line says.
fn recognize(lines: &[Line<'_>], at: usize, role: Role) -> Option<Said> {
    let text = lines[at].text.as_ref();
    let next = lines.get(at + 1).map_or("", |line| line.text.as_ref());
    if text.trim().is_empty() {
        return None;
    }
    let is_error = role == Role::Exception || text.contains("Error");
    let pairs = Pairs::of(text);
    let wording = TABLES
        .iter()
        .copied()
        .chain([code::PLAIN])
        .chain(is_error.then_some(code::ERRORS))
        .flatten()
        .find(|wording| wording.fits(text, &pairs));
    if let Some(wording) = wording {
        let whole = match wording.further {
            0 => text.to_string(),
            further => {
                let end = lines.len().min(at + 1 + further);
                let texts: Vec<&str> = lines[at..end].iter().map(|line| line.text.as_ref()).collect();
                texts.join("\n")
            }
        };
        let figures = wording.figures(&whole);
        return Some(Said {
            sentence: wording.sentence(&figures),
            handled: says_so(text, next),
            ..message(&lines[at], wording.cause, wording.grade, figures)
        });
    }
    let (signal, pid) = spoken(text)?;
    Some(Said {
        sentence: format!("A process ended by {}: {}.", signal.name, signal.means),
        pid,
        ..message(&lines[at], signal.cause, signal.grade, Figures::default())
    })
}

fn message(line: &Line<'_>, cause: Cause, grade: Grade, figures: Figures) -> Said {
    Said {
        cause,
        grade,
        sentence: String::new(),
        number: line.number,
        text: cut(line.text.trim(), LONGEST).into(),
        pid: figures.pid,
        asked: figures.asked,
        free: figures.free,
        total: figures.total,
        place: None,
        handled: false,
    }
}

/// Messages inside a traceback are of the place that it names. `found` is in the order of its lines.
fn place_messages(traceback: &Traceback, found: &mut [Said]) {
    // The innermost last, so that it wins.
    for part in traceback.chain() {
        let first = found.partition_point(|said| said.number < *part.lines.start());
        for said in found[first..]
            .iter_mut()
            .take_while(|said| said.number <= *part.lines.end())
        {
            said.place = part.place().cloned();
            said.handled |= traceback.handled;
            if said.cause == Cause::DiskFull && said.number == part.number && errors::in_shared_memory(part) {
                (said.cause, said.grade) = (Cause::SharedMemory, Grade::Likely);
                said.sentence = "/dev/shm was full.".into();
            }
        }
    }
}

/// Exceptions that no wording knew, by their names. `found` is in the order of its lines.
fn exceptions(traceback: &Traceback, lines: &[Line<'_>], found: &[Said]) -> Vec<Said> {
    let known = |numbers: RangeInclusive<u64>| {
        let first = found.partition_point(|said| said.number < *numbers.start());
        found[first..]
            .iter()
            .take_while(move |said| said.number <= *numbers.end())
    };
    let mut more = Vec::new();
    let mut wrapped = true;
    for part in traceback.chain() {
        let (cause, grade, sentence) = errors::explain(part);
        // That something failed is worth saying only where nothing says more of it: not of what only wraps the exception
        // of a worker, nor of what was being handled when the next one arose.
        let wraps = part.name().ends_with("Group")
            || part.chained.as_ref().is_some_and(|inner| inner.worker.is_some());
        let aside = !std::mem::replace(&mut wrapped, wraps);
        let plain = matches!(cause, Cause::Failed | Cause::Abort);
        let explained =
            part.chained.is_none() && known(part.lines.clone()).any(|said| plain || said.cause == cause);
        if known(part.number..=part.number).next().is_some() || explained || (plain && (wraps || aside)) {
            continue;
        }
        let first = lines.partition_point(|line| line.number < part.number);
        let of_it = lines[first..]
            .iter()
            .take_while(|line| line.number == part.number);
        let Some(line) = of_it.last() else {
            continue;
        };
        let grade = if aside { grade.min(Grade::Likely) } else { grade };
        more.push(Said {
            sentence,
            place: part.place().cloned(),
            handled: traceback.handled,
            ..message(line, cause, grade, Figures::default())
        });
    }
    more
}

/// The first loss that was not finite, unless a finite one came after it.
fn losses(lines: &[Line<'_>], roles: &[Role]) -> Option<Said> {
    let mut first: Option<(&Line<'_>, Grade)> = None;
    let mut recovered = false;
    for (line, _) in lines.iter().zip(roles).filter(|(_, role)| **role != Role::Trace) {
        match loss(&line.text) {
            Some(Loss::NotFinite(grade)) => {
                let (_, known) = *first.get_or_insert((line, grade));
                if grade > known {
                    first = Some((line, grade));
                }
                recovered = false;
            }
            Some(Loss::Finite) => recovered = true,
            None => {}
        }
    }
    let (line, grade) = first?;
    Some(Said {
        sentence: "The loss became infinite or not a number.".into(),
        handled: recovered,
        ..message(line, Cause::NotANumber, grade, Figures::default())
    })
}

/// A library that fails says so for each thread and each row: the first of a row of the same is enough.
fn without_repetitions(found: Vec<Said>) -> Vec<Said> {
    let mut kept: Vec<Said> = Vec::new();
    for said in found {
        let same = |last: &&Said| {
            last.cause == said.cause
                && last.handled == said.handled
                && last.grade == said.grade
                && (last.sentence == said.sentence || said.handled)
        };
        if kept.last().filter(same).is_none() {
            kept.push(said);
        }
    }
    kept
}
