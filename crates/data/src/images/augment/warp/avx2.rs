//! The same values by AVX2, eight pixels at a time.
//!
//! No closures here: what is not inlined into a function is not compiled for its vectors.

use std::arch::x86_64::*;

use super::super::vectors::avx2::{store_dense, twice};
use super::{Line, Picture, SpotsMut, blend, find};

/// Pixels of a block.
const BLOCK: usize = 8;

/// Spots and values of a run.
#[target_feature(enable = "avx2")]
pub(super) fn run<const CHANNELS: usize>(
    picture: Picture<'_>,
    line: Line,
    spots: SpotsMut<'_>,
    into: &mut [u8],
) {
    let SpotsMut {
        offsets,
        across,
        down,
    } = spots;
    find::<CHANNELS>(picture, line, offsets, across, down);
    // What a block reads at once of two neighbours, the last bytes for nothing.
    let reads = if CHANNELS == 3 { 8 } else { 4 };
    let last = picture.bytes.len().checked_sub(picture.below + reads);
    let n = offsets.len();
    let (Some(last), true) = (last, picture.right == CHANNELS && n >= BLOCK) else {
        return blend::<CHANNELS>(picture, offsets, across, down, into);
    };
    let last = last.min(i32::MAX as usize) as u32;
    let mut at = 0;
    loop {
        let offsets = &offsets[at..at + BLOCK];
        let across = &across[at..at + BLOCK];
        let down = &down[at..at + BLOCK];
        let into = &mut into[at * CHANNELS..(at + BLOCK) * CHANNELS];
        // Only the last pixels of the last row are too near to the end.
        if !are_at_most(offsets, last) {
            blend::<CHANNELS>(picture, offsets, across, down, into);
        } else if CHANNELS == 3 {
            // SAFETY: so many bytes can be read at every offset, and below it.
            unsafe { colours(picture, offsets, across, down, into) };
        } else {
            // SAFETY: as above.
            unsafe { grays(picture, offsets, across, down, into) };
        }
        if at + BLOCK == n {
            return;
        }
        // The last block may do some pixels again.
        at = (at + BLOCK).min(n - BLOCK);
    }
}

/// Eight pixels of three channels. A register holds two of them, the first and the fifth, then the second and the
/// sixth: so its halves end up as four pixels that follow each other.
///
/// # Safety
/// Eight bytes can be read at every offset, and as far below as the next row is.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn colours(picture: Picture<'_>, offsets: &[u32], across: &[u32], down: &[u32], into: &mut [u8]) {
    let (across, down) = (eight(across), eight(down));
    // Red, green and blue of left and right beside each other.
    let beside = twice([0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, 12, 13, 14, 15]);
    let mut values = [_mm256_setzero_si256(); 4];
    for i in 0..4 {
        // SAFETY: as the caller promises.
        let (top, bottom) = unsafe {
            let first = picture.bytes.as_ptr().add(offsets[i] as usize);
            let fifth = picture.bytes.as_ptr().add(offsets[i + 4] as usize);
            (
                two(first, fifth),
                two(first.add(picture.below), fifth.add(picture.below)),
            )
        };
        let (first, fifth) = (i as i32, i as i32 + 4);
        let both = _mm256_setr_epi32(first, first, first, first, fifth, fifth, fifth, fifth);
        let across = _mm256_permutevar8x32_epi32(across, both);
        let down = _mm256_permutevar8x32_epi32(down, both);
        values[i] = mean(top, bottom, beside, across, down);
    }
    let bytes = _mm256_packus_epi16(
        _mm256_packus_epi32(values[0], values[1]),
        _mm256_packus_epi32(values[2], values[3]),
    );
    // The fourth byte of every pixel is of its neighbours.
    let dense = _mm256_shuffle_epi8(
        bytes,
        twice([0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1]),
    );
    store_dense(dense, into);
}

/// Eight pixels of one channel.
///
/// # Safety
/// Four bytes can be read at every offset, and as far below as the next row is.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn grays(picture: Picture<'_>, offsets: &[u32], across: &[u32], down: &[u32], into: &mut [u8]) {
    let (offsets, across, down) = (eight(offsets), eight(across), eight(down));
    let bytes = picture.bytes.as_ptr();
    // SAFETY: as the caller promises.
    let (top, bottom) = unsafe {
        (
            _mm256_i32gather_epi32::<1>(bytes.cast(), offsets),
            _mm256_i32gather_epi32::<1>(bytes.add(picture.below).cast(), offsets),
        )
    };
    // Of four bytes the first two, each as a word.
    let words = twice([0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1]);
    let (top, bottom) = (
        _mm256_shuffle_epi8(top, words),
        _mm256_shuffle_epi8(bottom, words),
    );
    let beside = twice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    let values = mean(top, bottom, beside, across, down);
    let values = _mm256_packus_epi32(values, values);
    let values = _mm256_packus_epi16(values, values);
    let low = _mm_cvtsi128_si32(_mm256_castsi256_si128(values));
    let high = _mm_cvtsi128_si32(_mm256_extracti128_si256::<1>(values));
    into[..4].copy_from_slice(&low.to_le_bytes());
    into[4..8].copy_from_slice(&high.to_le_bytes());
}

/// As the formula of the module above: words of top and bottom, put beside each other, become values of 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn mean(top: __m256i, bottom: __m256i, beside: __m256i, across: __m256i, down: __m256i) -> __m256i {
    // The product overflows, and the sum takes that back.
    let moved = _mm256_mullo_epi16(_mm256_sub_epi16(bottom, top), down);
    let sides = _mm256_srli_epi16::<1>(_mm256_add_epi16(_mm256_slli_epi16::<8>(top), moved));
    let sum = _mm256_madd_epi16(_mm256_shuffle_epi8(sides, beside), across);
    _mm256_srli_epi32::<15>(_mm256_add_epi32(sum, _mm256_set1_epi32(16_384)))
}

/// Eight bytes from each of two places, as words.
///
/// # Safety
/// They can be read.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn two(first: *const u8, second: *const u8) -> __m256i {
    // SAFETY: as the caller promises.
    let (first, second) = unsafe {
        (
            first.cast::<i64>().read_unaligned(),
            second.cast::<i64>().read_unaligned(),
        )
    };
    _mm256_cvtepu8_epi16(_mm_set_epi64x(second, first))
}

#[inline]
#[target_feature(enable = "avx2")]
fn eight(numbers: &[u32]) -> __m256i {
    let numbers = &numbers[..BLOCK];
    // SAFETY: there are eight, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(numbers.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn are_at_most(numbers: &[u32], most: u32) -> bool {
    let most = _mm256_set1_epi32(most as i32);
    let largest = _mm256_max_epu32(eight(numbers), most);
    _mm256_movemask_epi8(_mm256_cmpeq_epi32(largest, most)) == -1
}
