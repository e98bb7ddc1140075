//! Fitting by curvature: a small Newton problem per block at first, exact Newton steps afterwards.

use tidegate_data::Batch;
use tidegate_data::batch::Row;
use tidegate_data::target::Target;

use super::moments::{Moments, add};
use super::{Logarithms, Loss, curvature, encode_target, margin};

/// Newton iterations on one block at the most; blocks behind the first few need one.
const BLOCK_STEPS: usize = 12;
/// A block is solved once the loss, summed over its thousands of rows, would fall by less than this. Chance alone
/// moves it by about half a weight's worth, so solving more exactly would only fit the block's noise.
const BLOCK_TOLERANCE: f64 = 0.5;
/// Trials of a shorter step.
const HALVINGS: usize = 30;

/// What the first epoch has learned so far: `weights` minimise the loss of the rows seen, approximated by
/// its curvature. Each block is added exactly by minimising
/// `½ (w − w₀)ᵀ A (w − w₀) + Σ loss(row)`, after which A grows by the block's own curvature. With the squared
/// loss this is recursive least squares, and exact.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Streaming {
    pub weights: Vec<f64>,
    /// A, the upper triangle in rows of the width.
    pub curvature: Vec<f64>,
}

impl Streaming {
    /// Knows only the penalty.
    pub(super) fn new(n: usize, l2: f64) -> Streaming {
        let mut streaming = Streaming {
            weights: vec![0.0; n],
            curvature: vec![0.0; n * n],
        };
        add_penalty(&mut streaming.curvature, n, l2);
        streaming
    }

    /// Learns from the training rows of a batch; returns their moments before it did. `moments` is scratch.
    pub(super) fn learn(
        &mut self,
        batch: &Batch,
        loss: Loss,
        target: &Target,
        moments: &mut Moments,
    ) -> (u64, f64, f64) {
        let start = self.weights.clone();
        moments.fill(batch, loss, target, &self.weights);
        let seen = (moments.rows, moments.loss, moments.targets);
        for _ in 0..BLOCK_STEPS {
            // Gradient and curvature of the block and of the pull back to `start`.
            let mut gradient = moments.gradient.clone();
            add_pull(&mut gradient, &self.curvature, &start, &self.weights);
            let mut total = moments.curvature.clone();
            add(&mut total, &self.curvature);
            let (step, decrement) = curvature::solve(&total, &gradient);
            if decrement / 2.0 < BLOCK_TOLERANCE || loss == Loss::Squared {
                add(&mut self.weights, &step);
                break;
            }
            let here = moments.loss + self.pull(&start, &self.weights);
            let Some(weights) = self.shorter(&start, &step, here, decrement, |w| {
                block_loss(batch, loss, target, w)
            }) else {
                break;
            };
            self.weights = weights;
            moments.fill(batch, loss, target, &self.weights);
        }
        add(&mut self.curvature, &moments.curvature);
        seen
    }

    /// The longest of the steps 1, ½, ¼ … that lowers the objective as it should.
    fn shorter(
        &self,
        start: &[f64],
        step: &[f64],
        here: f64,
        decrement: f64,
        loss: impl Fn(&[f64]) -> f64,
    ) -> Option<Vec<f64>> {
        let mut length = 1.0;
        for _ in 0..HALVINGS {
            let trial = advanced(&self.weights, step, length);
            if loss(&trial) + self.pull(start, &trial) <= here - 1e-4 * length * decrement {
                return Some(trial);
            }
            length /= 2.0;
        }
        None
    }

    /// `½ (w − w₀)ᵀ A (w − w₀)`
    fn pull(&self, start: &[f64], weights: &[f64]) -> f64 {
        let mut slope = vec![0.0; weights.len()];
        add_pull(&mut slope, &self.curvature, start, weights);
        let away = weights.iter().zip(start).map(|(w, s)| w - s);
        -0.5 * slope
            .iter()
            .zip(away)
            .map(|(slope, away)| slope * away)
            .sum::<f64>()
    }
}

/// Adds `−A (w − w₀)`.
fn add_pull(gradient: &mut [f64], upper: &[f64], start: &[f64], weights: &[f64]) {
    let n = weights.len();
    for i in 0..n {
        let away = weights[i] - start[i];
        gradient[i] -= upper[i * n + i] * away;
        for j in i + 1..n {
            let a = upper[i * n + j];
            gradient[j] -= a * away;
            gradient[i] -= a * (weights[j] - start[j]);
        }
    }
}

fn block_loss(batch: &Batch, loss: Loss, target: &Target, weights: &[f64]) -> f64 {
    let mut logs = Logarithms::default();
    let rows = batch.rows().filter(|row| !row.held_out);
    let value = |row: Row| {
        let y = encode_target(target, row.target);
        loss.at(margin(weights, row), y, &mut logs).0
    };
    let sum: f64 = rows.map(value).sum();
    sum + logs.sum()
}

/// The penalty on every weight; the bias gets a trace of it, so that the matrix always has a root.
fn add_penalty(upper: &mut [f64], n: usize, l2: f64) {
    for i in 0..n {
        upper[i * n + i] += if i + 1 < n { l2 } else { 1e-9 };
    }
}

/// A step of Newton's method over the whole table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub weights: Vec<f64>,
    pub direction: Vec<f64>,
    /// The objective at `weights`.
    pub objective: f64,
    /// How far the objective should fall.
    pub promised: f64,
    pub length: f64,
}

impl Step {
    /// The step from the moments of all training rows at `weights`.
    pub(super) fn from_moments(moments: &Moments, weights: &[f64], l2: f64) -> Step {
        let n = weights.len();
        let mut gradient = moments.gradient.clone();
        let mut objective = moments.loss;
        for i in 0..n - 1 {
            gradient[i] -= l2 * weights[i];
            objective += 0.5 * l2 * weights[i] * weights[i];
        }
        let mut upper = moments.curvature.clone();
        add_penalty(&mut upper, n, l2);
        let (direction, decrement) = curvature::solve(&upper, &gradient);
        let promised = decrement / 2.0;
        // A promise of more than the whole loss comes from a point where the curvature lies: go half way there.
        let length = if promised > objective {
            0.5 * objective / promised
        } else {
            1.0
        };
        Step {
            weights: weights.to_vec(),
            direction,
            objective,
            promised,
            length,
        }
    }

    pub(super) fn target(&self) -> Vec<f64> {
        advanced(&self.weights, &self.direction, self.length)
    }

    pub(super) fn halved(&self) -> Step {
        Step {
            length: self.length / 2.0,
            ..self.clone()
        }
    }
}

fn advanced(weights: &[f64], step: &[f64], length: f64) -> Vec<f64> {
    weights.iter().zip(step).map(|(w, d)| w + length * d).collect()
}
