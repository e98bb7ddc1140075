//! Which rows are held out for evaluation: a pure function of the seed and the row's place in the file.

use serde::{Deserialize, Serialize};

use crate::sketch::hash::mix;

/// A deterministic share of the rows, the same in every epoch and for any number of threads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Holdout {
    seed: u64,
    /// Rows whose hash is from `start` on, and less than `length` beyond, are held out.
    start: u64,
    length: u64,
}

impl Holdout {
    /// Holds out about `share` (0 to 1) of the rows.
    pub fn new(share: f64, seed: u64) -> Holdout {
        Holdout {
            seed,
            start: 0,
            length: (share.clamp(0.0, 1.0) * 2f64.powi(64)) as u64,
        }
    }

    /// Holds out one of so many folds, from 0. Every row is in one of them.
    ///
    /// # Panics
    ///
    /// If there is no such fold.
    pub fn fold(fold: u32, folds: u32, seed: u64) -> Holdout {
        assert!(fold < folds, "fold {fold} of {folds}");
        let bound = |i: u32| ((u128::from(i) << 64) / u128::from(folds)).min(u128::from(u64::MAX)) as u64;
        Holdout {
            seed,
            start: bound(fold),
            // The last fold reaches to the very end.
            length: (bound(fold + 1) - bound(fold)).saturating_add(u64::from(fold + 1 == folds)),
        }
    }

    pub fn is_none(&self) -> bool {
        self.length == 0
    }

    /// Whether the row that starts on this line is held out.
    #[inline]
    pub fn contains(&self, line: u64) -> bool {
        mix(line.wrapping_add(mix(self.seed))).wrapping_sub(self.start) < self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_out_the_share_that_was_asked() {
        for (share, seed) in [(0.0, 1), (0.1, 1), (0.1, 2), (0.5, 7), (1.0, 7)] {
            let holdout = Holdout::new(share, seed);
            let held = (0..100_000).filter(|&line| holdout.contains(line)).count() as f64;
            assert!((held / 100_000.0 - share).abs() < 0.005, "{share}: {held}");
        }
    }

    #[test]
    fn every_row_is_in_one_fold() {
        for folds in [2, 3, 7] {
            let all: Vec<Holdout> = (0..folds).map(|fold| Holdout::fold(fold, folds, 5)).collect();
            for line in (0..10_000).chain([u64::MAX]) {
                assert_eq!(all.iter().filter(|fold| fold.contains(line)).count(), 1, "{line}");
            }
        }
    }

    #[test]
    fn another_seed_holds_out_other_rows() {
        let (a, b) = (Holdout::new(0.5, 1), Holdout::new(0.5, 2));
        let same = (0..10_000)
            .filter(|&line| a.contains(line) == b.contains(line))
            .count();
        assert!((4_700..5_300).contains(&same), "{same}");
    }
}
