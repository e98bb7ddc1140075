//! Norms by the mean and deviation of a batch: `x̂ = (x - mean) / √(variance + ε)`, `y = activation(x̂ · scale + shift)`.
//!
//! Back, with `s = ∂y · scale` and means over what mean and variance were taken over:
//! `∂x = (s - mean(s) - x̂ · mean(s · x̂)) / √(variance + ε)`, `∂scale = Σ ∂y · x̂`, `∂shift = Σ ∂y`.
//! What the activation was given is worked out again rather than kept. Where a pool follows, `∂y` is never there as a whole:
//! it is spread a few places at a time, from the slopes of what the pool made.

use std::ops::Range;

use super::super::arena::{Buffer, Span};
use super::super::kernels::elementwise::{BLOCK, LANES, activate, add, add_places, add_squares};
use super::super::kernels::vectorized::vectorized;
use super::super::layer::Activation;
use super::super::step::{Learned, Op, Step};
use super::pool::Spread;

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

impl Extent {
    pub(super) fn len(&self) -> usize {
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

/// The slope of an activation by what it is given; which one it is must not be asked for every value.
#[inline(always)]
fn gate<const GATE: u8>(activation: Activation, given: f32) -> f32 {
    match GATE {
        NO_GATE => 1.0,
        RELU => {
            if given > 0.0 {
                1.0
            } else {
                0.0
            }
        }
        _ => activation.slope_at(given),
    }
}

const NO_GATE: u8 = 0;
const RELU: u8 = 1;
const OTHER: u8 = 2;

/// Calls a function for the gate of an activation.
macro_rules! by_gate {
    ($activation:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $activation {
            None => $function::<NO_GATE>(Activation::Relu, $($argument),*),
            Some(Activation::Relu) => $function::<RELU>(Activation::Relu, $($argument),*),
            Some(activation) => $function::<OTHER>(activation, $($argument),*),
        }
    };
}

/// A norm by the mean and deviation of the batch.
pub(crate) struct Forward {
    pub extent: Extent,
    pub x: Buffer,
    /// May be `x`.
    pub y: Buffer,
    pub scale: Buffer,
    pub shift: Buffer,
    pub running: (Buffer, Buffer),
    pub momentum: f32,
    /// Whether it stays as it is: the running mean and deviation are used, and kept.
    pub frozen: bool,
    /// Mean and inverse deviation of this batch.
    pub told: Buffer,
    /// Whether those are known already.
    pub again: bool,
    pub partial: Buffer,
    pub batch: usize,
}

/// Sums a term over the places of each part of the batch, then over the parts: `sums[channel]` for `width` channels. The
/// term is told its sample and thread.
pub(super) fn sum_parts(
    step: &Step<'_>,
    batch: usize,
    (partial, width): (Span, usize),
    term: impl Fn(usize, usize, &mut [f32]) + Sync,
) -> Span {
    let part_rows = batch.div_ceil(PARTS);
    let used = step.rows.div_ceil(part_rows);
    step.crew.run(used, |part, thread| {
        // SAFETY: the part of this task.
        let sums = unsafe { partial.piece(part, width).write() };
        sums.fill(0.0);
        for sample in part * part_rows..((part + 1) * part_rows).min(step.rows) {
            term(sample, thread, sums);
        }
    });
    let total = partial.piece(0, width);
    for part in 1..used {
        // SAFETY: nothing else runs.
        unsafe { add(total.write(), partial.piece(part, width).read()) };
    }
    total
}

impl Op for Forward {
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
            if self.again {
                // They are what they were.
            } else if step.training && !self.frozen {
                let partial = (step.span(self.partial), channels);
                let total = sum_parts(step, self.batch, partial, |sample, _, sums| {
                    add_places(sums, x.piece(sample, len).read());
                });
                for (mean, sum) in mean.iter_mut().zip(total.read()) {
                    *mean = sum / count;
                }
                let known = &*mean;
                let total = sum_parts(step, self.batch, partial, |sample, _, sums| {
                    add_squares(sums, x.piece(sample, len).read(), known);
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
                let of = |span: Span| span.piece(task / n_strips, len).part(part.clone());
                let into = of(y).write();
                match self.x == self.y {
                    true => norm_in_place(vectors, into),
                    false => write_normed(vectors, of(x).read(), into),
                }
                if let Some(activation) = extent.activation {
                    activate(activation, into);
                }
            }
        });
    }
}

/// Strips that the places of a sample are cut into.
fn strips(places: usize, channels: usize) -> usize {
    (places * channels).div_ceil(1 << 15).clamp(1, places.max(1))
}

fn strip(places: usize, n_strips: usize, i: usize) -> Range<usize> {
    i * places / n_strips..(i + 1) * places / n_strips
}

/// Places whose slopes are summed at a time, where they are spread from those of a pool: whole blocks, so that sums are the
/// same however they are cut.
fn band(channels: usize) -> usize {
    BLOCK * ((1 << 15) / (BLOCK * channels)).max(1)
}

impl Vectors<'_> {
    #[inline(always)]
    fn normed(&self, channel: usize, value: f32) -> f32 {
        let factor = self.inverse[channel] * self.scale[channel];
        (value - self.mean[channel]) * factor + self.shift[channel]
    }

    /// The same, all of one length for the compiler.
    #[inline(always)]
    fn trimmed(self) -> Self {
        let channels = self.mean.len();
        Vectors {
            mean: self.mean,
            inverse: &self.inverse[..channels],
            scale: &self.scale[..channels],
            shift: &self.shift[..channels],
        }
    }
}

vectorized! {
    fn write_normed(vectors: Vectors<'_>, from: &[f32], into: &mut [f32]) {
        let vectors = vectors.trimmed();
        let channels = vectors.mean.len();
        for (from, into) in from.chunks_exact(channels).zip(into.chunks_exact_mut(channels)) {
            for channel in 0..channels {
                into[channel] = vectors.normed(channel, from[channel]);
            }
        }
    }

    fn norm_in_place(vectors: Vectors<'_>, values: &mut [f32]) {
        let vectors = vectors.trimmed();
        let channels = vectors.mean.len();
        for values in values.chunks_exact_mut(channels) {
            for (channel, value) in values.iter_mut().enumerate() {
                *value = vectors.normed(channel, *value);
            }
        }
    }
}

/// So many values of a vector, from one on; zeros where it ends.
#[inline(always)]
fn lanes(vector: &[f32], first: usize) -> [f32; LANES] {
    let mut lanes = [0.0; LANES];
    lanes
        .iter_mut()
        .zip(&vector[first..])
        .for_each(|(lane, value)| *lane = *value);
    lanes
}

vectorized! {
    /// Adds up slopes before the activation, and slopes times normed values.
    fn add_slopes<const GATE: u8>(
        activation: Activation,
        vectors: Vectors<'_>,
        given: (&[f32], &[f32]),
        sums: (&mut [f32], &mut [f32]),
    ) {
        let ((values, slopes), (plain, weighted)) = (given, sums);
        let channels = vectors.mean.len();
        for first in (0..channels).step_by(LANES) {
            let [mean, inverse] = [lanes(vectors.mean, first), lanes(vectors.inverse, first)];
            let [scale, shift] = [lanes(vectors.scale, first), lanes(vectors.shift, first)];
            let blocks = values.chunks(BLOCK * channels).zip(slopes.chunks(BLOCK * channels));
            for (values, slopes) in blocks {
                let (mut a, mut b) = ([0.0f32; LANES], [0.0f32; LANES]);
                for (values, slopes) in values.chunks_exact(channels).zip(slopes.chunks_exact(channels)) {
                    let (values, slopes) = (&values[first..], &slopes[first..]);
                    // The rest of the channels is filled up with zeros, which add nothing.
                    let values = values.first_chunk::<LANES>().copied().unwrap_or_else(|| lanes(values, 0));
                    let slopes = slopes.first_chunk::<LANES>().copied().unwrap_or_else(|| lanes(slopes, 0));
                    for i in 0..LANES {
                        let normed = (values[i] - mean[i]) * inverse[i];
                        let slope = slopes[i] * gate::<GATE>(activation, normed * scale[i] + shift[i]);
                        a[i] += slope;
                        b[i] += slope * normed;
                    }
                }
                plain[first..].iter_mut().zip(a).for_each(|(sum, value)| *sum += value);
                weighted[first..].iter_mut().zip(b).for_each(|(sum, value)| *sum += value);
            }
        }
    }

    /// Writes the slopes by what was normed, over the values or slopes that it is given where there are no others.
    fn write_slopes<const GATE: u8>(
        activation: Activation,
        vectors: Vectors<'_>,
        sums: (&[f32], &[f32], f32),
        given: (Option<&[f32]>, Option<&[f32]>),
        into: (&mut [f32], bool),
    ) {
        let ((plain, weighted, share), (values, slopes), (into, added)) = (sums, given, into);
        let channels = vectors.mean.len();
        for first in (0..channels).step_by(LANES) {
            let [mean, inverse] = [lanes(vectors.mean, first), lanes(vectors.inverse, first)];
            let [scale, shift] = [lanes(vectors.scale, first), lanes(vectors.shift, first)];
            let [plain, weighted] = [lanes(plain, first), lanes(weighted, first)];
            for (place, into) in into.chunks_exact_mut(channels).enumerate() {
                let into = &mut into[first..];
                let part = place * channels + first..(place + 1) * channels;
                let values = values.map_or(&*into, |values| &values[part.clone()]);
                let slopes = slopes.map_or(&*into, |slopes| &slopes[part]);
                let values = values.first_chunk::<LANES>().copied().unwrap_or_else(|| lanes(values, 0));
                let slopes = slopes.first_chunk::<LANES>().copied().unwrap_or_else(|| lanes(slopes, 0));
                let mut made = [0.0f32; LANES];
                for i in 0..LANES {
                    let normed = (values[i] - mean[i]) * inverse[i];
                    let slope = slopes[i] * gate::<GATE>(activation, normed * scale[i] + shift[i]);
                    let away = (plain[i] + normed * weighted[i]) * share;
                    made[i] = scale[i] * inverse[i] * (slope - away);
                }
                match (into.first_chunk_mut::<LANES>(), added) {
                    (Some(into), false) => *into = made,
                    (Some(into), true) => (0..LANES).for_each(|i| into[i] += made[i]),
                    (None, _) => into
                        .iter_mut()
                        .zip(made)
                        .for_each(|(into, value)| *into = if added { *into + value } else { value }),
                }
            }
        }
    }
}

pub(crate) struct Backward {
    pub extent: Extent,
    pub x: Buffer,
    /// The slope of what it made, or of what a pool made of that.
    pub slope: Buffer,
    pub pooled: Option<Spread>,
    pub scale: Buffer,
    pub shift: Buffer,
    pub frozen: bool,
    pub told: Buffer,
    pub partial: Buffer,
    /// May be `x`, or `slope` where no pool follows.
    pub x_slope: Option<(Buffer, bool)>,
    pub learned_scale: Option<Learned>,
    pub learned_shift: Option<Learned>,
    pub batch: usize,
}

impl Backward {
    /// What a thread needs for slopes that are spread.
    pub(crate) fn scratch(extent: &Extent) -> usize {
        let strip = extent.places.div_ceil(strips(extent.places, extent.channels));
        strip.max(band(extent.channels).min(extent.places)) * extent.channels
    }

    /// The slopes of some places of a sample.
    ///
    /// # Safety
    ///
    /// Nobody writes them, and the scratch is of this thread.
    unsafe fn slopes<'a>(
        &self,
        step: &Step<'_>,
        (sample, thread): (usize, usize),
        places: Range<usize>,
    ) -> &'a [f32] {
        let (channels, slope) = (self.extent.channels, step.span(self.slope));
        let part = places.start * channels..places.end * channels;
        // SAFETY: the caller's.
        unsafe {
            let Some(pooled) = &self.pooled else {
                return slope.piece(sample, self.extent.len()).part(part).read();
            };
            let room = step.scratch(thread).part(0..part.len());
            pooled.spread(step, slope, sample, places, room.write());
            room.read()
        }
    }
}

impl Op for Backward {
    fn run(&self, step: &Step<'_>) {
        let extent = self.extent;
        let (channels, len) = (extent.channels, extent.len());
        let [x, scale, shift, told] =
            [self.x, self.scale, self.shift, self.told].map(|buffer| step.span(buffer));
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
        let at_once = match self.pooled {
            Some(_) => band(channels),
            None => extent.places.max(1),
        };
        let total = sum_parts(step, self.batch, partial, |sample, thread, sums| {
            let (plain, weighted) = sums.split_at_mut(channels);
            for first in (0..extent.places).step_by(at_once) {
                let places = first..(first + at_once).min(extent.places);
                let part = places.start * channels..places.end * channels;
                // SAFETY: only read; the scratch is of this thread.
                let (values, slopes) = unsafe {
                    (
                        x.piece(sample, len).part(part).read(),
                        self.slopes(step, (sample, thread), places),
                    )
                };
                by_gate!(
                    extent.activation,
                    add_slopes(vectors, (values, slopes), (&mut *plain, &mut *weighted))
                );
            }
        });
        // SAFETY: only read from here on.
        let (plain, weighted) = unsafe { total.read().split_at(channels) };
        let fixed = self.frozen || !step.training;
        let share = if fixed {
            0.0
        } else {
            1.0 / (step.rows * extent.places) as f32
        };
        if let Some((x_slope, added)) = self.x_slope {
            let (over_values, over_slopes) = (x_slope == self.x, x_slope == self.slope);
            let x_slope = step.span(x_slope);
            let n_strips = strips(extent.places, channels);
            step.crew.run(step.rows * n_strips, |task, thread| {
                let (sample, places) = (task / n_strips, strip(extent.places, n_strips, task % n_strips));
                let part = places.start * channels..places.end * channels;
                let of = |span: Span| span.piece(sample, len).part(part.clone());
                // SAFETY: these places are of this task, the scratch of this thread; the rest is only read, and not what is
                // written.
                let (values, slopes, into) = unsafe {
                    (
                        (!over_values).then(|| of(x).read()),
                        (!over_slopes).then(|| self.slopes(step, (sample, thread), places)),
                        of(x_slope).write(),
                    )
                };
                by_gate!(
                    extent.activation,
                    write_slopes(vectors, (plain, weighted, share), (values, slopes), (into, added))
                );
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
