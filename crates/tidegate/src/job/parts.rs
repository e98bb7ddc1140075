//! The parts of a job: where the samples are, what is fitted, how it is fitted.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tidegate_data::target::Task;
use tidegate_data::{BadRows, Below};
use tidegate_train::network::{Layer, Loss, Moments, Precision, Preset, Recompute, Rule, Schedule};

use super::words::{self, Auto, ScheduleChoice};

/// Where the samples are and how to read them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataPart {
    /// Files, folders, patterns; or one database.
    #[serde(
        rename = "path",
        serialize_with = "write_paths",
        deserialize_with = "read_paths"
    )]
    pub paths: Vec<PathBuf>,
    /// A column of a table; the labels of arrays, or nothing where those are found beside.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    #[serde(default = "default_holdout")]
    pub holdout: f64,
    /// Samples to judge by, instead of holding some out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<PathBuf>,
    /// Which array of an archive or a folder holds the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<String>,
    /// Whether plain arrays are mapped instead of read.
    #[serde(default, skip_serializing_if = "is_false")]
    pub map: bool,
    /// What samples that are floats are kept as, in memory and on disk.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keep: KeepAs,
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
    /// What a database is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Only rows that meet this condition.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// A number of rows, or a share of them below 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<f64>,
    /// Only these columns; and all but these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Where all that is read must be: of a training that the page starts, so that whoever asks it is led out neither by
    /// this one nor by any that goes on from it.
    #[serde(default, skip_serializing_if = "Below::is_anywhere")]
    pub below: Below,
}

impl DataPart {
    pub(super) fn new(paths: Vec<PathBuf>, target: String) -> DataPart {
        DataPart {
            paths,
            target,
            holdout: default_holdout(),
            validation: None,
            samples: None,
            map: false,
            keep: KeepAs::default(),
            delimiter: None,
            quote: None,
            header: None,
            bad_rows: BadRows::Fail,
            missing: Vec::new(),
            query: None,
            condition: None,
            sample: None,
            columns: Vec::new(),
            ignore: Vec::new(),
            below: Below::default(),
        }
    }

    /// What a person calls it: the path, or the first of several and how many more there are.
    pub fn name(&self) -> String {
        match self.paths.as_slice() {
            [] => String::new(),
            [only] => only.display().to_string(),
            [first, others @ ..] => format!("{} and {} more", first.display(), others.len()),
        }
    }
}

/// What samples that are floats are kept as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeepAs {
    #[default]
    #[serde(rename = "as they are")]
    AsTheyAre,
    /// Half precision: two bytes for each number.
    #[serde(rename = "f16")]
    F16,
}

/// One path is written as a text, several as a list.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Paths {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

fn write_paths<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    match paths {
        [only] => only.serialize(serializer),
        several => several.serialize(serializer),
    }
}

fn read_paths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    Ok(match Paths::deserialize(deserializer)? {
        Paths::One(path) => vec![path],
        Paths::Several(paths) => paths,
    })
}

/// The kind of model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// Boosted trees, unless the data says otherwise; a network for arrays.
    #[default]
    Auto,
    Linear,
    Boost,
    Mlp,
    Cnn,
    Resnet18,
    Mobilenet,
    /// The layers that the job lists.
    Network,
}

impl ModelKind {
    pub fn as_str(self) -> &'static str {
        match self {
            ModelKind::Auto => "auto",
            ModelKind::Linear => "linear",
            ModelKind::Boost => "boost",
            ModelKind::Mlp => "mlp",
            ModelKind::Cnn => "cnn",
            ModelKind::Resnet18 => "resnet18",
            ModelKind::Mobilenet => "mobilenet",
            ModelKind::Network => "network",
        }
    }

    /// Whether it is sure to be a network; `Auto` is one only where the data says so.
    pub fn is_network(self) -> bool {
        self == ModelKind::Network || self.preset().is_some()
    }

    /// The network that goes by this name.
    pub fn preset(self) -> Option<Preset> {
        match self {
            ModelKind::Mlp => Some(Preset::Mlp),
            ModelKind::Cnn => Some(Preset::Cnn),
            ModelKind::Resnet18 => Some(Preset::Resnet18),
            ModelKind::Mobilenet => Some(Preset::Mobilenet),
            ModelKind::Auto | ModelKind::Linear | ModelKind::Boost | ModelKind::Network => None,
        }
    }
}

/// What is fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelPart {
    pub kind: ModelKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// A penalty on the weights of linear models.
    pub l1: f64,
    /// A penalty on the squares of weights, or of the values of leaves.
    pub l2: f64,
    /// Trees at the most, their depth, and their leaves where those are to be fewer than the depth allows.
    pub trees: u32,
    pub depth: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaves: Option<u32>,
    pub growth: Growth,
    /// How much of a tree's advice is taken, or how far weights go at a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    pub min_child_weight: f64,
    /// Shares of rows and columns that each tree sees.
    pub row_sample: f64,
    pub column_sample: f64,
    /// Weights of classes in the loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class_weights: Option<ClassWeights>,
    /// The layers of a network of one's own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
    /// The safetensors file that the weights of a network start from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<PathBuf>,
    /// Layers whose name is or begins with one of these stay as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub freeze: Vec<String>,
}

impl ModelPart {
    /// The learning rate that was asked for, or what is usual for the kind. `Auto` counts as trees: where the data makes
    /// a network of it, say so first.
    pub fn learning_rate(&self) -> f64 {
        self.learning_rate.unwrap_or(match self.kind.is_network() {
            true => 0.001,
            false => 0.1,
        })
    }
}

/// Which leaf is split next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Growth {
    /// All of a level.
    #[default]
    Depth,
    /// The one that gains most.
    Leaf,
}

/// How much a row of each class counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassWeights {
    /// Every class as much as any other, however few rows it has.
    Balanced,
}

/// How it is fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainPart {
    pub seed: u64,
    pub epochs: u32,
    /// Epochs or trees without a better score on the rows held out, before training ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<u32>,
    /// The result does not depend on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Cross-validation: so many models, each judged on the rows that the others learned from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folds: Option<u32>,
    /// Whether encoded rows are kept on disk for later epochs.
    pub pack: bool,
    /// From here on of networks: samples at a time, and batches whose gradients are summed before a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    pub accumulate: usize,
    #[serde(deserialize_with = "words::read", serialize_with = "words::write")]
    pub optimizer: Rule,
    /// What the optimizer keeps of each weight.
    #[serde(deserialize_with = "words::read", serialize_with = "words::write")]
    pub moments: Auto<Moments>,
    /// What activations and slopes wait in.
    #[serde(deserialize_with = "words::read", serialize_with = "words::write")]
    pub precision: Auto<Precision>,
    /// Which values are made again on the way back, rather than kept.
    #[serde(deserialize_with = "words::read", serialize_with = "words::write")]
    pub recompute: Auto<Recompute>,
    /// Samples of a batch that are learned from at a time; it divides the batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_batch: Option<usize>,
    #[serde(deserialize_with = "words::read", serialize_with = "words::write")]
    pub schedule: ScheduleChoice,
    /// Epochs during which the learning rate rises from nothing, before the schedule begins.
    pub warm_up: f64,
    /// The norm beyond which gradients are made smaller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// What is made small, where it is not what is usual for the task.
    #[serde(
        deserialize_with = "words::read_some",
        serialize_with = "words::write_some",
        skip_serializing_if = "Option::is_none"
    )]
    pub loss: Option<Loss>,
    /// The share of a target that cross-entropy gives to all classes evenly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothing: Option<f64>,
}

impl TrainPart {
    /// The schedule with its numbers.
    pub fn schedule(&self) -> Schedule {
        self.schedule.over(f64::from(self.epochs) - self.warm_up)
    }
}

pub(super) fn default_holdout() -> f64 {
    0.1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Default for ModelPart {
    fn default() -> ModelPart {
        ModelPart {
            kind: ModelKind::Auto,
            task: None,
            l1: 0.0,
            l2: 1.0,
            trees: 100,
            depth: 6,
            leaves: None,
            growth: Growth::Depth,
            learning_rate: None,
            min_child_weight: 1.0,
            row_sample: 1.0,
            column_sample: 1.0,
            class_weights: None,
            layers: Vec::new(),
            weights: None,
            freeze: Vec::new(),
        }
    }
}

impl Default for TrainPart {
    fn default() -> TrainPart {
        TrainPart {
            seed: 7,
            epochs: 5,
            patience: None,
            threads: None,
            folds: None,
            pack: true,
            batch: None,
            accumulate: 1,
            optimizer: Rule::default(),
            moments: Auto::Auto,
            precision: Auto::Auto,
            recompute: Auto::Auto,
            micro_batch: None,
            schedule: ScheduleChoice::default(),
            warm_up: 0.0,
            clip: None,
            loss: None,
            smoothing: None,
        }
    }
}
