//! Pools: the largest value or the mean of a window, channel by channel; and those of whole images.

use std::ops::Range;

use super::super::arena::{Buffer, Span, bytes};
use super::super::kernels::correlate::Axis;
use super::super::kernels::elementwise::{add_places, give_chosen, keep_larger};
use super::super::kernels::vectorized::vectorized;
use super::super::layer::PoolKind;
use super::super::step::{Op, Step};

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

    /// The values of the source that a window covers: which tap, and where.
    fn window(&self, row: usize, column: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.rows.taps_of(row).flat_map(move |ty| {
            self.cols.taps_of(column).map(move |tx| {
                let y = row * self.rows.step + ty - (-self.rows.offset) as usize;
                let x = column * self.cols.step + tx - (-self.cols.offset) as usize;
                (ty * self.cols.taps + tx, (y * self.input[1] + x) * self.input[2])
            })
        })
    }

    fn places(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let channels = self.output[2];
        (0..self.output[0])
            .flat_map(move |row| (0..self.output[1]).map(move |column| (row, column)))
            .enumerate()
            .map(move |(place, (row, column))| (place * channels, row, column))
    }
}

pub(crate) struct Forward {
    pub kind: PoolKind,
    pub extent: Extent,
    pub x: Buffer,
    pub y: Buffer,
    /// The tap of the largest value, a byte for each.
    pub chosen: Option<Buffer>,
}

impl Op for Forward {
    fn run(&self, step: &Step<'_>) {
        let extent = &self.extent;
        let (x_len, y_len) = extent.lens();
        let [x, y] = [self.x, self.y].map(|buffer| step.span(buffer));
        let chosen = self.chosen.map(|chosen| step.span(chosen));
        step.crew.run(step.rows, |sample, _| {
            // SAFETY: a sample is of one task.
            let (source, out) = unsafe { (x.piece(sample, x_len).read(), y.piece(sample, y_len).write()) };
            // SAFETY: as above.
            let mut chosen = chosen.map(|chosen| unsafe { &mut bytes(chosen)[sample * y_len..][..y_len] });
            match (self.kind, &mut chosen) {
                (PoolKind::Average, _) => take_means(extent, source, out),
                (PoolKind::Max, Some(chosen)) => take_largest(extent, source, out, chosen),
                (PoolKind::Max, None) => take_largest(extent, source, out, &mut []),
            }
        });
    }
}

vectorized! {
    fn take_means(extent: &Extent, source: &[f32], out: &mut [f32]) {
        let channels = extent.output[2];
        for (at, row, column) in extent.places() {
            let values = &mut out[at..at + channels];
            values.fill(0.0);
            let mut count = 0.0;
            for (_, from) in extent.window(row, column) {
                count += 1.0;
                let source = &source[from..from + channels];
                values.iter_mut().zip(source).for_each(|(value, x)| *value += x);
            }
            let share = 1.0 / count;
            values.iter_mut().for_each(|value| *value *= share);
        }
    }

    /// `chosen` is empty where nobody asks.
    fn take_largest(extent: &Extent, source: &[f32], out: &mut [f32], chosen: &mut [u8]) {
        let channels = extent.output[2];
        for (at, row, column) in extent.places() {
            let values = &mut out[at..at + channels];
            values.fill(f32::NEG_INFINITY);
            for (tap, from) in extent.window(row, column) {
                let source = &source[from..from + channels];
                match chosen.get_mut(at..at + channels) {
                    Some(chosen) => keep_larger(values, chosen, source, tap as u8),
                    None => values.iter_mut().zip(source).for_each(|(value, x)| {
                        *value = if *x > *value || x.is_nan() { *x } else { *value };
                    }),
                }
            }
        }
    }

    fn give_to_largest(extent: &Extent, slopes: &[f32], chosen: &[u8], into: &mut [f32]) {
        let channels = extent.output[2];
        for (at, row, column) in extent.places() {
            let (slopes, chosen) = (&slopes[at..at + channels], &chosen[at..at + channels]);
            for (tap, to) in extent.window(row, column) {
                give_chosen::<true>(&mut into[to..to + channels], slopes, chosen, tap as u8);
            }
        }
    }

    /// As the two beside it, for some places of the source only; without `chosen` it is of means.
    fn spread_places(extent: &Extent, slopes: &[f32], chosen: Option<&[u8]>, places: Range<usize>, into: &mut [f32]) {
        let channels = extent.output[2];
        let columns = extent.input[1];
        let range = places.start * channels..places.end * channels;
        let rows = extent.rows.outputs_over(places.start / columns..places.end.div_ceil(columns));
        for row in rows {
            for column in 0..extent.output[1] {
                let at = (row * extent.output[1] + column) * channels;
                let slopes = &slopes[at..at + channels];
                let chosen = chosen.map(|chosen| &chosen[at..at + channels]);
                let share = match chosen {
                    Some(_) => 1.0,
                    None => 1.0 / extent.window(row, column).count() as f32,
                };
                for (tap, to) in extent.window(row, column) {
                    if !range.contains(&to) {
                        continue;
                    }
                    let into = &mut into[to - range.start..][..channels];
                    match chosen {
                        Some(chosen) => give_chosen::<true>(into, slopes, chosen, tap as u8),
                        None => into
                            .iter_mut()
                            .zip(slopes)
                            .for_each(|(into, slope)| *into += slope * share),
                    }
                }
            }
        }
    }

    fn give_to_all(extent: &Extent, slopes: &[f32], into: &mut [f32]) {
        let channels = extent.output[2];
        for (at, row, column) in extent.places() {
            let slopes = &slopes[at..at + channels];
            let share = 1.0 / extent.window(row, column).count() as f32;
            for (_, to) in extent.window(row, column) {
                let into = &mut into[to..to + channels];
                into.iter_mut()
                    .zip(slopes)
                    .for_each(|(into, slope)| *into += slope * share);
            }
        }
    }
}

pub(crate) struct Backward {
    pub extent: Extent,
    pub slope: Buffer,
    pub chosen: Option<Buffer>,
    pub x_slope: Buffer,
    pub add: bool,
}

impl Op for Backward {
    fn run(&self, step: &Step<'_>) {
        let extent = &self.extent;
        let (x_len, y_len) = extent.lens();
        let [slope, x_slope] = [self.slope, self.x_slope].map(|buffer| step.span(buffer));
        let chosen = self.chosen.map(|chosen| step.span(chosen));
        step.crew.run(step.rows, |sample, _| {
            // SAFETY: a sample is of one task.
            let (slopes, into) = unsafe {
                (
                    slope.piece(sample, y_len).read(),
                    x_slope.piece(sample, x_len).write(),
                )
            };
            // SAFETY: as above.
            let chosen = chosen.map(|chosen| unsafe { &bytes(chosen)[sample * y_len..][..y_len] });
            if !self.add {
                into.fill(0.0);
            }
            match chosen {
                Some(chosen) => give_to_largest(extent, slopes, chosen, into),
                None => give_to_all(extent, slopes, into),
            }
        });
    }
}

/// The way back of a pool that is done by the operation before it, a few places at a time.
pub(crate) struct Spread {
    pub extent: Extent,
    pub chosen: Option<Buffer>,
}

impl Spread {
    /// The slopes of some places of a sample, from those of what the pool made: the same sums as those of [`Backward`].
    ///
    /// # Safety
    ///
    /// Nobody writes the slopes that it is given.
    pub(super) unsafe fn spread(
        &self,
        step: &Step<'_>,
        slope: Span,
        sample: usize,
        places: Range<usize>,
        into: &mut [f32],
    ) {
        let (_, y_len) = self.extent.lens();
        // SAFETY: the caller's; nobody writes what was chosen on the way back.
        let (slopes, chosen) = unsafe {
            let chosen = self.chosen.map(|chosen| bytes(step.span(chosen)));
            (slope.piece(sample, y_len).read(), chosen)
        };
        let chosen = chosen.map(|chosen| &chosen[sample * y_len..][..y_len]);
        into.fill(0.0);
        spread_places(&self.extent, slopes, chosen, places, into);
    }
}

/// The pool of all places.
pub(crate) struct Global {
    pub kind: PoolKind,
    pub places: usize,
    pub channels: usize,
    pub x: Buffer,
    pub y: Buffer,
    /// The place of the largest value.
    pub chosen: Option<Buffer>,
}

impl Op for Global {
    fn run(&self, step: &Step<'_>) {
        let (places, channels) = (self.places, self.channels);
        let [x, y] = [self.x, self.y].map(|buffer| step.span(buffer));
        let chosen = self.chosen.map(|chosen| step.span(chosen));
        step.crew.run(step.rows, |sample, _| {
            // SAFETY: a sample is of one task.
            let (source, out) = unsafe {
                (
                    x.piece(sample, places * channels).read(),
                    y.piece(sample, channels).write(),
                )
            };
            match self.kind {
                PoolKind::Average => {
                    out.fill(0.0);
                    add_places(out, source);
                    let share = 1.0 / places as f32;
                    out.iter_mut().for_each(|value| *value *= share);
                }
                PoolKind::Max => {
                    out.copy_from_slice(&source[..channels]);
                    // SAFETY: as above.
                    let mut chosen =
                        chosen.map(|chosen: Span| unsafe { chosen.piece(sample, channels).write() });
                    if let Some(chosen) = &mut chosen {
                        chosen.fill(0.0);
                    }
                    for (place, values) in source.chunks_exact(channels).enumerate().skip(1) {
                        for (channel, value) in values.iter().enumerate() {
                            if *value > out[channel] || value.is_nan() {
                                out[channel] = *value;
                                if let Some(chosen) = &mut chosen {
                                    chosen[channel] = place as f32;
                                }
                            }
                        }
                    }
                }
            }
        });
    }
}

pub(crate) struct GlobalBack {
    pub places: usize,
    pub channels: usize,
    pub slope: Buffer,
    pub chosen: Option<Buffer>,
    pub x_slope: Buffer,
    pub add: bool,
}

impl Op for GlobalBack {
    fn run(&self, step: &Step<'_>) {
        let (places, channels) = (self.places, self.channels);
        let [slope, x_slope] = [self.slope, self.x_slope].map(|buffer| step.span(buffer));
        let chosen = self.chosen.map(|chosen| step.span(chosen));
        let share = 1.0 / places as f32;
        step.crew.run(step.rows, |sample, _| {
            // SAFETY: a sample is of one task.
            let (slopes, into) = unsafe {
                (
                    slope.piece(sample, channels).read(),
                    x_slope.piece(sample, places * channels).write(),
                )
            };
            // SAFETY: as above.
            let chosen = chosen.map(|chosen: Span| unsafe { chosen.piece(sample, channels).read() });
            for (place, into) in into.chunks_exact_mut(channels).enumerate() {
                for (channel, into) in into.iter_mut().enumerate() {
                    let value = match chosen {
                        Some(chosen) => f32::from(chosen[channel] == place as f32) * slopes[channel],
                        None => slopes[channel] * share,
                    };
                    *into = if self.add { *into + value } else { value };
                }
            }
        });
    }
}
