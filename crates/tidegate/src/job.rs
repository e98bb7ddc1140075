//! What is asked for, fully resolved: one value that is checked before a byte of data is read.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_data::csv::DialectOptions;
use tidegate_data::filter::SampleSize;
use tidegate_data::{Condition, Features, SourceOptions, TableOptions};
use tidegate_memory::Amount;

use crate::{Error, Result};

mod parts;

pub use parts::{ClassWeights, DataPart, Growth, ModelKind, ModelPart, TrainPart};

/// Deeper trees than this take more memory for their nodes than any data is worth.
const MOST_DEPTH: u32 = 16;

/// A training job, as `job.toml` holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The budget; resolved against the machine when the job starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Amount>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub data: DataPart,
    /// What is said about single columns; the rest is inferred.
    #[serde(default, skip_serializing_if = "Features::is_empty")]
    pub features: Features,
    #[serde(default)]
    pub model: ModelPart,
    #[serde(default)]
    pub train: TrainPart,
}

impl Job {
    /// A job with everything but data and target inferred.
    pub fn new(paths: Vec<PathBuf>, target: impl Into<String>) -> Job {
        Job {
            memory: None,
            name: None,
            data: DataPart::new(paths, target.into()),
            features: Features::new(),
            model: ModelPart::default(),
            train: TrainPart::default(),
        }
    }

    /// Reads a job file; paths in it are relative to its folder.
    pub fn read(path: &Path) -> Result<Job> {
        let text = std::fs::read_to_string(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::Data(tidegate_data::Error::NotFound { path: path.into() }),
            _ => Error::Io {
                path: path.into(),
                what: "the job file cannot be read",
                source,
            },
        })?;
        let mut job: Job = toml::from_str(&text).map_err(|error| Error::Job {
            path: path.into(),
            what: one_line(&error, &text),
        })?;
        for data in &mut job.data.paths {
            if let (true, Some(folder)) = (data.is_relative() && !is_url(data), path.parent()) {
                *data = folder.join(&data);
            }
        }
        Ok(job)
    }

    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a job is plain data")
    }

    /// Refuses what can be seen to be wrong without looking at the data's contents.
    pub fn check(&self) -> Result<()> {
        let usage = |what: String, hint: &str| {
            Err(Error::Usage {
                what,
                hint: hint.into(),
            })
        };
        let (data, model, train) = (&self.data, &self.model, &self.train);
        if !(0.0..1.0).contains(&data.holdout) {
            return usage(
                format!("--holdout {} is not a share of the rows", data.holdout),
                "0 holds out nothing, 0.1 every tenth row",
            );
        }
        for (name, value, default) in [("l1", model.l1, 0), ("l2", model.l2, 1)] {
            if !(value.is_finite() && value >= 0.0) {
                let hint = format!("give 0 or more; {default} is the default");
                return usage(format!("--{name} {value} is not a penalty"), &hint);
            }
        }
        for (name, value) in [
            ("row-sample", model.row_sample),
            ("column-sample", model.column_sample),
        ] {
            if !(value > 0.0 && value <= 1.0) {
                return usage(
                    format!("--{name} {value} is not a share"),
                    "give more than 0, at most 1",
                );
            }
        }
        if !(model.learning_rate > 0.0 && model.learning_rate <= 10.0) {
            return usage(
                format!("--learning-rate {} would not learn", model.learning_rate),
                "give more than 0; 0.1 is the default",
            );
        }
        if !(model.min_child_weight.is_finite() && model.min_child_weight >= 0.0) {
            return usage(
                format!("--min-child-weight {} is not a weight", model.min_child_weight),
                "give 0 or more; 1 is the default",
            );
        }
        if model.trees == 0 || model.depth == 0 || model.leaves.is_some_and(|leaves| leaves < 2) {
            return usage(
                "a forest needs a tree, a tree a split".into(),
                "give --trees and --depth of 1 or more, --leaves of 2 or more",
            );
        }
        if model.depth > MOST_DEPTH {
            return usage(
                format!("--depth {} is more than trees may have", model.depth),
                "give 16 at the most; --leaves bounds a tree without bounding its depth",
            );
        }
        if train.epochs == 0 {
            return usage("--epochs 0 would learn nothing".into(), "give 1 or more");
        }
        if train.threads == Some(0) {
            return usage(
                "--threads 0 would do nothing".into(),
                "give 1 or more, or leave it out",
            );
        }
        if train.patience == Some(0) {
            return usage(
                "--patience 0 would end at once".into(),
                "give 1 or more, or leave it out",
            );
        }
        if train.patience.is_some() && data.holdout == 0.0 && train.folds.is_none() {
            return usage(
                "--patience needs rows to judge by".into(),
                "hold some out: --holdout 0.1",
            );
        }
        if train.folds.is_some_and(|folds| !(2..=100).contains(&folds)) {
            return usage(
                "--folds is not a number of folds".into(),
                "give 2 to 100; 5 is usual",
            );
        }
        if data
            .sample
            .is_some_and(|sample| !(sample.is_finite() && sample > 0.0))
        {
            return usage(
                "--sample is neither a number of rows nor a share".into(),
                "give 100000 for so many rows, 0.1 for a tenth of them",
            );
        }
        if data.paths.is_empty() {
            return usage(
                "there is no data to read".into(),
                "name a file, a folder or a pattern",
            );
        }
        for (column, options) in &self.features {
            if let Err(wrong) = options.check(column) {
                return usage(wrong.to_string(), &wrong.hint);
            }
        }
        self.source_options()?;
        self.table_options()?;
        for path in &data.paths {
            check_path(path)?;
            let pattern = path.to_string_lossy().contains(['*', '?', '[']);
            // Folders, patterns and databases are looked into by the worker.
            if !is_url(path) && !path.is_dir() && (!pattern || path.exists()) {
                tidegate_data::Input::open(path)?;
            }
        }
        Ok(())
    }

    /// How the source is read.
    pub fn source_options(&self) -> Result<SourceOptions> {
        let data = &self.data;
        Ok(SourceOptions {
            dialect: dialect_options(data.delimiter.as_deref(), data.quote.as_deref(), data.header)?,
            missing: data.missing.clone(),
            query: data.query.clone(),
        })
    }

    /// How its rows are used.
    pub fn table_options(&self) -> Result<TableOptions> {
        let condition = self.data.condition.as_deref().map(Condition::new).transpose()?;
        let sample = self.data.sample.map(|sample| match sample < 1.0 {
            true => SampleSize::Share(sample),
            false => SampleSize::Rows(sample as u64),
        });
        Ok(TableOptions {
            bad_rows: self.data.bad_rows,
            missing: self.data.missing.clone(),
            task: self.model.task,
            columns: self.data.columns.clone(),
            ignore: self.data.ignore.clone(),
            features: self.features.clone(),
            condition,
            sample,
            seed: self.train.seed,
        })
    }

    /// Threads to use: what was asked, or one for each core.
    pub fn threads(&self) -> usize {
        self.train.threads.unwrap_or_else(crate::worker::default_threads)
    }
}

/// Whether a path is the address of a database.
pub(crate) fn is_url(path: &Path) -> bool {
    path.to_str()
        .is_some_and(|text| text.starts_with("postgres://") || text.starts_with("postgresql://"))
}

/// Refuses a path that cannot be written down: jobs are text.
pub(crate) fn check_path(path: &Path) -> Result<()> {
    match path.to_str() {
        Some(_) => Ok(()),
        None => Err(Error::Usage {
            what: format!("{}: the name is not UTF-8", path.display()),
            hint: "rename the file".into(),
        }),
    }
}

/// Turns the words for separator and quote into bytes.
pub(crate) fn dialect_options(
    delimiter: Option<&str>,
    quote: Option<&str>,
    header: Option<bool>,
) -> Result<DialectOptions> {
    let byte = |option: &str, text: &str| match text {
        "tab" | "\\t" => Ok(b'\t'),
        "space" => Ok(b' '),
        "comma" => Ok(b','),
        "semicolon" => Ok(b';'),
        "pipe" => Ok(b'|'),
        _ => match text.as_bytes() {
            [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(*byte),
            _ => Err(Error::Usage {
                what: format!("--{option} {text:?} is not one ASCII character"),
                hint: format!(
                    "give a character such as --{option} ';', or tab, space, comma, semicolon, pipe"
                ),
            }),
        },
    };
    let quote = match quote {
        None => None,
        Some("none") => Some(None),
        Some(text) => Some(Some(byte("quote", text)?)),
    };
    let delimiter = delimiter.map(|text| byte("delimiter", text)).transpose()?;
    if delimiter.is_some() && quote == Some(delimiter) {
        return Err(Error::Usage {
            what: "separator and quote are the same character".into(),
            hint: "if fields are never quoted, say --quote none".into(),
        });
    }
    Ok(DialectOptions {
        delimiter,
        quote,
        header,
    })
}

/// A TOML error with its line, without the drawing.
fn one_line(error: &toml::de::Error, text: &str) -> String {
    let line = error
        .span()
        .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    match line {
        Some(line) => format!("line {line}: {}", error.message()),
        None => error.message().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_comes_back_from_its_file() {
        let mut job = Job::new(vec!["/data/flights.csv".into()], "delayed");
        job.memory = Some("1GB".parse().unwrap());
        job.data.quote = Some("none".into());
        job.model.task = Some(tidegate_data::target::Task::Binary);
        let read: Job = toml::from_str(&job.to_toml()).unwrap();
        assert_eq!(read, job);
    }

    #[test]
    fn a_short_job_file_is_filled_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.toml");
        std::fs::write(
            &path,
            "memory = \"1GB\"\n[data]\npath = \"a.csv\"\ntarget = \"y\"\n",
        )
        .unwrap();
        let job = Job::read(&path).unwrap();
        assert_eq!(job.data.paths, [folder.path().join("a.csv")]);
        assert_eq!((job.train.epochs, job.model.kind), (5, ModelKind::Auto));
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.toml");
        std::fs::write(&path, "[data]\npath = \"a.csv\"\ntarget = \"y\"\nbatch = 3\n").unwrap();
        let error = Job::read(&path).unwrap_err();
        assert!(
            error.to_string().contains("line 4: unknown field `batch`"),
            "{error}"
        );
    }
}
