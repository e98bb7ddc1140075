//! A linear model over standardised numeric columns: a number by least squares, or one of two values by
//! logistic regression, with an L2 penalty.
//!
//! Nothing needs tuning. While the square of the width fits ([`FULL_WIDTH`]), the model is fitted by its
//! curvature: the first epoch solves a small Newton problem per block with what was learned so far as prior
//! (`streaming`), which for least squares is already the exact solution, and later epochs take exact Newton
//! steps over the whole table (`newton`), so that a few passes reach what a solver in memory would. Wider
//! tables are fitted by adaptive steps, one learning rate a weight (`adaptive`).
//!
//! Rows are learned from in the order of the file, blocks depend on the file alone, and sums are added in
//! block order: neither threads nor budget change a bit of the result.

mod adaptive;
mod curvature;
mod moments;
mod newton;
mod plan;
mod state;
mod train;

pub use plan::{FULL_WIDTH, Plan, plan};
pub(crate) use plan::{THREAD_BYTES, fit};
pub use train::{Options, Outcome, train};

use serde::{Deserialize, Serialize};
use tidegate_data::batch::Row;
use tidegate_data::target::{Target, Task};

use crate::{Error, Result};

/// What is minimised over the margin `z = w·x`, in the units of the encoded target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loss {
    /// `½ (y − z)²`
    Squared,
    /// `ln(1 + e^z) − y z`
    Logistic,
}

impl Loss {
    pub fn of(task: Task) -> Result<Loss> {
        match task {
            Task::Regression => Ok(Loss::Squared),
            Task::Binary => Ok(Loss::Logistic),
            Task::Multiclass => Err(Error::ManyClasses),
        }
    }

    /// The loss, minus its slope, and its curvature at margin `z`. Of the logistic loss the part `ln(1 + e^−|z|)`
    /// is left to `logs`.
    #[inline]
    fn at(self, z: f64, y: f64, logs: &mut Logarithms) -> (f64, f64, f64) {
        match self {
            Loss::Squared => {
                let residual = y - z;
                (0.5 * residual * residual, residual, 1.0)
            }
            Loss::Logistic => {
                // One exponential serves all: e^−|z| never overflows.
                let e = (-z.abs()).exp();
                logs.add(1.0 + e);
                let q = 1.0 / (1.0 + e);
                let p = if z >= 0.0 { q } else { e * q };
                (z.max(0.0) - y * z, y - p, p * (1.0 - p))
            }
        }
    }
}

/// A sum of logarithms of numbers from 1 to 2, taken as the logarithm of their product: one call for many rows.
#[derive(Debug)]
struct Logarithms {
    product: f64,
    factors: u32,
    sum: f64,
}

impl Default for Logarithms {
    fn default() -> Logarithms {
        Logarithms {
            product: 1.0,
            factors: 0,
            sum: 0.0,
        }
    }
}

impl Logarithms {
    #[inline]
    fn add(&mut self, factor: f64) {
        self.product *= factor;
        self.factors += 1;
        // 2^512 is far from overflow.
        if self.factors == 512 {
            self.sum += self.product.ln();
            (self.product, self.factors) = (1.0, 0);
        }
    }

    fn sum(&self) -> f64 {
        self.sum + self.product.ln()
    }
}

/// Weights and bias on encoded values, and the way back to the target's unit.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearModel {
    /// One weight per encoded value, the bias last.
    pub weights: Vec<f64>,
    pub target: Target,
}

impl LinearModel {
    /// The predicted number, or the probability of the positive value.
    #[inline]
    pub fn predict(&self, row: Row) -> f64 {
        let z = margin(&self.weights, row);
        match self.target {
            Target::Number { mean, deviation } => mean + deviation * z,
            Target::Binary { .. } | Target::Classes { .. } => 1.0 / (1.0 + (-z).exp()),
        }
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

/// The target in the unit that the loss works in.
#[inline]
fn encode_target(target: &Target, y: f64) -> f64 {
    match target {
        Target::Number { mean, deviation } => (y - mean) / deviation,
        Target::Binary { .. } | Target::Classes { .. } => y,
    }
}
