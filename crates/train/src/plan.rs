//! What is changed so that a training fits, what else could be, and how far a prediction may be off: told before the first
//! batch.

use serde::{Deserialize, Serialize};

/// A change that makes a training smaller, with what it saves and what it costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// What is turned: `micro-batch`, `recompute`, `precision`, `moments`, `threads`.
    pub knob: String,
    /// What it is set to, in words.
    pub to: String,
    /// Bytes that it takes from the peak.
    pub saves: u64,
    /// How many times as long a step takes.
    pub slowdown: f64,
    /// What does not stay the same, if anything.
    pub alters: Option<String>,
}

/// Another way to train, which was not chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// What would be other, in words.
    pub what: String,
    /// How to ask for it: options of the command line.
    pub how: String,
    /// The peak that it would have.
    pub peak: u64,
    /// How many times as long a step takes as where nothing is changed.
    pub slowdown: f64,
    /// What would not stay the same, if anything.
    pub alters: Option<String>,
}

/// How far the kernel's peak was below what was predicted at the most, and above it, as parts of the prediction: what
/// `benches/plan` holds all kinds of jobs to.
const MOST_OVER: f64 = 0.05;
const MOST_UNDER: f64 = 0.02;

/// Between which bounds a peak lies that is predicted to be this, under a line that holds.
pub fn interval(peak: u64, budget: u64) -> (u64, u64) {
    let part = |part: f64| (peak as f64 * part) as u64;
    let high = (peak + part(MOST_UNDER)).min(budget.max(peak));
    (peak - part(MOST_OVER), high)
}
