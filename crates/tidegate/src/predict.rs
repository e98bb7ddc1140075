//! The verb `predict`: a model over a table, in a supervised worker within the budget.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_data::BadRows;
use tidegate_memory::{Amount, Budget, resolve};
use tidegate_runs::Status;
use tidegate_train::Model;
use tidegate_watch::{Output, Update, supervise};

use crate::job::check_path;
use crate::train::unfinished;
use crate::worker::{Task, floor};
use crate::{Error, Result, Session};

/// What to predict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictJob {
    pub memory: Option<Amount>,
    /// A model folder, or a run by id, name, prefix or `last`.
    pub model: String,
    pub data: PathBuf,
    /// Standard output without it.
    pub output: Option<PathBuf>,
    pub delimiter: Option<String>,
    pub quote: Option<String>,
    pub header: Option<bool>,
    pub bad_rows: BadRows,
    pub missing: Vec<String>,
    pub threads: Option<usize>,
}

/// What a prediction came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    pub rows: u64,
    pub bad: u64,
    pub first_bad: Option<String>,
    #[serde(default)]
    pub peak: Option<u64>,
}

/// Streams predictions for every row of a table to a file or to standard output.
pub fn predict(
    session: &Session,
    job: &PredictJob,
    watch: &mut dyn FnMut(&Budget, Update),
) -> Result<Predicted> {
    let (folder, trained_in) = model_folder(session, &job.model)?;
    // Both fail early and with a better place to say so than the worker's.
    Model::load(&folder)?;
    tidegate_data::Input::open(&job.data)?;
    crate::job::dialect_options(job.delimiter.as_deref(), job.quote.as_deref(), job.header)?;
    check_path(&job.data)?;
    if job.threads == Some(0) {
        let what = "--threads 0 would do nothing".into();
        return Err(Error::Usage {
            what,
            hint: "give 1 or more, or leave it out".into(),
        });
    }
    if let Some(output) = &job.output {
        check_output(output, &job.data)?;
    }
    // What was enough to train is enough to predict.
    let budget = resolve(&session.host, job.memory.or(trained_in))?;
    let task = Task::Predict {
        job: job.clone(),
        budget: budget.bytes,
        model: folder,
    };
    let mut child = task.child()?;
    child.limit_bytes = Some(floor(budget.bytes));
    child.output = Output::Inherit;
    let ended = supervise(&session.host, child, &mut |update| watch(&budget, update))?;
    match (&ended.done, ended.exit_code()) {
        (Some(done), 0) => {
            let mut predicted: Predicted =
                serde_json::from_value(done.details.clone()).map_err(|error| Error::Job {
                    path: job.data.clone(),
                    what: format!("the worker's report: {error}"),
                })?;
            predicted.peak = ended.peak;
            Ok(predicted)
        }
        _ => Err(unfinished(&ended, None)),
    }
}

/// A folder with a `model.toml`, or the model of a run with the budget it was trained in.
fn model_folder(session: &Session, reference: &str) -> Result<(PathBuf, Option<Amount>)> {
    let path = Path::new(reference);
    if path.join("model.toml").is_file() {
        return Ok((path.to_path_buf(), None));
    }
    if path.is_dir() && (reference.contains('/') || session.store.find(reference).is_err()) {
        return Err(tidegate_train::Error::NotAModel {
            path: path.into(),
            file: "model.toml",
        }
        .into());
    }
    let run = session.store.find(reference)?;
    let folder = session.store.run_dir(&run.id).model();
    if !folder.exists() {
        let status = match run.status {
            Status::Failed => "failed".into(),
            status => format!("is {}", status.as_str()),
        };
        return Err(Error::NoModel { run: run.id, status });
    }
    Ok((folder, run.budget_bytes.map(Amount::Bytes)))
}

/// Refuses a place where a file cannot appear, before anything is computed for it.
fn check_output(output: &Path, data: &Path) -> Result<()> {
    check_path(output)?;
    let usage = |what: String| {
        Err(Error::Usage {
            what,
            hint: "name a file with --output".into(),
        })
    };
    if output.is_dir() || output.file_name().is_none() {
        return usage(format!("{}: is a folder", output.display()));
    }
    if let (Ok(output), Ok(data)) = (output.metadata(), data.metadata())
        && (output.dev(), output.ino()) == (data.dev(), data.ino())
    {
        return usage("the predictions would replace the data".into());
    }
    let folder = output
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return usage(format!(
            "{}: there is no folder {}",
            output.display(),
            folder.display()
        ));
    }
    Ok(())
}
