//! The max-pool that follows a convolution, done while its rows are in the cache.

use super::super::super::arena::Buffer;
use super::super::super::kernels::elementwise::{give_chosen, keep_larger};
use super::super::super::kernels::vectorized::vectorized;
use super::super::super::kernels::winograd::TILE;

/// A max-pool that follows at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pooled {
    pub size: [usize; 2],
    /// Rows and columns after it.
    pub out: [usize; 2],
    /// Which of the window was the largest, a byte for each value.
    pub chosen: Buffer,
}

impl Pooled {
    /// Whether its windows end where tiles do, row by row.
    pub(super) fn fits_tiles(&self) -> bool {
        TILE.is_multiple_of(self.size[0])
    }
}

vectorized! {
    /// The largest of every window of one line of them, and which it was.
    pub(super) fn pool_band(pooled: &Pooled, channels: usize, band: &[f32], values: &mut [f32], chosen: &mut [u8]) {
        let [rows, columns] = pooled.size;
        let line = band.len() / rows;
        let places = values.chunks_exact_mut(channels).zip(chosen.chunks_exact_mut(channels));
        for (place, (values, chosen)) in places.enumerate() {
            let first = place * columns * channels;
            values.copy_from_slice(&band[first..first + channels]);
            chosen.fill(0);
            for tap in 1..rows * columns {
                let at = tap / columns * line + first + tap % columns * channels;
                keep_larger(values, chosen, &band[at..at + channels], tap as u8);
            }
        }
    }

    /// Puts slopes where the largest values were, zero elsewhere.
    pub(super) fn spread_band(pooled: &Pooled, channels: usize, slopes: &[f32], chosen: &[u8], band: &mut [f32]) {
        let [rows, columns] = pooled.size;
        let line = band.len() / rows;
        let covered = pooled.out[1] * columns * channels;
        for row in band.chunks_exact_mut(line) {
            row[covered..].fill(0.0);
        }
        let places = slopes.chunks_exact(channels).zip(chosen.chunks_exact(channels));
        for (place, (slopes, chosen)) in places.enumerate() {
            for tap in 0..rows * columns {
                let at = tap / columns * line + (place * columns + tap % columns) * channels;
                give_chosen::<false>(&mut band[at..at + channels], slopes, chosen, tap as u8);
            }
        }
    }
}
