//! Finding separators and line ends 64 bytes at a time.

use super::PADDING;

/// Walks the positions of up to three byte values in a text, in order.
///
/// One pass over the text with a bit per byte costs far less than a search per field, because fields are
/// short.
pub(super) struct Scanner<'t> {
    text: &'t [u8],
    /// Where text ends and padding begins.
    end: usize,
    needles: [u8; 3],
    base: usize,
    mask: u64,
}

impl<'t> Scanner<'t> {
    /// `padded` holds the text and at least [`PADDING`] bytes more. A needle may stand twice.
    pub(super) fn new(padded: &'t [u8], end: usize, needles: [u8; 3]) -> Scanner<'t> {
        assert!(end + PADDING <= padded.len(), "the text lacks its padding");
        let mut scanner = Scanner {
            text: padded,
            end,
            needles,
            base: 0,
            mask: 0,
        };
        scanner.seek(0);
        scanner
    }

    /// Goes on from `position`.
    #[inline(always)]
    pub(super) fn seek(&mut self, position: usize) {
        self.base = position;
        self.mask = if position < self.end {
            self.load(position)
        } else {
            0
        };
    }

    /// The next needle.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<usize> {
        while self.mask == 0 {
            self.base += 64;
            if self.base >= self.end {
                return None;
            }
            self.mask = self.load(self.base);
        }
        let position = self.base + self.mask.trailing_zeros() as usize;
        self.mask &= self.mask - 1;
        (position < self.end).then_some(position)
    }

    #[inline(always)]
    fn load(&self, at: usize) -> u64 {
        let chunk: &[u8; 64] = self.text[at..at + 64].try_into().expect("64 bytes were sliced");
        matches(chunk, self.needles)
    }
}

/// One bit for each byte that is a needle.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn matches(chunk: &[u8; 64], needles: [u8; 3]) -> u64 {
    use std::arch::x86_64::*;
    // SAFETY: SSE2 is part of x86_64, and the four unaligned loads stay inside the 64 bytes of `chunk`.
    unsafe {
        let [a, b, c] = needles.map(|needle| _mm_set1_epi8(needle as i8));
        let mut mask = 0u64;
        for part in 0..4 {
            let bytes = _mm_loadu_si128(chunk.as_ptr().add(part * 16).cast());
            let hit = _mm_or_si128(_mm_cmpeq_epi8(bytes, a), _mm_cmpeq_epi8(bytes, b));
            let hit = _mm_or_si128(hit, _mm_cmpeq_epi8(bytes, c));
            mask |= (_mm_movemask_epi8(hit) as u32 as u64) << (part * 16);
        }
        mask
    }
}

/// The same without vector instructions.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline]
fn matches_anywhere(chunk: &[u8; 64], needles: [u8; 3]) -> u64 {
    let is_needle = |byte: &u8| u64::from(needles.contains(byte));
    chunk
        .iter()
        .enumerate()
        .fold(0, |mask, (i, byte)| mask | (is_needle(byte) << i))
}

#[cfg(not(target_arch = "x86_64"))]
use matches_anywhere as matches;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn positions(text: &[u8], from: usize) -> Vec<usize> {
        let mut padded = text.to_vec();
        padded.extend([b','; PADDING]);
        let mut scanner = Scanner::new(&padded, text.len(), [b',', b'\n', b'"']);
        scanner.seek(from);
        std::iter::from_fn(|| scanner.next()).collect()
    }

    proptest! {
        #[test]
        fn vectors_find_what_bytes_find(chunk in proptest::collection::vec(0u8..5, 64)) {
            let chunk: [u8; 64] = chunk.try_into().unwrap();
            prop_assert_eq!(matches(&chunk, [1, 2, 4]), matches_anywhere(&chunk, [1, 2, 4]));
        }

        #[test]
        fn finds_what_a_plain_loop_finds(text in "[ab,\n\"]{0,300}", from in 0usize..300) {
            let from = from.min(text.len());
            let expected: Vec<usize> =
                text.bytes().enumerate().skip(from).filter(|(_, b)| matches!(b, b',' | b'\n' | b'"')).map(|(i, _)| i).collect();
            prop_assert_eq!(positions(text.as_bytes(), from), expected);
        }
    }
}
