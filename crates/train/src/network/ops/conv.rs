//! Convolutions: `y[p, :] = activation(b + Σ x[p + tap, :] · W[tap])` over the taps of the kernel.
//!
//! Wide images are taken as they stand ([`Correlation`]). Of small ones, whose rows make too short products, patches are
//! copied behind each other first, a few images at a time. A max-pool that follows is done while the rows are in the cache,
//! and only what it keeps is written: the largest values, and where they were.

use std::ops::Range;

use super::super::arena::{Buffer, Span};
use super::super::kernels::correlate::{Axis, Correlation, Phase, backward};
use super::super::kernels::elementwise::{activate, activate_into, activate_slopes, add, add_places, transpose};
use super::super::kernels::product::{Kernels, Left, Out, Right, Sizes};
use super::super::layer::Activation;
use super::super::shape::Window;
use super::super::step::{Learned, Op, Step};

/// Columns below which products along a row are too short.
const NARROW: usize = 12;
/// Places whose patches are copied together.
const GATHERED: usize = 64;
/// Values of `k` in one product.
const DEPTH: usize = 512;
/// Weights beyond which no sums over parts of the batch are kept: they would take more than the activations.
const MOST_SUMMED: usize = 1 << 19;

/// The shapes of a convolution.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    pub input: [usize; 3],
    pub output: [usize; 3],
    pub groups: usize,
    /// Of the first group; the others are so many channels further.
    pub forward: Correlation,
    pub phases: Vec<Phase>,
    gathers: bool,
}

impl Extent {
    pub(crate) fn new(input: [usize; 3], output: [usize; 3], window: &Window, groups: usize) -> Extent {
        let axis = |i: usize| Axis {
            n: output[i],
            source: input[i],
            step: window.stride[i],
            offset: -(window.before[i] as isize),
            taps: window.kernel[i],
            dilation: window.dilation[i],
        };
        let forward = Correlation {
            rows: axis(0),
            cols: axis(1),
            channels: input[2] / groups,
            width: output[2] / groups,
            source_row: input[1] * input[2],
            source_col: input[2],
            out_row: output[1] * output[2],
            out_col: output[2],
        };
        Extent {
            input,
            output,
            groups,
            forward,
            phases: backward(&forward),
            gathers: output[1] < NARROW,
        }
    }

    pub(crate) fn x_len(&self) -> usize {
        self.input.iter().product()
    }

    pub(crate) fn y_len(&self) -> usize {
        self.output.iter().product()
    }

    pub(crate) fn weights(&self) -> usize {
        self.forward.weights() * self.groups
    }

    /// Whether the images are so wide that they are taken as they stand.
    pub(crate) fn is_direct(&self) -> bool {
        !self.gathers
    }

    /// Whether the weights' gradient is summed up image by image, in parts of the batch.
    pub(crate) fn sums_parts(&self) -> bool {
        !self.gathers && self.weights() <= MOST_SUMMED
    }

    /// Parts of the batch that are summed apart.
    pub(crate) fn parts(&self, batch: usize) -> usize {
        batch.min(if self.weights() <= 1 << 15 { 16 } else { 8 })
    }

    /// What a part is: its weights, then its biases.
    fn part_len(&self) -> usize {
        self.weights() + self.output[2]
    }

    pub(crate) fn partial_len(&self, batch: usize) -> usize {
        self.parts(batch) * self.part_len()
    }
}

/// Adds one correlation of several images, by patches.
struct Gathered<'a> {
    correlation: &'a Correlation,
    weights: Span,
    /// Room for the patches, and for the places where they are not next to each other.
    scratch: Span,
}

impl Gathered<'_> {
    /// Images whose patches are copied together.
    fn images(correlation: &Correlation) -> usize {
        (GATHERED / (correlation.rows.n * correlation.cols.n).max(1)).max(1)
    }

    /// Rows of an image whose patches are copied together.
    fn rows(correlation: &Correlation) -> usize {
        (GATHERED / correlation.cols.n.max(1)).clamp(1, correlation.rows.n.max(1))
    }

    fn scratch_len(correlation: &Correlation) -> usize {
        let places = Gathered::images(correlation) * Gathered::rows(correlation) * correlation.cols.n;
        places * (correlation.patch() + correlation.width) + 2 * super::super::kernels::product::OVERREAD
    }

    /// Adds the rows of some images: `images` gives the source and the output of each.
    ///
    /// # Safety
    ///
    /// Nobody else uses these outputs, or the scratch.
    unsafe fn add(&self, images: impl Iterator<Item = (Span, Span)> + Clone, rows: Range<usize>) {
        let correlation = self.correlation;
        let (patch, width, columns) = (correlation.patch(), correlation.width, correlation.cols.n);
        let n_images = images.clone().count();
        let places = n_images * rows.len() * columns;
        let patches = self.scratch.part(0..places * patch);
        let made = self.scratch.part(places * patch..places * (patch + width));
        for (i, (source, _)) in images.clone().enumerate() {
            for (j, row) in rows.clone().enumerate() {
                let line = patches.piece(i * rows.len() + j, columns * patch);
                // SAFETY: the scratch is the caller's; the source is only read.
                unsafe { correlation.gather(row, source.read(), line.write()) };
            }
        }
        for depth in (0..patch).step_by(DEPTH) {
            let sizes = Sizes {
                m: width,
                n: places,
                k: DEPTH.min(patch - depth),
            };
            // SAFETY: the scratch is the caller's; weights have room behind them.
            unsafe {
                let out = Out {
                    at: made.at(),
                    n_stride: width,
                    add: depth > 0,
                };
                let left = Left {
                    at: self.weights.at().add(depth * width),
                    k_stride: width,
                };
                let right = Right {
                    at: patches.at().add(depth),
                    k_stride: 1,
                    n_stride: patch,
                };
                Kernels::get().multiply(sizes, out, left, right);
            }
        }
        for (i, (_, out)) in images.enumerate() {
            for (j, row) in rows.clone().enumerate() {
                for column in 0..columns {
                    let place = (i * rows.len() + j) * columns + column;
                    let at = row * correlation.out_row + column * correlation.out_col;
                    // SAFETY: the outputs are the caller's.
                    unsafe { add(out.part(at..at + width).write(), made.piece(place, width).read()) };
                }
            }
        }
    }
}

/// A max-pool that follows at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pooled {
    pub size: [usize; 2],
    /// Rows and columns after it.
    pub out: [usize; 2],
    /// Which of the window was the largest, a byte for each value.
    pub chosen: Buffer,
}

impl Pooled {
    /// Values of the arena that so many bytes take.
    pub(crate) fn chosen_len(values: usize) -> usize {
        values.div_ceil(size_of::<f32>())
    }
}

/// The bytes of a span.
///
/// # Safety
///
/// Nobody else uses them.
unsafe fn bytes<'a>(span: Span) -> &'a mut [u8] {
    // SAFETY: any float is four bytes, and any bytes are a float; the rest is the caller's.
    unsafe { std::slice::from_raw_parts_mut(span.at().cast(), span.len() * size_of::<f32>()) }
}

pub(crate) struct Forward {
    pub extent: Extent,
    pub x: Buffer,
    pub weight: Buffer,
    pub bias: Option<Buffer>,
    pub y: Buffer,
    pub activation: Option<Activation>,
    pub kept: Option<Buffer>,
    pub pooled: Option<Pooled>,
}

impl Forward {
    pub(crate) fn scratch(extent: &Extent, pooled: Option<&Pooled>) -> usize {
        match pooled {
            Some(pooled) => pooled.size[0] * extent.forward.out_row,
            None if extent.gathers => Gathered::scratch_len(&extent.forward),
            None => 0,
        }
    }

    /// Fills rows of the output with the bias.
    ///
    /// # Safety
    ///
    /// Nobody else uses them.
    unsafe fn start(&self, bias: Option<Span>, rows: Span) {
        // SAFETY: the caller's; nobody writes the bias.
        unsafe {
            let rows = rows.write();
            match bias {
                Some(bias) => {
                    let bias = bias.read();
                    rows.chunks_exact_mut(bias.len())
                        .for_each(|place| place.copy_from_slice(bias));
                }
                None => rows.fill(0.0),
            }
        }
    }

    fn run_pooled(&self, step: &Step<'_>, pooled: &Pooled) {
        let extent = &self.extent;
        let [x, weight, y] = [self.x, self.weight, self.y].map(|buffer| step.span(buffer));
        let bias = self.bias.map(|bias| step.span(bias));
        let chosen = step.span(pooled.chosen);
        let channels = extent.output[2];
        let line = pooled.out[1] * channels;
        let image = pooled.out[0] * line;
        // A few rows for each task: the last ones should not wait for one whole image.
        let strips = pooled.out[0].div_ceil(8);
        let n_strips = pooled.out[0].div_ceil(strips);
        step.crew.run(step.rows * n_strips, |task, thread| {
            let (sample, strip) = (task / n_strips, task % n_strips * strips);
            let source = x.piece(sample, extent.x_len());
            let band = step.scratch(thread).part(0..pooled.size[0] * extent.forward.out_row);
            for row in strip..(strip + strips).min(pooled.out[0]) {
                let first = row * pooled.size[0];
                // The correlation counts from the first row of the image.
                let start = band.at().wrapping_sub(first * extent.forward.out_row);
                let at = sample * image + row * line;
                // SAFETY: the scratch is of this thread; this row of the output is of this task.
                unsafe {
                    self.start(bias, band);
                    for group in 0..extent.groups {
                        extent.forward.add(
                            first..first + pooled.size[0],
                            start.wrapping_add(group * extent.forward.width),
                            source.at().add(group * extent.forward.channels),
                            weight.at().add(group * extent.forward.weights()),
                        );
                    }
                    let values = y.part(at..at + line).write();
                    pool_band(pooled, channels, band.read(), values, &mut bytes(chosen)[at..at + line]);
                    if let Some(activation) = self.activation {
                        activate(activation, values);
                    }
                }
            }
        });
    }

    fn run_direct(&self, step: &Step<'_>) {
        let extent = &self.extent;
        let [x, weight, y] = [self.x, self.weight, self.y].map(|buffer| step.span(buffer));
        let made = self.kept.map_or(y, |kept| step.span(kept));
        let bias = self.bias.map(|bias| step.span(bias));
        let n_rows = extent.output[0];
        let strips = n_rows.div_ceil(4);
        let n_strips = n_rows.div_ceil(strips);
        step.crew.run(step.rows * n_strips, |task, _| {
            let (sample, strip) = (task / n_strips, task % n_strips * strips);
            let band = strip..(strip + strips).min(n_rows);
            let line = extent.forward.out_row;
            let part = |span: Span| {
                span.piece(sample, extent.y_len())
                    .part(band.start * line..band.end * line)
            };
            let image = made.piece(sample, extent.y_len());
            let source = x.piece(sample, extent.x_len());
            // SAFETY: these rows of the output are of this task alone.
            unsafe {
                self.start(bias, part(made));
                for group in 0..extent.groups {
                    extent.forward.add(
                        band.clone(),
                        image.at().add(group * extent.forward.width),
                        source.at().add(group * extent.forward.channels),
                        weight.at().add(group * extent.forward.weights()),
                    );
                }
                self.finish(part(made), part(y));
            }
        });
    }

    fn run_gathered(&self, step: &Step<'_>) {
        let extent = &self.extent;
        let [x, weight, y] = [self.x, self.weight, self.y].map(|buffer| step.span(buffer));
        let made = self.kept.map_or(y, |kept| step.span(kept));
        let bias = self.bias.map(|bias| step.span(bias));
        let forward = &extent.forward;
        let images = Gathered::images(forward);
        let rows = Gathered::rows(forward);
        step.crew.run(step.rows.div_ceil(images), |task, thread| {
            let samples = task * images..((task + 1) * images).min(step.rows);
            let (x_len, y_len) = (extent.x_len(), extent.y_len());
            let part = |span: Span| span.part(samples.start * y_len..samples.end * y_len);
            // SAFETY: these images are of this task, the scratch of this thread.
            unsafe {
                self.start(bias, part(made));
                for group in 0..extent.groups {
                    let of_group = |sample: usize| {
                        let source = x.piece(sample, x_len).part(group * forward.channels..x_len);
                        let out = made.piece(sample, y_len).part(group * forward.width..y_len);
                        (source, out)
                    };
                    let gathered = Gathered {
                        correlation: forward,
                        weights: weight.piece(group, forward.weights()),
                        scratch: step.scratch(thread),
                    };
                    for first in (0..forward.rows.n).step_by(rows) {
                        let rows = first..(first + rows).min(forward.rows.n);
                        gathered.add(samples.clone().map(of_group), rows);
                    }
                }
                self.finish(part(made), part(y));
            }
        });
    }

    /// # Safety
    ///
    /// Nobody else uses these.
    unsafe fn finish(&self, made: Span, y: Span) {
        let Some(activation) = self.activation else { return };
        // SAFETY: the caller's.
        unsafe {
            match self.kept {
                Some(_) => activate_into(activation, made.read(), y.write()),
                None => activate(activation, y.write()),
            }
        }
    }
}

impl Op for Forward {
    fn run(&self, step: &Step<'_>) {
        match &self.pooled {
            Some(pooled) => self.run_pooled(step, pooled),
            None if self.extent.gathers => self.run_gathered(step),
            None => self.run_direct(step),
        }
    }
}

/// The largest of every window of one line of them, and which it was.
fn pool_band(pooled: &Pooled, channels: usize, band: &[f32], values: &mut [f32], chosen: &mut [u8]) {
    let [rows, columns] = pooled.size;
    let line = band.len() / rows;
    super::super::kernels::elementwise::vectorized(|| {
        for (place, (values, chosen)) in values
            .chunks_exact_mut(channels)
            .zip(chosen.chunks_exact_mut(channels))
            .enumerate()
        {
            let first = place * columns * channels;
            values.copy_from_slice(&band[first..first + channels]);
            chosen.fill(0);
            for tap in 1..rows * columns {
                let at = tap / columns * line + first + tap % columns * channels;
                let candidates = &band[at..at + channels];
                for ((value, chosen), candidate) in values.iter_mut().zip(chosen.iter_mut()).zip(candidates) {
                    // What is not a number must not be lost.
                    let larger = *candidate > *value || candidate.is_nan();
                    *value = if larger { *candidate } else { *value };
                    *chosen = if larger { tap as u8 } else { *chosen };
                }
            }
        }
    });
}

/// Puts slopes where the largest values were, zero elsewhere.
fn spread_band(pooled: &Pooled, channels: usize, slopes: &[f32], chosen: &[u8], band: &mut [f32]) {
    let [rows, columns] = pooled.size;
    let line = band.len() / rows;
    let covered = pooled.out[1] * columns * channels;
    for row in band.chunks_exact_mut(line) {
        row[covered..].fill(0.0);
    }
    super::super::kernels::elementwise::vectorized(|| {
        for (place, (slopes, chosen)) in slopes
            .chunks_exact(channels)
            .zip(chosen.chunks_exact(channels))
            .enumerate()
        {
            for tap in 0..rows * columns {
                let at = tap / columns * line + (place * columns + tap % columns) * channels;
                for ((out, slope), chosen) in band[at..at + channels].iter_mut().zip(slopes).zip(chosen) {
                    *out = if *chosen == tap as u8 { *slope } else { 0.0 };
                }
            }
        }
    });
}

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
        let spread = match (pooled, to_input) {
            (true, true) => extent.y_len(),
            (true, false) => extent.y_len(),
            _ => 0,
        };
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
        spread.max(gathered).max(tap).max(extent.output[2])
            + 2 * super::super::kernels::product::OVERREAD
    }

    /// Exchanges inputs and outputs of every tap, in the order in which the phases take them.
    fn turn(&self, step: &Step<'_>, turned: Span) {
        let extent = &self.extent;
        let (channels, width) = (extent.forward.channels, extent.forward.width);
        let weight = step.span(self.weight);
        let tap_len = channels * width;
        let per_group: usize = extent.phases.iter().map(|phase| phase.ty.len() * phase.tx.len()).sum();
        step.crew.run(per_group * extent.groups, |task, _| {
            let (group, mut tap) = (task / per_group, task % per_group);
            for phase in &extent.phases {
                let taps = phase.ty.len() * phase.tx.len();
                if tap < taps {
                    let (ty, tx) = (phase.ty[tap / phase.tx.len()], phase.tx[tap % phase.tx.len()]);
                    let from = ty * extent.forward.cols.taps + tx;
                    let from = weight
                        .piece(group, extent.forward.weights())
                        .piece(from, tap_len);
                    // SAFETY: every task writes a tap of its own.
                    unsafe { transpose(from.read(), width, width, turned.piece(task, tap_len).write(), channels) };
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
                        add_places(sums.part(extent.weights()..extent.part_len()).write(), slope.read());
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
                    add(sums, partial.piece(part, extent.part_len()).part(range.clone()).read());
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
                spread_band(pooled, channels, &slopes[range.clone()], &chosen[range], band.write());
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
