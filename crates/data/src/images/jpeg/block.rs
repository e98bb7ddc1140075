//! One block of a sequential scan: from bits to coefficients.

use super::huffman::{END_OF_BLOCK, Pair, Table};
use super::idct;
use super::window::Bits;

/// Room for the coefficients of a block, in the order that the inverse transform wants them; what it does not want goes
/// to [`NOWHERE`].
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Block(pub [i16; 128]);

impl Block {
    pub(super) const ZERO: Block = Block([0; 128]);
}

impl Default for Block {
    fn default() -> Block {
        Block::ZERO
    }
}

/// Behind the places of all coefficients.
const NOWHERE: u8 = 64;

/// The place in a [`Block`] of every coefficient in the file's order. It goes on beyond 63, so that the end of a block can
/// be stored like a coefficient, and needs no branch.
pub(super) type Places = [u8; 256];

/// The places for a transform of so many points.
pub(super) fn places(points: usize) -> &'static Places {
    const EIGHT: Places = places_of(8);
    const FOUR: Places = places_of(4);
    const TWO: Places = places_of(2);
    const ONE: Places = places_of(1);
    match points {
        8 => &EIGHT,
        4 => &FOUR,
        2 => &TWO,
        _ => &ONE,
    }
}

const fn places_of(points: usize) -> Places {
    let mut places = [NOWHERE; 256];
    let mut index = 0;
    while index < 64 {
        let natural = ZIGZAG[index] as usize;
        if let Some(place) = idct::place(points, natural / 8, natural % 8) {
            places[index] = place;
        }
        index += 1;
    }
    places
}

/// The order of coefficients in the file, as row times eight plus column.
#[rustfmt::skip]
const ZIGZAG: [u8; 64] = [
     0,  1,  8, 16,  9,  2,  3, 10,
    17, 24, 32, 25, 18, 11,  4,  5,
    12, 19, 26, 33, 40, 48, 41, 34,
    27, 20, 13,  6,  7, 14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36,
    29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46,
    53, 60, 61, 54, 47, 55, 62, 63,
];

/// What a component needs to decode its blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coding<'a> {
    pub mean: &'a Table,
    pub detail: &'a Table,
    pub places: &'a Places,
}

/// Stores what belongs to this place in the file's order.
#[inline(always)]
fn store(places: &Places, block: &mut Block, place: u32, value: i16) {
    let place = places[(place & 255) as usize];
    block.0[usize::from(place & 127)] = value;
}

/// Decodes a block into zeros. Says the last place that it has, in the file's order; `None` where it is broken.
///
/// The way from code to code is what takes the time: a look-up and a shift, and each has to wait for the one before. So
/// two codes are looked up at once where they are short, with their values, and four look-ups share one refill: 500 µs
/// for a photo of 500×375 pixels, where one code at a time took 577.
#[inline(always)]
pub(super) fn decode(
    coding: &Coding<'_>,
    window: &[u8],
    bits: &mut Bits,
    mean: &mut i32,
    block: &mut Block,
) -> Option<u32> {
    read_mean(coding, window, bits, mean)?;
    block.0[0] = *mean as i16;
    let mut place = 0;
    'refill: while place < 63 {
        bits.refill(window);
        for _ in 0..LOOKUPS {
            let pair = coding.detail.pair_at(bits.buffer);
            if pair.is_none() {
                bits.refill(window);
                let code = coding.detail.code(bits.buffer);
                place += code.advance();
                store(coding.places, block, place, code.value(bits.buffer) as i16);
                bits.skip(code.whole_length());
                continue 'refill;
            }
            let first = place + pair.first();
            store(coding.places, block, first, pair.first_value());
            place = first + pair.second();
            store(coding.places, block, place, pair.second_value());
            if place >= 63 {
                place = end(bits, pair, first, place);
                break 'refill;
            }
            bits.skip(pair.0 as u32);
        }
    }
    last_place(place)
}

/// Look-ups that 56 bits are enough for.
const LOOKUPS: usize = 4;
const _: () = assert!(LOOKUPS * super::huffman::LOOKUP_BITS as usize <= 56);

/// Steps over a block, and keeps only its mean, which the next one builds on.
#[inline(always)]
pub(super) fn skip(coding: &Coding<'_>, window: &[u8], bits: &mut Bits, mean: &mut i32) -> Option<u32> {
    read_mean(coding, window, bits, mean)?;
    let mut place = 0;
    'refill: while place < 63 {
        bits.refill(window);
        for _ in 0..LOOKUPS {
            let pair = coding.detail.pair_at(bits.buffer);
            if pair.is_none() {
                bits.refill(window);
                let code = coding.detail.code(bits.buffer);
                place += code.advance();
                bits.skip(code.whole_length());
                continue 'refill;
            }
            let first = place + pair.first();
            place = first + pair.second();
            if place >= 63 {
                place = end(bits, pair, first, place);
                break 'refill;
            }
            bits.skip(pair.0 as u32);
        }
    }
    last_place(place)
}

#[inline(always)]
fn read_mean(coding: &Coding<'_>, window: &[u8], bits: &mut Bits, mean: &mut i32) -> Option<()> {
    bits.refill(window);
    let code = coding.mean.code(bits.buffer);
    if code.is_broken() {
        return None;
    }
    *mean = mean.wrapping_add(code.value(bits.buffer));
    bits.skip(code.whole_length());
    Some(())
}

/// A block ends with this pair, or with the first of it already: then what follows belongs to the next block.
#[inline(always)]
fn end(bits: &mut Bits, pair: Pair, first: u32, second: u32) -> u32 {
    let (place, length) = match first >= 63 {
        true => (first, pair.first_length()),
        false => (second, pair.0 as u32),
    };
    bits.skip(length);
    place
}

#[inline(always)]
fn last_place(place: u32) -> Option<u32> {
    match place {
        63 => Some(63),
        END_OF_BLOCK.. => Some(place - END_OF_BLOCK),
        _ => None,
    }
}
