//! Ends that the exit status tells: done, asked to stop, a signal of its own making, a plain failure.

use super::hang::still_at_the_end;
use super::{Finding, Reading, memory, observed, of_event};
use crate::ended::{Exit, signal_name};
use crate::why::cause::Cause;
use crate::why::facts::{SentSignal, SignalReason};
use crate::why::log::KernelKind;
use crate::why::verdict::Grade;

pub(super) fn success(reading: &Reading) -> Option<Finding> {
    let facts = &reading.case.facts;
    if facts.exit != Some(Exit::Code(0)) || facts.stopped {
        return None;
    }
    Some(Finding {
        cause: Cause::Success,
        grade: Grade::Proven,
        sentence: "it ended in good order, with code 0".into(),
        evidence: vec![observed("exit code 0", "wait status")],
    })
}

/// A command that could not even be started.
pub(super) fn never_started(reading: &Reading) -> Option<Finding> {
    let refused = reading.case.facts.refused.as_ref()?;
    let error = refused.errno.map(std::io::Error::from_raw_os_error);
    let said = error.map_or("not known why".into(), |error| error.to_string());
    let file = refused.file.display();
    let (cause, sentence) = match (refused.errno, refused.interpreter) {
        (Some(libc::ENOENT), false) => (Cause::MissingFile, format!("its command {file} was not found")),
        (Some(libc::ENOENT), true) => (
            Cause::MissingFile,
            format!("its command could not be started: {file}, which is to run it, was not found"),
        ),
        (Some(libc::ENOTDIR), _) => (Cause::MissingFile, format!("its command {file} was not found")),
        (Some(libc::EACCES | libc::EPERM), _) => (
            Cause::Permission,
            format!("its command {file} may not be executed"),
        ),
        _ => (
            Cause::Failed,
            format!("its command {file} could not be started: {said}"),
        ),
    };
    Some(Finding {
        cause,
        grade: Grade::Proven,
        sentence,
        evidence: vec![observed(said, format!("execve of {file}"))],
    })
}

/// SIGINT, SIGTERM or SIGHUP, from a person or a program.
pub(super) fn asked_to_stop(reading: &Reading) -> Option<Finding> {
    const STOPS: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
    let facts = &reading.case.facts;
    let exit = facts.exit?;
    let (signal, how) = match exit {
        Exit::Signal(signal) => (signal, format!("it died of {}", signal_name(signal))),
        // A program that ends itself after the signal says so by its code; Python by 1 or 130 after a KeyboardInterrupt.
        Exit::Code(code) if code > 128 => (code - 128, format!("it ended with code {code}")),
        Exit::Code(code) if code != 0 && reading.was_interrupted() => {
            (libc::SIGINT, format!("it ended with code {code}"))
        }
        Exit::Code(0) if facts.stopped => {
            let passed = facts.signals.iter().find(|sent| STOPS.contains(&sent.signal));
            let signal = passed.map_or(libc::SIGTERM, |sent| sent.signal);
            (signal, "it said that it stopped, and ended with code 0".into())
        }
        _ => return None,
    };
    if !STOPS.contains(&signal) {
        return None;
    }
    let passed = |sent: &&SentSignal| sent.signal == signal && sent.why == SignalReason::PassedOn;
    let died = observed(how.clone(), "wait status");
    // Whoever stops what has not moved for long may have had a reason that is not to be seen.
    let grade = match still_at_the_end(reading).is_some() {
        true => Grade::Likely,
        false => Grade::Proven,
    };
    match (facts.signals.iter().find(passed), exit) {
        (Some(sent), _) => Some(Finding {
            cause: Cause::Stopped,
            grade,
            sentence: format!("it was asked to stop by {}, and did", signal_name(signal)),
            evidence: vec![
                died,
                observed(
                    format!("{} after {:.1} s", signal_name(signal), sent.time_ms as f64 / 1e3),
                    "passed on by tidegate",
                ),
            ],
        }),
        (None, Exit::Signal(_)) => Some(Finding {
            cause: Cause::Stopped,
            grade,
            sentence: format!("{how}, which somebody sent to it"),
            evidence: vec![died],
        }),
        (None, _) => Some(Finding {
            cause: Cause::Stopped,
            grade: Grade::Likely,
            sentence: format!(
                "{how}, as a program does that was asked to stop by {}",
                signal_name(signal)
            ),
            evidence: vec![died],
        }),
    }
}

impl Reading<'_> {
    /// Whether the last thing it said is that it was interrupted.
    fn was_interrupted(&self) -> bool {
        let last = self.traceback.as_ref();
        last.is_some_and(|traceback| traceback.exception == "KeyboardInterrupt")
    }
}

/// A signal that its own code set off.
pub(super) fn by_a_signal(reading: &Reading) -> Option<Finding> {
    let facts = &reading.case.facts;
    let (signal, mut grade) = match facts.exit? {
        Exit::Signal(signal) => (signal, Grade::Proven),
        Exit::Code(code) if code > 128 => (code - 128, Grade::Likely),
        _ => return None,
    };
    let status = observed(signal_name(signal), "wait status");
    let fault = reading.of_this_run().find(|event| {
        matches!(
            event.kind,
            KernelKind::Segfault { .. }
                | KernelKind::InvalidOpcode { .. }
                | KernelKind::GeneralProtection { .. }
        )
    });
    if let Some(event) = fault {
        let inside = match &event.kind {
            KernelKind::Segfault { module, .. }
            | KernelKind::InvalidOpcode { module }
            | KernelKind::GeneralProtection { module } => module.clone(),
            _ => None,
        };
        let inside = inside.map_or(String::new(), |module| format!(" in {module}"));
        let cause = event.cause();
        let what = match cause {
            Cause::StackOverflow => "its stack was full (SIGSEGV just below the stack)",
            Cause::IllegalInstruction => {
                "it came to an instruction that this processor does not know (SIGILL)"
            }
            _ => "it touched memory that is not its own (SIGSEGV)",
        };
        return Some(Finding {
            cause,
            grade,
            sentence: format!("{what}{inside}"),
            evidence: vec![status, of_event(event, &facts.kernel.source)],
        });
    }
    let (cause, what) = match signal {
        libc::SIGSEGV => (
            Cause::SegmentationFault,
            "it touched memory that is not its own (SIGSEGV)",
        ),
        // A mapped file that was cut, a full /dev/shm that nobody saw, or the machine.
        libc::SIGBUS => {
            grade = grade.min(Grade::Likely);
            (
                Cause::SegmentationFault,
                "it touched memory that could not be given to it (SIGBUS)",
            )
        }
        libc::SIGILL => (
            Cause::IllegalInstruction,
            "it came to an instruction that this processor does not know (SIGILL)",
        ),
        libc::SIGABRT => (Cause::Abort, "it gave up by itself (SIGABRT)"),
        libc::SIGFPE => (Cause::Abort, "an arithmetic error ended it (SIGFPE)"),
        libc::SIGXCPU => (Cause::TimeLimit, "its limit of processor time ended it (SIGXCPU)"),
        libc::SIGXFSZ => (Cause::DiskFull, "a file came to the limit of its size (SIGXFSZ)"),
        libc::SIGPIPE => (Cause::Failed, "whoever read its output went away (SIGPIPE)"),
        _ => return None,
    };
    Some(Finding {
        cause,
        grade,
        sentence: what.into(),
        evidence: vec![status],
    })
}

/// A worker of ours says itself what it failed of.
pub(super) fn told_by_the_worker(reading: &Reading) -> Option<Finding> {
    let facts = &reading.case.facts;
    let failure = facts.failure.as_ref()?;
    let Some(Exit::Code(code @ 1..)) = facts.exit else {
        return None;
    };
    Some(Finding {
        cause: Cause::Failed,
        grade: Grade::Proven,
        sentence: format!("it failed: {}", failure.message),
        evidence: vec![
            observed(&failure.message, "its last event"),
            observed(format!("exit code {code}"), "wait status"),
        ],
    })
}

/// An end with an error that is none of the others, told by its own words where it has any.
pub(super) fn failed(reading: &Reading) -> Option<Finding> {
    let Some(Exit::Code(code)) = reading.case.facts.exit else {
        return None;
    };
    // Whose SIGKILL that was another rule asks.
    if code == 0 || code == memory::KILLED_BELOW && memory::says_killed(reading) {
        return None;
    }
    let status = observed(format!("exit code {code}"), "wait status");
    let Some(traceback) = &reading.traceback else {
        let (cause, grade, sentence) = match code {
            // By this a shell means a command that is not there, and says so; another program may mean anything by it.
            127 if !reading.case.log.is_empty() => (
                Cause::Failed,
                Grade::Likely,
                "it ended with code 127, which may mean that a command was not found".into(),
            ),
            127 => (
                Cause::MissingFile,
                Grade::Likely,
                "a command of it was not found (code 127)".into(),
            ),
            126 => (
                Cause::Failed,
                Grade::Likely,
                "a command of it could not be executed (code 126)".into(),
            ),
            129..=192 => (
                Cause::Failed,
                Grade::Likely,
                format!(
                    "it ended with code {code}: an error of its own, or how a shell tells that its command died of {}",
                    signal_name(code - 128)
                ),
            ),
            _ => (
                Cause::Failed,
                Grade::Proven,
                format!("it ended with an error of its own, code {code}"),
            ),
        };
        return Some(Finding {
            cause,
            grade,
            sentence,
            evidence: vec![status],
        });
    };
    let message = traceback.message.lines().next().unwrap_or_default();
    let place = traceback.place().map_or(String::new(), |place| {
        format!(", at {}:{}", place.file, place.line)
    });
    Some(Finding {
        cause: Cause::Failed,
        grade: reading.grade_of(traceback),
        sentence: format!("it ended with {}: {message}{place}", traceback.exception),
        evidence: vec![
            observed(
                format!("{}: {message}", traceback.exception),
                format!("log line {}", traceback.number),
            ),
            status,
        ],
    })
}
