//! What an optimizer keeps, in two bytes or in one, and back.
//!
//! Numbers are rounded up or down by chance, so that they are right on average: rounded to the nearest, a mean that moves
//! by a thousandth at every step would stand still. Chance is a function of a key and of the place in the tensor.
//!
//! A byte is a code of `x = |value| / scale`, where `scale` is the largest of a block. It holds the leading bits of
//! `d + (1 - d) · x` as a float, less those of `d`: even steps of `d / 16` near zero, and steps of a sixteenth to a
//! thirty-second of the value further up.

use super::super::ops::pointwise::mix;
use super::vectorized::vectorized;

/// Bits of a float that a code leaves out: of 23 bits of its fraction, four stay.
const DROPPED: u32 = 19;
/// `d` of a code of 8 bits, 17/16 · 2⁻¹⁶: its leading bits are 255 below those of 1.
const SMALL: f32 = 17.0 / 16.0 / 65_536.0;
/// `d` of a code of 7 bits beside a sign, 17/16 · 2⁻⁸: its leading bits are 127 below those of 1.
const SMALL_SIGNED: f32 = 17.0 / 16.0 / 256.0;

pub(crate) const LANES: usize = 16;

/// The chance of a place: so many bits that are as good as random.
#[inline(always)]
fn chance(key: u32, place: usize, bits: u32) -> u32 {
    mix(key ^ place as u32) >> (32 - bits)
}

vectorized! {
    pub(crate) fn widen_halves(halves: &[u16], values: &mut [f32]) {
        for (value, half) in values.iter_mut().zip(halves) {
            *value = f32::from_bits(u32::from(*half) << 16);
        }
    }

    /// Values whose first is at `start` of their tensor.
    pub(crate) fn narrow_to_halves(values: &[f32], halves: &mut [u16], start: usize, key: u32) {
        for (i, (half, value)) in halves.iter_mut().zip(values).enumerate() {
            *half = (value.to_bits().wrapping_add(chance(key, start + i, 16)) >> 16) as u16;
        }
    }

    /// The largest of all, whatever their signs.
    pub(crate) fn largest(values: &[f32]) -> f32 {
        let (chunks, rest) = values.as_chunks::<LANES>();
        let mut most = [0u32; LANES];
        // Without their signs, floats are in the order of their bits.
        for chunk in chunks {
            for i in 0..LANES {
                most[i] = most[i].max(chunk[i].abs().to_bits());
            }
        }
        let mut all = 0;
        for lane in most {
            all = all.max(lane);
        }
        for value in rest {
            all = all.max(value.abs().to_bits());
        }
        f32::from_bits(all)
    }

    pub(crate) fn widen_codes(codes: &[u8], scale: f32, values: &mut [f32]) {
        let factor = scale / (1.0 - SMALL);
        for (value, code) in values.iter_mut().zip(codes) {
            let bits = SMALL.to_bits() + (u32::from(*code) << DROPPED);
            *value = (f32::from_bits(bits) - SMALL) * factor;
        }
    }

    /// Values of 0 or more, whose first is at `start` of their tensor. What is not 0 does not become 0: weights are divided
    /// by it.
    pub(crate) fn narrow_to_codes(values: &[f32], scale: f32, codes: &mut [u8], start: usize, key: u32) {
        let factor = (1.0 - SMALL) / scale;
        for (i, (code, value)) in codes.iter_mut().zip(values).enumerate() {
            let bits = (SMALL + value * factor).to_bits() - SMALL.to_bits();
            let rounded = (bits + chance(key, start + i, DROPPED)) >> DROPPED;
            *code = rounded.clamp(u32::from(*value > 0.0), 255) as u8;
        }
    }

    pub(crate) fn widen_signed_codes(codes: &[u8], scale: f32, values: &mut [f32]) {
        let factor = scale / (1.0 - SMALL_SIGNED);
        for (value, code) in values.iter_mut().zip(codes) {
            let bits = SMALL_SIGNED.to_bits() + (u32::from(*code & 127) << DROPPED);
            let size = (f32::from_bits(bits) - SMALL_SIGNED) * factor;
            *value = f32::from_bits(size.to_bits() | (u32::from(*code >> 7) << 31));
        }
    }

    /// Values of any sign, whose first is at `start` of their tensor.
    pub(crate) fn narrow_to_signed_codes(values: &[f32], scale: f32, codes: &mut [u8], start: usize, key: u32) {
        let factor = (1.0 - SMALL_SIGNED) / scale;
        for (i, (code, value)) in codes.iter_mut().zip(values).enumerate() {
            let bits = (SMALL_SIGNED + value.abs() * factor).to_bits() - SMALL_SIGNED.to_bits();
            let rounded = (bits + chance(key, start + i, DROPPED)) >> DROPPED;
            *code = rounded.min(127) as u8 | ((value.to_bits() >> 31) << 7) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of values on average, and how far single ones are off.
    fn mean_and_worst(values: &[f32], there_and_back: impl Fn(u32, &mut [f32])) -> Vec<(f64, f64)> {
        let n = 4000;
        let mut found = vec![(0.0, 0.0f64); values.len()];
        let mut back = vec![0.0; values.len()];
        for key in 0..n {
            there_and_back(mix(key + 1), &mut back);
            for ((mean, worst), (back, value)) in found.iter_mut().zip(back.iter().zip(values)) {
                *mean += f64::from(*back) / f64::from(n);
                *worst = worst.max(f64::from((back - value).abs()));
            }
        }
        found
    }

    #[test]
    fn on_average_numbers_are_what_they_were() {
        let sizes = [1.0, 0.83, 0.5, 0.31, 0.04, 3e-3, 2e-4, 1e-5, 0.0];
        let signed: Vec<f32> = sizes.iter().flat_map(|size| [*size, -size]).collect();
        let halves = mean_and_worst(&signed, |key, back| {
            let mut halves = vec![0; back.len()];
            narrow_to_halves(&signed, &mut halves, 5, key);
            widen_halves(&halves, back);
        });
        for (value, (mean, worst)) in signed.iter().zip(halves) {
            let size = f64::from(value.abs());
            assert!((mean - f64::from(*value)).abs() <= size * 3e-4, "{value}: {mean}");
            assert!(worst <= size / 128.0, "{value}: {worst}");
        }
        for scale in [1.0f32, 3.7e-20, 5.1e9] {
            let scaled: Vec<f32> = signed.iter().map(|value| value * scale).collect();
            assert_eq!(largest(&scaled), scale);
            let codes = mean_and_worst(&scaled, |key, back| {
                let mut codes = vec![0; back.len()];
                narrow_to_signed_codes(&scaled, scale, &mut codes, 5, key);
                widen_signed_codes(&codes, scale, back);
            });
            for (value, (mean, worst)) in signed.iter().zip(codes) {
                let step = f64::from(value.abs() + SMALL_SIGNED) / 16.0 * 1.001;
                let [mean, worst] = [mean, worst].map(|found| found / f64::from(scale));
                assert!((mean - f64::from(*value)).abs() <= step / 20.0, "{value}: {mean}");
                assert!(worst <= step, "{value}: {worst}");
            }
            let plain: Vec<f32> = sizes.iter().map(|value| value * scale).collect();
            let codes = mean_and_worst(&plain, |key, back| {
                let mut codes = vec![0; back.len()];
                narrow_to_codes(&plain, scale, &mut codes, 5, key);
                widen_codes(&codes, scale, back);
                assert!(
                    back.iter()
                        .zip(&plain)
                        .all(|(back, value)| (*back > 0.0) == (*value > 0.0))
                );
            });
            for (value, (mean, worst)) in sizes.iter().zip(codes) {
                let step = f64::from(value + SMALL) / 16.0 * 1.001;
                let [mean, worst] = [mean, worst].map(|found| found / f64::from(scale));
                assert!((mean - f64::from(*value)).abs() <= step / 20.0, "{value}: {mean}");
                assert!(worst <= step, "{value}: {worst}");
            }
        }
    }
}
