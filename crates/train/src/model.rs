//! The model folder: what training leaves behind and prediction needs, in open formats.
//!
//! ```text
//! model/
//!   model.toml             kind, task, target, version
//!   weights.safetensors    of a linear model: `weights`, for each output one per encoded value, and `bias`, f64
//!   forest.json            of boosted trees: flat arrays of nodes, the cuts of every encoded column
//!   xgboost.json           the same trees as XGBoost reads them
//!   encoders.json          columns with their encoders, the target's values
//!   report.json            metrics, rows, settings
//! ```

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tidegate_data::batch::Row;
use tidegate_data::encode::Encoders;
use tidegate_data::target::Task;

use crate::boost::{Forest, to_xgboost};
use crate::linear::{LinearModel, outputs};
use crate::tensors::{Tensor, TensorFile, write_tensors};
use crate::write::{Folder, present, replace_folder};
use crate::{Error, Report, Result};

const VERSION: u32 = 1;
pub(crate) const FOREST: &str = "forest.json";

/// A trained model with all it needs to read a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub encoders: Encoders,
    pub learned: Learned,
}

/// What was learned, by the kind of model. Another kind is one more variant here.
#[derive(Debug, Clone, PartialEq)]
pub enum Learned {
    Linear(LinearModel),
    Boost(Forest),
}

impl Learned {
    /// The word for it in `model.toml`.
    pub fn kind(&self) -> &'static str {
        match self {
            Learned::Linear(_) => "linear",
            Learned::Boost(_) => "boost",
        }
    }

    /// Scores of a row: the predicted number, the probability of the positive value, or one for each class.
    pub fn n_scores(&self) -> usize {
        match self {
            Learned::Linear(linear) => linear.n_scores(),
            Learned::Boost(forest) => forest.n_outputs(),
        }
    }

    /// Writes the scores of a row.
    #[inline]
    pub fn predict(&self, row: Row, scores: &mut [f64]) {
        match self {
            Learned::Linear(linear) => linear.predict(row, scores),
            Learned::Boost(forest) => forest.scores(row.dense, scores),
        }
    }

    /// The bytes that it holds.
    pub fn bytes(&self) -> u64 {
        match self {
            Learned::Linear(linear) => size_of_val(linear.weights.as_slice()) as u64,
            Learned::Boost(forest) => forest.bytes(),
        }
    }

    fn write(&self, new: &Folder) -> Result<()> {
        match self {
            Learned::Linear(linear) => write_linear(linear, new),
            Learned::Boost(forest) => {
                new.write_json(FOREST, forest)?;
                new.write_json("xgboost.json", &to_xgboost(forest))
            }
        }
    }

    fn read(kind: &str, folder: &Path, encoders: &Encoders) -> Result<Learned> {
        match kind {
            "linear" => read_linear(folder, encoders).map(Learned::Linear),
            "boost" => read_forest(folder, encoders).map(Learned::Boost),
            _ => Err(damaged(
                &folder.join("model.toml"),
                &format!("unknown kind of model {kind:?}"),
            )),
        }
    }
}

/// `model.toml`
#[derive(Debug, Serialize, Deserialize)]
struct Card {
    version: u32,
    kind: String,
    task: Task,
    target: String,
}

impl Model {
    pub fn save(&self, folder: &Path, report: &Report) -> Result<()> {
        let card = Card {
            version: VERSION,
            kind: self.learned.kind().into(),
            task: self.encoders.target.task(),
            target: self.encoders.target_column.clone(),
        };
        let card = toml::to_string(&card).expect("a flat table serializes");
        let json = |value: serde_json::Result<String>| value.expect("plain data serializes");
        replace_folder(folder, |new| {
            new.write("model.toml", card.as_bytes())?;
            self.learned.write(new)?;
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
        let path = folder.join("encoders.json");
        let text = fs::read(&path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        let encoders: Encoders =
            serde_json::from_slice(&text).map_err(|error| damaged(&path, &error.to_string()))?;
        let learned = Learned::read(&card.kind, &folder, &encoders)?;
        Ok(Model { encoders, learned })
    }
}

fn write_linear(linear: &LinearModel, new: &Folder) -> Result<()> {
    let outputs = linear.n_scores();
    // The bias is the last of each output.
    let width = linear.weights.len() / outputs - 1;
    let weight = |i: usize| linear.weights[i / width * (width + 1) + i % width];
    let bias = |k: usize| linear.weights[k * (width + 1) + width];
    let tensors = vec![
        Tensor::new("weights", width * outputs, weight),
        Tensor::new("bias", outputs, bias),
    ];
    new.write_with("weights.safetensors", |file| write_tensors(tensors, file))
}

fn read_linear(folder: &Path, encoders: &Encoders) -> Result<LinearModel> {
    let path = folder.join("weights.safetensors");
    let file = TensorFile::open(&path)?;
    let (Some(n_weights), Some(n_biases)) = (file.len("weights"), file.len("bias")) else {
        return Err(damaged(&path, "it lacks weights or bias"));
    };
    let (width, outputs) = (encoders.width().total(), outputs(&encoders.target));
    if outputs == 0 || n_biases != outputs || n_weights != width * outputs {
        return Err(damaged(&path, "weights and encoders do not belong together"));
    }
    let mut biases = Vec::with_capacity(outputs);
    file.read("bias", |bias| biases.push(bias))?;
    let mut joined = Vec::with_capacity((width + 1) * outputs);
    let mut biases = biases.into_iter();
    file.read("weights", |weight| {
        joined.push(weight);
        if joined.len() % (width + 1) == width {
            joined.extend(biases.next());
        }
    })?;
    // Without any weights there are only biases.
    joined.extend(biases);
    Ok(LinearModel {
        weights: joined,
        target: encoders.target.clone(),
    })
}

fn read_forest(folder: &Path, encoders: &Encoders) -> Result<Forest> {
    let path = folder.join(FOREST);
    let text = fs::read(&path).map_err(|source| Error::Read {
        path: path.clone(),
        source,
    })?;
    let forest: Forest = serde_json::from_slice(&text).map_err(|error| damaged(&path, &error.to_string()))?;
    match forest.fault() {
        Some(fault) => Err(damaged(&path, fault)),
        None if forest.features.len() != encoders.width().dense => {
            Err(damaged(&path, "trees and encoders do not belong together"))
        }
        None => Ok(forest),
    }
}

pub(crate) fn damaged(path: &Path, what: &str) -> Error {
    Error::Damaged {
        path: path.into(),
        what: what.into(),
    }
}
