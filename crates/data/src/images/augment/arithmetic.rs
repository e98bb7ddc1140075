//! Sine, exponential and logarithm that are the same on every machine.
//!
//! Those of the standard library are the platform's, and platforms differ in the last bit. These are series of sums and
//! products, which IEEE 754 fixes; they are right to a few units in the last place.

use std::f64::consts::{LN_2, PI, SQRT_2};

/// Sine and cosine of an angle in degrees. Quarters of a turn are exact.
pub(super) fn sine_and_cosine(degrees: f64) -> (f64, f64) {
    let quarters = (degrees / 90.0).round();
    let x = (degrees - 90.0 * quarters) * (PI / 180.0);
    // |x| ≤ π/4: the first term left out is below 1e-17.
    let (mut sine, mut cosine) = (0.0, 0.0);
    for n in (0..9).rev() {
        let n = f64::from(n);
        sine = 1.0 - x * x * sine / ((2.0 * n + 2.0) * (2.0 * n + 3.0));
        cosine = 1.0 - x * x * cosine / ((2.0 * n + 1.0) * (2.0 * n + 2.0));
    }
    sine *= x;
    match quarters.rem_euclid(4.0) as u8 {
        0 => (sine, cosine),
        1 => (cosine, -sine),
        2 => (-sine, -cosine),
        _ => (-cosine, sine),
    }
}

/// e to the power of `x`, which is held to where the result is a normal number.
pub(super) fn exp(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    let halvings = (x / LN_2).round();
    let rest = x - halvings * LN_2;
    // |rest| ≤ ln 2 / 2: the first term left out is below 1e-17.
    let sum = (1..=14).rev().fold(1.0, |sum, n| 1.0 + rest * sum / f64::from(n));
    let exponent = (1023 + halvings as i64) as u64;
    sum * f64::from_bits(exponent << 52)
}

/// The natural logarithm of a positive normal number.
pub(super) fn ln(x: f64) -> f64 {
    let exponent = (x.to_bits() >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(x.to_bits() & (u64::MAX >> 12) | 1023 << 52);
    let mut exponent = exponent as f64;
    if mantissa > SQRT_2 {
        mantissa /= 2.0;
        exponent += 1.0;
    }
    // ln m = 2 artanh((m − 1) / (m + 1)), whose argument is at most 0.172.
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let sum = (0..11)
        .rev()
        .fold(0.0, |sum, n| sum * z * z + 1.0 / f64::from(2 * n + 1));
    2.0 * z * sum + exponent * LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_agree_with_the_standard_library() {
        for i in -20_000..=20_000 {
            let x = f64::from(i) * 0.018;
            let (sine, cosine) = sine_and_cosine(x);
            assert!((sine - x.to_radians().sin()).abs() < 1e-14, "{x}");
            assert!((cosine - x.to_radians().cos()).abs() < 1e-14, "{x}");
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-13, "{x}");
            let y = (0.01 * f64::from(i)).exp();
            assert!((ln(y) - y.ln()).abs() < 1e-13, "{y}");
        }
    }

    #[test]
    fn quarters_of_a_turn_are_exact() {
        let quarters = [-180.0, -90.0, 0.0, 90.0, 180.0].map(sine_and_cosine);
        let expected = [(0.0, -1.0), (-1.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.0, -1.0)];
        assert_eq!(quarters, expected);
        assert_eq!((exp(0.0), ln(1.0)), (1.0, 0.0));
    }
}
