//! Convolutions over images that lie with their channels last, by products over the image as it stands.
//!
//! `out[y, x, :] += Σ source[y', x', :] · W[ty, tx]` over the taps `(ty, tx)` for which `(y', x')` is within the source.
//! Along a row of the source, the channels of neighbouring taps follow each other: all taps of a row are one product, whose
//! columns are the places of a row of the output. Nothing is copied, and the border is no zeros but fewer taps.
//!
//! The gradient by the source is a convolution, too ([`backward`]); that by the weights has the same products with places
//! and taps exchanged.

use std::ops::Range;

use super::product::{Kernels, Left, Out, Right, Sizes};

/// How the places of an output meet those of a source, along one axis: output `o` and tap `t` take the source at
/// `o · step + offset + t · dilation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    pub n: usize,
    pub source: usize,
    pub step: usize,
    pub offset: isize,
    pub taps: usize,
    pub dilation: usize,
}

impl Axis {
    fn at(&self, o: usize, t: usize) -> isize {
        (o * self.step + t * self.dilation) as isize + self.offset
    }

    /// Outputs for which a tap is within the source.
    fn outputs_of(&self, t: usize) -> Range<usize> {
        let shift = (t * self.dilation) as isize + self.offset;
        let step = self.step as isize;
        let first = (-shift).max(0).div_euclid(step) + isize::from((-shift).max(0) % step != 0);
        let last = (self.source as isize - 1 - shift).div_euclid(step) + 1;
        let end = last.clamp(0, self.n as isize) as usize;
        (first as usize).min(end)..end
    }

    /// Outputs for which all taps are.
    fn whole(&self) -> Range<usize> {
        let (start, end) = (self.outputs_of(0).start, self.outputs_of(self.taps - 1).end);
        start.min(end)..end
    }

    /// Outputs of which a tap may be among some places of the source.
    pub(crate) fn outputs_over(&self, places: Range<usize>) -> Range<usize> {
        let reach = ((self.taps - 1) * self.dilation) as isize;
        let step = self.step as isize;
        // The first that reaches the first place, and the last that begins before the end.
        let first = (places.start as isize - self.offset - reach + step - 1).div_euclid(step);
        let last = (places.end as isize - 1 - self.offset).div_euclid(step);
        let end = (last + 1).clamp(0, self.n as isize) as usize;
        (first.max(0) as usize).min(end)..end
    }

    /// Places of the source that some outputs take.
    pub(crate) fn sources_of(&self, outputs: Range<usize>) -> Range<usize> {
        let within = |at: isize| at.clamp(0, self.source as isize) as usize;
        let first = within(self.at(outputs.start, 0));
        match outputs.is_empty() {
            true => first..first,
            false => first..within(self.at(outputs.end - 1, self.taps - 1) + 1).max(first),
        }
    }

    /// Taps that are within the source for an output.
    pub(crate) fn taps_of(&self, o: usize) -> Range<usize> {
        let inside = |t: &usize| (0..self.source as isize).contains(&self.at(o, *t));
        let start = (0..self.taps).find(inside).unwrap_or(self.taps);
        let end = (start..self.taps).find(|t| !inside(t)).unwrap_or(self.taps);
        start..end
    }
}

/// A convolution of one image, or of one group of its channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Correlation {
    pub rows: Axis,
    pub cols: Axis,
    /// Channels of the source that a tap takes, and of the output.
    pub channels: usize,
    pub width: usize,
    /// From a row or column to the next.
    pub source_row: usize,
    pub source_col: usize,
    pub out_row: usize,
    pub out_col: usize,
}

impl Correlation {
    pub(crate) fn weights(&self) -> usize {
        self.rows.taps * self.cols.taps * self.channels * self.width
    }

    /// Whether the taps of a row are one product.
    fn merges(&self) -> bool {
        self.cols.taps == 1 || (self.cols.dilation == 1 && self.source_col == self.channels)
    }

    fn tap(&self, ty: usize, tx: usize) -> usize {
        (ty * self.cols.taps + tx) * self.channels * self.width
    }

    /// Every product of the rows `band`: calls `product` with first output (row, column), how many there are and the way
    /// from one to the next, the source of the first, the way there, the first tap, and how many follow it in the row.
    fn each(&self, band: Range<usize>, mut product: impl FnMut(Run)) {
        let mut along_row = |row: usize, ty: usize, outputs: Range<usize>, taps: Range<usize>| {
            if outputs.is_empty() {
                return;
            }
            product(Run {
                out: row * self.out_row + outputs.start * self.out_col,
                out_step: self.out_col,
                source: self.rows.at(row, ty) as usize * self.source_row
                    + self.cols.at(outputs.start, taps.start) as usize * self.source_col,
                source_step: self.cols.step * self.source_col,
                places: outputs.len(),
                weights: self.tap(ty, taps.start),
                values: taps.len() * self.channels,
            });
        };
        let merges = self.merges();
        let whole = self.cols.whole();
        for row in band.clone() {
            for ty in self.rows.taps_of(row) {
                match merges {
                    true => along_row(row, ty, whole.clone(), 0..self.cols.taps),
                    false => (0..self.cols.taps)
                        .for_each(|tx| along_row(row, ty, self.cols.outputs_of(tx), tx..tx + 1)),
                }
            }
        }
        if !merges {
            return;
        }
        // At the borders a column has fewer taps, the same in every row: products go down the column.
        for o in (0..whole.start).chain(whole.end..self.cols.n) {
            let taps = self.cols.taps_of(o);
            if taps.is_empty() {
                continue;
            }
            for ty in 0..self.rows.taps {
                let rows = self.rows.outputs_of(ty);
                let rows = rows.start.max(band.start)..rows.end.min(band.end);
                if rows.is_empty() {
                    continue;
                }
                product(Run {
                    out: rows.start * self.out_row + o * self.out_col,
                    out_step: self.out_row,
                    source: self.rows.at(rows.start, ty) as usize * self.source_row
                        + self.cols.at(o, taps.start) as usize * self.source_col,
                    source_step: self.rows.step * self.source_row,
                    places: rows.len(),
                    weights: self.tap(ty, taps.start),
                    values: taps.len() * self.channels,
                });
            }
        }
    }

    /// Adds the rows `band` of the output.
    ///
    /// # Safety
    ///
    /// The pointers are to buffers of this shape; nobody else uses those rows of the output. Weights may be read as
    /// [`Kernels::multiply`] says.
    pub(crate) unsafe fn add(
        &self,
        band: Range<usize>,
        out: *mut f32,
        source: *const f32,
        weights: *const f32,
    ) {
        let kernels = Kernels::get();
        self.each(band, |run| {
            let sizes = Sizes {
                m: self.width,
                n: run.places,
                k: run.values,
            };
            // SAFETY: the caller's; runs stay within the shapes.
            unsafe {
                let out = Out {
                    at: out.add(run.out),
                    n_stride: run.out_step,
                    add: true,
                };
                let left = Left {
                    at: weights.add(run.weights),
                    k_stride: self.width,
                };
                let right = Right {
                    at: source.add(run.source),
                    k_stride: 1,
                    n_stride: run.source_step,
                };
                kernels.multiply(sizes, out, left, right);
            }
        });
    }

    /// Adds what the rows `band` say of the weights: their gradient, where `slope` is that of the output.
    ///
    /// # Safety
    ///
    /// As for [`Correlation::add`], with `into` as what is written, and `slope` as what is read beyond its end.
    pub(crate) unsafe fn add_weights(
        &self,
        band: Range<usize>,
        into: *mut f32,
        slope: *const f32,
        source: *const f32,
    ) {
        let kernels = Kernels::get();
        self.each(band, |run| {
            let sizes = Sizes {
                m: self.width,
                n: run.values,
                k: run.places,
            };
            // SAFETY: the caller's; runs stay within the shapes.
            unsafe {
                let out = Out {
                    at: into.add(run.weights),
                    n_stride: self.width,
                    add: true,
                };
                let left = Left {
                    at: slope.add(run.out),
                    k_stride: run.out_step,
                };
                let right = Right {
                    at: source.add(run.source),
                    k_stride: run.source_step,
                    n_stride: 1,
                };
                kernels.multiply(sizes, out, left, right);
            }
        });
    }

    /// Where the source of a place and tap lies, if it is within.
    pub(crate) fn source_of(&self, row: usize, column: usize, tap: usize) -> Option<usize> {
        let y = self.rows.at(row, tap / self.cols.taps);
        let x = self.cols.at(column, tap % self.cols.taps);
        let inside =
            (0..self.rows.source as isize).contains(&y) && (0..self.cols.source as isize).contains(&x);
        inside.then(|| y as usize * self.source_row + x as usize * self.source_col)
    }

    /// Values in the patch of a place.
    pub(crate) fn patch(&self) -> usize {
        self.rows.taps * self.cols.taps * self.channels
    }

    /// Copies a part of the patches of a row of places behind each other, zeros where they leave the source.
    pub(crate) fn gather(&self, row: usize, part: Range<usize>, source: &[f32], into: &mut [f32]) {
        let channels = self.channels;
        for (o, patch) in into.chunks_exact_mut(part.len()).take(self.cols.n).enumerate() {
            for tap in part.start / channels..part.end.div_ceil(channels) {
                let start = tap * channels;
                let wanted = part.start.max(start)..part.end.min(start + channels);
                let patch = &mut patch[wanted.start - part.start..wanted.end - part.start];
                match self.source_of(row, o, tap) {
                    Some(at) => patch.copy_from_slice(&source[at + wanted.start - start..][..wanted.len()]),
                    None => patch.fill(0.0),
                }
            }
        }
    }
}

/// Places in a line, and the values of the source that each takes from one tap on.
struct Run {
    out: usize,
    out_step: usize,
    source: usize,
    source_step: usize,
    places: usize,
    weights: usize,
    values: usize,
}

/// A part of the gradient by the source: for places that are `step` apart, the taps that reach them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phase {
    pub correlation: Correlation,
    /// Where its first place is in the source.
    pub start: usize,
    /// The taps of the forward convolution, in its order.
    pub ty: Vec<usize>,
    pub tx: Vec<usize>,
}

/// The convolutions of the output's gradient that make up the source's, where `forward` makes the output. Their weights are
/// `[ty][tx][width][channels]`. Places that no tap reaches are in none.
pub(crate) fn backward(forward: &Correlation) -> Vec<Phase> {
    let mut phases = Vec::new();
    for (y, rows, ty) in phases_along(&forward.rows) {
        for (x, cols, tx) in phases_along(&forward.cols) {
            phases.push(Phase {
                correlation: Correlation {
                    rows,
                    cols,
                    channels: forward.width,
                    width: forward.channels,
                    source_row: forward.out_row,
                    source_col: forward.out_col,
                    out_row: forward.source_row * forward.rows.step,
                    out_col: forward.source_col * forward.cols.step,
                },
                start: y * forward.source_row + x * forward.source_col,
                ty: ty.clone(),
                tx: tx.clone(),
            });
        }
    }
    phases
}

fn phases_along(axis: &Axis) -> Vec<(usize, Axis, Vec<usize>)> {
    let step = axis.step as isize;
    let first_output = |place: usize, t: usize| place as isize - axis.offset - (t * axis.dilation) as isize;
    let mut phases = Vec::new();
    for place in 0..axis.step.min(axis.source) {
        // Later taps meet earlier outputs.
        let taps: Vec<usize> = (0..axis.taps)
            .rev()
            .filter(|&t| first_output(place, t).rem_euclid(step) == 0)
            .collect();
        let Some(&last) = taps.first() else { continue };
        let offset = first_output(place, last).div_euclid(step);
        let dilation = taps.get(1).map_or(1, |&t| (last - t) * axis.dilation / axis.step);
        let phase = Axis {
            n: (axis.source - place).div_ceil(axis.step),
            source: axis.n,
            step: 1,
            offset,
            taps: taps.len(),
            dilation,
        };
        phases.push((place, phase, taps));
    }
    phases
}
