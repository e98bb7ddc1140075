//! Ends for want of memory, and whether it was that: 137 is no proof, counters and the kernel's own words are.

use tidegate_memory::{TightBound, format_bytes};

use super::{Finding, Reading, observed, of_event, of_said, rlimit};
use crate::ended::{Exit, signal_name};
use crate::why::cause::Cause;
use crate::why::facts::{Case, Counter, CounterKind, EndedChild, Scope, SignalReason};
use crate::why::log::{Constraint, KernelEvent, KernelKind, OomKill, Said};
use crate::why::script::read_sources;
use crate::why::verdict::{Evidence, Grade};

/// The exit code of a shell whose command died of SIGKILL.
pub(super) const KILLED_BELOW: i32 = 128 + libc::SIGKILL;
/// A process that does not handle a signal is gone within this time, its memory given back.
const AT_ONCE_MS: u64 = 5_000;
/// So much shared memory is more than a program has by itself.
const SHARED: u64 = 1 << 20;
/// Of the size of `/dev/shm`, this part of it in use is as good as all.
const FULL: f64 = 0.9;
/// Of a limit of the address space, this part is near it.
const NEAR: f64 = 0.7;

/// It stopped by itself, for others took the memory that it had been promised.
pub(super) fn taken_away(reading: &Reading) -> Option<Finding> {
    let taken = reading.case.facts.taken.as_ref()?;
    let TightBound {
        name,
        limit_before,
        limit,
        used_before,
        used,
    } = &taken.bound;
    let counted = |before: &u64, after: &u64, what: &str| {
        let before = match *before {
            u64::MAX => "none".to_string(),
            before => before.to_string(),
        };
        observed(
            format!("{before} before, {after} after"),
            format!("{what} of {name}"),
        )
    };
    Some(Finding {
        cause: Cause::MemoryTaken,
        grade: Grade::Proven,
        sentence: format!("it stopped because {}", taken.describe()),
        evidence: vec![
            counted(limit_before, limit, "limit"),
            counted(used_before, used, "bytes in use that could not be taken back"),
        ],
    })
}

/// We stopped it at the line.
pub(super) fn stopped_at_the_line(reading: &Reading) -> Option<Finding> {
    let over = reading.case.facts.over_line?;
    Some(Finding {
        cause: Cause::Line,
        grade: Grade::Proven,
        sentence: format!(
            "it was stopped at the line: its {} memory was {} of {}",
            over.figure(),
            format_bytes(over.used),
            format_bytes(over.limit)
        ),
        evidence: vec![observed(
            format!("{} > {}", format_bytes(over.used), format_bytes(over.limit)),
            format!("sum of {} memory over its processes", over.figure()),
        )],
    })
}

/// It died of what `--before-kill` sent for it to save.
pub(super) fn ended_by_the_warning(reading: &Reading) -> Option<Finding> {
    let facts = &reading.case.facts;
    let (signal, grade) = match facts.exit? {
        Exit::Signal(signal) => (signal, Grade::Proven),
        Exit::Code(code) if code > 128 => (code - 128, Grade::Likely),
        _ => return None,
    };
    let last = facts.signals.iter().rfind(|sent| sent.signal == signal)?;
    if last.why != SignalReason::NearLine {
        return None;
    }
    // What does not handle a signal dies of it at once; later somebody else may have sent it again.
    let at_once = facts
        .duration_ms
        .is_none_or(|end| end.saturating_sub(last.time_ms) <= AT_ONCE_MS);
    let name = signal_name(signal);
    let line = facts
        .limit
        .map_or(String::new(), |limit| format!(" of {}", format_bytes(limit)));
    let died = match facts.exit {
        Some(Exit::Code(code)) => format!("it ended with code {code} after {name}"),
        _ => format!("it died of {name}"),
    };
    Some(Finding {
        cause: Cause::Line,
        grade: if at_once { grade } else { Grade::Likely },
        sentence: format!(
            "{died}, which --before-kill sent near the line{line}: it has no handler for it that lets it go on{}",
            peak(reading)
        ),
        evidence: vec![
            observed(died, "wait status"),
            observed(
                format!("{name} after {:.1} s", last.time_ms as f64 / 1e3),
                "sent by tidegate run near the line",
            ),
        ],
    })
}

/// The kernel's OOM killer: by a counter that counts nobody else, or by its own words about one of these processes.
pub(super) fn killed_by_the_kernel(reading: &Reading) -> Option<Finding> {
    let facts = &reading.case.facts;
    // A number alone names nobody: another rule weighs it.
    if reading
        .case
        .foreign
        .is_some_and(|foreign| foreign.lives == Some(false))
    {
        return None;
    }
    let own = counters(reading, Scope::Own).next();
    let counted = own.and_then(Counter::rise).filter(|rise| *rise > 0);
    let kills: Vec<(&KernelEvent, &OomKill)> = kills(reading, own).collect();
    if counted.is_none() && kills.is_empty() {
        return None;
    }
    let status = match facts.exit {
        Some(Exit::Signal(signal)) => format!("it died of {}", signal_name(signal)),
        Some(Exit::Code(code)) => format!("it ended with code {code}"),
        Some(Exit::Unknown) | None => "how it ended itself is not known".into(),
    };
    let victim = victim(reading, &kills, counted);
    let mut evidence: Vec<Evidence> = own
        .into_iter()
        .filter(|_| counted.is_some())
        .map(Counter::evidence)
        .collect();
    evidence.extend(
        kills
            .iter()
            .map(|(event, _)| of_event(event, &facts.kernel.source)),
    );
    evidence.push(observed(status.clone(), "wait status"));
    if victim == Victim::Other {
        return Some(Finding {
            cause: Cause::ChildOom,
            grade: Grade::Proven,
            sentence: of_children(reading, &kills, counted, &status),
            evidence,
        });
    }
    let (cause, grade, whose) = match (kills.last().map(|(_, kill)| kill.constraint), facts.limit) {
        (Some(Constraint::Host | Constraint::Cpuset | Constraint::MemoryPolicy), _) => (
            Cause::HostOom,
            Grade::Proven,
            "the machine ran out of memory".to_owned(),
        ),
        (Some(Constraint::Cgroup) | None, Some(limit)) => (
            Cause::CgroupOom,
            Grade::Proven,
            format!("it came to the limit of its cgroup, {}", format_bytes(limit)),
        ),
        (Some(Constraint::Cgroup), None) => {
            let limit = kills.last().and_then(|(_, kill)| kill.limit);
            let limit = limit.map_or(String::new(), |limit| format!(" of {}", format_bytes(limit)));
            (
                Cause::CgroupOom,
                Grade::Proven,
                format!("a cgroup around it, of its container or its session, came to its limit{limit}"),
            )
        }
        // Whose memory ran out only the kernel's log tells.
        (Some(Constraint::Unknown) | None, _) => (
            Cause::HostOom,
            Grade::Likely,
            "memory ran out, of the machine or of a container around it".to_owned(),
        ),
    };
    Some(Finding {
        cause,
        grade: match victim {
            Victim::Itself => grade,
            Victim::LikelyItself | Victim::Other => grade.min(Grade::Likely),
        },
        sentence: format!("the kernel killed it because {whose}{}", peak(reading)),
        evidence,
    })
}

/// Which process the kernel killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    /// The first one, or the command that a shell around it waited for.
    Itself,
    /// The first one ended as if by it, and nobody names the victim.
    LikelyItself,
    /// Only processes below the first one.
    Other,
}

fn victim(reading: &Reading, kills: &[(&KernelEvent, &OomKill)], counted: Option<u64>) -> Victim {
    let facts = &reading.case.facts;
    let named = kills
        .iter()
        .any(|(event, _)| event.pid.is_some() && event.pid == facts.pid);
    match facts.exit {
        Some(Exit::Signal(libc::SIGKILL)) | None if named => Victim::Itself,
        Some(Exit::Signal(libc::SIGKILL)) => {
            // Numbers that the run never had may be of another namespace: whose they are they do not tell. Nor do the
            // lines tell of a kill that has none.
            let known = |(event, _): &(&KernelEvent, &OomKill)| {
                event.pid.is_some_and(|pid| reading.pids.contains(&pid)) || is_another(reading, event)
            };
            let all_told = counted.is_none_or(|counted| counted <= kills.len() as u64);
            match !kills.is_empty() && kills.iter().all(known) && all_told {
                true => Victim::Other,
                false => Victim::LikelyItself,
            }
        }
        // Of a shell around the command, 137 says as much as the signal itself.
        Some(Exit::Code(KILLED_BELOW)) if kills.is_empty() => Victim::LikelyItself,
        Some(Exit::Code(KILLED_BELOW)) => Victim::Itself,
        None if kills.is_empty() => Victim::LikelyItself,
        _ => Victim::Other,
    }
}

/// Whether the kernel calls the victim otherwise than the first process was called when it was last seen.
fn is_another(reading: &Reading, event: &KernelEvent) -> bool {
    let case = reading.case;
    let first = case
        .processes
        .iter()
        .rfind(|process| Some(process.pid) == case.facts.pid);
    let names = first
        .map(|process| process.name.as_str())
        .zip(event.name.as_deref());
    names.is_some_and(|(first, victim)| first != victim)
}

/// What to say of processes that were killed below one that was not.
fn of_children(
    reading: &Reading,
    kills: &[(&KernelEvent, &OomKill)],
    counted: Option<u64>,
    status: &str,
) -> String {
    let facts = &reading.case.facts;
    let who = match kills {
        [(event, _)] if counted.is_none_or(|counted| counted == 1) => format!(
            "the kernel killed its child {} ({})",
            event.pid.unwrap_or(0),
            event.name.as_deref().unwrap_or("?")
        ),
        _ => format!(
            "the kernel killed {} of its processes",
            counted.unwrap_or(kills.len() as u64)
        ),
    };
    let limit = facts.limit.map_or(String::new(), |limit| {
        format!(" at the limit of {}", format_bytes(limit))
    });
    let waited = facts
        .stalls
        .iter()
        .rev()
        .find(|stall| stall.after_child.is_some());
    let status = match facts.exit {
        Some(Exit::Signal(libc::SIGKILL)) => "it was itself killed later, by a SIGKILL that somebody sent",
        Some(Exit::Unknown) | None => status,
        _ => &format!("{status} itself"),
    };
    let then = match waited {
        Some(stall) => format!(
            "; after that nothing moved for {:.0} s, and {status}",
            stall.to_ms.saturating_sub(stall.from_ms) as f64 / 1e3
        ),
        None => format!("; {status}"),
    };
    format!("{who} for want of memory{limit}{then}{}", peak(reading))
}

/// systemd-oomd, earlyoom or another watcher, by its own words.
pub(super) fn killed_by_a_daemon(reading: &Reading) -> Option<Finding> {
    let killed = matches!(
        reading.case.facts.exit,
        Some(Exit::Signal(libc::SIGKILL | libc::SIGTERM) | Exit::Code(KILLED_BELOW | 143) | Exit::Unknown)
            | None
    );
    let said = reading
        .said
        .iter()
        .rfind(|said| said.cause == Cause::OomDaemon && !said.handled);
    let event = reading
        .kernel
        .iter()
        .rfind(|event| matches!(event.kind, KernelKind::OomDaemon { .. }));
    let named = |pid: Option<i32>| pid.is_some_and(|pid| reading.pids.contains(&pid));
    // A watcher may speak of others, too.
    let of_others = |pid: Option<i32>| pid.is_some() && !named(pid);
    let said = said.filter(|said| !of_others(said.pid));
    let event = event.filter(|event| !of_others(event.pid));
    let (evidence, sure, sentence) = match (said, event) {
        (Some(said), _) => (
            of_said(said),
            named(said.pid) || said.grade == Grade::Proven,
            said.sentence.clone(),
        ),
        (None, Some(event)) => (
            of_event(event, &reading.case.facts.kernel.source),
            named(event.pid),
            "a watcher killed it before the kernel had to, for want of memory".into(),
        ),
        (None, None) => return None,
    };
    killed.then(|| Finding {
        cause: Cause::OomDaemon,
        grade: if sure { Grade::Proven } else { Grade::Likely },
        sentence: sentence.trim_end_matches('.').to_owned(),
        evidence: vec![evidence],
    })
}

/// SIGKILL without an OOM kill, or where nobody counted.
pub(super) fn killed_otherwise(reading: &Reading) -> Option<Finding> {
    let facts = &reading.case.facts;
    // A shell tells the end of its command by its own code, and in words; so may anybody else.
    let (status, grade) = match facts.exit? {
        Exit::Signal(libc::SIGKILL) => ("SIGKILL", Grade::Proven),
        Exit::Code(KILLED_BELOW) if saw_a_child_killed(reading) => ("exit code 137", Grade::Proven),
        Exit::Code(KILLED_BELOW) if says_killed(reading) => ("exit code 137", Grade::Likely),
        _ => return None,
    };
    let all: Vec<&Counter> = facts
        .counters
        .iter()
        .filter(|counter| counter.kind == CounterKind::OomKills)
        .collect();
    let own = all.iter().find(|counter| counter.scope == Scope::Own);
    let risen = all.iter().any(|counter| counter.rise() > Some(0));
    let counted = all.iter().any(|counter| counter.rise().is_some());
    let lines = all.iter().map(|counter| counter.evidence());
    let evidence: Vec<Evidence> = std::iter::once(observed(status, "wait status"))
        .chain(lines)
        .collect();
    let none_of_its_own = own.is_some_and(|own| own.rise() == Some(0));
    Some(if none_of_its_own || (counted && !risen) {
        Finding {
            cause: Cause::Killed,
            grade,
            sentence: match grade {
                Grade::Proven => {
                    "it was killed by SIGKILL from outside, and not for memory: the kernel counted no OOM kill"
                }
                _ => {
                    "it says that it was killed, and not for memory: the kernel counted no OOM kill; no process of it \
                     was seen to die of SIGKILL"
                }
            }
            .into(),
            evidence,
        }
    } else if risen {
        Finding {
            cause: Cause::HostOom,
            grade: Grade::Likely,
            sentence: format!(
                "it died of SIGKILL while the kernel killed processes for want of memory, likely this one{}",
                peak(reading)
            ),
            evidence,
        }
    } else {
        Finding {
            cause: Cause::Unknown,
            grade: Grade::Unknown,
            sentence: match facts.exit {
                Some(Exit::Code(code)) => {
                    format!(
                        "it ended with code {code}, as after a SIGKILL; whether for memory nobody counted"
                    )
                }
                _ => "it died of SIGKILL; whether for memory nobody counted".into(),
            },
            evidence,
        }
    })
}

fn saw_a_child_killed(reading: &Reading) -> bool {
    let seen = |child: &EndedChild| child.exit == Some(Exit::Signal(libc::SIGKILL));
    reading.case.facts.ended_children.iter().any(seen)
}

/// Whether it, or whoever told its end, says so in words.
pub(super) fn says_killed(reading: &Reading) -> bool {
    let said = |said: &Said| said.cause == Cause::Killed && !said.handled;
    reading.said.iter().any(said)
}

/// An allocation that failed because the address space is limited, though there was memory.
pub(super) fn out_of_address_space(reading: &Reading) -> Option<Finding> {
    let case = reading.case;
    let said = reading
        .said
        .iter()
        .rfind(|said| matches!(said.cause, Cause::MemoryError | Cause::BadAlloc) && !said.handled);
    // The words of the C library for it are as good where they are the last.
    let last = || {
        let line = case.log.iter().rfind(|line| !line.text.trim().is_empty())?;
        let words = line.text.contains("Cannot allocate memory");
        words.then(|| observed(line.text.trim(), format!("log line {}", line.number)))
    };
    let words = said.map(of_said).or_else(last)?;
    if matches!(case.facts.exit, Some(Exit::Code(0))) {
        return None;
    }
    let asked = said.and_then(|said| said.asked);
    let limits = case.facts.limits.iter();
    let seen = limits
        .filter(|(name, _)| name == "RLIMIT_AS" || name == "RLIMIT_DATA")
        .filter_map(|(name, limit)| Some((name.as_str(), (*limit)?, "prlimit")))
        .min_by_key(|(_, limit, _)| *limit);
    // What ends within a moment has set its limit, and come to it, before it was first looked at.
    let told =
        || rlimit::of_address_space(&case.facts.command).map(|limit| ("RLIMIT_AS", limit, "its command"));
    let (name, limit, source) = seen.or_else(told)?;
    let largest = case
        .processes
        .iter()
        .filter_map(|process| process.virtual_size)
        .max();
    let needed = largest.unwrap_or(0).saturating_add(asked.unwrap_or(0));
    let near = needed as f64 >= NEAR * limit as f64;
    // An allocation whose size is not known failed where the machine had more than the limit allows.
    let available = case
        .flight
        .iter()
        .filter_map(|record| record.host_available)
        .max();
    let tighter = asked.is_none() && available.is_some_and(|available| limit < available);
    (near || tighter).then(|| Finding {
        cause: Cause::AddressSpace,
        grade: match said {
            Some(said) if near && seen.is_some() && !reading.doubted.contains(&said.number) => Grade::Proven,
            _ => Grade::Likely,
        },
        sentence: format!(
            "an allocation failed at the limit of its address space, {name} = {} (ulimit -v), not for want of memory",
            format_bytes(limit)
        ),
        evidence: vec![
            words,
            observed(format!("{name} {limit}"), source),
            observed(
                largest.map_or("unavailable".into(), |bytes| format!("{} at the most", format_bytes(bytes))),
                "its virtual size, /proc/PID/stat",
            ),
        ],
    })
}

/// A bus error where `/dev/shm` is full.
pub(super) fn out_of_shared_memory(reading: &Reading) -> Option<Finding> {
    let facts = &reading.case.facts;
    let bus = |exit: Option<Exit>| matches!(exit, Some(Exit::Signal(libc::SIGBUS) | Exit::Code(135)));
    let child = facts.ended_children.iter().any(|child| bus(child.exit));
    if !bus(facts.exit) && !child {
        return None;
    }
    let flight = || reading.case.flight.iter();
    let held = flight()
        .filter_map(|record| record.shared.max(record.cgroup_shared))
        .max();
    let used = flight().filter_map(|record| record.shared_memory).max();
    let size = facts.shared_memory_size;
    let full = used
        .zip(size)
        .is_some_and(|(used, size)| used as f64 >= FULL * size as f64);
    // A few milliseconds fill a small /dev/shm, and it is empty again when its last process is gone.
    let code = match held >= Some(SHARED) || full {
        true => None,
        false => Some(shares_memory(reading.case)?),
    };
    let size = size.map_or("unavailable".into(), format_bytes);
    let mut evidence = vec![
        observed("SIGBUS", "wait status"),
        observed(
            format!(
                "{} of shared memory in its processes",
                held.map_or("unavailable".into(), format_bytes)
            ),
            "flight recorder",
        ),
        observed(
            format!("{} of {size}", used.map_or("unavailable".into(), format_bytes)),
            "statvfs of its /dev/shm",
        ),
    ];
    evidence.extend(code);
    Some(Finding {
        cause: Cause::SharedMemory,
        grade: Grade::Likely,
        sentence: format!("a bus error while it used shared memory: /dev/shm, of {size}, was likely full"),
        evidence,
    })
}

/// A line of the program that makes shared memory, or leaves it to a library.
fn shares_memory(case: &Case) -> Option<Evidence> {
    const WORDS: [&str; 6] = [
        "SharedMemory(",
        "share_memory",
        "/dev/shm",
        "num_workers=",
        "RawArray(",
        "sharedctypes",
    ];
    read_sources(case).into_iter().find_map(|(file, text)| {
        let makes = |line: &str| {
            let code = line.trim_start();
            !code.starts_with('#') && WORDS.iter().any(|word| code.contains(word))
        };
        let (number, line) = (1..).zip(text.lines()).find(|(_, line)| makes(line))?;
        Some(observed(line.trim(), format!("{}:{number}", file.display())))
    })
}

/// Kills of processes of this run: by their numbers, or, where those are of another namespace, by their cgroup.
fn kills<'r>(
    reading: &'r Reading,
    own: Option<&'r Counter>,
) -> impl Iterator<Item = (&'r KernelEvent, &'r OomKill)> {
    let group = own.and_then(|own| own.source.split('/').find(|part| part.starts_with("tidegate-")));
    reading.kernel.iter().filter_map(move |event| {
        let KernelKind::OomKill(kill) = &event.kind else {
            return None;
        };
        let in_group = |path: &Option<String>| {
            group.is_some_and(|group| {
                path.as_ref()
                    .is_some_and(|path| path.split('/').any(|part| part == group))
            })
        };
        let ours = event.pid.is_some_and(|pid| reading.pids.contains(&pid)) || in_group(&kill.task_memcg);
        ours.then_some((event, kill))
    })
}

fn counters<'r>(reading: &'r Reading, scope: Scope) -> impl Iterator<Item = &'r Counter> {
    let counters = reading.case.facts.counters.iter();
    counters.filter(move |counter| counter.kind == CounterKind::OomKills && counter.scope == scope)
}

fn peak(reading: &Reading) -> String {
    let peak = reading.case.facts.peak;
    peak.map_or(String::new(), |peak| format!(" (peak {})", format_bytes(peak)))
}

#[cfg(test)]
mod tests;
