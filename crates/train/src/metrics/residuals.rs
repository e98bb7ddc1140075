//! How the errors of a predicted number are spread, in about 30 KB however many rows there are.

use serde::{Deserialize, Serialize};
use tidegate_data::sketch::Quantiles;

/// Bins that the histogram aims at; a round width makes it somewhat more or less.
const BINS: f64 = 30.0;
/// Of either end so large a share of the rows is left out of the bins: one strange row would make a single bin of all others.
const TAIL: f64 = 0.005;
/// Shares of the rows that a person asks about.
const SHARES: [f64; 5] = [0.5, 0.8, 0.9, 0.95, 0.99];

/// What the truth is above the prediction, over the rows held out: a histogram, and how large errors are. Exact up to 500
/// distinct errors, then by ranks that are off by 0.06% as a rule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Residuals {
    /// Where the first bin begins, and how wide each is, which is a round number.
    pub from: f64,
    pub width: f64,
    pub bins: Vec<u64>,
    /// Rows left and right of the bins.
    pub below: u64,
    pub above: u64,
    /// Above zero, predictions are too small as a rule.
    pub mean: f64,
    /// For a share of the rows, what their errors without signs do not exceed.
    pub within: Vec<(f64, f64)>,
    /// The largest error without its sign.
    pub largest: f64,
}

/// Takes in errors one by one. Those that are infinite or not a number have no place.
#[derive(Debug, Clone, Default)]
pub(super) struct Errors {
    sketch: Quantiles,
    sum: f64,
    largest: f64,
}

impl Errors {
    /// What it grows to: the sketch was measured at 26 KB, and has twice its largest part while that grows.
    pub(super) const BYTES: u64 = 40_000;

    #[inline]
    pub(super) fn push(&mut self, error: f64) {
        if error.is_finite() {
            self.sketch.push_slice(&[error]);
            self.sum += error;
            self.largest = self.largest.max(error.abs());
        }
    }

    /// `None` without a row.
    pub(super) fn residuals(&self) -> Option<Residuals> {
        let ends = self.sketch.quantiles(&[TAIL, 1.0 - TAIL])?;
        let (low, high) = (ends[0], ends[1]);
        let width = match (high - low, low.abs()) {
            (span, _) if span > 0.0 => round_up(span / BINS),
            (_, size) if size > 0.0 => round_up(size),
            _ => 1.0,
        };
        let from = (low / width).floor() * width;
        let n_bins = ((high - from) / width).floor() + 1.0;
        if !(from.is_finite() && n_bins.is_finite()) {
            return None;
        }
        let mut residuals = Residuals {
            from,
            width,
            bins: vec![0; (n_bins as usize).clamp(1, 4 * BINS as usize)],
            mean: self.sum / self.sketch.count as f64,
            largest: self.largest,
            ..Residuals::default()
        };
        let weights = self.sketch.weights();
        for (error, rows) in &weights {
            let at = ((error - from) / width).floor();
            let place = match residuals.bins.get_mut(at.max(0.0) as usize) {
                _ if at < 0.0 => &mut residuals.below,
                Some(bin) => bin,
                None => &mut residuals.above,
            };
            *place += rows;
        }
        residuals.within = within(weights);
        Some(residuals)
    }
}

/// What a share of the errors without signs does not exceed.
fn within(mut weights: Vec<(f64, u64)>) -> Vec<(f64, f64)> {
    for (error, _) in &mut weights {
        *error = error.abs();
    }
    weights.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let all: u64 = weights.iter().map(|(_, rows)| rows).sum();
    let mut below = 0;
    let mut cumulated = weights.iter().map(|(error, rows)| {
        below += rows;
        (*error, below as f64)
    });
    let mut reached = cumulated.next();
    let share = |share: f64| {
        while let Some((error, rows)) = reached {
            if rows >= share * all as f64 {
                return Some((share, error));
            }
            reached = cumulated.next();
        }
        None
    };
    SHARES.into_iter().filter_map(share).collect()
}

/// The next number that is 1, 2 or 5 with zeros.
fn round_up(width: f64) -> f64 {
    let magnitude = 10f64.powf(width.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * magnitude);
    steps.into_iter().find(|step| *step >= width).unwrap_or(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(errors: impl IntoIterator<Item = f64>) -> Option<Residuals> {
        let mut all = Errors::default();
        errors.into_iter().for_each(|error| all.push(error));
        all.residuals()
    }

    #[test]
    fn errors_are_counted_in_bins_of_a_round_width() {
        // From -2 to 2.99 in hundredths, none of them more often than another.
        let found = of((-200..300).map(|i| f64::from(i) / 100.0)).unwrap();
        assert_eq!((found.from, found.width), (-2.0, 0.2));
        assert_eq!(found.bins.iter().sum::<u64>() + found.below + found.above, 500);
        assert!(
            found.bins[1..24].iter().all(|rows| (19..=21).contains(rows)),
            "{found:?}"
        );
        assert!((found.mean - 0.495).abs() < 1e-9, "{found:?}");
        assert_eq!(found.largest, 2.99);
        // Up to 2 they come with both signs: four fifths of the way to a half is 1.25.
        let half = found.within[0];
        assert_eq!(half.0, 0.5);
        assert!((half.1 - 1.25).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn one_strange_row_does_not_make_one_bin_of_the_others() {
        let found = of((0..1000).map(|i| f64::from(i % 100) / 100.0).chain([1e9])).unwrap();
        assert_eq!((found.above, found.largest), (1, 1e9));
        assert!(found.bins.len() > 15, "{found:?}");
    }

    #[test]
    fn what_has_no_spread_has_one_bin() {
        for (error, width) in [(0.0, 1.0), (3.0, 5.0), (-3.0, 5.0), (1e-300, 1e-300)] {
            let found = of([error; 7]).unwrap();
            assert_eq!(
                (found.bins.as_slice(), found.width),
                ([7].as_slice(), width),
                "{error}"
            );
            assert!(found.within.iter().all(|(_, within)| *within == error.abs()));
        }
    }

    #[test]
    fn what_is_no_number_has_no_place() {
        assert_eq!(of([]), None);
        assert_eq!(of([f64::NAN, f64::INFINITY]), None);
        assert_eq!(of([f64::NAN, 1.0]).unwrap().bins, [1]);
        for huge in [[f64::MAX, f64::MIN], [f64::MAX, f64::MAX]] {
            let found = of(huge);
            assert!(found.is_none_or(|found| found.bins.len() <= 120), "{huge:?}");
        }
        // Far away from zero, and close together.
        let far = of([1e15, 1e15 + 0.125, 1e15 + 1.0]).unwrap();
        assert_eq!(far.bins.iter().sum::<u64>() + far.below + far.above, 3);
    }

    #[test]
    fn many_rows_take_no_more_memory_than_is_said() {
        let mut all = Errors::default();
        for i in 0..3_000_000u64 {
            all.push((i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1u64 << 53) as f64 - 0.5);
        }
        assert!(
            all.sketch.bytes() as u64 <= Errors::BYTES,
            "{}",
            all.sketch.bytes()
        );
        let found = all.residuals().unwrap();
        let tenth = found.within.iter().find(|(share, _)| *share == 0.9).unwrap().1;
        assert!((tenth - 0.45).abs() < 0.002, "{found:?}");
    }
}
