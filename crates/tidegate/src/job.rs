//! What is asked for, fully resolved: one value that is checked before a byte of data is read.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_data::csv::DialectOptions;
use tidegate_data::target::Task;
use tidegate_data::{BadRows, SourceOptions, TableOptions};
use tidegate_memory::Amount;

use crate::{Error, Result};

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
    #[serde(default)]
    pub model: ModelPart,
    #[serde(default)]
    pub train: TrainPart,
}

/// Where the samples are and how to read them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataPart {
    pub path: PathBuf,
    pub target: String,
    #[serde(default = "default_holdout")]
    pub holdout: f64,
    /// `,`, `;`, `|` or `tab`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// A character, or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    #[serde(default)]
    pub bad_rows: BadRows,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// What is fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPart {
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    #[serde(default = "default_l2")]
    pub l2: f64,
}

/// How it is fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainPart {
    #[serde(default = "default_seed")]
    pub seed: u64,
    #[serde(default = "default_epochs")]
    pub epochs: u32,
    /// The result does not depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
}

fn default_holdout() -> f64 {
    0.1
}
fn default_l2() -> f64 {
    1.0
}
fn default_seed() -> u64 {
    7
}
fn default_epochs() -> u32 {
    5
}

impl Default for ModelPart {
    fn default() -> ModelPart {
        ModelPart {
            kind: "linear".into(),
            task: None,
            l2: default_l2(),
        }
    }
}

impl Default for TrainPart {
    fn default() -> TrainPart {
        TrainPart {
            seed: default_seed(),
            epochs: default_epochs(),
            threads: None,
        }
    }
}

impl Job {
    /// A job with everything but data and target inferred.
    pub fn new(path: impl Into<PathBuf>, target: impl Into<String>) -> Job {
        Job {
            memory: None,
            name: None,
            data: DataPart {
                path: path.into(),
                target: target.into(),
                holdout: default_holdout(),
                delimiter: None,
                quote: None,
                header: None,
                bad_rows: BadRows::Fail,
                missing: Vec::new(),
            },
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
        if let (true, Some(folder)) = (job.data.path.is_relative(), path.parent()) {
            job.data.path = folder.join(&job.data.path);
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
        if !(0.0..1.0).contains(&self.data.holdout) {
            return usage(
                format!("--holdout {} is not a share of the rows", self.data.holdout),
                "0 holds out nothing, 0.1 every tenth row",
            );
        }
        if !(self.model.l2.is_finite() && self.model.l2 >= 0.0) {
            return usage(
                format!("--l2 {} is not a penalty", self.model.l2),
                "give 0 or more; 1 is the default",
            );
        }
        if self.train.epochs == 0 {
            return usage("--epochs 0 would learn nothing".into(), "give 1 or more");
        }
        if self.train.threads == Some(0) {
            return usage(
                "--threads 0 would do nothing".into(),
                "give 1 or more, or leave it out",
            );
        }
        if self.model.kind != "linear" {
            return usage(
                format!("there is no model {:?}", self.model.kind),
                "this version trains --model linear",
            );
        }
        self.source_options()?;
        check_path(&self.data.path)?;
        tidegate_data::Input::open(&self.data.path)?;
        Ok(())
    }

    /// How the source is read.
    pub fn source_options(&self) -> Result<SourceOptions> {
        let data = &self.data;
        Ok(SourceOptions {
            dialect: dialect_options(data.delimiter.as_deref(), data.quote.as_deref(), data.header)?,
            missing: data.missing.clone(),
        })
    }

    /// How its rows are used.
    pub fn table_options(&self) -> TableOptions {
        TableOptions {
            bad_rows: self.data.bad_rows,
            missing: self.data.missing.clone(),
            task: self.model.task,
        }
    }

    /// Threads to use: what was asked, or one for each core.
    pub fn threads(&self) -> usize {
        self.train.threads.unwrap_or_else(crate::worker::default_threads)
    }
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
        let mut job = Job::new("/data/flights.csv", "delayed");
        job.memory = Some("1GB".parse().unwrap());
        job.data.quote = Some("none".into());
        job.model.task = Some(Task::Binary);
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
        assert_eq!(job.data.path, folder.path().join("a.csv"));
        assert_eq!((job.train.epochs, job.model.kind.as_str()), (5, "linear"));
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
