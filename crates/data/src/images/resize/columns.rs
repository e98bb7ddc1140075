//! Weighted sums of the columns of one row.

use super::Kernels;
use super::rows::LINE_BITS;
use super::weights::{ONE_BITS, Weights};

const SHIFT: u32 = ONE_BITS + LINE_BITS;
const HALF: i32 = 1 << (SHIFT - 1);

/// A row whose columns are those of the source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub values: &'a [i16],
    /// The source column that it begins with.
    pub first: usize,
    pub channels: usize,
}

pub(super) fn sum(weights: &Weights, line: Line<'_>, out: &mut [u8], kernels: Kernels) {
    let done = match kernels {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Kernels::Avx2` is only made where the processor has it.
        Kernels::Avx2 if line.channels == 1 => unsafe { avx2::sum(weights, line, out) },
        _ => 0,
    };
    match line.channels {
        1 => sum_plainly::<1>(weights, line, out, done),
        2 => sum_plainly::<2>(weights, line, out, done),
        3 => sum_plainly::<3>(weights, line, out, done),
        _ => sum_plainly::<4>(weights, line, out, done),
    }
}

/// From this output pixel on.
fn sum_plainly<const CHANNELS: usize>(weights: &Weights, line: Line<'_>, out: &mut [u8], from: usize) {
    for (index, pixel) in out.chunks_exact_mut(CHANNELS).enumerate().skip(from) {
        let (start, weights) = weights.of(index);
        let mut sums = [HALF; CHANNELS];
        let values = line.values[(start - line.first) * CHANNELS..].chunks_exact(CHANNELS);
        for (values, weight) in values.zip(weights) {
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += i32::from(*value) * i32::from(*weight);
            }
        }
        for (out, sum) in pixel.iter_mut().zip(sums) {
            *out = (sum >> SHIFT) as u8;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! The same sums, eight pixels at a time and four columns of each at once: 43 µs instead of 110 for the three
    //! components of a sample of 150×150 pixels.

    use std::arch::x86_64::*;

    use super::super::weights::PADDING;
    use super::{HALF, Line, SHIFT, Weights};

    /// Sums the pixels of one channel in eights, and says how many.
    #[target_feature(enable = "avx2,bmi2")]
    pub(super) fn sum(weights: &Weights, line: Line<'_>, out: &mut [u8]) -> usize {
        let (spans, values) = weights.padded();
        let taps = weights.taps;
        let fours = Fours::new(line.values);
        let outs = out
            .as_chunks_mut::<8>()
            .0
            .iter_mut()
            .zip(spans.as_chunks::<8>().0);
        for ((out, spans), values) in outs.zip(values.chunks_exact(8 * taps)) {
            let mut starts = [0; 8];
            for (start, span) in starts.iter_mut().zip(spans) {
                *start = span.0 as usize - line.first;
            }
            let [a, b, c, d, e, f, g, h] = starts;
            let (upper, lower) = match <&[i16; 8 * PADDING]>::try_from(values) {
                // The common case: four columns are enough.
                Ok(values) => {
                    // SAFETY: 64 bytes, in two halves.
                    let weights = unsafe {
                        let values = values.as_ptr().cast::<__m256i>();
                        [_mm256_loadu_si256(values), _mm256_loadu_si256(values.add(1))]
                    };
                    (
                        _mm256_madd_epi16(fours.at([a, b, c, d], 0), weights[0]),
                        _mm256_madd_epi16(fours.at([e, f, g, h], 0), weights[1]),
                    )
                }
                Err(_) => {
                    let weights = Fours::new(values);
                    let (mut upper, mut lower) = (_mm256_setzero_si256(), _mm256_setzero_si256());
                    let mut tap = 0;
                    while tap < taps {
                        let four = weights.at([0, taps, 2 * taps, 3 * taps], tap);
                        upper = _mm256_add_epi32(upper, _mm256_madd_epi16(fours.at([a, b, c, d], tap), four));
                        let four = weights.at([4 * taps, 5 * taps, 6 * taps, 7 * taps], tap);
                        lower = _mm256_add_epi32(lower, _mm256_madd_epi16(fours.at([e, f, g, h], tap), four));
                        tap += PADDING;
                    }
                    (upper, lower)
                }
            };
            // Pixels 0 1 4 5 in the lower half, 2 3 6 7 in the upper one.
            let sums = _mm256_hadd_epi32(upper, lower);
            let rounded =
                _mm256_srai_epi32::<{ SHIFT as i32 }>(_mm256_add_epi32(sums, _mm256_set1_epi32(HALF)));
            let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(rounded);
            let words = _mm_packs_epi32(
                _mm256_castsi256_si128(ordered),
                _mm256_extracti128_si256::<1>(ordered),
            );
            *out = _mm_cvtsi128_si64(_mm_packus_epi16(words, words)).to_le_bytes();
        }
        spans.len() / 8 * 8
    }

    /// Values that are read four by four, from anywhere.
    struct Fours<'a> {
        values: &'a [i16],
        /// The last place that four can be read from.
        last: usize,
    }

    impl<'a> Fours<'a> {
        fn new(values: &'a [i16]) -> Fours<'a> {
            let last = values
                .len()
                .checked_sub(4)
                .expect("four values are padding alone");
            Fours { values, last }
        }

        /// Four values from each of these places on, so much further.
        #[inline]
        #[target_feature(enable = "avx2,bmi2")]
        fn at(&self, starts: [usize; 4], further: usize) -> __m256i {
            let values = self.values.as_ptr();
            let [a, b, c, d] = starts;
            // SAFETY: from the last place at the latest, there are four values.
            unsafe {
                let a = values.add((a + further).min(self.last)).cast::<f64>();
                let b = values.add((b + further).min(self.last)).cast::<f64>();
                let c = values.add((c + further).min(self.last)).cast::<f64>();
                let d = values.add((d + further).min(self.last)).cast::<f64>();
                let left = _mm_loadh_pd(_mm_load_sd(a), b);
                let right = _mm_loadh_pd(_mm_load_sd(c), d);
                _mm256_castpd_si256(_mm256_set_m128d(right, left))
            }
        }
    }
}
