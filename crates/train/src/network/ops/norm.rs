//! Norms: `x̂ = (x - mean) / √(variance + ε)`, `y = activation(x̂ · scale + shift)`.
//!
//! Back, with `s = ∂y · scale` and means over what mean and variance were taken over:
//! `∂x = (s - mean(s) - x̂ · mean(s · x̂)) / √(variance + ε)`, `∂scale = Σ ∂y · x̂`, `∂shift = Σ ∂y`.
//! What the activation was given is worked out again rather than kept.

use super::super::arena::{Buffer, Span};
use super::super::kernels::elementwise::{add, vectorized};
use super::super::layer::Activation;
use super::super::step::{Learned, Op, Step};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// Of a sample.
    pub places: usize,
    pub channels: usize,
    pub epsilon: f32,
    pub activation: Option<Activation>,
}

/// Parts of the batch that are summed apart.
pub(crate) const PARTS: usize = 16;
/// Places that are summed before they are added to the others: long sums of floats lose their end.
const BLOCK: usize = 128;

impl Extent {
    fn len(&self) -> usize {
        self.places * self.channels
    }
}

/// The vectors of a norm.
#[derive(Clone, Copy)]
struct Vectors<'a> {
    mean: &'a [f32],
    /// One divided by the deviation.
    inverse: &'a [f32],
    scale: &'a [f32],
    shift: &'a [f32],
}

/// The slope before the activation and the normed value, for every channel of a place.
#[inline(always)]
fn undone(activation: Option<Activation>, vectors: Vectors<'_>, channel: usize, x: f32, slope: f32) -> (f32, f32) {
    let normed = (x - vectors.mean[channel]) * vectors.inverse[channel];
    let slope = match activation {
        None => slope,
        Some(Activation::Relu) => {
            let given = normed * vectors.scale[channel] + vectors.shift[channel];
            if given > 0.0 { slope } else { 0.0 }
        }
        Some(activation) => {
            slope * activation.slope_at(normed * vectors.scale[channel] + vectors.shift[channel])
        }
    };
    (slope, normed)
}

/// A norm by the mean and deviation of the batch.
pub(crate) struct Batch {
    pub extent: Extent,
    pub x: Buffer,
    pub y: Buffer,
    pub scale: Buffer,
    pub shift: Buffer,
    pub running: (Buffer, Buffer),
    pub momentum: f32,
    /// Whether it stays as it is: the running mean and deviation are used, and kept.
    pub frozen: bool,
    /// Mean and inverse deviation of this batch.
    pub told: Buffer,
    pub partial: Buffer,
    pub batch: usize,
}

/// Sums a term over the places of each part of the batch, then over the parts: `sums[channel]` for `width` channels.
fn sum_parts(
    step: &Step<'_>,
    batch: usize,
    (partial, width): (Span, usize),
    term: impl Fn(usize, &mut [f32]) + Sync,
) -> Span {
    let part_rows = batch.div_ceil(PARTS);
    let used = step.rows.div_ceil(part_rows);
    step.crew.run(used, |part, _| {
        // SAFETY: the part of this task.
        let sums = unsafe { partial.piece(part, width).write() };
        sums.fill(0.0);
        for sample in part * part_rows..((part + 1) * part_rows).min(step.rows) {
            term(sample, sums);
        }
    });
    let total = partial.piece(0, width);
    for part in 1..used {
        // SAFETY: nothing else runs.
        unsafe { add(total.write(), partial.piece(part, width).read()) };
    }
    total
}

/// Adds up places in blocks; `term` adds one place.
#[inline(always)]
fn in_blocks<const N: usize>(
    sums: &mut [f32],
    places: usize,
    mut block: impl FnMut(std::ops::Range<usize>, usize, &mut [f32; N]),
) {
    // A few channels at a time, so that their sums stay in registers.
    let channels = sums.len();
    for first in (0..channels).step_by(N) {
        let mut start = 0;
        while start < places {
            let end = (start + BLOCK).min(places);
            let mut block_sums = [0.0; N];
            block(start..end, first, &mut block_sums);
            let width = N.min(channels - first);
            for (sum, value) in sums[first..first + width].iter_mut().zip(block_sums) {
                *sum += value;
            }
            start = end;
        }
    }
}

/// Channels that are summed together.
const LANES: usize = 32;

impl Op for Batch {
    fn run(&self, step: &Step<'_>) {
        let extent = self.extent;
        let (channels, len) = (extent.channels, extent.len());
        let x = step.span(self.x);
        let told = step.span(self.told);
        let running = [self.running.0, self.running.1].map(|buffer| step.span(buffer));
        let count = (step.rows * extent.places) as f32;
        // SAFETY: nothing else runs between the parallel parts; in them these are only read.
        unsafe {
            let (mean, inverse) = told.write().split_at_mut(channels);
            if step.training && !self.frozen {
                let partial = (step.span(self.partial), channels);
                let total = sum_parts(step, self.batch, partial, |sample, sums| {
                    let values = x.piece(sample, len).read();
                    vectorized(|| {
                        in_blocks::<LANES>(sums, extent.places, |places, first, sums| {
                            let width = LANES.min(channels - first);
                            for place in places {
                                let at = place * channels + first;
                                for (sum, value) in sums.iter_mut().zip(&values[at..at + width]) {
                                    *sum += value;
                                }
                            }
                        });
                    });
                });
                for (mean, sum) in mean.iter_mut().zip(total.read()) {
                    *mean = sum / count;
                }
                let known = &*mean;
                let total = sum_parts(step, self.batch, partial, |sample, sums| {
                    let values = x.piece(sample, len).read();
                    vectorized(|| {
                        in_blocks::<LANES>(sums, extent.places, |places, first, sums| {
                            let width = LANES.min(channels - first);
                            let mean = &known[first..first + width];
                            for place in places {
                                let at = place * channels + first;
                                for ((sum, value), mean) in sums.iter_mut().zip(&values[at..at + width]).zip(mean) {
                                    let away = value - mean;
                                    *sum += away * away;
                                }
                            }
                        });
                    });
                });
                let unbiased = count / (count - 1.0).max(1.0);
                let [running_mean, running_variance] = running.map(|span| span.write());
                for (channel, sum) in total.read().iter().enumerate() {
                    let variance = sum / count;
                    inverse[channel] = 1.0 / (variance + extent.epsilon).sqrt();
                    let follow = |old: &mut f32, new: f32| *old += self.momentum * (new - *old);
                    follow(&mut running_mean[channel], mean[channel]);
                    follow(&mut running_variance[channel], variance * unbiased);
                }
            } else {
                mean.copy_from_slice(running[0].read());
                for (inverse, variance) in inverse.iter_mut().zip(running[1].read()) {
                    *inverse = 1.0 / (variance + extent.epsilon).sqrt();
                }
            }
        }
        let [y, scale, shift] = [self.y, self.scale, self.shift].map(|buffer| step.span(buffer));
        let n_strips = strips(extent.places, channels);
        step.crew.run(step.rows * n_strips, |task, _| {
            let part = strip(extent.places, n_strips, task % n_strips);
            let part = part.start * channels..part.end * channels;
            // SAFETY: these places are of this task; the rest is only read.
            unsafe {
                let (mean, inverse) = told.read().split_at(channels);
                let vectors = Vectors {
                    mean,
                    inverse,
                    scale: scale.read(),
                    shift: shift.read(),
                };
                let from = x.piece(task / n_strips, len).part(part.clone()).read();
                let into = y.piece(task / n_strips, len).part(part).write();
                write_normed(extent, vectors, from, into);
            }
        });
    }
}

/// Strips that the places of a sample are cut into.
fn strips(places: usize, channels: usize) -> usize {
    (places * channels).div_ceil(1 << 15).clamp(1, places.max(1))
}

fn strip(places: usize, n_strips: usize, i: usize) -> std::ops::Range<usize> {
    i * places / n_strips..(i + 1) * places / n_strips
}

fn write_normed(extent: Extent, vectors: Vectors<'_>, from: &[f32], into: &mut [f32]) {
    let channels = extent.channels;
    vectorized(|| {
        for (from, into) in from.chunks_exact(channels).zip(into.chunks_exact_mut(channels)) {
            for channel in 0..channels {
                let factor = vectors.inverse[channel] * vectors.scale[channel];
                into[channel] = (from[channel] - vectors.mean[channel]) * factor + vectors.shift[channel];
            }
        }
    });
    if let Some(activation) = extent.activation {
        super::super::kernels::elementwise::activate(activation, into);
    }
}

pub(crate) struct BatchBack {
    pub extent: Extent,
    pub x: Buffer,
    pub slope: Buffer,
    pub scale: Buffer,
    pub shift: Buffer,
    pub frozen: bool,
    pub told: Buffer,
    pub partial: Buffer,
    pub x_slope: Option<(Buffer, bool)>,
    pub learned_scale: Option<Learned>,
    pub learned_shift: Option<Learned>,
    pub batch: usize,
}

impl Op for BatchBack {
    fn run(&self, step: &Step<'_>) {
        let extent = self.extent;
        let (channels, len) = (extent.channels, extent.len());
        let [x, slope, scale, shift, told] =
            [self.x, self.slope, self.scale, self.shift, self.told].map(|buffer| step.span(buffer));
        // SAFETY: these are only read until the end.
        let vectors = unsafe {
            let (mean, inverse) = told.read().split_at(channels);
            Vectors {
                mean,
                inverse,
                scale: scale.read(),
                shift: shift.read(),
            }
        };
        // Sums of the slopes, then of the slopes times the normed values.
        let partial = (step.span(self.partial), 2 * channels);
        let total = sum_parts(step, self.batch, partial, |sample, sums| {
            // SAFETY: only read.
            let (values, slopes) = unsafe { (x.piece(sample, len).read(), slope.piece(sample, len).read()) };
            let (plain, weighted) = sums.split_at_mut(channels);
            vectorized(|| {
                for first in (0..channels).step_by(LANES) {
                    let width = LANES.min(channels - first);
                    for start in (0..extent.places).step_by(BLOCK) {
                        let (mut a, mut b) = ([0.0; LANES], [0.0; LANES]);
                        for place in start..(start + BLOCK).min(extent.places) {
                            let at = place * channels + first;
                            let (values, slopes) = (&values[at..at + width], &slopes[at..at + width]);
                            for i in 0..width {
                                let (slope, normed) =
                                    undone(extent.activation, vectors, first + i, values[i], slopes[i]);
                                a[i] += slope;
                                b[i] += slope * normed;
                            }
                        }
                        for i in 0..width {
                            plain[first + i] += a[i];
                            weighted[first + i] += b[i];
                        }
                    }
                }
            });
        });
        // SAFETY: only read from here on.
        let (plain, weighted) = unsafe { total.read().split_at(channels) };
        let fixed = self.frozen || !step.training;
        let share = if fixed { 0.0 } else { 1.0 / (step.rows * extent.places) as f32 };
        if let Some((x_slope, added)) = self.x_slope {
            let x_slope = step.span(x_slope);
            let n_strips = strips(extent.places, channels);
            step.crew.run(step.rows * n_strips, |task, _| {
                let part = strip(extent.places, n_strips, task % n_strips);
                let part = part.start * channels..part.end * channels;
                let of = |span: Span| span.piece(task / n_strips, len).part(part.clone());
                // SAFETY: these places are of this task; the rest is only read.
                let (values, slopes, into) = unsafe { (of(x).read(), of(slope).read(), of(x_slope).write()) };
                vectorized(|| {
                    for ((values, slopes), into) in values
                        .chunks_exact(channels)
                        .zip(slopes.chunks_exact(channels))
                        .zip(into.chunks_exact_mut(channels))
                    {
                        for channel in 0..channels {
                            let (slope, normed) =
                                undone(extent.activation, vectors, channel, values[channel], slopes[channel]);
                            let away = (plain[channel] + normed * weighted[channel]) * share;
                            let value = vectors.scale[channel] * vectors.inverse[channel] * (slope - away);
                            into[channel] = if added { into[channel] + value } else { value };
                        }
                    }
                });
            });
        }
        // SAFETY: nothing else runs, and the vectors are not read any more.
        unsafe {
            if let Some(learned) = &self.learned_scale {
                learned.take(step, 0..channels, weighted);
            }
            if let Some(learned) = &self.learned_shift {
                learned.take(step, 0..channels, plain);
            }
        }
    }
}

/// A norm within a sample: of every place by its channels, or of groups of channels over all places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Within {
    pub extent: Extent,
    /// Groups of channels that are normed over all places; none where every place is by itself.
    pub groups: Option<usize>,
}

impl Within {
    /// Means and inverse deviations of a sample.
    pub(crate) fn told_len(&self) -> usize {
        2 * self.groups.unwrap_or(self.extent.places)
    }

    /// The values that segment `i` of a sample is of: places and channels.
    fn segment(&self, i: usize) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        match self.groups {
            None => (i..i + 1, 0..self.extent.channels),
            Some(groups) => {
                let width = self.extent.channels / groups;
                (0..self.extent.places, i * width..(i + 1) * width)
            }
        }
    }

    fn segments(&self) -> usize {
        self.told_len() / 2
    }
}

pub(crate) struct Forward {
    pub within: Within,
    pub x: Buffer,
    pub y: Buffer,
    pub scale: Buffer,
    pub shift: Buffer,
    pub told: Buffer,
}

/// Sums over the channels of places, in blocks.
#[inline(always)]
fn sum_segment(
    channels: usize,
    (places, range): (std::ops::Range<usize>, std::ops::Range<usize>),
    term: impl Fn(usize, usize) -> f32,
) -> f32 {
    let mut total = 0.0;
    for place in places {
        // Eight sums side by side, always added in the same order.
        let mut sums = [0.0f32; 8];
        for (i, channel) in range.clone().enumerate() {
            sums[i % 8] += term(place * channels + channel, channel);
        }
        total += sums.iter().sum::<f32>();
    }
    total
}

impl Op for Forward {
    fn run(&self, step: &Step<'_>) {
        let within = self.within;
        let extent = within.extent;
        let (channels, len) = (extent.channels, extent.len());
        let [x, y, scale, shift, told] =
            [self.x, self.y, self.scale, self.shift, self.told].map(|buffer| step.span(buffer));
        step.crew.run(step.rows, |sample, _| {
            // SAFETY: a sample is of one task; the rest is only read.
            let (values, out, told, scale, shift) = unsafe {
                (
                    x.piece(sample, len).read(),
                    y.piece(sample, len).write(),
                    told.piece(sample, within.told_len()).write(),
                    scale.read(),
                    shift.read(),
                )
            };
            vectorized(|| {
                for i in 0..within.segments() {
                    let (places, range) = within.segment(i);
                    let count = (places.len() * range.len()) as f32;
                    let of = (places.clone(), range.clone());
                    let mean = sum_segment(channels, of.clone(), |at, _| values[at]) / count;
                    let square = sum_segment(channels, of, |at, _| (values[at] - mean) * (values[at] - mean));
                    let inverse = 1.0 / (square / count + extent.epsilon).sqrt();
                    (told[2 * i], told[2 * i + 1]) = (mean, inverse);
                    for place in places {
                        for channel in range.clone() {
                            let at = place * channels + channel;
                            out[at] = (values[at] - mean) * inverse * scale[channel] + shift[channel];
                        }
                    }
                }
            });
            if let Some(activation) = extent.activation {
                super::super::kernels::elementwise::activate(activation, out);
            }
        });
    }
}

pub(crate) struct Backward {
    pub within: Within,
    pub x: Buffer,
    pub slope: Buffer,
    pub scale: Buffer,
    pub shift: Buffer,
    pub told: Buffer,
    pub partial: Buffer,
    pub x_slope: Option<(Buffer, bool)>,
    pub learned_scale: Option<Learned>,
    pub learned_shift: Option<Learned>,
    pub batch: usize,
}

impl Op for Backward {
    fn run(&self, step: &Step<'_>) {
        let within = self.within;
        let extent = within.extent;
        let (channels, len) = (extent.channels, extent.len());
        let [x, slope, scale, shift, told] =
            [self.x, self.slope, self.scale, self.shift, self.told].map(|buffer| step.span(buffer));
        let x_slope = self.x_slope.map(|(buffer, added)| (step.span(buffer), added));
        let partial = (step.span(self.partial), 2 * channels);
        let total = sum_parts(step, self.batch, partial, |sample, sums| {
            // SAFETY: a sample is of one task; the rest is only read.
            let (values, slopes, told, scale, shift) = unsafe {
                (
                    x.piece(sample, len).read(),
                    slope.piece(sample, len).read(),
                    told.piece(sample, within.told_len()).read(),
                    scale.read(),
                    shift.read(),
                )
            };
            // SAFETY: as above.
            let mut into = x_slope.map(|(x_slope, added)| unsafe { (x_slope.piece(sample, len).write(), added) });
            let (plain, weighted) = sums.split_at_mut(channels);
            vectorized(|| {
                for i in 0..within.segments() {
                    let (places, range) = within.segment(i);
                    let (mean, inverse) = (told[2 * i], told[2 * i + 1]);
                    let count = (places.len() * range.len()) as f32;
                    let undo = |at: usize, channel: usize| {
                        let normed = (values[at] - mean) * inverse;
                        let slope = match extent.activation {
                            None => slopes[at],
                            Some(activation) => {
                                slopes[at] * activation.slope_at(normed * scale[channel] + shift[channel])
                            }
                        };
                        (slope, normed)
                    };
                    let of = (places.clone(), range.clone());
                    let first = sum_segment(channels, of.clone(), |at, channel| {
                        undo(at, channel).0 * scale[channel]
                    }) / count;
                    let second = sum_segment(channels, of, |at, channel| {
                        let (slope, normed) = undo(at, channel);
                        slope * scale[channel] * normed
                    }) / count;
                    for place in places {
                        for channel in range.clone() {
                            let at = place * channels + channel;
                            let (slope, normed) = undo(at, channel);
                            plain[channel] += slope;
                            weighted[channel] += slope * normed;
                            if let Some((into, added)) = &mut into {
                                let value = inverse * (slope * scale[channel] - first - normed * second);
                                into[at] = if *added { into[at] + value } else { value };
                            }
                        }
                    }
                }
            });
        });
        // SAFETY: nothing else runs.
        unsafe {
            let (plain, weighted) = total.read().split_at(channels);
            if let Some(learned) = &self.learned_scale {
                learned.take(step, 0..channels, weighted);
            }
            if let Some(learned) = &self.learned_shift {
                learned.take(step, 0..channels, plain);
            }
        }
    }
}
