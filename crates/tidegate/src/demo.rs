//! The verb `demo`: a table several times larger than the budget, trained under the limit, with the proof.

use std::path::PathBuf;

use serde::Serialize;
use tidegate_memory::{Amount, Budget, resolve};
use tidegate_watch::Update;

use crate::doctor::free_space;
use crate::{Error, Job, ModelKind, Result, Session, Trained, train, write_table};

/// What to demonstrate.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    pub memory: Amount,
    /// How many times larger than the budget the table is.
    pub times: f64,
    pub seed: u64,
    /// Leave the table where it is.
    pub keep: bool,
}

/// What the demonstration showed.
#[derive(Debug, Clone, Serialize)]
pub struct Proof {
    pub data: PathBuf,
    pub data_bytes: u64,
    pub rows: u64,
    pub trained: Trained,
    /// Every peak that was measured is within the budget, one was, and no OOM kill was counted.
    pub held: bool,
}

/// What a demonstration says on its way.
pub enum Step<'a> {
    Writing { bytes: u64, of: u64 },
    Training(&'a Budget, Update<'a>),
}

/// Makes a table up, trains on it under the limit and returns the figures.
pub fn demo(session: &Session, options: &DemoOptions, watch: &mut dyn FnMut(Step)) -> Result<Proof> {
    let budget = resolve(&session.host, Some(options.memory))?;
    let bytes = (budget.bytes as f64 * options.times) as u64;
    let folder = session.store.home().join("demo");
    let failed = |source| Error::Io {
        path: folder.clone(),
        what: "cannot be made",
        source,
    };
    std::fs::create_dir_all(&folder).map_err(failed)?;
    if let Some(free) = free_space(&folder)
        && free < bytes + bytes / 10
    {
        return Err(Error::DiskTooSmall {
            path: folder,
            needed: bytes + bytes / 10,
            free,
        });
    }
    let table = Table {
        path: folder.join(format!("table-{}.csv", std::process::id())),
        keep: options.keep,
    };
    let rows = write_table(&table.path, bytes, options.seed, |written| {
        watch(Step::Writing {
            bytes: written,
            of: bytes,
        })
    })?;
    let data_bytes = std::fs::metadata(&table.path).map_or(bytes, |metadata| metadata.len());
    let mut job = Job::new(vec![table.path.clone()], "y");
    job.memory = Some(options.memory);
    job.name = Some("demo".into());
    // The table follows a linear rule, and its model is fitted in a few passes over all of it: the streaming is what
    // is shown, in seconds where a hundred trees would take minutes.
    job.model.kind = ModelKind::Linear;
    // Where the table goes, nobody would read its pack again.
    job.train.pack = options.keep;
    let trained = train(session, &job, &mut |budget, update| {
        watch(Step::Training(budget, update))
    })
    .map_err(without_resume)?;
    let (run, line) = (&trained.run, trained.budget.bytes);
    let within = |peak: Option<u64>| peak.is_none_or(|peak| peak <= line);
    let held = run.peak_bytes.is_some()
        && within(run.peak_bytes)
        && within(run.resident_peak_bytes)
        && run.oom_kills.is_none_or(|kills| kills == 0);
    Ok(Proof {
        data: table.path.clone(),
        data_bytes,
        rows,
        trained,
        held,
    })
}

/// The table goes with the demonstration, so there is nothing to resume.
fn without_resume(error: Error) -> Error {
    match error {
        Error::Ended {
            message,
            exit_code: exit_code @ (130 | 143),
            run,
            ..
        } => {
            let hint = Some("the table is gone: start the demo anew".into());
            Error::Ended {
                message,
                hint,
                exit_code,
                run,
                least: None,
            }
        }
        error => error,
    }
}

/// The table on disk, removed in the end whatever happens.
struct Table {
    path: PathBuf,
    keep: bool,
}

impl Drop for Table {
    fn drop(&mut self) {
        if !self.keep {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
