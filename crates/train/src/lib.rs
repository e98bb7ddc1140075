//! Trainers, checkpoints and model folders.
//!
//! A trainer streams a [`tidegate_data::Table`] through a model within a [`tidegate_memory::Ledger`], says
//! what happens through a [`Sink`] of typed [`Event`]s, and leaves a model folder ([`Model`]). It knows
//! nothing of runs, processes or terminals.

pub mod boost;
mod checkpoint;
mod error;
mod event;
mod exponential;
pub mod linear;
mod metrics;
mod model;
pub mod network;
mod plan;
mod predict;
mod report;
mod tensors;
mod write;

pub use checkpoint::Checkpoint;
pub use error::{Error, Result};
pub use event::{Event, Sink};
pub use linear::{RUNTIME, THREAD_BYTES};
pub use metrics::{CalibrationBin, Evaluator, Metric, Quality, Residuals};
pub use model::{Learned, Model};
pub use plan::{Alternative, Change, interval};
pub use predict::{PredictOptions, PredictedRows, Prediction, predict, predict_plan};
pub use report::{BrokenValues, ClassReport, EarlyStop, FeatureImportance, Report, RowReport};
pub use write::{present, sweep};
