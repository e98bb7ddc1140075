//! A linear model in the worker.

use tidegate_data::pack::TablePack;
use tidegate_train::linear::{self, ClassWeights, Outcome};
use tidegate_train::{Checkpoint, Model, Report};
use tidegate_watch::Event;

use super::Rate;
use super::relay::{About, Relay};
use super::train::{CHECKPOINT_EVERY, Prepared};
use crate::Result;

/// The model and its report; `None` when asked to stop, which is said.
pub(super) fn train(mut prepared: Prepared) -> Result<Option<(Model, Report)>> {
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
        table,
        encoding,
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
    let plan = linear::plan_for(&table, &options, threads, runtime, budget)?;
    let mut relay = Relay {
        speaker,
        ledger: &ledger,
        about: About::table(&table),
        kind: "linear",
        rate: Rate::new(),
    };
    let mut sink = |event| relay.tell(event);
    let outcome = linear::train(
        &table,
        &options,
        &plan,
        &ledger,
        resume.as_ref(),
        speaker.stop,
        &mut sink,
    )?;
    for problem in table.pack.iter().flat_map(TablePack::take_problems) {
        speaker.say(Event::Warning {
            text: problem.to_string(),
        });
    }
    speaker.ledger(&ledger);
    match outcome {
        Outcome::Done(done) => Ok(Some(*done)),
        Outcome::Stopped { epoch, checkpoint } => {
            speaker.stopped(epoch, 0, checkpoint);
            Ok(None)
        }
    }
}
