//! The loop: epochs over the table, checkpoints between pieces, metrics at the end.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tidegate_data::{Batch, Holdout, PassOptions, Position, Table};
use tidegate_memory::{Grant, Ledger};

use super::judge::{Chosen, judge};
use super::moments::Moments;
use super::newton::Step;
use super::plan::{EVALUATION, MODEL, PAGES, Plan};
use super::state::{Method, Settings, State};
use super::{ClassWeights, Problem};
use crate::report::largest_weights;
use crate::{Checkpoint, Error, Evaluator, Event, Learned, Model, Quality, Report, Result, RowReport, Sink};

/// How to train.
#[derive(Debug, Clone)]
pub struct Options {
    /// Passes over the table at the most; fewer when the model has settled.
    pub epochs: u32,
    /// The penalties `l1 Σ |w| + ½ l2 Σ w²` on weights of standardised columns, against the summed loss; of a
    /// number, the loss is that of the standardised target.
    pub l1: f64,
    pub l2: f64,
    pub class_weights: ClassWeights,
    /// Training rows of each class, for balanced weights; without them, one more pass counts.
    pub class_counts: Option<Vec<u64>>,
    /// Ends when the rows held out have not become better for so many epochs, and keeps the best weights.
    pub patience: Option<u32>,
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
        holders: plan.likely(),
    });
    options.class_weights.check(&table.encoders.target)?;
    let mut problem = Problem::new(table, options);
    let settings = Settings {
        loss: problem.loss,
        l1: options.l1,
        l2: options.l2,
        class_weights: options.class_weights.clone(),
        patience: options.patience,
        data: table.source.fingerprint()?,
    };
    let granted = |name: &'static str| {
        let grant = ledger.holder(name).try_grant(plan.bytes(name));
        grant
            .map(Grant::pin)
            .map_err(|source| Error::Memory { what: name, source })
    };
    let _held = (granted(MODEL)?, granted(EVALUATION)?, granted(PAGES)?);
    let state = match resume {
        Some(checkpoint) => {
            let state = State::restore(checkpoint, &problem, &settings)?;
            problem.class_weights.clone_from(&state.progress.class_weights);
            state
        }
        None => {
            let counts = match (&options.class_weights, &options.class_counts) {
                (ClassWeights::Balanced, None) => count_classes(table, options, plan, ledger, stop, sink)?,
                (_, counts) => counts.clone(),
            };
            if counts.is_none() && options.class_weights == ClassWeights::Balanced {
                return Ok(Outcome::Stopped {
                    epoch: 1,
                    checkpoint: false,
                });
            }
            problem.class_weights = options.class_weights.resolve(&counts.unwrap_or_default());
            State::new(&problem, table.source.rows_guess().unwrap_or(0))
        }
    };
    let mut training = Training {
        table,
        options,
        plan,
        ledger,
        problem,
        settings,
        state,
        evaluator: None,
        best_quality: None,
        stop,
        sink,
        told: Instant::now(),
        saved: Instant::now(),
        began: (Instant::now(), 0),
        kept: resume.is_some(),
    };
    training.run()
}

/// The training rows of each class, by one pass; `None` when asked to stop meanwhile.
fn count_classes(
    table: &Table,
    options: &Options,
    plan: &Plan,
    ledger: &Ledger,
    stop: &AtomicBool,
    sink: &mut Sink,
) -> Result<Option<Vec<u64>>> {
    sink(Event::Notice("one pass to count the rows of each class".into()));
    let mut counts = vec![0; table.encoders.target.labels().len()];
    let pass = PassOptions {
        threads: plan.threads,
        holdout: options.holdout,
        start: None,
    };
    let count = |batch: &mut Batch, (), _| {
        for row in batch.rows().filter(|row| !row.held_out) {
            counts[row.target as usize] += 1;
        }
        Ok::<_, Error>(match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    };
    table.pass(&pass, ledger, |_| (), count)?;
    Ok((!stop.load(Ordering::Relaxed)).then_some(counts))
}

pub(super) struct Training<'a, 's> {
    pub(super) table: &'a Table,
    pub(super) options: &'a Options,
    plan: &'a Plan,
    pub(super) ledger: &'a Ledger,
    pub(super) problem: Problem,
    settings: Settings,
    pub(super) state: State,
    /// The held out rows of this epoch so far, judged by the weights that it started with.
    pub(super) evaluator: Option<Evaluator>,
    /// What the rows held out said of the best weights, unless that was before a resume.
    pub(super) best_quality: Option<Quality>,
    pub(super) stop: &'a AtomicBool,
    pub(super) sink: &'a mut Sink<'s>,
    /// When progress was last said and a checkpoint last written.
    told: Instant,
    saved: Instant,
    /// When this process began with the epoch, which may have been taken up in its middle, and the rows before that.
    began: (Instant, u64),
    /// The last checkpoint that was due is there.
    kept: bool,
}

impl Training<'_, '_> {
    fn run(&mut self) -> Result<Outcome> {
        while self.state.progress.finished.is_none() {
            self.epoch()?;
            if self.stop.load(Ordering::Relaxed) {
                return self.stopped();
            }
            let enough = self.end_epoch()?;
            let settled = self.step();
            if settled || enough || self.state.progress.epoch + 1 >= self.options.epochs {
                self.state.progress.finished = Some(settled);
            } else {
                self.next_epoch();
            }
            self.try_to_save();
        }
        let settled = self.state.progress.finished == Some(true);
        let Some(chosen) = self.choose(settled)? else {
            // What there is to save was saved before.
            return Ok(Outcome::Stopped {
                epoch: self.state.progress.epoch + 1,
                checkpoint: self.kept,
            });
        };
        let report = self.report(&chosen, settled);
        self.state.best = None;
        let model = Model {
            encoders: self.table.encoders.clone(),
            learned: Learned::Linear(Arc::unwrap_or_clone(chosen.model)),
        };
        Ok(Outcome::Done(Box::new((model, report))))
    }

    fn stopped(&mut self) -> Result<Outcome> {
        let checkpoint = self.save()?;
        let epoch = self.state.progress.epoch + 1;
        Ok(Outcome::Stopped { epoch, checkpoint })
    }

    /// Streams the table once, or what is left of the epoch.
    fn epoch(&mut self) -> Result<()> {
        self.began = (Instant::now(), self.state.progress.rows.used);
        let fixed = match &self.state.method {
            Method::Newton { weights, .. } => Some(weights.clone()),
            _ => None,
        };
        let judged = self.state.judged.clone();
        let whole = judged.is_some() && self.state.progress.position.is_none();
        let whole = whole && !self.options.holdout.is_none();
        self.evaluator = None;
        self.evaluator = whole.then(|| self.new_evaluator());
        let is_streaming = matches!(self.state.method, Method::Streaming(_));
        let mut scratch = is_streaming.then(|| Moments::zero(self.problem.total()));
        let (table, problem, ledger) = (self.table, self.problem.clone(), self.ledger);
        let options = self.pass_options(self.state.progress.position);
        table.pass(
            &options,
            ledger,
            |batch| {
                let weights = fixed.as_ref();
                weights.map(|weights| Moments::of(batch, &problem, weights))
            },
            |batch: &mut Batch, moments: Option<Moments>, position| {
                if let Some(model) = &judged {
                    let (rows, loss) = judge(model, batch, self.evaluator.as_mut());
                    self.state.progress.judged_rows += rows;
                    self.state.progress.judged_loss += loss;
                }
                self.learn(batch, moments, scratch.as_mut())?;
                self.passed(batch, position)
            },
        )?;
        Ok(())
    }

    pub(super) fn pass_options(&self, start: Option<Position>) -> PassOptions {
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
        let problem = &self.problem;
        let (rows, total) = match (&mut self.state.method, moments, scratch) {
            (Method::Streaming(streaming), _, Some(scratch)) => streaming.learn(batch, problem, scratch),
            (Method::Adaptive(adaptive), ..) => adaptive.learn(batch, problem),
            (Method::Newton { moments: sum, .. }, Some(moments), _) => {
                sum.add(&moments);
                (moments.rows, moments.loss)
            }
            _ => unreachable!("an epoch brings what its method needs"),
        };
        let progress = &mut self.state.progress;
        progress.training_rows += rows;
        progress.loss += total;
        if progress.epoch == 0 {
            progress.prior_rows += rows;
            for row in batch.rows().filter(|row| !row.held_out) {
                match problem.outputs {
                    1 => progress.prior[0] += row.target,
                    _ => progress.prior[row.target as usize] += 1.0,
                }
            }
        }
        if !progress.loss.is_finite() {
            return Err(Error::Diverged {
                epoch: progress.epoch + 1,
            });
        }
        Ok(())
    }

    /// A piece is done: count it, say so, save now and then, stop when asked.
    fn passed(&mut self, batch: &Batch, position: Position) -> Result<ControlFlow<()>> {
        let progress = &mut self.state.progress;
        progress.rows.add(&batch.counts);
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
            rows: progress.rows.used,
            loss: self.mean_loss(),
            fed: None,
        };
        (self.sink)(event);
    }

    fn mean_loss(&self) -> Option<f64> {
        let progress = &self.state.progress;
        (progress.training_rows > 0).then(|| progress.loss / progress.training_rows as f64)
    }

    /// Says how the epoch went; `true` when the rows held out have not become better for long enough.
    fn end_epoch(&mut self) -> Result<bool> {
        let Some(mean_loss) = self.mean_loss() else {
            let rows = &self.state.progress.rows;
            return Err(Error::NoRows {
                path: self.table.source.path().to_path_buf(),
                bad: rows.bad,
                without_target: rows.without_target,
            });
        };
        if let Some(position) = self.state.progress.position {
            self.tell(position);
        }
        let (began, before) = self.began;
        let rows = self.state.progress.rows.used.saturating_sub(before);
        let rows_per_second = rows as f64 / began.elapsed().as_secs_f64().max(1e-9);
        let epoch = self.state.progress.epoch + 1;
        if epoch == 1 {
            for text in self.state.progress.rows.warnings() {
                (self.sink)(Event::Warning { text, error: None });
            }
        }
        let quality = self.evaluator.as_ref().map(Evaluator::quality);
        (self.sink)(Event::Epoch {
            epoch,
            loss: mean_loss,
            metrics: quality.unwrap_or_default().metrics,
            learning_rate: None,
            rows_per_second,
            fed: None,
        });
        Ok(self.weigh())
    }

    /// Takes the step that the epoch was for; `true` when there is nothing left to learn.
    fn step(&mut self) -> bool {
        let problem = &self.problem;
        match &mut self.state.method {
            Method::Streaming(streaming) => {
                self.state.method = Method::Newton {
                    weights: streaming.penalised(problem),
                    moments: Moments::zero(problem.total()),
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
                let step = Step::from_moments(moments, weights, problem);
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
                *moments = Moments::zero(problem.total());
                false
            }
            Method::Adaptive(_) => false,
        }
    }

    fn next_epoch(&mut self) {
        // Weights that stay as they are for a whole epoch are judged on the way; others where that decides.
        let is_judged = match &self.state.method {
            Method::Adaptive(_) => self.options.patience.is_some() && !self.options.holdout.is_none(),
            _ => true,
        };
        // The old ones go before the new ones come.
        self.state.judged = None;
        let weights = is_judged.then(|| self.state.weights(&self.problem));
        self.state.judged = weights.map(|weights| self.with_weights(weights));
        if let Method::Adaptive(adaptive) = &mut self.state.method {
            adaptive.start_epoch(&self.problem);
        }
        let progress = &mut self.state.progress;
        progress.epoch += 1;
        progress.position = None;
        progress.rows = RowReport::default();
        (progress.training_rows, progress.loss) = (0, 0.0);
        (progress.judged_rows, progress.judged_loss) = (0, 0.0);
    }

    /// A checkpoint on the way: one that cannot be written is no reason to lose the training.
    fn try_to_save(&mut self) {
        let saved = self.save();
        self.kept = matches!(saved, Ok(true));
        if let Err(error) = saved {
            self.saved = Instant::now();
            (self.sink)(Event::Warning {
                text: "no checkpoint could be written".into(),
                error: Some(error),
            });
        }
    }

    fn save(&mut self) -> Result<bool> {
        let Some(folder) = &self.options.checkpoint else {
            return Ok(false);
        };
        self.state.save(&self.settings, folder)?;
        self.saved = Instant::now();
        let progress = &self.state.progress;
        let step = progress.position.map_or(0, |position| position.piece);
        (self.sink)(Event::Checkpoint {
            epoch: progress.epoch + 1,
            step,
        });
        Ok(true)
    }

    fn report(&self, chosen: &Chosen, converged: bool) -> Report {
        let labels = self.problem.target.labels();
        let report = Report {
            metrics: Vec::new(),
            classes: labels.iter().map(|label| label.text.clone()).collect(),
            confusion: Vec::new(),
            by_class: Vec::new(),
            calibration: Vec::new(),
            residuals: None,
            rows: self.state.progress.rows.clone(),
            epochs: self.state.progress.epoch + 1,
            converged,
            early_stop: chosen.early_stop.clone(),
            training_loss: self.mean_loss().unwrap_or(f64::NAN),
            weights: largest_weights(&self.table.encoders, &chosen.model.weights),
            importance: Vec::new(),
            folds: Vec::new(),
            fed: Vec::new(),
            mistakes: Vec::new(),
            skipped_steps: 0,
        };
        report.with_quality(chosen.quality.clone())
    }
}
