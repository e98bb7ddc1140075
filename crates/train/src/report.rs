//! `report.json`: how good a model is and how it came about.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tidegate_data::RowCounts;
use tidegate_data::encode::Encoders;

use crate::metrics::{CalibrationBin, Metric, Quality, Residuals, precision_recall_f1};
use crate::model::damaged;
use crate::network::{Fed, Mistake};
use crate::write::present;
use crate::{Error, Result};

/// Weights that a report lists at the most.
const LISTED: usize = 200;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// On the rows held out; empty where there are none.
    pub metrics: Vec<Metric>,
    /// The values of the target in the order that `confusion` has them; empty for a number.
    #[serde(default)]
    pub classes: Vec<String>,
    /// See [`Quality`].
    #[serde(default)]
    pub confusion: Vec<Vec<u64>>,
    /// How well each class is told from the others.
    #[serde(default)]
    pub by_class: Vec<ClassReport>,
    #[serde(default)]
    pub calibration: Vec<CalibrationBin>,
    /// Of a number, how the errors on the rows held out are spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residuals: Option<Residuals>,
    pub rows: RowReport,
    pub epochs: u32,
    pub converged: bool,
    /// Where later epochs were no better than an earlier one.
    #[serde(default)]
    pub early_stop: Option<EarlyStop>,
    /// Mean loss on the training rows in the last epoch.
    pub training_loss: f64,
    /// Weights on standardised columns, largest first: what moves the prediction most. Of classes, each with its
    /// value of the target.
    pub weights: Vec<(String, f64)>,
    /// What the trees made of each encoded column, the most gain first; empty for other models.
    #[serde(default)]
    pub importance: Vec<FeatureImportance>,
    /// Of a cross-validation: the metrics of each fold.
    #[serde(default)]
    pub folds: Vec<Vec<Metric>>,
    /// How each epoch was fed, where samples had to be brought.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fed: Vec<Fed>,
    /// What the network was most sure of and wrong about, the surest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mistakes: Vec<Mistake>,
    /// Steps of a network that changed nothing, because gradients overflowed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub skipped_steps: u64,
}

fn is_none(steps: &u64) -> bool {
    *steps == 0
}

/// How well a class is told from the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassReport {
    pub class: String,
    /// Rows of the class.
    pub rows: u64,
    /// The share of the class among the rows that were called so.
    pub precision: f64,
    /// The share of its rows that were called so.
    pub recall: f64,
    pub f1: f64,
}

/// How much a forest relies on an encoded column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureImportance {
    pub feature: String,
    /// How much its splits lowered the loss, summed.
    pub gain: f64,
    pub splits: u64,
    /// How much the loss of the rows held out rises when it is shuffled among them, where there are such rows.
    pub permutation: Option<f64>,
}

/// What became of the rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowReport {
    pub used: u64,
    pub held_out: u64,
    pub bad: u64,
    pub without_target: u64,
    /// Left out by a condition or by sampling.
    #[serde(default)]
    pub not_asked: u64,
    /// Values that are not what their column should hold and count as missing, by column.
    #[serde(default)]
    pub broken: BTreeMap<String, BrokenValues>,
}

/// Values that broke the role of their column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenValues {
    pub count: u64,
    /// The first of them, and where it stands.
    pub first: String,
    pub line: u64,
}

/// A training that went on after its best epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EarlyStop {
    /// The epoch, from 1, whose weights are kept.
    pub best_epoch: u32,
    /// Epochs in all.
    pub epochs: u32,
    /// The mean loss of the rows held out, by the weights kept.
    pub loss: f64,
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

    /// Mean and deviation of each metric over the folds of a cross-validation.
    pub fn over_folds(&self) -> Vec<(String, f64, f64)> {
        let Some(first) = self.folds.first() else {
            return Vec::new();
        };
        let summary = |metric: &Metric| {
            let of_fold = |fold: &Vec<Metric>| {
                fold.iter()
                    .find(|other| other.name == metric.name)
                    .map(|m| m.value)
            };
            let values: Vec<f64> = self.folds.iter().filter_map(of_fold).collect();
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (metric.name.clone(), mean, (squares / (n - 1.0).max(1.0)).sqrt())
        };
        first.iter().map(summary).collect()
    }

    /// The quality that the rows held out showed.
    pub fn with_quality(mut self, quality: Quality) -> Report {
        self.metrics = quality.metrics;
        let class = |(class, [rows, predicted, both]): (&String, &[u64; 3])| {
            let [precision, recall, f1] = precision_recall_f1(*rows, *predicted, *both);
            ClassReport {
                class: class.clone(),
                rows: *rows,
                precision,
                recall,
                f1,
            }
        };
        self.by_class = self
            .classes
            .iter()
            .zip(&quality.class_counts)
            .map(class)
            .collect();
        self.confusion = quality.confusion;
        self.calibration = quality.calibration;
        self.residuals = quality.residuals;
        self
    }
}

impl RowReport {
    /// Adds the counts of a later part of the source.
    pub fn add(&mut self, later: &RowCounts) {
        self.used += later.rows;
        self.held_out += later.held_out;
        self.bad += later.bad;
        self.without_target += later.without_target;
        self.not_asked += later.not_asked;
        for (column, broken) in &later.broken {
            let (line, first) = &broken.first;
            let known = self.broken.entry(column.clone()).or_insert_with(|| BrokenValues {
                count: 0,
                first: first.clone(),
                line: *line,
            });
            known.count += broken.count;
        }
    }

    /// What a person should know of the values that count as missing.
    pub fn warnings(&self) -> Vec<String> {
        let warning = |(column, broken): (&String, &BrokenValues)| {
            let BrokenValues { count, first, line } = broken;
            match count {
                1 => format!(
                    "a value of {column:?} is not what the column holds and counts as missing: {first:?} on line {line}"
                ),
                _ => format!(
                    "{count} values of {column:?} are not what the column holds and count as missing; the first is {first:?} on line {line}"
                ),
            }
        };
        self.broken.iter().map(warning).collect()
    }
}

/// The largest weights of a linear model, with the names of what they weigh.
pub(crate) fn largest_weights(encoders: &Encoders, weights: &[f64]) -> Vec<(String, f64)> {
    let n = encoders.width().total() + 1;
    let labels = encoders.target.labels();
    let size = |&at: &usize| weights[at].abs();
    let order = |a: &usize, b: &usize| size(b).total_cmp(&size(a)).then(a.cmp(b));
    let mut largest: Vec<usize> = Vec::with_capacity(8 * LISTED);
    // The bias, last of each output, is no weight of a column.
    for at in (0..weights.len()).filter(|at| at % n != n - 1) {
        largest.push(at);
        if largest.len() == 8 * LISTED {
            largest.sort_by(order);
            largest.truncate(LISTED);
        }
    }
    largest.sort_by(order);
    largest.truncate(LISTED);
    let named = |at: usize| {
        let name = encoders.name(at % n);
        match weights.len() > n {
            true => (format!("{name} for {}", labels[at / n].text), weights[at]),
            false => (name, weights[at]),
        }
    };
    largest.into_iter().map(named).collect()
}
