//! A network over a table in the worker: rows become samples once, and are then learned from in any order.

use tidegate_data::arrays::{Foreseen, RowSamples, RowsOptions, row_labels};
use tidegate_data::pack::{PackKey, PackOptions};
use tidegate_data::{BUFFERS, Holdout, Position, Table};
use tidegate_memory::give_freed_memory_back;
use tidegate_train::network::{self, Design, NetworkModel, Preset, Scaling, Shape};
use tidegate_train::{Error as TrainError, RUNTIME, Report, RowReport};
use tidegate_watch::Event;

use super::network::{Foresight, Training};
use super::relay::{About, Passing};
use super::train::{Prepared, hold};
use super::untouched;
use crate::{Error, ModelKind, Result};

/// Rows of a batch: they are small, and many.
const USUAL_BATCH: usize = 256;

/// The model and its report; `None` when asked to stop, which is said.
pub(super) fn train(mut prepared: Prepared) -> Result<Option<(NetworkModel, &'static str, Report)>> {
    let options = rows_options(&mut prepared)?;
    let trained = train_on(&mut prepared, &options);
    if !prepared.job.train.pack {
        for pack in [&options.training, &options.held_out] {
            pack.store.remove(pack.key).map_err(TrainError::Data)?;
        }
    }
    trained
}

fn train_on(
    prepared: &mut Prepared,
    options: &RowsOptions,
) -> Result<Option<(NetworkModel, &'static str, Report)>> {
    let made = match prepared.places.dry {
        Some(_) => foresee(prepared, options)?,
        None => samples(prepared, options)?.map(|samples| {
            let foresight = written(&samples);
            (samples, foresight)
        }),
    };
    let Some((samples, foresight)) = made else {
        prepared.speaker.stopped(0, 0, prepared.places.resume);
        return Ok(None);
    };
    give_freed_memory_back();
    if !prepared.holdout.is_none() && samples.held_out.is_none() {
        let hint = "hold more of them out: --holdout 0.5";
        let what = "the table has so few rows that none is held out";
        if prepared.job.train.patience.is_some() {
            return Err(Error::Usage {
                what: format!("{what}, and --patience needs some to judge by"),
                hint: hint.into(),
            });
        }
        let text = format!("{what}: nothing judges the network; {hint}");
        prepared.speaker.say(Event::Warning { text });
    }
    let (design, name) = design(prepared, &samples)?;
    // The threads that encoded are over; the network's are to come.
    prepared.held.clear();
    let [(_, _), (columns, columns_bytes)] = &prepared.fixed;
    let _program = hold(&prepared.ledger, RUNTIME, prepared.runtime)?;
    let _columns = hold(&prepared.ledger, columns, *columns_bytes)?;
    let holders = prepared.ledger.snapshot().holders.into_iter();
    let mut held: Vec<(String, u64)> = holders.map(|holder| (holder.name, holder.held)).collect();
    held.retain(|(_, bytes)| *bytes > 0);
    let counts = samples.counts.or_else(|| prepared.encoding.counts.clone());
    let trained = Training {
        speaker: prepared.speaker,
        job: prepared.job,
        places: prepared.places,
        ledger: &prepared.ledger,
        budget: prepared.budget,
        held,
        about: About::table(&prepared.table),
        name,
        design,
        source: samples.training,
        validation: samples.held_out,
        holdout: Holdout::new(0.0, prepared.job.train.seed),
        usual_batch: USUAL_BATCH,
        foresight: Foresight {
            changes: std::mem::take(&mut prepared.changes),
            ..foresight
        },
    }
    .run()?;
    Ok(trained.map(|(mut model, mut report)| {
        model.encoders = Some(prepared.table.encoders.clone());
        // Where nobody counted rows, all that are there were used.
        if let Some(counts) = &counts {
            report.rows = RowReport::default();
            report.rows.add(counts);
        }
        (model, name, report)
    }))
}

/// The packs of the rows: one to learn from, one that judges.
fn rows_options(prepared: &mut Prepared) -> Result<RowsOptions> {
    let threads = threads_that_fit(prepared)?;
    let all = prepared.pack_options();
    // A pack that is not to stay is nobody else's.
    let whose = match prepared.job.train.pack {
        true => String::new(),
        false => format!("of process {}", std::process::id()),
    };
    let pack = |what: &str| PackOptions {
        key: PackKey::of(&[all.key.to_string().as_bytes(), what.as_bytes(), whose.as_bytes()]),
        description: format!("{}, {what}", all.description),
        ..all.clone()
    };
    Ok(RowsOptions {
        training: pack("samples"),
        held_out: pack("held-out samples"),
        holdout: prepared.holdout,
        threads,
    })
}

/// As many threads as there is room for to encode, beside what is held already, which read ahead as far as there is room
/// for.
fn threads_that_fit(prepared: &mut Prepared) -> Result<usize> {
    let (free, threads) = (prepared.ledger.free(), prepared.threads);
    let needs = |table: &Table, threads: usize| {
        [
            (BUFFERS.to_string(), table.pass_needs(threads).bytes()),
            ("pack".to_string(), RowSamples::bytes(table)),
        ]
    };
    let total =
        |table: &Table, threads: usize| needs(table, threads).iter().map(|(_, bytes)| bytes).sum::<u64>();
    prepared
        .table
        .read_ahead_while(|table| total(table, threads) <= free);
    let table = &prepared.table;
    match (1..=threads).rev().find(|threads| total(table, *threads) <= free) {
        Some(threads) => Ok(threads),
        None => {
            let held = prepared.ledger.snapshot().holders.into_iter();
            let held = held.map(|holder| (holder.name, holder.held));
            Err(TrainError::BudgetTooSmall {
                least: prepared.budget + total(table, 1) - free,
                budget: prepared.budget,
                holders: held
                    .chain(needs(table, 1))
                    .filter(|(_, bytes)| *bytes > 0)
                    .collect(),
            }
            .into())
        }
    }
}

/// The rows of the table as samples; `None` when asked to stop.
fn samples(prepared: &Prepared, options: &RowsOptions) -> Result<Option<RowSamples>> {
    let (speaker, ledger, table) = (prepared.speaker, &prepared.ledger, &prepared.table);
    let mut passing = Passing::before(speaker, ledger, "encode", table.source.bytes());
    let mut progress = |position: Position, rows| passing.tell(position.piece, position.consumed, rows);
    let samples = RowSamples::of(table, options, ledger, &mut progress).map_err(TrainError::Data)?;
    if samples.as_ref().is_some_and(|samples| samples.counts.is_none()) {
        let text = format!("using the pack {}", options.training.key);
        speaker.say(Event::Notice { text });
    }
    Ok(samples)
}

/// What encoding has just put on disk.
fn written(samples: &RowSamples) -> Foresight {
    let all = std::iter::once(&samples.training).chain(&samples.held_out);
    let disk = match samples.counts {
        Some(_) => all.map(|source| source.bytes()).sum(),
        None => 0,
    };
    Foresight {
        disk,
        ..Foresight::default()
    }
}

/// The rows as they will be, and what encoding them will take; `None` when asked to stop.
fn foresee(prepared: &Prepared, options: &RowsOptions) -> Result<Option<(RowSamples, Foresight)>> {
    let (speaker, ledger, table) = (prepared.speaker, &prepared.ledger, &prepared.table);
    let mut passing = Passing::before(speaker, ledger, "measure", table.source.bytes());
    let mut progress = |position: Position, rows| passing.tell(position.piece, position.consumed, rows);
    let counted = prepared.encoding.counts.as_ref();
    let rows = counted.map_or_else(
        || {
            let rows = prepared.encoding.rows.or(table.source.rows_guess()).unwrap_or(0);
            (rows, (rows as f64 * prepared.job.data.holdout) as u64)
        },
        |counts| (counts.rows, counts.held_out),
    );
    let foreseen =
        RowSamples::foresee(table, options, rows, ledger, &mut progress).map_err(TrainError::Data)?;
    Ok(foreseen.map(|(samples, foreseen)| {
        let foresight = match foreseen {
            Foreseen::There => Foresight::default(),
            Foreseen::ToCome { disk } => {
                let holders = ledger.snapshot().holders.into_iter();
                let held = holders.map(|holder| (holder.name, holder.held));
                // Rows come through buffers like those of the fit, which are touched as far.
                let buffers = table.pass_needs(options.threads).bytes();
                let encoding = [
                    (BUFFERS.to_string(), buffers.saturating_sub(untouched(ledger))),
                    ("pack".to_string(), RowSamples::bytes(table)),
                ];
                Foresight {
                    disk,
                    stages: vec![held.chain(encoding).filter(|(_, bytes)| *bytes > 0).collect()],
                    absent: true,
                    ..Foresight::default()
                }
            }
        };
        (samples, foresight)
    }))
}

/// The network for these rows, and what it is called.
fn design(prepared: &Prepared, samples: &RowSamples) -> Result<(Design, &'static str)> {
    let model = &prepared.job.model;
    let input = vec![samples.shape.len()];
    let (mut layers, name) = match model.kind {
        ModelKind::Network => (model.layers.clone(), "network"),
        _ => (Preset::Mlp.layers(&Shape(input.clone())), "mlp"),
    };
    network::take_columns(&mut layers, &samples.shape);
    network::freeze(&mut layers, &model.freeze)?;
    let design = Design {
        sample: input.clone(),
        // The encoders have scaled them.
        scaling: Scaling::None,
        input,
        labels: row_labels(&prepared.table.encoders.target),
        layers,
        images: None,
    };
    Ok((design, name))
}
