//! Networks in the worker, whatever their samples come from: plan, say so, train.

use tidegate_data::Holdout;
use tidegate_data::arrays::{ArraySource, Keep, Kept, Part};
use tidegate_memory::{Ledger, format_bytes};
use tidegate_train::network::{
    self, Design, Loss, NetworkModel, Options, Outcome, Planned, Rehearsal, Samples,
};
use tidegate_train::{Checkpoint, Error as TrainError, Event as Told, RUNTIME, Report};
use tidegate_watch::{Alternative, Change, Event, Plan, Times};

use super::images::tell_of_bad;
use super::pressure::{Shrinking, watched, whole_megabytes};
use super::relay::{About, Relay};
use super::train::{CHECKPOINT_EVERY, Places, end_dry, hold};
use super::{FLOOR, Speaker, device};
use crate::{ClassWeights, Error, Job, Result};

/// A network about to be trained.
pub(super) struct Training<'a> {
    pub speaker: &'a Speaker,
    pub job: &'a Job,
    pub places: &'a Places,
    pub ledger: &'a Ledger,
    pub budget: u64,
    /// What is granted already, threads not included.
    pub held: Vec<(String, u64)>,
    pub about: About,
    pub name: &'static str,
    pub design: Design,
    pub source: ArraySource,
    pub validation: Option<ArraySource>,
    pub holdout: Holdout,
    /// Samples at a time, where nothing else was asked for.
    pub usual_batch: usize,
    pub foresight: Foresight,
}

/// What is known of what comes before a training, or came.
#[derive(Default)]
pub(super) struct Foresight {
    /// What packs take on disk that were not there before.
    pub disk: u64,
    /// What is held while they are made, where that is to come.
    pub stages: Vec<Vec<(String, u64)>>,
    /// What was changed to fit before the network was chosen.
    pub changes: Vec<Change>,
    /// Whether samples are only reckoned with, and cannot be fed.
    pub absent: bool,
}

/// The holder of the arena.
pub(super) const NETWORK: &str = "network";

impl Training<'_> {
    /// Plans, says so, and trains; `None` when asked to stop, which is said.
    pub(super) fn run(self) -> Result<Option<(NetworkModel, Report)>> {
        let Training {
            speaker,
            job,
            places,
            ledger,
            budget,
            design,
            mut source,
            mut validation,
            ..
        } = self;
        let resume = places
            .resume
            .then(|| Checkpoint::load(&places.checkpoint))
            .transpose()?;
        let begun = resume.as_ref().map(network::begun).transpose()?.flatten();
        let options = Options {
            begun,
            ..options(job, places, &source, &design, self.holdout, self.usual_batch)?
        };
        if let Some(memory) = places.dry.and_then(|dry| dry.device_memory) {
            let plan = device::plan(&device::Question {
                design: &design,
                source: &source,
                validation: validation.as_ref(),
                options: &options,
                threads: job.threads(),
                held: &self.held,
                budget: budget.max(FLOOR),
                memory,
            })?;
            speaker.say(self.about.complete(plan, self.name, budget));
            end_dry(speaker);
            return Ok(None);
        }
        let planned = network::plan(
            &design,
            &source,
            validation.as_ref(),
            &options,
            job.threads(),
            &self.held,
            budget.max(FLOOR),
        )
        .map_err(|error| asked(error, budget))?;
        // It would fit in what any job needs, and there is less.
        if budget < FLOOR {
            return Err(TrainError::BudgetTooSmall {
                least: FLOOR,
                budget,
                holders: planned.plan.holders,
            }
            .into());
        }
        tell_of_program(speaker, &planned);
        let threads = planned.plan.threads as u64 * tidegate_train::THREAD_BYTES;
        let _threads = hold(ledger, RUNTIME, threads)?;
        let mut relay = Relay::new(speaker, ledger, self.about, self.name);
        relay.stages = self.foresight.stages;
        relay.details = Plan {
            disk_bytes: Some(self.foresight.disk + unpacked_bytes(&source, &planned.keep)),
            ..details(&planned)
        };
        relay.details.changes.splice(..0, self.foresight.changes);
        if places.dry.is_some() {
            relay.tell(Told::Plan {
                holders: planned.plan.holders.clone(),
            });
            let decodes = source.is_decoded();
            source.rehearse();
            let part = match validation.is_some() || self.holdout.is_none() {
                true => Part::All,
                false => Part::Training(self.holdout),
            };
            let n_samples = source.n_samples_of(part);
            let rehearsal = Rehearsal {
                design: &design,
                source: Some(&source).filter(|source| !self.foresight.absent && !source.is_packed()),
                n_samples,
                options: &options,
                ledger,
            };
            let rehearsed = network::rehearse(&rehearsal, planned)?;
            tell_of_bad(speaker, &source.bad_files());
            let seconds = if decodes {
                rehearsed.waiting_too
            } else {
                rehearsed.learning
            };
            if rehearsed.batches > 0 {
                speaker.say(Event::Times(Times {
                    step: "step".into(),
                    epoch: "epoch".into(),
                    step_seconds: Some(seconds * (options.batch * options.accumulate as usize) as f64),
                    epoch_seconds: Some(seconds * n_samples as f64),
                    basis: basis(&rehearsal, rehearsed.batches),
                }));
            }
            end_dry(speaker);
            return Ok(None);
        }
        let least = network::least_bytes(
            &planned,
            &Samples {
                training: &source,
                validation: validation.as_ref(),
            },
            &options,
        );
        let kept = source.keep(&planned.keep, ledger)?;
        if kept == Kept::Unpacked {
            let text =
                "the arrays are compressed and larger than the memory: they were unpacked on disk".into();
            speaker.say(Event::Notice { text });
        }
        if let Some(validation) = &mut validation {
            validation.keep(&planned.keep_validation, ledger)?;
        }
        let samples = Samples {
            training: &source,
            validation: validation.as_ref(),
        };
        let mut sink = |event| relay.tell(event);
        let shrinking = Shrinking {
            ledger,
            sources: std::iter::once(&source).chain(&validation).collect(),
            least,
        };
        let outcome = watched(speaker, budget, Some(shrinking), || {
            network::train(
                &design,
                &samples,
                &options,
                planned,
                ledger,
                resume.as_ref(),
                speaker.stop,
                &mut sink,
            )
        })?;
        speaker.ledger(ledger);
        match outcome {
            Outcome::Done(done) => {
                let (model, mut report) = *done;
                for source in std::iter::once(&source).chain(&validation) {
                    let bad = source.bad_files();
                    report.rows.bad += bad.count;
                    if source.is_decoded() {
                        tell_of_bad(speaker, &bad);
                    }
                }
                Ok(Some((model, report)))
            }
            Outcome::Stopped { epoch, checkpoint } => {
                // With less, the same network may still be trained, on fewer threads or with samples left on disk.
                let fits = |budget: &u64| {
                    let (validation, held) = (validation.as_ref(), &self.held);
                    network::plan(
                        &design,
                        &source,
                        validation,
                        &options,
                        job.threads(),
                        held,
                        *budget,
                    )
                    .is_ok()
                };
                let enough = speaker.taken.left().map(whole_megabytes).filter(fits);
                speaker.stopped_with(epoch, 0, checkpoint, enough);
                Ok(None)
            }
        }
    }
}

/// Says what the program is, and what its arena holds.
fn tell_of_program(speaker: &Speaker, planned: &Planned) {
    let summary = planned.program.shares();
    let parts: Vec<String> = summary
        .iter()
        .map(|share| format!("{} {}", share.name, format_bytes(share.bytes)))
        .collect();
    let (learned, fixed) = planned.program.n_weights();
    let of_them = match fixed {
        0 => String::new(),
        _ => format!(", {learned} of them learned"),
    };
    let text = format!(
        "the network has {} weights{of_them}; its arena takes {}: {}",
        learned + fixed,
        format_bytes(planned.program.bytes()),
        parts.join(" · ")
    );
    speaker.say(Event::Notice { text });
}

/// What was timed, in words.
fn basis(rehearsal: &Rehearsal, batches: u32) -> String {
    let batches = match batches {
        1 => "one batch".to_string(),
        n => format!("{n} batches"),
    };
    let of = match rehearsal.source {
        None => " of zeros, for samples are not at hand yet",
        Some(source) if source.is_decoded() => " of images decoded from their files, the heaviest first",
        Some(_) => "",
    };
    format!("by {batches}{of}; without evaluation")
}

/// What is known of a plan beside its holders.
pub(super) fn details(planned: &Planned) -> Plan {
    let shares = planned.program.shares().into_iter();
    let change = |change: &tidegate_train::Change| Change {
        knob: change.knob.clone(),
        to: change.to.clone(),
        saves: change.saves,
        slowdown: Some(change.slowdown),
        alters: change.alters.clone(),
    };
    let alternative = |other: &tidegate_train::Alternative| Alternative {
        what: other.what.clone(),
        how: other.how.clone(),
        peak: other.peak,
        slowdown: other.slowdown,
        alters: other.alters.clone(),
    };
    Plan {
        threads: Some(planned.plan.threads as u64),
        arena: shares
            .map(|share| (share.name.to_string(), share.bytes))
            .collect(),
        layers: planned.program.layers(),
        changes: planned.changes.iter().map(change).collect(),
        alternatives: planned.alternatives.iter().map(alternative).collect(),
        ..Plan::default()
    }
}

/// What unpacking takes on disk, where samples are compressed and do not fit in memory.
fn unpacked_bytes(source: &ArraySource, keep: &Keep) -> u64 {
    match source.is_packed() && keep.memory < source.bytes() {
        true => source.bytes(),
        false => 0,
    }
}

/// A refusal in the terms of the budget that was asked for.
pub(super) fn asked(error: TrainError, budget: u64) -> TrainError {
    match error {
        TrainError::BudgetTooSmall { least, holders, .. } => TrainError::BudgetTooSmall {
            least: least.max(FLOOR),
            budget,
            holders,
        },
        error => error,
    }
}

fn options(
    job: &Job,
    places: &Places,
    source: &ArraySource,
    design: &Design,
    holdout: Holdout,
    usual_batch: usize,
) -> Result<Options> {
    let train = &job.train;
    let mut loss = train.loss.clone().unwrap_or_else(|| design.loss());
    if !design.takes(&loss) {
        let labels = match design.loss() {
            Loss::Mse => "numbers",
            Loss::CrossEntropy { .. } => "classes",
            _ => "two values",
        };
        let loss = serde_json::to_value(&loss)
            .ok()
            .and_then(|value| value["kind"].as_str().map(String::from));
        return Err(TrainError::OtherLoss {
            loss: loss.unwrap_or_default(),
            labels,
        }
        .into());
    }
    let weights = match job.model.class_weights {
        Some(ClassWeights::Balanced) => network::balanced(source, holdout),
        None => Vec::new(),
    };
    if job.model.class_weights.is_some() && weights.is_empty() {
        return Err(TrainError::ClassWeights { classes: 0 }.into());
    }
    match &mut loss {
        Loss::CrossEntropy {
            smoothing,
            class_weights,
        } => {
            *smoothing = train.smoothing.map_or(*smoothing, |asked| asked as f32);
            // A loss that was asked for may bring its own.
            if !weights.is_empty() {
                *class_weights = weights;
            }
        }
        _ if train.smoothing.is_some() => {
            return Err(Error::Usage {
                what: "--smoothing is for three classes or more".into(),
                hint: "leave it out".into(),
            });
        }
        Loss::Binary { class_weights } if !weights.is_empty() => *class_weights = weights,
        _ => {}
    }
    // No larger than there is anything to fill it with.
    let batch = train.batch.unwrap_or(usual_batch);
    let batch = batch.min(source.n_samples().max(1) as usize);
    if let Some(micro) = train
        .micro_batch
        .filter(|micro| *micro == 0 || !batch.is_multiple_of(*micro))
    {
        return Err(Error::Usage {
            what: format!("--micro-batch {micro} does not make up batches of {batch}"),
            hint: "give a number that divides the batch, or leave it out".into(),
        });
    }
    Ok(Options {
        loss: Some(loss),
        rule: train.optimizer,
        rate: job.model.learning_rate.unwrap_or(0.001),
        schedule: train.schedule(),
        warm_up: train.warm_up,
        clip: train.clip.map(|clip| clip as f32),
        epochs: train.epochs,
        batch,
        accumulate: train.accumulate as u32,
        micro_batch: train.micro_batch,
        precision: train.precision.given(),
        moments: train.moments.given(),
        recompute: train.recompute.given(),
        begun: None,
        mixes: job.augment.mixes(),
        patience: train.patience,
        holdout,
        seed: train.seed,
        weights: job.model.weights.clone(),
        checkpoint: places.keep.then(|| places.checkpoint.clone()),
        checkpoint_every: CHECKPOINT_EVERY,
        unpacked: Some(places.packs.clone()),
        map: job.data.map,
        feed_threads: if source.is_fed() { job.threads() } else { 1 },
        images: match design.images {
            // What a stored sample becomes depends on these, and nothing else tells.
            Some(_) => format!("{:?} {:?}", job.images, job.augment),
            None => String::new(),
        },
    })
}
