//! A run's memory over time as plain data, ready to be drawn: in buckets of time, process by process, with what happened.

use std::collections::HashMap;

use super::samples::{Point, Process, end_ms, limit, living, processes, total};
use crate::ended::Exit;
use crate::why::{Case, SignalReason};

/// Memory over time. All columns are of the same length, and each stands for the highest moment in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// What the drawing may take: columns in all, and rows of the plot itself.
    pub width: usize,
    pub height: usize,
    pub end_ms: u64,
    /// By proportional share where that is known, else by residence, else what the cgroup counts.
    pub total: Vec<u64>,
    /// What the total is made of, the largest first; the rest is the last one.
    pub layers: Vec<Layer>,
    pub limit: Option<u64>,
    /// In the order of time.
    pub moments: Vec<Moment>,
}

/// One process, or all that are not shown one by one.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// `python3 4242`
    pub label: String,
    /// One for each column.
    pub bytes: Vec<u64>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    pub time_ms: u64,
    pub kind: MomentKind,
    /// In a few words.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MomentKind {
    /// The kernel killed a process for want of memory.
    OomKill,
    /// The supervisor sent a signal.
    Signal,
    /// A process below the first one died.
    ChildDeath,
    /// The run ended badly.
    Death,
    /// The run ended well, or the recording did.
    End,
}

/// Processes that are shown one by one.
const MOST_LAYERS: usize = 4;
/// What is never more than this share of the whole is one of the others.
const LEAST_LAYER: f64 = 0.02;
/// Of children that died and signals that were sent, the last ones.
const MOST_MOMENTS: usize = 5;
/// The label of all that are not shown one by one.
pub(super) const OTHERS: &str = "others";
/// What the axis takes of the width.
pub(super) const AXIS_WIDTH: usize = 10;

/// The memory of a run in as many columns as fit beside the axis of a drawing.
pub fn timeline(case: &Case, width: usize, height: usize) -> Timeline {
    let n_columns = width.saturating_sub(AXIS_WIDTH).max(1);
    // The last look at the living: what is recorded after that is the way out.
    let alive = living(case).last().map(|record| record.time_ms);
    let end_ms = alive.unwrap_or_else(|| end_ms(case)).max(1);
    let highest = highest_of_columns(&total(case), n_columns, end_ms);
    let total = highest.iter().map(|point| point.bytes.round() as u64).collect();
    Timeline {
        width,
        height: height.max(2),
        end_ms,
        layers: layers(case, &highest),
        total,
        limit: limit(case),
        moments: moments(case, end_ms),
    }
}

/// The highest point of each column. A column in which nobody looked is as the one before: nothing moved there.
fn highest_of_columns(points: &[Point], n_columns: usize, end_ms: u64) -> Vec<Point> {
    let column = |point: &Point| {
        ((point.seconds * 1e3 / end_ms as f64 * n_columns as f64) as usize).min(n_columns - 1)
    };
    let mut columns: Vec<Option<Point>> = vec![None; n_columns];
    for point in points {
        let place = column(point);
        if columns[place].is_none_or(|highest| highest.bytes < point.bytes) {
            columns[place] = Some(*point);
        }
    }
    let mut before = Point {
        seconds: 0.0,
        bytes: 0.0,
    };
    let filled = columns.into_iter().map(|found| {
        before = found.unwrap_or(before);
        before
    });
    filled.collect()
}

fn layers(case: &Case, highest: &[Point]) -> Vec<Layer> {
    let all = processes(case);
    let peak = highest.iter().map(|point| point.bytes).fold(0.0, f64::max);
    let mut own: Vec<(String, Vec<f64>)> = all
        .iter()
        .map(|process| {
            let bytes = highest
                .iter()
                .map(|point| held_at(process, (point.seconds * 1e3).round() as u64));
            (label(process), bytes.collect())
        })
        .collect();
    // Shares are not read at the moment of each look: what is a little too much in all is scaled down.
    for (column, point) in highest.iter().enumerate() {
        let sum: f64 = own.iter().map(|(_, bytes)| bytes[column]).sum();
        if sum > point.bytes {
            own.iter_mut()
                .for_each(|(_, bytes)| bytes[column] *= point.bytes / sum);
        }
    }
    let most = |bytes: &[f64]| bytes.iter().copied().fold(0.0, f64::max);
    own.sort_by(|a, b| most(&b.1).total_cmp(&most(&a.1)));
    let shown = own
        .iter()
        .take_while(|(_, bytes)| most(bytes) >= peak * LEAST_LAYER)
        .count();
    own.truncate(shown.min(MOST_LAYERS));
    let shown = |column: usize| own.iter().map(|(_, bytes)| bytes[column]).sum::<f64>();
    let rest: Vec<f64> = highest
        .iter()
        .enumerate()
        .map(|(column, point)| point.bytes - shown(column))
        .collect();
    if own.is_empty() {
        own.push(("all processes".to_string(), rest));
    } else if most(&rest) >= peak * LEAST_LAYER {
        own.push((OTHERS.to_string(), rest));
    }
    let whole = |bytes: Vec<f64>| bytes.into_iter().map(|bytes| bytes.round() as u64).collect();
    own.into_iter()
        .map(|(label, bytes)| Layer {
            label,
            bytes: whole(bytes),
        })
        .collect()
}

fn label(process: &Process<'_>) -> String {
    let name = process.records.last().map_or("", |record| record.name.as_str());
    format!("{name} {}", process.pid)
}

/// What a process held, by its last look before that and by the share that the nearest closer look told.
fn held_at(process: &Process<'_>, time_ms: u64) -> f64 {
    let records = &process.records;
    let after = records.partition_point(|record| record.time_ms <= time_ms);
    let is_gone = process.end_ms.is_some_and(|end_ms| end_ms <= time_ms);
    let Some(resident) = records[..after].iter().rev().find_map(|record| record.resident) else {
        return 0.0;
    };
    if is_gone {
        return 0.0;
    }
    let shared = |record: &&&tidegate_runs::ProcessRecord| record.proportional.is_some();
    let before = records[..after].iter().rev().find(shared);
    let closer = before.or_else(|| records[after..].iter().find(shared));
    let share = closer.and_then(|record| Some((record.resident?, record.proportional?)));
    match share {
        Some((of, share)) if of > 0 => (resident as f64 - of as f64 + share as f64).max(0.0),
        _ => resident as f64,
    }
}

fn moments(case: &Case, end_ms: u64) -> Vec<Moment> {
    let (mut moments, named) = oom_kills(case);
    let signals = case.facts.signals.iter().map(|sent| Moment {
        time_ms: sent.time_ms,
        kind: MomentKind::Signal,
        text: format!("{} {}", signal_name(sent.signal), sent_for(sent.why)),
    });
    moments.extend(last_of(signals.collect()));
    let names: HashMap<i32, &str> = case
        .processes
        .iter()
        .map(|record| (record.pid, record.name.as_str()))
        .collect();
    let ended = case.facts.ended_children.iter();
    let children = ended
        .filter(|child| !named.contains(&child.pid))
        .filter_map(|child| {
            let how = match child.exit? {
                Exit::Code(0) => return None,
                exit => told(exit),
            };
            let name = names.get(&child.pid).copied().unwrap_or(&child.name);
            Some(Moment {
                time_ms: child.time_ms,
                kind: MomentKind::ChildDeath,
                text: format!("{name} {} ended: {how}", child.pid),
            })
        });
    moments.extend(last_of(children.collect()));
    // A death that was noticed after the end did not come after it.
    let is_death = |moment: &&mut Moment| moment.kind != MomentKind::Signal;
    for moment in moments.iter_mut().filter(is_death) {
        moment.time_ms = moment.time_ms.min(end_ms);
    }
    moments.push(end(case, end_ms));
    moments.sort_by_key(|moment| moment.time_ms);
    moments
}

fn last_of(mut moments: Vec<Moment>) -> Vec<Moment> {
    moments.drain(..moments.len().saturating_sub(MOST_MOMENTS));
    moments
}

/// Kills by the kernel, and the processes that they name: the largest that ended between two looks at the counter.
fn oom_kills(case: &Case) -> (Vec<Moment>, Vec<i32>) {
    /// An end is noticed so much later.
    const LATE_MS: u64 = 500;
    let mut before: Option<(u64, u64)> = None;
    let (mut moments, mut named) = (Vec::new(), Vec::new());
    for record in &case.flight {
        let Some(kills) = record.oom_kills else { continue };
        if let Some((from_ms, _)) = before.filter(|(_, before)| kills > *before) {
            let ended = case.facts.ended_children.iter().filter(|child| {
                (from_ms..=record.time_ms + LATE_MS).contains(&child.time_ms)
                    && matches!(
                        child.exit,
                        None | Some(Exit::Unknown | Exit::Signal(libc::SIGKILL))
                    )
                    && !named.contains(&child.pid)
            });
            let victim = ended.max_by_key(|child| child.resident);
            let who = victim.map_or("a process".to_string(), |child| {
                format!("{} {}", child.name, child.pid)
            });
            named.extend(victim.map(|child| child.pid));
            moments.push(Moment {
                time_ms: record.time_ms,
                kind: MomentKind::OomKill,
                text: format!("the kernel killed {who} for want of memory"),
            });
        }
        before = Some((record.time_ms, kills));
    }
    (last_of(moments), named)
}

fn end(case: &Case, end_ms: u64) -> Moment {
    let (kind, text) = match case.facts.exit {
        Some(Exit::Code(0)) => (MomentKind::End, "done".to_string()),
        Some(exit @ (Exit::Code(_) | Exit::Signal(_))) => (MomentKind::Death, told(exit)),
        Some(Exit::Unknown) | None => (MomentKind::End, "end of the recording".to_string()),
    };
    Moment {
        time_ms: end_ms,
        kind,
        text,
    }
}

fn told(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => signal_name(signal),
        Exit::Unknown => "not known how".to_string(),
    }
}

fn sent_for(why: SignalReason) -> &'static str {
    match why {
        SignalReason::PassedOn => "passed on",
        SignalReason::NearLine => "near the line",
        SignalReason::Line => "at the line",
        SignalReason::LeftOver => "to what was left",
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGTERM => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    name.to_string()
}
