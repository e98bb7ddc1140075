//! The loop: epochs over samples, checkpoints between steps, judged by samples that it does not learn from.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tidegate_data::Holdout;
use tidegate_data::arrays::{ArraySource, FeedOptions, Order, Part, SampleBatch};
use tidegate_memory::{Grant, Ledger};

use super::design::Design;
use super::fault::describe;
use super::folder::NetworkModel;
use super::judge::Evaluation;
use super::loss::Loss;
use super::machine::{Batch, Machine};
use super::mistakes::Mistake;
use super::moments::Moments;
use super::plan::{ARENA, BEST, EVALUATION, Planned, feed_options};
use super::precision::Precision;
use super::prior::prior;
use super::rule::{Moment, Rule};
use super::schedule::{Course, Schedule};
use super::setting::{Recompute, Setting};
use super::stall::Feeding;
use super::state::{self, Best, BestWeights, Past, Progress, Settings};
use super::step::Mix;
use super::weights;
use crate::{Checkpoint, EarlyStop, Error, Event, Quality, Report, Result, RowReport, Sink};

/// How to train.
#[derive(Debug, Clone)]
pub struct Options {
    /// What suits the labels, where nothing is said.
    pub loss: Option<Loss>,
    pub rule: Rule,
    pub rate: f64,
    pub schedule: Schedule,
    /// Epochs during which the rate rises.
    pub warm_up: f64,
    pub clip: Option<f32>,
    pub epochs: u32,
    pub batch: usize,
    /// Batches whose gradients are summed before a step.
    pub accumulate: u32,
    /// Samples of a batch that are learned from at a time, where that is not for the plan to choose; it divides the batch.
    pub micro_batch: Option<usize>,
    /// How values wait for the way back, what the optimizer keeps of each weight, and which values are made again, where
    /// that is not for the plan to choose.
    pub precision: Option<Precision>,
    pub moments: Option<Moments>,
    pub recompute: Option<Recompute>,
    /// How it was begun, where it is taken up again.
    pub begun: Option<Setting>,
    /// Whether samples are mixed with others of their batch.
    pub mixes: bool,
    /// Ends when the samples that judge have not become better for so many epochs, and keeps the best weights.
    pub patience: Option<u32>,
    /// Samples that judge, where there are no others.
    pub holdout: Holdout,
    pub seed: u64,
    /// Weights to start from.
    pub weights: Option<PathBuf>,
    /// Where checkpoints go, and how often one is written inside an epoch.
    pub checkpoint: Option<PathBuf>,
    pub checkpoint_every: Duration,
    /// Where compressed arrays are unpacked that do not fit in memory.
    pub unpacked: Option<PathBuf>,
    /// Whether plain arrays are mapped.
    pub map: bool,
    /// Threads that bring samples, where those are changed on their way.
    pub feed_threads: usize,
    /// What samples of pictures depend on beside the files, in words.
    pub images: String,
}

/// How a training ended.
pub enum Outcome {
    Done(Box<(NetworkModel, Report)>),
    /// Asked to stop; says whether a checkpoint was written.
    Stopped {
        epoch: u32,
        checkpoint: bool,
    },
}

/// Progress is said at most this often.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// What a training learns from, and is judged by.
pub struct Samples<'a> {
    pub training: &'a ArraySource,
    /// Samples of their own that judge, instead of some that are held out.
    pub validation: Option<&'a ArraySource>,
}

impl Samples<'_> {
    fn part(&self, holdout: Holdout) -> Part {
        match self.validation.is_some() || holdout.is_none() {
            true => Part::All,
            false => Part::Training(holdout),
        }
    }
}

/// Trains the network of a design within its plan, from the start or from a checkpoint, until it is done or `stop` is set.
#[expect(
    clippy::too_many_arguments,
    reason = "each is another subject, and there is one caller"
)]
pub fn train(
    design: &Design,
    samples: &Samples,
    options: &Options,
    planned: Planned,
    ledger: &Ledger,
    resume: Option<&Checkpoint>,
    stop: &AtomicBool,
    sink: &mut Sink,
) -> Result<Outcome> {
    sink(Event::Plan {
        holders: planned.plan.holders.clone(),
    });
    let granted = |name: &'static str| {
        let bytes = planned.plan.bytes(name);
        let grant = ledger.holder(name).try_grant(bytes);
        grant
            .map(Grant::pin)
            .map_err(|source| Error::Memory { what: name, source })
    };
    let held = [granted(ARENA)?, granted(BEST)?, granted(EVALUATION)?];
    let part = samples.part(options.holdout);
    let n_training = samples.training.n_samples_of(part);
    if n_training == 0 {
        return Err(Error::NothingToTrainOn);
    }
    let built = planned.program.build(options.seed);
    let mut machine = built.map_err(|source| Error::Arena { source })?;
    let settings = Settings::new(samples.training.fingerprint()?, design, options);
    let (progress, best) = match resume {
        Some(checkpoint) => state::restore(&mut machine, &settings, checkpoint)?,
        None => {
            if let Some(path) = &options.weights {
                let text = weights::start_from(&mut machine, path)?;
                sink(Event::Notice(text));
            }
            (Progress::default(), None)
        }
    };
    let steps_per_epoch = n_training.div_ceil(planned.setting.step());
    let mut training = Training {
        design,
        samples,
        options,
        ledger,
        course: Course {
            schedule: options.schedule,
            rate: options.rate,
            warm_up: options.warm_up,
            epochs: f64::from(options.epochs),
            steps_per_epoch,
        },
        prefetch: planned.prefetch,
        setting: planned.setting,
        part,
        n_training,
        prior: prior(samples.training, part),
        machine,
        settings,
        progress,
        best,
        quality: None,
        mistakes: Vec::new(),
        feeding: Feeding::start(samples.training, 0),
        stop,
        sink,
        told: Instant::now(),
        saved: Instant::now(),
        kept: resume.is_some(),
        begun: false,
    };
    let ended = training.run()?;
    let stopped = Outcome::Stopped {
        epoch: (training.progress.epoch + 1).min(options.epochs),
        checkpoint: training.kept,
    };
    let machine = training.machine;
    drop(held);
    Ok(match ended {
        ControlFlow::Break(()) => stopped,
        ControlFlow::Continue(report) => {
            let model = NetworkModel {
                design: design.clone(),
                machine,
                encoders: None,
            };
            Outcome::Done(Box::new((model, report)))
        }
    })
}

/// What comes after an epoch.
enum Next {
    Epoch,
    Over,
    /// Asked to stop before it was judged.
    Stopped,
}

struct Training<'a, 'b> {
    design: &'a Design,
    samples: &'a Samples<'a>,
    options: &'a Options,
    ledger: &'a Ledger,
    course: Course,
    prefetch: u64,
    setting: Setting,
    part: Part,
    n_training: u64,
    prior: Vec<f64>,
    machine: Machine,
    settings: Settings,
    progress: Progress,
    best: Option<BestWeights>,
    quality: Option<Quality>,
    mistakes: Vec<Mistake>,
    feeding: Feeding,
    stop: &'a AtomicBool,
    sink: &'a mut Sink<'b>,
    told: Instant,
    saved: Instant,
    kept: bool,
    /// Whether gradients of the step at hand are summed already.
    begun: bool,
}

impl Training<'_, '_> {
    /// Breaks when asked to stop.
    fn run(&mut self) -> Result<ControlFlow<(), Report>> {
        while self.progress.epoch < self.options.epochs {
            let next = match self.epoch()? {
                ControlFlow::Break(()) => Next::Stopped,
                ControlFlow::Continue(()) => self.end_epoch()?,
            };
            match next {
                Next::Epoch => {}
                Next::Over => break,
                Next::Stopped => {
                    self.kept |= self.try_to_save();
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        // Where it is asked to stop in there, what was saved last leads there again.
        self.finish()
    }

    /// Learns from what is left of the epoch; breaks when asked to stop.
    fn epoch(&mut self) -> Result<ControlFlow<()>> {
        let options = FeedOptions {
            order: Order::Shuffled {
                seed: self.options.seed,
                epoch: u64::from(self.progress.epoch),
            },
            start: self.progress.position,
            ..feed_options(self.options, self.setting.batch, self.prefetch, self.part)
        };
        let (source, ledger) = (self.samples.training, self.ledger);
        self.feeding = Feeding::start(source, self.progress.position);
        let mut stopped = false;
        // Losses of the batches that make up a step: they count once it is taken.
        let (mut pending, mut lacking) = (0.0, 0);
        source.feed(&options, ledger, |batch| {
            pending += self.learn(batch)?;
            lacking += batch.cursor() - batch.first() - batch.n_samples() as u64;
            let done = self.ends_step(batch);
            if done {
                self.progress.loss += std::mem::take(&mut pending);
                self.progress.position = batch.cursor();
                self.progress.lacking += std::mem::take(&mut lacking);
                self.progress.step += 1;
                self.passed();
                stopped = self.stop.load(Ordering::Relaxed);
            }
            Ok::<_, Error>(match stopped {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        })?;
        Ok(match stopped && self.progress.position < self.n_training {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    }

    /// Whether a batch is the last of a step.
    fn ends_step(&self, batch: &SampleBatch) -> bool {
        batch.cursor() >= self.n_training || batch.cursor() - self.progress.position >= self.setting.step()
    }

    fn learn(&mut self, batch: &SampleBatch) -> Result<f64> {
        let rows = batch.n_samples();
        let of_step = match self.setting.accumulate {
            1 => rows as u64,
            _ => self.setting.step().min(self.n_training - self.progress.position),
        };
        let learned = Batch {
            rows,
            share: 1.0 / of_step as f32,
            first: !self.begun,
            last: self.ends_step(batch),
            before: (batch.first() - self.progress.position) as usize,
            seed: mix(self.options.seed ^ mix(self.progress.step)),
            mix: batch.mixing().map(|mixing| Mix {
                distance: mixing.distance,
                share: mixing.share,
            }),
            scale: self.progress.scale.of(self.setting.precision),
            moment: Moment {
                rate: self.course.at(self.progress.step),
                // A step that was skipped leaves nothing to make up for.
                step: self.progress.step + 1 - self.progress.scale.skipped,
            },
        };
        let begun = self.begun || rows > 0;
        self.begun = begun && !learned.last;
        if rows == 0 {
            // None of its samples is there: the step is what the batches before it make of it.
            if begun && learned.last {
                self.machine.change_weights(&learned);
                self.scaled()?;
            }
            return Ok(0.0);
        }
        self.design.put(batch, &mut self.machine)?;
        let loss = self.machine.learn(&learned);
        if loss.is_finite() {
            if learned.last {
                self.scaled()?;
            }
            return Ok(loss);
        }
        let fault = self.machine.find_fault(&learned);
        // What was learned so far may still be worth something.
        if self.machine.is_finite() && self.progress.step > 0 {
            self.try_to_save();
        }
        Err(Error::WentBad {
            epoch: self.progress.epoch + 1,
            step: self.progress.step + 1,
            what: describe(fault, batch),
        })
    }

    /// A step was taken or skipped: slopes of the next are scaled by it.
    fn scaled(&mut self) -> Result<()> {
        if self.setting.precision != Precision::F16 || self.progress.scale.pass(self.machine.skipped()) {
            return Ok(());
        }
        Err(Error::WentBad {
            epoch: self.progress.epoch + 1,
            step: self.progress.step + 1,
            what: "its slopes are not, however small their scale".into(),
        })
    }

    /// A step is done: say so, and save now and then.
    fn passed(&mut self) {
        if self.told.elapsed() >= PROGRESS_EVERY {
            self.tell();
        }
        if self.saved.elapsed() >= self.options.checkpoint_every {
            self.kept |= self.try_to_save();
        }
    }

    fn tell(&mut self) {
        self.told = Instant::now();
        let progress = &self.progress;
        let bytes = self.samples.training.bytes();
        let consumed = (bytes as f64 * progress.position as f64 / self.n_training as f64) as u64;
        let loss = self.mean_loss();
        (self.sink)(Event::Progress {
            epoch: progress.epoch + 1,
            epochs: self.options.epochs,
            step: progress.step,
            consumed,
            total: bytes,
            rows: progress.position,
            loss,
            fed: self.feeding.so_far(self.samples.training),
        });
    }

    fn mean_loss(&self) -> Option<f64> {
        let n = self.progress.position.saturating_sub(self.progress.lacking);
        (n > 0).then(|| self.progress.loss / n as f64)
    }

    /// Judges the weights, keeps them if they are the best; it is over when they have not become better for long enough.
    fn end_epoch(&mut self) -> Result<Next> {
        self.tell();
        let fed = self.feeding.so_far(self.samples.training);
        let rows_per_second = self.feeding.rows_per_second(self.progress.position);
        let training = self.mean_loss().unwrap_or(f64::NAN);
        let ControlFlow::Continue(judged) = self.judge()? else {
            return Ok(Next::Stopped);
        };
        self.progress.fed.extend(fed);
        let epoch = self.progress.epoch + 1;
        let metrics = self.quality.as_ref().map(|quality| quality.metrics.clone());
        (self.sink)(Event::Epoch {
            epoch,
            loss: training,
            metrics: metrics.clone().unwrap_or_default(),
            learning_rate: Some(self.course.at(self.progress.step.saturating_sub(1))),
            rows_per_second,
            fed,
        });
        self.progress.past.push(Past { training, judged });
        if let Some(text) = self.progress.scale.tell(epoch) {
            (self.sink)(Event::Notice(text));
        }
        let mut over = false;
        if let (Some(loss), Some(patience)) = (judged, self.options.patience) {
            let better = self.progress.best.as_ref().is_none_or(|best| loss < best.loss);
            if better {
                self.progress.best = Some(Best {
                    epoch,
                    loss,
                    metrics: metrics.unwrap_or_default(),
                });
                self.keep_best();
            }
            over = self
                .progress
                .best
                .as_ref()
                .is_some_and(|best| epoch - best.epoch >= patience);
        }
        self.progress.epoch = epoch;
        self.progress.position = 0;
        self.progress.loss = 0.0;
        self.progress.lacking = 0;
        if !over && epoch < self.options.epochs {
            self.kept |= self.try_to_save();
        }
        Ok(match over {
            true => Next::Over,
            false => Next::Epoch,
        })
    }

    fn keep_best(&mut self) {
        let weights = self
            .machine
            .parts()
            .filter(|(name, _)| name.starts_with("weight/"));
        match &mut self.best {
            Some(best) => {
                for ((_, into), (_, values)) in best.iter_mut().zip(weights) {
                    into.copy_from_slice(values);
                }
            }
            None => self.best = Some(weights.map(|(name, values)| (name, values.to_vec())).collect()),
        }
    }

    /// The mean loss of the samples that judge, if there are any; the quality is kept. Breaks when asked to stop.
    fn judge(&mut self) -> Result<ControlFlow<(), Option<f64>>> {
        let (source, part) = match self.samples.validation {
            Some(validation) => (validation, Part::All),
            None if self.options.holdout.is_none() => return Ok(ControlFlow::Continue(None)),
            None => (self.samples.training, Part::HeldOut(self.options.holdout)),
        };
        let evaluation = Evaluation {
            design: self.design,
            source,
            feed: feed_options(self.options, self.setting.batch, self.prefetch, part),
            ledger: self.ledger,
            prior: &self.prior,
            stop: self.stop,
        };
        let judged = evaluation.run(&mut self.machine)?;
        Ok(judged.map_continue(|judged| {
            judged.map(|judged| {
                (self.quality, self.mistakes) = (Some(judged.quality), judged.mistakes);
                judged.loss
            })
        }))
    }

    /// A checkpoint on the way: one that cannot be written is no reason to lose the training.
    fn try_to_save(&mut self) -> bool {
        let Some(folder) = &self.options.checkpoint else {
            return false;
        };
        let saved = state::save(
            &self.machine,
            &self.settings,
            &self.setting,
            &self.progress,
            self.best.as_ref(),
            folder,
        );
        self.saved = Instant::now();
        match saved {
            Ok(()) => {
                (self.sink)(Event::Checkpoint {
                    epoch: self.progress.epoch + 1,
                    step: self.progress.step,
                });
                true
            }
            Err(error) => {
                (self.sink)(Event::Warning {
                    text: "no checkpoint could be written".into(),
                    error: Some(error),
                });
                false
            }
        }
    }

    /// Puts the best weights back where those are known, and says what is to say of the model; breaks when asked to stop.
    fn finish(&mut self) -> Result<ControlFlow<(), Report>> {
        let past = self.progress.past.last().copied();
        let mut early_stop = None;
        if let (Some(best), Some(weights)) = (self.progress.best.clone(), self.best.take())
            && best.epoch < self.progress.epoch
        {
            for (name, values) in &weights {
                if let Some(into) = self.machine.part_mut(name) {
                    into.copy_from_slice(values);
                }
            }
            early_stop = Some(EarlyStop {
                best_epoch: best.epoch,
                epochs: self.progress.epoch,
                loss: best.loss,
            });
            self.quality = None;
        }
        // Another's, or one that was taken up again after its last epoch.
        if self.quality.is_none() && self.judge()?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let training = self.samples.training;
        let held_out = match self.samples.validation {
            Some(validation) => validation.n_samples() - validation.n_bad(Part::All),
            None => {
                let held_out = Part::HeldOut(self.options.holdout);
                training.n_samples() - self.n_training - training.n_bad(held_out)
            }
        };
        let classes: Vec<String> = self
            .design
            .labels
            .classes()
            .iter()
            .map(|label| label.text.clone())
            .collect();
        let quality = self.quality.take();
        let report = Report {
            metrics: Vec::new(),
            by_class: Vec::new(),
            classes,
            confusion: Vec::new(),
            calibration: Vec::new(),
            residuals: None,
            rows: RowReport {
                used: self.n_training - training.n_bad(self.part) + held_out,
                held_out,
                ..RowReport::default()
            },
            epochs: self.progress.epoch,
            converged: early_stop.is_some(),
            early_stop,
            training_loss: past.map_or(f64::NAN, |past| past.training),
            weights: Vec::new(),
            importance: Vec::new(),
            folds: Vec::new(),
            fed: std::mem::take(&mut self.progress.fed),
            mistakes: std::mem::take(&mut self.mistakes),
            skipped_steps: self.progress.scale.skipped,
        };
        let report = report.with_quality(quality.unwrap_or_default());
        Ok(ControlFlow::Continue(report))
    }
}

/// A hash of 64 bits.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
