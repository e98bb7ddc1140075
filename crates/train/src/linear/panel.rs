//! Sums of outer products, a few rows at a time.

use tidegate_data::batch::Row;

/// Rows whose outer products are added together, to read and write the matrix once for all of them.
const PANEL: usize = 4;
/// Elements of a register.
const LANES: usize = 4;

/// A few rows and the sum of their outer products. Rows are padded to whole registers, so that no element is added
/// by itself. Sparse rows are written out here, and here only: at most [`super::FULL_WIDTH`] values of them.
pub(super) struct Panel {
    n: usize,
    /// The width of a row with its padding.
    stride: usize,
    filled: usize,
    weights: [f64; PANEL],
    rows: Vec<f64>,
    sums: Vec<f64>,
}

impl Panel {
    pub(super) fn new(n: usize) -> Panel {
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

    pub(super) fn bytes(n: usize) -> u64 {
        let stride = n.next_multiple_of(LANES);
        (stride * (stride + PANEL) * size_of::<f64>()) as u64
    }

    /// The place of the next row, to be written by the caller before [`Panel::filled`].
    #[inline]
    pub(super) fn next(&mut self) -> &mut [f64] {
        &mut self.rows[self.filled * self.stride..][..self.n]
    }

    /// The next row is written and counts so much.
    #[inline]
    pub(super) fn filled(&mut self, weight: f64) {
        self.weights[self.filled] = weight;
        self.filled += 1;
        if self.filled == PANEL {
            self.flush();
        }
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

    /// Adds the upper triangle to the part of a matrix with rows of `width` whose diagonal starts at `at`.
    pub(super) fn add_to(&mut self, matrix: &mut [f64], width: usize, at: usize) {
        self.flush();
        for i in 0..self.n {
            let (from, to) = (i * self.stride, (at + i) * width + at);
            let sums = &self.sums[from + i..from + self.n];
            for (cell, sum) in matrix[to + i..to + self.n].iter_mut().zip(sums) {
                *cell += sum;
            }
        }
    }
}

/// Writes a row as f64, with the constant 1 of the bias behind its values.
#[inline]
pub(super) fn widen(row: Row, wide: &mut [f64]) {
    let (dense, sparse) = wide.split_at_mut(row.dense.len());
    for (wide, x) in dense.iter_mut().zip(row.dense) {
        *wide = f64::from(*x);
    }
    sparse.fill(0.0);
    for (place, x) in row.places.iter().zip(row.values) {
        sparse[*place as usize] += f64::from(*x);
    }
    sparse[sparse.len() - 1] = 1.0;
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
