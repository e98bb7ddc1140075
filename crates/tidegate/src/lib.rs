//! The verbs of Tidegate as a library: what the command line and other front ends call.
//!
//! A verb takes a [`Job`] that has been checked, does its work in a supervised child ([`worker`]) where it
//! touches data, and returns plain data. Printing is the command line's business.

mod demo;
mod doctor;
mod error;
mod explain;
mod job;
mod look;
mod packs;
mod plan;
mod predict;
mod preview;
mod run;
mod session;
mod stop;
mod table;
mod train;
mod ui;
mod why;
pub mod worker;

pub use demo::{DemoOptions, Proof, Step, demo};
pub use doctor::{Diagnosis, DiskSpeed, diagnose};
pub use error::{Error, Result};
pub use explain::{ColumnImportance, EncodedImportance, Explained, Importance, explain, explain_model};
pub use job::{
    Auto, ClassWeights, DataPart, Growth, ImageSize, ImagesPart, Job, KeepAs, ModelKind, ModelPart,
    ScheduleChoice, TrainPart, Worded,
};
pub use look::{DataKind, Looked, look};
pub use packs::{Pack, PackedRows, Packs, PruneOptions, Pruned, packs, prune_packs};
pub use plan::{Encoding, Planned, plan};
pub use predict::{BrokenColumn, Names, OutputFormat, PredictJob, Predicted, predict};
pub use preview::{Previewed, mistakes, preview};
pub use run::{Command, Ran, run};
pub use session::Session;
pub use stop::{HowToStop, stop};
pub use table::write_table;
pub use train::{Trained, resume, train};
pub use ui::{Ui, UiOptions, ui};
pub use why::{Explanation, explain_foreign, explain_run};
