//! How a network is trained where there are several ways that come to the same, or nearly so.

use serde::{Deserialize, Serialize};

use super::moments::Moments;
use super::precision::Precision;

/// What was chosen so that a training fits. The samples of a step, and so the course of the learning rate, are those that
/// were asked for, whatever this is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Samples that are learned from at a time, and how often until a step is taken.
    pub batch: usize,
    pub accumulate: u32,
    pub precision: Precision,
    pub moments: Moments,
    /// Nodes whose values are made again on the way back.
    pub recompute: Vec<usize>,
}

impl Setting {
    /// Samples of a step.
    pub fn step(&self) -> u64 {
        self.batch as u64 * u64::from(self.accumulate)
    }
}

/// Which values are made again on the way back, rather than kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recompute {
    None,
    /// Those that take next to no time.
    Cheap,
    /// As many as make the network smaller.
    Most,
}
