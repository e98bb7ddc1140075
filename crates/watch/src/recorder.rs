//! What of a run is kept on disk while it runs: its log, and its memory at a rate that stays small.

use std::path::PathBuf;

use tidegate_runs::{
    FlightHeader, FlightRecord, FlightWriter, HolderWriter, LogWriter, ProcessRecord, RecordWriter, Stream,
    now_ms, write_beside,
};

use crate::job::RecordedRun;
use crate::why::Facts;

/// Every sample of the first minute is kept; after it, one a second and those that moved. A day is then
/// about 12 MB instead of 124.
const DENSE_MS: u64 = 60_000;
const SPARSE_MS: u64 = 1_000;
/// A move is 1% of the line, or of the last figure without one.
const MOVE: u64 = 100;

/// The files of one run. Without a run, everything is a no-op.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    flight: Option<FlightWriter>,
    processes: Option<RecordWriter<ProcessRecord>>,
    log: Option<LogWriter>,
    holders: Holders,
    facts: Option<PathBuf>,
    last: Option<FlightRecord>,
}

/// Who holds the budget, of a job that has such an account.
#[derive(Debug, Default)]
enum Holders {
    /// Not to be recorded.
    #[default]
    Unrecorded,
    /// Not yet heard of.
    At(PathBuf),
    Writing(HolderWriter),
}

impl Recorder {
    /// Opens what can be opened; what cannot is said and does without. A record is no reason to refuse
    /// to train.
    pub(crate) fn open(run: Option<RecordedRun<'_>>, mut trouble: impl FnMut(String)) -> Recorder {
        let Some(run) = run else {
            return Recorder::default();
        };
        let dir = run.store.run_dir(run.id);
        let header = FlightHeader {
            run_id: run.id.to_string(),
            start_ms: now_ms(),
        };
        let mut told = |error: tidegate_runs::Error| trouble(describe(&error));
        Recorder {
            flight: FlightWriter::create(&dir.flight(), &header)
                .map_err(&mut told)
                .ok(),
            processes: RecordWriter::create(&dir.processes(), &header)
                .map_err(&mut told)
                .ok(),
            log: LogWriter::open(&dir.log()).map_err(&mut told).ok(),
            holders: Holders::At(dir.holders()),
            facts: Some(dir.facts()),
            last: None,
        }
    }

    /// Keeps a sample if it is due or has something to say.
    pub(crate) fn sample(&mut self, record: &FlightRecord, trouble: impl FnMut(String)) {
        let due = self.last.is_none_or(|last| {
            record.time_ms < DENSE_MS
                || record.time_ms >= last.time_ms + SPARSE_MS
                || record.oom_kills != last.oom_kills
                || moved(last.resident, record.resident, record.budget)
                || moved(last.cgroup_usage, record.cgroup_usage, record.budget)
        });
        if due {
            self.keep(record, trouble);
        }
    }

    pub(crate) fn keep(&mut self, record: &FlightRecord, mut trouble: impl FnMut(String)) {
        self.last = Some(*record);
        if let Some(Err(error)) = self.flight.as_mut().map(|flight| flight.append(record)) {
            trouble(describe(&error));
        }
    }

    pub(crate) fn processes(&mut self, records: &[ProcessRecord], mut trouble: impl FnMut(String)) {
        let Some(writer) = &mut self.processes else { return };
        for record in records {
            if let Err(error) = writer.append(record) {
                trouble(describe(&error));
            }
        }
    }

    /// What every holder holds at this time of the recording.
    pub(crate) fn holders(
        &mut self,
        time_ms: u64,
        holders: &[(String, u64)],
        budget: u64,
        mut trouble: impl FnMut(String),
    ) {
        if let Holders::At(path) = &self.holders {
            self.holders = match HolderWriter::create(path) {
                Ok(writer) => Holders::Writing(writer),
                Err(error) => {
                    trouble(describe(&error));
                    Holders::Unrecorded
                }
            };
        }
        if let Holders::Writing(writer) = &mut self.holders
            && let Err(error) = writer.append(time_ms, holders, budget)
        {
            trouble(describe(&error));
        }
    }

    /// Writes down what was seen, beside what stood there, and in its place once it is whole.
    pub(crate) fn facts(&self, facts: &Facts, trouble: impl FnMut(String)) {
        let Some(path) = &self.facts else { return };
        // Plain data serializes.
        let Ok(text) = serde_json::to_vec_pretty(facts) else {
            return;
        };
        let _ = write_beside(path, &text)
            .map_err(|error| describe(&error))
            .map_err(trouble);
    }

    /// Writes the lines that have come.
    pub(crate) fn flush(&mut self, mut trouble: impl FnMut(String)) {
        if let Some(Err(error)) = self.log.as_mut().map(LogWriter::flush) {
            trouble(describe(&error));
        }
    }

    /// The job is over: what was held back is written.
    pub(crate) fn end(&mut self, mut trouble: impl FnMut(String)) {
        self.flush(&mut trouble);
        if let Holders::Writing(writer) = &mut self.holders
            && let Err(error) = writer.end()
        {
            trouble(describe(&error));
        }
    }

    pub(crate) fn log(&mut self, stream: Stream, line: &[u8], mut trouble: impl FnMut(String)) {
        if let Some(Err(error)) = self.log.as_mut().map(|log| log.line(stream, line)) {
            trouble(describe(&error));
        }
    }
}

/// An error with its cause, as one line: warnings have no chain.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", describe(source)),
        None => error.to_string(),
    }
}

fn moved(before: Option<u64>, now: Option<u64>, line: Option<u64>) -> bool {
    match (before, now) {
        (Some(before), Some(now)) => before.abs_diff(now) > line.unwrap_or(before) / MOVE,
        (before, now) => before != now,
    }
}

#[cfg(test)]
mod tests {
    use tidegate_runs::{NewRun, Store, read_flight};

    use super::*;

    #[test]
    fn a_long_quiet_run_stays_small_and_a_move_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let id = store
            .create(&NewRun {
                kind: "train".into(),
                ..NewRun::default()
            })
            .unwrap()
            .id;
        let mut recorder = Recorder::open(
            Some(RecordedRun {
                store: &store,
                id: &id,
            }),
            |text| panic!("{text}"),
        );
        // Ten minutes at ten samples a second, with one spike of 200 ms in between.
        for time_ms in (0..600_000).step_by(100) {
            let resident = if (300_100..300_300).contains(&time_ms) {
                90 << 20
            } else {
                50 << 20
            };
            let record = FlightRecord {
                time_ms,
                resident: Some(resident),
                budget: Some(100 << 20),
                ..FlightRecord::default()
            };
            recorder.sample(&record, |text| panic!("{text}"));
        }
        let flight = read_flight(&store.run_dir(&id).flight()).unwrap();
        assert!(
            (1100..1200).contains(&flight.records.len()),
            "{}",
            flight.records.len()
        );
        assert!(
            flight
                .records
                .iter()
                .any(|record| record.resident == Some(90 << 20))
        );
    }
}
