//! How values are stored that wait.

use serde::{Deserialize, Serialize};

/// How what a layer made, and slopes, are stored while they wait for the way back. Arithmetic is done in `f32`, and so are
/// weights, their gradients and the loss, whatever this is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    #[default]
    F32,
    /// The range of `f32` with 8 bits of precision.
    Bf16,
    /// 11 bits of precision up to 65,504: slopes are scaled so that they are neither lost nor beyond it.
    F16,
}

impl Precision {
    /// Whether values take two bytes.
    pub fn is_half(self) -> bool {
        self != Precision::F32
    }
}
