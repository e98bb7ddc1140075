//! How a forest is trained.

use serde::{Deserialize, Serialize};

use super::objective::Objective;

/// Which leaf is split next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Growth {
    /// All of a level.
    Depth,
    /// The one that gains most.
    Leaf,
}

/// How to train. The number of threads and the budget are no part of it: they do not change the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Options {
    pub objective: Objective,
    /// Rounds; each has a tree per class.
    pub trees: usize,
    pub depth: usize,
    /// The most leaves of a tree; `None` is all that the depth allows.
    pub leaves: Option<usize>,
    pub growth: Growth,
    pub learning_rate: f64,
    /// The penalty `½ l2 Σ value²` on the values of leaves.
    pub l2: f64,
    /// The least curvature on each side of a split; for the squared loss, the least rows.
    pub min_child_weight: f64,
    pub min_gain: f64,
    /// The share of rows that each tree learns from.
    pub row_sample: f64,
    /// The share of features that each tree may split on.
    pub column_sample: f64,
    /// Stop when the loss of the held out rows has not fallen for so many rounds, and keep the best.
    pub early_stopping: Option<usize>,
    pub class_weights: Option<Vec<f32>>,
    pub seed: u64,
}

impl Options {
    pub fn new(objective: Objective) -> Options {
        Options {
            objective,
            trees: 100,
            depth: 6,
            leaves: None,
            growth: Growth::Depth,
            learning_rate: 0.1,
            l2: 1.0,
            min_child_weight: 1.0,
            min_gain: 0.0,
            row_sample: 1.0,
            column_sample: 1.0,
            early_stopping: None,
            class_weights: None,
            seed: 0,
        }
    }

    /// The most leaves that a tree can have.
    pub fn max_leaves(&self) -> usize {
        let by_depth = 1 << self.depth.clamp(1, 16);
        self.leaves.map_or(by_depth, |leaves| {
            leaves.clamp(2, 1 << 16).min(1 << self.depth.clamp(1, 30))
        })
    }
}
