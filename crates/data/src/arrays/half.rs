//! Numbers in half precision (IEEE 754 binary16): two bytes each, eleven binary digits, up to ±65504.

use super::element::Element;

/// The largest number that half precision has.
pub(crate) const MOST: f64 = 65_504.0;

/// Numbers converted at once, on the way through a small buffer.
const AT_ONCE: usize = 1_024;

/// Whether numbers of this type take less room as halves.
pub(crate) fn narrows(element: Element) -> bool {
    matches!(element, Element::F32 | Element::F64)
}

/// Writes each number of `from` as the half that is nearest to it, of two equally near ones the even one. Numbers that are
/// infinite or none stay so; a finite one that is too large is an error, by its place and value.
pub(crate) fn write_halves(element: Element, from: &[u8], into: &mut [u8]) -> Result<(), (usize, f64)> {
    let width = element.bytes();
    let mut singles = [0f32; AT_ONCE];
    for (piece, (from, into)) in from
        .chunks(AT_ONCE * width)
        .zip(into.chunks_mut(AT_ONCE * 2))
        .enumerate()
    {
        let singles = &mut singles[..from.len() / width];
        match element {
            Element::F64 => {
                let (numbers, _) = from.as_chunks::<8>();
                for (single, number) in singles.iter_mut().zip(numbers) {
                    *single = to_odd(f64::from_le_bytes(*number));
                }
            }
            _ => element.write_f32(from, singles),
        }
        let too_large = |value: &f32| value.is_finite() && value.abs() > MOST as f32;
        if let Some(place) = singles.iter().position(too_large) {
            let value = element.value(&from[place * width..]).number();
            return Err((piece * AT_ONCE + place, value));
        }
        convert(singles, into);
    }
    Ok(())
}

/// The same in place: halves stand at the beginning then. Returns the bytes that they take.
pub(crate) fn narrow_in_place(element: Element, bytes: &mut [u8]) -> Result<usize, (usize, f64)> {
    let width = element.bytes();
    let mut halves = [0u8; 2 * AT_ONCE];
    let n = bytes.len() / width;
    for first in (0..n).step_by(AT_ONCE) {
        let some = AT_ONCE.min(n - first);
        let from = &bytes[first * width..(first + some) * width];
        write_halves(element, from, &mut halves[..2 * some])
            .map_err(|(place, value)| (first + place, value))?;
        bytes[2 * first..2 * (first + some)].copy_from_slice(&halves[..2 * some]);
    }
    Ok(2 * n)
}

fn convert(singles: &[f32], into: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("f16c") && std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: the processor has what it is compiled for.
        unsafe { convert_by_processor(singles, into) };
        return;
    }
    let (halves, _) = into.as_chunks_mut::<2>();
    for (half, single) in halves.iter_mut().zip(singles) {
        *half = nearest(*single).to_le_bytes();
    }
}

/// Eight at once, by the instruction that is made for it.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx,f16c")]
fn convert_by_processor(singles: &[f32], into: &mut [u8]) {
    use std::arch::x86_64::{_MM_FROUND_TO_NEAREST_INT, _mm_storeu_si128, _mm256_cvtps_ph, _mm256_loadu_ps};
    let (eights, rest) = singles.as_chunks::<8>();
    let (halves, last) = into.split_at_mut(16 * eights.len());
    for (eight, into) in eights.iter().zip(halves.as_chunks_mut::<16>().0) {
        // SAFETY: eight numbers are read and sixteen bytes are written, which is what there is.
        unsafe {
            let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(eight.as_ptr()));
            _mm_storeu_si128(into.as_mut_ptr().cast(), halves);
        }
    }
    for (half, single) in last.as_chunks_mut::<2>().0.iter_mut().zip(rest) {
        *half = nearest(*single).to_le_bytes();
    }
}

/// The half that is nearest to a number.
fn nearest(value: f32) -> u16 {
    let (sign, rest) = (
        (value.to_bits() >> 16 & 0x8000) as u16,
        value.to_bits() & 0x7fff_ffff,
    );
    let magnitude = match rest {
        0x7f80_0001.. => 0x7e00,
        0x7f80_0000 => 0x7c00,
        // Below 2^-14 halves are multiples of 2^-24, and so are singles from one half on.
        0..0x3880_0000 => (f32::from_bits(rest) + 0.5).to_bits() - 0.5f32.to_bits(),
        _ => (rest + 0xfff + (rest >> 13 & 1) - (112 << 23)) >> 13,
    };
    sign | magnitude as u16
}

/// A number in single precision, rounded so that it can be rounded again: towards zero, with an odd last digit where
/// anything was lost. Rounded to the nearest twice, some numbers would miss the half that is nearest to them.
fn to_odd(value: f64) -> f32 {
    let single = value as f32;
    let back = f64::from(single);
    if back == value || value.is_nan() {
        return single;
    }
    let beyond = u32::from(back.abs() > value.abs());
    f32::from_bits((single.to_bits() - beyond) | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every finite half, upwards, as its bits and the number that they stand for.
    fn halves() -> Vec<(u16, f64)> {
        let number = |bits: u16| {
            let mut number = [0f32];
            Element::F16.write_f32(&bits.to_le_bytes(), &mut number);
            f64::from(number[0])
        };
        (0..0x7c00).map(|bits| (bits, number(bits))).collect()
    }

    fn half_of(element: Element, value: f64) -> u16 {
        let bytes = match element {
            Element::F64 => value.to_le_bytes().to_vec(),
            _ => (value as f32).to_le_bytes().to_vec(),
        };
        // Long enough for the instruction that takes eight.
        let many = bytes.repeat(11);
        let mut into = [0; 22];
        write_halves(element, &many, &mut into).unwrap();
        let (found, _) = into.as_chunks::<2>();
        assert!(found.iter().all(|half| half == &found[0]), "{value}");
        let found = u16::from_le_bytes(found[0]);
        if element == Element::F32 {
            assert_eq!(found, nearest(value as f32), "{value}");
        }
        found
    }

    #[test]
    fn every_number_becomes_the_half_that_is_nearest() {
        for pair in halves().windows(2) {
            let [(low_bits, low), (high_bits, high)] = [pair[0], pair[1]];
            let middle = (low + high) / 2.0;
            let even = if low_bits % 2 == 0 { low_bits } else { high_bits };
            for element in [Element::F32, Element::F64] {
                let near = middle * if element == Element::F32 { 1e-7 } else { 1e-15 };
                for (value, expected) in [
                    (low, low_bits),
                    (high, high_bits),
                    (middle, even),
                    (middle - near, low_bits),
                    (middle + near, high_bits),
                ] {
                    assert_eq!(half_of(element, value), expected, "{element} {value:e}");
                    assert_eq!(
                        half_of(element, -value),
                        expected | 0x8000,
                        "{element} -{value:e}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_infinite_or_none_stays_so_and_what_is_too_large_is_told() {
        assert_eq!(half_of(Element::F32, f64::INFINITY), 0x7c00);
        assert_eq!(half_of(Element::F64, f64::NEG_INFINITY), 0xfc00);
        let nan = half_of(Element::F32, f64::NAN);
        assert!(nan & 0x7c00 == 0x7c00 && nan & 0x3ff != 0);
        let mut bytes: Vec<u8> = (0..3_000).flat_map(|i| f64::from(i).to_le_bytes()).collect();
        bytes[8 * 2_500..8 * 2_501].copy_from_slice(&(-65_504.5f64).to_le_bytes());
        let mut into = vec![0; 6_000];
        assert_eq!(
            write_halves(Element::F64, &bytes, &mut into),
            Err((2_500, -65_504.5))
        );
        assert_eq!(narrow_in_place(Element::F64, &mut bytes), Err((2_500, -65_504.5)));
    }

    #[test]
    fn in_place_it_is_the_same() {
        for element in [Element::F32, Element::F64] {
            for n in [0, 1, 7, 1_024, 1_025, 5_000] {
                let number = |i: usize| (i as f64 * 0.37).sin() * 300.0;
                let mut bytes: Vec<u8> = match element {
                    Element::F64 => (0..n).flat_map(|i| number(i).to_le_bytes()).collect(),
                    _ => (0..n).flat_map(|i| (number(i) as f32).to_le_bytes()).collect(),
                };
                let mut expected = vec![0; 2 * n];
                write_halves(element, &bytes, &mut expected).unwrap();
                assert_eq!(narrow_in_place(element, &mut bytes), Ok(2 * n));
                assert_eq!(bytes[..2 * n], expected);
            }
        }
    }
}
