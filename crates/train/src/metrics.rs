//! Metrics that people use, beside the trivial baseline, in memory that does not grow with the rows.

mod binary;
mod classes;
mod number;
mod residuals;

use serde::{Deserialize, Serialize};
use tidegate_data::target::Task;

use binary::Binary;
use classes::Classes;
use number::Number;
pub use residuals::Residuals;

/// One figure of quality.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    pub name: String,
    pub value: f64,
    /// The same figure for the trivial model: the mean, or the shares of the classes.
    pub baseline: Option<f64>,
    pub higher_is_better: bool,
}

/// How good predictions are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// The figures, the one that stands for the model first. Empty without rows.
    pub metrics: Vec<Metric>,
    /// Rows by their true class (outer) and the predicted one; empty for a number and above 50
    /// classes.
    pub confusion: Vec<Vec<u64>>,
    /// Predicted probabilities beside what came true: of the positive value, or of the predicted class where there
    /// are several. Empty for a number; bins without rows are left out.
    pub calibration: Vec<CalibrationBin>,
    /// For each class: its rows, those predicted as it, and those of both.
    #[serde(default)]
    pub class_counts: Vec<[u64; 3]>,
    /// Of a number.
    #[serde(default)]
    pub residuals: Option<Residuals>,
}

/// Classes that a confusion matrix has at the most: more are no longer read by anybody.
pub(crate) const MOST_CONFUSED: usize = 50;

/// Rows whose predicted probability lies in one tenth of the scale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationBin {
    /// The mean probability.
    pub predicted: f64,
    /// The share of the rows for which it came true.
    pub observed: f64,
    pub rows: u64,
}

/// Takes in predictions one by one, in any amount, in their order.
#[derive(Debug, Clone)]
pub struct Evaluator {
    rows: u64,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Number(Number),
    Binary(Binary),
    Classes(Classes),
}

impl Evaluator {
    /// `prior` is what the trivial model predicts: the mean of the training rows, their share of positives, or
    /// their share of each class.
    pub fn new(task: Task, prior: &[f64]) -> Evaluator {
        let first = prior.first().copied().unwrap_or(f64::NAN);
        let kind = match task {
            Task::Regression => Kind::Number(Number::new(first)),
            Task::Binary => Kind::Binary(Binary::new(first)),
            Task::Multiclass => Kind::Classes(Classes::new(prior)),
        };
        Evaluator { rows: 0, kind }
    }

    /// Of one of many numbers: its figures, without how its errors are spread.
    pub(crate) fn of_figures(prior: f64) -> Evaluator {
        Evaluator {
            rows: 0,
            kind: Kind::Number(Number::of_figures(prior)),
        }
    }

    /// What such a one holds.
    pub(crate) const FIGURES: u64 = 256;

    /// The bytes that an evaluator holds.
    pub fn bytes(task: Task, classes: usize) -> u64 {
        match task {
            Task::Regression => Evaluator::FIGURES + Number::SPREAD,
            Task::Binary => Binary::BYTES,
            Task::Multiclass => Classes::bytes(classes),
        }
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes in the prediction for a row (a number, the probability of the positive value, or of each class)
    /// and the truth: a number, or the index of the class.
    #[inline]
    pub fn push(&mut self, predicted: &[f64], truth: f64) {
        self.rows += 1;
        match &mut self.kind {
            Kind::Number(number) => number.push(predicted[0], truth),
            Kind::Binary(binary) => binary.push(predicted[0], truth >= 0.5),
            Kind::Classes(classes) => classes.push(predicted, truth as usize),
        }
    }

    pub fn metrics(&self) -> Vec<Metric> {
        self.quality().metrics
    }

    pub fn quality(&self) -> Quality {
        match &self.kind {
            _ if self.rows == 0 => Quality::default(),
            Kind::Number(number) => number.quality(self.rows as f64),
            Kind::Binary(binary) => binary.quality(self.rows as f64),
            Kind::Classes(classes) => classes.quality(self.rows as f64),
        }
    }
}

/// The loss of one prediction: the squared error, or `−ln` of the probability of the truth.
#[inline]
pub(crate) fn loss_of(task: Task, predicted: &[f64], truth: f64) -> f64 {
    match task {
        Task::Regression => (truth - predicted[0]).powi(2),
        Task::Binary => surprise(if truth >= 0.5 {
            predicted[0]
        } else {
            1.0 - predicted[0]
        }),
        Task::Multiclass => surprise(predicted[truth as usize]),
    }
}

/// The index of the highest score; the first of several.
#[inline]
pub(crate) fn highest(scores: &[f64]) -> usize {
    let mut best = 0;
    for (i, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = i;
        }
    }
    best
}

/// `−ln p`, with probabilities kept 1e-15 away from 0 and 1 as scikit-learn does.
#[inline]
fn surprise(p: f64) -> f64 {
    -p.clamp(1e-15, 1.0 - 1e-15).ln()
}

fn metric(name: &str, value: f64, baseline: f64, higher_is_better: bool) -> Metric {
    Metric {
        name: name.into(),
        value,
        baseline: Some(baseline),
        higher_is_better,
    }
}

/// Precision, recall and F1 from the rows of a class, those predicted as it, and those of both. A figure whose
/// denominator is zero counts as zero, as in scikit-learn.
pub(crate) fn precision_recall_f1(of_class: u64, predicted: u64, both: u64) -> [f64; 3] {
    let over = |part: f64, whole: u64| if whole > 0 { part / whole as f64 } else { 0.0 };
    let both = both as f64;
    [
        over(both, predicted),
        over(both, of_class),
        over(2.0 * both, of_class + predicted),
    ]
}

/// Sums for the calibration table.
#[derive(Debug, Clone, Default)]
struct Calibration {
    /// Rows, summed probability and rows for which it came true.
    bins: [(u64, f64, u64); 10],
}

impl Calibration {
    #[inline]
    fn push(&mut self, probability: f64, came_true: bool) {
        let last = self.bins.len() - 1;
        let bin = &mut self.bins[((probability * 10.0) as usize).min(last)];
        bin.0 += 1;
        bin.1 += probability;
        bin.2 += u64::from(came_true);
    }

    fn bins(&self) -> Vec<CalibrationBin> {
        let filled = self.bins.iter().filter(|bin| bin.0 > 0);
        let bin = |&(rows, sum, came_true): &(u64, f64, u64)| CalibrationBin {
            predicted: sum / rows as f64,
            observed: came_true as f64 / rows as f64,
            rows,
        };
        filled.map(bin).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(evaluator: &Evaluator, name: &str, value: f64, baseline: f64) {
        let metrics = evaluator.metrics();
        let found = metrics.iter().find(|metric| metric.name == name);
        let found = found.unwrap_or_else(|| panic!("{name} in {metrics:?}"));
        assert!((found.value - value).abs() < 1e-12, "{found:?}");
        let close = (found.baseline.unwrap() - baseline).abs() < 1e-12;
        assert!(close || baseline.is_nan(), "{found:?}");
    }

    /// Expected values from scikit-learn:
    ///
    /// ```python
    /// from sklearn.metrics import *
    /// y = [0, 0, 1, 1, 1, 0]; p = [0.1, 0.4, 0.35, 0.8, 0.9, 0.4]; c = [q >= 0.5 for q in p]
    /// log_loss(y, p), roc_auc_score(y, p), accuracy_score(y, c)
    /// # (0.4175563257767536, 0.7777777777777778, 0.8333333333333334)
    /// precision_score(y, c), recall_score(y, c), f1_score(y, c), brier_score_loss(y, p)
    /// # (1.0, 0.6666666666666666, 0.8, 0.13375)
    /// ```
    #[test]
    fn binary_metrics_equal_scikit_learn() {
        let mut evaluator = Evaluator::new(Task::Binary, &[0.5]);
        for (y, p) in [(0., 0.1), (0., 0.4), (1., 0.35), (1., 0.8), (1., 0.9), (0., 0.4)] {
            evaluator.push(&[p], y);
        }
        check(&evaluator, "log_loss", 0.4175563257767536, std::f64::consts::LN_2);
        check(&evaluator, "auc", 7.0 / 9.0, 0.5);
        check(&evaluator, "accuracy", 5.0 / 6.0, 0.5);
        check(&evaluator, "precision", 1.0, 0.5);
        check(&evaluator, "recall", 2.0 / 3.0, 1.0);
        check(&evaluator, "f1", 0.8, 2.0 / 3.0);
        check(&evaluator, "brier", 0.13375, 0.25);
        let quality = evaluator.quality();
        assert_eq!(quality.confusion, [[3, 0], [1, 2]]);
        let bin = |predicted, observed, rows| CalibrationBin {
            predicted,
            observed,
            rows,
        };
        let bins = [
            bin(0.1, 0.0, 1),
            bin(0.35, 1.0, 1),
            bin(0.4, 0.0, 2),
            bin(0.8, 1.0, 1),
            bin(0.9, 1.0, 1),
        ];
        assert_eq!(quality.calibration, bins);
    }

    /// ```python
    /// y = [3, -0.5, 2, 7]; p = [2.5, 0.0, 2, 8]
    /// mean_squared_error(y, p) ** 0.5, r2_score(y, p), mean_absolute_error(y, p)
    /// # (0.6123724356957945, 0.9486081370449679, 0.5)
    /// mean_absolute_percentage_error(y, p)
    /// # 0.3273809523809524
    /// ```
    #[test]
    fn regression_metrics_equal_scikit_learn() {
        let mut evaluator = Evaluator::new(Task::Regression, &[2.875]);
        for (y, p) in [(3.0, 2.5), (-0.5, 0.0), (2.0, 2.0), (7.0, 8.0)] {
            evaluator.push(&[p], y);
        }
        check(&evaluator, "rmse", 0.6123724356957945, f64::NAN);
        check(&evaluator, "r2", 0.9486081370449679, 0.0);
        check(&evaluator, "mae", 0.5, 2.125);
        check(&evaluator, "mape", 0.3273809523809524, f64::NAN);
        evaluator.push(&[1.0], 0.0);
        assert!(
            evaluator.metrics().iter().all(|metric| metric.name != "mape"),
            "there is no share of nothing"
        );
    }

    /// ```python
    /// y = [0, 1, 2, 2, 1]
    /// p = [[.7, .2, .1], [.3, .4, .3], [.2, .2, .6], [.5, .1, .4], [.1, .8, .1]]
    /// log_loss(y, p), f1_score(y, np.argmax(p, 1), average="macro")
    /// # (0.5846451165534485, 0.7777777777777777)
    /// ```
    #[test]
    fn metrics_of_classes_equal_scikit_learn() {
        let mut evaluator = Evaluator::new(Task::Multiclass, &[0.2, 0.4, 0.4]);
        let rows = [
            ([0.7, 0.2, 0.1], 0.0),
            ([0.3, 0.4, 0.3], 1.0),
            ([0.2, 0.2, 0.6], 2.0),
            ([0.5, 0.1, 0.4], 2.0),
            ([0.1, 0.8, 0.1], 1.0),
        ];
        rows.iter().for_each(|(p, y)| evaluator.push(p, *y));
        check(&evaluator, "log_loss", 0.5846451165534485, 1.0549201679861442);
        check(&evaluator, "accuracy", 0.8, 0.4);
        check(&evaluator, "macro_f1", 0.7777777777777777, 4.0 / 7.0 / 3.0);
        let quality = evaluator.quality();
        assert_eq!(quality.confusion, [[1, 0, 0], [0, 2, 0], [1, 0, 1]]);
        assert_eq!(quality.calibration.iter().map(|bin| bin.rows).sum::<u64>(), 5);
    }

    #[test]
    fn no_rows_give_no_metrics() {
        for (task, prior) in [
            (Task::Binary, vec![0.5]),
            (Task::Regression, vec![0.0]),
            (Task::Multiclass, vec![0.3; 3]),
        ] {
            assert_eq!(Evaluator::new(task, &prior).quality(), Quality::default());
        }
    }
}
