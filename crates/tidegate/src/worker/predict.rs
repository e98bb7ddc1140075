//! Predicting in the worker.

use std::cell::Cell;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tidegate_data::encode::Encoders;
use tidegate_data::{Position, Source, SourceOptions, Table, TableOptions};
use tidegate_train::linear::Plan;
use tidegate_train::network::{NetworkModel, RowNetwork, RowsPlanned};
use tidegate_train::{Error as TrainError, Model, PredictOptions, PredictedRows, Prediction, predict_plan};
use tidegate_watch::{Done, Event};

use super::destination::{Columns, Output};
use super::relay::Passing;
use super::{Speaker, arrays, default_threads, images, runtime_bytes, sampling_ledger, working_ledger};
use crate::job::dialect_options;
use crate::predict::{BrokenColumn, Names, TOLD_COLUMNS};
use crate::{Error, OutputFormat, PredictJob, Predicted, Result};

pub(super) fn predict(
    speaker: &Speaker,
    job: &PredictJob,
    budget: u64,
    folder: &Path,
    packs: &Path,
) -> Result<()> {
    let model = match NetworkModel::is_in(folder) {
        false => Predictor::Model(Box::new(Model::load(folder)?)),
        true => match RowNetwork::load(folder)? {
            Some(rows) => Predictor::Network(Box::new(rows)),
            None => {
                return match NetworkModel::load_design(folder)?.images {
                    Some(form) => images::predict(speaker, job, budget, folder, form),
                    None => arrays::predict(speaker, job, budget, folder, packs),
                };
            }
        },
    };
    let mut table = open(job, model.encoders(), budget)?;
    let columns = columns(&table);
    let format = job.format();
    let rows_guess = table.source.rows_guess().unwrap_or(0);
    let options = PredictOptions {
        threads: job.threads.unwrap_or_else(default_threads),
        runtime: runtime_bytes(budget),
        output: Output::bytes(format, &columns, rows_guess),
        budget,
    };
    let planned = match &model {
        Predictor::Model(model) => {
            let planned = |table: &Table| predict_plan(model, table, &options);
            table.read_ahead_while(|table| planned(table).is_ok_and(|plan| plan.threads == options.threads));
            Planned::Model(model, planned(&table)?)
        }
        Predictor::Network(network) => {
            let planned = |table: &Table| network.plan(table, &options);
            let fits = |planned: RowsPlanned| planned.plan.threads == options.threads;
            table.read_ahead_while(|table| planned(table).is_ok_and(fits));
            Planned::Network(network, Box::new(planned(&table)?))
        }
    };
    let (ledger, _held) = working_ledger(planned.plan())?;
    warn_of_lacking(speaker, &table);
    let mut output = Output::open(job.output.as_deref(), format, columns, &ledger)?;
    let rows = Cell::new(0u64);
    let mut passing = Passing::predicting(speaker, table.source.bytes());
    let out = |prediction: Prediction| {
        rows.set(rows.get() + 1);
        output.write(&prediction)
    };
    let progress = |position: Position| passing.tell(position.piece, position.consumed, rows.get());
    let predicted = match planned {
        Planned::Model(model, plan) => tidegate_train::predict(model, &table, &plan, &ledger, out, progress),
        Planned::Network(network, planned) => network.predict(&table, *planned, &ledger, out, progress),
    };
    let bytes = table.source.bytes();
    end(speaker, predicted, output, rows.get(), bytes, |predicted| {
        report(&table, &predicted, format)
    })
}

/// Finishes the output and says what became of the predictions.
pub(super) fn end<T: Default>(
    speaker: &Speaker,
    predicted: Result<T, TrainError>,
    output: Output,
    rows: u64,
    bytes: u64,
    report: impl FnOnce(T) -> Predicted,
) -> Result<()> {
    let stopped = speaker.is_stopped();
    let finished = predicted.and_then(|predicted| match stopped {
        true => Ok(predicted),
        false => output.finish().map(|()| predicted),
    });
    let predicted = match finished {
        // Whoever read our output has read enough: `tidegate predict … | head`.
        Err(TrainError::Write { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => T::default(),
        finished => finished?,
    };
    if stopped {
        speaker.stopped(1, rows, false);
        return Ok(());
    }
    let report = Predicted {
        rows,
        ..report(predicted)
    };
    speaker.say(Event::Done(Done {
        rows: Some(rows),
        data_bytes: Some(bytes),
        details: serde_json::to_value(report).expect("plain data"),
        ..Done::default()
    }));
    Ok(())
}

/// A model that takes tables.
enum Predictor {
    Model(Box<Model>),
    Network(Box<RowNetwork>),
}

impl Predictor {
    fn encoders(&self) -> &Encoders {
        match self {
            Predictor::Model(model) => &model.encoders,
            Predictor::Network(network) => &network.encoders,
        }
    }
}

/// A model, and what predicting by it takes.
enum Planned<'m> {
    Model(&'m Model, Plan),
    Network(&'m RowNetwork, Box<RowsPlanned>),
}

impl Planned<'_> {
    fn plan(&self) -> &Plan {
        match self {
            Planned::Model(_, plan) => plan,
            Planned::Network(_, planned) => &planned.plan,
        }
    }
}

fn open(job: &PredictJob, encoders: &Encoders, budget: u64) -> Result<Table> {
    let reading = SourceOptions {
        dialect: dialect_options(job.delimiter.as_deref(), job.quote.as_deref(), job.header)?,
        missing: [job.missing.as_slice(), &encoders.missing].concat(),
        query: job.query.clone(),
        ..SourceOptions::default()
    };
    let features = encoders.features.iter();
    let names: Vec<&str> = features.map(|feature| feature.name.as_str()).collect();
    let source = Source::open(&job.data, &reading, &names, &sampling_ledger(budget))?;
    if let Some(output) = &job.output {
        check_not_data(output, &source)?;
    }
    let options = TableOptions {
        bad_rows: job.bad_rows,
        missing: job.missing.clone(),
        ..TableOptions::default()
    };
    Ok(Table::open_for(source, encoders, &options)?)
}

/// Refuses to replace a file that was found in a folder and is read.
fn check_not_data(output: &Path, source: &Source) -> Result<()> {
    let Ok(output) = output.metadata() else {
        return Ok(());
    };
    let is_output = |part: usize| {
        let data = source.part_path(part).metadata();
        data.is_ok_and(|data| (data.dev(), data.ino()) == (output.dev(), output.ino()))
    };
    match (0..source.n_parts()).any(is_output) {
        true => Err(Error::Usage {
            what: "the predictions would replace the data".into(),
            hint: "name another file with --output".into(),
        }),
        false => Ok(()),
    }
}

fn columns(table: &Table) -> Columns {
    let source = &table.source;
    let file = |part: usize| source.part_path(part).display().to_string();
    let labels = table.encoders.target.labels();
    Columns {
        place: "line",
        named: false,
        several: Vec::new(),
        files: (source.n_parts() > 1).then(|| (0..source.n_parts()).map(file).collect()),
        labels: labels.iter().map(|label| label.text.clone()).collect(),
    }
}

/// Says at once what the table lacks: the predictions may not be worth waiting for.
fn warn_of_lacking(speaker: &Speaker, table: &Table) {
    let names = Names::of(&table.lacking());
    if names.count > 0 {
        let n_features = table.encoders.features.len();
        let text = match (names.count, table.source.may_have_more_columns()) {
            (1, false) => format!(
                "there is no column {}: it counts as missing in every row",
                names.list()
            ),
            (1, true) => format!(
                "no row looked at has {}: it counts as missing where it is not",
                names.list()
            ),
            (n, _) => format!(
                "{n} of the model's {n_features} columns are not there and count as missing in every row: {}",
                names.list()
            ),
        };
        speaker.say(Event::Warning { text });
    }
}

/// What a person should know of the rows.
fn report(table: &Table, predicted: &PredictedRows, format: OutputFormat) -> Predicted {
    let source = &table.source;
    let place = |part: usize, line: u64| format!("{}:{line}", source.part_path(part).display());
    let counts = &predicted.counts;
    let broken = counts.broken.iter().take(TOLD_COLUMNS).map(|(column, broken)| {
        let (line, first) = &broken.first;
        let part = predicted.first_broken_parts.get(column).copied().unwrap_or(0);
        let told = BrokenColumn {
            values: broken.count,
            first: first.clone(),
            place: place(part, *line),
        };
        (column.clone(), told)
    });
    let unseen = counts.unseen.iter().take(TOLD_COLUMNS);
    Predicted {
        rows: counts.rows,
        files: source.n_parts() as u64,
        bad: counts.bad,
        first_bad: counts
            .first_bad
            .as_ref()
            .map(|(line, fault)| format!("{}: {fault}", place(predicted.first_bad_part, *line))),
        lacking: Names::of(&table.lacking()),
        unused: Names::of(&table.unused()),
        unseen: unseen
            .map(|(column, unseen)| (column.clone(), unseen.clone()))
            .collect(),
        broken: broken.collect(),
        format,
        ..Predicted::default()
    }
}
