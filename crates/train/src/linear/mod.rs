//! A linear model over encoded columns: a number by least squares, one of two values by logistic regression, one
//! of several by softmax, with L2 and L1 penalties.
//!
//! Nothing needs tuning. While the square of the number of weights fits ([`FULL_WIDTH`]), the model is fitted by
//! its curvature: the first epoch solves a small Newton problem per piece with what was learned so far as prior
//! (`streaming`), which for least squares is already the exact solution, and later epochs take exact Newton
//! steps over the whole table (`newton`), so that a few passes reach what a solver in memory would. An L1 penalty
//! is solved on the same curvature by coordinate descent (`lasso`). Wider tables are fitted row by row, each
//! weight with its own certainty (`adaptive`); their sparse values stay sparse.
//!
//! Rows are learned from in the order of the source, pieces depend on the data alone, and sums are added in
//! their order: neither threads nor budget change a bit of the result.

mod adaptive;
mod classes;
mod curvature;
mod judge;
mod lasso;
mod loss;
mod moments;
mod newton;
mod panel;
mod plan;
mod state;
#[cfg(test)]
mod tests;
mod train;

pub use loss::{ClassWeights, Loss};
pub(crate) use plan::fit;
pub use plan::{
    FULL_WIDTH, Plan, RUNTIME, THREAD_BYTES, begun_weights, least_bytes, n_weights, plan, plan_for,
};
pub use train::{Options, Outcome, train};

use tidegate_data::Table;
use tidegate_data::batch::Row;
use tidegate_data::target::Target;

use loss::softmax;

/// Weights and bias on encoded values, and the way back to the target's unit.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearModel {
    /// For each output one weight per encoded value, the dense ones first, the bias last: all of the first
    /// output, then all of the next. A number and a binary target have one output, classes one each.
    pub weights: Vec<f64>,
    pub target: Target,
}

impl LinearModel {
    /// Scores of a row: the predicted number, the probability of the positive value, or one for each class.
    pub fn n_scores(&self) -> usize {
        outputs(&self.target)
    }

    /// Writes the scores of a row.
    #[inline]
    pub fn predict(&self, row: Row, scores: &mut [f64]) {
        let n = self.weights.len() / scores.len();
        for (score, weights) in scores.iter_mut().zip(self.weights.chunks_exact(n)) {
            *score = margin(weights, row);
        }
        match self.target {
            Target::Number { mean, deviation } => scores[0] = mean + deviation * scores[0],
            Target::Binary { .. } => scores[0] = 1.0 / (1.0 + (-scores[0]).exp()),
            Target::Classes { .. } => {
                softmax(scores);
            }
        }
    }
}

/// The number of margins that a target needs.
pub(crate) fn outputs(target: &Target) -> usize {
    match target {
        Target::Number { .. } | Target::Binary { .. } => 1,
        Target::Classes { labels } => labels.len(),
    }
}

/// What is solved: the loss with its penalties, on rows of a certain shape.
#[derive(Debug, Clone)]
struct Problem {
    loss: Loss,
    target: Target,
    /// The penalties `l1 Σ |w| + ½ l2 Σ w²` on all weights but the biases, against the summed loss.
    l1: f64,
    l2: f64,
    /// What a row of each class counts; empty where every row counts 1.
    class_weights: Vec<f64>,
    /// Weights of one output, the bias included.
    n: usize,
    outputs: usize,
}

impl Problem {
    fn new(table: &Table, options: &Options) -> Problem {
        let target = table.encoders.target.clone();
        Problem {
            loss: Loss::of(target.task()),
            l1: options.l1,
            l2: options.l2,
            class_weights: Vec::new(),
            n: table.encoders.width().total() + 1,
            outputs: outputs(&target),
            target,
        }
    }

    /// All weights.
    fn total(&self) -> usize {
        self.n * self.outputs
    }

    fn is_bias(&self, i: usize) -> bool {
        (i + 1).is_multiple_of(self.n)
    }

    /// What a row with this target counts.
    #[inline]
    fn importance(&self, target: f64) -> f64 {
        match self.class_weights.is_empty() {
            true => 1.0,
            false => self.class_weights[target as usize],
        }
    }

    /// The target in the unit that the loss works in.
    #[inline]
    fn encode_target(&self, y: f64) -> f64 {
        match self.target {
            Target::Number { mean, deviation } => (y - mean) / deviation,
            _ => y,
        }
    }

    /// `l1 Σ |w| + ½ l2 Σ w²`
    fn penalty(&self, weights: &[f64]) -> f64 {
        let free = weights.iter().enumerate().filter(|(i, _)| !self.is_bias(*i));
        free.map(|(_, w)| self.l1 * w.abs() + 0.5 * self.l2 * w * w).sum()
    }
}

/// `w·x + b`, in four sums that do not wait for each other.
#[inline]
fn margin(weights: &[f64], row: Row) -> f64 {
    let (bias, weights) = weights.split_last().expect("weights hold at least the bias");
    let (dense, sparse) = weights.split_at(row.dense.len());
    let (mut sums, mut rest) = ([0.0; 4], *bias);
    for (place, x) in row.places.iter().zip(row.values) {
        rest += sparse[*place as usize] * f64::from(*x);
    }
    let ((w4, w1), (x4, x1)) = (dense.as_chunks::<4>(), row.dense.as_chunks::<4>());
    for (w, x) in w1.iter().zip(x1) {
        rest += w * f64::from(*x);
    }
    for (w, x) in w4.iter().zip(x4) {
        for k in 0..4 {
            sums[k] += w[k] * f64::from(x[k]);
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}
