//! Dense layers: `y = activation(x · W + b)`, over the last axis of every place.
//!
//! Back: `∂x = ∂y · Wᵀ`, `∂W = xᵀ · ∂y`, `∂b = Σ ∂y`, where `∂y` is by what the activation was given.

use super::super::arena::{Buffer, Span};
use super::super::kernels::elementwise::{activate, activate_into, add, add_places, transpose};
use super::super::kernels::product::{Kernels, Left, Out, Right, Sizes};
use super::super::layer::Activation;
use super::super::step::{Learned, Op, Step};

/// Values of `k` in one product: a panel of weights stays in the second cache while all rows meet it.
const DEPTH: usize = 512;
/// Rows that one task takes.
const ROWS: usize = 96;

/// The sizes of a dense layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub inputs: usize,
    pub outputs: usize,
    /// Rows of each sample.
    pub places: usize,
}

pub(crate) struct Forward {
    pub extent: Extent,
    pub x: Buffer,
    pub weight: Buffer,
    pub bias: Option<Buffer>,
    pub y: Buffer,
    pub activation: Option<Activation>,
    /// What the activation is given, where its slope asks for that.
    pub kept: Option<Buffer>,
}

impl Op for Forward {
    fn run(&self, step: &Step<'_>) {
        let Extent {
            inputs,
            outputs,
            places,
        } = self.extent;
        let rows = step.rows * places;
        let [x, weight] = [self.x, self.weight].map(|buffer| step.span(buffer));
        let y = step.span(self.y);
        let made = self.kept.map_or(y, |kept| step.span(kept));
        let bias = self.bias.map(|bias| step.span(bias));
        let n_chunks = rows.div_ceil(ROWS);
        // Narrow panels where wide ones would leave threads without a task.
        let wide = Kernels::get().rows().max(32);
        let panel = if n_chunks * outputs.div_ceil(wide) < 8 {
            32
        } else {
            wide
        };
        let n_panels = outputs.div_ceil(panel);
        step.crew.run(n_chunks * n_panels, |task, _| {
            let (chunk, column) = (task / n_panels, task % n_panels * panel);
            let (first, last) = (chunk * ROWS, ((chunk + 1) * ROWS).min(rows));
            let m = panel.min(outputs - column);
            let tile = |span: Span, row: usize| span.part(row * outputs + column..row * outputs + column + m);
            for row in first..last {
                // SAFETY: the tile of this task alone; nobody writes the bias.
                unsafe {
                    match bias {
                        Some(bias) => {
                            let bias = bias.part(column..column + m).read();
                            tile(made, row).write().copy_from_slice(bias);
                        }
                        None => tile(made, row).write().fill(0.0),
                    }
                }
            }
            for depth in (0..inputs).step_by(DEPTH) {
                let sizes = Sizes {
                    m,
                    n: last - first,
                    k: DEPTH.min(inputs - depth),
                };
                // SAFETY: the tile of this task alone; buffers have room behind them.
                unsafe {
                    let out = Out {
                        at: tile(made, first).at(),
                        n_stride: outputs,
                        add: true,
                    };
                    let left = Left {
                        at: weight.at().add(depth * outputs + column),
                        k_stride: outputs,
                    };
                    let right = Right {
                        at: x.at().add(first * inputs + depth),
                        k_stride: 1,
                        n_stride: inputs,
                    };
                    Kernels::get().multiply(sizes, out, left, right);
                }
            }
            let Some(activation) = self.activation else { return };
            for row in first..last {
                // SAFETY: the tile of this task alone, in both buffers.
                unsafe {
                    match self.kept {
                        Some(_) => activate_into(activation, tile(made, row).read(), tile(y, row).write()),
                        None => activate(activation, tile(y, row).write()),
                    }
                }
            }
        });
    }
}

/// `∂x (+)= ∂y · Wᵀ`
pub(crate) struct ToInput {
    pub extent: Extent,
    pub weight: Buffer,
    pub slope: Buffer,
    pub x_slope: Buffer,
    pub add: bool,
}

/// Inputs that one task takes: it turns their weights first.
const TURNED: usize = 64;
const TURNED_ROWS: usize = 256;

impl ToInput {
    /// What a thread needs beside the buffers.
    pub(crate) fn scratch(extent: Extent) -> usize {
        TURNED * extent.outputs
    }
}

impl Op for ToInput {
    fn run(&self, step: &Step<'_>) {
        let Extent {
            inputs,
            outputs,
            places,
        } = self.extent;
        let rows = step.rows * places;
        let [weight, slope, x_slope] =
            [self.weight, self.slope, self.x_slope].map(|buffer| step.span(buffer));
        let n_chunks = rows.div_ceil(TURNED_ROWS);
        step.crew.run(inputs.div_ceil(TURNED) * n_chunks, |task, thread| {
            let (input, chunk) = (task / n_chunks * TURNED, task % n_chunks);
            let (first, last) = (chunk * TURNED_ROWS, ((chunk + 1) * TURNED_ROWS).min(rows));
            let m = TURNED.min(inputs - input);
            let turned = step.scratch(thread);
            // SAFETY: the scratch is of this thread, the tile of `x_slope` of this task alone; the others are only read.
            unsafe {
                let weights = weight.part(input * outputs..(input + m) * outputs).read();
                transpose(weights, outputs, outputs, turned.part(0..outputs * m).write(), m);
                let sizes = Sizes {
                    m,
                    n: last - first,
                    k: outputs,
                };
                let out = Out {
                    at: x_slope.at().add(first * inputs + input),
                    n_stride: inputs,
                    add: self.add,
                };
                let left = Left {
                    at: turned.at(),
                    k_stride: m,
                };
                let right = Right {
                    at: slope.at().add(first * outputs),
                    k_stride: 1,
                    n_stride: outputs,
                };
                Kernels::get().multiply(sizes, out, left, right);
            }
        });
    }
}

/// `∂W = xᵀ · ∂y` and `∂b = Σ ∂y`
pub(crate) struct ToWeights {
    pub extent: Extent,
    pub x: Buffer,
    pub slope: Buffer,
    pub weight: Option<Learned>,
    pub bias: Option<Learned>,
    /// Room for sums over parts of the rows, where there are too few weights to share the work by them.
    pub partial: Option<(Buffer, usize)>,
}

/// The inputs that a task takes are a multiple of this, except for the last.
pub(crate) const LEAST_CHUNK: usize = 16;
/// Rows in one product.
const ROW_BLOCK: usize = 512;
/// Parts of the rows that are summed apart.
const PARTS: usize = 16;

impl ToWeights {
    /// Inputs that one task takes.
    fn chunk(extent: Extent) -> usize {
        if extent.inputs >= 512 {
            4 * LEAST_CHUNK
        } else {
            LEAST_CHUNK
        }
    }

    pub(crate) fn scratch(extent: Extent) -> usize {
        ToWeights::chunk(extent) * extent.outputs + extent.outputs
    }

    /// Parts of the rows that are summed apart, where the inputs alone make too few tasks.
    pub(crate) fn parts(extent: Extent) -> Option<usize> {
        let few = extent.inputs.div_ceil(ToWeights::chunk(extent)) < 16;
        (few && extent.places > 16).then_some(PARTS)
    }

    /// Sums up `xᵀ · ∂y` for some inputs and rows.
    ///
    /// # Safety
    ///
    /// `into` is used by nobody else.
    unsafe fn sum(
        &self,
        step: &Step<'_>,
        inputs: std::ops::Range<usize>,
        rows: std::ops::Range<usize>,
        into: Span,
    ) {
        let [x, slope] = [self.x, self.slope].map(|buffer| step.span(buffer));
        let outputs = self.extent.outputs;
        let mut row = rows.start;
        while row < rows.end {
            let k = ROW_BLOCK.min(rows.end - row);
            let sizes = Sizes {
                m: outputs,
                n: inputs.len(),
                k,
            };
            // SAFETY: the caller's; buffers have room behind them.
            unsafe {
                let out = Out {
                    at: into.at(),
                    n_stride: outputs,
                    add: row > rows.start,
                };
                let left = Left {
                    at: slope.at().add(row * outputs),
                    k_stride: outputs,
                };
                let right = Right {
                    at: x.at().add(row * self.extent.inputs + inputs.start),
                    k_stride: self.extent.inputs,
                    n_stride: 1,
                };
                Kernels::get().multiply(sizes, out, left, right);
            }
            row += k;
        }
    }
}

impl Op for ToWeights {
    fn run(&self, step: &Step<'_>) {
        let Extent {
            inputs,
            outputs,
            places,
        } = self.extent;
        let rows = step.rows * places;
        if let Some(bias) = &self.bias {
            let slope = step.span(self.slope);
            // SAFETY: the scratch of the calling thread; nothing else runs, and the bias is taken once.
            unsafe {
                let sums = step.scratch(0).part(0..outputs).write();
                sums.fill(0.0);
                add_places(sums, slope.part(0..rows * outputs).read());
                bias.take(step, 0..outputs, sums);
            }
        }
        let Some(weight) = &self.weight else { return };
        let chunk = ToWeights::chunk(self.extent);
        let n_chunks = inputs.div_ceil(chunk);
        let Some((partial, parts)) = self.partial else {
            step.crew.run(n_chunks, |task, thread| {
                let range = task * chunk..((task + 1) * chunk).min(inputs);
                let tile = step.scratch(thread).part(0..range.len() * outputs);
                // SAFETY: the scratch is of this thread, and these weights of this task.
                unsafe {
                    self.sum(step, range.clone(), 0..rows, tile);
                    weight.take(step, range.start * outputs..range.end * outputs, tile.read());
                }
            });
            return;
        };
        let partial = step.span(partial);
        let part_rows = rows.div_ceil(parts);
        let used = rows.div_ceil(part_rows);
        step.crew.run(used, |part, _| {
            let rows = part * part_rows..((part + 1) * part_rows).min(rows);
            // SAFETY: the part of this task.
            unsafe { self.sum(step, 0..inputs, rows, partial.piece(part, inputs * outputs)) };
        });
        step.crew.run(n_chunks, |task, _| {
            let range = task * chunk * outputs..((task + 1) * chunk).min(inputs) * outputs;
            // SAFETY: all parts are written; these weights are of this task.
            unsafe {
                let sums = partial.part(range.clone()).write();
                for part in 1..used {
                    add(
                        sums,
                        partial.piece(part, inputs * outputs).part(range.clone()).read(),
                    );
                }
                weight.take(step, range, sums);
            }
        });
    }
}
