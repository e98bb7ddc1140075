//! Whether there are wide vectors, and what is done with them in more than one place.

/// Whether the processor has AVX2. The results do not depend on it.
pub(super) fn are_present() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2 {
    //! Halves of a register of 32 bytes, each four pixels of three channels.

    use std::arch::x86_64::*;

    /// The same order of bytes in both halves.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn twice(order: [i8; 16]) -> __m256i {
        // SAFETY: there are sixteen, and the load needs no alignment.
        _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(order.as_ptr().cast()) })
    }

    /// The first twelve bytes of each half, one after the other.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn store_dense(halves: __m256i, into: &mut [u8]) {
        let (low, high) = (
            _mm256_castsi256_si128(halves),
            _mm256_extracti128_si256::<1>(halves),
        );
        into[..8].copy_from_slice(&_mm_cvtsi128_si64(low).to_le_bytes());
        into[8..12].copy_from_slice(&_mm_extract_epi32::<2>(low).to_le_bytes());
        into[12..20].copy_from_slice(&_mm_cvtsi128_si64(high).to_le_bytes());
        into[20..24].copy_from_slice(&_mm_extract_epi32::<2>(high).to_le_bytes());
    }
}
