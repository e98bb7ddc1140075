//! Brightness, contrast, saturation and hue: one matrix for each pixel of a sample.
//!
//! With brightness b, contrast c around the mean gray m of the sample, saturation s and hue as a turn of the colours
//! of YIQ, in which a turn is linear, a pixel becomes
//!
//! ```text
//!   pixel ← b c · hue · (s + (1 − s) gray) · pixel + (1 − c) b m
//! ```
//!
//! and is held between 0 and 255 once, at the end. Gray stays gray under hue and saturation.

use super::arithmetic::sine_and_cosine;
use super::draw::{SampleKey, Stream};
use super::{Augment, OneOrTwo};

/// How much of gray each colour is (ITU-R BT.601).
const LUMA: [f64; 3] = [0.299, 0.587, 0.114];
/// I and Q of a colour, and back: the colour is its gray plus these.
const CHROMA: [[f64; 3]; 2] = [[0.595716, -0.274453, -0.321263], [0.211456, -0.522591, 0.311135]];
const FROM_CHROMA: [[f64; 2]; 3] = [
    [0.956296, 0.621024],
    [-0.272122, -0.647381],
    [-1.106989, 1.704615],
];

type Matrix = [[f64; 3]; 3];
const UNCHANGED: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

/// What is drawn of colours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tint {
    pub brightness: f64,
    pub contrast: f64,
    pub saturation: f64,
    /// A share of the colour circle.
    pub hue: f64,
}

impl Tint {
    /// As it was.
    pub(super) const NONE: Tint = Tint {
        brightness: 1.0,
        contrast: 1.0,
        saturation: 1.0,
        hue: 0.0,
    };

    pub(super) fn draw(augment: &Augment, key: SampleKey) -> Tint {
        let factor = |factors: Option<OneOrTwo>, stream: Stream| {
            factors.map_or(1.0, |factors| {
                let [low, high] = factors.around_one();
                key.draws(stream).between(low, high)
            })
        };
        Tint {
            brightness: factor(augment.brightness, Stream::Brightness),
            contrast: factor(augment.contrast, Stream::Contrast),
            saturation: factor(augment.saturation, Stream::Saturation),
            hue: augment
                .hue
                .map_or(0.0, |most| key.draws(Stream::Hue).between(-most, most)),
        }
    }

    /// Changes the colours of a sample.
    pub(super) fn apply(&self, channels: usize, vectors: bool, sample: &mut [u8]) {
        let gray_alone = Tint {
            saturation: 1.0,
            hue: 0.0,
            ..*self
        };
        let tint = if channels == 1 { &gray_alone } else { self };
        if *tint == Tint::NONE || sample.is_empty() {
            return;
        }
        let mean = match (tint.contrast == 1.0, channels) {
            (true, _) => 0.0,
            (false, 1) => means::<1>(sample)[0],
            (false, _) => dot(LUMA, means::<3>(sample)),
        };
        let factor = tint.brightness * tint.contrast;
        let matrix = tint.turned().map(|row| row.map(|x| factor * x));
        let weights = Weights::new(&matrix, (1.0 - tint.contrast) * tint.brightness * mean);
        match channels {
            1 => weights.apply_to_grays(vectors, sample),
            _ => weights.apply_to_colours(vectors, sample),
        }
    }

    /// Saturation, then hue.
    fn turned(&self) -> Matrix {
        let mut matrix = UNCHANGED;
        if self.saturation != 1.0 {
            let rest = 1.0 - self.saturation;
            for (channel, row) in matrix.iter_mut().enumerate() {
                *row = LUMA.map(|luma| rest * luma);
                row[channel] += self.saturation;
            }
        }
        if self.hue != 0.0 {
            matrix = product(&hue(self.hue), &matrix);
        }
        matrix
    }
}

/// A turn of I and Q.
fn hue(share: f64) -> Matrix {
    let (sine, cosine) = sine_and_cosine(360.0 * share);
    let [i, q] = CHROMA;
    FROM_CHROMA.map(|[of_i, of_q]| {
        std::array::from_fn(|channel| {
            let turned_i = cosine * i[channel] - sine * q[channel];
            let turned_q = sine * i[channel] + cosine * q[channel];
            LUMA[channel] + of_i * turned_i + of_q * turned_q
        })
    })
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    a.map(|row| std::array::from_fn(|column| dot(row, [b[0][column], b[1][column], b[2][column]])))
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The mean of each channel.
pub(super) fn means<const CHANNELS: usize>(sample: &[u8]) -> [f64; CHANNELS] {
    // Sums of 16 bits hold 257 bytes. A row of them is whole pixels of one channel or three, and whole vectors.
    const ROW: usize = 96;
    let mut sums = [0u64; CHANNELS];
    for part in sample.chunks(257 * ROW) {
        let mut row = [0u16; ROW];
        let rows = part.chunks_exact(ROW);
        let rest = rows.remainder();
        for bytes in rows {
            row.iter_mut()
                .zip(bytes)
                .for_each(|(sum, byte)| *sum += u16::from(*byte));
        }
        let row = row.iter().map(|sum| u64::from(*sum));
        let all = row
            .enumerate()
            .chain(rest.iter().map(|byte| u64::from(*byte)).enumerate());
        all.for_each(|(i, sum)| sums[i % CHANNELS] += sum);
    }
    let n_pixels = (sample.len() / CHANNELS) as f64;
    sums.map(|sum| sum as f64 / n_pixels)
}

/// The matrix in integers.
#[derive(Debug, Clone, Copy)]
struct Weights {
    matrix: [[i16; 3]; 3],
    /// What is added to each product, with half of what is cut off.
    offset: i32,
    shift: i32,
}

impl Weights {
    fn new(matrix: &Matrix, offset: f64) -> Weights {
        let largest = matrix
            .iter()
            .flatten()
            .fold(0.0, |most: f64, x| most.max(x.abs()));
        // As many bits of fraction as 16 bits have room for.
        let fits = |shift: &i32| largest * f64::from(1 << shift) <= 32_767.0;
        let shift = (1..=14).rev().find(fits).unwrap_or(1);
        let scaled = |x: f64| (x * f64::from(1 << shift)).round();
        Weights {
            matrix: matrix.map(|row| row.map(|x| scaled(x) as i16)),
            offset: scaled(offset) as i32 + (1 << (shift - 1)),
            shift,
        }
    }

    fn apply_to_grays(&self, vectors: bool, sample: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if vectors {
            // SAFETY: the caller has made sure that the processor has AVX2.
            return unsafe { avx2::grays(self, sample) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = vectors;
        self.grays(sample);
    }

    #[inline(always)]
    fn grays(&self, sample: &mut [u8]) {
        let factor = i32::from(self.matrix[0][0]);
        for byte in sample {
            *byte = ((i32::from(*byte) * factor + self.offset) >> self.shift).clamp(0, 255) as u8;
        }
    }

    fn apply_to_colours(&self, vectors: bool, sample: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        let done = match vectors {
            // SAFETY: the caller has made sure that the processor has AVX2.
            true => unsafe { avx2::colours(self, sample) },
            false => 0,
        };
        #[cfg(not(target_arch = "x86_64"))]
        let (done, _) = (0, vectors);
        self.colours(&mut sample[done..]);
    }

    fn colours(&self, sample: &mut [u8]) {
        for pixel in sample.chunks_exact_mut(3) {
            let [red, green, blue] = [pixel[0], pixel[1], pixel[2]].map(i32::from);
            for (byte, row) in pixel.iter_mut().zip(self.matrix) {
                let [of_red, of_green, of_blue] = row.map(i32::from);
                let sum = red * of_red + green * of_green + blue * of_blue + self.offset;
                *byte = (sum >> self.shift).clamp(0, 255) as u8;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! The same by AVX2, eight pixels at a time.

    use std::arch::x86_64::*;

    use super::super::vectors::avx2::{store_dense, twice};
    use super::Weights;

    #[target_feature(enable = "avx2")]
    pub(super) fn grays(weights: &Weights, sample: &mut [u8]) {
        weights.grays(sample);
    }

    /// Changes whole blocks, and says how many bytes are done.
    #[target_feature(enable = "avx2")]
    pub(super) fn colours(weights: &Weights, sample: &mut [u8]) -> usize {
        // Bytes of eight pixels, and what is read for them: 16 at the start, and 16 from the fifth pixel on.
        const BLOCK: usize = 24;
        const READS: usize = 28;
        let red_and_green = twice([0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1]);
        let blue = twice([2, -1, -1, -1, 5, -1, -1, -1, 8, -1, -1, -1, 11, -1, -1, -1]);
        let together = twice([0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11, -1, -1, -1, -1]);
        let pair = |low: i16, high: i16| i32::from(high) << 16 | i32::from(low) & 0xffff;
        let first_two = weights.matrix.map(|row| pair(row[0], row[1]));
        let third = weights.matrix.map(|row| pair(row[2], 0));
        let offset = _mm256_set1_epi32(weights.offset);
        let shift = _mm_cvtsi32_si128(weights.shift);
        let mut done = 0;
        while done + READS <= sample.len() {
            let block = &mut sample[done..done + READS];
            // SAFETY: the block is as long as what is read, and the loads need no alignment.
            let pixels = unsafe {
                let fifth = block.as_ptr().add(BLOCK / 2);
                _mm256_set_m128i(
                    _mm_loadu_si128(fifth.cast()),
                    _mm_loadu_si128(block.as_ptr().cast()),
                )
            };
            let (pairs, blues) = (
                _mm256_shuffle_epi8(pixels, red_and_green),
                _mm256_shuffle_epi8(pixels, blue),
            );
            let mut channels = [_mm256_setzero_si256(); 3];
            for (i, channel) in channels.iter_mut().enumerate() {
                let sum = _mm256_add_epi32(
                    _mm256_madd_epi16(pairs, _mm256_set1_epi32(first_two[i])),
                    _mm256_madd_epi16(blues, _mm256_set1_epi32(third[i])),
                );
                *channel = _mm256_sra_epi32(_mm256_add_epi32(sum, offset), shift);
            }
            // Packing holds values within their range.
            let words = _mm256_packs_epi32(channels[0], channels[1]);
            let bytes = _mm256_packus_epi16(words, _mm256_packs_epi32(channels[2], channels[2]));
            let bytes = _mm256_shuffle_epi8(bytes, together);
            store_dense(bytes, block);
            done += BLOCK;
        }
        done
    }
}
