//! What training makes small.

use serde::{Deserialize, Serialize};

/// A loss, the mean over samples (and over outputs, where each has several targets).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Loss {
    /// `-ln softmax(z)[class]`
    CrossEntropy {
        /// The share of a target that goes to all classes evenly.
        #[serde(default)]
        smoothing: f32,
        /// How much a sample of each class counts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        class_weights: Vec<f32>,
    },
    /// `ln(1 + e^z) - z · y`, for every output
    Binary {
        /// How much a sample of each of two values counts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        class_weights: Vec<f32>,
    },
    /// `(z - y)²`
    Mse,
    /// `|z - y|`
    Mae,
    /// `½ d²` up to `delta`, then `delta · (|d| - ½ delta)`
    Huber {
        #[serde(default = "one")]
        delta: f32,
    },
}

fn one() -> f32 {
    1.0
}

impl Loss {
    /// Targets of a sample, for so many outputs.
    pub fn n_targets(&self, outputs: usize) -> usize {
        match self {
            Loss::CrossEntropy { .. } => 1,
            _ => outputs,
        }
    }

    /// How much a sample with this target counts.
    pub fn weight(&self, target: f32) -> f32 {
        match self {
            Loss::CrossEntropy { class_weights, .. } | Loss::Binary { class_weights }
                if !class_weights.is_empty() =>
            {
                class_weights.get(target as usize).copied().unwrap_or(1.0)
            }
            _ => 1.0,
        }
    }
}
