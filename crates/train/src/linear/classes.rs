//! Loss, gradient and curvature of softmax over several classes.

use tidegate_data::Batch;
use tidegate_data::batch::Row;

use super::loss::softmax;
use super::moments::Moments;
use super::panel::{Panel, widen};
use super::{Problem, margin};

/// The probabilities of the classes of a row, and its loss.
#[inline]
pub(super) fn probabilities(problem: &Problem, weights: &[f64], row: Row, p: &mut [f64]) -> f64 {
    for (z, weights) in p.iter_mut().zip(weights.chunks_exact(problem.n)) {
        *z = margin(weights, row);
    }
    let own = p[row.target as usize];
    problem.importance(row.target) * (softmax(p) - own)
}

/// Fills the moments of the training rows of a batch. The curvature of a row is `(diag p − p pᵀ) ⊗ x xᵀ`: a block on
/// the diagonal for each class, less one outer product over all of them.
pub(super) fn fill(moments: &mut Moments, batch: &Batch, problem: &Problem, weights: &[f64]) {
    let (n, total) = (problem.n, problem.total());
    let mut blocks: Vec<Panel> = (0..problem.outputs).map(|_| Panel::new(n)).collect();
    let mut whole = Panel::new(total);
    let mut p = vec![0.0; problem.outputs];
    let mut wide = vec![0.0; n];
    for row in batch.rows().filter(|row| !row.held_out) {
        moments.rows += 1;
        moments.loss += probabilities(problem, weights, row, &mut p);
        let importance = problem.importance(row.target);
        widen(row, &mut wide);
        let gradients = moments.gradient.chunks_exact_mut(n);
        let products = whole.next().chunks_exact_mut(n);
        for (k, (gradient, product)) in gradients.zip(products).enumerate() {
            let is_own = f64::from(u8::from(k == row.target as usize));
            let residual = importance * (is_own - p[k]);
            for ((g, product), x) in gradient.iter_mut().zip(product).zip(&wide) {
                *g += residual * x;
                *product = p[k] * x;
            }
            blocks[k].next().copy_from_slice(&wide);
            blocks[k].filled(importance * p[k]);
        }
        whole.filled(-importance);
    }
    whole.add_to(&mut moments.curvature, total, 0);
    for (k, block) in blocks.iter_mut().enumerate() {
        block.add_to(&mut moments.curvature, total, k * n);
    }
}
