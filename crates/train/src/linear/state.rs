//! Where a linear training is: everything that a checkpoint has to hold.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidegate_data::Position;

use super::adaptive::{Adaptive, Cell};
use super::moments::Moments;
use super::newton::{Step, Streaming};
use super::plan::FULL_WIDTH;
use super::{ClassWeights, LinearModel, Loss, Problem};
use crate::checkpoint::Draft;
use crate::tensors::Tensor;
use crate::{Checkpoint, Error, Result, RowReport};

/// The tensor of the weights that are fitted adaptively.
pub(super) const CELLS: &str = "cells";

/// The model in the making, by the way it is fitted.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Method {
    /// The first epoch of the full curvature.
    Streaming(Streaming),
    /// Later ones: the moments of this epoch so far at fixed weights, and the step that led to them.
    Newton {
        weights: Vec<f64>,
        moments: Moments,
        last: Option<Step>,
    },
    Adaptive(Adaptive),
}

/// A training between two pieces.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    pub progress: Progress,
    pub method: Method,
    /// The weights that the epoch at hand started with, where the rows held out judge them on the way.
    pub judged: Option<Arc<LinearModel>>,
    /// The best weights so far, by the rows held out.
    pub best: Option<Best>,
}

/// Weights that were judged.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Best {
    /// The epoch that they came from, counted from 1.
    pub epoch: u32,
    /// The mean loss of the rows held out.
    pub loss: f64,
    /// Often those that are judged.
    pub model: Arc<LinearModel>,
}

/// The part of the state that is plain numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// The epoch at hand, from 0.
    pub epoch: u32,
    /// Where in it; `None` at its start.
    pub position: Option<Position>,
    /// What became of the rows of this epoch so far.
    pub rows: RowReport,
    /// Rows of this epoch learned from so far, with their summed loss.
    pub training_rows: u64,
    pub loss: f64,
    /// Rows held out, with their summed loss by the weights that are judged.
    pub judged_rows: u64,
    pub judged_loss: f64,
    /// Training rows of the first epoch and what they hold: the sum of a number, or the rows of each class.
    pub prior_rows: u64,
    pub prior: Vec<f64>,
    /// All epochs are over, and whether the model had settled.
    pub finished: Option<bool>,
    /// What a row of each class counts; empty where every row counts 1.
    pub class_weights: Vec<f64>,
}

/// What must be the same for a checkpoint to be taken up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Settings {
    pub loss: Loss,
    pub l1: f64,
    pub l2: f64,
    pub class_weights: ClassWeights,
    pub patience: Option<u32>,
    /// The fingerprint of the data.
    pub data: u64,
}

/// What a checkpoint says beside its tensors.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    kind: String,
    settings: Settings,
    method: String,
    progress: Progress,
    /// Scalars of the method.
    numbers: Vec<f64>,
    /// Epoch and loss of the best weights so far.
    best: Option<(u32, f64)>,
}

impl State {
    /// At the start, with a guess at the training rows; 0 where there is none.
    pub(super) fn new(problem: &Problem, rows_guess: u64) -> State {
        let method = if problem.total() <= FULL_WIDTH {
            Method::Streaming(Streaming::new(problem))
        } else {
            Method::Adaptive(Adaptive::new(problem, rows_guess))
        };
        let progress = Progress {
            epoch: 0,
            position: None,
            rows: RowReport::default(),
            training_rows: 0,
            loss: 0.0,
            judged_rows: 0,
            judged_loss: 0.0,
            prior_rows: 0,
            prior: vec![0.0; problem.outputs],
            finished: None,
            class_weights: problem.class_weights.clone(),
        };
        State {
            progress,
            method,
            judged: None,
            best: None,
        }
    }

    /// The weights that the model would have if training ended here.
    pub(super) fn weights(&self, problem: &Problem) -> Vec<f64> {
        match &self.method {
            Method::Streaming(streaming) => streaming.penalised(problem),
            Method::Newton { weights, .. } => weights.clone(),
            Method::Adaptive(adaptive) => adaptive.weights(problem),
        }
    }

    /// Those weights in the place of the state that they come from, which is given up.
    pub(super) fn take_weights(&mut self, problem: &Problem) -> Vec<f64> {
        match &mut self.method {
            Method::Adaptive(adaptive) => adaptive.take_weights(problem),
            _ => self.weights(problem),
        }
    }

    /// The mean of a number, the share of the positives, or of each class.
    pub(super) fn prior(&self) -> Vec<f64> {
        let rows = self.progress.prior_rows.max(1) as f64;
        self.progress.prior.iter().map(|sum| sum / rows).collect()
    }

    /// Writes a checkpoint in the place of the one in `folder`.
    pub(super) fn save(&self, settings: &Settings, folder: &Path) -> Result<()> {
        let saved = |method: &str, numbers: Vec<f64>| {
            Draft::new(&Saved {
                kind: "linear".into(),
                settings: settings.clone(),
                method: method.into(),
                progress: self.progress.clone(),
                numbers,
                best: self.best.as_ref().map(|best| (best.epoch, best.loss)),
            })
        };
        let mut draft = match &self.method {
            Method::Streaming(streaming) => saved("streaming", vec![])
                .with("weights", &streaming.weights)
                .with("curvature", &streaming.curvature),
            Method::Adaptive(adaptive) => {
                // Mean and variance as the two halves of a number: files keep bits as they are.
                let bits = |i: usize| f64::from_bits(adaptive.cells[i].to_bits());
                let cells = Tensor::new(CELLS, adaptive.cells.len(), bits);
                let counts = [u64::from(adaptive.epochs), adaptive.rows, adaptive.rows_guess];
                let numbers = [adaptive.first_variance].into_iter();
                let numbers = numbers.chain(counts.map(|count| count as f64)).collect();
                saved("adaptive", numbers).with_tensor(cells)
            }
            Method::Newton {
                weights,
                moments,
                last,
            } => {
                let mut numbers = vec![moments.rows as f64, moments.loss];
                if let Some(step) = last {
                    numbers.extend([step.objective, step.promised, step.length]);
                }
                let mut draft = saved("newton", numbers)
                    .with("weights", weights)
                    .with("gradient", &moments.gradient)
                    .with("curvature", &moments.curvature);
                if let Some(step) = last {
                    draft = draft
                        .with("last_weights", &step.weights)
                        .with("last_direction", &step.direction);
                }
                draft
            }
        };
        if let Some(judged) = &self.judged {
            draft = draft.with("judged", &judged.weights);
        }
        if let Some(best) = &self.best {
            draft = draft.with("best", &best.model.weights);
        }
        draft.save(folder)
    }

    /// Takes up a checkpoint of a training of the same problem with the same settings.
    pub(super) fn restore(checkpoint: &Checkpoint, problem: &Problem, settings: &Settings) -> Result<State> {
        let saved: Saved = checkpoint.state()?;
        if saved.kind != "linear" {
            return Err(Error::OtherCheckpoint { what: "model" });
        }
        if let Some(what) = saved.settings.other(settings) {
            return Err(Error::OtherCheckpoint { what });
        }
        let n = problem.total();
        let tensor = |name: &str, len: usize| checkpoint.tensor(name, len);
        let method = match (saved.method.as_str(), saved.numbers.as_slice()) {
            ("streaming", []) => Method::Streaming(Streaming {
                weights: tensor("weights", n)?,
                curvature: tensor("curvature", n * n)?,
            }),
            ("adaptive", &[first_variance, epochs, rows, rows_guess]) => Method::Adaptive(Adaptive {
                cells: checkpoint.tensor_as(CELLS, n, |value| Cell::from_bits(value.to_bits()))?,
                first_variance,
                epochs: epochs as u32,
                rows: rows as u64,
                rows_guess: rows_guess as u64,
            }),
            ("newton", &[rows, loss, ref step @ ..]) => Method::Newton {
                weights: tensor("weights", n)?,
                moments: Moments {
                    rows: rows as u64,
                    loss,
                    gradient: tensor("gradient", n)?,
                    curvature: tensor("curvature", n * n)?,
                },
                last: match *step {
                    [objective, promised, length] => Some(Step {
                        weights: tensor("last_weights", n)?,
                        direction: tensor("last_direction", n)?,
                        objective,
                        promised,
                        length,
                    }),
                    _ => None,
                },
            },
            _ => return Err(Error::OtherCheckpoint { what: "version" }),
        };
        let model = |name: &str| -> Result<Arc<LinearModel>> {
            Ok(Arc::new(LinearModel {
                weights: tensor(name, n)?,
                target: problem.target.clone(),
            }))
        };
        let best = match saved.best {
            Some((epoch, loss)) => Some(Best {
                epoch,
                loss,
                model: model("best")?,
            }),
            None => None,
        };
        Ok(State {
            progress: saved.progress,
            method,
            judged: checkpoint.has("judged").then(|| model("judged")).transpose()?,
            best,
        })
    }
}

impl Settings {
    /// What differs, if anything does.
    fn other(&self, now: &Settings) -> Option<&'static str> {
        let differs = [
            (self.loss != now.loss, "model"),
            (self.l1 != now.l1, "l1"),
            (self.l2 != now.l2, "l2"),
            (self.class_weights != now.class_weights, "choice of class weights"),
            (self.patience != now.patience, "patience"),
            (self.data != now.data, "data file: it has changed since"),
        ];
        differs
            .iter()
            .find(|(differs, _)| *differs)
            .map(|(_, what)| *what)
    }
}
