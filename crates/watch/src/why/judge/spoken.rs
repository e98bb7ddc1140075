//! Ends that the job, or whoever ran it, put into words.

use super::{Finding, Reading, observed, of_said};
use crate::ended::{Exit, signal_name};
use crate::why::cause::Cause;
use crate::why::log::{Said, reports_of_loss};
use crate::why::verdict::Grade;

/// The last message that explains an end, unless the job coped with it.
pub(super) fn said_so(reading: &Reading) -> Option<Finding> {
    let exit = reading.case.facts.exit;
    let done = exit == Some(Exit::Code(0));
    let counts = |said: &&Said| {
        let fits = match said.cause {
            // The end of a training whose loss is lost may look like any other, but one loss is no training.
            Cause::NotANumber => {
                !done || said.grade == Grade::Proven || reports_of_loss(&reading.case.log) > 1
            }
            _ => !done,
        };
        // Logs may speak of the processes of others.
        let of_others = said
            .pid
            .is_some_and(|pid| !reading.pids.is_empty() && !reading.pids.contains(&pid));
        !said.handled && fits && said.grade > Grade::Unknown && !(of_others && is_a_kill(said.cause))
    };
    let lines = reading.traceback.as_ref().map(|traceback| &traceback.lines);
    let in_traceback = |said: &&Said| lines.is_some_and(|lines| lines.contains(&said.number));
    // What was said before the last failure was coped with, unless it is what others did to it.
    let stands = |said: &&Said| {
        let done_to_it = matches!(
            said.cause,
            Cause::ChildOom | Cause::OomDaemon | Cause::CgroupOom | Cause::SharedMemory | Cause::NotANumber
        );
        done_to_it || lines.is_none_or(|lines| said.number > *lines.end())
    };
    let specific = |said: &&Said| said.cause != Cause::Failed;
    // What it ended with says more than what it said before, and a kind of failure more than that it failed.
    let said = reading
        .said
        .iter()
        .rfind(|said| counts(said) && in_traceback(said) && specific(said))
        .or_else(|| {
            reading
                .said
                .iter()
                .rfind(|said| counts(said) && specific(said) && stands(said))
        })
        .or_else(|| reading.said.iter().rfind(|said| counts(said) && !specific(said)))?;
    let cause = match said.cause {
        // TensorFlow says the same of the host's memory.
        Cause::DeviceMemory if said.text.contains("device:CPU") => Cause::MemoryError,
        // The kernel has one number for a full disk and for too many watched files.
        Cause::DiskFull if said.text.contains("inotify") => Cause::OpenFiles,
        cause => cause,
    };
    let status = match exit {
        Some(Exit::Code(code)) => format!("exit code {code}"),
        Some(Exit::Signal(signal)) => signal_name(signal),
        Some(Exit::Unknown) | None => "not known".into(),
    };
    let place = said.place.as_ref().map_or(String::new(), |place| {
        format!(", at {}:{}", place.file, place.line)
    });
    Some(Finding {
        cause,
        grade: said.grade,
        sentence: format!("{}{place}", lower(said.sentence.trim_end_matches('.'))),
        evidence: vec![of_said(said), observed(status, "wait status")],
    })
}

fn is_a_kill(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::OomDaemon | Cause::CgroupOom | Cause::HostOom | Cause::ChildOom | Cause::Killed
    )
}

/// A scheduler says that the time was up.
pub(super) fn at_its_time_limit(reading: &Reading) -> Option<Finding> {
    let done = reading.case.facts.exit == Some(Exit::Code(0));
    let said = reading
        .said
        .iter()
        .rfind(|said| said.cause == Cause::TimeLimit && !said.handled);
    said.filter(|said| !done && said.grade > Grade::Unknown)
        .map(|said| Finding {
            cause: Cause::TimeLimit,
            grade: said.grade,
            sentence: lower(said.sentence.trim_end_matches('.')),
            evidence: vec![of_said(said)],
        })
}

/// The words of the C library for errors of the system, as most programs print them last.
const ERRORS: [(&str, Cause, &str); 8] = [
    ("Cannot allocate memory", Cause::BadAlloc, "it got no memory"),
    ("No space left on device", Cause::DiskFull, "a disk was full"),
    (
        "Disk quota exceeded",
        Cause::DiskFull,
        "its share of a disk was full",
    ),
    (
        "Too many open files",
        Cause::OpenFiles,
        "it had too many files open",
    ),
    (
        "Resource temporarily unavailable",
        Cause::Processes,
        "it could start no further thread or process",
    ),
    ("Permission denied", Cause::Permission, "it was not allowed to"),
    (
        "No such file or directory",
        Cause::MissingFile,
        "a file was not there",
    ),
    ("command not found", Cause::MissingFile, "a command was not there"),
];

/// A failure whose last words are those of the system.
pub(super) fn by_the_system(reading: &Reading) -> Option<Finding> {
    let Some(Exit::Code(code)) = reading.case.facts.exit else {
        return None;
    };
    if code == 0 || reading.traceback.is_some() {
        return None;
    }
    let line = reading
        .case
        .log
        .iter()
        .rfind(|line| !line.text.trim().is_empty())?;
    let (_, cause, what) = ERRORS.iter().find(|(words, ..)| line.text.contains(words))?;
    Some(Finding {
        cause: *cause,
        grade: Grade::Likely,
        sentence: format!("{what}: {}", line.text.trim()),
        evidence: vec![
            observed(line.text.trim(), format!("log line {}", line.number)),
            observed(format!("exit code {code}"), "wait status"),
        ],
    })
}

/// A thread or process that could not be started: the system's word for it says no more than "try again".
pub(super) fn could_not_start(reading: &Reading) -> Option<Finding> {
    let traceback = reading.traceback.as_ref()?;
    let starts = |frame: &tidegate_runs::Frame| {
        let libraries = [
            "/subprocess.py",
            "/multiprocessing/",
            "/threading.py",
            "/concurrent/futures/",
        ];
        libraries.iter().any(|part| frame.file.contains(part))
    };
    let forks = reading.case.log.iter().any(|line| {
        traceback.lines.contains(&line.number)
            && (line.text.contains("fork(") || line.text.contains("Popen("))
    });
    let refused = traceback.exception == "BlockingIOError" && traceback.message.contains("[Errno 11]");
    (refused && (forks || traceback.frames.iter().any(starts))).then(|| Finding {
        cause: Cause::Processes,
        grade: reading.grade_of(traceback),
        sentence: "it could start no further process: there were too many".into(),
        evidence: vec![observed(
            format!("{}: {}", traceback.exception, traceback.message),
            format!("log line {}", traceback.number),
        )],
    })
}

/// Sentences of verdicts go on from "it": they begin small, but for names.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second))
            if first.is_uppercase() && !second.is_uppercase() && is_plain(sentence) =>
        {
            first.to_lowercase().chain(sentence.chars().skip(1)).collect()
        }
        _ => sentence.into(),
    }
}

/// Whether a sentence begins with an ordinary word.
fn is_plain(sentence: &str) -> bool {
    let word = sentence.split(' ').next().unwrap_or_default();
    matches!(
        word,
        "A" | "An" | "The" | "It" | "No" | "Too" | "Its" | "One" | "Two" | "This" | "There" | "Memory"
    )
}
