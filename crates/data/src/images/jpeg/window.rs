//! The coded data of a scan: taken out of the file piece by piece, and read bit by bit.

use super::resize::refit;
use super::segments::marker;
use super::{Fault, segments::Segments};

/// Bytes of coded data that are held at a time.
const WINDOW_BYTES: usize = 32 << 10;
/// The longest that a few blocks can be: [`BLOCKS_AHEAD`] of 64 codes with 16 bits, and values of 13.
const AHEAD_BYTES: usize = BLOCKS_AHEAD * (64 * 29 / 8) + 16;
/// Blocks that are decoded without asking for more.
pub(super) const BLOCKS_AHEAD: usize = 16;

pub(super) const HELD_BYTES: usize = WINDOW_BYTES + AHEAD_BYTES;

/// A piece of the coded data without the zeros that are stuffed behind every 0xff, so that bits are read eight bytes at a
/// time. It never goes past a marker.
#[derive(Debug, Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    /// Where the coded data in `bytes` ends. Zeros follow.
    end: usize,
    /// Where it goes on in the file.
    next: usize,
    /// Nothing goes on there: it is a marker, or the end of the file.
    at_marker: bool,
}

/// The next bits, first bit highest.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bits {
    pub buffer: u64,
    /// Bits of the buffer that are counted; behind them may stand more. Its lowest 6 bits are the number: what is above
    /// them is not cleared, which saves a step for every code.
    n: u32,
    /// The byte of the window that the counted bits end at.
    pub at: usize,
}

impl Bits {
    /// Makes it 56 bits at least.
    #[inline(always)]
    pub(super) fn refill(&mut self, window: &[u8]) {
        let word = match window.get(self.at..self.at + 8) {
            Some(bytes) => bytes.try_into().map_or(0, u64::from_be_bytes),
            None => 0,
        };
        self.buffer |= word >> (self.n & 63);
        self.at += (!self.n >> 3 & 7) as usize;
        self.n |= 56;
    }

    /// Goes on by so many bits. Only the lowest 6 bits of the number count.
    #[inline(always)]
    pub(super) fn skip(&mut self, n: u32) {
        self.buffer <<= n & 63;
        self.n = self.n.wrapping_sub(n);
    }

    /// Bits that are counted.
    fn n(&self) -> usize {
        (self.n & 63) as usize
    }

    /// The next bits as a number, at most 32 of them; [`Bits::refill`] comes before.
    #[inline(always)]
    pub(super) fn take(&mut self, n: u32) -> u32 {
        let value = (self.buffer >> 1 >> (63 - n)) as u32;
        self.skip(n);
        value
    }
}

impl Window {
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Begins behind a scan header, or behind a restart marker.
    pub(super) fn start(&mut self, next: usize) -> Bits {
        refit(&mut self.bytes, HELD_BYTES);
        self.end = 0;
        self.next = next;
        self.at_marker = false;
        Bits::default()
    }

    #[inline(always)]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether some blocks are there for certain, or all there is.
    #[inline(always)]
    pub(super) fn is_low(&self, bits: &Bits) -> bool {
        bits.at + AHEAD_BYTES > self.end && !self.at_marker
    }

    /// Fills it up from the file.
    #[cold]
    #[inline(never)]
    pub(super) fn fill(&mut self, file: &[u8], bits: &mut Bits) {
        let kept = bits.at.min(self.end)..self.end;
        let n_kept = kept.len();
        self.bytes.copy_within(kept, 0);
        bits.at = 0;
        let room = &mut self.bytes[n_kept..WINDOW_BYTES];
        let piece = unstuff(&file[self.next..], room);
        self.next += piece.read;
        self.at_marker = piece.at_marker;
        self.end = n_kept + piece.written;
        if self.at_marker {
            self.bytes[self.end..self.end + AHEAD_BYTES].fill(0);
        }
    }

    /// Whether more bits were read than there are.
    #[inline(always)]
    pub(super) fn is_overrun(&self, bits: &Bits) -> bool {
        bits.at > self.end && bits.at * 8 - bits.n() > self.end * 8
    }

    /// About where in the file the next bits are.
    pub(super) fn place(&self, bits: &Bits) -> usize {
        let ahead = self.end.saturating_sub(bits.at) + bits.n() / 8;
        self.next.saturating_sub(ahead)
    }

    /// Goes on behind the next marker, which has to be this restart marker.
    pub(super) fn restart(&mut self, file: &[u8], index: u32) -> Result<Bits, Fault> {
        let mut segments = Segments {
            bytes: file,
            at: self.next,
        };
        let broken = |at, what| Err(Fault::Broken { at, what });
        let expected = marker::RESTART_0 + (index % 8) as u8;
        match segments.next() {
            Ok(segment) if segment.marker == expected => Ok(self.start(segments.at)),
            Ok(segment) if marker::RESTARTS.contains(&segment.marker) => {
                broken(segment.at, "a restart marker out of order")
            }
            // The picture goes on and the data does not.
            _ => Err(Fault::Short),
        }
    }

    /// Where in the file the marker behind the scan is looked for.
    pub(super) fn next(&self) -> usize {
        self.next
    }
}

struct Piece {
    read: usize,
    written: usize,
    at_marker: bool,
}

/// Copies coded data up to the next marker, without the stuffed zeros.
fn unstuff(file: &[u8], room: &mut [u8]) -> Piece {
    let (mut read, mut written) = (0, 0);
    loop {
        // Eight bytes at once, up to the first 0xff.
        while let (Some(from), Some(to)) = (file.get(read..read + 8), room.get_mut(written..written + 8)) {
            let word = from.try_into().map_or(0, u64::from_le_bytes);
            to.copy_from_slice(from);
            let inverse = !word;
            let found = inverse.wrapping_sub(0x0101_0101_0101_0101) & !inverse & 0x8080_8080_8080_8080;
            if found != 0 {
                let n = (found.trailing_zeros() / 8) as usize;
                read += n;
                written += n;
                break;
            }
            read += 8;
            written += 8;
        }
        let piece = |at_marker| Piece {
            read,
            written,
            at_marker,
        };
        let Some(to) = room.get_mut(written) else {
            return piece(false);
        };
        match file[read..] {
            [0xff, 0, ..] => {
                *to = 0xff;
                read += 2;
                written += 1;
            }
            // Fill bytes: the last of them counts.
            [0xff, 0xff, ..] => read += 1,
            [] | [0xff, ..] => return piece(true),
            [byte, ..] => {
                *to = byte;
                read += 1;
                written += 1;
            }
        }
    }
}
