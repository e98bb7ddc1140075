//! The model folder: what training leaves behind and prediction needs, in open formats.
//!
//! ```text
//! model/
//!   model.toml             kind, task, target, version
//!   weights.safetensors    `weights` and `bias`, f64
//!   encoders.json          columns with their encoders, the target's values
//!   report.json            metrics, rows, settings
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tidegate_data::encode::Encoders;
use tidegate_data::target::Task;

use crate::checkpoint::{read_tensors, tensor_bytes};
use crate::linear::LinearModel;
use crate::write::{present, replace_folder};
use crate::{Error, Metric, Result};

const VERSION: u32 = 1;

/// A trained model with all it needs to read a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub encoders: Encoders,
    pub linear: LinearModel,
}

/// `model.toml`
#[derive(Debug, Serialize, Deserialize)]
struct Card {
    version: u32,
    kind: String,
    task: Task,
    target: String,
}

/// What became of the rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowReport {
    pub used: u64,
    pub held_out: u64,
    pub bad: u64,
    pub without_target: u64,
}

/// `report.json`: how good the model is and how it came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// On the rows held out; empty where there are none.
    pub metrics: Vec<Metric>,
    pub rows: RowReport,
    pub epochs: u32,
    pub converged: bool,
    /// Mean loss on the training rows in the last epoch.
    pub training_loss: f64,
    /// Weights on standardised columns, largest first: what moves the prediction most.
    pub weights: Vec<(String, f64)>,
}

impl Model {
    pub fn save(&self, folder: &Path, report: &Report) -> Result<()> {
        let card = Card {
            version: VERSION,
            kind: "linear".into(),
            task: self.encoders.target.task(),
            target: self.encoders.target_column.clone(),
        };
        let card = toml::to_string(&card).expect("a flat table serializes");
        let (bias, weights) = self
            .linear
            .weights
            .split_last()
            .expect("weights hold at least the bias");
        let tensors = BTreeMap::from([("weights".into(), weights.to_vec()), ("bias".into(), vec![*bias])]);
        let json = |value: serde_json::Result<String>| value.expect("plain data serializes");
        replace_folder(folder, |new| {
            new.write("model.toml", card.as_bytes())?;
            new.write("weights.safetensors", &tensor_bytes(&tensors))?;
            new.write(
                "encoders.json",
                json(serde_json::to_string_pretty(&self.encoders)).as_bytes(),
            )?;
            new.write(
                "report.json",
                json(serde_json::to_string_pretty(report)).as_bytes(),
            )
        })
    }

    pub fn load(folder: &Path) -> Result<Model> {
        let folder = present(folder);
        let path = folder.join("model.toml");
        if !path.is_file() {
            return Err(Error::NotAModel {
                path: folder,
                file: "model.toml",
            });
        }
        let text = fs::read_to_string(&path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        let card: Card = toml::from_str(&text).map_err(|error| damaged(&path, error.message()))?;
        if card.version > VERSION {
            return Err(Error::Newer {
                path,
                found: card.version,
                known: VERSION,
            });
        }
        if card.kind != "linear" {
            return Err(damaged(&path, &format!("unknown kind of model {:?}", card.kind)));
        }
        let path = folder.join("encoders.json");
        let text = fs::read(&path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        let encoders: Encoders =
            serde_json::from_slice(&text).map_err(|error| damaged(&path, &error.to_string()))?;
        let path = folder.join("weights.safetensors");
        let tensors = read_tensors(&path)?;
        let (Some(weights), Some([bias])) = (tensors.get("weights"), tensors.get("bias").map(Vec::as_slice))
        else {
            return Err(damaged(&path, "it lacks weights or bias"));
        };
        if weights.len() != encoders.width().total() {
            return Err(damaged(&path, "weights and encoders do not belong together"));
        }
        let weights = weights.iter().chain([bias]).copied().collect();
        let linear = LinearModel {
            weights,
            target: encoders.target.clone(),
        };
        Ok(Model { encoders, linear })
    }
}

impl Report {
    /// The report of a model folder.
    pub fn load(folder: &Path) -> Result<Report> {
        let path = present(folder).join("report.json");
        let text = fs::read(&path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        serde_json::from_slice(&text).map_err(|error| damaged(&path, &error.to_string()))
    }
}

fn damaged(path: &Path, what: &str) -> Error {
    Error::Damaged {
        path: path.into(),
        what: what.into(),
    }
}
