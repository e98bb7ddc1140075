//! Predicting in the worker.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

use tidegate_data::target::Task as TargetTask;
use tidegate_data::{Source, SourceOptions, Table, TableOptions};
use tidegate_train::{Error as TrainError, Model, predict_plan};
use tidegate_watch::{Done, Event};

use super::destination::{Destination, quoted};
use super::{Rate, Speaker, default_threads, runtime_bytes, sampling_ledger, working_ledger};
use crate::job::dialect_options;
use crate::{PredictJob, Predicted, Result};

pub(super) fn predict(speaker: &Speaker, job: &PredictJob, budget: u64, folder: &Path) -> Result<()> {
    let model = Model::load(folder)?;
    let reading = SourceOptions {
        dialect: dialect_options(job.delimiter.as_deref(), job.quote.as_deref(), job.header)?,
        missing: [job.missing.as_slice(), &model.encoders.missing].concat(),
        query: None,
    };
    let names: Vec<&str> = model
        .encoders
        .features
        .iter()
        .map(|feature| feature.name.as_str())
        .collect();
    let source = Source::open(
        std::slice::from_ref(&job.data),
        &reading,
        &names,
        &sampling_ledger(budget),
    )?;
    let options = TableOptions {
        bad_rows: job.bad_rows,
        missing: job.missing.clone(),
        ..TableOptions::default()
    };
    let table = Table::open_for(source, &model.encoders, &options)?;
    let plan = predict_plan(
        &model,
        &table,
        job.threads.unwrap_or_else(default_threads),
        runtime_bytes(),
        budget,
    )?;
    let (ledger, _held) = working_ledger(&plan)?;
    let mut output = Destination::open(job.output.as_deref())?;
    let binary = model.encoders.target.task() == TargetTask::Binary;
    output.write(|out| writeln!(out, "line,prediction{}", if binary { ",probability" } else { "" }))?;
    let (mut rows, mut rate) = (0u64, Rate::new());
    let counts = tidegate_train::predict(
        &model,
        &table,
        &plan,
        &ledger,
        |prediction| {
            rows += 1;
            output.write(|out| match prediction.label {
                Some(label) => writeln!(out, "{},{},{}", prediction.line, quoted(label), prediction.score),
                None => writeln!(out, "{},{}", prediction.line, prediction.score),
            })
        },
        |position| {
            speaker.say(Event::Progress {
                epoch: 1,
                epochs: 1,
                step: position.piece,
                done_bytes: position.consumed,
                total_bytes: Some(table.source.bytes()),
                rows: position.line,
                rows_per_second: rate.at(1, position.line),
                loss: None,
                phase: Some("predict".into()),
            });
            if speaker.stop.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        },
    );
    let stopped = speaker.stop.load(Ordering::Relaxed);
    let finished = counts.and_then(|counts| match stopped {
        true => Ok(counts),
        false => output.finish().map(|()| counts),
    });
    let counts = match finished {
        // Whoever read our output has read enough: `tidegate predict … | head`.
        Err(TrainError::Write { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => {
            speaker.say(Event::Done(Done {
                details: report(rows, 0, None),
                ..Done::default()
            }));
            return Ok(());
        }
        counts => counts?,
    };
    if stopped {
        speaker.say(Event::Stopped {
            epoch: 1,
            step: rows,
            checkpoint: false,
        });
        return Ok(());
    }
    let first_bad = counts
        .first_bad
        .map(|(line, fault)| format!("{}:{line}: {fault}", job.data.display()));
    speaker.say(Event::Done(Done {
        rows: Some(counts.rows),
        data_bytes: Some(table.source.bytes()),
        details: report(counts.rows, counts.bad, first_bad),
        ..Done::default()
    }));
    Ok(())
}

fn report(rows: u64, bad: u64, first_bad: Option<String>) -> serde_json::Value {
    serde_json::to_value(Predicted {
        rows,
        bad,
        first_bad,
        peak: None,
    })
    .expect("plain data")
}
