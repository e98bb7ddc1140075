//! Exponential and logarithm from sums and products alone: they vectorise, and give the same bits anywhere.

/// Adding 1.5 · 2²³ leaves a float without room for a fraction: it rounds to the nearest whole number, which then
/// stands in its low bits.
const ROUND: f32 = 12_582_912.0;

/// The nearest whole number to one within ±2²².
#[inline(always)]
pub(crate) fn nearest(x: f32) -> i32 {
    (x + ROUND).to_bits().wrapping_sub(ROUND.to_bits()) as i32
}

/// `e^x` for `x ≤ 0`, within two units in the last place; below −87 it stays at `e^−87`.
#[inline(always)]
pub(crate) fn exp_negative(x: f32) -> f32 {
    exp_within(if x > -87.0 { x } else { -87.0 })
}

/// `e^x`, within two units in the last place; it stays at `e^−87` and `e^88` beyond them. What is not a number stays so.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    exp_within(x.clamp(-87.0, 88.0))
}

#[inline(always)]
fn exp_within(x: f32) -> f32 {
    // ln 2 in two parts; multiples of the first by up to 2¹² are exact.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let lifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = lifted - ROUND;
    let r = x - n * LN2_HIGH - n * LN2_LOW;
    // The series of e^r: |r| ≤ ½ ln 2, so the term after the last is below 6e-9.
    let mut sum = 1.0 / 5040.0;
    for factor in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = sum * r + factor;
    }
    let exponent = (lifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127)) << 23;
    sum * f32::from_bits(exponent)
}

/// `ln x` for finite `x ≥ 1`.
#[inline(always)]
pub(crate) fn ln_from_one(x: f32) -> f32 {
    const MANTISSA: u32 = (1 << 23) - 1;
    let exponent = (x.to_bits() >> 23) as i32 - 127;
    let unit = f32::from_bits((x.to_bits() & MANTISSA) | 1.0f32.to_bits());
    exponent as f32 * std::f32::consts::LN_2 + ln_1p_unit(unit - 1.0)
}

/// `ln(1 + x)` for `x` from 0 to 1, by `2 artanh(x / (2 + x))`.
#[inline(always)]
pub(crate) fn ln_1p_unit(x: f32) -> f32 {
    let s = x / (2.0 + x);
    let square = s * s;
    // s ≤ ⅓, so the term after the last is below 1e-8.
    let mut sum = 1.0 / 15.0;
    for factor in [
        1.0 / 13.0,
        1.0 / 11.0,
        1.0 / 9.0,
        1.0 / 7.0,
        1.0 / 5.0,
        1.0 / 3.0,
        1.0,
    ] {
        sum = sum * square + factor;
    }
    2.0 * s * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_as_exact_as_floats_are() {
        for i in 0..200_000 {
            let x = f64::from(i) / 200_000.0;
            let e = f64::from(exp_negative((-87.0 * x) as f32));
            let exact = f64::from((-87.0 * x) as f32).exp();
            assert!((e / exact - 1.0).abs() < 3e-7, "e^{}: {e}", -87.0 * x);
            let l = f64::from(ln_1p_unit(x as f32));
            assert!((l - f64::from(x as f32).ln_1p()).abs() < 2e-7, "ln(1 + {x}): {l}");
        }
        for i in 0..200_000 {
            let x = 1.0 + i as f32 * 0.37;
            let l = f64::from(ln_from_one(x));
            assert!((l - f64::from(x).ln()).abs() < 2e-6, "ln {x}: {l}");
        }
        assert_eq!(exp_negative(0.0), 1.0);
        assert_eq!(ln_from_one(1.0), 0.0);
        assert!(exp_negative(f32::NEG_INFINITY) > 0.0);
    }
}
