//! The verb `explain`: what a model relies on, and how far its predictions can be trusted. All of it is in the model
//! folder.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;
use tidegate_data::encode::Encoders;
use tidegate_data::target::Task;
use tidegate_train::network::NetworkModel;
use tidegate_train::{
    CalibrationBin, ClassReport, EarlyStop, Learned, Metric, Model, Report, Residuals, RowReport,
};

use crate::predict::model_folder;
use crate::{Result, Session};

/// Encoded columns that are told one by one at the most.
const LISTED: usize = 200;

/// What a model relies on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explained {
    /// `boost`, `linear` or `network`.
    pub kind: String,
    /// `regression`, `binary`, `multiclass`; of arrays also `flags` or `numbers`.
    pub task: String,
    pub target: String,
    /// The values of a target of classes, in the order of the confusion matrix.
    pub classes: Vec<String>,
    pub rows: RowReport,
    /// Trees, or passes over the data.
    pub epochs: u32,
    pub early_stop: Option<EarlyStop>,
    pub metrics: Vec<Metric>,
    /// Of a model judged by folds: each metric, its mean and how much it differs.
    pub over_folds: Vec<(String, f64, f64)>,
    /// The columns of the table, the most important first.
    pub columns: Vec<ColumnImportance>,
    /// What encoding made of them, likewise; the weights of classes one by one.
    pub encoded: Vec<EncodedImportance>,
    /// Values that the columns became in all; `encoded` lists the first of them.
    pub n_encoded: u64,
    /// How well each class is told from the others.
    pub by_class: Vec<ClassReport>,
    /// Rows held out by their true value (outer) and the predicted one.
    pub confusion: Vec<Vec<u64>>,
    pub calibration: Vec<CalibrationBin>,
    /// Of a number: how the errors on the rows held out are spread.
    pub residuals: Option<Residuals>,
}

/// How much a model relies on a column of the table: the sum over all that encoding made of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnImportance {
    pub column: String,
    pub encoding: String,
    /// Values that it became.
    pub width: u64,
    pub importance: Importance,
}

/// How much a model relies on one value of an encoded row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EncodedImportance {
    pub name: String,
    /// The column of the table that it comes from.
    pub column: String,
    /// The value of the target that a weight speaks for, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    pub importance: Importance,
}

/// What importance is measured by, and its share of the whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Importance {
    /// Of the gain of all splits, or of the sum of all weights without their signs.
    pub share: f64,
    /// How much the splits lowered the loss, and how many there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub splits: Option<u64>,
    /// How much the loss of the rows held out rises when it is shuffled among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permutation: Option<f64>,
    /// The weight on the standardised value; of a column the largest of its weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
}

/// Explains the model of a run, or that of a folder.
pub fn explain(session: &Session, reference: &str) -> Result<Explained> {
    let (folder, _) = model_folder(session, reference)?;
    explain_model(&folder)
}

/// Explains the model of a folder.
pub fn explain_model(folder: &Path) -> Result<Explained> {
    if NetworkModel::is_in(folder) {
        return explain_network(folder);
    }
    let (model, report) = (Model::load(folder)?, Report::load(folder)?);
    let encoders = &model.encoders;
    let (columns, encoded) = match &model.learned {
        Learned::Linear(linear) => by_weight(encoders, &linear.weights),
        Learned::Boost(_) => by_gain(encoders, &report),
    };
    Ok(Explained {
        kind: model.learned.kind().into(),
        task: match encoders.target.task() {
            Task::Regression => "regression",
            Task::Binary => "binary",
            Task::Multiclass => "multiclass",
        }
        .into(),
        target: encoders.target_column.clone(),
        over_folds: report.over_folds(),
        classes: report.classes,
        rows: report.rows,
        epochs: report.epochs,
        early_stop: report.early_stop,
        metrics: report.metrics,
        columns,
        encoded,
        n_encoded: encoders.width().total() as u64,
        by_class: report.by_class,
        confusion: report.confusion,
        calibration: report.calibration,
        residuals: report.residuals,
    })
}

/// A network relies on all of its sample; how far it can be trusted is told like that of others.
fn explain_network(folder: &Path) -> Result<Explained> {
    let (design, report) = (NetworkModel::load_design(folder)?, Report::load(folder)?);
    let encoders = NetworkModel::load_encoders(folder)?;
    Ok(Explained {
        kind: "network".into(),
        task: design.task().into(),
        over_folds: report.over_folds(),
        n_encoded: match &encoders {
            Some(encoders) => encoders.width().total() as u64,
            None => design.input.iter().product::<usize>() as u64,
        },
        target: encoders.map_or(String::new(), |encoders| encoders.target_column),
        classes: report.classes,
        rows: report.rows,
        epochs: report.epochs,
        early_stop: report.early_stop,
        metrics: report.metrics,
        columns: Vec::new(),
        encoded: Vec::new(),
        by_class: report.by_class,
        confusion: report.confusion,
        calibration: report.calibration,
        residuals: report.residuals,
    })
}

type Both = (Vec<ColumnImportance>, Vec<EncodedImportance>);

/// By what the splits of trees gained.
fn by_gain(encoders: &Encoders, report: &Report) -> Both {
    let total: f64 = report.importance.iter().map(|found| found.gain).sum();
    let share = |gain: f64| if total > 0.0 { gain / total } else { 0.0 };
    // Trees take dense values alone.
    let owners = (0..).zip(&encoders.features).flat_map(|(at, feature)| {
        let names = (0..feature.encoder.width().dense).map(|i| feature.encoder.name(&feature.name, i));
        names.map(move |name| (name, at))
    });
    let owners: HashMap<String, usize> = owners.collect();
    let mut sums = vec![
        Importance {
            gain: Some(0.0),
            splits: Some(0),
            ..Importance::default()
        };
        encoders.features.len()
    ];
    let mut encoded = Vec::new();
    for found in &report.importance {
        let Some(&at) = owners.get(&found.feature) else {
            continue;
        };
        let sum = &mut sums[at];
        sum.share += share(found.gain);
        sum.gain = sum.gain.map(|gain| gain + found.gain);
        sum.splits = sum.splits.map(|splits| splits + found.splits);
        if let Some(rise) = found.permutation {
            sum.permutation = Some(sum.permutation.unwrap_or(0.0) + rise);
        }
        encoded.push(EncodedImportance {
            name: found.feature.clone(),
            column: encoders.features[at].name.clone(),
            class: None,
            importance: Importance {
                share: share(found.gain),
                gain: Some(found.gain),
                splits: Some(found.splits),
                permutation: found.permutation,
                weight: None,
            },
        });
    }
    encoded.truncate(LISTED);
    (columns(encoders, sums), encoded)
}

/// By the weights of a linear model.
fn by_weight(encoders: &Encoders, weights: &[f64]) -> Both {
    let width = encoders.width();
    let (n, labels) = (width.total() + 1, encoders.target.labels());
    let several = weights.len() > n;
    let is_weight = |at: &usize| at % n != n - 1;
    let total: f64 = (0..weights.len())
        .filter(is_weight)
        .map(|at| weights[at].abs())
        .sum();
    let share = |weight: f64| if total > 0.0 { weight.abs() / total } else { 0.0 };
    // The dense values of all columns come first, then the sparse ones.
    let mut owners: Vec<u32> = Vec::with_capacity(width.total());
    for sparse in [false, true] {
        for (at, feature) in (0..).zip(&encoders.features) {
            let own = feature.encoder.width();
            let n_values = if sparse { own.sparse } else { own.dense };
            owners.extend(std::iter::repeat_n(at, n_values));
        }
    }
    let mut sums = vec![Importance::default(); encoders.features.len()];
    let mut order: Vec<usize> = (0..weights.len()).filter(is_weight).collect();
    for &at in &order {
        let sum = &mut sums[owners[at % n] as usize];
        sum.share += share(weights[at]);
        let larger = sum.weight.is_none_or(|largest| weights[at].abs() > largest.abs());
        sum.weight = if larger { Some(weights[at]) } else { sum.weight };
    }
    order.sort_by(|a, b| weights[*b].abs().total_cmp(&weights[*a].abs()).then(a.cmp(b)));
    let encoded = order.into_iter().take(LISTED).map(|at| EncodedImportance {
        name: encoders.name(at % n),
        column: encoders.features[owners[at % n] as usize].name.clone(),
        class: several.then(|| labels[at / n].text.clone()),
        importance: Importance {
            share: share(weights[at]),
            weight: Some(weights[at]),
            ..Importance::default()
        },
    });
    let encoded = encoded.collect();
    (columns(encoders, sums), encoded)
}

fn columns(encoders: &Encoders, sums: Vec<Importance>) -> Vec<ColumnImportance> {
    let of = encoders.features.iter().zip(sums);
    let mut columns: Vec<ColumnImportance> = of
        .map(|(feature, importance)| ColumnImportance {
            column: feature.name.clone(),
            encoding: feature.encoder.kind().into(),
            width: feature.encoder.width().total() as u64,
            importance,
        })
        .collect();
    columns.sort_by(|a, b| b.importance.share.total_cmp(&a.importance.share));
    columns
}
