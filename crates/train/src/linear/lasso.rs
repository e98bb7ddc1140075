//! An L1 penalty on a quadratic model whose curvature is in memory.

/// Passes over all weights at the most; a few dozen are usual.
const PASSES: usize = 10_000;
/// Weights have settled when a whole pass changes none by more than this share of the largest.
const SETTLED: f64 = 1e-12;

/// Minimises `½ (w − w₀)ᵀ H (w − w₀) − gᵀ (w − w₀) + l1 Σ |w|` over `w`, one weight after another: each minimum is
/// `soft(w + slope / h, l1 / h)`, which is exactly zero where the pull of the rows is below the penalty. `upper`
/// holds the upper triangle of H in rows of the width; `is_free` says which weights the penalty spares.
///
/// Returns `w` and by how much the objective falls from `w₀`.
pub(super) fn descend(
    upper: &[f64],
    gradient: &[f64],
    start: &[f64],
    l1: f64,
    is_free: impl Fn(usize) -> bool,
) -> (Vec<f64>, f64) {
    let n = start.len();
    let mut weights = start.to_vec();
    // Minus the slope of the quadratic part at `weights`.
    let mut slope = gradient.to_vec();
    for _ in 0..PASSES {
        let (mut change, mut largest) = (0.0f64, 0.0f64);
        for i in 0..n {
            let h = upper[i * n + i];
            if h <= 0.0 {
                continue;
            }
            let free = weights[i] + slope[i] / h;
            let threshold = if is_free(i) { 0.0 } else { l1 / h };
            let moved = free.signum() * (free.abs() - threshold).max(0.0) - weights[i];
            largest = largest.max((weights[i] + moved).abs());
            if moved == 0.0 {
                continue;
            }
            weights[i] += moved;
            change = change.max(moved.abs());
            for (j, slope) in slope.iter_mut().enumerate() {
                let (row, column) = (i.min(j), i.max(j));
                *slope -= upper[row * n + column] * moved;
            }
        }
        if change <= SETTLED * largest || !change.is_finite() {
            break;
        }
    }
    let size = |weights: &[f64]| -> f64 {
        let held = weights.iter().enumerate().filter(|(i, _)| !is_free(*i));
        held.map(|(_, w)| l1 * w.abs()).sum()
    };
    // The quadratic part falls by the mean of its slopes at both ends.
    let steps = weights.iter().zip(start).map(|(w, s)| w - s);
    let slopes = gradient.iter().zip(&slope).map(|(a, b)| 0.5 * (a + b));
    let falls: f64 = steps.zip(slopes).map(|(step, slope)| step * slope).sum();
    let promised = falls + size(start) - size(&weights);
    (weights, promised)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_below_the_penalty_are_exactly_zero() {
        // Columns apart: the solution is the soft threshold of each.
        let upper = [2.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 1.0];
        let (weights, promised) = descend(&upper, &[6.0, 1.0, -5.0], &[0.0; 3], 2.0, |i| i == 2);
        assert_eq!(weights, [2.0, 0.0, -5.0]);
        // ½·2·4 − 12 + 4 and ½·25 − 25.
        assert!((promised - (4.0 + 12.5)).abs() < 1e-12, "{promised}");
    }

    #[test]
    fn without_a_penalty_it_is_the_step_of_newton() {
        let (upper, start) = ([3.0, 1.0, 0.0, 2.0], [0.5, -0.5]);
        let (weights, promised) = descend(&upper, &[1.0, 2.0], &start, 0.0, |_| false);
        let (step, decrement) = super::super::curvature::solve(&upper, &[1.0, 2.0]);
        for i in 0..2 {
            assert!(
                (weights[i] - start[i] - step[i]).abs() < 1e-9,
                "{weights:?} {step:?}"
            );
        }
        assert!((promised - decrement / 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_matrix_that_is_not_finite_ends() {
        let (weights, _) = descend(&[f64::NAN, 0.0, 0.0, 1.0], &[1.0, 1.0], &[0.0; 2], 1.0, |_| false);
        assert_eq!(weights.len(), 2);
    }
}
