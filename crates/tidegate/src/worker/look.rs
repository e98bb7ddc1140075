//! A look at a table in the worker: its columns and what a sample says of them, before a target is named.

use tidegate_data::role::judge;
use tidegate_data::source::Reading;
use tidegate_data::{ColumnProfile, Source};
use tidegate_watch::{Done, Event, SeenColumn};

use super::{Speaker, sampling_ledger};
use crate::{Job, Result};

/// Letters of a value that are told.
const EXAMPLE: usize = 40;
/// Columns of an event: a line of the wire has room for 64 KiB.
const AT_ONCE: usize = 32;

pub(super) fn look(speaker: &Speaker, job: &Job, budget: u64) -> Result<()> {
    let ledger = sampling_ledger(budget);
    let source = Source::open(&job.data.paths, &job.source_options()?, &[], &ledger)?;
    let reading = Reading {
        wanted: Vec::new(),
        missing: job.data.missing.clone(),
        bad_rows: job.data.bad_rows,
    };
    let profile = source.profile(&reading, &ledger)?;
    for some in profile.columns.chunks(AT_ONCE) {
        speaker.say(Event::Columns {
            columns: some.iter().map(|column| seen(column, profile.complete)).collect(),
        });
    }
    speaker.say(Event::Done(Done {
        rows: source.rows_guess(),
        data_bytes: Some(source.bytes()),
        ..Done::default()
    }));
    Ok(())
}

fn seen(column: &ColumnProfile, complete: bool) -> SeenColumn {
    let judged = judge(column, complete);
    let rows = (column.values() + column.missing).max(1);
    let short = |text: &String| match text.char_indices().nth(EXAMPLE) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.clone(),
    };
    SeenColumn {
        name: column.name.clone(),
        role: judged.role.as_str().into(),
        distinct: column.n_distinct(),
        missing: column.missing as f64 / rows as f64,
        examples: column.distinct.iter().map(short).collect(),
        why: judged.why,
    }
}
