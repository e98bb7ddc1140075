//! The verb `predict`: a model over a table, in a supervised worker within the budget.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_data::BadRows;
use tidegate_data::batch::Unseen;
use tidegate_data::images::BadFileRule;
use tidegate_memory::{Amount, Budget, resolve};
use tidegate_runs::Status;
use tidegate_train::Model;
use tidegate_train::network::NetworkModel;
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
    /// Files, folders, patterns; or one database.
    pub data: Vec<PathBuf>,
    /// What a database is asked.
    pub query: Option<String>,
    /// Standard output without it.
    pub output: Option<PathBuf>,
    /// By the name of the output where it is not said.
    pub format: Option<OutputFormat>,
    pub delimiter: Option<String>,
    pub quote: Option<String>,
    pub header: Option<bool>,
    pub bad_rows: BadRows,
    /// What to do with files that are no images.
    #[serde(default)]
    pub bad_files: BadFileRule,
    pub missing: Vec<String>,
    pub threads: Option<usize>,
}

/// How predictions are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputFormat {
    #[default]
    Csv,
    Parquet,
}

impl PredictJob {
    pub fn format(&self) -> OutputFormat {
        let is_parquet = |path: &PathBuf| {
            let ending = path.extension().and_then(|ending| ending.to_str());
            ending.is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"))
        };
        let by_name = match self.output.as_ref().is_some_and(is_parquet) {
            true => OutputFormat::Parquet,
            false => OutputFormat::Csv,
        };
        self.format.unwrap_or(by_name)
    }
}

/// Columns that are told one by one at the most: a report is one line on the wire.
pub(crate) const TOLD_COLUMNS: usize = 50;

/// What a prediction came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Predicted {
    pub rows: u64,
    /// Files that were read, or queries.
    pub files: u64,
    /// Rows left out because they cannot be read.
    pub bad: u64,
    pub first_bad: Option<String>,
    /// Columns of the model that the table lacks, and columns of the table that the model does not use.
    pub lacking: Names,
    pub unused: Names,
    /// Values that training never saw, by column.
    pub unseen: BTreeMap<String, Unseen>,
    /// Values that are not what their column should hold and count as missing, by column.
    pub broken: BTreeMap<String, BrokenColumn>,
    pub output: Option<PathBuf>,
    pub format: OutputFormat,
    pub seconds: f64,
    pub budget: u64,
    pub peak: Option<u64>,
}

/// Some columns: how many, and the first of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    pub count: u64,
    pub first: Vec<String>,
}

impl Names {
    pub(crate) fn of(names: &[&str]) -> Names {
        Names {
            count: names.len() as u64,
            first: names
                .iter()
                .take(TOLD_COLUMNS)
                .map(|name| name.to_string())
                .collect(),
        }
    }

    /// A few of them in quotes, and how many more there are.
    pub fn list(&self) -> String {
        const LISTED: usize = 8;
        let shown = self.first.iter().take(LISTED);
        let shown: Vec<String> = shown.map(|name| format!("{name:?}")).collect();
        match self.count.saturating_sub(shown.len() as u64) {
            0 => shown.join(", "),
            more => format!("{} and {more} more", shown.join(", ")),
        }
    }
}

/// Values that broke the role of their column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenColumn {
    pub values: u64,
    /// The first of them, and where it stands.
    pub first: String,
    pub place: String,
}

/// Streams predictions for every row of a table to a file or to standard output.
pub fn predict(
    session: &Session,
    job: &PredictJob,
    watch: &mut dyn FnMut(&Budget, Update),
) -> Result<Predicted> {
    let (folder, trained_in) = model_folder(session, &job.model)?;
    // What can be seen to be wrong is refused before a worker starts.
    match NetworkModel::is_in(&folder) {
        true => NetworkModel::load_design(&folder).map(|_| ())?,
        false => Model::load(&folder).map(|_| ())?,
    }
    crate::job::dialect_options(job.delimiter.as_deref(), job.quote.as_deref(), job.header)?;
    job.data.iter().try_for_each(|path| check_path(path))?;
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
        model: folder.clone(),
        packs: session.packs(),
    };
    let mut child = task.child()?;
    child.limit_bytes = Some(floor(budget.bytes));
    child.output = Output::Inherit;
    let ended = supervise(&session.host, child, &mut |update| watch(&budget, update))?;
    match (&ended.done, ended.exit_code()) {
        (Some(done), 0) => {
            let mut predicted: Predicted =
                serde_json::from_value(done.details.clone()).map_err(|error| Error::Job {
                    path: folder.clone(),
                    what: format!("the worker's report: {error}"),
                })?;
            predicted.peak = ended.peak;
            predicted.output.clone_from(&job.output);
            predicted.seconds = ended.duration.as_secs_f64();
            predicted.budget = budget.bytes;
            Ok(predicted)
        }
        _ => Err(unfinished(&ended, None)),
    }
}

/// A folder with a `model.toml`, or the model of a run with the budget it was trained in.
pub(crate) fn model_folder(session: &Session, reference: &str) -> Result<(PathBuf, Option<Amount>)> {
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
fn check_output(output: &Path, data: &[PathBuf]) -> Result<()> {
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
    let is_output = |data: &PathBuf| match (output.metadata(), data.metadata()) {
        (Ok(output), Ok(data)) => (output.dev(), output.ino()) == (data.dev(), data.ino()),
        _ => false,
    };
    if data.iter().any(is_output) {
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
