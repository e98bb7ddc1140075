//! The folder of a network: `model.toml`, `network.json`, `weights.safetensors`, `report.json`, and `encoders.json` where it
//! learned from a table.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tidegate_data::encode::Encoders;

use super::design::Design;
use super::lower::Purpose;
use super::machine::{Machine, Program};
use super::shape::Shape;
use crate::model::damaged;
use crate::tensors::{Tensor, TensorFile, write_tensors};
use crate::write::{present, replace_folder};
use crate::{Error, Report, Result};

const VERSION: u32 = 1;
/// The word in `model.toml`.
const KIND: &str = "network";
const DESIGN: &str = "network.json";
const WEIGHTS: &str = "weights.safetensors";
const ENCODERS: &str = "encoders.json";

/// A network that was trained: its design, and the machine that has its weights.
pub struct NetworkModel {
    pub design: Design,
    pub machine: Machine,
    /// How the rows of a table become its samples.
    pub encoders: Option<Encoders>,
}

/// `model.toml`
#[derive(Debug, Serialize, Deserialize)]
struct Card {
    version: u32,
    kind: String,
    task: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

impl NetworkModel {
    pub fn save(&self, folder: &Path, report: &Report) -> Result<()> {
        let card = Card {
            version: VERSION,
            kind: KIND.into(),
            task: self.design.task().into(),
            target: self
                .encoders
                .as_ref()
                .map(|encoders| encoders.target_column.clone()),
        };
        let card = toml::to_string(&card).expect("a flat table serializes");
        replace_folder(folder, |new| {
            new.write("model.toml", card.as_bytes())?;
            new.write_json(DESIGN, &self.design)?;
            new.write_json("report.json", report)?;
            if let Some(encoders) = &self.encoders {
                new.write_json(ENCODERS, encoders)?;
            }
            let machine = &self.machine;
            let tensors = machine.tensors().enumerate().map(|(weight, (name, shape, _))| {
                Tensor::shaped(name, shape, move |i| machine.value(weight, i))
            });
            new.write_with(WEIGHTS, |file| write_tensors(tensors.collect(), file))
        })
    }

    /// Whether a model folder is one of a network.
    pub fn is_in(folder: &Path) -> bool {
        present(folder).join(DESIGN).is_file()
    }

    pub fn load_design(folder: &Path) -> Result<Design> {
        read_json(&present(folder).join(DESIGN))
    }

    /// The encoders of a network that learned from a table; `None` where it learned from arrays.
    pub fn load_encoders(folder: &Path) -> Result<Option<Encoders>> {
        let path = present(folder).join(ENCODERS);
        match path.is_file() {
            true => read_json(&path).map(Some),
            false => Ok(None),
        }
    }

    /// The program that predicts batches of so many samples.
    pub fn program(design: &Design, batch: usize, threads: usize) -> Result<Program> {
        let purpose = Purpose {
            batch,
            threads,
            learning: None,
        };
        let input = Shape(design.input.clone());
        Ok(Program::compile(
            &design.layers,
            &input,
            design.outputs(),
            &purpose,
        )?)
    }

    /// Fills a machine with the weights of a folder.
    pub fn fill(machine: &mut Machine, folder: &Path) -> Result<()> {
        let path = present(folder).join(WEIGHTS);
        let file = TensorFile::open(&path)?;
        let tensors: Vec<(String, Vec<usize>)> = machine
            .tensors()
            .map(|(name, shape, _)| (name.to_string(), shape))
            .collect();
        for (name, shape) in tensors {
            let put = machine.putter(&name, shape.iter().product());
            match put.filter(|_| file.shape(&name) == Some(shape.as_slice())) {
                Some(mut put) => file.read(&name, |value| put(value as f32))?,
                None => {
                    return Err(damaged(
                        &path,
                        &format!("it lacks the tensor {name} of the network"),
                    ));
                }
            }
        }
        Ok(())
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read(path).map_err(|source| Error::Read {
        path: path.into(),
        source,
    })?;
    serde_json::from_slice(&text).map_err(|error| damaged(path, &error.to_string()))
}
