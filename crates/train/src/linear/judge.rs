//! Weights judged by the rows held out: on the way where they stay for an epoch, else by a pass of their own.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_data::Batch;

use super::LinearModel;
use super::state::Best;
use super::train::Training;
use crate::metrics::loss_of;
use crate::{EarlyStop, Error, Evaluator, Event, Quality, Result};

/// What the rows held out say of some weights.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    pub quality: Quality,
    /// Their mean loss; NaN without rows.
    pub loss: f64,
}

/// The weights to keep, and what the rows held out say of them.
pub(super) struct Chosen {
    pub model: Arc<LinearModel>,
    pub quality: Quality,
    pub early_stop: Option<EarlyStop>,
}

impl Chosen {
    fn new(model: Arc<LinearModel>, quality: Quality) -> Chosen {
        Chosen {
            model,
            quality,
            early_stop: None,
        }
    }
}

/// Judges the held out rows of a batch; returns how many there are and their summed loss.
pub(super) fn judge(model: &LinearModel, batch: &Batch, mut evaluator: Option<&mut Evaluator>) -> (u64, f64) {
    let mut scores = vec![0.0; model.n_scores()];
    let (mut rows, mut loss) = (0, 0.0);
    for row in batch.rows().filter(|row| row.held_out) {
        model.predict(row, &mut scores);
        rows += 1;
        loss += loss_of(model.target.task(), &scores, row.target);
        if let Some(evaluator) = &mut evaluator {
            evaluator.push(&scores, row.target);
        }
    }
    (rows, loss)
}

impl Training<'_, '_> {
    pub(super) fn new_evaluator(&self) -> Evaluator {
        Evaluator::new(self.problem.target.task(), &self.state.prior())
    }

    pub(super) fn with_weights(&self, weights: Vec<f64>) -> Arc<LinearModel> {
        Arc::new(LinearModel {
            weights,
            target: self.problem.target.clone(),
        })
    }

    /// The weights judged in this epoch are compared with the best so far; `true` when none have improved for as
    /// long as the options are patient.
    pub(super) fn weigh(&mut self) -> bool {
        let progress = &self.state.progress;
        let (Some(patience), Some(judged)) = (self.options.patience, &self.state.judged) else {
            return false;
        };
        if progress.judged_rows == 0 {
            return false;
        }
        // These weights came from the epoch before this one, whose number from 1 is this one's from 0.
        let epoch = progress.epoch;
        let loss = progress.judged_loss / progress.judged_rows as f64;
        match &self.state.best {
            Some(best) if best.loss <= loss => epoch - best.epoch >= patience.max(1),
            _ => {
                self.state.best = Some(Best {
                    epoch,
                    loss,
                    model: judged.clone(),
                });
                self.best_quality = self.evaluator.as_ref().map(Evaluator::quality);
                false
            }
        }
    }

    /// The weights to keep: the last ones, or the best where the options
    /// are patient. `None` when asked to stop meanwhile. The state that they come from is given up, but for what a
    /// checkpoint has of it.
    pub(super) fn choose(&mut self, settled: bool) -> Result<Option<Chosen>> {
        self.state.judged = None;
        let last = self.state.take_weights(&self.problem);
        let last = self.with_weights(last);
        let epochs = self.state.progress.epoch + 1;
        // Settled weights were judged in this very epoch.
        if let Some(evaluator) = self.evaluator.take().filter(|_| settled) {
            return Ok(Some(Chosen::new(last, evaluator.quality())));
        }
        if self.options.holdout.is_none() {
            return Ok(Some(Chosen::new(last, Quality::default())));
        }
        let stopped_early = self.state.best.as_ref().is_some_and(|best| {
            let patience = self.options.patience.unwrap_or(u32::MAX).max(1);
            self.state.progress.epoch - best.epoch >= patience
        });
        if !stopped_early || settled {
            let Some(verdict) = self.evaluate(&last)? else {
                return Ok(None);
            };
            let is_best = match &self.state.best {
                Some(best) => settled || verdict.loss < best.loss || verdict.loss.is_nan(),
                None => true,
            };
            if is_best {
                return Ok(Some(Chosen::new(last, verdict.quality)));
            }
        }
        let best = self.state.best.take().expect("there is a better one");
        let quality = match self.best_quality.take() {
            Some(quality) => quality,
            None => match self.evaluate(&best.model)? {
                Some(verdict) => verdict.quality,
                None => return Ok(None),
            },
        };
        let early = EarlyStop {
            best_epoch: best.epoch,
            epochs,
            loss: best.loss,
        };
        (self.sink)(Event::Notice(format!(
            "the weights of epoch {} are kept: later ones were no better on the rows held out",
            best.epoch
        )));
        Ok(Some(Chosen {
            early_stop: Some(early),
            ..Chosen::new(best.model, quality)
        }))
    }

    /// Judges weights by one more pass; `None` when asked to stop meanwhile.
    fn evaluate(&mut self, model: &LinearModel) -> Result<Option<Verdict>> {
        (self.sink)(Event::Notice(
            "one more pass to judge the model by the rows held out".into(),
        ));
        let (mut evaluator, stop) = (self.new_evaluator(), self.stop);
        let (mut rows, mut loss) = (0, 0.0);
        let judged = |batch: &mut Batch, (), _| {
            let (more, sum) = judge(model, batch, Some(&mut evaluator));
            (rows, loss) = (rows + more, loss + sum);
            Ok::<_, Error>(match stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        };
        self.table
            .pass(&self.pass_options(None), self.ledger, |_| (), judged)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        Ok(Some(Verdict {
            quality: evaluator.quality(),
            loss: loss / rows as f64,
        }))
    }
}
