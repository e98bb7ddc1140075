//! What is minimised: the losses, their slopes and curvatures, and the weight of a class in them.

use serde::{Deserialize, Serialize};
use tidegate_data::target::{Target, Task};

use crate::{Error, Result};

/// What is minimised over the margins `z = w·x`, in the units of the encoded target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loss {
    /// `½ (y − z)²`
    Squared,
    /// `ln(1 + e^z) − y z`
    Logistic,
    /// `ln Σ e^z_k − z_y`, with a margin for each class. All K have weights of their own: the penalty makes the
    /// solution unique, and no class is treated unlike the others.
    Softmax,
}

impl Loss {
    pub fn of(task: Task) -> Loss {
        match task {
            Task::Regression => Loss::Squared,
            Task::Binary => Loss::Logistic,
            Task::Multiclass => Loss::Softmax,
        }
    }

    /// The loss, minus its slope, and its curvature at a single margin `z`. Of the logistic loss the part
    /// `ln(1 + e^−|z|)` is left to `logs`.
    #[inline]
    pub(super) fn at(self, z: f64, y: f64, logs: &mut Logarithms) -> (f64, f64, f64) {
        match self {
            Loss::Squared => {
                let residual = y - z;
                (0.5 * residual * residual, residual, 1.0)
            }
            _ => {
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

/// Replaces margins by probabilities; returns `ln Σ e^z`.
#[inline]
pub(super) fn softmax(margins: &mut [f64]) -> f64 {
    let highest = margins.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for z in margins.iter_mut() {
        *z = (*z - highest).exp();
        sum += *z;
    }
    margins.iter_mut().for_each(|z| *z /= sum);
    highest + sum.ln()
}

/// A sum of logarithms of numbers from 1 to 2, taken as the logarithm of their product: one call for many rows.
#[derive(Debug)]
pub(super) struct Logarithms {
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
    pub(super) fn add(&mut self, factor: f64) {
        self.product *= factor;
        self.factors += 1;
        // 2^512 is far from overflow.
        if self.factors == 512 {
            self.sum += self.product.ln();
            (self.product, self.factors) = (1.0, 0);
        }
    }

    pub(super) fn sum(&self) -> f64 {
        self.sum + self.product.ln()
    }
}

/// How much the rows of each class count in the loss.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassWeights {
    /// Every row counts 1.
    #[default]
    None,
    /// `n / (K n_k)`: all classes together count the same.
    Balanced,
    /// One weight for each value of the target, in their order.
    Explicit(Vec<f64>),
}

impl ClassWeights {
    /// Refuses weights that do not fit the target.
    pub(super) fn check(&self, target: &Target) -> Result<()> {
        let classes = target.labels().len();
        let fits = match self {
            ClassWeights::None => true,
            ClassWeights::Balanced => classes > 0,
            ClassWeights::Explicit(weights) => {
                let total: f64 = weights.iter().sum();
                classes > 0
                    && weights.len() == classes
                    && total > 0.0
                    && weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0)
            }
        };
        match fits {
            true => Ok(()),
            false => Err(Error::ClassWeights { classes }),
        }
    }

    /// The weight of each class by the rows that it has; empty where all count 1.
    pub(super) fn resolve(&self, counts: &[u64]) -> Vec<f64> {
        let total: u64 = counts.iter().sum();
        let balanced = |count: &u64| total as f64 / (counts.len() as f64 * (*count).max(1) as f64);
        match self {
            ClassWeights::None => Vec::new(),
            ClassWeights::Balanced => counts.iter().map(balanced).collect(),
            ClassWeights::Explicit(weights) => weights.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_of_any_margins() {
        for margins in [[0.0, 0.0, 0.0], [1e4, -1e4, 3.0], [-700.0, -701.0, -702.0]] {
            let mut p = margins;
            let total = softmax(&mut p);
            assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{p:?}");
            // −ln p of the first is the loss of a row of the first class.
            assert!((total - margins[0] + p[0].ln()).abs() < 1e-9 || p[0] == 0.0);
        }
    }

    #[test]
    fn balanced_classes_count_the_same() {
        assert_eq!(ClassWeights::Balanced.resolve(&[30, 10]), [40.0 / 60.0, 2.0]);
        assert!(ClassWeights::None.resolve(&[30, 10]).is_empty());
    }
}
