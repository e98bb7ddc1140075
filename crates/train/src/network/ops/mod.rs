//! The operations of programs, one file per kind of layer: forward, and back.

pub(crate) mod batch_norm;
pub(crate) mod conv;
pub(crate) mod dense;
pub(crate) mod depthwise;
pub(crate) mod embedding;
pub(crate) mod half;
pub(crate) mod loss;
pub(crate) mod norm;
pub(crate) mod pointwise;
pub(crate) mod pool;
pub(crate) mod sparse;
pub(crate) mod update;
