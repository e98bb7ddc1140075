//! Metrics that people use, beside the trivial baseline, in memory that does not grow with the rows.

use serde::{Deserialize, Serialize};
use tidegate_data::target::Task;

/// One figure of quality.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    pub name: String,
    pub value: f64,
    /// The same figure for the trivial model: the mean, or the share of positives.
    pub baseline: Option<f64>,
    pub higher_is_better: bool,
}

/// Scores are counted in so many bins of equal width for the AUC; ties inside a bin count half, so the
/// error is below the chance that a positive and a negative row share one of 65,536 bins.
const BINS: usize = 1 << 16;

/// Takes in predictions one by one, in any amount.
#[derive(Debug, Clone)]
pub struct Evaluator {
    rows: u64,
    /// The mean target of the training rows: what the baseline predicts.
    prior: f64,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Regression {
        squared: f64,
        absolute: f64,
        prior_squared: f64,
        mean: f64,
        spread: f64,
    },
    Binary {
        log_loss: f64,
        prior_log_loss: f64,
        correct: u64,
        positives: u64,
        bins: Vec<[u64; 2]>,
    },
}

impl Evaluator {
    pub fn new(task: Task, prior: f64) -> Evaluator {
        let kind = match task {
            Task::Regression => Kind::Regression {
                squared: 0.0,
                absolute: 0.0,
                prior_squared: 0.0,
                mean: 0.0,
                spread: 0.0,
            },
            Task::Binary | Task::Multiclass => Kind::Binary {
                log_loss: 0.0,
                prior_log_loss: 0.0,
                correct: 0,
                positives: 0,
                bins: vec![[0; 2]; BINS],
            },
        };
        Evaluator { rows: 0, prior, kind }
    }

    /// The bytes that an evaluator holds.
    pub fn bytes(task: Task) -> u64 {
        match task {
            Task::Regression => 256,
            Task::Binary | Task::Multiclass => (BINS * size_of::<[u64; 2]>()) as u64,
        }
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes in a prediction (a number, or the probability of the positive value) and the truth.
    pub fn push(&mut self, predicted: f64, truth: f64) {
        self.rows += 1;
        let n = self.rows as f64;
        match &mut self.kind {
            Kind::Regression {
                squared,
                absolute,
                prior_squared,
                mean,
                spread,
            } => {
                let error = truth - predicted;
                *squared += error * error;
                *absolute += error.abs();
                *prior_squared += (truth - self.prior).powi(2);
                let delta = truth - *mean;
                *mean += delta / n;
                *spread += delta * (truth - *mean);
            }
            Kind::Binary {
                log_loss,
                prior_log_loss,
                correct,
                positives,
                bins,
            } => {
                *log_loss += cross_entropy(predicted, truth);
                *prior_log_loss += cross_entropy(self.prior, truth);
                *correct += u64::from((predicted >= 0.5) == (truth >= 0.5));
                *positives += u64::from(truth >= 0.5);
                let bin = (predicted * BINS as f64) as usize;
                bins[bin.min(BINS - 1)][usize::from(truth >= 0.5)] += 1;
            }
        }
    }

    /// The figures, the one that stands for the model first. Empty without rows.
    pub fn metrics(&self) -> Vec<Metric> {
        if self.rows == 0 {
            return Vec::new();
        }
        let n = self.rows as f64;
        let metric = |name: &str, value: f64, baseline: f64, higher_is_better: bool| Metric {
            name: name.into(),
            value,
            baseline: Some(baseline),
            higher_is_better,
        };
        match &self.kind {
            Kind::Regression {
                squared,
                absolute,
                prior_squared,
                spread,
                ..
            } => {
                let mut metrics = vec![metric(
                    "rmse",
                    (squared / n).sqrt(),
                    (prior_squared / n).sqrt(),
                    false,
                )];
                if *spread > 0.0 {
                    metrics.push(metric(
                        "r2",
                        1.0 - squared / spread,
                        1.0 - prior_squared / spread,
                        true,
                    ));
                }
                metrics.push(Metric {
                    name: "mae".into(),
                    value: absolute / n,
                    baseline: None,
                    higher_is_better: false,
                });
                metrics
            }
            Kind::Binary {
                log_loss,
                prior_log_loss,
                correct,
                positives,
                bins,
            } => {
                let mut metrics = vec![metric("log_loss", log_loss / n, prior_log_loss / n, false)];
                if let Some(auc) = auc(bins) {
                    metrics.push(metric("auc", auc, 0.5, true));
                }
                let positive_share = *positives as f64 / n;
                let majority = if self.prior >= 0.5 {
                    positive_share
                } else {
                    1.0 - positive_share
                };
                metrics.push(metric("accuracy", *correct as f64 / n, majority, true));
                metrics
            }
        }
    }
}

/// `−ln p(truth)`, with probabilities kept 1e-15 away from 0 and 1 as scikit-learn does.
fn cross_entropy(predicted: f64, truth: f64) -> f64 {
    let p = predicted.clamp(1e-15, 1.0 - 1e-15);
    if truth >= 0.5 { -p.ln() } else { -(1.0 - p).ln() }
}

/// The chance that a positive row scores above a negative one; `None` with a single class.
fn auc(bins: &[[u64; 2]]) -> Option<f64> {
    let mut negatives_below = 0.0;
    let (mut wins, mut negatives, mut positives) = (0.0, 0.0, 0.0);
    for &[negative, positive] in bins {
        let (negative, positive) = (negative as f64, positive as f64);
        wins += positive * (negatives_below + negative / 2.0);
        negatives_below += negative;
        negatives += negative;
        positives += positive;
    }
    (negatives > 0.0 && positives > 0.0).then(|| wins / (negatives * positives))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(evaluator: &Evaluator, name: &str) -> (f64, f64) {
        let metric = evaluator
            .metrics()
            .into_iter()
            .find(|metric| metric.name == name)
            .unwrap();
        (metric.value, metric.baseline.unwrap_or(f64::NAN))
    }

    /// Expected values from scikit-learn:
    ///
    /// ```python
    /// from sklearn.metrics import log_loss, roc_auc_score, accuracy_score
    /// y = [0, 0, 1, 1, 1, 0]; p = [0.1, 0.4, 0.35, 0.8, 0.9, 0.4]
    /// log_loss(y, p), roc_auc_score(y, p), accuracy_score(y, [q >= 0.5 for q in p])
    /// # (0.4175563257767536, 0.7777777777777778, 0.8333333333333334)
    /// ```
    #[test]
    fn binary_metrics_equal_scikit_learn() {
        let mut evaluator = Evaluator::new(Task::Binary, 0.5);
        for (y, p) in [(0., 0.1), (0., 0.4), (1., 0.35), (1., 0.8), (1., 0.9), (0., 0.4)] {
            evaluator.push(p, y);
        }
        let close = |found: (f64, f64), value: f64, baseline: f64| {
            assert!(
                (found.0 - value).abs() < 1e-12 && (found.1 - baseline).abs() < 1e-12,
                "{found:?}"
            );
        };
        close(
            value(&evaluator, "log_loss"),
            0.4175563257767536,
            std::f64::consts::LN_2,
        );
        close(value(&evaluator, "auc"), 7.0 / 9.0, 0.5);
        close(value(&evaluator, "accuracy"), 5.0 / 6.0, 0.5);
    }

    /// ```python
    /// from sklearn.metrics import mean_squared_error, r2_score, mean_absolute_error
    /// y = [3, -0.5, 2, 7]; p = [2.5, 0.0, 2, 8]
    /// mean_squared_error(y, p) ** 0.5, r2_score(y, p), mean_absolute_error(y, p)
    /// # (0.6123724356957945, 0.9486081370449679, 0.5)
    /// ```
    #[test]
    fn regression_metrics_equal_scikit_learn() {
        let mut evaluator = Evaluator::new(Task::Regression, 2.875);
        for (y, p) in [(3.0, 2.5), (-0.5, 0.0), (2.0, 2.0), (7.0, 8.0)] {
            evaluator.push(p, y);
        }
        assert!((value(&evaluator, "rmse").0 - 0.6123724356957945).abs() < 1e-12);
        assert!((value(&evaluator, "r2").0 - 0.9486081370449679).abs() < 1e-12);
        assert!(
            value(&evaluator, "r2").1.abs() < 1e-12,
            "the mean explains nothing"
        );
        assert!((value(&evaluator, "mae").0 - 0.5).abs() < 1e-12);
    }

    #[test]
    fn no_rows_give_no_metrics() {
        assert!(Evaluator::new(Task::Binary, 0.5).metrics().is_empty());
    }
}
