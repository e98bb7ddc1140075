//! What a worker says of a job before it does it: plain data, told on the wire, stored with the run, and shown.

use serde::{Deserialize, Serialize};

/// Who will hold what, how long it takes, what was changed so that it fits, and what else could be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub holders: Vec<(String, u64)>,
    /// The peak that is predicted.
    pub needs: u64,
    /// Between which bounds the peak is expected, by how far predictions were off before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(u64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// What the arena of a network is for: parts of the holder `network`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arena: Vec<(String, u64)>,
    /// The activations of the arena by layer, at the moment when they take the most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<(String, u64)>,
    /// What packs and unpacked arrays will take on disk, beside what is there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// `None` is unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
    /// The part of it that an accelerator holds, where one was asked about; the holders above are then the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DevicePlan>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<u64>,
}

/// How long it takes, by what was timed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// What is done again and again: `step`, `tree`; and all of it: `epoch`, `forest`.
    pub step: String,
    pub epoch: String,
    #[serde(default)]
    pub step_seconds: Option<f64>,
    #[serde(default)]
    pub epoch_seconds: Option<f64>,
    /// What was timed, in words.
    pub basis: String,
}

/// A change that makes a training smaller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub knob: String,
    /// What it is set to, in words.
    pub to: String,
    /// Bytes that it takes from the peak.
    pub saves: u64,
    /// How many times as long a step takes, where that is known.
    pub slowdown: Option<f64>,
    /// What does not stay the same, if anything.
    #[serde(default)]
    pub alters: Option<String>,
}

/// Another way to train, which was not chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    pub what: String,
    /// How to ask for it.
    pub how: String,
    /// The peak that it would have.
    pub peak: u64,
    /// How many times as long a step takes as where nothing is changed.
    pub slowdown: f64,
    #[serde(default)]
    pub alters: Option<String>,
}

/// What would be held by an accelerator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DevicePlan {
    /// The memory that was asked about, and whether it is enough.
    pub memory: u64,
    pub fits: bool,
    pub holders: Vec<(String, u64)>,
    pub needs: u64,
    /// The least memory that would do, with all that can be changed.
    pub least: u64,
    /// What is not known here, and taken to be so.
    pub assumptions: Vec<String>,
}
