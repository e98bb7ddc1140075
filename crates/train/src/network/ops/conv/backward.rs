//! The way back: slopes of the input, gradients of the weights.

use std::ops::Range;

use super::super::super::arena::{Buffer, Span, bytes};
use super::super::super::kernels::correlate::Phase;
use super::super::super::kernels::elementwise::{activate_slopes, add, add_places, transpose};
use super::super::super::kernels::product::{Kernels, Left, OVERREAD, Out, Right, Sizes};
use super::super::super::kernels::winograd::{Start, Winograd};
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
    /// Where the slope of the input goes, and whether it is added to what is there. May be `x`: what an image says of the
    /// weights comes first.
    pub x_slope: Option<(Buffer, bool)>,
    /// Room for the weights with inputs and outputs exchanged, and for these transformed for tiles.
    pub turned: Option<Buffer>,
    pub tiled: Option<Buffer>,
    pub partial: Option<Buffer>,
    pub learned: Option<Learned>,
    pub bias: Option<Learned>,
    pub batch: usize,
}

impl Backward {
    pub(crate) fn scratch(extent: &Extent, pooled: Option<&Pooled>, to_input: bool) -> usize {
        let spread = match pooled {
            Some(pooled) if !to_input && extent.tiles.is_none() => {
                band_rows(extent, pooled) * extent.forward.out_row
            }
            Some(_) => extent.y_len(),
            None => 0,
        };
        let tiles = [&extent.tiles, &extent.tiles_back].into_iter().flatten();
        let tiles = tiles.map(Winograd::scratch_len).max().unwrap_or(0);
        let spread = spread + tiles + extent.tiles.as_ref().map_or(0, Winograd::weights_len);
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
        let partial = self.partial.map(|partial| step.span(partial));
        let x_slope = self.x_slope.map(|(buffer, add)| (step.span(buffer), add));
        let parts = extent.parts(self.batch);
        let part_rows = self.batch.div_ceil(parts);
        let used = step.rows.div_ceil(part_rows);
        let tiled = self.turn_tiles(step, turned);
        step.crew.run(used, |part, thread| {
            let sums = partial.map(|partial| partial.piece(part, extent.part_len()));
            let room = Room::of(extent, step.scratch(thread));
            // SAFETY: the part of this task, and its samples, whose values are not read any more once their slopes are
            // written; the scratch is of this thread; the rest is only read.
            unsafe {
                if let Some(sums) = sums {
                    sums.write().fill(0.0);
                    room.sums.write().fill(0.0);
                }
                for sample in part * part_rows..((part + 1) * part_rows).min(step.rows) {
                    let slope = self.add_sums(step, sample, sums, &room, x_slope.is_some());
                    if let (Some((x_slope, added)), Some(turned)) = (x_slope, turned) {
                        let x_slope = x_slope.piece(sample, extent.x_len());
                        match (&extent.tiles_back, tiled) {
                            (Some(tiles), Some(tiled)) => {
                                back_by_tiles(tiles, tiled, slope, x_slope, added, room.tiles);
                            }
                            _ => {
                                if !added {
                                    x_slope.write().fill(0.0);
                                }
                                self.to_input(turned, slope, x_slope);
                            }
                        }
                    }
                }
                if let (Some(tiles), Some(sums)) = (&extent.tiles, sums) {
                    tiles.add_turned_weights(room.sums.read(), sums.part(0..extent.weights()).write());
                }
            }
        });
        let Some(partial) = partial else { return };
        // All outputs of an input are of one task.
        let chunk = extent.part_len().div_ceil(16).max(1024);
        let chunk = chunk.next_multiple_of(extent.forward.width);
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

    /// Transforms the turned weights for the way back by tiles.
    fn turn_tiles(&self, step: &Step<'_>, turned: Option<Span>) -> Option<Span> {
        let (tiles, turned) = (self.extent.tiles_back.as_ref()?, turned?);
        let tiled = step.span(self.tiled?);
        // SAFETY: nothing else runs.
        unsafe { tiles.turn_weights(turned.read(), tiled.write()) };
        Some(tiled)
    }

    /// Adds what one image says of the weights and biases. Returns the slope of the convolution, where `whole` asks for it
    /// or it is there.
    ///
    /// # Safety
    ///
    /// Nobody else uses the sums and the room, or the slope of this image.
    unsafe fn add_sums(
        &self,
        step: &Step<'_>,
        sample: usize,
        sums: Option<Span>,
        room: &Room,
        whole: bool,
    ) -> Span {
        let extent = &self.extent;
        let biases = sums.map(|sums| sums.part(extent.weights()..extent.part_len()));
        let slope = step.span(self.slope);
        // SAFETY: the caller's.
        unsafe {
            let Some((pooled, values, activation)) = &self.pooled else {
                let slope = slope.piece(sample, extent.y_len());
                self.add_rows(step, sample, 0..extent.output[0], slope, sums, room);
                if let Some(biases) = biases {
                    add_places(biases.write(), slope.read());
                }
                return slope;
            };
            // Nothing asks for the slope of what was kept later.
            let kept = pooled.out[0] * pooled.out[1] * extent.output[2];
            let slopes = slope.piece(sample, kept).write();
            if let Some(activation) = activation {
                let values = step.span(*values).piece(sample, kept);
                activate_slopes(*activation, slopes, values.read());
            }
            // The others of a window have none.
            if let Some(biases) = biases {
                add_places(biases.write(), slopes);
            }
            let chosen = &bytes(step.span(pooled.chosen))[sample * kept..(sample + 1) * kept];
            let line = extent.forward.out_row;
            let covered = pooled.out[0] * pooled.size[0];
            if whole || extent.tiles.is_some() {
                let made = room.spread.part(0..extent.y_len());
                spread(
                    pooled,
                    0..pooled.out[0],
                    extent.output[2],
                    slopes,
                    chosen,
                    made.part(0..covered * line).write(),
                );
                made.part(covered * line..extent.y_len()).write().fill(0.0);
                self.add_rows(step, sample, 0..extent.output[0], made, sums, room);
                return made;
            }
            // A few rows at a time, while they are in the cache.
            let rows = band_rows(extent, pooled) / pooled.size[0];
            for first in (0..pooled.out[0]).step_by(rows) {
                let lines = first..(first + rows).min(pooled.out[0]);
                let rows = lines.start * pooled.size[0]..lines.end * pooled.size[0];
                let band = room.spread.part(0..rows.len() * line);
                spread(pooled, lines, extent.output[2], slopes, chosen, band.write());
                self.add_rows(step, sample, rows, band, sums, room);
            }
        }
        room.spread
    }

    /// Adds what some rows say of the weights; `slope` is theirs alone.
    ///
    /// # Safety
    ///
    /// Nobody else uses the sums and the room.
    unsafe fn add_rows(
        &self,
        step: &Step<'_>,
        sample: usize,
        rows: Range<usize>,
        slope: Span,
        sums: Option<Span>,
        room: &Room,
    ) {
        let extent = &self.extent;
        let Some(sums) = sums else { return };
        let source = step.span(self.x).piece(sample, extent.x_len());
        // SAFETY: the caller's; the correlation counts from the first row of the image.
        unsafe {
            if let Some(tiles) = &extent.tiles {
                for strip in 0..tiles.n_strips() {
                    let (room, sums) = (room.tiles.write(), room.sums.write());
                    tiles.add_weights(strip, source.read(), slope.read(), room, sums);
                }
                return;
            }
            let start = slope.at().wrapping_sub(rows.start * extent.forward.out_row);
            for group in 0..extent.groups {
                extent.forward.add_weights(
                    rows.clone(),
                    sums.at().add(group * extent.forward.weights()),
                    start.wrapping_add(group * extent.forward.width),
                    source.at().add(group * extent.forward.channels),
                );
            }
        }
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

/// What a thread has for itself.
struct Room {
    /// The slope of the convolution, where only that of what a max-pool kept is there.
    spread: Span,
    /// The gradient of the transformed weights, and what tiles take.
    sums: Span,
    tiles: Span,
}

impl Room {
    fn of(extent: &Extent, scratch: Span) -> Room {
        let tiles = [&extent.tiles, &extent.tiles_back].into_iter().flatten();
        let tiles = tiles.map(Winograd::scratch_len).max().unwrap_or(0);
        let sums = extent.tiles.as_ref().map_or(0, Winograd::weights_len);
        Room {
            sums: scratch.part(0..sums),
            tiles: scratch.part(sums..sums + tiles),
            spread: scratch.part(sums + tiles..scratch.len()),
        }
    }
}

/// Rows that are spread at a time: about half of the second-level cache of most processors.
fn band_rows(extent: &Extent, pooled: &Pooled) -> usize {
    let lines = BAND / (pooled.size[0] * extent.forward.out_row).max(1);
    lines.clamp(1, pooled.out[0].max(1)) * pooled.size[0]
}

const BAND: usize = 1 << 15;

/// Puts the slopes of some lines of windows where the largest values were.
fn spread(
    pooled: &Pooled,
    lines: Range<usize>,
    channels: usize,
    slopes: &[f32],
    chosen: &[u8],
    into: &mut [f32],
) {
    let line = pooled.out[1] * channels;
    let band = into.len() / lines.len().max(1);
    for (row, band) in lines.zip(into.chunks_exact_mut(band)) {
        let range = row * line..(row + 1) * line;
        spread_band(pooled, channels, &slopes[range.clone()], &chosen[range], band);
    }
}

/// The slope of one image's input, by tiles.
///
/// # Safety
///
/// Nobody else uses it, or the room.
unsafe fn back_by_tiles(tiles: &Winograd, tiled: Span, slope: Span, x_slope: Span, added: bool, room: Span) {
    let start = if added { Start::Added } else { Start::Zero };
    for strip in 0..tiles.n_strips() {
        let rows = tiles.rows_of(strip);
        let line = tiles.out_row();
        let out = x_slope.part(rows.start * line..rows.end * line);
        // SAFETY: the caller's.
        unsafe { tiles.make(strip, slope.read(), tiled.at(), room.write(), start, out.write()) };
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
        if let (Some(x_slope), Some(turned)) = (self.x_slope, turned) {
            match extent.gathers {
                true => self.run_gathered_input(step, turned, x_slope),
                false => self.run_images(step, Some(turned)),
            }
        }
    }
}
