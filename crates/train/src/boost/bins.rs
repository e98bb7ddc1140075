//! How a number becomes one of at most 256 bins.

use serde::{Deserialize, Serialize};

/// The most cuts of a feature: 255 bins of values beside the one for missing values.
pub const MAX_CUTS: usize = 254;

/// The most categories that have a bin each: two are for missing values and for categories never seen.
pub const MAX_CATEGORIES: usize = 253;

/// A feature and the cuts between its bins.
///
/// Bin 0 holds missing values (NaN). Other values are in bin `1 + (number of cuts ≤ x)`, so that the split
/// `x < cuts[k]` sends bins `1..=k + 1` to the left.
///
/// ```
/// use tidegate_train::boost::FeatureBins;
///
/// let bins = FeatureBins::new("age", vec![18.0, 65.0]);
/// assert_eq!([f32::NAN, 3.0, 18.0, 64.9, 65.0].map(|x| bins.bin(x)), [0, 1, 2, 2, 3]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureBins {
    pub name: String,
    /// Ascending, finite, at most [`MAX_CUTS`].
    pub cuts: Vec<f32>,
    /// The values are codes of categories, from 0, and −1 for one never seen: each has its own bin, and splits are
    /// sets of them.
    #[serde(default)]
    pub categorical: bool,
}

impl FeatureBins {
    /// Sorts and dedupes the cuts, and drops those that no finite value lies below. More than [`MAX_CUTS`]
    /// are thinned evenly.
    pub fn new(name: &str, mut cuts: Vec<f32>) -> FeatureBins {
        cuts.retain(|cut| cut.is_finite() && *cut > f32::MIN);
        cuts.sort_by(f32::total_cmp);
        // −0 and 0 are one cut.
        cuts.dedup_by(|a, b| a == b);
        if cuts.len() > MAX_CUTS {
            let n = cuts.len();
            cuts = (0..MAX_CUTS)
                .map(|i| cuts[i * n / MAX_CUTS + n / (2 * MAX_CUTS)])
                .collect();
        }
        FeatureBins {
            name: name.into(),
            cuts,
            categorical: false,
        }
    }

    /// A feature of so many categories, at most [`MAX_CATEGORIES`].
    pub fn of_categories(name: &str, n_categories: usize) -> FeatureBins {
        let n = n_categories.min(MAX_CATEGORIES);
        FeatureBins {
            name: name.into(),
            cuts: (0..=n).map(|code| code as f32 - 0.5).collect(),
            categorical: true,
        }
    }

    /// Cuts that share the weight of `values` evenly among at most `n_bins` bins. `values` ascend, each with
    /// its weight. A cut lies halfway between two neighbouring values; a value heavier than a share gets a bin
    /// of its own.
    pub fn from_weighted(name: &str, values: &[(f32, f64)], n_bins: usize) -> FeatureBins {
        let n_bins = n_bins.clamp(2, MAX_CUTS + 1);
        let mut distinct: Vec<(f32, f64)> = Vec::new();
        for &(value, weight) in values.iter().filter(|(value, _)| value.is_finite()) {
            match distinct.last_mut() {
                Some(last) if last.0 >= value => last.1 += weight,
                _ => distinct.push((value, weight)),
            }
        }
        let mut left: f64 = distinct.iter().map(|(_, weight)| weight).sum();
        let mut bins_left = n_bins;
        let mut cuts = Vec::new();
        let mut filled = 0.0;
        for pair in distinct.windows(2) {
            filled += pair[0].1;
            let share = left / bins_left as f64;
            let rest_fits = distinct.len() <= n_bins;
            // The next value would overfill the bin by more than it lacks now.
            let full = filled + pair[1].1 / 2.0 > share || pair[1].1 >= share;
            if (rest_fits || full) && bins_left > 1 {
                cuts.push(between(pair[0].0, pair[1].0));
                (left, bins_left, filled) = (left - filled, bins_left - 1, 0.0);
            }
        }
        FeatureBins::new(name, cuts)
    }

    /// Cuts at quantile points, as a sketch gives them.
    pub fn from_quantiles(name: &str, points: &[f32]) -> FeatureBins {
        FeatureBins::new(name, points.to_vec())
    }

    /// The bins in use, the one for missing values included.
    pub fn n_bins(&self) -> usize {
        self.cuts.len() + 2
    }

    /// The bin of a value: a binary search without branches, eight steps at the most.
    #[inline]
    pub fn bin(&self, x: f32) -> u8 {
        let (mut first, mut n) = (0, self.cuts.len());
        if x.is_nan() {
            return 0;
        }
        if n == 0 {
            return 1;
        }
        while n > 1 {
            let half = n / 2;
            first += if self.cuts[first + half - 1] <= x { half } else { 0 };
            n -= half;
        }
        (1 + first + usize::from(self.cuts[first] <= x)) as u8
    }

    /// The threshold of the split that sends bins `1..=bin` to the left. Below the first bin is nothing, and
    /// no value is below the lowest float.
    pub fn threshold(&self, bin: u8) -> f32 {
        match bin {
            0 => f32::MIN,
            bin => self.cuts[usize::from(bin) - 1],
        }
    }
}

/// A float above `low` and not above `high`, halfway where there is one.
fn between(low: f32, high: f32) -> f32 {
    let middle = low + (high - low) / 2.0;
    if middle > low && middle <= high {
        middle
    } else {
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_counts_the_cuts_not_above() {
        for n in 0..=MAX_CUTS {
            let bins = FeatureBins::new("x", (0..n).map(|i| i as f32 * 2.0).collect());
            for x in -1..=(2 * n as i32) {
                let x = x as f32;
                let counted = bins.cuts.iter().filter(|cut| **cut <= x).count();
                assert_eq!(usize::from(bins.bin(x)), 1 + counted, "{n} cuts, {x}");
            }
            assert_eq!(bins.bin(f32::NAN), 0);
            assert_eq!(bins.bin(f32::NEG_INFINITY), 1);
            assert_eq!(usize::from(bins.bin(f32::INFINITY)), n + 1);
        }
    }

    #[test]
    fn few_values_get_a_bin_each_and_many_share_evenly() {
        let few = FeatureBins::from_weighted("x", &[(1.0, 1e6), (2.0, 1.0), (5.0, 1.0)], 255);
        assert_eq!(few.cuts, [1.5, 3.5]);
        let many: Vec<(f32, f64)> = (0..10_000).map(|i| (i as f32, 1.0)).collect();
        let many = FeatureBins::from_weighted("x", &many, 100);
        assert_eq!(many.cuts.len(), 99);
        assert!(many.cuts.windows(2).all(|pair| pair[1] - pair[0] == 100.0));
        let heavy: Vec<(f32, f64)> = (0..1_000)
            .map(|i| (i as f32, if i == 500 { 1e5 } else { 1.0 }))
            .collect();
        let heavy = FeatureBins::from_weighted("x", &heavy, 10);
        assert!(
            heavy.cuts.contains(&499.5) && heavy.cuts.contains(&500.5),
            "{:?}",
            heavy.cuts
        );
    }
}
