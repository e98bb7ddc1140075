//! Where a linear training is: everything that a checkpoint has to hold.

use serde::{Deserialize, Serialize};
use tidegate_data::Position;

use super::Loss;
use super::adaptive::Adaptive;
use super::moments::Moments;
use super::newton::{Step, Streaming};
use super::plan::FULL_WIDTH;
use crate::{Checkpoint, Error, Result};

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

/// A training between two blocks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    pub progress: Progress,
    pub method: Method,
}

/// The part of the state that is plain numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// The epoch at hand, from 0.
    pub epoch: u32,
    /// Where in it; `None` at its start.
    pub position: Option<Position>,
    /// Rows of this epoch so far: all, and those learned from with their summed loss.
    pub rows: u64,
    pub training_rows: u64,
    pub loss: f64,
    /// Training rows and their summed target in the first epoch: what the baseline predicts.
    pub prior_rows: u64,
    pub prior_sum: f64,
    /// Rows left out so far in this epoch.
    pub bad: u64,
    pub without_target: u64,
    pub held_out: u64,
}

/// What must be the same for a checkpoint to be taken up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Settings {
    pub loss: Loss,
    pub l2: f64,
    /// The fingerprint of the data file.
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
    counts: Vec<u64>,
}

impl State {
    pub(super) fn new(n: usize, l2: f64) -> State {
        let method = if n <= FULL_WIDTH {
            Method::Streaming(Streaming::new(n, l2))
        } else {
            Method::Adaptive(Adaptive::new(n, l2))
        };
        let progress = Progress {
            epoch: 0,
            position: None,
            rows: 0,
            training_rows: 0,
            loss: 0.0,
            prior_rows: 0,
            prior_sum: 0.0,
            bad: 0,
            without_target: 0,
            held_out: 0,
        };
        State { progress, method }
    }

    /// The weights that the model would have if training ended here.
    pub(super) fn weights(&self) -> &[f64] {
        match &self.method {
            Method::Streaming(streaming) => &streaming.weights,
            Method::Newton { weights, .. } => weights,
            Method::Adaptive(adaptive) if adaptive.steps == 0 => &adaptive.weights,
            Method::Adaptive(adaptive) => &adaptive.average,
        }
    }

    pub(super) fn prior(&self) -> f64 {
        self.progress.prior_sum / self.progress.prior_rows.max(1) as f64
    }

    pub(super) fn checkpoint(&self, settings: Settings) -> Checkpoint {
        let saved = |method: &str, numbers: Vec<f64>, counts: Vec<u64>| {
            Checkpoint::new(&Saved {
                kind: "linear".into(),
                settings,
                method: method.into(),
                progress: self.progress.clone(),
                numbers,
                counts,
            })
        };
        match &self.method {
            Method::Streaming(streaming) => saved("streaming", vec![], vec![])
                .with("weights", &streaming.weights)
                .with("curvature", &streaming.curvature),
            Method::Adaptive(adaptive) => saved("adaptive", vec![], vec![adaptive.steps, adaptive.rows])
                .with("weights", &adaptive.weights)
                .with("squares", &adaptive.squares)
                .with("average", &adaptive.average),
            Method::Newton {
                weights,
                moments,
                last,
            } => {
                let mut numbers = vec![moments.loss, moments.targets];
                if let Some(step) = last {
                    numbers.extend([step.objective, step.promised, step.length]);
                }
                let mut checkpoint = saved("newton", numbers, vec![moments.rows])
                    .with("weights", weights)
                    .with("gradient", &moments.gradient)
                    .with("curvature", &moments.curvature);
                if let Some(step) = last {
                    checkpoint = checkpoint
                        .with("last_weights", &step.weights)
                        .with("last_direction", &step.direction);
                }
                checkpoint
            }
        }
    }

    /// Takes up a checkpoint of a training with `n` weights and the same settings.
    pub(super) fn restore(checkpoint: &Checkpoint, n: usize, settings: Settings) -> Result<State> {
        let saved: Saved = checkpoint.state()?;
        let other = |what| Err(Error::OtherCheckpoint { what });
        if saved.kind != "linear" || saved.settings.loss != settings.loss {
            return other("model");
        }
        if saved.settings.l2 != settings.l2 {
            return other("l2");
        }
        if saved.settings.data != settings.data {
            return other("data file: it has changed since");
        }
        let l2 = settings.l2;
        let tensor = |name: &str, len: usize| checkpoint.tensor(name, len);
        let weights = tensor("weights", n)?;
        let method = match (
            saved.method.as_str(),
            saved.numbers.as_slice(),
            saved.counts.as_slice(),
        ) {
            ("streaming", [], []) => Method::Streaming(Streaming {
                weights,
                curvature: tensor("curvature", n * n)?,
            }),
            ("adaptive", [], &[steps, rows]) => Method::Adaptive(Adaptive {
                weights,
                squares: tensor("squares", n)?,
                average: tensor("average", n)?,
                steps,
                l2,
                rows,
            }),
            ("newton", &[loss, targets, ref step @ ..], &[rows]) => {
                let (gradient, curvature) = (tensor("gradient", n)?, tensor("curvature", n * n)?);
                let last = match *step {
                    [objective, promised, length] => Some(Step {
                        weights: tensor("last_weights", n)?,
                        direction: tensor("last_direction", n)?,
                        objective,
                        promised,
                        length,
                    }),
                    _ => None,
                };
                Method::Newton {
                    weights,
                    moments: Moments {
                        rows,
                        loss,
                        targets,
                        gradient,
                        curvature,
                    },
                    last,
                }
            }
            _ => return Err(Error::OtherCheckpoint { what: "version" }),
        };
        Ok(State {
            progress: saved.progress,
            method,
        })
    }
}
