//! Boosted trees in the worker.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tidegate_data::target::Task as TargetTask;
use tidegate_data::{PassOptions, Position, Table};
use tidegate_train::boost::{
    self, FeatureBins, Growth, Objective, Options, Outcome, Plan, Round, Shape, Training,
};
use tidegate_train::{BoostReport, Error as TrainError, Event as Told, Forest, Learned, Model, Report};
use tidegate_watch::Event;

use super::Rate;
use super::relay::Relay;
use super::train::{CHECKPOINT_EVERY, Prepared};
use crate::{ClassWeights, Growth as AskedGrowth, Job, Result};

/// Where a forest under way is kept.
const CHECKPOINT: &str = "forest.json";

pub(super) fn train(prepared: Prepared) -> Result<()> {
    let options = options(prepared.job, &prepared.table, &prepared.encoding.classes);
    let features: Vec<FeatureBins> = prepared
        .encoding
        .cuts
        .iter()
        .map(|(name, cuts)| FeatureBins::new(name, cuts.clone()))
        .collect();
    let plan = plan(&prepared, &features, &options)?;
    let mut relay = Relay {
        speaker: prepared.speaker,
        ledger: &prepared.ledger,
        table: &prepared.table,
        kind: "boost",
        rate: Rate::new(),
        told: Instant::now(),
    };
    relay.tell(Told::Plan {
        holders: prepared.fixed.iter().cloned().chain(plan.holders.clone()).collect(),
    });
    todo_fill(prepared, features, options, plan, relay)
}
