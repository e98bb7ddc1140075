//! The way forward.

use std::ops::Range;

use super::super::super::arena::{Buffer, Span, bytes};
use super::super::super::kernels::elementwise::{activate, activate_into, fill_places};
use super::super::super::kernels::product::OVERREAD;
use super::super::super::layer::Activation;
use super::super::super::precision::Precision;
use super::super::super::step::{Op, Step};
use super::super::half;
use super::Extent;
use super::gathered::Gathered;
use super::pooled::{Pooled, pool_band};

pub(crate) struct Forward {
    pub extent: Extent,
    pub x: Buffer,
    /// What the values of `x` wait in, where they are not there in full: only for what [`Extent::reads_halves`].
    pub half: Option<Precision>,
    pub weight: Buffer,
    pub bias: Option<Buffer>,
    pub y: Buffer,
    pub activation: Option<Activation>,
    pub kept: Option<Buffer>,
    pub pooled: Option<Pooled>,
    /// Room for the weights, transformed for tiles.
    pub turned: Option<Buffer>,
}

impl Forward {
    pub(crate) fn scratch(extent: &Extent, pooled: Option<&Pooled>, half: Option<Precision>) -> usize {
        if half.is_some() {
            let bands = direct_bands(extent.output[0]);
            let rows = bands.map(|band| extent.forward.rows.sources_of(band).len());
            return rows.max().unwrap_or(0) * extent.forward.source_row + OVERREAD;
        }
        if let Some(tiles) = extent.tiles(pooled) {
            let band = pooled.map_or(0, |_| tiles.strip_rows() * extent.forward.out_row);
            return tiles.scratch_len() + band;
        }
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
                Some(bias) => fill_places(rows, bias.read()),
                None => rows.fill(0.0),
            }
        }
    }

    fn run_pooled(&self, step: &Step<'_>, pooled: &Pooled) {
        let extent = &self.extent;
        let [x, weight, y] = [self.x, self.weight, self.y].map(|buffer| step.span(buffer));
        let bias = self.bias.map(|bias| step.span(bias));
        let chosen = step.span(pooled.chosen);
        let line = pooled.out[1] * extent.output[2];
        let image = pooled.out[0] * line;
        // A few rows for each task: the last ones should not wait for one whole image.
        let strips = pooled.out[0].div_ceil(8);
        let n_strips = pooled.out[0].div_ceil(strips);
        step.crew.run(step.rows * n_strips, |task, thread| {
            let (sample, strip) = (task / n_strips, task % n_strips * strips);
            let source = x.piece(sample, extent.x_len());
            let band = step
                .scratch(thread)
                .part(0..pooled.size[0] * extent.forward.out_row);
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
                    let range = at..at + line;
                    self.pool(
                        pooled,
                        band.read(),
                        y.part(range.clone()),
                        &mut bytes(chosen)[range],
                    );
                }
            }
        });
    }

    /// Pools one line of windows, and activates what is kept.
    ///
    /// # Safety
    ///
    /// Nobody else uses these values.
    pub(super) unsafe fn pool(&self, pooled: &Pooled, band: &[f32], values: Span, chosen: &mut [u8]) {
        // SAFETY: the caller's.
        let values = unsafe { values.write() };
        pool_band(pooled, self.extent.output[2], band, values, chosen);
        if let Some(activation) = self.activation {
            activate(activation, values);
        }
    }

    fn run_direct(&self, step: &Step<'_>) {
        let extent = &self.extent;
        let [x, weight, y] = [self.x, self.weight, self.y].map(|buffer| step.span(buffer));
        let made = self.kept.map_or(y, |kept| step.span(kept));
        let bias = self.bias.map(|bias| step.span(bias));
        let bands = direct_bands(extent.output[0]);
        let n_bands = bands.len();
        step.crew.run(step.rows * n_bands, |task, thread| {
            let sample = task / n_bands;
            let Some(band) = bands.clone().nth(task % n_bands) else {
                return;
            };
            let line = extent.forward.out_row;
            let part = |span: Span| {
                span.piece(sample, extent.y_len())
                    .part(band.start * line..band.end * line)
            };
            let image = made.piece(sample, extent.y_len());
            // SAFETY: these rows of the output are of this task alone, the scratch of this thread.
            unsafe {
                let source = match self.half {
                    None => x.piece(sample, extent.x_len()).at(),
                    Some(precision) => {
                        let rows = extent.forward.rows.sources_of(band.clone());
                        let start = rows.start * extent.forward.source_row;
                        let room = step
                            .scratch(thread)
                            .part(0..rows.len() * extent.forward.source_row);
                        let first = sample * extent.x_len() + start;
                        half::grow(x, first..first + room.len(), precision, room.write());
                        // The correlation counts from the first row of the image.
                        room.at().wrapping_sub(start)
                    }
                };
                self.start(bias, part(made));
                for group in 0..extent.groups {
                    extent.forward.add(
                        band.clone(),
                        image.at().add(group * extent.forward.width),
                        source.wrapping_add(group * extent.forward.channels),
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
    pub(super) unsafe fn finish(&self, made: Span, y: Span) {
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

/// The rows of an image that are made by one task each, where they are made as they stand.
fn direct_bands(n_rows: usize) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
    let rows = n_rows.div_ceil(4).max(1);
    let starts = (0..n_rows).step_by(rows);
    starts.map(move |start| start..(start + rows).min(n_rows))
}

impl Op for Forward {
    fn run(&self, step: &Step<'_>) {
        let tiles = self.extent.tiles(self.pooled.as_ref());
        if let (Some(tiles), Some(turned)) = (tiles, self.turned) {
            return self.run_tiles(step, tiles, turned);
        }
        match &self.pooled {
            Some(pooled) => self.run_pooled(step, pooled),
            None if self.extent.gathers => self.run_gathered(step),
            None => self.run_direct(step),
        }
    }
}
