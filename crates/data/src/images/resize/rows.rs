//! Weighted sums of whole rows.

use super::Kernels;

/// What is left of the fraction once a row is summed. Columns take the rest.
pub(super) const LINE_BITS: u32 = 7;
const SHIFT: u32 = super::weights::ONE_BITS - LINE_BITS;
const HALF: i32 = 1 << (SHIFT - 1);

/// Two rows and their weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair<'a> {
    pub rows: [&'a [u8]; 2],
    pub weights: [i16; 2],
}

/// The sum of one output row.
pub(super) struct Sum<'a> {
    /// As far as it has come.
    pub sums: &'a mut [i32],
    /// Where it goes when it ends.
    pub line: &'a mut [i16],
    pub kernels: Kernels,
}

impl Sum<'_> {
    pub(super) fn add(&mut self, pair: &Pair<'_>, begins: bool, ends: bool) {
        match (begins, ends) {
            (true, true) => self.add_at::<true, true>(pair),
            (true, false) => self.add_at::<true, false>(pair),
            (false, true) => self.add_at::<false, true>(pair),
            (false, false) => self.add_at::<false, false>(pair),
        }
    }

    fn add_at<const BEGINS: bool, const ENDS: bool>(&mut self, pair: &Pair<'_>) {
        let done = match self.kernels {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Kernels::Avx2` is only made where the processor has it.
            Kernels::Avx2 => unsafe { avx2::add::<BEGINS, ENDS>(self, pair) },
            Kernels::Portable => 0,
        };
        self.add_plainly::<BEGINS, ENDS>(pair, done);
    }

    /// From this value on.
    fn add_plainly<const BEGINS: bool, const ENDS: bool>(&mut self, pair: &Pair<'_>, from: usize) {
        let [upper, lower] = pair.rows.map(|row| &row[from..]);
        let [above, below] = pair.weights.map(i32::from);
        let both = upper.iter().zip(lower);
        let weighted = both.map(|(a, b)| i32::from(*a) * above + i32::from(*b) * below);
        match (BEGINS, ENDS) {
            (true, true) => {
                for (line, value) in self.line[from..].iter_mut().zip(weighted) {
                    *line = ended(value);
                }
            }
            (true, false) => {
                for (sum, value) in self.sums[from..].iter_mut().zip(weighted) {
                    *sum = value;
                }
            }
            (false, false) => {
                for (sum, value) in self.sums[from..].iter_mut().zip(weighted) {
                    *sum += value;
                }
            }
            (false, true) => {
                let sums = self.sums[from..].iter();
                for ((line, sum), value) in self.line[from..].iter_mut().zip(sums).zip(weighted) {
                    *line = ended(sum + value);
                }
            }
        }
    }
}

fn ended(sum: i32) -> i16 {
    ((sum + HALF) >> SHIFT) as i16
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! The same sums, 16 values at a time.

    use std::arch::x86_64::*;

    use super::{HALF, Pair, SHIFT, Sum};

    const STEP: usize = 16;

    /// Adds values in sixteens, and says how many.
    #[target_feature(enable = "avx2,bmi2")]
    pub(super) fn add<const BEGINS: bool, const ENDS: bool>(sum: &mut Sum<'_>, pair: &Pair<'_>) -> usize {
        let [upper, lower] = pair.rows;
        let n = upper.len().min(lower.len()) / STEP * STEP;
        assert!(sum.line.len() >= n && (sum.sums.len() >= n || (BEGINS && ENDS)));
        let [above, below] = pair.weights;
        let weights = _mm256_set1_epi32(i32::from(below) << 16 | i32::from(above as u16));
        let half = _mm256_set1_epi32(HALF);
        let mut at = 0;
        while at < n {
            // SAFETY: 16 values from here on are within both rows, and within what they are added to: see above.
            unsafe {
                let upper = _mm_loadu_si128(upper.as_ptr().add(at).cast());
                let lower = _mm_loadu_si128(lower.as_ptr().add(at).cast());
                let left = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(upper, lower));
                let right = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(upper, lower));
                let mut left = _mm256_madd_epi16(left, weights);
                let mut right = _mm256_madd_epi16(right, weights);
                let sums = sum.sums.as_mut_ptr().wrapping_add(at).cast::<__m256i>();
                if !BEGINS {
                    left = _mm256_add_epi32(left, _mm256_loadu_si256(sums));
                    right = _mm256_add_epi32(right, _mm256_loadu_si256(sums.add(1)));
                }
                if ENDS {
                    let left = _mm256_srai_epi32::<{ SHIFT as i32 }>(_mm256_add_epi32(left, half));
                    let right = _mm256_srai_epi32::<{ SHIFT as i32 }>(_mm256_add_epi32(right, half));
                    let both = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(left, right));
                    _mm256_storeu_si256(sum.line.as_mut_ptr().add(at).cast(), both);
                } else {
                    _mm256_storeu_si256(sums, left);
                    _mm256_storeu_si256(sums.add(1), right);
                }
            }
            at += STEP;
        }
        n
    }
}
