//! What a plan says beside its bytes, as the program tells it: of one that is asked for, and of one that a run keeps.

use serde::Deserialize;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Times {
    pub(crate) step: String,
    pub(crate) epoch: String,
    pub(crate) step_seconds: Option<f64>,
    pub(crate) epoch_seconds: Option<f64>,
    pub(crate) basis: String,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Change {
    pub(crate) knob: String,
    pub(crate) to: String,
    pub(crate) saves: u64,
    pub(crate) slowdown: Option<f64>,
    pub(crate) alters: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Alternative {
    pub(crate) what: String,
    pub(crate) how: String,
    pub(crate) peak: u64,
    pub(crate) slowdown: f64,
    pub(crate) alters: Option<String>,
}
