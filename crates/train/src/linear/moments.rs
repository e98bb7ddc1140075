//! Loss, gradient and curvature of a set of rows at given weights.

use tidegate_data::Batch;
use tidegate_data::batch::Row;
use tidegate_data::target::Target;

use super::{Logarithms, Loss, encode_target, margin};

/// Rows whose outer products are added together, to read and write the matrix once for all of them.
const PANEL: usize = 4;

/// Sums over rows; adding the sums of two parts gives the sums of both.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moments {
    pub rows: u64,
    pub loss: f64,
    /// The sum of targets as they stand in the file.
    pub targets: f64,
    /// Minus the gradient.
    pub gradient: Vec<f64>,
    /// The upper triangle, in rows of the width.
    pub curvature: Vec<f64>,
}

impl Moments {
    pub(super) fn zero(n: usize) -> Moments {
        Moments {
            rows: 0,
            loss: 0.0,
            targets: 0.0,
            gradient: vec![0.0; n],
            curvature: vec![0.0; n * n],
        }
    }

    /// The bytes that moments of `n` weights take.
    pub(super) fn bytes(n: usize) -> u64 {
        ((n * n + n) * size_of::<f64>()) as u64
    }

    /// The sums over the training rows of a batch.
    pub(super) fn of(batch: &Batch, loss: Loss, target: &Target, weights: &[f64]) -> Moments {
        let mut moments = Moments::zero(weights.len());
        moments.fill(batch, loss, target, weights);
        moments
    }

    /// Replaces the sums by those of the training rows of a batch.
    pub(super) fn fill(&mut self, batch: &Batch, loss: Loss, target: &Target, weights: &[f64]) {
        let n = weights.len();
        (self.rows, self.loss, self.targets) = (0, 0.0, 0.0);
        self.gradient.fill(0.0);
        self.curvature.fill(0.0);
        let mut panel = Panel::new(n);
        let mut logs = Logarithms::default();
        for row in batch.rows().filter(|row| !row.held_out) {
            let y = encode_target(target, row.target);
            let (value, residual, weight) = loss.at(margin(weights, row), y, &mut logs);
            self.rows += 1;
            self.loss += value;
            self.targets += row.target;
            let wide = panel.push(row, weight);
            for (g, x) in self.gradient.iter_mut().zip(wide) {
                *g += residual * x;
            }
            if panel.filled == PANEL {
                panel.flush();
            }
        }
        self.loss += logs.sum();
        panel.flush();
        panel.take(&mut self.curvature);
    }

    pub(super) fn add(&mut self, other: &Moments) {
        self.rows += other.rows;
        self.loss += other.loss;
        self.targets += other.targets;
        add(&mut self.gradient, &other.gradient);
        add(&mut self.curvature, &other.curvature);
    }
}

pub(super) fn add(sum: &mut [f64], more: &[f64]) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

/// A few rows, widened to f64 and with the constant 1 of the bias, and the sum of their outer products. Rows are
/// padded to whole registers, so that no element is added by itself.
struct Panel {
    n: usize,
    /// The width of a row with its padding.
    stride: usize,
    filled: usize,
    weights: [f64; PANEL],
    rows: Vec<f64>,
    sums: Vec<f64>,
}

/// Elements of a register.
const LANES: usize = 4;

impl Panel {
    fn new(n: usize) -> Panel {
        let stride = n.next_multiple_of(LANES);
        Panel {
            n,
            stride,
            filled: 0,
            weights: [0.0; PANEL],
            rows: vec![0.0; stride * PANEL],
            sums: vec![0.0; stride * stride],
        }
    }

    #[inline]
    fn push(&mut self, row: Row, weight: f64) -> &[f64] {
        let wide = &mut self.rows[self.filled * self.stride..][..self.n];
        let (dense, sparse) = wide.split_at_mut(row.dense.len());
        for (wide, x) in dense.iter_mut().zip(row.dense) {
            *wide = f64::from(*x);
        }
        sparse.fill(0.0);
        for (place, x) in row.places.iter().zip(row.values) {
            sparse[*place as usize] += f64::from(*x);
        }
        wide[self.n - 1] = 1.0;
        self.weights[self.filled] = weight;
        self.filled += 1;
        wide
    }

    /// Adds `Σ weight · x xᵀ` of the rows held.
    fn flush(&mut self) {
        for row in self.filled..PANEL {
            self.weights[row] = 0.0;
            self.rows[row * self.stride..][..self.stride].fill(0.0);
        }
        self.filled = 0;
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            unsafe { outer_avx2(&mut self.sums, &self.rows, &self.weights, self.stride) };
            return;
        }
        outer(&mut self.sums, &self.rows, &self.weights, self.stride);
    }

    /// Moves the upper triangle into a matrix without padding.
    fn take(&self, curvature: &mut [f64]) {
        for i in 0..self.n {
            let (from, to) = (i * self.stride, i * self.n);
            curvature[to + i..to + self.n].copy_from_slice(&self.sums[from + i..from + self.n]);
        }
    }
}

/// The same arithmetic in wider registers. No fused operations, so that every machine gets the same bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn outer_avx2(sums: &mut [f64], rows: &[f64], weights: &[f64; PANEL], stride: usize) {
    outer(sums, rows, weights, stride);
}

#[inline(always)]
fn outer(sums: &mut [f64], rows: &[f64], weights: &[f64; PANEL], stride: usize) {
    let (a, rest) = rows.split_at(stride);
    let (b, rest) = rest.split_at(stride);
    let (c, d) = rest.split_at(stride);
    for i in 0..stride {
        let scaled = [
            weights[0] * a[i],
            weights[1] * b[i],
            weights[2] * c[i],
            weights[3] * d[i],
        ];
        // From the register that holds the diagonal on.
        let start = i / LANES * LANES;
        let (sums, _) = sums[i * stride + start..(i + 1) * stride].as_chunks_mut::<LANES>();
        let [a, b, c, d] = [a, b, c, d].map(|row| row[start..stride].as_chunks::<LANES>().0);
        let rows = a.iter().zip(b).zip(c.iter().zip(d));
        for (sum, ((a, b), (c, d))) in sums.iter_mut().zip(rows) {
            for k in 0..LANES {
                sum[k] += scaled[0] * a[k] + scaled[1] * b[k] + (scaled[2] * c[k] + scaled[3] * d[k]);
            }
        }
    }
}
