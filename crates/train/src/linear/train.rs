//! The loop: epochs over the table, checkpoints between blocks, metrics at the end.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tidegate_data::{Batch, Holdout, PassOptions, Position, Table};
use tidegate_memory::{Grant, Ledger};

use super::moments::Moments;
use super::newton::Step;
use super::plan::{EVALUATION, MODEL, Plan};
use super::state::{Method, Settings, State};
use super::{LinearModel, Loss};
use crate::{Checkpoint, Error, Evaluator, Event, Metric, Model, Report, Result, RowReport, Sink};

/// How to train.
#[derive(Debug, Clone)]
pub struct Options {
    /// Passes over the table at the most; fewer when the model has settled.
    pub epochs: u32,
    /// The penalty `½ l2 Σ w²` on weights of standardised columns, against the summed loss.
    pub l2: f64,
    pub holdout: Holdout,
    /// Where checkpoints go, and how often one is written inside an epoch.
    pub checkpoint: Option<PathBuf>,
    pub checkpoint_every: Duration,
}

/// How a training ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Done(Box<(Model, Report)>),
    /// Asked to stop; says whether a checkpoint was written.
    Stopped {
        epoch: u32,
        checkpoint: bool,
    },
}

/// Weights that the report lists.
const LISTED_WEIGHTS: usize = 1000;
/// Progress is said at most this often.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// The model has settled when a step would lower the mean loss by less than this.
const SETTLED: f64 = 1e-6;

/// Trains a linear model on `table` within its plan, from the start or from a checkpoint, until it is done or
/// `stop` is set.
pub fn train(
    table: &Table,
    options: &Options,
    plan: &Plan,
    ledger: &Ledger,
    resume: Option<&Checkpoint>,
    stop: &AtomicBool,
    sink: &mut Sink,
) -> Result<Outcome> {
    sink(Event::Plan {
        holders: plan.holders.clone(),
    });
    let n = table.encoders.width().total() + 1;
    let loss = Loss::of(table.encoders.target.task())?;
    let settings = Settings {
        loss,
        l2: options.l2,
        data: table.source.fingerprint()?,
    };
    let state = match resume {
        Some(checkpoint) => State::restore(checkpoint, n, settings)?,
        None => State::new(n, options.l2),
    };
    let granted = |name: &'static str| {
        let grant = ledger.holder(name).try_grant(plan.bytes(name));
        grant
            .map(Grant::pin)
            .map_err(|source| Error::Memory { what: name, source })
    };
    let _held = (granted(MODEL)?, granted(EVALUATION)?);
    let mut training = Training {
        table,
        options,
        plan,
        ledger,
        settings,
        state,
        evaluator: None,
        stop,
        sink,
        told: Instant::now(),
        saved: Instant::now(),
    };
    training.run()
}

struct Training<'a, 's> {
    table: &'a Table,
    options: &'a Options,
    plan: &'a Plan,
    ledger: &'a Ledger,
    settings: Settings,
    state: State,
    /// The held out rows of this epoch so far, judged by the weights that it started with.
    evaluator: Option<Evaluator>,
    stop: &'a AtomicBool,
    sink: &'a mut Sink<'s>,
    /// When progress was last said and a checkpoint last written.
    told: Instant,
    saved: Instant,
}

impl Training<'_, '_> {
    fn run(&mut self) -> Result<Outcome> {
        let settled = loop {
            self.epoch()?;
            if self.stop.load(Ordering::Relaxed) {
                let checkpoint = self.save()?;
                let epoch = self.state.progress.epoch + 1;
                return Ok(Outcome::Stopped { epoch, checkpoint });
            }
            let settled = self.end_epoch()?;
            if settled || self.state.progress.epoch + 1 >= self.options.epochs {
                break settled;
            }
            self.next_epoch();
            self.try_to_save();
        };
        let metrics = match self.evaluator.take().filter(|_| settled) {
            Some(evaluator) => evaluator.metrics(),
            None => self.evaluate()?,
        };
        let model = Model {
            encoders: self.table.encoders.clone(),
            linear: self.model(),
        };
        Ok(Outcome::Done(Box::new((model, self.report(metrics, settled)))))
    }

    /// Streams the table once, or what is left of the epoch.
    fn epoch(&mut self) -> Result<()> {
        let n = self.state.weights().len();
        let fixed = match &self.state.method {
            Method::Newton { weights, .. } => Some(weights.clone()),
            _ => None,
        };
        // Weights that stay as they are for a whole epoch can be judged on the way.
        let judged = fixed.is_some() && self.state.progress.position.is_none();
        self.evaluator = judged.then(|| self.new_evaluator());
        let model = self.model();
        let mut scratch = matches!(self.state.method, Method::Streaming(_)).then(|| Moments::zero(n));
        let (table, loss, ledger) = (self.table, self.settings.loss, self.ledger);
        let options = self.pass_options(self.state.progress.position);
        table.pass(
            &options,
            ledger,
            |batch| {
                fixed
                    .as_ref()
                    .map(|weights| Moments::of(batch, loss, &table.encoders.target, weights))
            },
            |batch: &mut Batch, moments: Option<Moments>, position| {
                if let Some(evaluator) = &mut self.evaluator {
                    judge(evaluator, &model, batch);
                }
                self.learn(batch, moments, scratch.as_mut())?;
                self.passed(batch, position)
            },
        )?;
        Ok(())
    }

    fn pass_options(&self, start: Option<Position>) -> PassOptions {
        PassOptions {
            threads: self.plan.threads,
            holdout: self.options.holdout,
            start,
        }
    }

    fn learn(
        &mut self,
        batch: &Batch,
        moments: Option<Moments>,
        scratch: Option<&mut Moments>,
    ) -> Result<()> {
        let (loss, target) = (self.settings.loss, &self.table.encoders.target);
        let first = self.state.progress.epoch == 0;
        let (rows, total, targets) = match (&mut self.state.method, moments, scratch) {
            (Method::Streaming(streaming), _, Some(scratch)) => streaming.learn(batch, loss, target, scratch),
            (Method::Adaptive(adaptive), ..) => adaptive.learn(batch, loss, target, first),
            (Method::Newton { moments: sum, .. }, Some(moments), _) => {
                sum.add(&moments);
                (moments.rows, moments.loss, moments.targets)
            }
            _ => unreachable!("an epoch brings what its method needs"),
        };
        let progress = &mut self.state.progress;
        progress.training_rows += rows;
        progress.loss += total;
        if first {
            progress.prior_rows += rows;
            progress.prior_sum += targets;
        }
        if !progress.loss.is_finite() {
            return Err(Error::Diverged {
                epoch: progress.epoch + 1,
            });
        }
        Ok(())
    }

    /// A block is done: count it, say so, save now and then, stop when asked.
    fn passed(&mut self, batch: &Batch, position: Position) -> Result<ControlFlow<()>> {
        let progress = &mut self.state.progress;
        progress.rows += batch.counts.rows;
        progress.bad += batch.counts.bad;
        progress.without_target += batch.counts.without_target;
        progress.held_out += batch.counts.held_out;
        progress.position = Some(position);
        if self.told.elapsed() >= PROGRESS_EVERY {
            self.tell(position);
        }
        if self.saved.elapsed() >= self.options.checkpoint_every {
            self.try_to_save();
        }
        let stop = self.stop.load(Ordering::Relaxed);
        Ok(if stop {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    }

    fn tell(&mut self, position: Position) {
        self.told = Instant::now();
        let progress = &self.state.progress;
        let event = Event::Progress {
            epoch: progress.epoch + 1,
            epochs: self.options.epochs,
            step: position.piece,
            consumed: position.consumed,
            total: self.table.source.bytes(),
            rows: progress.rows,
            loss: self.mean_loss(),
        };
        (self.sink)(event);
    }

    fn mean_loss(&self) -> Option<f64> {
        let progress = &self.state.progress;
        (progress.training_rows > 0).then(|| progress.loss / progress.training_rows as f64)
    }

    /// Takes the step that the epoch was for; `true` when there is nothing left to learn.
    fn end_epoch(&mut self) -> Result<bool> {
        let Some(mean_loss) = self.mean_loss() else {
            let progress = &self.state.progress;
            let path = self.table.source.path().to_path_buf();
            return Err(Error::NoRows {
                path,
                bad: progress.bad,
                without_target: progress.without_target,
            });
        };
        if let Some(position) = self.state.progress.position {
            self.tell(position);
        }
        let metrics = self
            .evaluator
            .as_ref()
            .map(Evaluator::metrics)
            .unwrap_or_default();
        let epoch = self.state.progress.epoch + 1;
        (self.sink)(Event::Epoch {
            epoch,
            loss: mean_loss,
            metrics,
        });
        Ok(self.step())
    }

    fn step(&mut self) -> bool {
        let l2 = self.options.l2;
        let n = self.state.weights().len();
        match &mut self.state.method {
            Method::Streaming(streaming) => {
                let weights = std::mem::take(&mut streaming.weights);
                self.state.method = Method::Newton {
                    weights,
                    moments: Moments::zero(n),
                    last: None,
                };
                false
            }
            Method::Newton {
                weights,
                moments,
                last,
            } => {
                let rows = moments.rows.max(1) as f64;
                let step = Step::from_moments(moments, weights, l2);
                // A step that made things worse is taken back by half.
                let worse = last
                    .as_ref()
                    .filter(|last| step.objective > last.objective * (1.0 + 1e-12));
                if worse.is_none() && step.promised / rows < SETTLED {
                    // These weights have been judged in this very epoch: they are the model.
                    return true;
                }
                let step = worse.map_or(step, Step::halved);
                *weights = step.target();
                *last = Some(step);
                *moments = Moments::zero(n);
                false
            }
            Method::Adaptive(_) => false,
        }
    }

    fn next_epoch(&mut self) {
        if let Method::Adaptive(adaptive) = &mut self.state.method {
            adaptive.start_epoch();
        }
        let progress = &mut self.state.progress;
        progress.epoch += 1;
        progress.position = None;
        (progress.rows, progress.training_rows, progress.loss) = (0, 0, 0.0);
        (progress.bad, progress.without_target, progress.held_out) = (0, 0, 0);
    }

    /// A checkpoint on the way: one that cannot be written is no reason to lose the training.
    fn try_to_save(&mut self) {
        if let Err(error) = self.save() {
            self.saved = Instant::now();
            (self.sink)(Event::Warning {
                text: "no checkpoint could be written".into(),
                error,
            });
        }
    }

    fn save(&mut self) -> Result<bool> {
        let Some(folder) = &self.options.checkpoint else {
            return Ok(false);
        };
        self.state.checkpoint(self.settings).save(folder)?;
        self.saved = Instant::now();
        let progress = &self.state.progress;
        let step = progress.position.map_or(0, |position| position.piece);
        (self.sink)(Event::Checkpoint {
            epoch: progress.epoch + 1,
            step,
        });
        Ok(true)
    }

    fn new_evaluator(&self) -> Evaluator {
        Evaluator::new(self.table.encoders.target.task(), self.state.prior())
    }

    fn model(&self) -> LinearModel {
        LinearModel {
            weights: self.state.weights().to_vec(),
            target: self.table.encoders.target.clone(),
        }
    }

    /// Metrics of weights that no epoch has judged yet, by one more pass; none when asked to stop meanwhile,
    /// because the model itself is finished.
    fn evaluate(&mut self) -> Result<Vec<Metric>> {
        let (mut evaluator, model, stop) = (self.new_evaluator(), self.model(), self.stop);
        if self.options.holdout.is_none() {
            return Ok(evaluator.metrics());
        }
        (self.sink)(Event::Notice(
            "one more pass to judge the model by the rows held out".into(),
        ));
        let judged = |batch: &mut Batch, (), _| {
            judge(&mut evaluator, &model, batch);
            Ok::<_, Error>(match stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        };
        self.table
            .pass(&self.pass_options(None), self.ledger, |_| (), judged)?;
        if stop.load(Ordering::Relaxed) {
            (self.sink)(Event::Notice("the model is finished, but was not judged".into()));
            return Ok(Vec::new());
        }
        Ok(evaluator.metrics())
    }

    fn report(&self, metrics: Vec<Metric>, converged: bool) -> Report {
        let progress = &self.state.progress;
        let encoders = &self.table.encoders;
        let mut weights: Vec<(usize, f64)> = self.state.weights().iter().copied().enumerate().collect();
        // The bias is last and not among them.
        weights.pop();
        weights.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        weights.truncate(LISTED_WEIGHTS);
        let weights = weights
            .iter()
            .map(|(i, weight)| (encoders.name(*i), *weight))
            .collect();
        Report {
            metrics,
            rows: RowReport {
                used: progress.rows,
                held_out: progress.held_out,
                bad: progress.bad,
                without_target: progress.without_target,
            },
            epochs: progress.epoch + 1,
            converged,
            training_loss: self.mean_loss().unwrap_or(f64::NAN),
            weights,
        }
    }
}

fn judge(evaluator: &mut Evaluator, model: &LinearModel, batch: &Batch) {
    for row in batch.rows().filter(|row| row.held_out) {
        evaluator.push(model.predict(row), row.target);
    }
}
