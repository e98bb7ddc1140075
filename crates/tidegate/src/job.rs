//! What is asked for, fully resolved: one value that is checked before a byte of data is read.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_data::csv::DialectOptions;
use tidegate_data::filter::SampleSize;
use tidegate_data::images::Augment;
use tidegate_data::target::Task;
use tidegate_data::{Condition, Features, SourceOptions, TableOptions};
use tidegate_memory::Amount;
use tidegate_train::network::Loss;

use crate::{Error, Result};

mod check;
mod images;
mod parts;
mod words;

pub use images::{ImageSize, ImagesPart};
pub use parts::{ClassWeights, DataPart, Growth, KeepAs, ModelKind, ModelPart, TrainPart};
pub use words::{Auto, ScheduleChoice, Worded};

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
    /// What is made of images, and how they are changed while they are learned from.
    #[serde(default, skip_serializing_if = "ImagesPart::is_usual")]
    pub images: ImagesPart,
    #[serde(default, skip_serializing_if = "Augment::is_nothing")]
    pub augment: Augment,
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
            images: ImagesPart::default(),
            augment: Augment::default(),
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
        for named in job.paths_mut() {
            if let (true, Some(folder)) = (named.is_relative() && !is_url(named), path.parent()) {
                *named = folder.join(&named);
            }
        }
        if job.model.kind == ModelKind::Auto && !job.model.layers.is_empty() {
            job.model.kind = ModelKind::Network;
        }
        Ok(job)
    }

    /// Every file and folder that the job names.
    pub(crate) fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let others = self.data.validation.iter_mut().chain(&mut self.model.weights);
        self.data.paths.iter_mut().chain(others)
    }

    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a job is plain data")
    }

    /// Whether the data are images, or a table that lists them.
    pub fn has_images(&self) -> bool {
        let [path] = self.data.paths.as_slice() else {
            return false;
        };
        // A table of paths may as well be a table of anything.
        let as_table = matches!(self.model.kind, ModelKind::Linear | ModelKind::Boost) && path.is_file();
        let looks_so = || {
            !as_table && !self.has_arrays() && { tidegate_data::images::are_images(path, &self.data.below) }
        };
        self.images.column.is_some() || looks_so()
    }

    /// Whether the data are arrays.
    pub fn has_arrays(&self) -> bool {
        !self.data.paths.is_empty()
            && self
                .data
                .paths
                .iter()
                .all(|path| tidegate_data::arrays::are_arrays(path))
    }

    /// Whether a network is trained: asked for by its kind, or by arrays or images.
    pub fn is_network(&self) -> bool {
        self.model.kind.is_network()
            || (self.model.kind == ModelKind::Auto && (self.has_arrays() || self.has_images()))
    }

    /// Refuses a loss that was asked for and does not suit the task.
    fn check_loss_for(&self, task: Task) -> Result<()> {
        let usage = |what: String, hint: &str| {
            Err(Error::Usage {
                what,
                hint: hint.into(),
            })
        };
        let word = self.train.loss.as_ref().map_or("", loss_word);
        match (task, &self.train.loss) {
            (_, None)
            | (Task::Multiclass, Some(Loss::CrossEntropy { .. }))
            | (Task::Binary, Some(Loss::Binary { .. }))
            | (Task::Regression, Some(Loss::Mse | Loss::Mae | Loss::Huber { .. })) => {}
            (Task::Binary, _) => {
                let what = format!("--loss {word} is not for one of two values");
                return usage(what, "give binary, or leave it out");
            }
            (Task::Multiclass, _) => {
                let what = format!("--loss {word} is not for one of several values");
                return usage(what, "give cross_entropy, or leave it out");
            }
            (Task::Regression, _) => {
                let what = format!("--loss {word} is for classes, not for numbers");
                return usage(what, "give mse, mae or huber, or leave it out");
            }
        }
        match self.train.smoothing.is_some() && task != Task::Multiclass {
            true => usage("--smoothing is for three classes or more".into(), "leave it out"),
            false => Ok(()),
        }
    }

    /// How the source is read.
    pub fn source_options(&self) -> Result<SourceOptions> {
        let data = &self.data;
        Ok(SourceOptions {
            dialect: dialect_options(data.delimiter.as_deref(), data.quote.as_deref(), data.header)?,
            missing: data.missing.clone(),
            query: data.query.clone(),
            below: data.below.clone(),
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

/// What a loss is called, whatever its settings.
fn loss_word(loss: &Loss) -> &'static str {
    match loss {
        Loss::CrossEntropy { .. } => "cross_entropy",
        Loss::Binary { .. } => "binary",
        Loss::Mse => "mse",
        Loss::Mae => "mae",
        Loss::Huber { .. } => "huber",
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
mod tests;
