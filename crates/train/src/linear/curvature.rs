//! Symmetric positive definite matrices, as far as fitting needs them.

/// Solves `H d = g` for the step `d`, where `upper` holds the upper triangle of H in rows of `n`. A diagonal
/// that rounding has made unfit for a root is raised just enough. Returns the step and `gᵀ H⁻¹ g`; both are NaN
/// where H is not finite, which the caller meets again as a loss that is not.
pub(super) fn solve(upper: &[f64], gradient: &[f64]) -> (Vec<f64>, f64) {
    let n = gradient.len();
    let mut factor = upper.to_vec();
    let mut lift = 0.0;
    let scale = (0..n)
        .map(|i| upper[i * n + i])
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    if !scale.is_finite() || upper.iter().any(|value| value.is_nan()) {
        return (vec![f64::NAN; n], f64::NAN);
    }
    while !cholesky(&mut factor, n) {
        if lift > scale * 1e6 {
            return (vec![f64::NAN; n], f64::NAN);
        }
        lift = if lift == 0.0 { scale * 1e-12 } else { lift * 100.0 };
        factor.copy_from_slice(upper);
        for i in 0..n {
            factor[i * n + i] += lift;
        }
    }
    // Uᵀ z = g, then U d = z.
    let mut step = gradient.to_vec();
    for i in 0..n {
        step[i] /= factor[i * n + i];
        let solved = step[i];
        for j in i + 1..n {
            step[j] -= factor[i * n + j] * solved;
        }
    }
    let decrement = step.iter().map(|z| z * z).sum();
    for i in (0..n).rev() {
        let mut value = step[i];
        for j in i + 1..n {
            value -= factor[i * n + j] * step[j];
        }
        step[i] = value / factor[i * n + i];
    }
    (step, decrement)
}

/// Replaces the upper triangle of H by U with `H = Uᵀ U`; `false` when H is not positive definite.
fn cholesky(upper: &mut [f64], n: usize) -> bool {
    for i in 0..n {
        let (done, rest) = upper.split_at_mut((i + 1) * n);
        let row = &mut done[i * n..];
        let pivot = row[i];
        if pivot.is_nan() || pivot <= 0.0 {
            return false;
        }
        let root = pivot.sqrt();
        for value in &mut row[i..] {
            *value /= root;
        }
        for j in i + 1..n {
            let factor = row[j];
            if factor != 0.0 {
                let below = &mut rest[(j - i - 1) * n..][..n];
                for k in j..n {
                    below[k] -= factor * row[k];
                }
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_step_solves_the_system(values in proptest::collection::vec(-2.0..2.0f64, 25), gradient in proptest::collection::vec(-3.0..3.0f64, 5)) {
            // H = A Aᵀ + I is positive definite.
            let n = 5;
            let mut h = vec![0.0; n * n];
            for i in 0..n {
                for j in 0..n {
                    h[i * n + j] = (0..n).map(|k| values[i * n + k] * values[j * n + k]).sum::<f64>() + f64::from(u8::from(i == j));
                }
            }
            let (step, decrement) = solve(&h, &gradient);
            for i in 0..n {
                let found: f64 = (0..n).map(|j| h[i * n + j] * step[j]).sum();
                prop_assert!((found - gradient[i]).abs() < 1e-8, "{found} {}", gradient[i]);
            }
            let expected: f64 = step.iter().zip(&gradient).map(|(d, g)| d * g).sum();
            prop_assert!((decrement - expected).abs() < 1e-8 * expected.max(1.0));
        }
    }

    #[test]
    fn a_matrix_that_is_not_finite_gives_no_step() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(solve(&[1.0, bad, bad, 1.0], &[1.0, 1.0]).1.is_nan());
            assert!(solve(&[bad, 0.0, 0.0, 1.0], &[1.0, 1.0]).1.is_nan());
        }
    }

    #[test]
    fn a_singular_matrix_still_gives_a_finite_step() {
        let (step, _) = solve(&[1.0, 1.0, 1.0, 1.0], &[1.0, 1.0]);
        assert!(step.iter().all(|d| d.is_finite()), "{step:?}");
        let (step, _) = solve(&[0.0; 4], &[0.0, 0.0]);
        assert!(step.iter().all(|d| d.is_finite()), "{step:?}");
    }
}
