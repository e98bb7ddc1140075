//! The way back: slopes of the input, gradients of the weights.

use super::super::super::arena::{Buffer, Span, bytes};
use super::super::super::kernels::correlate::Phase;
use super::super::super::kernels::elementwise::{activate_slopes, add, add_places, transpose};
use super::super::super::kernels::product::{Kernels, Left, OVERREAD, Out, Right, Sizes};
use super::super::super::layer::Activation;
use super::super::super::step::{Learned, Op, Step};
use super::Extent;
use super::gathered::Gathered;
use super::pooled::{Pooled, spread_band};

/// `∂x`, `∂W` and `∂b`.
pub(crate) struct Backward {
    pub extent: Extent,
    pub x: Buffer,
    pub weight: Buffer,
    /// The slope of the output, or of what a max-pool kept of it.
    pub slope: Buffer,
    /// The max-pool, the values it kept, and what made them.
    pub pooled: Option<(Pooled, Buffer, Option<Activation>)>,
    /// Where the slope of the input goes, and whether it is added to what is there.
    pub x_slope: Option<(Buffer, bool)>,
    /// Room for the weights with inputs and outputs exchanged.
    pub turned: Option<Buffer>,
    pub partial: Option<Buffer>,
    pub learned: Option<Learned>,
    pub bias: Option<Learned>,
    pub batch: usize,
}

impl Backward {
    pub(crate) fn scratch(extent: &Extent, pooled: bool, to_input: bool) -> usize {
        let spread = if pooled { extent.y_len() } else { 0 };
        let gathered = match extent.gathers && to_input {
            true => extent
                .phases
                .iter()
                .map(|phase| Gathered::scratch_len(&phase.correlation))
                .max()
                .unwrap_or(0),
            false => 0,
        };
        let tap = match extent.sums_parts() {
            true => 0,
            false => TAP_CHANNELS * (TAP_PLACES + extent.forward.width),
        };
        spread.max(gathered).max(tap).max(extent.output[2]) + 2 * OVERREAD
    }

    /// Exchanges inputs and outputs of every tap, in the order in which the phases take them.
    fn turn(&self, step: &Step<'_>, turned: Span) {
        let extent = &self.extent;
        let (channels, width) = (extent.forward.channels, extent.forward.width);
        let weight = step.span(self.weight);
        let tap_len = channels * width;
        let per_group: usize = extent
            .phases
            .iter()
            .map(|phase| phase.ty.len() * phase.tx.len())
            .sum();
        step.crew.run(per_group * extent.groups, |task, _| {
            let (group, mut tap) = (task / per_group, task % per_group);
            for phase in &extent.phases {
                let taps = phase.ty.len() * phase.tx.len();
                if tap < taps {
                    let (ty, tx) = (phase.ty[tap / phase.tx.len()], phase.tx[tap % phase.tx.len()]);
                    let from = ty * extent.forward.cols.taps + tx;
                    let from = weight.piece(group, extent.forward.weights()).piece(from, tap_len);
                    // SAFETY: every task writes a tap of its own.
                    unsafe {
                        transpose(
                            from.read(),
                            width,
                            width,
                            turned.piece(task, tap_len).write(),
                            channels,
                        )
                    };
                    return;
                }
                tap -= taps;
            }
        });
    }

    /// The turned weights of a phase and group.
    fn turned_of(&self, turned: Span, group: usize, phase: usize) -> Span {
        let extent = &self.extent;
        let tap_len = extent.forward.channels * extent.forward.width;
        let taps = |phase: &Phase| phase.ty.len() * phase.tx.len();
        let per_group: usize = extent.phases.iter().map(taps).sum();
        let before: usize = extent.phases[..phase].iter().map(taps).sum();
        let start = (group * per_group + before) * tap_len;
        turned.part(start..start + taps(&extent.phases[phase]) * tap_len)
    }

    /// Adds the slope of one image's input.
    ///
    /// # Safety
    ///
    /// Nobody else uses it.
    unsafe fn to_input(&self, turned: Span, slope: Span, x_slope: Span) {
        let extent = &self.extent;
        for group in 0..extent.groups {
            for (i, phase) in extent.phases.iter().enumerate() {
                let correlation = &phase.correlation;
                // SAFETY: the caller's.
                unsafe {
                    correlation.add(
                        0..correlation.rows.n,
                        x_slope.at().add(phase.start + group * extent.forward.channels),
                        slope.at().add(group * extent.forward.width),
                        self.turned_of(turned, group, i).at(),
                    );
                }
            }
        }
    }

    /// Image by image: slopes of the input, and sums for the weights in parts of the batch.
    fn run_images(&self, step: &Step<'_>, turned: Option<Span>) {
        let extent = &self.extent;
        let [x, slope] = [self.x, self.slope].map(|buffer| step.span(buffer));
        let partial = self.partial.map(|partial| step.span(partial));
        let x_slope = self.x_slope.map(|(buffer, add)| (step.span(buffer), add));
        let parts = extent.parts(self.batch);
        let part_rows = self.batch.div_ceil(parts);
        let used = step.rows.div_ceil(part_rows);
        step.crew.run(used, |part, thread| {
            let sums = partial.map(|partial| partial.piece(part, extent.part_len()));
            if let Some(sums) = sums {
                // SAFETY: the part of this task.
                unsafe { sums.write().fill(0.0) };
            }
            for sample in part * part_rows..((part + 1) * part_rows).min(step.rows) {
                let source = x.piece(sample, extent.x_len());
                let slope = match &self.pooled {
                    None => slope.piece(sample, extent.y_len()),
                    // SAFETY: the scratch is of this thread.
                    Some(pooled) => unsafe { self.spread(step, sample, pooled, slope, step.scratch(thread)) },
                };
                // SAFETY: the part of this task, and its samples; the rest is only read.
                unsafe {
                    if let Some(sums) = sums {
                        for group in 0..extent.groups {
                            extent.forward.add_weights(
                                0..extent.output[0],
                                sums.at().add(group * extent.forward.weights()),
                                slope.at().add(group * extent.forward.width),
                                source.at().add(group * extent.forward.channels),
                            );
                        }
                        add_places(
                            sums.part(extent.weights()..extent.part_len()).write(),
                            slope.read(),
                        );
                    }
                    if let (Some((x_slope, added)), Some(turned)) = (x_slope, turned) {
                        let x_slope = x_slope.piece(sample, extent.x_len());
                        if !added {
                            x_slope.write().fill(0.0);
                        }
                        self.to_input(turned, slope, x_slope);
                    }
                }
            }
        });
        let Some(partial) = partial else { return };
        let chunk = extent.part_len().div_ceil(16).max(1024);
        step.crew.run(extent.part_len().div_ceil(chunk), |task, _| {
            let range = task * chunk..((task + 1) * chunk).min(extent.part_len());
            // SAFETY: all parts are written; this range of them is of this task.
            unsafe {
                let sums = partial.part(range.clone()).write();
                for part in 1..used {
                    add(
                        sums,
                        partial.piece(part, extent.part_len()).part(range.clone()).read(),
                    );
                }
                let weights = range.start.min(extent.weights())..range.end.min(extent.weights());
                let split = weights.len();
                if let Some(learned) = self.learned.as_ref().filter(|_| split > 0) {
                    learned.take(step, weights, &sums[..split]);
                }
                if let Some(bias) = self.bias.as_ref().filter(|_| split < sums.len()) {
                    let first = range.start.max(extent.weights()) - extent.weights();
                    bias.take(step, first..first + sums.len() - split, &sums[split..]);
                }
            }
        });
    }

    /// The slope of the convolution where only that of what a max-pool kept is there.
    ///
    /// # Safety
    ///
    /// Nobody else uses the scratch.
    unsafe fn spread(
        &self,
        step: &Step<'_>,
        sample: usize,
        (pooled, values, activation): &(Pooled, Buffer, Option<Activation>),
        slope: Span,
        scratch: Span,
    ) -> Span {
        let extent = &self.extent;
        let channels = extent.output[2];
        let line = pooled.out[1] * channels;
        let image = pooled.out[0] * line;
        let made = scratch.part(0..extent.y_len());
        let covered = pooled.out[0] * pooled.size[0] * extent.forward.out_row;
        // SAFETY: the scratch is the caller's, and so is the slope of this sample, which nothing asks for later.
        unsafe {
            made.part(covered..extent.y_len()).write().fill(0.0);
            let slopes = slope.piece(sample, image).write();
            if let Some(activation) = activation {
                let values = step.span(*values).piece(sample, image);
                activate_slopes(*activation, slopes, values.read());
            }
            let chosen = &bytes(step.span(pooled.chosen))[sample * image..(sample + 1) * image];
            for row in 0..pooled.out[0] {
                let band = made.piece(row, pooled.size[0] * extent.forward.out_row);
                let range = row * line..(row + 1) * line;
                spread_band(
                    pooled,
                    channels,
                    &slopes[range.clone()],
                    &chosen[range],
                    band.write(),
                );
            }
        }
        made
    }

    /// Slopes of the inputs of small images, by patches of several.
    fn run_gathered_input(&self, step: &Step<'_>, turned: Span, (x_slope, added): (Buffer, bool)) {
        let extent = &self.extent;
        let [x_slope, slope] = [x_slope, self.slope].map(|buffer| step.span(buffer));
        let images = extent
            .phases
            .iter()
            .map(|phase| Gathered::images(&phase.correlation))
            .min()
            .unwrap_or(1);
        let (x_len, y_len) = (extent.x_len(), extent.y_len());
        step.crew.run(step.rows.div_ceil(images), |task, thread| {
            let samples = task * images..((task + 1) * images).min(step.rows);
            // SAFETY: these images are of this task, the scratch of this thread.
            unsafe {
                if !added {
                    x_slope
                        .part(samples.start * x_len..samples.end * x_len)
                        .write()
                        .fill(0.0);
                }
                for group in 0..extent.groups {
                    for (i, phase) in extent.phases.iter().enumerate() {
                        let correlation = &phase.correlation;
                        let gathered = Gathered {
                            correlation,
                            weights: self.turned_of(turned, group, i),
                            scratch: step.scratch(thread),
                        };
                        let of_group = |sample: usize| {
                            let source = slope.piece(sample, y_len);
                            let out = x_slope.piece(sample, x_len);
                            (
                                source.part(group * extent.forward.width..y_len),
                                out.part(phase.start + group * extent.forward.channels..x_len),
                            )
                        };
                        let rows = Gathered::rows(correlation);
                        for first in (0..correlation.rows.n).step_by(rows) {
                            let rows = first..(first + rows).min(correlation.rows.n);
                            gathered.add(samples.clone().map(of_group), rows);
                        }
                    }
                }
            }
        });
    }

    /// The gradient of the weights, tap by tap over the whole batch: for small images and many weights.
    fn run_taps(&self, step: &Step<'_>, learned: &Learned) {
        let extent = &self.extent;
        let forward = &extent.forward;
        let [x, slope] = [self.x, self.slope].map(|buffer| step.span(buffer));
        let (channels, width) = (forward.channels, forward.width);
        let taps = forward.rows.taps * forward.cols.taps;
        let chunks = channels.div_ceil(TAP_CHANNELS);
        let (n_rows, n_cols) = (forward.rows.n, forward.cols.n);
        let places = step.rows * n_rows * n_cols;
        step.crew.run(extent.groups * taps * chunks, |task, thread| {
            let (group, tap, chunk) = (task / (taps * chunks), task / chunks % taps, task % chunks);
            let first = chunk * TAP_CHANNELS;
            let n = TAP_CHANNELS.min(channels - first);
            let scratch = step.scratch(thread);
            let block = scratch.part(0..TAP_PLACES * n);
            let sums = scratch.part(TAP_PLACES * n..TAP_PLACES * n + n * width);
            // SAFETY: the scratch is of this thread, these weights of this task; the rest is only read.
            unsafe {
                for start in (0..places).step_by(TAP_PLACES) {
                    let count = TAP_PLACES.min(places - start);
                    for (i, values) in block.write().chunks_exact_mut(n).take(count).enumerate() {
                        let place = start + i;
                        let (sample, o) = (place / (n_rows * n_cols), place % (n_rows * n_cols));
                        match forward.source_of(o / n_cols, o % n_cols, tap) {
                            Some(at) => {
                                let at = sample * extent.x_len() + at + group * channels + first;
                                values.copy_from_slice(x.part(at..at + n).read());
                            }
                            None => values.fill(0.0),
                        }
                    }
                    let sizes = Sizes {
                        m: width,
                        n,
                        k: count,
                    };
                    let out = Out {
                        at: sums.at(),
                        n_stride: width,
                        add: start > 0,
                    };
                    let left = Left {
                        at: slope.at().add(start * extent.output[2] + group * width),
                        k_stride: extent.output[2],
                    };
                    let right = Right {
                        at: block.at(),
                        k_stride: n,
                        n_stride: 1,
                    };
                    Kernels::get().multiply(sizes, out, left, right);
                }
                let from = ((group * taps + tap) * channels + first) * width;
                learned.take(step, from..from + n * width, sums.read());
            }
        });
    }
}

/// Channels and places that one product of [`Backward::run_taps`] takes.
const TAP_CHANNELS: usize = 64;
const TAP_PLACES: usize = 512;

impl Op for Backward {
    fn run(&self, step: &Step<'_>) {
        let extent = &self.extent;
        let turned = self.turned.map(|turned| step.span(turned));
        if let Some(turned) = turned {
            self.turn(step, turned);
        }
        if extent.sums_parts() {
            self.run_images(step, turned);
            return;
        }
        if let (Some(x_slope), Some(turned)) = (self.x_slope, turned) {
            match extent.gathers {
                true => self.run_gathered_input(step, turned, x_slope),
                false => self.run_images(step, Some(turned)),
            }
        }
        if let Some(bias) = &self.bias {
            let channels = extent.output[2];
            let slope = step.span(self.slope).part(0..step.rows * extent.y_len());
            // SAFETY: nothing else runs; the scratch is of the calling thread.
            unsafe {
                let sums = step.scratch(0).part(0..channels).write();
                sums.fill(0.0);
                add_places(sums, slope.read());
                bias.take(step, 0..channels, sums);
            }
        }
        if let Some(learned) = &self.learned {
            self.run_taps(step, learned);
        }
    }
}
