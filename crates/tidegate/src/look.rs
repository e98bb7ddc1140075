//! A first look at data, for whoever has yet to say what is to be predicted: what kind they are, and the columns of a
//! table.

use serde::Serialize;
use tidegate_memory::{Budget, resolve};
use tidegate_watch::{Event, SeenColumn, Update, supervise};

use crate::train::unfinished;
use crate::worker::{Task, floor};
use crate::{Job, Result, Session};

/// A sample is looked at within so much, or less where there is less.
const MOST: u64 = 64_000_000;

/// What data are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DataKind {
    Table,
    Arrays,
    Images,
}

/// What a look shows. Arrays and images have no columns to choose from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Looked {
    pub kind: DataKind,
    /// Exactly, or a guess by the size of the first ones.
    pub rows: Option<u64>,
    pub bytes: Option<u64>,
    pub columns: Vec<SeenColumn>,
}

/// Looks at a bounded sample of the data of `job`, whose target need not be known.
pub fn look(session: &Session, job: &Job, watch: &mut dyn FnMut(&Budget, Update)) -> Result<Looked> {
    job.source_options()?;
    let mut looked = Looked {
        kind: DataKind::Table,
        rows: None,
        bytes: None,
        columns: Vec::new(),
    };
    if job.has_images() || job.has_arrays() {
        looked.kind = match job.has_images() {
            true => DataKind::Images,
            false => DataKind::Arrays,
        };
        return Ok(looked);
    }
    let budget = resolve(&session.host, job.memory)?;
    let bytes = budget.bytes.min(MOST);
    let task = Task::Look {
        job: Box::new(job.clone()),
        budget: bytes,
    };
    let mut child = task.child()?;
    child.limit_bytes = Some(floor(bytes));
    let ended = supervise(&session.host, child, &mut |update| {
        match &update {
            Update::Event(Event::Columns { columns }) => looked.columns.extend(columns.iter().cloned()),
            Update::Event(Event::Done(done)) => (looked.rows, looked.bytes) = (done.rows, done.data_bytes),
            _ => {}
        }
        watch(&budget, update);
    })?;
    match ended.exit_code() {
        0 => Ok(looked),
        _ => Err(unfinished(&ended, None)),
    }
}
