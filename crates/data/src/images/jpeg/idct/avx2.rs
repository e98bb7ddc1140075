//! The same transforms in vectors of eight and of four.

use std::arch::x86_64::*;

use super::{
    C1, C2, C3, C5, C6, C7, FIRST_HALF, FIRST_SHIFT, LAST_HALF, LAST_SHIFT, ONE, Place, Quantization,
};
use crate::images::jpeg::block::Block;

#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn factors(first: i16, second: i16) -> __m256i {
    _mm256_set1_epi32(i32::from(second) << 16 | i32::from(first as u16))
}

#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn factors_4(first: i16, second: i16) -> __m128i {
    _mm_set1_epi32(i32::from(second) << 16 | i32::from(first as u16))
}

#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn points_8<const SHIFT: i32>(pairs: [__m256i; 4], half: i32) -> [__m256i; 8] {
    let [x04, x15, x26, x37] = pairs;
    let half = _mm256_set1_epi32(half);
    let e0 = _mm256_add_epi32(_mm256_madd_epi16(x04, factors(ONE, ONE)), half);
    let e1 = _mm256_add_epi32(_mm256_madd_epi16(x04, factors(ONE, -ONE)), half);
    let f0 = _mm256_madd_epi16(x26, factors(C2, C6));
    let f1 = _mm256_madd_epi16(x26, factors(C6, -C2));
    let even = [
        _mm256_add_epi32(e0, f0),
        _mm256_add_epi32(e1, f1),
        _mm256_sub_epi32(e1, f1),
        _mm256_sub_epi32(e0, f0),
    ];
    let odd = [
        _mm256_add_epi32(
            _mm256_madd_epi16(x15, factors(C1, C5)),
            _mm256_madd_epi16(x37, factors(C3, C7)),
        ),
        _mm256_add_epi32(
            _mm256_madd_epi16(x15, factors(C3, -C1)),
            _mm256_madd_epi16(x37, factors(-C7, -C5)),
        ),
        _mm256_add_epi32(
            _mm256_madd_epi16(x15, factors(C5, C7)),
            _mm256_madd_epi16(x37, factors(-C1, C3)),
        ),
        _mm256_add_epi32(
            _mm256_madd_epi16(x15, factors(C7, C3)),
            _mm256_madd_epi16(x37, factors(-C5, -C1)),
        ),
    ];
    [
        _mm256_srai_epi32::<SHIFT>(_mm256_add_epi32(even[0], odd[0])),
        _mm256_srai_epi32::<SHIFT>(_mm256_add_epi32(even[1], odd[1])),
        _mm256_srai_epi32::<SHIFT>(_mm256_add_epi32(even[2], odd[2])),
        _mm256_srai_epi32::<SHIFT>(_mm256_add_epi32(even[3], odd[3])),
        _mm256_srai_epi32::<SHIFT>(_mm256_sub_epi32(even[3], odd[3])),
        _mm256_srai_epi32::<SHIFT>(_mm256_sub_epi32(even[2], odd[2])),
        _mm256_srai_epi32::<SHIFT>(_mm256_sub_epi32(even[1], odd[1])),
        _mm256_srai_epi32::<SHIFT>(_mm256_sub_epi32(even[0], odd[0])),
    ]
}

#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn points_4<const SHIFT: i32>(pairs: [__m128i; 2], half: i32) -> [__m128i; 4] {
    let [x02, x13] = pairs;
    let half = _mm_set1_epi32(half);
    let e0 = _mm_add_epi32(_mm_madd_epi16(x02, factors_4(ONE, ONE)), half);
    let e1 = _mm_add_epi32(_mm_madd_epi16(x02, factors_4(ONE, -ONE)), half);
    let o0 = _mm_madd_epi16(x13, factors_4(C2, C6));
    let o1 = _mm_madd_epi16(x13, factors_4(C6, -C2));
    [
        _mm_srai_epi32::<SHIFT>(_mm_add_epi32(e0, o0)),
        _mm_srai_epi32::<SHIFT>(_mm_add_epi32(e1, o1)),
        _mm_srai_epi32::<SHIFT>(_mm_sub_epi32(e1, o1)),
        _mm_srai_epi32::<SHIFT>(_mm_sub_epi32(e0, o0)),
    ]
}

/// Two columns out of the first pass, as pairs of rows four apart: one column in either half.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn paired(left: __m256i, right: __m256i) -> __m256i {
    let order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15,
    ));
    let both = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(left, right));
    _mm256_shuffle_epi8(both, order)
}

#[inline]
#[target_feature(enable = "avx2,bmi2")]
pub(super) fn transform_8(block: &mut Block, factors: &Quantization, place: Place<'_>) {
    let coefficients = block.0.as_ptr().cast::<__m256i>();
    let factors = factors.0.as_ptr().cast::<__m256i>();
    // SAFETY: both are 128 bytes at least, and aligned to 32.
    let pairs = unsafe {
        [
            _mm256_mullo_epi16(_mm256_load_si256(coefficients), _mm256_load_si256(factors)),
            _mm256_mullo_epi16(
                _mm256_load_si256(coefficients.add(1)),
                _mm256_load_si256(factors.add(1)),
            ),
            _mm256_mullo_epi16(
                _mm256_load_si256(coefficients.add(2)),
                _mm256_load_si256(factors.add(2)),
            ),
            _mm256_mullo_epi16(
                _mm256_load_si256(coefficients.add(3)),
                _mm256_load_si256(factors.add(3)),
            ),
        ]
    };
    block.0[..64].fill(0);
    let t = points_8::<{ FIRST_SHIFT as i32 }>(pairs, FIRST_HALF);
    let [a, b, c, d] = [
        paired(t[0], t[4]),
        paired(t[1], t[5]),
        paired(t[2], t[6]),
        paired(t[3], t[7]),
    ];
    let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
    let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
    let pairs = [
        _mm256_unpacklo_epi64(ab, cd),
        _mm256_unpackhi_epi64(ab, cd),
        _mm256_unpacklo_epi64(ab_high, cd_high),
        _mm256_unpackhi_epi64(ab_high, cd_high),
    ];
    let s = points_8::<{ LAST_SHIFT as i32 }>(pairs, LAST_HALF);
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let upper = _mm256_packus_epi16(_mm256_packs_epi32(s[0], s[1]), _mm256_packs_epi32(s[2], s[3]));
    let lower = _mm256_packus_epi16(_mm256_packs_epi32(s[4], s[5]), _mm256_packs_epi32(s[6], s[7]));
    let upper = _mm256_permutevar8x32_epi32(upper, order);
    let lower = _mm256_permutevar8x32_epi32(lower, order);
    let rows = [
        _mm256_extract_epi64::<0>(upper),
        _mm256_extract_epi64::<1>(upper),
        _mm256_extract_epi64::<2>(upper),
        _mm256_extract_epi64::<3>(upper),
        _mm256_extract_epi64::<0>(lower),
        _mm256_extract_epi64::<1>(lower),
        _mm256_extract_epi64::<2>(lower),
        _mm256_extract_epi64::<3>(lower),
    ];
    let samples = &mut place.samples[..7 * place.stride + 8];
    for (row, values) in rows.iter().enumerate() {
        samples[row * place.stride..row * place.stride + 8].copy_from_slice(&values.to_le_bytes());
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi2")]
pub(super) fn transform_4(block: &mut Block, factors: &Quantization, place: Place<'_>) {
    let coefficients = block.0.as_ptr().cast::<__m128i>();
    let factors = factors.0.as_ptr().cast::<__m128i>();
    // SAFETY: both are 128 bytes at least, and aligned to 32.
    let pairs = unsafe {
        [
            _mm_mullo_epi16(_mm_load_si128(coefficients), _mm_load_si128(factors)),
            _mm_mullo_epi16(
                _mm_load_si128(coefficients.add(1)),
                _mm_load_si128(factors.add(1)),
            ),
        ]
    };
    block.0[..16].fill(0);
    let t = points_4::<{ FIRST_SHIFT as i32 }>(pairs, FIRST_HALF);
    // Of every column its rows 0 and 2, then 1 and 3.
    let order = _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
    let left = _mm_castsi128_ps(_mm_shuffle_epi8(_mm_packs_epi32(t[0], t[1]), order));
    let right = _mm_castsi128_ps(_mm_shuffle_epi8(_mm_packs_epi32(t[2], t[3]), order));
    let pairs = [
        _mm_castps_si128(_mm_shuffle_ps::<0b10_00_10_00>(left, right)),
        _mm_castps_si128(_mm_shuffle_ps::<0b11_01_11_01>(left, right)),
    ];
    let s = points_4::<{ LAST_SHIFT as i32 }>(pairs, LAST_HALF);
    let samples = _mm_packus_epi16(_mm_packs_epi32(s[0], s[1]), _mm_packs_epi32(s[2], s[3]));
    let rows = [
        _mm_extract_epi32::<0>(samples),
        _mm_extract_epi32::<1>(samples),
        _mm_extract_epi32::<2>(samples),
        _mm_extract_epi32::<3>(samples),
    ];
    let samples = &mut place.samples[..3 * place.stride + 4];
    for (row, values) in rows.iter().enumerate() {
        samples[row * place.stride..row * place.stride + 4].copy_from_slice(&values.to_le_bytes());
    }
}
