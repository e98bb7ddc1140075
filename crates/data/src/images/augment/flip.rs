//! Pixels that are only put elsewhere: copies, and rows backwards.

use super::pose::{Pose, Sizes};

/// Copies the centre of a stored sample, flipped as the pose says. The rest of the pose is for others.
pub(super) fn copy(sizes: &Sizes, pose: &Pose, vectors: bool, stored: &[u8], into: &mut [u8]) {
    if sizes.stored == sizes.output && !pose.flip_x && !pose.flip_y {
        into.copy_from_slice(stored);
        return;
    }
    let channels = sizes.channels;
    let (height, width) = sizes.output;
    let (top, left) = sizes.centre();
    for (row, into) in into.chunks_exact_mut(width * channels).enumerate() {
        let row = top + if pose.flip_y { height - 1 - row } else { row };
        let start = (row * sizes.stored.1 + left) * channels;
        let from = &stored[start..start + width * channels];
        match (pose.flip_x, channels) {
            (false, _) => into.copy_from_slice(from),
            (true, 1) => into
                .iter_mut()
                .zip(from.iter().rev())
                .for_each(|(to, from)| *to = *from),
            (true, _) => backwards(from, vectors, into),
        }
    }
}

/// The pixels of three channels of a row, the last first.
fn backwards(from: &[u8], vectors: bool, into: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    let done = match vectors {
        // SAFETY: the caller has made sure that the processor has AVX2.
        true => unsafe { avx2::backwards(from, into) },
        false => 0,
    };
    #[cfg(not(target_arch = "x86_64"))]
    let (done, _) = (0, vectors);
    let from = &from[..from.len() - done];
    for (to, from) in into[done..].chunks_exact_mut(3).zip(from.rchunks_exact(3)) {
        to.copy_from_slice(from);
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! Five pixels at a time.

    use std::arch::x86_64::*;

    /// Bytes of five pixels.
    const STEP: usize = 15;

    /// Writes whole steps, and says how many bytes are done.
    #[target_feature(enable = "avx2")]
    pub(super) fn backwards(from: &[u8], into: &mut [u8]) -> usize {
        let n = from.len().min(into.len());
        // The byte before the five pixels is read, too, and written behind them, where the next step begins.
        let order = _mm_setr_epi8(13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, 0);
        let mut done = 0;
        while done + STEP < n {
            // SAFETY: of n bytes, at least sixteen are left at the end of what is read and at the start of what is
            // written.
            unsafe {
                let pixels = _mm_loadu_si128(from.as_ptr().add(n - done - STEP - 1).cast());
                let pixels = _mm_shuffle_epi8(pixels, order);
                _mm_storeu_si128(into.as_mut_ptr().add(done).cast(), pixels);
            }
            done += STEP;
        }
        done
    }
}
