//! Metrics of the probability of one of two values.

use super::{Calibration, Quality, metric, precision_recall_f1, surprise};

/// Scores are counted in so many bins of equal width for the AUC; ties inside a bin count half, so the
/// error is below the chance that a positive and a negative row share one of 65,536 bins.
const BINS: usize = 1 << 16;

#[derive(Debug, Clone)]
pub(super) struct Binary {
    /// What the baseline predicts.
    prior: f64,
    log_loss: f64,
    prior_log_loss: f64,
    brier: f64,
    prior_brier: f64,
    /// Rows by truth and prediction.
    confusion: [[u64; 2]; 2],
    calibration: Calibration,
    bins: Vec<[u64; 2]>,
}

impl Binary {
    pub(super) const BYTES: u64 = (BINS * size_of::<[u64; 2]>() + 512) as u64;

    pub(super) fn new(prior: f64) -> Binary {
        Binary {
            prior,
            log_loss: 0.0,
            prior_log_loss: 0.0,
            brier: 0.0,
            prior_brier: 0.0,
            confusion: [[0; 2]; 2],
            calibration: Calibration::default(),
            bins: vec![[0; 2]; BINS],
        }
    }

    #[inline]
    pub(super) fn push(&mut self, predicted: f64, is_positive: bool) {
        let of_truth = |p: f64| if is_positive { p } else { 1.0 - p };
        self.log_loss += surprise(of_truth(predicted));
        self.prior_log_loss += surprise(of_truth(self.prior));
        self.brier += (1.0 - of_truth(predicted)).powi(2);
        self.prior_brier += (1.0 - of_truth(self.prior)).powi(2);
        let truth = usize::from(is_positive);
        self.confusion[truth][usize::from(predicted >= 0.5)] += 1;
        self.calibration.push(predicted, is_positive);
        self.bins[((predicted * BINS as f64) as usize).min(BINS - 1)][truth] += 1;
    }

    pub(super) fn quality(&self, n: f64) -> Quality {
        let mut metrics = vec![metric(
            "log_loss",
            self.log_loss / n,
            self.prior_log_loss / n,
            false,
        )];
        if let Some(auc) = auc(&self.bins) {
            metrics.push(metric("auc", auc, 0.5, true));
        }
        let [negatives, positives] = self.confusion.map(|row| row.iter().sum::<u64>());
        let [[right_negatives, wrong_positives], [_, right_positives]] = self.confusion;
        // The baseline calls every row by the value that more training rows have.
        let all_positive = self.prior >= 0.5;
        let majority = if all_positive { positives } else { negatives };
        let right = right_negatives + right_positives;
        metrics.push(metric("accuracy", right as f64 / n, majority as f64 / n, true));
        let own = precision_recall_f1(positives, right_positives + wrong_positives, right_positives);
        let baseline = match all_positive {
            true => precision_recall_f1(positives, positives + negatives, positives),
            false => [0.0; 3],
        };
        for (name, i) in [("f1", 2), ("precision", 0), ("recall", 1)] {
            metrics.push(metric(name, own[i], baseline[i], true));
        }
        metrics.push(metric("brier", self.brier / n, self.prior_brier / n, false));
        Quality {
            metrics,
            confusion: self.confusion.iter().map(|row| row.to_vec()).collect(),
            calibration: self.calibration.bins(),
            class_counts: vec![
                [
                    negatives,
                    right_negatives + positives - right_positives,
                    right_negatives,
                ],
                [positives, right_positives + wrong_positives, right_positives],
            ],
            residuals: None,
        }
    }
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
