//! A linear model in the worker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tidegate_data::pack::TablePack;
use tidegate_data::{EncodingPlan, Narrowed, Table};
use tidegate_memory::Ledger;
use tidegate_train::linear::{self, ClassWeights, Outcome};
use tidegate_train::{Checkpoint, Event as Told, Model, Report};
use tidegate_watch::{Change, Event, Plan, Times};

use super::Speaker;
use super::pressure::{Shrinking, watched, whole_megabytes};
use super::relay::{About, Relay};
use super::times::units;
use super::train::{CHECKPOINT_EVERY, Places, Prepared, end_dry, least_to_fit, refuse_device};
use crate::Result;

/// Hashes columns into fewer places where the model would not fit, and says so. One that is taken up again keeps the places
/// it began with.
pub(super) fn narrow(
    table: &mut Table,
    encoding: &mut EncodingPlan,
    places: &Places,
    least: impl Fn(&Table) -> u64,
    budget: u64,
) -> Result<Option<Change>> {
    let begun = match places.resume {
        true => linear::begun_weights(&Checkpoint::load(&places.checkpoint)?),
        false => None,
    };
    // Fewer threads and less that is read ahead cost less than other numbers.
    table.read_ahead_while(|_| false);
    let before = least(table);
    let mut now = before;
    let mut narrowed: Vec<Narrowed> = Vec::new();
    loop {
        let is_wide = match begun {
            Some(weights) => linear::n_weights(table) > weights,
            None => now > budget,
        };
        let Some(column) = is_wide.then(|| table.narrow(encoding)).flatten() else {
            break;
        };
        narrowed.retain(|other| other.column != column.column);
        narrowed.push(column);
        now = least(table);
    }
    let into = |column: &Narrowed| format!("{:?} into 2^{} places", column.column, column.bits);
    Ok((!narrowed.is_empty()).then(|| Change {
        knob: "encoding".into(),
        to: format!(
            "hashed {}",
            narrowed.iter().map(into).collect::<Vec<_>>().join(", ")
        ),
        saves: before.saturating_sub(now),
        slowdown: Some(1.0),
        alters: Some("more categories share a place".into()),
    }))
}

/// The model and its report; `None` when asked to stop, which is said.
pub(super) fn train(mut prepared: Prepared) -> Result<Option<(Model, Report)>> {
    refuse_device(prepared.places)?;
    // One epoch would write what nobody reads.
    if prepared.job.train.pack && prepared.job.train.epochs > 1 {
        let options = prepared.pack_options();
        prepared
            .table
            .use_pack(options, prepared.holdout, &prepared.ledger);
    }
    let Prepared {
        speaker,
        job,
        places,
        mut table,
        encoding,
        changes,
        ledger,
        budget,
        holdout,
        threads,
        runtime,
        ..
    } = prepared;
    let resume = places
        .resume
        .then(|| Checkpoint::load(&places.checkpoint))
        .transpose()?;
    let options = linear::Options {
        epochs: job.train.epochs,
        l1: job.model.l1,
        l2: job.model.l2,
        class_weights: match job.model.class_weights {
            None => ClassWeights::None,
            Some(crate::ClassWeights::Balanced) => ClassWeights::Balanced,
        },
        class_counts: (!encoding.classes.is_empty()).then(|| encoding.classes.clone()),
        patience: job.train.patience,
        holdout,
        checkpoint: places.keep.then(|| places.checkpoint.clone()),
        checkpoint_every: CHECKPOINT_EVERY,
    };
    let planned = |table: &Table| linear::plan_for(table, &options, threads, runtime, budget);
    table.read_ahead_while(|table| planned(table).is_ok_and(|plan| plan.threads == threads));
    let plan = planned(&table)?;
    let mut relay = Relay::new(speaker, &ledger, About::table(&table), "linear");
    let is_made = table.pack.as_ref().is_some_and(|pack| !pack.is_ready());
    let rows = encoding.rows.filter(|_| is_made);
    relay.details = Plan {
        threads: Some(plan.threads as u64),
        changes,
        disk_bytes: match is_made {
            true => rows.map(|rows| (rows as f64 * encoding.bytes_per_row) as u64),
            false => Some(0),
        },
        ..Plan::default()
    };
    if places.dry.is_some() {
        relay.tell(Told::Plan {
            holders: plan.likely(),
        });
        if is_made {
            table.pack = None;
        }
        let options = linear::Options {
            checkpoint: None,
            ..options
        };
        if let Some(times) = time(&table, &options, &plan, &ledger, speaker)? {
            speaker.say(Event::Times(times));
        }
        end_dry(speaker);
        return Ok(None);
    }
    let mut sink = |event| relay.tell(event);
    // Pieces that wait can go, down to one.
    let buffers = table.buffers(plan.threads);
    let waiting = buffers.slots.saturating_sub(1) as u64 * buffers.slot_bytes;
    let shrinking = Shrinking::of_table(&ledger, plan.total() - waiting);
    let outcome = watched(speaker, budget, Some(shrinking), || {
        linear::train(
            &table,
            &options,
            &plan,
            &ledger,
            resume.as_ref(),
            speaker.stop,
            &mut sink,
        )
    })?;
    for problem in table.pack.iter().flat_map(TablePack::take_problems) {
        speaker.say(Event::Warning {
            text: problem.to_string(),
        });
    }
    speaker.ledger(&ledger);
    match outcome {
        Outcome::Done(done) => Ok(Some(*done)),
        Outcome::Stopped { epoch, checkpoint } => {
            table.read_ahead_while(|_| false);
            let fits = |left: &u64| {
                let planned = linear::plan_for(&table, &options, 1, runtime, *left);
                planned.is_ok() && least_to_fit(&table, runtime) <= *left
            };
            let enough = speaker.taken.left().map(whole_megabytes).filter(fits);
            speaker.stopped_with(epoch, 0, checkpoint, enough);
            Ok(None)
        }
    }
}

/// An epoch is timed by so much of it.
const TIMED: Duration = Duration::from_millis(500);

/// Learns for a moment to know how long an epoch takes; `None` where that is not to be told. Nothing of it is kept.
fn time(
    table: &Table,
    options: &linear::Options,
    plan: &linear::Plan,
    ledger: &Ledger,
    speaker: &Speaker,
) -> Result<Option<Times>> {
    let enough = AtomicBool::new(false);
    let (started, mut done) = (Instant::now(), None);
    let mut hear = |event| {
        let took = started.elapsed();
        match event {
            Told::Progress { consumed, total, .. } if done.is_none() && took >= TIMED => {
                done = Some((took, consumed, total));
            }
            // An epoch is over before enough of it was seen.
            Told::Epoch { .. } if done.is_none() => done = Some((took, 1, 1)),
            _ => {}
        }
        if done.is_some() || speaker.is_stopped() {
            enough.store(true, Ordering::Relaxed);
        }
    };
    linear::train(table, options, plan, ledger, None, &enough, &mut hear)?;
    let (step, epoch) = units("linear");
    let times = done.filter(|(_, consumed, _)| *consumed > 0);
    Ok(times.map(|(took, consumed, total)| Times {
        step: step.into(),
        epoch: epoch.into(),
        step_seconds: None,
        epoch_seconds: Some(took.as_secs_f64() * total as f64 / consumed as f64),
        basis: format!("by {:.1} s of a first epoch", took.as_secs_f64()),
    }))
}
