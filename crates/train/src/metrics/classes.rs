//! Metrics of the probabilities of several classes.

use super::{Calibration, MOST_CONFUSED, Quality, highest, metric, precision_recall_f1, surprise};

#[derive(Debug, Clone)]
pub(super) struct Classes {
    /// What the baseline predicts.
    prior: Vec<f64>,
    log_loss: f64,
    prior_log_loss: f64,
    /// For each class: its rows, those predicted as it, and those of both.
    counts: Vec<[u64; 3]>,
    /// Rows by truth and prediction, truth after truth; empty for too many classes.
    confusion: Vec<u64>,
    calibration: Calibration,
    /// Rows whose class is among the likeliest.
    near: u64,
}

/// How many are the likeliest, where there are more.
const NEAR: usize = 5;

impl Classes {
    pub(super) fn new(prior: &[f64]) -> Classes {
        let classes = prior.len();
        Classes {
            prior: prior.to_vec(),
            log_loss: 0.0,
            prior_log_loss: 0.0,
            counts: vec![[0; 3]; classes],
            confusion: vec![
                0;
                if classes <= MOST_CONFUSED {
                    classes * classes
                } else {
                    0
                }
            ],
            calibration: Calibration::default(),
            near: 0,
        }
    }

    pub(super) fn bytes(classes: usize) -> u64 {
        let matrix = classes.min(MOST_CONFUSED).pow(2);
        (512 + (matrix + 4 * classes) * size_of::<u64>()) as u64
    }

    #[inline]
    pub(super) fn push(&mut self, predicted: &[f64], truth: usize) {
        self.log_loss += surprise(predicted[truth]);
        self.prior_log_loss += surprise(self.prior[truth]);
        let guess = highest(predicted);
        self.counts[truth][0] += 1;
        self.counts[guess][1] += 1;
        self.counts[truth][2] += u64::from(guess == truth);
        if !self.confusion.is_empty() {
            self.confusion[truth * self.counts.len() + guess] += 1;
        }
        self.calibration.push(predicted[guess], guess == truth);
        let likelier = predicted
            .iter()
            .filter(|score| **score > predicted[truth])
            .count();
        self.near += u64::from(likelier < NEAR);
    }

    pub(super) fn quality(&self, n: f64) -> Quality {
        let right: u64 = self.counts.iter().map(|[_, _, both]| both).sum();
        // The baseline calls every row by the class that most training rows have.
        let most = self.counts[highest(&self.prior)][0];
        let f1 = |[of_class, predicted, both]: [u64; 3]| precision_recall_f1(of_class, predicted, both)[2];
        // As scikit-learn does: the mean over the classes that are there, or predicted.
        let there = self.counts.iter().filter(|counts| counts[0] + counts[1] > 0);
        let macro_f1 = there.clone().map(|counts| f1(*counts)).sum::<f64>() / there.count() as f64;
        let in_truth = self.counts.iter().filter(|counts| counts[0] > 0).count().max(1);
        let baseline_f1 = f1([most, n as u64, most]) / in_truth as f64;
        let mut metrics = vec![
            metric("log_loss", self.log_loss / n, self.prior_log_loss / n, false),
            metric("accuracy", right as f64 / n, most as f64 / n, true),
            metric("macro_f1", macro_f1, baseline_f1, true),
        ];
        if self.counts.len() > NEAR {
            let mut likeliest: Vec<usize> = (0..self.prior.len()).collect();
            likeliest.sort_by(|a, b| self.prior[*b].total_cmp(&self.prior[*a]));
            let baseline: u64 = likeliest
                .iter()
                .take(NEAR)
                .map(|class| self.counts[*class][0])
                .sum();
            let share = self.near as f64 / n;
            metrics.push(metric("top_5_accuracy", share, baseline as f64 / n, true));
        }
        let rows = self.confusion.chunks(self.counts.len());
        Quality {
            metrics,
            confusion: rows.map(<[u64]>::to_vec).collect(),
            calibration: self.calibration.bins(),
            class_counts: self.counts.clone(),
            residuals: None,
        }
    }
}
