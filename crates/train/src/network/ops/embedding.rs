//! Embeddings: `y[p, :] = W[x[p], :]`, and back `∂W[t, :] = Σ ∂y[p, :]` over the places where `x[p]` is `t`.

use super::super::arena::Buffer;
use super::super::step::{Learned, Op, Step};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// Of a sample.
    pub places: usize,
    pub tokens: usize,
    pub width: usize,
}

impl Extent {
    /// The row of a token; what is beyond is refused before a step begins.
    fn row(&self, token: f32) -> usize {
        (token as usize).min(self.tokens - 1)
    }
}

pub(crate) struct Forward {
    pub extent: Extent,
    pub x: Buffer,
    pub weight: Buffer,
    pub y: Buffer,
}

impl Op for Forward {
    fn run(&self, step: &Step<'_>) {
        let Extent { places, width, .. } = self.extent;
        let [x, weight, y] = [self.x, self.weight, self.y].map(|buffer| step.span(buffer));
        step.crew.run(step.rows, |sample, _| {
            // SAFETY: a sample is of one task; the weights are only read.
            unsafe {
                let tokens = x.piece(sample, places).read();
                let out = y.piece(sample, places * width).write();
                for (token, out) in tokens.iter().zip(out.chunks_exact_mut(width)) {
                    out.copy_from_slice(weight.piece(self.extent.row(*token), width).read());
                }
            }
        });
    }
}

pub(crate) struct Backward {
    pub extent: Extent,
    pub x: Buffer,
    pub slope: Buffer,
    /// Room for the whole gradient.
    pub sums: Buffer,
    pub learned: Learned,
}

/// Ranges of tokens, each of them one task's.
const RANGES: usize = 16;

impl Op for Backward {
    fn run(&self, step: &Step<'_>) {
        let Extent {
            places,
            tokens,
            width,
        } = self.extent;
        let [x, slope, sums] = [self.x, self.slope, self.sums].map(|buffer| step.span(buffer));
        let range = tokens.div_ceil(RANGES);
        step.crew.run(tokens.div_ceil(range), |task, _| {
            let rows = task * range..((task + 1) * range).min(tokens);
            // SAFETY: these rows are of this task; the rest is only read.
            unsafe {
                let sums = sums.part(rows.start * width..rows.end * width).write();
                sums.fill(0.0);
                let tokens = x.part(0..step.rows * places).read();
                for (place, token) in tokens.iter().enumerate() {
                    let row = self.extent.row(*token);
                    if rows.contains(&row) {
                        let at = (row - rows.start) * width;
                        let slopes = slope.piece(place, width).read();
                        super::super::kernels::elementwise::add(&mut sums[at..at + width], slopes);
                    }
                }
                self.learned
                    .take(step, rows.start * width..rows.end * width, sums);
            }
        });
    }
}
