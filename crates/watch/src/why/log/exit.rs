//! What an exit status means as schedulers, shells and container engines write it.

use super::messages::Said;
use super::signals::{Signal, by_name, by_number};
use crate::ended::Exit;
use crate::why::{Cause, Grade};

/// A word for an ending that says more than a number.
struct State {
    word: &'static str,
    exit: Exit,
    cause: Cause,
    grade: Grade,
    sentence: &'static str,
}

const fn state(word: &'static str, cause: Cause, sentence: &'static str) -> State {
    State {
        word,
        exit: Exit::Unknown,
        cause,
        grade: Grade::Proven,
        sentence,
    }
}

const STATES: &[State] = &[
    State {
        exit: Exit::Signal(libc::SIGKILL),
        ..state(
            "OOMKILLED",
            Cause::CgroupOom,
            "The container was killed for its memory limit.",
        )
    },
    state("OUT_OF_MEMORY", Cause::CgroupOom, KILLED_BY_LIMIT),
    // As `sacct` cuts it.
    state("OUT_OF_ME", Cause::CgroupOom, KILLED_BY_LIMIT),
    state(
        "TIMEOUT",
        Cause::TimeLimit,
        "Slurm ended the job at its time limit.",
    ),
    state("CANCELLED", Cause::Stopped, "Somebody cancelled the job."),
    state(
        "PREEMPTED",
        Cause::Stopped,
        "Slurm took the nodes for another job.",
    ),
    State {
        grade: Grade::Likely,
        ..state("NODE_FAIL", Cause::Hardware, "Slurm says that a node failed.")
    },
    state(
        "TERM_MEMLIMIT",
        Cause::OomDaemon,
        "LSF ended the job for its memory.",
    ),
    state(
        "TERM_RUNLIMIT",
        Cause::TimeLimit,
        "LSF ended the job at its time limit.",
    ),
    state(
        "DEADLINEEXCEEDED",
        Cause::TimeLimit,
        "Kubernetes ended the job at its time limit.",
    ),
    State {
        grade: Grade::Unknown,
        ..state(
            "EVICTED",
            Cause::OomDaemon,
            "Kubernetes ended the pod; for want of what it does not say here.",
        )
    },
];

const KILLED_BY_LIMIT: &str = "Slurm says that the job was killed for its memory limit.";

/// Slurm writes its own signal for «out of memory», 253, into seven bits.
const SLURM_OOM: i32 = 125;

/// An exit status in the words of whoever tells it: `137`, `0:125` and `0:9` of Slurm, `-9` of Python, `SIGKILL`,
/// `signal 9`, `exit code 139`, `OOMKilled`, `OUT_OF_MEMORY`. 129 to 192 is what a shell makes of a signal, and any
/// program may end with: likely that. With what it
/// shows by itself, if anything; its line number is 0.
pub fn explain_exit(text: &str) -> Option<(Exit, Option<Said>)> {
    let text = text.trim().trim_end_matches('.');
    let upper = text.to_ascii_uppercase();
    let last = upper
        .split([' ', '=', ':', '"', '+'])
        .rfind(|word| !word.is_empty())?;
    let first = upper.split([' ', '+']).next()?;
    if let Some(state) = STATES.iter().find(|state| [first, last].contains(&state.word)) {
        let said = told(text, state.cause, state.grade, state.sentence.into());
        return Some((state.exit, Some(said)));
    }
    if upper == "COMPLETED" {
        return Some((Exit::Code(0), None));
    }
    if let Some((code, signal)) = text.split_once(':').and_then(|(code, signal)| {
        let code = code.rsplit(' ').next()?;
        Some((number(code)?, number(signal)?))
    }) {
        return match (code, signal & 0x7f) {
            (0, SLURM_OOM) => {
                let said = told(text, Cause::CgroupOom, Grade::Proven, KILLED_BY_LIMIT.into());
                Some((Exit::Unknown, Some(said)))
            }
            (code, 0) => by_code(text, code),
            (_, signal) => Some(by_signal(text, signal)),
        };
    }
    if let Some(signal) = upper.split([' ', ':', '(', ')', '<', '>', '.']).find_map(named) {
        return Some(by_signal(text, signal.number));
    }
    // A bare number, or the last one of a sentence.
    let word = text
        .rsplit(|c: char| !(c.is_ascii_digit() || c == '-'))
        .find(|word| !word.is_empty())?;
    let value: i32 = word.parse().ok()?;
    let spelled = upper.replace(word, "");
    let spelled = spelled.trim_matches([' ', ':', '=', '(', ')']);
    if ![
        "",
        "EXIT",
        "EXIT CODE",
        "EXITCODE",
        "EXIT STATUS",
        "EXITED",
        "CODE",
        "STATUS",
        "RETURNCODE",
    ]
    .contains(&spelled)
    {
        let signal = ["SIGNAL", "KILLED BY SIGNAL", "TERMINATED BY SIGNAL"].contains(&spelled);
        return (signal && (1..=64).contains(&value)).then(|| by_signal(text, value));
    }
    match value {
        -64..=-1 => Some(by_signal(text, -value)),
        code => by_code(text, code),
    }
}

fn number(text: &str) -> Option<i32> {
    let value: i32 = text.trim().parse().ok()?;
    (0..=255).contains(&value).then_some(value)
}

/// Only whole names: `TERM` is also a word.
fn named(word: &str) -> Option<&'static Signal> {
    word.starts_with("SIG").then(|| by_name(word)).flatten()
}

fn by_code(text: &str, code: i32) -> Option<(Exit, Option<Said>)> {
    match code {
        // Any program may end with such a code by itself.
        129..=192 => {
            let said = by_signal(text, code - 128).1.map(|said| Said {
                grade: said.grade.min(Grade::Likely),
                ..said
            });
            Some((Exit::Code(code), said))
        }
        0..=255 => Some((Exit::Code(code), None)),
        _ => None,
    }
}

fn by_signal(text: &str, number: i32) -> (Exit, Option<Said>) {
    let said = by_number(number).map(|signal| {
        let sentence = format!("{} ended it: {}.", signal.name, signal.means);
        told(text, signal.cause, signal.grade, sentence)
    });
    (Exit::Signal(number), said)
}

fn told(text: &str, cause: Cause, grade: Grade, sentence: String) -> Said {
    Said {
        cause,
        grade,
        sentence,
        number: 0,
        text: text.into(),
        pid: None,
        asked: None,
        free: None,
        total: None,
        place: None,
        handled: false,
    }
}

#[cfg(test)]
mod tests {
    use tidegate_memory::Host;

    use super::*;
    use crate::why::{ForeignJob, case_of_job, judge_told};

    #[test]
    fn exits_are_understood() {
        use Cause::*;
        for (text, exit, cause) in [
            ("137", Exit::Code(137), Some(Killed)),
            ("143", Exit::Code(143), Some(Stopped)),
            ("139", Exit::Code(139), Some(SegmentationFault)),
            ("134", Exit::Code(134), Some(Abort)),
            ("130", Exit::Code(130), Some(Stopped)),
            ("1", Exit::Code(1), None),
            ("0", Exit::Code(0), None),
            ("128", Exit::Code(128), None),
            ("255", Exit::Code(255), None),
            ("0:125", Exit::Unknown, Some(CgroupOom)),
            ("0:9", Exit::Signal(9), Some(Killed)),
            ("0:15", Exit::Signal(15), Some(Stopped)),
            ("1:0", Exit::Code(1), None),
            ("0:0", Exit::Code(0), None),
            ("137:0", Exit::Code(137), Some(Killed)),
            ("ExitCode 0:53", Exit::Signal(53), None),
            ("-9", Exit::Signal(9), Some(Killed)),
            ("-11", Exit::Signal(11), Some(SegmentationFault)),
            ("SIGKILL", Exit::Signal(9), Some(Killed)),
            ("sigterm", Exit::Signal(15), Some(Stopped)),
            ("signal 9", Exit::Signal(9), Some(Killed)),
            ("killed by signal 11", Exit::Signal(11), Some(SegmentationFault)),
            ("Signal 9 (SIGKILL)", Exit::Signal(9), Some(Killed)),
            ("<Signals.SIGKILL: 9>", Exit::Signal(9), Some(Killed)),
            ("exit code 137", Exit::Code(137), Some(Killed)),
            ("Exit code: 1", Exit::Code(1), None),
            ("exit status 2", Exit::Code(2), None),
            ("OOMKilled", Exit::Signal(9), Some(CgroupOom)),
            ("reason: OOMKilled", Exit::Signal(9), Some(CgroupOom)),
            ("OUT_OF_MEMORY", Exit::Unknown, Some(CgroupOom)),
            ("OUT_OF_ME+", Exit::Unknown, Some(CgroupOom)),
            ("State: OUT_OF_MEMORY", Exit::Unknown, Some(CgroupOom)),
            ("TIMEOUT", Exit::Unknown, Some(TimeLimit)),
            ("CANCELLED by 1000", Exit::Unknown, Some(Stopped)),
            ("CANCELLED+", Exit::Unknown, Some(Stopped)),
            ("NODE_FAIL", Exit::Unknown, Some(Hardware)),
            ("COMPLETED", Exit::Code(0), None),
            ("TERM_MEMLIMIT", Exit::Unknown, Some(OomDaemon)),
            ("Evicted", Exit::Unknown, Some(OomDaemon)),
        ] {
            let (found, said) = explain_exit(text).unwrap_or_else(|| panic!("{text} is understood"));
            assert_eq!((found, said.map(|said| said.cause)), (exit, cause), "{text}");
        }
    }

    #[test]
    fn codes_of_shells_prove_nothing() {
        use Cause::{Abort, Failed, Killed, SegmentationFault, Stopped};
        use Grade::{Likely, Proven, Unknown};
        for (text, expected) in [
            ("139", (SegmentationFault, Likely)),
            ("143", (Stopped, Likely)),
            ("134", (Abort, Likely)),
            ("137", (Killed, Unknown)),
            ("138", (Failed, Likely)),
            ("SIGSEGV", (SegmentationFault, Proven)),
            ("0:11", (SegmentationFault, Proven)),
            ("-11", (SegmentationFault, Proven)),
            ("SIGTERM", (Stopped, Proven)),
            ("0:9", (Killed, Unknown)),
            ("3", (Failed, Proven)),
        ] {
            let job = ForeignJob {
                exit: Some(text),
                ..ForeignJob::default()
            };
            let (case, told) = case_of_job(&Host::live(), &job).unwrap();
            let verdict = judge_told(&case, told);
            // Who sent a SIGKILL is not known, and so is the cause.
            let cause = match verdict.cause {
                Cause::Unknown => Killed,
                cause => cause,
            };
            assert_eq!((cause, verdict.grade), expected, "{text}: {}", verdict.sentence);
        }
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "",
            "  ",
            "train.py",
            "epoch 9",
            "-900",
            "300",
            "12:99999",
            "term",
            "1.5",
            "9 workers",
            "99999999999",
        ] {
            assert_eq!(explain_exit(text), None, "{text}");
        }
    }
}
