//! The one hash of categories and tokens: XXH3, 64 bits, seed 0. It never changes, for models store it.

use twox_hash::XxHash3_64;

/// The key that stands for "no value". No bytes hash to it.
pub const MISSING: u64 = 0;

/// The key of a category or token: `XXH3_64bits(bytes)` of the xxHash specification, and 1 for the one text
/// in 2^64 that would hash to [`MISSING`].
///
/// ```
/// use tidegate_data::sketch::hash::hash;
/// assert_eq!(hash(b""), 0x2d06_8005_38d3_94c2);
/// assert_eq!(hash(b"London"), hash(b"London"));
/// assert_ne!(hash(b"London"), hash(b"london"));
/// ```
#[inline]
pub fn hash(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes).max(1)
}

/// The fold, `0..folds`, of the row that starts on this line: a pure function of the seed and the line, and
/// independent of which rows are held out.
#[inline]
pub fn fold(line: u64, seed: u64, folds: u8) -> u8 {
    // Another start than the holdout's, so that the same seed gives unrelated draws.
    const START: u64 = 0xf01d_f01d_f01d_f01d;
    let drawn = mix(line.wrapping_add(mix(seed ^ START)));
    ((u128::from(drawn) * u128::from(folds)) >> 64) as u8
}

/// The finalizer of SplitMix64: every input bit reaches every output bit.
#[inline]
pub fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_specification() {
        // From the reference implementation: python -c "import xxhash; print(xxhash.xxh3_64_hexdigest(b'a'))".
        for (text, expected) in KNOWN {
            assert_eq!(hash(text.as_bytes()), expected, "{text:?}");
        }
    }

    const KNOWN: [(&str, u64); 4] = [
        ("", 0x2d06_8005_38d3_94c2),
        ("a", 0xe6c6_32b6_1e96_4e1f),
        ("Zurich", 0x68b1_e329_dce8_eb0d),
        (
            "a category with a name of more than sixteen bytes",
            0x9aa8_71de_cda7_4cba,
        ),
    ];

    #[test]
    fn folds_are_even_and_depend_on_the_seed() {
        let mut counts = [[0u32; 5]; 5];
        for line in 0..100_000 {
            counts[fold(line, 1, 5) as usize][fold(line, 2, 5) as usize] += 1;
        }
        assert!(
            counts.iter().flatten().all(|&n| (3_700..4_300).contains(&n)),
            "{counts:?}"
        );
    }
}
