//! Depthwise convolutions: every channel by itself, `y[p, c] = b[c] + Σ x[p + tap, c / multiplier] · W[tap, c]`.

use super::super::arena::{Buffer, Span};
use super::super::kernels::correlate::Axis;
use super::super::kernels::elementwise::{activate, activate_into, add, add_places};
use super::super::kernels::vectorized::vectorized;
use super::super::layer::Activation;
use super::super::step::{Learned, Op, Step};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub input: [usize; 3],
    pub output: [usize; 3],
    pub rows: Axis,
    pub cols: Axis,
}

impl Extent {
    fn lens(&self) -> (usize, usize) {
        (self.input.iter().product(), self.output.iter().product())
    }

    pub(crate) fn weights(&self) -> usize {
        self.rows.taps * self.cols.taps * self.output[2]
    }

    fn multiplier(&self) -> usize {
        self.output[2] / self.input[2]
    }

    /// Every place of a row of the output and every tap of it: where the place is in its row, the tap, and its source.
    #[inline(always)]
    fn each(&self, row: usize, mut work: impl FnMut(usize, usize, usize)) {
        for column in 0..self.output[1] {
            for ty in self.rows.taps_of(row) {
                let y =
                    (row * self.rows.step + ty * self.rows.dilation).wrapping_add_signed(self.rows.offset);
                for tx in self.cols.taps_of(column) {
                    let x = (column * self.cols.step + tx * self.cols.dilation)
                        .wrapping_add_signed(self.cols.offset);
                    work(
                        column * self.output[2],
                        (ty * self.cols.taps + tx) * self.output[2],
                        (y * self.input[1] + x) * self.input[2],
                    );
                }
            }
        }
    }

    pub(crate) fn parts(batch: usize) -> usize {
        batch.min(16)
    }

    fn part_len(&self) -> usize {
        self.weights() + self.output[2]
    }

    pub(crate) fn partial_len(&self, batch: usize) -> usize {
        Extent::parts(batch) * self.part_len()
    }
}

pub(crate) struct Forward {
    pub extent: Extent,
    pub x: Buffer,
    pub weight: Buffer,
    pub bias: Option<Buffer>,
    pub y: Buffer,
    pub activation: Option<Activation>,
    pub kept: Option<Buffer>,
}

impl Op for Forward {
    fn run(&self, step: &Step<'_>) {
        let extent = &self.extent;
        let (x_len, y_len) = extent.lens();
        let (n_rows, channels) = (extent.output[0], extent.output[2]);
        let [x, weight, y] = [self.x, self.weight, self.y].map(|buffer| step.span(buffer));
        let made = self.kept.map_or(y, |kept| step.span(kept));
        let bias = self.bias.map(|bias| step.span(bias));
        let line = extent.output[1] * channels;
        step.crew.run(step.rows * n_rows, |task, _| {
            let (sample, row) = (task / n_rows, task % n_rows);
            let part = |span: Span| span.piece(sample, y_len).piece(row, line);
            // SAFETY: a row is of one task; weights and sources are only read.
            unsafe {
                let (source, weights) = (x.piece(sample, x_len).read(), weight.read());
                let out = part(made).write();
                match bias {
                    Some(bias) => {
                        let bias = bias.read();
                        out.chunks_exact_mut(channels)
                            .for_each(|place| place.copy_from_slice(bias));
                    }
                    None => out.fill(0.0),
                }
                add_row(extent, row, source, weights, out);
                if let Some(activation) = self.activation {
                    match self.kept {
                        Some(_) => activate_into(activation, out, part(y).write()),
                        None => activate(activation, out),
                    }
                }
            }
        });
    }
}

vectorized! {
    fn add_row(extent: &Extent, row: usize, source: &[f32], weights: &[f32], out: &mut [f32]) {
        let (channels, multiplier) = (extent.output[2], extent.multiplier());
        extent.each(row, |at, tap, from| {
            let (out, weights) = (&mut out[at..at + channels], &weights[tap..tap + channels]);
            match multiplier {
                1 => {
                    let source = &source[from..from + channels];
                    for ((out, weight), x) in out.iter_mut().zip(weights).zip(source) {
                        *out += weight * x;
                    }
                }
                _ => {
                    for (channel, (out, weight)) in out.iter_mut().zip(weights).enumerate() {
                        *out += weight * source[from + channel / multiplier];
                    }
                }
            }
        });
    }

    fn add_to_weights(extent: &Extent, slopes: &[f32], source: &[f32], sums: &mut [f32]) {
        let (channels, multiplier) = (extent.output[2], extent.multiplier());
        for (row, slopes) in slopes.chunks_exact(extent.output[1] * channels).enumerate() {
            extent.each(row, |at, tap, from| {
                let (slopes, sums) = (&slopes[at..at + channels], &mut sums[tap..tap + channels]);
                match multiplier {
                    1 => {
                        let source = &source[from..from + channels];
                        for ((sum, slope), x) in sums.iter_mut().zip(slopes).zip(source) {
                            *sum += slope * x;
                        }
                    }
                    _ => {
                        for (channel, (sum, slope)) in sums.iter_mut().zip(slopes).enumerate() {
                            *sum += slope * source[from + channel / multiplier];
                        }
                    }
                }
            });
        }
    }

    fn add_to_input(extent: &Extent, slopes: &[f32], weights: &[f32], into: &mut [f32]) {
        let (channels, multiplier) = (extent.output[2], extent.multiplier());
        for (row, slopes) in slopes.chunks_exact(extent.output[1] * channels).enumerate() {
            extent.each(row, |at, tap, from| {
                let (slopes, weights) = (&slopes[at..at + channels], &weights[tap..tap + channels]);
                match multiplier {
                    1 => {
                        let into = &mut into[from..from + channels];
                        for ((into, slope), weight) in into.iter_mut().zip(slopes).zip(weights) {
                            *into += slope * weight;
                        }
                    }
                    _ => {
                        for (channel, (slope, weight)) in slopes.iter().zip(weights).enumerate() {
                            into[from + channel / multiplier] += slope * weight;
                        }
                    }
                }
            });
        }
    }
}

pub(crate) struct Backward {
    pub extent: Extent,
    pub x: Buffer,
    pub weight: Buffer,
    pub slope: Buffer,
    pub x_slope: Option<(Buffer, bool)>,
    pub partial: Option<Buffer>,
    pub learned: Option<Learned>,
    pub bias: Option<Learned>,
    pub batch: usize,
}

impl Op for Backward {
    fn run(&self, step: &Step<'_>) {
        let extent = &self.extent;
        let (x_len, y_len) = extent.lens();
        let [x, weight, slope] = [self.x, self.weight, self.slope].map(|buffer| step.span(buffer));
        let x_slope = self.x_slope.map(|(buffer, add)| (step.span(buffer), add));
        let partial = self.partial.map(|partial| step.span(partial));
        let part_rows = self.batch.div_ceil(Extent::parts(self.batch));
        let used = step.rows.div_ceil(part_rows);
        step.crew.run(used, |part, _| {
            // SAFETY: the part of this task.
            let mut sums =
                partial.map(|partial: Span| unsafe { partial.piece(part, extent.part_len()).write() });
            if let Some(sums) = &mut sums {
                sums.fill(0.0);
            }
            for sample in part * part_rows..((part + 1) * part_rows).min(step.rows) {
                // SAFETY: a sample is of one task; the rest is only read.
                let (source, slopes, weights) = unsafe {
                    (
                        x.piece(sample, x_len).read(),
                        slope.piece(sample, y_len).read(),
                        weight.read(),
                    )
                };
                // SAFETY: as above.
                let mut into = x_slope.map(|(x_slope, added)| unsafe {
                    let into = x_slope.piece(sample, x_len).write();
                    if !added {
                        into.fill(0.0);
                    }
                    into
                });
                if let Some(sums) = &mut sums {
                    add_to_weights(extent, slopes, source, sums);
                }
                if let Some(into) = &mut into {
                    add_to_input(extent, slopes, weights, into);
                }
                if let Some(sums) = &mut sums {
                    add_places(&mut sums[extent.weights()..], slopes);
                }
            }
        });
        let Some(partial) = partial else { return };
        // SAFETY: nothing else runs.
        unsafe {
            let sums = partial.piece(0, extent.part_len()).write();
            for part in 1..used {
                add(sums, partial.piece(part, extent.part_len()).read());
            }
            let (weights, biases) = sums.split_at(extent.weights());
            if let Some(learned) = &self.learned {
                learned.take(step, 0..weights.len(), weights);
            }
            if let Some(bias) = &self.bias {
                bias.take(step, 0..biases.len(), biases);
            }
        }
    }
}
