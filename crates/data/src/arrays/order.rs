//! The order of samples: a pure function of seed, epoch and position.
//!
//! Single small samples, read at random, would be slow. So neighbouring samples go together as blocks of about 64 KB,
//! and it is the blocks that are shuffled over the whole array; then the samples within every window of 256 blocks that
//! follow each other in that order:
//!
//! ```text
//!   array     │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ …     blocks of neighbours
//!   blocks    │ 7 │ 2 │ 9 │ 4 │ 0 │ 5 │ …     permuted by a key of seed and epoch
//!   windows   │──── 0 ────│──── 1 ────│ …     samples of a window permuted by a key of its own
//! ```
//!
//! A reader holds a window of about 16 MB, or reads sample by sample: the order is the same.

use serde::{Deserialize, Serialize};

use super::permutation::Permutation;
use crate::sketch::hash::mix;

/// Neighbouring samples of about so many bytes are read together.
pub(crate) const BLOCK_BYTES: u64 = 64 << 10;
/// Blocks whose samples are shuffled among each other.
pub(crate) const WINDOW_BLOCKS: u64 = 256;

/// In which order samples come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Another order in every epoch.
    Shuffled { seed: u64, epoch: u64 },
    /// As they stand, for evaluation.
    InPlace,
}

/// The order of so many samples of one size.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    n_samples: u64,
    per_block: u64,
    n_blocks: u64,
    /// What the last block lacks of a full one, and where that block stands.
    lacking: u64,
    short_at: u64,
    shuffle: Option<Shuffle>,
}

#[derive(Debug, Clone)]
struct Shuffle {
    key: u64,
    blocks: Permutation,
}

impl Route {
    pub(crate) fn new(n_samples: u64, sample_bytes: u64, order: Order) -> Route {
        let per_block = per_block(sample_bytes);
        let n_blocks = n_samples.div_ceil(per_block);
        let shuffle = match order {
            Order::InPlace => None,
            Order::Shuffled { seed, epoch } => {
                let key = mix(seed ^ mix(epoch));
                let blocks = Permutation::new(n_blocks, key);
                Some(Shuffle { key, blocks })
            }
        };
        let last = n_blocks.saturating_sub(1);
        let short_at = shuffle
            .as_ref()
            .map_or(last, |shuffle| shuffle.blocks.number(last));
        Route {
            n_samples,
            per_block,
            n_blocks,
            lacking: n_blocks * per_block - n_samples,
            short_at,
            shuffle,
        }
    }

    pub(crate) fn n_samples(&self) -> u64 {
        self.n_samples
    }

    pub(crate) fn per_block(&self) -> u64 {
        self.per_block
    }

    pub(crate) fn n_windows(&self) -> u64 {
        self.n_blocks.div_ceil(WINDOW_BLOCKS)
    }

    /// Blocks of the largest window.
    pub(crate) fn most_blocks(&self) -> u64 {
        self.n_blocks.min(WINDOW_BLOCKS)
    }

    /// The number of the block at this place of the order.
    pub(crate) fn block(&self, place: u64) -> u64 {
        self.shuffle
            .as_ref()
            .map_or(place, |shuffle| shuffle.blocks.place(place))
    }

    /// The samples of this block: the first, and how many.
    pub(crate) fn samples_of(&self, block: u64) -> (u64, u64) {
        let first = block * self.per_block;
        (first, self.per_block.min(self.n_samples.saturating_sub(first)))
    }

    pub(crate) fn window(&self, index: u64) -> Window {
        let first_block = index * WINDOW_BLOCKS;
        let n_blocks = self.n_blocks.saturating_sub(first_block).min(WINDOW_BLOCKS);
        let short = self
            .short_at
            .checked_sub(first_block)
            .filter(|slot| *slot < n_blocks);
        let lacking = short.map_or(0, |_| self.lacking);
        let n_samples = n_blocks * self.per_block - lacking;
        let inner = self.shuffle.as_ref().map(|shuffle| {
            // Another start than the blocks': the same key would send both the same way.
            const START: u64 = 0x3a77_e12d_0b5c_91f4;
            Permutation::new(n_samples, mix(shuffle.key ^ mix(index ^ START)))
        });
        Window {
            first: self.window_start(index),
            n_samples,
            first_block,
            n_blocks,
            per_block: self.per_block,
            lacking,
            short_end: short.map_or(u64::MAX, |slot| (slot + 1) * self.per_block - lacking),
            inner,
        }
    }

    /// The window that this position is in.
    pub(crate) fn window_at(&self, position: u64) -> u64 {
        let window = self.per_block * WINDOW_BLOCKS;
        let short_window = self.short_at / WINDOW_BLOCKS;
        match position >= self.window_start(short_window + 1) {
            true => (position + self.lacking) / window,
            false => position / window,
        }
    }

    fn window_start(&self, index: u64) -> u64 {
        let after = index > self.short_at / WINDOW_BLOCKS;
        index * WINDOW_BLOCKS * self.per_block - if after { self.lacking } else { 0 }
    }
}

/// Samples that neighbour each other and are read together: a function of their size alone.
pub(crate) fn per_block(sample_bytes: u64) -> u64 {
    (BLOCK_BYTES / sample_bytes.max(1)).max(1)
}

/// Blocks that follow each other in the order, and their samples.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    /// The position of its first sample.
    pub first: u64,
    pub n_samples: u64,
    /// The place of its first block.
    pub first_block: u64,
    pub n_blocks: u64,
    per_block: u64,
    /// Where the samples of a short block end, and how many it lacks.
    short_end: u64,
    lacking: u64,
    inner: Option<Permutation>,
}

impl Window {
    /// Which block of the window the sample at this position in it is from, and which sample of that block it is.
    #[inline]
    pub(crate) fn sample(&self, position: u64) -> (u64, u64) {
        let i = self
            .inner
            .as_ref()
            .map_or(position, |inner| inner.place(position));
        let i = if i >= self.short_end { i + self.lacking } else { i };
        (i / self.per_block, i % self.per_block)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The samples in their order, window by window, and each found by its position alone.
    fn walk(route: &Route) -> Vec<u64> {
        let mut samples = Vec::new();
        for index in 0..route.n_windows() {
            let window = route.window(index);
            assert_eq!(window.first, samples.len() as u64);
            for position in 0..window.n_samples {
                assert_eq!(route.window_at(window.first + position), index);
                let (slot, offset) = window.sample(position);
                assert!(slot < window.n_blocks);
                let (first, n) = route.samples_of(route.block(window.first_block + slot));
                assert!(offset < n);
                samples.push(first + offset);
            }
        }
        samples
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_sample_comes_once(n in 1u64..40_000, bytes in 1u64..80_000, seed: u64, epoch in 0u64..5) {
            let n = n.min(1 + 400 * per_block(bytes));
            for order in [Order::InPlace, Order::Shuffled { seed, epoch }] {
                let mut samples = walk(&Route::new(n, bytes, order));
                if order == Order::InPlace {
                    prop_assert!(samples.is_sorted());
                }
                samples.sort();
                prop_assert!(samples.into_iter().eq(0..n));
            }
        }
    }

    #[test]
    fn epochs_and_seeds_differ() {
        let order = |seed, epoch| walk(&Route::new(5_000, 20_000, Order::Shuffled { seed, epoch }));
        let first = order(1, 0);
        assert_eq!(first, order(1, 0));
        for other in [order(1, 1), order(2, 0), order(0, 1)] {
            let same = first.iter().zip(&other).filter(|(a, b)| a == b).count();
            assert!(same < 20, "{same}");
        }
    }

    #[test]
    fn neighbours_are_torn_apart() {
        let samples = walk(&Route::new(60_000, 784, Order::Shuffled { seed: 3, epoch: 0 }));
        let near = samples
            .windows(2)
            .filter(|pair| pair[0].abs_diff(pair[1]) < 83)
            .count();
        // One in some 250 comes from the block of the one before.
        assert!(near < 60_000 / 50, "{near}");
    }
}
