//! Norms within a sample: of every place by its channels (`layer`), or of groups of channels over all places (`group`).
//!
//! The formulas are those of [`super::batch_norm`], with other means.

use std::cell::Cell;

use super::super::arena::Buffer;
use super::super::kernels::elementwise::activate;
use super::super::kernels::vectorized::vectorized;
use super::super::step::{Learned, Op, Step};
use super::batch_norm::{Extent, sum_parts};

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
        let len = extent.len();
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
            write_normed(within, values, (scale, shift), told, out);
            if let Some(activation) = extent.activation {
                activate(activation, out);
            }
        });
    }
}

vectorized! {
    fn write_normed(
        within: Within,
        values: &[f32],
        vectors: (&[f32], &[f32]),
        told: &mut [f32],
        out: &mut [f32],
    ) {
        let (scale, shift) = vectors;
        let channels = within.extent.channels;
        for i in 0..within.segments() {
            let (places, range) = within.segment(i);
            let count = (places.len() * range.len()) as f32;
            let of = (places.clone(), range.clone());
            let mean = sum_segment(channels, of.clone(), |at, _| values[at]) / count;
            let square = sum_segment(channels, of, |at, _| (values[at] - mean) * (values[at] - mean));
            let inverse = 1.0 / (square / count + within.extent.epsilon).sqrt();
            (told[2 * i], told[2 * i + 1]) = (mean, inverse);
            for place in places {
                for channel in range.clone() {
                    let at = place * channels + channel;
                    out[at] = (values[at] - mean) * inverse * scale[channel] + shift[channel];
                }
            }
        }
    }

    fn write_slopes(
        within: Within,
        given: (&[f32], &[Cell<f32>], &[f32]),
        vectors: (&[f32], &[f32]),
        sums: (&mut [f32], &mut [f32]),
        into: Option<(&[Cell<f32>], bool)>,
    ) {
        let ((values, slopes, told), (scale, shift), (plain, weighted)) = (given, vectors, sums);
        let channels = within.extent.channels;
        for i in 0..within.segments() {
            let (places, range) = within.segment(i);
            let (mean, inverse) = (told[2 * i], told[2 * i + 1]);
            let count = (places.len() * range.len()) as f32;
            let undo = |at: usize, channel: usize| {
                let normed = (values[at] - mean) * inverse;
                let slope = match within.extent.activation {
                    None => slopes[at].get(),
                    Some(activation) => slopes[at].get() * activation.slope_at(normed * scale[channel] + shift[channel]),
                };
                (slope, normed)
            };
            let of = (places.clone(), range.clone());
            let first = sum_segment(channels, of.clone(), |at, channel| undo(at, channel).0 * scale[channel]) / count;
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
                    if let Some((into, added)) = into {
                        let value = inverse * (slope * scale[channel] - first - normed * second);
                        into[at].set(if added { into[at].get() + value } else { value });
                    }
                }
            }
        }
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
    /// May be `slope`.
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
        let total = sum_parts(step, self.batch, partial, |sample, _, sums| {
            // SAFETY: a sample is of one task; the rest is only read.
            let (values, slopes, told, scale, shift) = unsafe {
                (
                    x.piece(sample, len).read(),
                    slope.piece(sample, len).cells(),
                    told.piece(sample, within.told_len()).read(),
                    scale.read(),
                    shift.read(),
                )
            };
            // SAFETY: as above.
            let into = x_slope.map(|(x_slope, added)| unsafe { (x_slope.piece(sample, len).cells(), added) });
            let (plain, weighted) = sums.split_at_mut(channels);
            write_slopes(
                within,
                (values, slopes, told),
                (scale, shift),
                (plain, weighted),
                into,
            );
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
