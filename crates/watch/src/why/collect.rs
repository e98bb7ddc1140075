//! Collecting what is left of a run out of the run store.

use tidegate_runs::{Run, Store, Stream, read_flight, read_records, read_stacks, tail};

use super::facts::{Case, Counter, CounterKind, Facts, LogLine, Scope};
use super::verdict::{Evidence, Standing};
use crate::ended::Exit;

/// Lines of the log that are looked at.
const LINES: usize = 2_000;

/// All that the store has of a run. What is missing or damaged is named, and is no error: a verdict is made of what is
/// left.
pub fn collect(store: &Store, run: &Run) -> Case {
    let dir = store.run_dir(&run.id);
    let mut case = Case {
        run: Some(run.label().into()),
        ..Case::default()
    };
    let facts = std::fs::read(dir.facts()).map_err(|error| error.to_string());
    let facts =
        facts.and_then(|text| serde_json::from_slice::<Facts>(&text).map_err(|error| error.to_string()));
    case.facts = match facts {
        Ok(facts) => facts,
        Err(why) => {
            case.unseen.push(missing(&dir.facts(), &why));
            Facts {
                command: run.command.clone(),
                limit: run.budget_bytes,
                ..Facts::default()
            }
        }
    };
    // What the supervisor could not write any more, the store may know.
    let facts = &mut case.facts;
    facts.exit = facts.exit.or(match (run.exit_code, run.signal) {
        (Some(code), _) => Some(Exit::Code(code)),
        (_, Some(signal)) => Some(Exit::Signal(signal)),
        _ => None,
    });
    if facts.exit.is_none() {
        facts.lost = run.error.clone();
        // A cgroup outlives the supervisor: whoever closed the run has read it.
        facts.counters.extend(run.oom_kills.map(|kills| Counter {
            kind: CounterKind::OomKills,
            scope: Scope::Own,
            source: "oom_kill of its cgroup, read when the run was closed".into(),
            before: Some(0),
            after: Some(kills),
        }));
    }
    facts.peak = facts.peak.or(run.peak_bytes);
    facts.peak_source = facts.peak_source.take().or_else(|| run.peak_source.clone());
    facts.duration_ms = facts.duration_ms.or_else(|| run.duration_ms(run.ended_ms?));
    match read_flight(&dir.flight()) {
        Ok(flight) => {
            case.start_ms = flight.header.map(|header| header.start_ms);
            case.flight = flight.records;
        }
        Err(error) => case.unseen.push(missing(&dir.flight(), &error)),
    }
    // Older runs have none of these, and a run without a device has no devices.
    case.processes = read_records(&dir.processes()).map_or_else(|_| Vec::new(), |found| found.records);
    case.devices = read_records(&dir.devices()).map_or_else(|_| Vec::new(), |found| found.records);
    case.stacks = read_stacks(&dir.stacks()).unwrap_or_default();
    match tail(&dir.log(), LINES) {
        Ok(lines) => {
            case.log = (1..)
                .zip(&lines)
                .map(|(number, line)| log_line(number, line))
                .collect()
        }
        Err(error) => case.unseen.push(missing(&dir.log(), &error)),
    }
    case
}

fn missing(path: &std::path::Path, why: &dyn std::fmt::Display) -> Evidence {
    Evidence {
        standing: Standing::Unavailable,
        text: why.to_string(),
        source: path.display().to_string(),
    }
}

/// `2026-11-15T20:15:30.123Z out epoch 1`; a line that is not like this is all text.
pub fn log_line(number: u64, line: &str) -> LogLine {
    let stamped = || {
        let (time, rest) = line.split_once(' ')?;
        let (stream, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let stream = match stream {
            "out" => Stream::Out,
            "err" => Stream::Err,
            _ => return None,
        };
        Some((tidegate_runs::parse_timestamp(time)?, stream, text))
    };
    match stamped() {
        Some((time_ms, stream, text)) => LogLine {
            number,
            time_ms: Some(time_ms),
            stream,
            text: text.into(),
        },
        None => LogLine {
            number,
            time_ms: None,
            stream: Stream::Out,
            text: line.into(),
        },
    }
}
