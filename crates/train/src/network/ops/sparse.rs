//! The columns of a table: dense values pass, and each sparse one adds its vector.
//!
//! `y = [x, Σ v · W[p, :]]` over the pairs `(p, v)` of a row, and back `∂W[p, :] = Σ v · ∂y` over the rows that have `p`.
//! What no row of a step has, stays as it is: a step costs what its rows hold, however many places there are.

use super::super::arena::{Buffer, Span};
use super::super::step::{Learned, Op, Step};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub dense: usize,
    pub pairs: usize,
    pub places: usize,
    pub width: usize,
}

impl Extent {
    fn sample(&self) -> usize {
        self.dense + 2 * self.pairs
    }

    fn made(&self) -> usize {
        self.dense + self.width
    }

    fn place(&self, place: f32) -> usize {
        (place as usize).min(self.places - 1)
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
        let extent = self.extent;
        let [x, weight, y] = [self.x, self.weight, self.y].map(|buffer| step.span(buffer));
        step.crew.run(step.rows.div_ceil(ROWS), |task, _| {
            for row in task * ROWS..((task + 1) * ROWS).min(step.rows) {
                // SAFETY: a row is of one task; the weights are only read.
                unsafe {
                    let (dense, pairs) = x.piece(row, extent.sample()).read().split_at(extent.dense);
                    let (same, sums) = y.piece(row, extent.made()).write().split_at_mut(extent.dense);
                    same.copy_from_slice(dense);
                    sums.fill(0.0);
                    for pair in pairs.chunks_exact(2).filter(|pair| pair[1] != 0.0) {
                        let vector = weight.piece(extent.place(pair[0]), extent.width).read();
                        add(sums, pair[1], vector);
                    }
                }
            }
        });
    }
}

/// Rows of a task.
const ROWS: usize = 64;

pub(crate) struct Backward {
    pub extent: Extent,
    pub x: Buffer,
    pub slope: Buffer,
    /// For each place, the first of the step's pairs that has it, counted from 1; 0 between steps.
    pub heads: Buffer,
    /// For each pair, the next one with its place, counted from 1.
    pub next: Buffer,
    pub learned: Learned,
}

impl Op for Backward {
    fn run(&self, step: &Step<'_>) {
        let extent = self.extent;
        let [x, slope] = [self.x, self.slope].map(|buffer| step.span(buffer));
        let [heads, next] = [self.heads, self.next].map(|buffer| step.span(buffer));
        self.clear(step);
        let n_pairs = step.rows * extent.pairs;
        // SAFETY: samples are only read while this runs.
        let pair = |i: usize| unsafe {
            let at = i / extent.pairs * extent.sample() + extent.dense + i % extent.pairs * 2;
            let pair = x.part(at..at + 2).read();
            (extent.place(pair[0]), pair[1])
        };
        {
            // SAFETY: nothing else runs.
            let (heads, next) = unsafe { (words(heads), words(next)) };
            for i in (0..n_pairs).rev() {
                let (place, value) = pair(i);
                if value != 0.0 {
                    next[i] = heads[place];
                    heads[place] = i as u32 + 1;
                }
            }
        }
        let task_pairs = (ROWS * extent.pairs).max(1);
        step.crew.run(n_pairs.div_ceil(task_pairs), |task, thread| {
            // SAFETY: what leads from pair to pair is only read; a place is of the task that has the first of its pairs.
            unsafe {
                let (heads, next) = (read_words(heads), read_words(next));
                let sums = step.scratch(thread).part(0..extent.width).write();
                for i in task * task_pairs..((task + 1) * task_pairs).min(n_pairs) {
                    let (place, value) = pair(i);
                    if value == 0.0 || heads[place] != i as u32 + 1 {
                        continue;
                    }
                    sums.fill(0.0);
                    let mut at = i as u32 + 1;
                    while at > 0 {
                        let i = at as usize - 1;
                        let slopes = slope.piece(i / extent.pairs, extent.made());
                        let slopes = slopes.part(extent.dense..extent.made()).read();
                        add(sums, pair(i).1, slopes);
                        at = next[i];
                    }
                    self.learned
                        .take(step, place * extent.width..(place + 1) * extent.width, sums);
                }
            }
        });
        // SAFETY: nothing else runs.
        let heads = unsafe { words(heads) };
        for i in 0..n_pairs {
            heads[pair(i).0] = 0;
        }
    }
}

impl Backward {
    /// Gradients that are kept start from zero: places that no row has are not written.
    fn clear(&self, step: &Step<'_>) {
        let Some(gradient) = self.learned.gradient.filter(|_| step.first) else {
            return;
        };
        let gradient = step.span(gradient);
        let len = self.extent.places * self.extent.width;
        step.crew.run(len.div_ceil(CLEARED), |task, _| {
            let part = task * CLEARED..((task + 1) * CLEARED).min(len);
            // SAFETY: a part is of one task.
            unsafe { gradient.part(part).write().fill(0.0) };
        });
    }
}

/// Values that a task sets to zero.
const CLEARED: usize = 1 << 16;

/// `sums += value · vector`
fn add(sums: &mut [f32], value: f32, vector: &[f32]) {
    for (sum, part) in sums.iter_mut().zip(vector) {
        *sum += value * part;
    }
}

/// A span of whole numbers.
///
/// # Safety
///
/// As for [`Span::write`].
unsafe fn words<'a>(span: Span) -> &'a mut [u32] {
    // SAFETY: any float is four bytes, and so is any word; the rest is the caller's.
    unsafe {
        let values = span.write();
        std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len())
    }
}

/// # Safety
///
/// As for [`Span::read`].
unsafe fn read_words<'a>(span: Span) -> &'a [u32] {
    // SAFETY: as for `words`.
    unsafe {
        let values = span.read();
        std::slice::from_raw_parts(values.as_ptr().cast(), values.len())
    }
}
