//! What a trainer says while it works.

use crate::network::Fed;
use crate::{Error, Metric};

/// Something that happened in a training, in the order it happened.
#[derive(Debug)]
pub enum Event {
    /// What the job will hold, before it holds it.
    Plan {
        holders: Vec<(String, u64)>,
    },
    /// A choice that a person may want to know.
    Notice(String),
    /// Something went wrong and the training goes on without it.
    Warning {
        text: String,
        error: Option<Error>,
    },
    Progress {
        epoch: u32,
        epochs: u32,
        /// Pieces of this epoch done so far.
        step: u64,
        /// Bytes of the source read in this epoch, of so many.
        consumed: u64,
        total: u64,
        /// Rows seen in this epoch.
        rows: u64,
        /// Mean loss on the training rows of this epoch so far, before they were learned from.
        loss: Option<f64>,
        /// How this epoch is fed so far, where samples have to be brought.
        fed: Option<Fed>,
    },
    /// An epoch is over. Metrics are of the rows held out, by the weights that the epoch started with; empty
    /// in the first, and where weights that move with every row need not be judged.
    Epoch {
        epoch: u32,
        loss: f64,
        metrics: Vec<Metric>,
        /// Of its last step, where there is one.
        learning_rate: Option<f32>,
        /// Rows learned from, without the time it took to judge.
        rows_per_second: f64,
        fed: Option<Fed>,
    },
    Checkpoint {
        epoch: u32,
        step: u64,
    },
}

/// Receives events. It is called on the training thread and should be quick.
pub type Sink<'a> = dyn FnMut(Event) + 'a;
