//! What the memory of a run did, as columns of numbers: for the chart on its page, and for programs.

use std::path::Path;

use serde::Serialize;
use tidegate_memory::counted;
use tidegate_runs::{
    Error as RunsError, FlightRecord, Overview, Run, RunDir, Span, Status, Store, flight_overview,
    holders_overview, process_overview,
};

use crate::error::{Error, Result};

/// Processes that are told apart; the rest are one.
const PROCESSES: usize = 7;
/// Points of the line and the epochs beside other curves.
const FRAME: usize = 400;
/// What is looked through for the last moment of the living, and how much of it at the most.
const LAST_MS: u64 = 30_000;
const LAST_LOOKS: usize = 4_000;
/// Epochs that are marked: more would be a fence.
const EPOCHS: usize = 40;
/// All is looked at once a second, but not where that could hurt: the kernel may be about to kill.
const CLOSELY_MS: u64 = 1_000;
/// Times as far apart as usual, looks say something of what is between them.
const FURTHEST: u64 = 2;
/// The part of the memory in use by which it may leave a line and still be near it.
const EVEN: f64 = 0.05;

/// Whose memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// Of all processes together, and what it is made of.
    Total,
    Processes,
    /// Of the parts that the ledger granted it to.
    Holders,
}

impl View {
    pub(crate) const ALL: [View; 3] = [View::Total, View::Processes, View::Holders];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            View::Total => "total",
            View::Processes => "processes",
            View::Holders => "holders",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<View> {
        View::ALL.into_iter().find(|view| view.as_str() == text)
    }
}

/// Memory over time. Every series has a value, or none, for each of the times.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Graph {
    /// Wall clock at 0, in milliseconds since 1970.
    pub(crate) start_ms: Option<i64>,
    /// Of the whole recording, whatever part of it was asked for; of a run that is over, the last look that found it alive.
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
    /// The most that was counted, between looks too, whatever part was asked for; `null` is unavailable.
    pub(crate) peak_bytes: Option<u64>,
    /// Looks that were recorded in this part, and those of them that cannot be read any more.
    pub(crate) samples: u64,
    pub(crate) damaged: u64,
    pub(crate) time_ms: Vec<u64>,
    pub(crate) series: Vec<Series>,
    pub(crate) marks: Vec<Moment>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Bytes; `null` is unavailable. Parts are looked at less often than the total: between two looks that are not far apart
    /// they are on a line.
    pub(crate) values: Vec<Option<u64>>,
}

/// What a series is beside the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// The figure that counts.
    Total,
    /// The line.
    Limit,
    /// Together with the other parts, the total or most of it.
    Part,
    /// Worth knowing, and no part of it.
    Beside,
}

/// A moment to mark.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Moment {
    pub(crate) time_ms: u64,
    /// `epoch`, `death`.
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}

/// Reads the part of a recording between two moments, in about so many points.
pub(crate) fn graph(store: &Store, run: &Run, view: View, span: Span, points: usize) -> Result<Graph> {
    let dir = store.run_dir(&run.id);
    let asked = Asked {
        span,
        points,
        is_over: run.status.is_over(),
    };
    let mut graph = match view {
        View::Total => total(&dir.flight(), asked)?,
        View::Processes => processes(&dir, asked)?,
        View::Holders => holders(&dir, asked)?,
    };
    graph.peak_bytes = run.peak_bytes;
    if run.model.as_deref() == Some("boost") {
        for mark in graph.marks.iter_mut().filter(|mark| mark.kind == "epoch") {
            mark.text = mark.text.replace("epoch", "tree");
        }
    }
    if run.status == Status::Failed && graph.last_ms > 0 {
        graph.marks.push(Moment {
            time_ms: graph.last_ms,
            kind: "death",
            text: "it ended here".into(),
        });
    }
    Ok(graph)
}

/// What is to be drawn.
#[derive(Clone, Copy)]
struct Asked {
    span: Span,
    points: usize,
    is_over: bool,
}

/// There is no recording before the worker runs, nor of what an older version did not look at.
fn read<T>(path: &Path, read: impl FnOnce(&Path) -> tidegate_runs::Result<T>) -> Result<Option<T>> {
    if !path.exists() {
        return Ok(None);
    }
    match read(path) {
        Ok(found) => Ok(Some(found)),
        Err(error @ (RunsError::NotAFlight { .. } | RunsError::FlightVersion { .. })) => {
            Err(Error::NotFound {
                what: error.to_string(),
                hint: error
                    .hint()
                    .unwrap_or_else(|| "nothing can be drawn of it".into()),
            })
        }
        Err(error) => Err(error.into()),
    }
}

fn total(path: &Path, asked: Asked) -> Result<Graph> {
    let read_part = |span, points| read(path, |path| flight_overview(path, span, points));
    let Some(mut seen) = read_part(asked.span, asked.points)? else {
        return Ok(Graph::default());
    };
    if let (true, Some(last)) = (asked.is_over, seen.last_ms) {
        let end = Span {
            from_ms: Some(last.saturating_sub(LAST_MS)),
            to_ms: None,
        };
        if let Some(end) = read_part(end, LAST_LOOKS)? {
            leave_out_the_dead(&mut seen, asked.span, &end.records);
        }
    }
    let records = &seen.records;
    let has = |field: Field| records.iter().any(|record| field(record).is_some());
    // A part that nothing was ever in is none.
    let worth = |role: Role, field: Field| match role {
        Role::Part | Role::Beside => records.iter().any(|record| field(record) > Some(0)),
        Role::Total | Role::Limit => has(field),
    };
    let series: &[(&str, Role, Field)] = match has(|record| record.cgroup_usage) {
        true => &GROUP,
        false => &TREE,
    };
    let series = series
        .iter()
        .chain(&BESIDE)
        .filter(|(_, role, field)| worth(*role, *field));
    Ok(Graph {
        start_ms: seen.header.as_ref().map(|header| header.start_ms),
        first_ms: seen.first_ms.unwrap_or(0),
        last_ms: seen.last_ms.unwrap_or(0),
        peak_bytes: None,
        samples: seen.n_records,
        damaged: seen.damaged,
        time_ms: records.iter().map(|record| record.time_ms).collect(),
        series: series
            .map(|(name, role, field)| Series {
                name: (*name).into(),
                role: *role,
                values: match role {
                    Role::Total | Role::Limit => records.iter().map(field).collect(),
                    Role::Part | Role::Beside => between_looks(records, *field),
                },
            })
            .collect(),
        marks: epochs(records),
    })
}

/// When its processes are gone, the supervisor looks once more, at counters that outlive them. What is in use by then is what
/// was left of the run, not what it ended with: a recording ends with the last look that found a process with memory. When
/// exactly it died, between that look and the next, nobody has seen.
fn leave_out_the_dead(seen: &mut Overview, span: Span, end: &[FlightRecord]) {
    let is_alive = |record: &FlightRecord| record.resident.is_some();
    // Of a recording that shows no life in its end there is nothing to say.
    let Some(at) = end.iter().rposition(is_alive) else {
        return;
    };
    let (last, dead) = (&end[at], &end[at + 1..]);
    let is_asked = |record: &FlightRecord| {
        span.from_ms.is_none_or(|from| record.time_ms >= from)
            && span.to_ms.is_none_or(|to| record.time_ms <= to)
    };
    let n_dead = dead.iter().filter(|record| is_asked(record)).count() as u64;
    if n_dead > 0 {
        seen.n_records = seen.n_records.saturating_sub(n_dead);
        seen.records
            .retain(|record| record.time_ms <= last.time_ms && !dead.contains(record));
        if is_asked(last) && seen.records.last() != Some(last) {
            seen.records.push(*last);
        }
    }
    seen.last_ms = Some(last.time_ms);
}

/// Each process by itself, with the line that is for all of them together.
fn processes(dir: &RunDir, asked: Asked) -> Result<Graph> {
    let Some(seen) = read(&dir.processes(), |path| {
        process_overview(path, asked.span, asked.points, PROCESSES)
    })?
    else {
        return Ok(Graph::default());
    };
    let mut series: Vec<Series> = seen
        .processes
        .into_iter()
        .map(|process| Series {
            name: format!("{} {}", process.name, process.pid),
            role: Role::Part,
            values: process.points,
        })
        .collect();
    if let Some(others) = seen.others {
        series.push(Series {
            name: counted(seen.n_processes.saturating_sub(series.len() as u64), "other"),
            role: Role::Part,
            values: others.points,
        });
    }
    with_frame(dir, asked, seen.times_ms, series)
}

/// What the ledger had granted to each part.
fn holders(dir: &RunDir, asked: Asked) -> Result<Graph> {
    let Some(seen) = read(&dir.holders(), |path| {
        holders_overview(path, asked.span, asked.points)
    })?
    else {
        return Ok(Graph::default());
    };
    let part = |(name, values): (String, Vec<u64>)| Series {
        name,
        role: Role::Part,
        values: values.into_iter().map(Some).collect(),
    };
    let mut series: Vec<Series> = seen.holders.into_iter().map(part).collect();
    let most = |series: &Series| series.values.iter().flatten().max().copied();
    series.retain(|series| most(series) > Some(0));
    with_frame(dir, asked, seen.times_ms, series)
}

/// The line and the epochs, as the recording of all together has them.
fn with_frame(dir: &RunDir, asked: Asked, time_ms: Vec<u64>, mut series: Vec<Series>) -> Result<Graph> {
    let frame = Asked {
        points: FRAME,
        ..asked
    };
    let frame = total(&dir.flight(), frame)?;
    let line = frame.series.iter().find(|series| series.role == Role::Limit);
    if let (Some(line), false) = (line, series.is_empty()) {
        let at = |ms: &u64| {
            let next = frame.time_ms.partition_point(|time| time <= ms);
            line.values.get(next.saturating_sub(1)).copied().flatten()
        };
        series.push(Series {
            name: line.name.clone(),
            role: Role::Limit,
            values: time_ms.iter().map(at).collect(),
        });
    }
    Ok(Graph {
        samples: time_ms.len() as u64,
        time_ms,
        series,
        ..frame
    })
}

/// Not all is looked at every time: what lies between two looks that are not far apart is on the line from one to the
/// other, if the run went on evenly meanwhile. Elsewhere, and after the last, nobody knows.
fn between_looks(records: &[FlightRecord], field: Field) -> Vec<Option<u64>> {
    let mut values: Vec<Option<u64>> = records.iter().map(field).collect();
    let looks: Vec<(usize, u64)> = values
        .iter()
        .enumerate()
        .filter_map(|(at, value)| Some((at, (*value)?)))
        .collect();
    let apart = |pair: &[(usize, u64)]| {
        records[pair[1].0]
            .time_ms
            .saturating_sub(records[pair[0].0].time_ms)
    };
    let furthest = FURTHEST * usual(looks.windows(2).map(apart).collect());
    for pair in looks.windows(2) {
        let ((from, was), (to, is)) = (pair[0], pair[1]);
        if apart(pair) > furthest || !is_even(&records[from..=to]) {
            continue;
        }
        let line = Line::between((&records[from], was), (&records[to], is));
        for inner in from + 1..to {
            values[inner] = Some(line.at(&records[inner]) as u64);
        }
    }
    values
}

/// How far looks are apart, of the nearer half of them: a moment at least, for that is how often all is looked at.
fn usual(mut apart: Vec<u64>) -> u64 {
    apart.sort_unstable();
    match apart.len() {
        0 | 1 => CLOSELY_MS,
        n => apart[(n - 1) / 2].max(CLOSELY_MS),
    }
}

/// Whether the memory in use, which is looked at every time, was near the line from the first look to the last: what leaves
/// it takes its parts along.
fn is_even(records: &[FlightRecord]) -> bool {
    let counted = |record: &FlightRecord| record.cgroup_usage.or(record.resident);
    let (Some(first), Some(last)) = (records.first(), records.last()) else {
        return true;
    };
    let (Some(was), Some(is)) = (counted(first), counted(last)) else {
        return records.len() == 2;
    };
    let line = Line::between((first, was), (last, is));
    records.iter().all(|record| {
        let expected = line.at(record);
        counted(record)
            .is_none_or(|bytes| (bytes as f64 - expected).abs() <= EVEN * expected.max(bytes as f64))
    })
}

/// What goes evenly from one look to another.
struct Line {
    from_ms: f64,
    from: f64,
    each_ms: f64,
}

impl Line {
    fn between(first: (&FlightRecord, u64), last: (&FlightRecord, u64)) -> Line {
        let took = last.0.time_ms.saturating_sub(first.0.time_ms).max(1);
        Line {
            from_ms: first.0.time_ms as f64,
            from: first.1 as f64,
            each_ms: (last.1 as f64 - first.1 as f64) / took as f64,
        }
    }

    fn at(&self, record: &FlightRecord) -> f64 {
        self.from + (record.time_ms as f64 - self.from_ms) * self.each_ms
    }
}

type Field = fn(&FlightRecord) -> Option<u64>;

/// Where a cgroup of its own is counted by the kernel, its line is about that.
const GROUP: [(&str, Role, Field); 4] = [
    ("in use", Role::Total, |record| record.cgroup_usage),
    ("anonymous", Role::Part, |record| record.cgroup_anonymous),
    ("files", Role::Part, |record| {
        // Shared memory counts as file, and is told apart.
        let shared = record.cgroup_shared.unwrap_or(0);
        record.cgroup_file.map(|file| file.saturating_sub(shared))
    }),
    ("shared", Role::Part, |record| record.cgroup_shared),
];

/// Elsewhere, what all processes have, each page counted once.
const TREE: [(&str, Role, Field); 4] = [
    ("in use", Role::Total, FlightRecord::in_use),
    ("anonymous", Role::Part, |record| record.anonymous),
    ("files", Role::Part, |record| record.file),
    ("shared", Role::Part, |record| record.shared),
];

const BESIDE: [(&str, Role, Field); 4] = [
    ("the line", Role::Limit, |record| record.budget),
    ("resident", Role::Beside, |record| record.resident),
    ("ledger", Role::Beside, |record| record.ledger_used),
    ("swap", Role::Beside, |record| {
        record.cgroup_swap.or(record.swap).filter(|bytes| *bytes > 0)
    }),
];

/// Where each epoch begins.
fn epochs(records: &[FlightRecord]) -> Vec<Moment> {
    let begins = records.windows(2).filter(|pair| pair[1].epoch > pair[0].epoch);
    let marks: Vec<Moment> = begins
        .map(|pair| Moment {
            time_ms: pair[1].time_ms,
            kind: "epoch",
            text: format!("epoch {}", pair[1].epoch),
        })
        .collect();
    let every = marks.len().div_ceil(EPOCHS).max(1);
    marks.into_iter().step_by(every).collect()
}
