//! Loss, gradient and curvature of a set of rows at given weights.

use tidegate_data::Batch;

use super::classes;
use super::loss::{Logarithms, Loss};
use super::panel::{Panel, widen};
use super::{Problem, margin};

/// Sums over rows; adding the sums of two parts gives the sums of both.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moments {
    pub rows: u64,
    pub loss: f64,
    /// Minus the gradient.
    pub gradient: Vec<f64>,
    /// The upper triangle, in rows of all weights.
    pub curvature: Vec<f64>,
}

impl Moments {
    pub(super) fn zero(total: usize) -> Moments {
        Moments {
            rows: 0,
            loss: 0.0,
            gradient: vec![0.0; total],
            curvature: vec![0.0; total * total],
        }
    }

    /// The bytes that moments of so many weights take.
    pub(super) fn bytes(total: usize) -> u64 {
        ((total * total + total) * size_of::<f64>()) as u64
    }

    /// The bytes that filling moments takes meanwhile.
    pub(super) fn panel_bytes(n: usize, outputs: usize) -> u64 {
        match outputs {
            1 => Panel::bytes(n),
            _ => Panel::bytes(n * outputs) + outputs as u64 * Panel::bytes(n),
        }
    }

    /// The sums over the training rows of a batch.
    pub(super) fn of(batch: &Batch, problem: &Problem, weights: &[f64]) -> Moments {
        let mut moments = Moments::zero(weights.len());
        moments.fill(batch, problem, weights);
        moments
    }

    /// Replaces the sums by those of the training rows of a batch.
    pub(super) fn fill(&mut self, batch: &Batch, problem: &Problem, weights: &[f64]) {
        (self.rows, self.loss) = (0, 0.0);
        self.gradient.fill(0.0);
        self.curvature.fill(0.0);
        match problem.loss {
            Loss::Softmax => classes::fill(self, batch, problem, weights),
            _ => self.fill_single(batch, problem, weights),
        }
    }

    fn fill_single(&mut self, batch: &Batch, problem: &Problem, weights: &[f64]) {
        let mut panel = Panel::new(weights.len());
        let mut logs = Sums::new(problem);
        for row in batch.rows().filter(|row| !row.held_out) {
            let (residual, weight) = logs.add(problem, margin(weights, row), row.target);
            self.rows += 1;
            let wide = panel.next();
            widen(row, wide);
            for (g, x) in self.gradient.iter_mut().zip(wide.iter()) {
                *g += residual * x;
            }
            panel.filled(weight);
        }
        self.loss = logs.total();
        panel.add_to(&mut self.curvature, weights.len(), 0);
    }

    pub(super) fn add(&mut self, other: &Moments) {
        self.rows += other.rows;
        self.loss += other.loss;
        add(&mut self.gradient, &other.gradient);
        add(&mut self.curvature, &other.curvature);
    }
}

pub(super) fn add(sum: &mut [f64], more: &[f64]) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

/// The summed loss of rows with a single margin, each class with its importance.
pub(super) struct Sums {
    /// Weights of the logarithms, one sum for each class where they differ.
    parts: Vec<(f64, Logarithms)>,
    loss: f64,
}

impl Sums {
    pub(super) fn new(problem: &Problem) -> Sums {
        let importances = match problem.class_weights.is_empty() {
            true => &[1.0],
            false => problem.class_weights.as_slice(),
        };
        Sums {
            parts: importances.iter().map(|i| (*i, Logarithms::default())).collect(),
            loss: 0.0,
        }
    }

    /// Takes in a row; returns minus the slope and the curvature.
    #[inline]
    pub(super) fn add(&mut self, problem: &Problem, z: f64, target: f64) -> (f64, f64) {
        let class = if self.parts.len() == 1 { 0 } else { target as usize };
        let (importance, logs) = &mut self.parts[class];
        let (value, residual, curvature) = problem.loss.at(z, problem.encode_target(target), logs);
        self.loss += *importance * value;
        (*importance * residual, *importance * curvature)
    }

    pub(super) fn total(&self) -> f64 {
        let logs = self
            .parts
            .iter()
            .map(|(importance, logs)| importance * logs.sum());
        self.loss + logs.sum::<f64>()
    }
}
