//! Metrics of a predicted number.

use super::residuals::Errors;
use super::{Quality, metric};

#[derive(Debug, Clone, Default)]
pub(super) struct Number {
    /// What the baseline predicts.
    prior: f64,
    squared: f64,
    absolute: f64,
    /// Errors as shares of the truth, as long as no truth is zero.
    shares: [f64; 2],
    zeros: u64,
    prior_squared: f64,
    prior_absolute: f64,
    rows: f64,
    mean: f64,
    spread: f64,
    /// How the errors are spread, where that is asked for.
    errors: Option<Box<Errors>>,
}

impl Number {
    /// What it holds beside its figures.
    pub(super) const SPREAD: u64 = Errors::BYTES;

    pub(super) fn new(prior: f64) -> Number {
        Number {
            errors: Some(Box::default()),
            ..Number::of_figures(prior)
        }
    }

    pub(super) fn of_figures(prior: f64) -> Number {
        Number {
            prior,
            ..Number::default()
        }
    }

    #[inline]
    pub(super) fn push(&mut self, predicted: f64, truth: f64) {
        let (error, prior_error) = (truth - predicted, truth - self.prior);
        self.squared += error * error;
        self.absolute += error.abs();
        self.prior_squared += prior_error * prior_error;
        self.prior_absolute += prior_error.abs();
        if truth == 0.0 {
            self.zeros += 1;
        } else {
            self.shares[0] += (error / truth).abs();
            self.shares[1] += (prior_error / truth).abs();
        }
        self.rows += 1.0;
        let delta = truth - self.mean;
        self.mean += delta / self.rows;
        self.spread += delta * (truth - self.mean);
        if let Some(errors) = &mut self.errors {
            errors.push(error);
        }
    }

    pub(super) fn quality(&self, n: f64) -> Quality {
        let root = |sum: f64| (sum / n).sqrt();
        let mut metrics = vec![metric(
            "rmse",
            root(self.squared),
            root(self.prior_squared),
            false,
        )];
        if self.spread > 0.0 {
            let explained = |sum: f64| 1.0 - sum / self.spread;
            metrics.push(metric(
                "r2",
                explained(self.squared),
                explained(self.prior_squared),
                true,
            ));
        }
        metrics.push(metric("mae", self.absolute / n, self.prior_absolute / n, false));
        if self.zeros == 0 {
            let [own, prior] = self.shares.map(|sum| sum / n);
            metrics.push(metric("mape", own, prior, false));
        }
        Quality {
            metrics,
            residuals: self.errors.as_ref().and_then(|errors| errors.residuals()),
            ..Quality::default()
        }
    }
}
