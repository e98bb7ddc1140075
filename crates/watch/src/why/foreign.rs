//! A job that was not run under Tidegate: what is left of it, and what could not be seen.

mod clock;
mod tail;

use std::path::Path;
use std::time::{Duration, Instant};

use tidegate_memory::{Cgroup, Host, process_activity, process_tree};
use tidegate_runs::{StackSample, Stream};

pub(super) use self::clock::wall_ms;
use self::clock::{booted_ms, ticks_ms};
use self::tail::tail_of;
use super::collect::log_line;
use super::facts::{Case, Counter, CounterKind, Foreign, LogLine, Scope, Stall};
use super::log::{KernelKind, Said, explain_exit, kernel_events};
use super::verdict::{Evidence, Standing};
use crate::ended::Exit;
use crate::evidence::{KernelWatch, limits, waits_of};
use crate::sampler::Sampler;
use crate::stacks;

const MOST_LINES: usize = 5_000;
/// A living process is watched for this long.
const WATCHED: Duration = Duration::from_secs(3);
const WATCHED_EVERY: Duration = Duration::from_millis(100);
/// A kill so long before or after the last line of a log may be its end.
const NEAR_MS: i64 = 60_000;
/// Clocks of the kernel differ by so much.
const CLOCKS_MS: i64 = 2_000;

/// What is known of a job that was not run under Tidegate: any of these.
#[derive(Debug, Clone, Copy, Default)]
pub struct ForeignJob<'a> {
    /// A process of this machine, whether it lives or not.
    pub pid: Option<i32>,
    /// Its log; `-` is the standard input.
    pub log: Option<&'a Path>,
    /// How it ended, in the words of whoever tells it.
    pub exit: Option<&'a str>,
}

/// A case of it, and what the exit status says by itself.
pub fn case_of_job(host: &Host, job: &ForeignJob<'_>) -> std::io::Result<(Case, Option<Said>)> {
    let mut case = Case::default();
    let mut foreign = Foreign {
        booted_ms: booted_ms(),
        ..Foreign::default()
    };
    if let Some(path) = job.log {
        let log = tail_of(path)?;
        case.log = lines_of(&log.bytes);
        foreign.log_ms = log.changed_ms;
    }
    let mut told = None;
    match job.exit.map(|text| (text, explain_exit(text))) {
        Some((_, Some((exit, said)))) => {
            case.facts.exit = Some(exit);
            told = said;
        }
        Some((text, None)) => case.unseen.push(Evidence {
            standing: Standing::Unsupported,
            text: format!("{text:?} is no exit status that is known"),
            source: "--exit".into(),
        }),
        None if job.pid.is_none() => case
            .unseen
            .push(unavailable("the exit status", "it was not given (--exit)")),
        None => {}
    }
    if job.log.is_none() {
        case.unseen
            .push(unavailable("the log", "it was not given (--log)"));
    }
    match job.pid {
        Some(pid) => look_for(host, pid, &mut case, &mut foreign),
        None => {
            case.unseen.extend([
                unavailable("its memory over time", "it was not run under tidegate run"),
                unavailable("counters of OOM kills", "they were not read before it started"),
            ]);
            look_near_the_log(&mut case, &foreign);
        }
    }
    case.foreign = Some(foreign);
    Ok((case, told))
}

/// The process itself, watched for a moment while it lives, and what the kernel's log has of its number.
fn look_for(host: &Host, pid: i32, case: &mut Case, foreign: &mut Foreign) {
    case.facts.pid = Some(pid);
    case.facts.kernel = KernelWatch::whole().end(false);
    let activity = process_activity(host, pid);
    let Some(activity) = activity else {
        foreign.lives = Some(false);
        case.unseen.push(unavailable("the process", "it is gone"));
        if case.facts.exit.is_none() {
            case.unseen
                .push(unavailable("its exit status", "only its parent gets it"));
        }
        case.unseen.push(unavailable(
            "its memory over time",
            "it was not run under tidegate run",
        ));
        return;
    };
    // What the log has of the same number before that was another process.
    if let Some(booted_ms) = foreign.booted_ms {
        let started_ms = booted_ms + ticks_ms(activity.start_time) - CLOCKS_MS;
        forget_before(started_ms, booted_ms, &mut case.facts.kernel.lines);
    }
    if matches!(activity.state, 'Z' | 'X') {
        case.facts.exit = activity.wait_status.map(exit_of).or(case.facts.exit);
        case.unseen.push(unavailable(
            "the process",
            "it is dead, and nobody has waited for it",
        ));
        return;
    }
    foreign.lives = Some(true);
    case.facts.limits = limits(pid);
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = command.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    case.facts.command = words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    case.facts.folder = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    if let Ok(cgroup) = Cgroup::of(host, Some(pid)) {
        case.facts.limit = cgroup.limit().bytes();
        case.facts.containment = format!("cgroup {}", cgroup.version);
        let kills = cgroup.events().oom_kill;
        case.facts.counters.push(Counter {
            kind: CounterKind::OomKills,
            scope: Scope::Above,
            source: format!("{} oom_kill", cgroup.path.display()),
            before: None,
            after: kills,
        });
    }
    case.unseen.push(unavailable(
        "what it did before",
        "it was not run under tidegate run",
    ));
    watch(host, pid, case);
}

/// Leaves out what was written earlier. Where a line has no time, it may be of any.
fn forget_before(started_ms: i64, booted_ms: i64, lines: &mut Vec<String>) {
    lines.retain(|line| wall_ms(line, Some(booted_ms)).is_none_or(|time_ms| time_ms >= started_ms));
}

/// Kills for want of memory on this machine about when the log ends. The job may have run elsewhere: no more of the
/// kernel's log is of any interest.
fn look_near_the_log(case: &mut Case, foreign: &Foreign) {
    case.facts.kernel.source = "/dev/kmsg".into();
    let (Some(log_ms), Some(_)) = (foreign.log_ms, foreign.booted_ms) else {
        case.facts.kernel.unavailable =
            Some("not looked at: the job may have run elsewhere (--pid looks at it)".into());
        return;
    };
    let mut kernel = KernelWatch::whole().end(false);
    let told = [
        "oom-kill",
        "Out of memory",
        "out of memory",
        "Killed process",
        "memory: usage",
        "Task in ",
    ];
    kernel.lines.retain(|line| {
        let near = wall_ms(line, foreign.booted_ms)
            .is_some_and(|time_ms| time_ms.abs_diff(log_ms) <= NEAR_MS as u64);
        near && told.iter().any(|words| line.contains(words))
    });
    let killed = |kind: &KernelKind| matches!(kind, KernelKind::OomKill(_));
    if kernel.unavailable.is_none() && !kernel_events(&kernel).iter().any(|event| killed(&event.kind)) {
        kernel.lines.clear();
        kernel.unavailable = Some(
            "of this machine, it has no OOM kill within a minute of the last change of the log; the job may have run \
             elsewhere"
                .into(),
        );
    }
    case.facts.kernel = kernel;
}

/// Looks at a living process for a moment.
fn watch(host: &Host, pid: i32, case: &mut Case) {
    let mut sampler = Sampler::new(host, pid, case.facts.limit);
    let mut frames = stacks::Numbers::default();
    let end = Instant::now() + WATCHED;
    while Instant::now() < end {
        let look = sampler.sample(None);
        case.flight.push(look.record);
        case.processes.extend(look.processes);
        for pid in process_tree(host, pid) {
            if let Some((held, threads)) = stacks::look_once(host, pid) {
                let sample = StackSample {
                    time_ms: sampler.time_ms(),
                    pid,
                    start_time: 0,
                    held: Some(held),
                    threads: threads.iter().map(|thread| frames.number(thread)).collect(),
                };
                case.stacks.samples.push(sample);
            }
        }
        std::thread::sleep(WATCHED_EVERY);
    }
    case.stacks.frames = frames.into_frames();
    let ends = case.flight.first().zip(case.flight.last());
    let still = ends.filter(|(first, last)| {
        let moved =
            |record: &tidegate_runs::FlightRecord| (record.cpu_ms, record.read_bytes, record.written_bytes);
        first.cpu_ms.is_some() && moved(first) == moved(last)
    });
    if let Some((first, last)) = still {
        case.facts.stalls.push(Stall {
            from_ms: first.time_ms,
            to_ms: last.time_ms,
            after_child: None,
            waits: waits_of(pid, &process_tree(host, pid)),
        });
    }
}

/// What `wait` would have told.
fn exit_of(status: i32) -> Exit {
    match libc::WIFSIGNALED(status) {
        true => Exit::Signal(libc::WTERMSIG(status)),
        false => Exit::Code(libc::WEXITSTATUS(status)),
    }
}

fn lines_of(bytes: &[u8]) -> Vec<LogLine> {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(MOST_LINES);
    let numbered = (1..).zip(&lines).skip(skipped);
    numbered
        .map(|(number, line)| LogLine {
            stream: Stream::Out,
            ..log_line(number, line)
        })
        .collect()
}

fn unavailable(source: &str, why: &str) -> Evidence {
    Evidence {
        standing: Standing::Unavailable,
        text: why.into(),
        source: source.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_another_process_had_before_is_not_it() {
        let line = |seconds: i64| {
            format!(
                "3,1,{},-;Out of memory: Killed process 7 (a)",
                seconds * 1_000_000
            )
        };
        let mut lines = vec![line(5), line(50), line(500)];
        forget_before(1_050_000, 1_000_000, &mut lines);
        assert_eq!(lines, [line(50), line(500)]);
    }
}
