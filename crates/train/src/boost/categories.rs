//! Splits of categories: which of them go to the left is a set, not a threshold.
//!
//! The bins of a categorical feature are its codes: bin 0 for missing values, bin 1 for code −1, a category that
//! training never saw, bin `c + 2` for code `c`. Ordered by the slope of the loss in each, the best of all sets is among
//! the beginnings of that order (Fisher 1958), so a node is split as fast as by a number.

use serde::{Deserialize, Serialize};

use super::histogram::Sum;

/// Bins that go to the left, a bit for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BinSet(pub [u64; 4]);

/// The bin of a category that training never saw. It goes to the left of every split, as it does in XGBoost.
pub(super) const UNSEEN: u8 = 1;

impl BinSet {
    #[inline(always)]
    pub fn contains(&self, bin: u8) -> bool {
        self.0[usize::from(bin >> 6)] >> (bin & 63) & 1 != 0
    }

    pub(super) fn insert(&mut self, bin: u8) {
        self.0[usize::from(bin >> 6)] |= 1 << (bin & 63);
    }

    /// The bin of a code, NaN for a missing one.
    #[inline]
    pub(super) fn bin_of(code: f32) -> u8 {
        match code.is_nan() {
            true => 0,
            false => (code + 2.0).clamp(f32::from(UNSEEN), 255.0) as u8,
        }
    }
}

/// Rows that a category starts with on both sides, in curvature: those with few rows are drawn to the middle of the
/// order. Of 1, 10 and 100, as other trees have it.
const SMOOTHING: f64 = 10.0;

/// The bins of a categorical feature that have rows, in the order of their slopes.
pub(super) fn in_order(bins: &[Sum], gradient_unit: f64, hessian_unit: f64) -> Vec<(u8, Sum)> {
    let slope = |sum: &Sum| sum.g as f64 * gradient_unit / (sum.h as f64 * hessian_unit + SMOOTHING);
    let mut seen: Vec<(f64, u8, Sum)> = (0u8..)
        .zip(bins)
        .filter(|(_, sum)| **sum != Sum::default())
        .map(|(bin, sum)| (slope(sum), bin, *sum))
        .collect();
    seen.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    seen.into_iter().map(|(_, bin, sum)| (bin, sum)).collect()
}

/// The set of a split after the first `n_left` bins of an order. Bins without a row here go with the many.
pub(super) fn left_set(order: &[(u8, Sum)], n_left: usize, n_bins: usize, left_is_heavier: bool) -> BinSet {
    let mut set = BinSet::default();
    if left_is_heavier {
        (0..n_bins).for_each(|bin| set.insert(bin as u8));
        for (bin, _) in &order[n_left..] {
            set.0[usize::from(bin >> 6)] &= !(1 << (bin & 63));
        }
    } else {
        order[..n_left].iter().for_each(|(bin, _)| set.insert(*bin));
    }
    set.insert(UNSEEN);
    set
}
