//! Scans that tell a part of every coefficient: all that count are held until the last scan.

use super::block::{self, Block};
use super::header::Header;
use super::huffman::Table;
use super::idct::{self, Place};
use super::plane::Plane;
use super::resize::{Canvas, Kernels};
use super::scan::Scan;
use super::units::{Reader, Stop};
use super::window::Bits;

/// What a scan is decoded with.
pub(super) struct Progressive<'a> {
    pub header: &'a Header,
    pub scan: &'a Scan,
    pub tables: &'a [Table],
    pub planes: &'a mut [Plane; 4],
    pub kernels: Kernels,
}

impl Progressive<'_> {
    pub(super) fn decode(&mut self, reader: &mut Reader<'_>) -> Result<(), Stop> {
        match self.kernels {
            Kernels::Portable => self.decode_plainly(reader),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Kernels::Avx2` is only made where the processor has it.
            Kernels::Avx2 => unsafe { self.decode_avx2(reader) },
        }
    }

    /// For the shifts of the processor, not for its vectors.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn decode_avx2(&mut self, reader: &mut Reader<'_>) -> Result<(), Stop> {
        self.decode_plainly(reader)
    }

    #[inline(always)]
    fn decode_plainly(&mut self, reader: &mut Reader<'_>) -> Result<(), Stop> {
        let (unit, n_blocks) = self.scan.unit(self.header);
        let unit = &unit[..n_blocks];
        let (n_across, n_down) = reader.n_units;
        // Blocks of a component that is not wanted are read and forgotten; of others, the mean alone may be held.
        let mut apart = [0; 64];
        for down in 0..n_down {
            for across in 0..n_across {
                reader.ready(1)?;
                let mut whole = true;
                for place in unit {
                    let part = self.scan.parts()[place.part];
                    let plane = &mut self.planes[part.component];
                    let layout = &plane.layout;
                    let (row, column) = match self.scan.is_interleaved() {
                        true => (
                            down * layout.sampling.1 + place.down,
                            across * layout.sampling.0 + place.across,
                        ),
                        false => (down, across),
                    };
                    let held = layout.held_of_block();
                    let start = (row * layout.padded_blocks.0 + column) * held;
                    let rest = plane.coefficients.get_mut(start..).unwrap_or_default();
                    let (block, mean) = match held {
                        64 => (rest.first_chunk_mut().unwrap_or(&mut apart), None),
                        _ => {
                            apart[0] = rest.first().copied().unwrap_or_default();
                            (&mut apart, rest.first_mut())
                        }
                    };
                    let mut coder = Coder {
                        scan: self.scan,
                        window: reader.window.bytes(),
                        bits: reader.bits,
                        block,
                    };
                    whole &= match (self.scan.first, self.scan.from) {
                        (0, 0) => coder.mean(&self.tables[part.mean], &mut reader.means[place.part]),
                        (0, _) => coder.refine_mean(),
                        (_, 0) => coder.details(&self.tables[4 + part.detail], &mut reader.n_ended),
                        _ => {
                            let begun = begun(coder.block, self.kernels);
                            coder.refine_details(&self.tables[4 + part.detail], &mut reader.n_ended, begun)
                        }
                    };
                    reader.bits = coder.bits;
                    if let Some(mean) = mean {
                        *mean = coder.block[0];
                    }
                }
                reader.took(1, whole)?;
            }
        }
        Ok(())
    }
}

/// One block of a scan.
struct Coder<'a> {
    scan: &'a Scan,
    window: &'a [u8],
    bits: Bits,
    block: &'a mut [i16; 64],
}

impl Coder<'_> {
    #[inline(always)]
    fn mean(&mut self, table: &Table, mean: &mut i32) -> bool {
        self.bits.refill(self.window);
        let code = table.code(self.bits.buffer);
        *mean = mean.wrapping_add(code.value(self.bits.buffer));
        self.bits.skip(code.whole_length());
        self.block[0] = (*mean << self.scan.down_to) as i16;
        !code.is_broken()
    }

    #[inline(always)]
    fn refine_mean(&mut self) -> bool {
        self.bits.refill(self.window);
        self.block[0] |= (self.bits.take(1) << self.scan.down_to) as i16;
        true
    }

    /// The first bits of coefficients. `n_ended` blocks have none.
    #[inline(always)]
    fn details(&mut self, table: &Table, n_ended: &mut u32) -> bool {
        if *n_ended > 0 {
            *n_ended -= 1;
            return true;
        }
        let mut place = self.scan.first;
        while place <= self.scan.last {
            self.bits.refill(self.window);
            let code = table.code(self.bits.buffer);
            let run = code.advance() - 1;
            if code.is_broken() {
                return false;
            }
            if code.size() == 0 && run < 15 {
                self.bits.skip(code.length());
                *n_ended = self.run_of_blocks(run) - 1;
                return true;
            }
            place += run as usize;
            let value = code.value(self.bits.buffer);
            self.bits.skip(code.whole_length());
            if code.size() > 0 {
                let Some(coefficient) = self.block.get_mut(place) else {
                    return false;
                };
                *coefficient = (value << self.scan.down_to) as i16;
            }
            place += 1;
        }
        true
    }

    /// The next bit of coefficients that have begun, and new ones between them. Both are found in a mask of the block:
    /// whether the next one is zero is what a processor guesses wrong.
    #[inline(always)]
    fn refine_details(&mut self, table: &Table, n_ended: &mut u32, begun: u64) -> bool {
        let bit = 1i16 << self.scan.down_to;
        let end = self.scan.last + 1;
        let mut place = self.scan.first;
        while *n_ended == 0 && place < end {
            self.bits.refill(self.window);
            let code = table.code(self.bits.buffer);
            let run = code.advance() - 1;
            if code.is_broken() || code.size() > 1 {
                return false;
            }
            self.bits.skip(code.length());
            let value = match code.size() {
                0 if run < 15 => {
                    *n_ended = self.run_of_blocks(run);
                    break;
                }
                0 => 0,
                _ => bit * (2 * self.bits.take(1) as i16 - 1),
            };
            // The place behind so many zeros; what is not zero on the way is refined.
            let mut zeros = !begun & span(place, end);
            for _ in 0..run {
                zeros &= zeros.wrapping_sub(1);
            }
            let found = (zeros.trailing_zeros() as usize).min(end);
            self.refine(begun & span(place, found), bit);
            if zeros != 0 {
                self.block[found] = value;
            }
            place = found + 1;
        }
        if *n_ended > 0 {
            *n_ended -= 1;
            self.refine(begun & span(place, end), bit);
        }
        true
    }

    /// Reads a bit for each of these places: whether it grows.
    #[inline(always)]
    fn refine(&mut self, mut places: u64, bit: i16) {
        while places != 0 {
            self.bits.refill(self.window);
            let n = places.count_ones().min(32);
            let mut told = self.bits.take(n) << (32 - n);
            for _ in 0..n {
                let coefficient = &mut self.block[(places.trailing_zeros() & 63) as usize];
                let grows = (told >> 31) as i16 & i16::from(*coefficient & bit == 0);
                let away = (*coefficient >> 15) | 1;
                *coefficient = coefficient.wrapping_add(away * bit * grows);
                told <<= 1;
                places &= places - 1;
            }
        }
    }

    /// So many blocks end here, this one included.
    #[inline(always)]
    fn run_of_blocks(&mut self, size: u32) -> u32 {
        self.bits.refill(self.window);
        (1 << size) + self.bits.take(size)
    }
}

/// The places from one to before another, as bits.
#[inline(always)]
fn span(from: usize, end: usize) -> u64 {
    below(end) & !below(from)
}

#[inline(always)]
fn below(place: usize) -> u64 {
    match place < 64 {
        true => (1 << place) - 1,
        false => u64::MAX,
    }
}

/// The coefficients that are not zero, as bits.
#[inline(always)]
fn begun(block: &[i16; 64], kernels: Kernels) -> u64 {
    match kernels {
        Kernels::Portable => begun_plainly(block),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Kernels::Avx2` is only made where the processor has it.
        Kernels::Avx2 => unsafe { begun_avx2(block) },
    }
}

fn begun_plainly(block: &[i16; 64]) -> u64 {
    let bits = block.iter().enumerate();
    bits.fold(0, |mask, (place, value)| mask | u64::from(*value != 0) << place)
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn begun_avx2(block: &[i16; 64]) -> u64 {
    use std::arch::x86_64::*;
    let mut mask = 0;
    for (half, values) in block.as_chunks::<32>().0.iter().enumerate() {
        let values = values.as_ptr().cast::<__m256i>();
        // SAFETY: 32 values are 64 bytes.
        let (left, right) = unsafe { (_mm256_loadu_si256(values), _mm256_loadu_si256(values.add(1))) };
        let zero = _mm256_setzero_si256();
        let zeros = _mm256_packs_epi16(_mm256_cmpeq_epi16(left, zero), _mm256_cmpeq_epi16(right, zero));
        let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(zeros);
        mask |= u64::from(!_mm256_movemask_epi8(ordered) as u32) << (32 * half);
    }
    mask
}

/// Transforms all blocks of a component, and sends them on.
pub(super) fn finish(plane: &mut Plane, canvas: &mut Canvas<'_>, kernels: Kernels) {
    let layout = plane.layout.clone();
    if !layout.is_wanted {
        return;
    }
    let stride = layout.stride();
    let wanted = layout.wanted_blocks(&plane.wanted_columns());
    let places = block::places(layout.points);
    let mut block = Block::ZERO;
    for row in 0..layout.blocks.1 {
        if plane.is_done() {
            return;
        }
        if plane.wants_rows(layout.points) {
            for column in wanted.clone() {
                let held = layout.held_of_block();
                let start = (row * layout.padded_blocks.0 + column) * held;
                let coefficients = &plane.coefficients[start..start + held];
                for (value, place) in coefficients.iter().zip(places) {
                    block.0[usize::from(*place & 127)] = *value;
                }
                let has_details = coefficients[1..].iter().any(|value| *value != 0);
                let samples = &mut plane.strip[column * layout.points..];
                let place = Place { samples, stride };
                let last = if has_details { 63 } else { 0 };
                idct::transform(layout.points, &mut block, last, &plane.factors, place, kernels);
            }
        }
        plane.push(layout.points, canvas);
    }
}
