//! How a run stands, in one sentence.

use tidegate_memory::{against, duration, figure, format_bytes};
use tidegate_runs::{FlightRecord, Run, Status, Store, last_record, metric_name};

use super::verdict;

/// The newest look at the memory of a run; there may be no recording yet.
pub(crate) fn last_look(store: &Store, id: &str) -> Option<FlightRecord> {
    last_record(&store.run_dir(id).flight())
        .ok()
        .and_then(|(_, record)| record)
}

/// The sentence of a run that is not over.
pub(crate) fn live_sentence(run: &Run, last: Option<&FlightRecord>, now_ms: i64) -> String {
    sentence(run, last, false, now_ms)
}

/// The sentence of any run, with the newest look at its memory.
pub(super) fn sentence(run: &Run, last: Option<&FlightRecord>, has_checkpoint: bool, now_ms: i64) -> String {
    let took = |before: &str| {
        run.duration_ms(now_ms).map_or(String::new(), |ms| {
            format!("{before}{}", duration(ms as f64 / 1e3))
        })
    };
    let peak = match run.peak_bytes {
        Some(_) => format!(", peak {}", against(run.peak_bytes, run.budget_bytes)),
        None => String::new(),
    };
    match run.status {
        Status::Starting => "Starting: its worker does not run yet.".into(),
        Status::Running => running(run, last, &took(" for ")),
        Status::Done => match (&run.metric_name, run.metric_value) {
            (Some(name), Some(value)) => {
                format!(
                    "Done: {} {}{}{peak}.",
                    metric_name(name),
                    figure(value),
                    took(" in ")
                )
            }
            _ => format!("Done{}{peak}.", took(" in ")),
        },
        Status::Failed => format!("{}{}{peak}.", verdict::ended(run), took(" after ")),
        Status::Stopped => {
            let saved = match has_checkpoint {
                true => "; a checkpoint is there to go on from",
                false => "",
            };
            format!("Stopped on request{}{peak}{saved}.", took(" after "))
        }
    }
}

/// `Running for 1:12: epoch 3, 41 MB of 64 MB in use.`
fn running(run: &Run, last: Option<&FlightRecord>, took: &str) -> String {
    let Some(last) = last else {
        return format!("Running{took}.");
    };
    let mut parts = Vec::new();
    if last.epoch > 0 {
        parts.push(format!("epoch {}", last.epoch));
    }
    if let Some(used) = last.in_use() {
        parts.push(format!(
            "{} in use",
            against(Some(used), last.budget.or(run.budget_bytes))
        ));
    }
    if let Some(peak) = last.cgroup_peak {
        parts.push(format!("{} at the most", format_bytes(peak)));
    }
    match parts.is_empty() {
        true => format!("Running{took}."),
        false => format!("Running{took}: {}.", parts.join(", ")),
    }
}
