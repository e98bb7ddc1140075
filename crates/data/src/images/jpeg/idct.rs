//! From coefficients to samples, at full size or reduced: the inverse cosine transform of 8, 4, 2 or 1 points.
//!
//! A transform of fewer points takes the lowest frequencies alone, and gives the block at that size:
//!
//! ```text
//!   s(x) = Σ c(u) · k(u) · cos((2x + 1) · u · π / 2N)      k(0) = 1, else √2; all of it by eight
//! ```
//!
//! Rows come first, then columns. Numbers are integers of 13 bits behind the point and 16 bits between the passes, where
//! they saturate, so that vectors of any machine give the same samples.

#[cfg(target_arch = "x86_64")]
mod avx2;

use super::block::{self, Block};
use super::resize::Kernels;

const BITS: u32 = 13;
const ONE: i16 = 1 << BITS;
/// √2 · cos(i · π / 16)
const C1: i16 = 11363;
const C2: i16 = 10703;
const C3: i16 = 9633;
const C5: i16 = 6436;
const C6: i16 = 4433;
const C7: i16 = 2260;

/// Bits that are kept beyond the point between the passes.
const KEPT_BITS: u32 = 2;
const FIRST_SHIFT: u32 = BITS - KEPT_BITS;
const FIRST_HALF: i32 = 1 << (FIRST_SHIFT - 1);
/// Divides by eight, too.
const LAST_SHIFT: u32 = BITS + KEPT_BITS + 3;
/// Half of the last place, and the middle gray that samples are told from.
const LAST_HALF: i32 = (1 << (LAST_SHIFT - 1)) + (128 << LAST_SHIFT);

/// Where a transform of so many points wants the coefficient of this row and column; `None` where it does not.
///
/// Columns stand in pairs, half the points apart, one pair behind the other for all rows: that is what vectors multiply
/// and add in one step.
pub(super) const fn place(points: usize, row: usize, column: usize) -> Option<u8> {
    if row >= points || column >= points {
        return None;
    }
    let half = if points > 1 { points / 2 } else { 1 };
    Some((column % half * points * 2 + row * 2 + column / half) as u8)
}

/// Factors of the coefficients, in their order.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Quantization([i16; 64]);

impl Quantization {
    pub(super) const NONE: Quantization = Quantization([0; 64]);

    /// For a transform of so many points, from factors in the file's order.
    pub(super) fn new(points: usize, factors: &[u16; 64]) -> Quantization {
        let mut quantization = Quantization::NONE;
        for (place, factor) in block::places(points).iter().zip(factors) {
            if let Some(slot) = quantization.0.get_mut(usize::from(*place)) {
                *slot = *factor as i16;
            }
        }
        quantization
    }
}

/// Where the samples of a block go.
#[derive(Debug)]
pub(super) struct Place<'a> {
    /// From the first sample of the block on.
    pub samples: &'a mut [u8],
    pub stride: usize,
}

/// Transforms a block, and leaves zeros. `last` is the last place that it has in the file's order.
#[inline(always)]
pub(super) fn transform(
    points: usize,
    block: &mut Block,
    last: u32,
    factors: &Quantization,
    place: Place<'_>,
    kernels: Kernels,
) {
    if last == 0 || points == 1 {
        let mean = std::mem::take(&mut block.0[0]).wrapping_mul(factors.0[0]);
        return fill(points, mean, place);
    }
    match (points, kernels) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Kernels::Avx2` is only made where the processor has it.
        (8, Kernels::Avx2) => unsafe { avx2::transform_8(block, factors, place) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (4, Kernels::Avx2) => unsafe { avx2::transform_4(block, factors, place) },
        (8, _) => transform_8(take(block, factors), place),
        (4, _) => transform_4(take(block, factors), place),
        _ => transform_2(take(block, factors), place),
    }
}

/// The coefficients, by their factors; the block is left with zeros.
#[inline(always)]
fn take<const N: usize>(block: &mut Block, factors: &Quantization) -> [i16; N] {
    std::array::from_fn(|i| std::mem::take(&mut block.0[i]).wrapping_mul(factors.0[i]))
}

/// A block that is nothing but its mean.
#[inline(always)]
fn fill(points: usize, mean: i16, place: Place<'_>) {
    let sample = (((i32::from(mean) + 4) >> 3) + 128).clamp(0, 255) as u8;
    match points {
        8 => fill_points::<8>(sample, place),
        4 => fill_points::<4>(sample, place),
        2 => fill_points::<2>(sample, place),
        _ => fill_points::<1>(sample, place),
    }
}

#[inline(always)]
fn fill_points<const POINTS: usize>(sample: u8, place: Place<'_>) {
    for row in place.samples.chunks_mut(place.stride).take(POINTS) {
        row[..POINTS].fill(sample);
    }
}

/// One product of two pairs.
#[inline(always)]
fn pair(values: [i16; 2], factors: [i16; 2]) -> i32 {
    let [a, b] = values.map(i32::from);
    let [c, d] = factors.map(i32::from);
    a * c + b * d
}

#[inline(always)]
fn saturated(value: i32) -> i16 {
    value.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
}

#[inline(always)]
fn sample(value: i32) -> u8 {
    (value >> LAST_SHIFT).clamp(0, 255) as u8
}

/// Eight points, out of the pairs (0, 4), (1, 5), (2, 6), (3, 7).
#[inline(always)]
fn points_8(pairs: [[i16; 2]; 4], half: i32) -> [i32; 8] {
    let [x04, x15, x26, x37] = pairs;
    let [e0, e1] = [pair(x04, [ONE, ONE]), pair(x04, [ONE, -ONE])].map(|even| even.wrapping_add(half));
    let [f0, f1] = [pair(x26, [C2, C6]), pair(x26, [C6, -C2])];
    let even = [
        e0.wrapping_add(f0),
        e1.wrapping_add(f1),
        e1.wrapping_sub(f1),
        e0.wrapping_sub(f0),
    ];
    let odd = [
        pair(x15, [C1, C5]).wrapping_add(pair(x37, [C3, C7])),
        pair(x15, [C3, -C1]).wrapping_add(pair(x37, [-C7, -C5])),
        pair(x15, [C5, C7]).wrapping_add(pair(x37, [-C1, C3])),
        pair(x15, [C7, C3]).wrapping_add(pair(x37, [-C5, -C1])),
    ];
    std::array::from_fn(|i| match i < 4 {
        true => even[i].wrapping_add(odd[i]),
        false => even[7 - i].wrapping_sub(odd[7 - i]),
    })
}

/// Four points, out of the pairs (0, 2) and (1, 3).
#[inline(always)]
fn points_4(pairs: [[i16; 2]; 2], half: i32) -> [i32; 4] {
    let [x02, x13] = pairs;
    let [e0, e1] = [pair(x02, [ONE, ONE]), pair(x02, [ONE, -ONE])].map(|even| even.wrapping_add(half));
    let [o0, o1] = [pair(x13, [C2, C6]), pair(x13, [C6, -C2])];
    [
        e0.wrapping_add(o0),
        e1.wrapping_add(o1),
        e1.wrapping_sub(o1),
        e0.wrapping_sub(o0),
    ]
}

fn transform_8(coefficients: [i16; 64], place: Place<'_>) {
    let mut between = [[0; 8]; 8];
    for row in 0..8 {
        let pairs =
            std::array::from_fn(|i| [coefficients[i * 16 + row * 2], coefficients[i * 16 + row * 2 + 1]]);
        between[row] = points_8(pairs, FIRST_HALF).map(|value| saturated(value >> FIRST_SHIFT));
    }
    let mut samples = [[0; 8]; 8];
    for column in 0..8 {
        let pairs = std::array::from_fn(|i| [between[i][column], between[i + 4][column]]);
        for (row, value) in points_8(pairs, LAST_HALF).into_iter().enumerate() {
            samples[row][column] = sample(value);
        }
    }
    for (row, samples) in place.samples.chunks_mut(place.stride).zip(&samples) {
        row[..8].copy_from_slice(samples);
    }
}

fn transform_4(coefficients: [i16; 16], place: Place<'_>) {
    let mut between = [[0; 4]; 4];
    for row in 0..4 {
        let pairs =
            std::array::from_fn(|i| [coefficients[i * 8 + row * 2], coefficients[i * 8 + row * 2 + 1]]);
        between[row] = points_4(pairs, FIRST_HALF).map(|value| saturated(value >> FIRST_SHIFT));
    }
    let mut samples = [[0; 4]; 4];
    for column in 0..4 {
        let pairs = std::array::from_fn(|i| [between[i][column], between[i + 2][column]]);
        for (row, value) in points_4(pairs, LAST_HALF).into_iter().enumerate() {
            samples[row][column] = sample(value);
        }
    }
    for (row, samples) in place.samples.chunks_mut(place.stride).zip(&samples) {
        row[..4].copy_from_slice(samples);
    }
}

/// Both passes at once: the cosines of two points are all one.
fn transform_2(coefficients: [i16; 4], place: Place<'_>) {
    let [a, b, c, d] = coefficients.map(i32::from);
    let samples = [[a + b + c + d, a - b + c - d], [a + b - c - d, a - b - c + d]];
    for (row, samples) in place.samples.chunks_mut(place.stride).zip(samples) {
        for (out, value) in row.iter_mut().zip(samples) {
            *out = (((value + 4) >> 3) + 128).clamp(0, 255) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formula above, in floats.
    fn reference(points: usize, coefficients: &[[i16; 8]; 8]) -> Vec<f64> {
        let basis = |x: usize, u: usize| {
            let factor = if u == 0 { 1.0 } else { std::f64::consts::SQRT_2 };
            let angle = ((2 * x + 1) * u) as f64 * std::f64::consts::PI / (2 * points) as f64;
            factor * angle.cos()
        };
        let mut samples = Vec::new();
        for y in 0..points {
            for x in 0..points {
                let mut sum = 0.0;
                for (v, row) in coefficients.iter().enumerate().take(points) {
                    for (u, value) in row.iter().enumerate().take(points) {
                        sum += f64::from(*value) * basis(x, u) * basis(y, v);
                    }
                }
                samples.push((sum / 8.0 + 128.0).clamp(0.0, 255.0));
            }
        }
        samples
    }

    fn transformed(points: usize, coefficients: &[[i16; 8]; 8], kernels: Kernels) -> Vec<u8> {
        let mut block = Block::ZERO;
        for (row, values) in coefficients.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                if let Some(place) = place(points, row, column) {
                    block.0[usize::from(place)] = *value;
                }
            }
        }
        let mut samples = vec![0; points * points];
        let place = Place {
            samples: &mut samples,
            stride: points,
        };
        transform(points, &mut block, 63, &Quantization([1; 64]), place, kernels);
        assert!(block.0[..64].iter().all(|value| *value == 0));
        samples
    }

    /// Blocks whose coefficients are below a bound, the larger the rarer.
    fn blocks(bound: i64) -> impl Iterator<Item = [[i16; 8]; 8]> {
        let mut state = 0x1234_5678_9abc_def1_u64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state >> 11
        };
        (0..500).map(move |_| {
            let density = 1 + next() % 8;
            std::array::from_fn(|_| {
                std::array::from_fn(|_| match next() % 8 < density {
                    true => ((next() % (2 * bound as u64 + 1)) as i64 - bound) as i16,
                    false => 0,
                })
            })
        })
    }

    #[test]
    fn samples_are_those_of_the_formula() {
        for points in [8, 4, 2, 1] {
            for block in blocks(120) {
                let expected = reference(points, &block);
                let samples = transformed(points, &block, Kernels::Portable);
                for (sample, expected) in samples.iter().zip(expected) {
                    let difference = (f64::from(*sample) - expected).abs();
                    assert!(
                        difference < 0.6,
                        "{points} points: {sample} instead of {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn vectors_change_nothing() {
        for points in [8, 4, 2, 1] {
            for bound in [5, 300, 4_000, 32_767] {
                for block in blocks(bound) {
                    let portable = transformed(points, &block, Kernels::Portable);
                    assert_eq!(transformed(points, &block, Kernels::default()), portable);
                }
            }
        }
    }

    #[test]
    fn a_mean_alone_is_the_same_without_a_transform() {
        for mean in [
            -32_768, -9_000, -1_025, -1_024, -5, -4, 0, 3, 4, 1_019, 1_020, 8_192, 32_767,
        ] {
            for points in [8, 4, 2, 1] {
                let mut coefficients = [[0; 8]; 8];
                coefficients[0][0] = mean;
                let mut block = Block::ZERO;
                block.0[0] = mean;
                let mut samples = vec![0; points * points];
                let place = Place {
                    samples: &mut samples,
                    stride: points,
                };
                transform(
                    points,
                    &mut block,
                    0,
                    &Quantization([1; 64]),
                    place,
                    Kernels::Portable,
                );
                assert_eq!(samples, transformed(points, &coefficients, Kernels::Portable));
            }
        }
    }
}
