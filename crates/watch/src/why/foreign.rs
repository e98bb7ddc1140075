//! A job that was not run under Tidegate: what is left of it, and what could not be seen.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use tidegate_memory::{Cgroup, Host, process_activity, process_tree};
use tidegate_runs::{StackSample, Stream};

use super::collect::log_line;
use super::facts::{Case, Counter, CounterKind, Facts, LogLine, Scope};
use super::log::{Said, explain_exit};
use super::verdict::{Evidence, Standing};
use crate::evidence::{KernelWatch, limits};
use crate::sampler::Sampler;
use crate::stacks;

/// The end of a log is looked at, this much of it.
const MOST_BYTES: u64 = 4 << 20;
const MOST_LINES: usize = 5_000;
/// A living process is watched for this long.
const WATCHED: Duration = Duration::from_secs(3);
const WATCHED_EVERY: Duration = Duration::from_millis(100);

/// A case of a log file and an exit status, in the words of whoever told it.
pub fn case_of_log(log: Option<&Path>, exit: Option<&str>) -> std::io::Result<(Case, Option<Said>)> {
    let mut case = Case::default();
    if let Some(path) = log {
        case.log = read_log(path)?;
    }
    let understood = exit.map(explain_exit);
    let mut told = None;
    match understood {
        Some(Some((exit, said))) => {
            case.facts.exit = Some(exit);
            told = said;
        }
        Some(None) => case.unseen.push(Evidence {
            standing: Standing::Unsupported,
            text: format!("{:?} is no exit status that is known", exit.unwrap_or_default()),
            source: "--exit".into(),
        }),
        None => case
            .unseen
            .push(unavailable("the exit status", "it was not given (--exit)")),
    }
    if log.is_none() {
        case.unseen
            .push(unavailable("the log", "it was not given (--log)"));
    }
    case.unseen.extend([
        unavailable("its memory over time", "it was not run under tidegate run"),
        unavailable("counters of OOM kills", "they were not read before it started"),
    ]);
    // The kernel's log of this machine may be about another one.
    case.facts.kernel.source = "/dev/kmsg".into();
    case.facts.kernel.unavailable =
        Some("not looked at: the job may have run elsewhere (--pid looks at it)".into());
    Ok((case, told))
}

/// A case of a process of this machine: watched for a moment while it lives, looked for in the kernel's log when not.
pub fn case_of_pid(host: &Host, pid: i32) -> Case {
    let mut case = Case {
        facts: Facts {
            pid: Some(pid),
            kernel: KernelWatch::whole().end(false),
            limits: limits(pid),
            ..Facts::default()
        },
        ..Case::default()
    };
    if process_activity(host, pid).is_none() {
        case.unseen.extend([
            unavailable("the process", "it is gone"),
            unavailable("its exit status", "only its parent gets it"),
            unavailable("its memory over time", "it was not run under tidegate run"),
        ]);
        return case;
    }
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
    watch(host, pid, &mut case);
    case
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
}

fn read_log(path: &Path) -> std::io::Result<Vec<LogLine>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(MOST_LINES);
    let numbered = (1..).zip(&lines).skip(skipped);
    Ok(numbered
        .map(|(number, line)| LogLine {
            stream: Stream::Out,
            ..log_line(number, line)
        })
        .collect())
}

fn unavailable(source: &str, why: &str) -> Evidence {
    Evidence {
        standing: Standing::Unavailable,
        text: why.into(),
        source: source.into(),
    }
}
