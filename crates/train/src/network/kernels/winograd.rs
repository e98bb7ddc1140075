//! Convolutions of 3×3 taps by fewer products: Winograd's minimal filtering, F(4×4, 3×3) (Lavin and Gray, 2015), with
//! points that lose less (Barabasz and others, 2018).
//!
//! An output is cut into tiles of 4×4 places. A tile takes 6×6 places of the source, and is
//!
//! ```text
//! y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A
//! ```
//!
//! with the weights `g` and the source `d`: 36 products where the taps would take 144. The products of one place of all
//! tiles are one product of matrices over the channels. Its gradients have the same transforms, turned around:
//!
//! ```text
//! ∂g = Gᵀ [(Bᵀ d B) ⊙ (A ∂y Aᵀ)] G
//! ```
//!
//! and that by the source is a convolution itself. What comes out differs from the plain sums by less than a
//! hundred-thousandth of the largest value.

use std::ops::Range;

use super::correlate::{Axis, Correlation};
use super::product::{Kernels, Left, OVERREAD, Out, Right, Sizes};
use super::vectorized::vectorized;

/// Places of a tile along an axis, in the output and in the source.
pub(crate) const TILE: usize = 4;
const WIDE: usize = 6;
/// Products of a tile.
const PRODUCTS: usize = WIDE * WIDE;
/// Channels that are transformed at once: a vector, or two.
const LANES: usize = 16;
/// Tiles that are taken together, about: what they become stays in the second-level cache.
const TILES: usize = 48;
/// Transformed weights that still stay in the second-level cache beside them.
const MOST_WEIGHTS: usize = 1 << 13;

type Lanes = [f32; LANES];

/// A convolution that is done by tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Winograd {
    correlation: Correlation,
    tile_rows: usize,
    tile_cols: usize,
    /// Rows of tiles that are taken together.
    strip: usize,
}

impl Winograd {
    /// The way by tiles, where it is one: 3×3 taps one place apart, channels by whole vectors, and images that are not
    /// mostly border.
    pub(crate) fn of(correlation: &Correlation) -> Option<Winograd> {
        let Correlation {
            rows,
            cols,
            channels,
            width,
            ..
        } = *correlation;
        let near = |axis: &Axis| axis.taps == 3 && axis.step == 1 && axis.dilation == 1 && axis.n >= 2 * TILE;
        let whole = channels.is_multiple_of(LANES) && width.is_multiple_of(LANES);
        let dense = correlation.source_col == channels && correlation.out_col == width;
        if !(near(&rows) && near(&cols) && whole && dense && channels * width <= MOST_WEIGHTS) {
            return None;
        }
        let (tile_rows, tile_cols) = (rows.n.div_ceil(TILE), cols.n.div_ceil(TILE));
        Some(Winograd {
            correlation: *correlation,
            tile_rows,
            tile_cols,
            strip: (TILES / tile_cols).clamp(1, tile_rows),
        })
    }

    /// Values of the transformed weights.
    pub(crate) fn weights_len(&self) -> usize {
        PRODUCTS * self.correlation.channels * self.correlation.width
    }

    /// Strips of rows, each of them a task.
    pub(crate) fn n_strips(&self) -> usize {
        self.tile_rows.div_ceil(self.strip)
    }

    /// Rows of the output in a strip.
    pub(crate) fn rows_of(&self, strip: usize) -> Range<usize> {
        let rows = strip * self.strip * TILE..(strip + 1) * self.strip * TILE;
        rows.start..rows.end.min(self.correlation.rows.n)
    }

    /// Rows of a whole strip.
    pub(crate) fn strip_rows(&self) -> usize {
        self.strip * TILE
    }

    /// Values of a row of the output.
    pub(crate) fn out_row(&self) -> usize {
        self.correlation.out_row
    }

    /// Room for what the tiles of a strip become, of the source and of the output.
    pub(crate) fn scratch_len(&self) -> usize {
        let Correlation { channels, width, .. } = self.correlation;
        PRODUCTS * self.strip * self.tile_cols * (channels + width) + 2 * OVERREAD
    }

    fn n_tiles(&self, strip: usize) -> usize {
        self.rows_of(strip).len().div_ceil(TILE) * self.tile_cols
    }

    /// Transforms the weights.
    pub(crate) fn turn_weights(&self, weights: &[f32], into: &mut [f32]) {
        turn_weights(weights, self.correlation.channels * self.correlation.width, into);
    }

    /// Makes the rows of a strip: into `out`, which is these rows alone, with the bias, or added to what is there.
    ///
    /// # Safety
    ///
    /// Behind `weights`, which are transformed, [`OVERREAD`] values may be read.
    pub(crate) unsafe fn make(
        &self,
        strip: usize,
        source: &[f32],
        weights: *const f32,
        scratch: &mut [f32],
        start: Start<'_>,
        out: &mut [f32],
    ) {
        let Correlation { channels, width, .. } = self.correlation;
        let n_tiles = self.n_tiles(strip);
        let (turned, rest) = scratch.split_at_mut(PRODUCTS * n_tiles * channels);
        let made = &mut rest[..PRODUCTS * n_tiles * width];
        turn_source(self, strip * self.strip, n_tiles, source, turned);
        for product in 0..PRODUCTS {
            let sizes = Sizes {
                m: width,
                n: n_tiles,
                k: channels,
            };
            let out = Out {
                at: made[product * n_tiles * width..].as_mut_ptr(),
                n_stride: width,
                add: false,
            };
            let right = Right {
                at: turned[product * n_tiles * channels..].as_ptr(),
                k_stride: 1,
                n_stride: channels,
            };
            // SAFETY: the slices are as large as that; the weights are the caller's.
            unsafe {
                let left = Left {
                    at: weights.add(product * channels * width),
                    k_stride: width,
                };
                Kernels::get().multiply(sizes, out, left, right);
            }
        }
        turn_back(self, strip, n_tiles, made, start, out);
    }

    /// Adds what the rows of a strip say of the transformed weights, where `slope` is that of the output.
    pub(crate) fn add_weights(
        &self,
        strip: usize,
        source: &[f32],
        slope: &[f32],
        scratch: &mut [f32],
        into: &mut [f32],
    ) {
        let Correlation { channels, width, .. } = self.correlation;
        let n_tiles = self.n_tiles(strip);
        let (turned, rest) = scratch.split_at_mut(PRODUCTS * n_tiles * channels);
        turn_source(self, strip * self.strip, n_tiles, source, turned);
        turn_slope(self, strip * self.strip, n_tiles, slope, rest);
        for product in 0..PRODUCTS {
            let sizes = Sizes {
                m: width,
                n: channels,
                k: n_tiles,
            };
            let out = Out {
                at: into[product * channels * width..(product + 1) * channels * width].as_mut_ptr(),
                n_stride: width,
                add: true,
            };
            let left = Left {
                at: rest[product * n_tiles * width..].as_ptr(),
                k_stride: width,
            };
            let right = Right {
                at: turned[product * n_tiles * channels..].as_ptr(),
                k_stride: channels,
                n_stride: 1,
            };
            // SAFETY: the slices are as large as that, and scratch has room behind it.
            unsafe { Kernels::get().multiply(sizes, out, left, right) };
        }
    }

    /// Adds the gradient of the weights, told by that of the transformed ones.
    pub(crate) fn add_turned_weights(&self, turned: &[f32], into: &mut [f32]) {
        add_turned_weights(turned, self.correlation.channels * self.correlation.width, into);
    }
}

/// What an output starts from.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    Zero,
    /// A value for each channel.
    Bias(&'a [f32]),
    /// What is there.
    Added,
}

/// The points at which polynomials are taken, beside 0 and infinity: ±P and ±Q. ±1 and ±2 would make for fewer products
/// and thrice the error.
const P: f32 = 0.625;
const Q: f32 = 1.5;
const P2: f32 = P * P;
const Q2: f32 = Q * Q;
const P3: f32 = P * P * P;
const Q3: f32 = Q * Q * Q;
/// What the weights are divided by.
const AT_0: f32 = 1.0 / (P2 * Q2);
const AT_P: f32 = 1.0 / (2.0 * P2 * (P2 - Q2));
const AT_Q: f32 = 1.0 / (2.0 * Q2 * (Q2 - P2));

/// `Bᵀ d`, along one axis.
#[inline(always)]
fn of_source(d: [Lanes; WIDE]) -> [Lanes; WIDE] {
    let mut out = [[0.0; LANES]; WIDE];
    for i in 0..LANES {
        let d = [d[0][i], d[1][i], d[2][i], d[3][i], d[4][i], d[5][i]];
        let (even_p, odd_p) = (d[4] - Q2 * d[2], P * (d[3] - Q2 * d[1]));
        let (even_q, odd_q) = (d[4] - P2 * d[2], Q * (d[3] - P2 * d[1]));
        out[0][i] = P2 * Q2 * d[0] - (P2 + Q2) * d[2] + d[4];
        out[1][i] = even_p + odd_p;
        out[2][i] = even_p - odd_p;
        out[3][i] = even_q + odd_q;
        out[4][i] = even_q - odd_q;
        out[5][i] = P2 * Q2 * d[1] - (P2 + Q2) * d[3] + d[5];
    }
    out
}

/// `Aᵀ m`, along one axis.
#[inline(always)]
fn of_products(m: [Lanes; WIDE]) -> [Lanes; TILE] {
    let mut out = [[0.0; LANES]; TILE];
    for i in 0..LANES {
        let m = [m[0][i], m[1][i], m[2][i], m[3][i], m[4][i], m[5][i]];
        let (sum_p, difference_p) = (m[1] + m[2], m[1] - m[2]);
        let (sum_q, difference_q) = (m[3] + m[4], m[3] - m[4]);
        out[0][i] = m[0] + sum_p + sum_q;
        out[1][i] = P * difference_p + Q * difference_q;
        out[2][i] = P2 * sum_p + Q2 * sum_q;
        out[3][i] = P3 * difference_p + Q3 * difference_q + m[5];
    }
    out
}

/// `A y`, along one axis.
#[inline(always)]
fn of_slope(y: [Lanes; TILE]) -> [Lanes; WIDE] {
    let mut out = [[0.0; LANES]; WIDE];
    for i in 0..LANES {
        let y = [y[0][i], y[1][i], y[2][i], y[3][i]];
        let (even_p, odd_p) = (y[0] + P2 * y[2], P * y[1] + P3 * y[3]);
        let (even_q, odd_q) = (y[0] + Q2 * y[2], Q * y[1] + Q3 * y[3]);
        out[0][i] = y[0];
        out[1][i] = even_p + odd_p;
        out[2][i] = even_p - odd_p;
        out[3][i] = even_q + odd_q;
        out[4][i] = even_q - odd_q;
        out[5][i] = y[3];
    }
    out
}

/// `G g`, along one axis.
#[inline(always)]
fn of_weights(g: [Lanes; 3]) -> [Lanes; WIDE] {
    let mut out = [[0.0; LANES]; WIDE];
    for i in 0..LANES {
        let g = [g[0][i], g[1][i], g[2][i]];
        let (even_p, odd_p) = (AT_P * (g[0] + P2 * g[2]), AT_P * P * g[1]);
        let (even_q, odd_q) = (AT_Q * (g[0] + Q2 * g[2]), AT_Q * Q * g[1]);
        out[0][i] = AT_0 * g[0];
        out[1][i] = even_p + odd_p;
        out[2][i] = even_p - odd_p;
        out[3][i] = even_q + odd_q;
        out[4][i] = even_q - odd_q;
        out[5][i] = g[2];
    }
    out
}

/// `Gᵀ u`, along one axis.
#[inline(always)]
fn of_gradients(u: [Lanes; WIDE]) -> [Lanes; 3] {
    let mut out = [[0.0; LANES]; 3];
    for i in 0..LANES {
        let u = [u[0][i], u[1][i], u[2][i], u[3][i], u[4][i], u[5][i]];
        let (sum_p, difference_p) = (AT_P * (u[1] + u[2]), AT_P * P * (u[1] - u[2]));
        let (sum_q, difference_q) = (AT_Q * (u[3] + u[4]), AT_Q * Q * (u[3] - u[4]));
        out[0][i] = AT_0 * u[0] + sum_p + sum_q;
        out[1][i] = difference_p + difference_q;
        out[2][i] = P2 * sum_p + Q2 * sum_q + u[5];
    }
    out
}

#[inline(always)]
fn lanes(values: &[f32], at: usize) -> Lanes {
    let mut lanes = [0.0; LANES];
    lanes.copy_from_slice(&values[at..at + LANES]);
    lanes
}

/// Several of them, so far apart.
#[inline(always)]
fn apart<const N: usize>(values: &[f32], at: usize, step: usize) -> [Lanes; N] {
    let mut all = [[0.0; LANES]; N];
    for (i, into) in all.iter_mut().enumerate() {
        *into = lanes(values, at + i * step);
    }
    all
}

/// A column of lines.
#[inline(always)]
fn column<const N: usize, const M: usize>(lines: &[[Lanes; M]; N], x: usize) -> [Lanes; N] {
    let mut column = [[0.0; LANES]; N];
    for (into, line) in column.iter_mut().zip(lines) {
        *into = line[x];
    }
    column
}

#[inline(always)]
fn put_column<const N: usize, const M: usize>(lines: &mut [[Lanes; M]; N], x: usize, column: [Lanes; N]) {
    for (line, values) in lines.iter_mut().zip(column) {
        line[x] = values;
    }
}

vectorized! {
    /// `Bᵀ d B` of every tile from a row of them on: by products, tiles, channels.
    fn turn_source(winograd: &Winograd, first_row: usize, n_tiles: usize, source: &[f32], into: &mut [f32]) {
        let Correlation { rows, cols, channels, source_row, .. } = winograd.correlation;
        for tile in 0..n_tiles {
            let (row, col) = (first_row + tile / winograd.tile_cols, tile % winograd.tile_cols);
            let top = (row * TILE) as isize + rows.offset;
            let left = (col * TILE) as isize + cols.offset;
            for first in (0..channels).step_by(LANES) {
                let mut down = [[[0.0; LANES]; WIDE]; WIDE];
                for x in 0..WIDE {
                    let across = left + x as isize;
                    let mut d = [[0.0; LANES]; WIDE];
                    if across >= 0 && across < cols.source as isize {
                        let at = top * source_row as isize + across * channels as isize + first as isize;
                        if top >= 0 && top + WIDE as isize <= rows.source as isize {
                            d = apart(source, at as usize, source_row);
                        } else {
                            for (y, place) in d.iter_mut().enumerate() {
                                let down = top + y as isize;
                                if down >= 0 && down < rows.source as isize {
                                    *place = lanes(source, (at + (y * source_row) as isize) as usize);
                                }
                            }
                        }
                    }
                    put_column(&mut down, x, of_source(d));
                }
                for (y, line) in down.into_iter().enumerate() {
                    for (x, values) in of_source(line).iter().enumerate() {
                        let at = ((y * WIDE + x) * n_tiles + tile) * channels + first;
                        into[at..at + LANES].copy_from_slice(values);
                    }
                }
            }
        }
    }

    /// `Aᵀ m A` of every tile of a strip, into its rows.
    fn turn_back(winograd: &Winograd, strip: usize, n_tiles: usize, made: &[f32], start: Start<'_>, out: &mut [f32]) {
        let Correlation { cols, width, out_row, .. } = winograd.correlation;
        let n_rows = winograd.rows_of(strip).len();
        for tile in 0..n_tiles {
            let (row, col) = (tile / winograd.tile_cols * TILE, tile % winograd.tile_cols * TILE);
            for first in (0..width).step_by(LANES) {
                let mut across = [[[0.0; LANES]; TILE]; WIDE];
                for (y, line) in across.iter_mut().enumerate() {
                    let at = (y * WIDE * n_tiles + tile) * width + first;
                    *line = of_products(apart(made, at, n_tiles * width));
                }
                for x in 0..TILE.min(cols.n - col) {
                    let made = of_products(column(&across, x));
                    for (y, values) in made.iter().enumerate().take(n_rows - row) {
                        let at = (row + y) * out_row + (col + x) * width + first;
                        let place = &mut out[at..at + LANES];
                        match start {
                            Start::Zero => place.copy_from_slice(values),
                            Start::Bias(bias) => {
                                for (i, value) in place.iter_mut().enumerate() {
                                    *value = values[i] + bias[first + i];
                                }
                            }
                            Start::Added => {
                                for (i, value) in place.iter_mut().enumerate() {
                                    *value += values[i];
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// `A ∂y Aᵀ` of every tile from a row of them on: by products, tiles, channels.
    fn turn_slope(winograd: &Winograd, first_row: usize, n_tiles: usize, slope: &[f32], into: &mut [f32]) {
        let Correlation { rows, cols, width, out_row, .. } = winograd.correlation;
        for tile in 0..n_tiles {
            let row = (first_row + tile / winograd.tile_cols) * TILE;
            let col = tile % winograd.tile_cols * TILE;
            for first in (0..width).step_by(LANES) {
                let mut down = [[[0.0; LANES]; TILE]; WIDE];
                for x in 0..TILE.min(cols.n - col) {
                    let mut slopes = [[0.0; LANES]; TILE];
                    for (y, slopes) in slopes.iter_mut().enumerate().take(rows.n - row) {
                        *slopes = lanes(slope, (row + y) * out_row + (col + x) * width + first);
                    }
                    put_column(&mut down, x, of_slope(slopes));
                }
                for (y, line) in down.into_iter().enumerate() {
                    for (x, values) in of_slope(line).iter().enumerate() {
                        let at = ((y * WIDE + x) * n_tiles + tile) * width + first;
                        into[at..at + LANES].copy_from_slice(values);
                    }
                }
            }
        }
    }

    /// `G g Gᵀ`: by products, then as they stand.
    fn turn_weights(weights: &[f32], all: usize, into: &mut [f32]) {
        for at in (0..all).step_by(LANES) {
            let mut down = [[[0.0; LANES]; 3]; WIDE];
            for x in 0..3 {
                let taps = apart(weights, x * all + at, 3 * all);
                put_column(&mut down, x, of_weights(taps));
            }
            for (y, line) in down.into_iter().enumerate() {
                for (x, values) in of_weights(line).iter().enumerate() {
                    let to = (y * WIDE + x) * all + at;
                    into[to..to + LANES].copy_from_slice(values);
                }
            }
        }
    }

    /// `g += Gᵀ u G`
    fn add_turned_weights(turned: &[f32], all: usize, into: &mut [f32]) {
        for at in (0..all).step_by(LANES) {
            let mut across = [[[0.0; LANES]; 3]; WIDE];
            for (y, line) in across.iter_mut().enumerate() {
                *line = of_gradients(apart(turned, y * WIDE * all + at, all));
            }
            for x in 0..3 {
                let gradients = of_gradients(column(&across, x));
                for (y, values) in gradients.iter().enumerate() {
                    let to = (y * 3 + x) * all + at;
                    for (value, more) in into[to..to + LANES].iter_mut().zip(values) {
                        *value += more;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
