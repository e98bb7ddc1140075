//! From components to gray or red, green and blue, at the wanted size.

use super::header::Colour;
use super::resize::{Canvas, Kernels};

/// Turns the components, all of the wanted size, into pixels of 1 or 3 values.
pub(super) fn convert(
    colour: Colour,
    planes: [&[u8]; 4],
    (width, channels): (usize, usize),
    canvas: &mut Canvas<'_>,
    kernels: Kernels,
) {
    let n_rows = planes[0].len() / width;
    let rows = canvas.bytes.chunks_mut(canvas.stride).take(n_rows);
    for (index, row) in rows.enumerate() {
        let planes = planes.map(|plane| plane.get(index * width..(index + 1) * width).unwrap_or(&[]));
        let row = &mut row[..width * channels];
        match channels {
            1 => write_gray(row, colour, planes),
            _ => write_rgb(row, colour, planes, kernels),
        }
    }
}

fn write_rgb(row: &mut [u8], colour: Colour, [a, b, c, d]: [&[u8]; 4], kernels: Kernels) {
    let done = match (kernels, colour) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Kernels::Avx2` is only made where the processor has it.
        (Kernels::Avx2, Colour::Ycc) => unsafe { avx2::from_ycc(row, [a, b, c]) },
        _ => 0,
    };
    let pixels = row.as_chunks_mut::<3>().0[done..].iter_mut();
    let first_three = a.iter().zip(b).zip(c).map(|((a, b), c)| [*a, *b, *c]);
    match colour {
        Colour::Gray => pixels.zip(a).for_each(|(pixel, gray)| *pixel = [*gray; 3]),
        Colour::Rgb => pixels.zip(first_three).for_each(|(pixel, told)| *pixel = told),
        Colour::Ycc => {
            for (pixel, told) in pixels.zip(first_three.skip(done)) {
                *pixel = from_ycc(told);
            }
        }
        Colour::Cmyk { inverted } => {
            for ((pixel, told), black) in pixels.zip(first_three).zip(d) {
                *pixel = from_inks(told, *black, inverted);
            }
        }
        Colour::Ycck { inverted } => {
            for ((pixel, told), black) in pixels.zip(first_three).zip(d) {
                let inks = from_ycc(told).map(|value| 255 - value);
                *pixel = from_inks(inks, *black, inverted);
            }
        }
    }
}

/// Out of colours that have no luma of their own.
fn write_gray(row: &mut [u8], colour: Colour, planes: [&[u8]; 4]) {
    for (x, gray) in row.iter_mut().enumerate() {
        let mut pixel = [0; 3];
        let values = planes.map(|plane| plane.get(x..x + 1).unwrap_or(&[]));
        write_rgb(&mut pixel, colour, values, Kernels::Portable);
        let [red, green, blue] = pixel.map(u32::from);
        let sum = 19_595 * red + 38_470 * green + 7_471 * blue;
        *gray = ((sum + (1 << 15)) >> 16) as u8;
    }
}

/// The factors of the JFIF standard, 1.402, −0.344136, −0.714136 and 1.772.
const BITS: u32 = 14;
const HALF: i32 = 1 << (BITS - 1);
const RED_OF_RED: i16 = 22_970;
const GREEN_OF_BLUE: i16 = -5_638;
const GREEN_OF_RED: i16 = -11_700;
const BLUE_OF_BLUE: i16 = 29_032;

fn from_ycc([luma, blue, red]: [u8; 3]) -> [u8; 3] {
    let (blue, red) = (i32::from(blue) - 128, i32::from(red) - 128);
    let differences = [
        red * i32::from(RED_OF_RED),
        blue * i32::from(GREEN_OF_BLUE) + red * i32::from(GREEN_OF_RED),
        blue * i32::from(BLUE_OF_BLUE),
    ];
    differences.map(|difference| (i32::from(luma) + ((difference + HALF) >> BITS)).clamp(0, 255) as u8)
}

/// What the paper keeps of white light.
fn from_inks(inks: [u8; 3], black: u8, inverted: bool) -> [u8; 3] {
    let kept = |ink: u8| u32::from(if inverted { ink } else { 255 - ink });
    inks.map(|ink| ((kept(ink) * kept(black) + 127) / 255) as u8)
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! The common colours, 16 pixels at a time.

    use std::arch::x86_64::*;

    use super::{BITS, BLUE_OF_BLUE, GREEN_OF_BLUE, GREEN_OF_RED, HALF, RED_OF_RED};

    const STEP: usize = 16;

    /// Converts pixels in sixteens, and says how many.
    #[target_feature(enable = "avx2,bmi2")]
    pub(super) fn from_ycc(row: &mut [u8], planes: [&[u8]; 3]) -> usize {
        let [luma, blue, red] = planes;
        let pixels = row.as_chunks_mut::<{ 3 * STEP }>().0.iter_mut();
        let lumas = luma.as_chunks::<STEP>().0;
        let blues = blue.as_chunks::<STEP>().0;
        let reds = red.as_chunks::<STEP>().0;
        let mut n = 0;
        for (((pixels, luma), blue), red) in pixels.zip(lumas).zip(blues).zip(reds) {
            let middle = _mm256_set1_epi16(128);
            let luma = widened(luma);
            let blue = _mm256_sub_epi16(widened(blue), middle);
            let red = _mm256_sub_epi16(widened(red), middle);
            let left = _mm256_unpacklo_epi16(blue, red);
            let right = _mm256_unpackhi_epi16(blue, red);
            let red = channel(luma, left, right, 0, RED_OF_RED);
            let green = channel(luma, left, right, GREEN_OF_BLUE, GREEN_OF_RED);
            let blue = channel(luma, left, right, BLUE_OF_BLUE, 0);
            interleave(pixels, red, green, blue);
            n += STEP;
        }
        n
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi2")]
    fn widened(bytes: &[u8; STEP]) -> __m256i {
        // SAFETY: 16 bytes.
        _mm256_cvtepu8_epi16(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
    }

    /// One of red, green and blue.
    #[inline]
    #[target_feature(enable = "avx2,bmi2")]
    fn channel(luma: __m256i, left: __m256i, right: __m256i, of_blue: i16, of_red: i16) -> __m128i {
        let factors = _mm256_set1_epi32(i32::from(of_red) << 16 | i32::from(of_blue as u16));
        let half = _mm256_set1_epi32(HALF);
        let left = _mm256_add_epi32(_mm256_madd_epi16(left, factors), half);
        let right = _mm256_add_epi32(_mm256_madd_epi16(right, factors), half);
        let difference = _mm256_packs_epi32(
            _mm256_srai_epi32::<{ BITS as i32 }>(left),
            _mm256_srai_epi32::<{ BITS as i32 }>(right),
        );
        let sum = _mm256_add_epi16(luma, difference);
        _mm_packus_epi16(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum))
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi2")]
    fn interleave(pixels: &mut [u8; 3 * STEP], red: __m128i, green: __m128i, blue: __m128i) {
        // For every third of the output: where each of its bytes is in the channel, and -1 where it is in another.
        const ORDERS: [[[i8; STEP]; 3]; 3] = orders();
        for (third, orders) in ORDERS.iter().enumerate() {
            let mut bytes = _mm_setzero_si128();
            for (channel, order) in [red, green, blue].into_iter().zip(orders) {
                // SAFETY: 16 bytes.
                let order = unsafe { _mm_loadu_si128(order.as_ptr().cast()) };
                bytes = _mm_or_si128(bytes, _mm_shuffle_epi8(channel, order));
            }
            // SAFETY: 16 of 48 bytes.
            unsafe { _mm_storeu_si128(pixels.as_mut_ptr().add(third * STEP).cast(), bytes) };
        }
    }

    const fn orders() -> [[[i8; STEP]; 3]; 3] {
        let mut orders = [[[-1; STEP]; 3]; 3];
        let mut at = 0;
        while at < 3 * STEP {
            orders[at / STEP][at % 3][at % STEP] = (at / 3) as i8;
            at += 1;
        }
        orders
    }
}
