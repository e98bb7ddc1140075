//! Jobs that were not run under Tidegate: a process that lives, a number that one once had, a log of this machine or another.

use tidegate_memory::format_bytes;
use tidegate_runs::timestamp;

use super::{Finding, Reading, hang, memory, observed, of_event};
use crate::ended::Exit;
use crate::why::cause::Cause;
use crate::why::foreign::wall_ms;
use crate::why::log::{KernelEvent, KernelKind};
use crate::why::verdict::{Evidence, Grade};

/// It has not ended at all.
pub(super) fn lives(reading: &Reading) -> Option<Finding> {
    let case = reading.case;
    if case.foreign?.lives != Some(true) {
        return None;
    }
    let last = case.flight.iter().rfind(|record| record.processes > 0);
    let held = last.and_then(|record| record.proportional.or(record.resident));
    let of_how_many = match last.map_or(1, |record| record.processes) {
        0 | 1 => String::new(),
        processes => format!(" in {processes} processes"),
    };
    let holds = held.map_or("what it holds is not to be seen".into(), |bytes| {
        format!("it holds {}{of_how_many}", format_bytes(bytes))
    });
    let first = case
        .processes
        .iter()
        .rfind(|process| Some(process.pid) == case.facts.pid);
    let stopped = first.is_some_and(|process| matches!(process.state, 'T' | 't'));
    let stall = case.facts.stalls.last();
    let place = hang::main_stack(reading);
    let at = place
        .as_ref()
        .map_or(String::new(), |place| format!(", at {place}"));
    let ends = case.flight.first().zip(last);
    let does = match stall {
        _ if stopped => format!("; it is stopped, and waits for SIGCONT{at}"),
        Some(stall) => {
            let waits = stall.waits.as_ref().filter(|waits| !waits.main.is_empty());
            let wait = waits.map_or(String::new(), |waits| {
                format!(", its main thread waits in {}", waits.main)
            });
            let seconds = stall.to_ms.saturating_sub(stall.from_ms) as f64 / 1e3;
            format!("; nothing moved in {seconds:.0} s{wait}{at}")
        }
        None => {
            let worked = ends.and_then(|(first, last)| {
                let time_ms = last.time_ms.checked_sub(first.time_ms).filter(|ms| *ms > 0)?;
                Some(last.cpu_ms?.saturating_sub(first.cpu_ms?) as f64 * 100.0 / time_ms as f64)
            });
            let works = worked.map_or(String::new(), |share| {
                format!("; it takes {share:.0}% of a processor")
            });
            format!("{works}{at}")
        }
    };
    let mut evidence: Vec<Evidence> = Vec::new();
    evidence.extend(held.map(|bytes| {
        let source = match last.is_some_and(|record| record.proportional.is_some()) {
            true => "its proportional memory, /proc/PID/smaps_rollup",
            false => "its resident memory, /proc/PID/statm",
        };
        observed(format!("{}{of_how_many}", format_bytes(bytes)), source)
    }));
    evidence.extend(place.map(|place| observed(place, "stack of its main thread")));
    // Those of its children, since it started.
    let source = &case.facts.kernel.source;
    evidence.extend(reading.of_this_run().map(|event| of_event(event, source)));
    Some(Finding {
        cause: Cause::Unknown,
        grade: Grade::Unknown,
        sentence: format!("it is still running: {holds}{does}"),
        evidence,
    })
}

/// What the kernel did to a process of this number. Others may have had it before or since.
pub(super) fn by_its_number(reading: &Reading) -> Option<Finding> {
    let case = reading.case;
    let foreign = case.foreign.filter(|foreign| foreign.lives == Some(false))?;
    let fits = |event: &&KernelEvent| match (&event.kind, case.facts.exit) {
        (KernelKind::OomKill(_) | KernelKind::OomDaemon { .. }, exit) => may_be_killed(exit),
        (
            KernelKind::Segfault { .. }
            | KernelKind::GeneralProtection { .. }
            | KernelKind::InvalidOpcode { .. },
            None | Some(Exit::Unknown),
        ) => true,
        _ => false,
    };
    // What it ended with by its own words is no kill.
    let event = reading.of_this_run().filter(fits).last()?;
    if reading.traceback.is_some() {
        return None;
    }
    let did = match event.kind {
        KernelKind::OomKill(_) => "the kernel killed",
        KernelKind::OomDaemon { .. } => "a watcher of memory killed",
        _ => "the kernel reported a crash of",
    };
    let why = match event.kind {
        KernelKind::OomKill(_) | KernelKind::OomDaemon { .. } => " for want of memory",
        _ => "",
    };
    let when = time_of(reading, event, foreign.booted_ms).map_or(String::new(), |time| format!(" at {time}"));
    Some(Finding {
        cause: event.cause(),
        grade: Grade::Likely,
        sentence: format!(
            "{did} process {} ({}){why}{when}; the number is the same, whether the process is it does not say",
            event.pid.unwrap_or(0),
            event.name.as_deref().unwrap_or("its name is not told"),
        ),
        evidence: vec![of_event(event, &case.facts.kernel.source)],
    })
}

/// A kill for want of memory on this machine, about when the log ends.
pub(super) fn near_its_log(reading: &Reading) -> Option<Finding> {
    let case = reading.case;
    let foreign = case.foreign?;
    let log_ms = foreign.log_ms.filter(|_| case.facts.pid.is_none())?;
    if !may_be_killed(case.facts.exit) || reading.traceback.is_some() {
        return None;
    }
    let away = |event: &KernelEvent| {
        let line = case.facts.kernel.lines.get(event.line)?;
        Some(wall_ms(line, foreign.booted_ms)?.abs_diff(log_ms))
    };
    let kills = reading
        .kernel
        .iter()
        .filter(|event| matches!(event.kind, KernelKind::OomKill(_)));
    let (event, away) = kills
        .filter_map(|event| Some((event, away(event)?)))
        .min_by_key(|(_, away)| *away)?;
    // Machines kill for many jobs, and logs end for many reasons: something must say that this one was killed.
    let likely =
        matches!(case.facts.exit, Some(Exit::Signal(_) | Exit::Code(_))) || memory::says_killed(reading);
    let when = time_of(reading, event, foreign.booted_ms).unwrap_or_default();
    let victim = format!(
        "process {} ({}) for want of memory at {when}, {:.0} s from the last line of the log",
        event.pid.unwrap_or(0),
        event.name.as_deref().unwrap_or("?"),
        away as f64 / 1e3
    );
    Some(Finding {
        cause: if likely { event.cause() } else { Cause::Unknown },
        grade: if likely { Grade::Likely } else { Grade::Unknown },
        sentence: match likely {
            true => format!("if it ran on this machine, it was likely this: the kernel killed {victim}"),
            false => format!("how it ended is not known; the kernel of this machine killed {victim}"),
        },
        evidence: vec![of_event(
            event,
            &format!("{}, of this machine", case.facts.kernel.source),
        )],
    })
}

fn may_be_killed(exit: Option<Exit>) -> bool {
    matches!(
        exit,
        None | Some(Exit::Unknown | Exit::Signal(libc::SIGKILL) | Exit::Code(memory::KILLED_BELOW))
    )
}

/// When the kernel said it.
fn time_of(reading: &Reading, event: &KernelEvent, booted_ms: Option<i64>) -> Option<String> {
    let line = reading.case.facts.kernel.lines.get(event.line)?;
    let time = timestamp(wall_ms(line, booted_ms)?);
    // Clocks of the kernel are not good for milliseconds.
    Some(format!("{}Z", time.get(..19)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::{Case, Foreign, judge};

    const PID: i32 = 4711;
    /// The kill below was five seconds after the start of a machine that started at this time.
    const BOOTED_MS: i64 = 1_794_773_730_000;

    fn case(pid: Option<i32>, foreign: Foreign) -> Case {
        let mut case = Case::default();
        case.facts.pid = pid;
        case.facts.kernel.source = "/dev/kmsg".into();
        case.facts.kernel.lines = vec![format!(
            "3,1,5000000,-;Out of memory: Killed process {PID} (python3) total-vm:900kB, anon-rss:800kB, file-rss:0kB"
        )];
        case.foreign = Some(Foreign {
            booted_ms: Some(BOOTED_MS),
            ..foreign
        });
        case
    }

    fn check(case: &Case, expected: (Cause, Grade), words: &str) {
        let verdict = judge(case);
        assert_eq!((verdict.cause, verdict.grade), expected, "{}", verdict.sentence);
        assert!(verdict.sentence.contains(words), "{}", verdict.sentence);
    }

    #[test]
    fn a_number_names_nobody_for_sure() {
        let gone = Foreign {
            lives: Some(false),
            ..Foreign::default()
        };
        let mut case = case(Some(PID), gone);
        let words = "killed process 4711 (python3) for want of memory at 2026-11-15T20:15:35Z";
        check(&case, (Cause::HostOom, Grade::Likely), words);
        case.facts.exit = Some(Exit::Code(137));
        check(&case, (Cause::HostOom, Grade::Likely), words);
        case.facts.exit = Some(Exit::Code(0));
        check(&case, (Cause::Success, Grade::Proven), "code 0");
        case.facts.exit = None;
        case.facts.pid = Some(PID + 1);
        check(
            &case,
            (Cause::Unknown, Grade::Unknown),
            "how it ended is not known",
        );
    }

    #[test]
    fn what_lives_has_not_ended() {
        let living = Foreign {
            lives: Some(true),
            ..Foreign::default()
        };
        let mut case = case(Some(PID + 1), living);
        case.flight = [0, 3_000]
            .map(|time_ms| tidegate_runs::FlightRecord {
                time_ms,
                resident: Some(5_000_000),
                processes: 2,
                cpu_ms: Some(time_ms / 2),
                ..tidegate_runs::FlightRecord::default()
            })
            .into();
        let words = "it is still running: it holds 5 MB in 2 processes; it takes 50% of a processor";
        check(&case, (Cause::Unknown, Grade::Unknown), words);
    }

    #[test]
    fn a_kill_near_the_end_of_a_log_is_likely_at_the_most() {
        let after = |seconds: i64| Foreign {
            log_ms: Some(BOOTED_MS + seconds * 1_000),
            ..Foreign::default()
        };
        let likely = (Cause::HostOom, Grade::Likely);
        let mut late = case(None, after(45));
        check(
            &late,
            (Cause::Unknown, Grade::Unknown),
            "the kernel of this machine killed process 4711 (python3)",
        );
        late.facts.exit = Some(Exit::Signal(libc::SIGKILL));
        check(&late, likely, "if it ran on this machine");
        check(&late, likely, "40 s from the last line of the log");
        late.facts.exit = Some(Exit::Code(1));
        check(&late, (Cause::Failed, Grade::Proven), "code 1");
    }
}
