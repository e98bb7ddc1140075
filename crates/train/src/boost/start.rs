//! What has to be known of all rows before the first tree: how many there are, and where the margins start.

use std::sync::Mutex;

use super::crew::Crew;
use super::objective::{Losses, Objective};
use super::pass::{Halt, Route, pass};
use super::rows::{Block, Part};
use super::state::Pieces;

/// Counts and extremes of the targets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Facts {
    /// Rows to learn from and rows held out.
    pub(super) n_training: u64,
    pub(super) n_held_out: u64,
    /// By class; empty for numbers.
    pub(super) training_classes: Vec<u64>,
    pub(super) held_out_classes: Vec<u64>,
    sum: f64,
    least: f32,
    most: f32,
    /// Targets that are no finite number, or no class.
    pub(super) n_impossible: u64,
}

impl Facts {
    fn none(n_classes: usize) -> Facts {
        Facts {
            n_training: 0,
            n_held_out: 0,
            training_classes: vec![0; n_classes],
            held_out_classes: vec![0; n_classes],
            sum: 0.0,
            least: f32::INFINITY,
            most: f32::NEG_INFINITY,
            n_impossible: 0,
        }
    }

    fn of(block: &Block<'_>, n_classes: usize) -> Facts {
        let mut facts = Facts::none(n_classes);
        for (&target, &held_out) in block.target.iter().zip(block.held_out) {
            let known =
                n_classes == 0 || (target.fract() == 0.0 && (0.0..n_classes as f32).contains(&target));
            if !target.is_finite() || !known {
                facts.n_impossible += 1;
                continue;
            }
            let classes = if held_out == 0 {
                facts.n_training += 1;
                facts.sum += f64::from(target);
                facts.least = facts.least.min(target);
                facts.most = facts.most.max(target);
                &mut facts.training_classes
            } else {
                facts.n_held_out += 1;
                &mut facts.held_out_classes
            };
            if n_classes > 0 {
                classes[target as usize] += 1;
            }
        }
        facts
    }

    fn add(&mut self, other: &Facts) {
        self.n_training += other.n_training;
        self.n_held_out += other.n_held_out;
        for (mine, others) in [
            (&mut self.training_classes, &other.training_classes),
            (&mut self.held_out_classes, &other.held_out_classes),
        ] {
            for (mine, other) in mine.iter_mut().zip(others) {
                *mine += other;
            }
        }
        self.sum += other.sum;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.n_impossible += other.n_impossible;
    }

    /// The margins of the best constant: the mean, the log-odds, or the logarithms of the shares.
    pub(super) fn base(&self, objective: Objective, weights: &[f32]) -> Vec<f32> {
        // A class without rows gets a share that a margin can still leave.
        let share = |class: usize| {
            let of = |class: usize| self.training_classes[class] as f64 * f64::from(weights[class]);
            let all: f64 = (0..self.training_classes.len()).map(of).sum();
            (of(class) / all).clamp(1e-6, 1.0 - 1e-6)
        };
        match objective {
            Objective::Squared => vec![(self.sum / self.n_training as f64) as f32],
            Objective::Logistic => vec![(share(1) / (1.0 - share(1))).ln() as f32],
            Objective::Softmax(classes) => (0..classes).map(|class| share(class).ln() as f32).collect(),
        }
    }

    /// The largest distance of a training target from `base`.
    pub(super) fn largest_residual(&self, base: f32) -> f32 {
        (self.most - base).abs().max((self.least - base).abs())
    }

    /// The share of each class, or the mean: what the trivial model predicts.
    pub(super) fn priors(&self, objective: Objective) -> Vec<f64> {
        let n = self.n_training as f64;
        match objective {
            Objective::Squared => vec![self.sum / n],
            Objective::Logistic => vec![self.training_classes[1] as f64 / n],
            Objective::Softmax(_) => self
                .training_classes
                .iter()
                .map(|rows| *rows as f64 / n)
                .collect(),
        }
    }

    /// Summed losses per weight of the rows; no held out loss without held out rows.
    pub(super) fn mean(&self, losses: Losses, weights: &[f32]) -> (f64, Option<f64>) {
        let weight = |rows: u64, classes: &[u64]| {
            let weighted = classes
                .iter()
                .zip(weights)
                .map(|(rows, weight)| *rows as f64 * f64::from(*weight));
            if classes.is_empty() {
                rows as f64
            } else {
                weighted.sum()
            }
        };
        let training = losses.training / weight(self.n_training, &self.training_classes);
        let held_out = losses.held_out / weight(self.n_held_out, &self.held_out_classes);
        (training, (self.n_held_out > 0).then_some(held_out))
    }
}

/// Looks at all targets once.
pub(super) fn facts(crew: &mut Crew<'_>, objective: Objective) -> Result<Facts, Halt> {
    let n_classes = match objective {
        Objective::Squared => 0,
        Objective::Logistic => 2,
        Objective::Softmax(classes) => classes,
    };
    // Kept apart until all are there, because sums of floats depend on their order.
    let found = Mutex::new(vec![None; crew.site.blocks.n_blocks()]);
    let route = Route {
        rows: Part::Labels,
        reads: Pieces::default(),
        writes: Pieces::default(),
        in_order: false,
    };
    pass(
        crew,
        &route,
        &|_, visited, _| {
            let facts = Facts::of(&visited.rows, n_classes);
            found.lock().expect("no thread panics with it")[visited.number] = Some(facts);
            Losses::default()
        },
        &|_| {},
    )?;
    let mut facts = Facts::none(n_classes);
    for block in found
        .into_inner()
        .expect("no thread panics with it")
        .iter()
        .flatten()
    {
        facts.add(block);
    }
    Ok(facts)
}
