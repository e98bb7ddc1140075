//! Networks in the worker, whatever their samples come from: plan, say so, train.

use tidegate_data::Holdout;
use tidegate_data::arrays::{ArraySource, Kept};
use tidegate_memory::{Ledger, format_bytes};
use tidegate_train::network::{self, Design, Loss, NetworkModel, Options, Outcome, Planned, Samples};
use tidegate_train::{Checkpoint, Error as TrainError, RUNTIME, Report};
use tidegate_watch::Event;

use super::images::tell_of_bad;
use super::pressure::{Shrinking, watched};
use super::relay::{About, Relay};
use super::train::{CHECKPOINT_EVERY, Places, hold};
use super::{FLOOR, Rate, Speaker};
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
}

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
        let options = options(job, places, &source, &design, self.holdout, self.usual_batch)?;
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
        tell_of_program(speaker, &planned);
        let threads = planned.plan.threads as u64 * tidegate_train::THREAD_BYTES;
        let _threads = hold(ledger, RUNTIME, threads)?;
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
        let resume = places
            .resume
            .then(|| Checkpoint::load(&places.checkpoint))
            .transpose()?;
        let mut relay = Relay {
            speaker,
            ledger,
            about: self.about,
            kind: self.name,
            rate: Rate::new(),
        };
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

/// A budget in figures that a person writes, and no more than it is.
fn whole_megabytes(bytes: u64) -> u64 {
    bytes / 1_000_000 * 1_000_000
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
    Ok(Options {
        loss: Some(loss),
        rule: train.optimizer,
        rate: job.model.learning_rate.unwrap_or(0.001),
        schedule: train.schedule(),
        warm_up: train.warm_up,
        clip: train.clip.map(|clip| clip as f32),
        epochs: train.epochs,
        // No larger than there is anything to fill it with.
        batch: train
            .batch
            .unwrap_or(usual_batch)
            .min(source.n_samples().max(1) as usize),
        accumulate: train.accumulate as u32,
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
