//! Fitting by curvature: a small Newton problem per piece at first, exact Newton steps afterwards.

use tidegate_data::Batch;

use super::moments::{Moments, Sums, add};
use super::{Loss, Problem, classes, curvature, lasso, margin};

/// Newton iterations on one piece at the most; pieces behind the first few need one.
const PIECE_STEPS: usize = 12;
/// A piece is solved once the loss, summed over its thousands of rows, would fall by less than this. Chance alone
/// moves it by about half a weight's worth, so solving more exactly would only fit the piece's noise.
const PIECE_TOLERANCE: f64 = 0.5;
/// Trials of a shorter step.
const HALVINGS: usize = 30;

/// What the first epoch has learned so far: `weights` minimise the loss of the rows seen, approximated by
/// its curvature. Each piece is added exactly by minimising
/// `½ (w − w₀)ᵀ A (w − w₀) + Σ loss(row)`, after which A grows by the piece's own curvature. With the squared
/// loss this is recursive least squares, and exact.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Streaming {
    pub weights: Vec<f64>,
    /// A, the upper triangle in rows of all weights.
    pub curvature: Vec<f64>,
}

impl Streaming {
    /// Knows only the penalty.
    pub(super) fn new(problem: &Problem) -> Streaming {
        let total = problem.total();
        let mut streaming = Streaming {
            weights: vec![0.0; total],
            curvature: vec![0.0; total * total],
        };
        add_penalty(&mut streaming.curvature, problem);
        streaming
    }

    /// Learns from the training rows of a batch; returns how many there are and their loss before it did.
    /// `moments` is scratch.
    pub(super) fn learn(&mut self, batch: &Batch, problem: &Problem, moments: &mut Moments) -> (u64, f64) {
        let start = self.weights.clone();
        moments.fill(batch, problem, &self.weights);
        let seen = (moments.rows, moments.loss);
        for _ in 0..PIECE_STEPS {
            // Gradient and curvature of the piece and of the pull back to `start`.
            let mut gradient = moments.gradient.clone();
            add_pull(&mut gradient, &self.curvature, &start, &self.weights);
            let mut total = moments.curvature.clone();
            add(&mut total, &self.curvature);
            let (step, decrement) = curvature::solve(&total, &gradient);
            if decrement / 2.0 < PIECE_TOLERANCE || problem.loss == Loss::Squared {
                add(&mut self.weights, &step);
                break;
            }
            let here = moments.loss + self.pull(&start, &self.weights);
            let Some(weights) =
                self.shorter(&start, &step, here, decrement, |w| piece_loss(batch, problem, w))
            else {
                break;
            };
            self.weights = weights;
            moments.fill(batch, problem, &self.weights);
        }
        add(&mut self.curvature, &moments.curvature);
        seen
    }

    /// The weights that the epoch ends with: L1 is added to what is known of the loss.
    pub(super) fn penalised(&self, problem: &Problem) -> Vec<f64> {
        if problem.l1 == 0.0 {
            return self.weights.clone();
        }
        let level = vec![0.0; self.weights.len()];
        let is_free = |i| problem.is_bias(i);
        lasso::descend(&self.curvature, &level, &self.weights, problem.l1, is_free).0
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

fn piece_loss(batch: &Batch, problem: &Problem, weights: &[f64]) -> f64 {
    let rows = batch.rows().filter(|row| !row.held_out);
    if problem.loss == Loss::Softmax {
        let mut p = vec![0.0; problem.outputs];
        return rows
            .map(|row| classes::probabilities(problem, weights, row, &mut p))
            .sum();
    }
    let mut sums = Sums::new(problem);
    for row in rows {
        sums.add(problem, margin(weights, row), row.target);
    }
    sums.total()
}

/// The penalty on every weight; a bias gets a trace of it, so that the matrix always has a root. The biases of
/// several classes could all move together: theirs is large enough to be seen beside the rows' rounding.
fn add_penalty(upper: &mut [f64], problem: &Problem) {
    let total = problem.total();
    let trace = if problem.outputs == 1 { 1e-9 } else { 1e-4 };
    for i in 0..total {
        upper[i * total + i] += if problem.is_bias(i) { trace } else { problem.l2 };
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
    pub(super) fn from_moments(moments: &Moments, weights: &[f64], problem: &Problem) -> Step {
        let mut gradient = moments.gradient.clone();
        for (i, g) in gradient
            .iter_mut()
            .enumerate()
            .filter(|(i, _)| !problem.is_bias(*i))
        {
            *g -= problem.l2 * weights[i];
        }
        let objective = moments.loss + problem.penalty(weights);
        let mut upper = moments.curvature.clone();
        add_penalty(&mut upper, problem);
        let (direction, promised) = if problem.l1 > 0.0 {
            let is_free = |i| problem.is_bias(i);
            let (goal, promised) = lasso::descend(&upper, &gradient, weights, problem.l1, is_free);
            (
                goal.iter().zip(weights).map(|(to, from)| to - from).collect(),
                promised,
            )
        } else {
            let (direction, decrement) = curvature::solve(&upper, &gradient);
            (direction, decrement / 2.0)
        };
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
