//! The max-pool that follows a convolution, done while its rows are in the cache.

use super::super::super::arena::Buffer;
use super::super::super::kernels::elementwise::{LANES, give_chosen, keep_larger};
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
        let whole = channels / LANES * LANES;
        let places = values.chunks_exact_mut(channels).zip(chosen.chunks_exact_mut(channels));
        for (place, (values, chosen)) in places.enumerate() {
            let first = place * columns * channels;
            let lanes = values[..whole].as_chunks_mut::<LANES>().0.iter_mut().zip(chosen[..whole].as_chunks_mut::<LANES>().0);
            for (i, (values, chosen)) in lanes.enumerate() {
                let mut largest = [0.0; LANES];
                largest.copy_from_slice(&band[first + i * LANES..][..LANES]);
                // A whole number first: bytes and floats in one loop would be taken one by one.
                let mut which = [0u32; LANES];
                for row in 0..rows {
                    for column in 0..columns {
                        let at = row * line + first + column * channels + i * LANES;
                        let candidates = &band[at..at + LANES];
                        let tap = (row * columns + column) as u32;
                        for j in 0..LANES {
                            let takes = candidates[j] > largest[j] || candidates[j].is_nan();
                            largest[j] = if takes { candidates[j] } else { largest[j] };
                            which[j] = if takes { tap } else { which[j] };
                        }
                    }
                }
                *values = largest;
                for j in 0..LANES {
                    chosen[j] = which[j] as u8;
                }
            }
            if whole < channels {
                let (values, chosen) = (&mut values[whole..], &mut chosen[whole..]);
                let rest = channels - whole;
                values.copy_from_slice(&band[first + whole..first + channels]);
                chosen.fill(0);
                for tap in 1..rows * columns {
                    let at = tap / columns * line + first + tap % columns * channels + whole;
                    keep_larger(values, chosen, &band[at..at + rest], tap as u8);
                }
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
        let whole = channels / LANES * LANES;
        let places = slopes.chunks_exact(channels).zip(chosen.chunks_exact(channels));
        for (place, (slopes, chosen)) in places.enumerate() {
            let lanes = slopes[..whole].as_chunks::<LANES>().0.iter().zip(chosen[..whole].as_chunks::<LANES>().0);
            for (i, (slopes, chosen)) in lanes.enumerate() {
                let mut which = [0u32; LANES];
                for j in 0..LANES {
                    which[j] = u32::from(chosen[j]);
                }
                for row in 0..rows {
                    for column in 0..columns {
                        let at = row * line + (place * columns + column) * channels + i * LANES;
                        let tap = (row * columns + column) as u32;
                        let mut made = [0.0; LANES];
                        for j in 0..LANES {
                            let mask = 0u32.wrapping_sub(u32::from(which[j] == tap));
                            made[j] = f32::from_bits(slopes[j].to_bits() & mask);
                        }
                        band[at..at + LANES].copy_from_slice(&made);
                    }
                }
            }
            if whole < channels {
                for tap in 0..rows * columns {
                    let at = tap / columns * line + (place * columns + tap % columns) * channels;
                    give_chosen::<false>(&mut band[at + whole..at + channels], &slopes[whole..], &chosen[whole..], tap as u8);
                }
            }
        }
    }
}
