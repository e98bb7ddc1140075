//! The best split of a node, from the sums of its bins.

use super::categories::{BinSet, in_order, left_set};
use super::histogram::{Column, Layout, Sum};

/// What a split must meet, and what the integer sums are worth.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) gradient_unit: f64,
    pub(super) hessian_unit: f64,
    pub(super) l2: f64,
    pub(super) min_child_weight: f64,
    pub(super) min_gain: f64,
}

impl Rules {
    /// Twice what the best constant takes off the loss: `G² / (H + λ)`.
    #[inline(always)]
    fn score(&self, sum: Sum) -> f64 {
        let g = sum.g as f64 * self.gradient_unit;
        g * g / (sum.h as f64 * self.hessian_unit + self.l2)
    }

    /// The best constant, `−G / (H + λ)`.
    pub(super) fn value(&self, sum: Sum) -> f64 {
        let value = -(sum.g as f64 * self.gradient_unit) / (self.weight(sum) + self.l2);
        if value.is_finite() { value } else { 0.0 }
    }

    pub(super) fn weight(&self, sum: Sum) -> f64 {
        sum.h as f64 * self.hessian_unit
    }

    /// The least curvature of a child in integer units; one with none at all has no best constant.
    fn least_hessian(&self) -> i64 {
        ((self.min_child_weight / self.hessian_unit).ceil() as i64).max(1)
    }
}

/// Bins `1..=bin` go to the left, or those of a set; missing values where they are best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Split {
    pub(super) feature: usize,
    pub(super) bin: u8,
    /// Of categories: the bins that go to the left, missing values among them.
    pub(super) set: Option<BinSet>,
    pub(super) default_left: bool,
    pub(super) gain: f64,
    pub(super) left: Sum,
    pub(super) right: Sum,
}

/// The split of the largest gain; of equal ones that of the lowest feature, then of the lowest bin.
pub(super) fn best_split(sums: &[Sum], layout: &Layout, total: Sum, rules: &Rules) -> Option<Split> {
    let least = rules.least_hessian();
    if total.h < 2 * least {
        return None;
    }
    let whole = rules.score(total);
    // A gain in the last digits of the score is none.
    let mut best_score = whole * (1.0 + 1e-10) + rules.min_gain.max(0.0);
    let mut best: Option<Split> = None;
    for column in &layout.columns {
        let bins = &sums[column.offset..column.offset + column.n_bins];
        if column.categorical {
            best_set(column, bins, total, rules, (whole, &mut best_score), &mut best);
            continue;
        }
        let missing = bins[0];
        let n_cuts = column.n_bins - 2;
        let mut consider = |bin: usize, left: Sum, default_left: bool| {
            let right = total - left;
            if left.h < least || right.h < least {
                return;
            }
            let score = rules.score(left) + rules.score(right);
            if score > best_score {
                best_score = score;
                best = Some(Split {
                    feature: column.feature,
                    bin: bin as u8,
                    set: None,
                    default_left,
                    gain: score - whole,
                    left,
                    right,
                });
            }
        };
        if missing == Sum::default() {
            let mut below = Sum::default();
            for (bin, sum) in bins.iter().enumerate().take(n_cuts + 1).skip(1) {
                // An empty bin changes nothing.
                if *sum != Sum::default() {
                    below = below + *sum;
                    // Who has never seen a missing value sends it with the many.
                    consider(bin, below, below.h > total.h - below.h);
                }
            }
        } else {
            consider(0, missing, true);
            let mut below = Sum::default();
            for (bin, sum) in bins.iter().enumerate().take(n_cuts + 1).skip(1) {
                if *sum != Sum::default() {
                    below = below + *sum;
                    consider(bin, below, false);
                    consider(bin, below + missing, true);
                }
            }
        }
    }
    best
}

/// What is added to the penalty on the children of a set: an order that is chosen by the slopes themselves finds gains
/// in noise that a threshold does not.
const SET_PENALTY: f64 = 10.0;

/// The best beginning of the categories in the order of their slopes, if it is better than what was found so far.
fn best_set(
    column: &Column,
    bins: &[Sum],
    total: Sum,
    rules: &Rules,
    (whole, best_score): (f64, &mut f64),
    best: &mut Option<Split>,
) {
    let order = in_order(bins, rules.gradient_unit, rules.hessian_unit);
    let least = rules.least_hessian();
    // Two categories have no order to choose: they are split as a number is.
    let free = order.len() > 2;
    let strict = Rules {
        l2: rules.l2 + if free { SET_PENALTY } else { 0.0 },
        ..*rules
    };
    let (mut left, mut found) = (Sum::default(), None);
    for (i, (_, sum)) in order.iter().enumerate().take(order.len().saturating_sub(1)) {
        left = left + *sum;
        let right = total - left;
        if left.h < least || right.h < least {
            continue;
        }
        let score = strict.score(left) + strict.score(right);
        if score > *best_score {
            *best_score = score;
            found = Some((i + 1, left, right, score));
        }
    }
    if let Some((n_left, left, right, score)) = found {
        let set = left_set(&order, n_left, column.n_bins, left.h > right.h);
        *best = Some(Split {
            feature: column.feature,
            bin: 0,
            set: Some(set),
            default_left: set.contains(0),
            gain: score - whole,
            left,
            right,
        });
    }
}

/// How a row is sent: left when `bin − shift < limit`, in bytes that wrap around. Missing values are bin 0:
/// with `shift` 1 they become 255 and go right. Categories go left when they are in the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) feature: u32,
    shift: u8,
    limit: u8,
    pub(super) set: Option<BinSet>,
}

impl Test {
    pub(super) fn new(feature: usize, bin: u8, default_left: bool) -> Test {
        // `bin` is at most MAX_CUTS, so that the limit fits.
        let shift = u8::from(!default_left);
        Test {
            feature: feature as u32,
            shift,
            limit: bin + 1 - shift,
            set: None,
        }
    }

    pub(super) fn of(split: &Split) -> Test {
        Test {
            set: split.set,
            ..Test::new(split.feature, split.bin, split.default_left)
        }
    }

    #[inline(always)]
    pub(super) fn goes_left(self, bin: u8) -> bool {
        match self.set {
            None => self.is_below(bin),
            Some(set) => set.contains(bin),
        }
    }

    /// The same for a split of numbers.
    #[inline(always)]
    pub(super) fn is_below(self, bin: u8) -> bool {
        bin.wrapping_sub(self.shift) < self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_sends_bins_and_missing_values_where_the_split_says() {
        for default_left in [false, true] {
            for bin in 0..=super::super::MAX_CUTS as u8 {
                let test = Test::new(0, bin, default_left);
                assert_eq!(test.goes_left(0), default_left, "bin {bin}");
                for value in 1..=255 {
                    assert_eq!(test.goes_left(value), value <= bin, "{value} at bin {bin}");
                }
            }
        }
    }
}
