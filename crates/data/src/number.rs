//! Reading one number out of a field, fast for the plain decimals that tables are made of.

/// What a field holds when a number was expected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Value(f64),
    Missing,
    /// `inf` and the like: a number to a parser, poison to a model.
    Infinite,
    Text,
}

/// The words for "no value" that pandas knows, and `?` of the UCI sets.
const MISSING: &[&str] = &[
    "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "none", "?", "#N/A", "#NA", "<NA>", "-NaN",
    "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", "Null",
];

/// Exact powers of ten: a mantissa below 2^53 over one of these is correctly rounded by one division.
const POWERS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

/// Reads a field as a number; surrounding blanks are allowed.
///
/// ```
/// use tidegate_data::{Number, parse_number};
/// assert_eq!(parse_number(b"-1.5"), Number::Value(-1.5));
/// assert_eq!(parse_number(b" 2e3 "), Number::Value(2000.0));
/// assert_eq!(parse_number(b"NA"), Number::Missing);
/// assert_eq!(parse_number(b"twelve"), Number::Text);
/// ```
#[inline(always)]
pub fn parse_number(field: &[u8]) -> Number {
    match plain_decimal(field) {
        Some(value) => Number::Value(value),
        None => any_number(field),
    }
}

/// True for an empty field and the usual words for "no value".
pub(crate) fn is_missing(field: &[u8]) -> bool {
    let field = field.trim_ascii();
    field.is_empty() || MISSING.iter().any(|word| word.as_bytes() == field)
}

/// `[-]digits[.digits]` with at most 15 digits, the shape of nearly every cell. Both the mantissa and the
/// power of ten are exact, so the one division rounds as a full parser would.
///
/// Up to sixteen characters are taken at once: lengths vary from cell to cell, and a loop over them costs more
/// in branches guessed wrong than in arithmetic.
#[inline(always)]
fn plain_decimal(field: &[u8]) -> Option<f64> {
    // Signs come and go from cell to cell too: arithmetic instead of branches.
    let negative = u64::from(field.first() == Some(&b'-'));
    let text = &field[negative as usize..];
    let (mantissa, decimals) = match text.len() {
        4..=8 => {
            // Two loads that may overlap put the characters into the high bytes, the last one topmost.
            let first = u64::from(u32::from_le_bytes(text[..4].try_into().ok()?));
            let last = u64::from(u32::from_le_bytes(text[text.len() - 4..].try_into().ok()?));
            let unused = 64 - 8 * text.len() as u32;
            let (digits, decimals) = without_point_in_8((last << 32) | (first << unused), text.len())?;
            (eight_digits(digits), decimals)
        }
        9..=16 => {
            let first = u128::from(u64::from_le_bytes(text[..8].try_into().ok()?));
            let last = u128::from(u64::from_le_bytes(text[text.len() - 8..].try_into().ok()?));
            let unused = 128 - 8 * text.len() as u32;
            let (digits, decimals) = without_point_in_16((last << 64) | (first << unused), text.len())?;
            let (first, last) = (eight_digits(digits as u64), eight_digits((digits >> 64) as u64));
            (first * 100_000_000 + last, decimals)
        }
        1..=3 => short_digits(text)?,
        _ => return None,
    };
    // Below 2^53, so signed conversion, which is one instruction, is as good; the table has 16 powers.
    let value = mantissa.cast_signed() as f64 / POWERS[decimals & 15];
    Some(f64::from_bits(value.to_bits() | (negative << 63)))
}

/// The digits of a text of one to three characters, and how many of them are behind the point.
#[inline]
fn short_digits(text: &[u8]) -> Option<(u64, usize)> {
    let (mut mantissa, mut decimals, mut digits) = (0, None, 0);
    for &byte in text {
        match byte {
            b'0'..=b'9' => {
                mantissa = mantissa * 10 + u64::from(byte - b'0');
                digits += 1;
            }
            b'.' if decimals.is_none() => decimals = Some(digits),
            _ => return None,
        }
    }
    (digits > 0).then(|| (mantissa, decimals.map_or(0, |before| digits - before)))
}

/// Makes `without_point` for a word of so many bits: it takes `len` characters in the high bytes of the word,
/// checks them and closes the gap of a point. It returns digits 0 to 9, one in each byte, and how many stand
/// behind the point.
macro_rules! without_point {
    ($name:ident, $word:ty) => {
        #[inline(always)]
        fn $name(characters: $word, len: usize) -> Option<($word, usize)> {
            const BYTES: usize = size_of::<$word>();
            const ONES: $word = <$word>::from_ne_bytes([1; BYTES]);
            let unused = 8 * (BYTES - len) as u32;
            let values = characters ^ ((ONES * b'0' as $word) << unused);
            // The lowest byte that is a point, by the usual test for a zero byte.
            let points = values ^ (ONES * (b'.' ^ b'0') as $word);
            let found = points.wrapping_sub(ONES) & !points & (ONES * 0x80);
            let (digits, decimals) = if found == 0 {
                (values, 0)
            } else {
                let at = found.trailing_zeros() & !7;
                let from_point = <$word>::MAX << at;
                let (before, behind) = (values & !from_point, values & (from_point << 8));
                ((before << 8) | behind, BYTES - 1 - at as usize / 8)
            };
            let only_digits = (digits.wrapping_add(ONES * 0x76) | digits) & (ONES * 0x80) == 0;
            let count = len - usize::from(found != 0);
            (only_digits && (1..=15).contains(&count)).then_some((digits, decimals))
        }
    };
}

without_point!(without_point_in_8, u64);
without_point!(without_point_in_16, u128);

/// Eight digits, the first in the lowest byte, as a number: neighbours are joined three times.
#[inline(always)]
fn eight_digits(digits: u64) -> u64 {
    const EVERY_FOURTH: u64 = 0x0000_00ff_0000_00ff;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let first = (pairs & EVERY_FOURTH).wrapping_mul(100 + (1_000_000 << 32));
    let second = ((pairs >> 16) & EVERY_FOURTH).wrapping_mul(1 + (10_000 << 32));
    first.wrapping_add(second) >> 32
}

/// Exponents, long mantissas, signs, blanks and words: correct rather than quick.
#[cold]
fn any_number(field: &[u8]) -> Number {
    let trimmed = field.trim_ascii();
    if is_missing(trimmed) {
        return Number::Missing;
    }
    let unsigned = match trimmed {
        [b'+', b'+' | b'-', ..] => return Number::Text,
        [b'+', rest @ ..] => rest,
        _ => trimmed,
    };
    match fast_float2::parse::<f64, _>(unsigned) {
        Ok(value) if value.is_finite() => Number::Value(value),
        Ok(value) if value.is_nan() => Number::Missing,
        Ok(_) => Number::Infinite,
        Err(_) => Number::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_as_people_write_them() {
        for (field, expected) in [
            ("0", Number::Value(0.0)),
            ("-0.5", Number::Value(-0.5)),
            (".5", Number::Value(0.5)),
            ("5.", Number::Value(5.0)),
            ("+7", Number::Value(7.0)),
            ("1e-3", Number::Value(0.001)),
            ("123456789012345678", Number::Value(123456789012345678.0)),
            ("\t4 ", Number::Value(4.0)),
            ("", Number::Missing),
            ("  ", Number::Missing),
            ("nan", Number::Missing),
            ("?", Number::Missing),
            ("-inf", Number::Infinite),
            ("1e999", Number::Infinite),
            ("-", Number::Text),
            (".", Number::Text),
            ("1.2.3", Number::Text),
            ("12a", Number::Text),
            ("+-3", Number::Text),
        ] {
            assert_eq!(parse_number(field.as_bytes()), expected, "{field:?}");
        }
    }

    #[test]
    fn every_length_and_place_of_the_point() {
        for len in 1..=17 {
            for point in 0..=len {
                let digits: String = "98765432109876543".chars().take(len).collect();
                let text = match point {
                    0 => digits.clone(),
                    _ => format!("{}.{}", &digits[..point], &digits[point..]),
                };
                assert_eq!(
                    parse_number(text.as_bytes()),
                    Number::Value(text.parse().unwrap()),
                    "{text}"
                );
                let dotted = format!("{text}.");
                let expected = if text.contains('.') {
                    Number::Text
                } else {
                    Number::Value(text.parse().unwrap())
                };
                assert_eq!(parse_number(dotted.as_bytes()), expected, "{dotted}");
            }
        }
    }

    proptest! {
        #[test]
        fn odd_bytes_are_never_digits(text in "[0-9./:@-]{1,17}") {
            let plain = text.strip_prefix('-').unwrap_or(&text);
            let is_decimal = plain.bytes().all(|b| b.is_ascii_digit() || b == b'.')
                && plain.matches('.').count() <= 1
                && plain != "." && !plain.is_empty();
            let expected = if is_decimal { Number::Value(text.parse().unwrap()) } else { Number::Text };
            prop_assert_eq!(parse_number(text.as_bytes()), expected, "{}", text);
        }

        #[test]
        fn equals_the_standard_parser(value in proptest::num::f64::NORMAL | proptest::num::f64::ZERO) {
            prop_assert_eq!(parse_number(value.to_string().as_bytes()), Number::Value(value));
        }

        #[test]
        fn short_decimals_equal_the_standard_parser(mantissa in -999_999_999_999_999i64..999_999_999_999_999, decimals in 0usize..10) {
            let text = format!("{:.*}", decimals, mantissa as f64 / 10f64.powi(decimals as i32));
            prop_assert_eq!(parse_number(text.as_bytes()), Number::Value(text.parse().unwrap()));
        }

        #[test]
        fn never_panics(field in proptest::collection::vec(any::<u8>(), 0..40)) {
            parse_number(&field);
        }
    }
}
