//! Which rows are held out for evaluation: a pure function of the seed and the row's place in the file.

use serde::{Deserialize, Serialize};

/// A deterministic share of the rows, the same in every epoch and for any number of threads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Holdout {
    seed: u64,
    threshold: u64,
}

impl Holdout {
    /// Holds out about `share` (0 to 1) of the rows.
    pub fn new(share: f64, seed: u64) -> Holdout {
        Holdout {
            seed,
            threshold: (share.clamp(0.0, 1.0) * 2f64.powi(64)) as u64,
        }
    }

    pub fn is_none(&self) -> bool {
        self.threshold == 0
    }

    /// Whether the row that starts on this line is held out.
    #[inline]
    pub fn contains(&self, line: u64) -> bool {
        mix(line.wrapping_add(mix(self.seed))) < self.threshold
    }
}

/// The finalizer of SplitMix64: every input bit reaches every output bit.
#[inline]
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
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
    fn another_seed_holds_out_other_rows() {
        let (a, b) = (Holdout::new(0.5, 1), Holdout::new(0.5, 2));
        let same = (0..10_000)
            .filter(|&line| a.contains(line) == b.contains(line))
            .count();
        assert!((4_700..5_300).contains(&same), "{same}");
    }
}
