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
#[inline]
pub fn parse_number(field: &[u8]) -> Number {
    if field.is_empty() {
        return Number::Missing;
    }
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
#[inline]
fn plain_decimal(field: &[u8]) -> Option<f64> {
    let (negative, digits) = match field[0] {
        b'-' => (true, &field[1..]),
        _ => (false, field),
    };
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let mut mantissa = 0u64;
    let mut point = digits.len();
    for (i, &byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        } else if byte == b'.' && point == digits.len() {
            point = i;
        } else {
            return None;
        }
    }
    let decimals = digits.len().saturating_sub(point + 1);
    let has_point = usize::from(point < digits.len());
    let count = digits.len() - has_point;
    if count == 0 || count > 15 {
        return None;
    }
    let value = mantissa as f64 / POWERS[decimals];
    Some(if negative { -value } else { value })
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

    proptest! {
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
