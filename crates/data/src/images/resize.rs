//! Resizes pictures row by row, with a triangle as wide as the reduction.
//!
//! The filter is Pillow's `BILINEAR` and TensorFlow's `antialias=True`: every output pixel is the mean of the source
//! pixels around its centre, weighted by a triangle that reaches one output pixel to either side, but never less than one
//! source pixel. Enlarging, it is plain bilinear interpolation.
//!
//! ```text
//!   source rows ──▶ a weighted sum for every output row that is under way ──▶ a full row ──▶ its columns ──▶ u8
//! ```
//!
//! Rows first: at most two output rows are under way when rows are reduced, and one source row is kept when they are
//! enlarged. So the whole picture is never held. Sums are integers, and the same on every machine.

mod columns;
mod rows;
#[cfg(test)]
mod tests;
mod weights;

use std::ops::Range;

use weights::{Axis, Weights};

/// A part of the source, in source pixels. Edges between pixels are whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Rectangle {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Rectangle {
    pub(crate) fn whole(width: u32, height: u32) -> Rectangle {
        Rectangle {
            x: 0.0,
            y: 0.0,
            width: f64::from(width),
            height: f64::from(height),
        }
    }
}

/// From which size to which.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Geometry {
    pub source_width: usize,
    pub source_height: usize,
    /// What becomes the output. Pixels around it count where the triangle reaches them, as with Pillow's `box`.
    pub rectangle: Rectangle,
    pub width: usize,
    pub height: usize,
    /// Values of a pixel, 1 to 4, side by side.
    pub channels: usize,
}

impl Geometry {
    fn across(&self) -> Axis {
        Axis {
            source: self.source_width,
            from: self.rectangle.x,
            length: self.rectangle.width,
            out: self.width,
        }
    }

    fn down(&self) -> Axis {
        Axis {
            source: self.source_height,
            from: self.rectangle.y,
            length: self.rectangle.height,
            out: self.height,
        }
    }

    fn is_copy(&self) -> bool {
        self.across().is_copy() && self.down().is_copy()
    }

    /// Bytes that a new [`Resizer`] allocates for it, at most.
    pub(crate) fn bytes_needed(&self) -> u64 {
        if self.is_copy() {
            return 0;
        }
        let (across, down) = (self.across(), self.down());
        let values = (across.reach().len() * self.channels) as u64;
        let sums = match down.reduces() {
            true => values * (UNDER_WAY * size_of::<i32>()) as u64,
            false => values,
        };
        let line = (values + (across.taps() * self.channels) as u64) * size_of::<i16>() as u64;
        Weights::bytes(&across) + Weights::bytes(&down) + sums + line
    }
}

/// Output rows that have begun and not ended, at most: triangles overlap their neighbours alone. One more than two, for
/// centres that are rounded.
const UNDER_WAY: usize = 3;

/// Resizes one picture after the other; its buffers stay.
#[derive(Debug, Default)]
pub(crate) struct Resizer {
    geometry: Option<Geometry>,
    is_copy: bool,
    across: Weights,
    down: Weights,
    /// The columns of the source that count.
    columns: Range<usize>,
    /// Sums of the output rows under way, where rows are reduced.
    sums: Vec<i32>,
    /// The source row before, where they are not.
    before: Vec<u8>,
    /// A row whose columns are still those of the source, in 128ths.
    line: Vec<i16>,
    /// The next source row, and the next output row to end.
    next_source: usize,
    next_out: usize,
    kernels: Kernels,
}

/// Which of two ways to the same numbers is taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kernels {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Default for Kernels {
    /// The fastest way that this processor has.
    fn default() -> Kernels {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
            return Kernels::Avx2;
        }
        Kernels::Portable
    }
}

/// Rows that lie one below the other in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub bytes: &'a [u8],
    /// Bytes from one row to the next.
    pub stride: usize,
    pub n: usize,
}

impl<'a> Rows<'a> {
    fn row(&self, index: usize, values: Range<usize>) -> &'a [u8] {
        let start = index * self.stride;
        &self.bytes[start + values.start..start + values.end]
    }
}

/// Where the output goes.
#[derive(Debug)]
pub(crate) struct Canvas<'a> {
    pub bytes: &'a mut [u8],
    /// Bytes from one row to the next.
    pub stride: usize,
}

impl Resizer {
    pub(crate) fn with_kernels(kernels: Kernels) -> Resizer {
        Resizer {
            kernels,
            ..Resizer::default()
        }
    }

    /// Begins a picture. Nothing is computed or allocated anew for the geometry of the picture before.
    pub(crate) fn reset(&mut self, geometry: &Geometry) {
        self.next_source = 0;
        self.next_out = 0;
        if self.geometry == Some(*geometry) {
            return;
        }
        self.geometry = Some(*geometry);
        self.is_copy = geometry.is_copy();
        let (across, down) = (geometry.across(), geometry.down());
        self.columns = across.reach();
        if self.is_copy {
            return;
        }
        self.across.fill(&across);
        self.down.fill(&down);
        let values = self.columns.len() * geometry.channels;
        match down.reduces() {
            true => refit(&mut self.sums, values * UNDER_WAY),
            false => refit(&mut self.before, values),
        }
        refit(&mut self.line, values + across.taps() * geometry.channels);
    }

    /// The rows of the source that count; others may be pushed as anything.
    pub(crate) fn wanted_rows(&self) -> Range<usize> {
        self.geometry.map_or(0..0, |geometry| geometry.down().reach())
    }

    /// The columns of the source that count.
    pub(crate) fn wanted_columns(&self) -> Range<usize> {
        self.columns.clone()
    }

    /// Whether every row of the output is written.
    pub(crate) fn is_done(&self) -> bool {
        self.geometry
            .is_none_or(|geometry| self.next_out == geometry.height)
    }

    /// Takes the next rows of the source, and writes every output row that ends with them.
    pub(crate) fn push(&mut self, rows: Rows<'_>, canvas: &mut Canvas<'_>) {
        let Some(geometry) = self.geometry else {
            return;
        };
        let first = self.next_source;
        self.next_source += rows.n;
        if self.is_copy {
            return self.copy(&geometry, first, rows, canvas);
        }
        let end = first + rows.n;
        let values = self.columns.start * geometry.channels..self.columns.end * geometry.channels;
        let reduces = geometry.down().reduces();
        for out in self.next_out..geometry.height {
            let (start, weights) = self.down.of(out);
            if start >= end {
                break;
            }
            let last = start + weights.len();
            let ends = last <= end;
            let mut sum = rows::Sum {
                sums: match reduces {
                    true => {
                        let slot = out % UNDER_WAY * values.len();
                        &mut self.sums[slot..slot + values.len()]
                    }
                    false => &mut [],
                },
                line: &mut self.line[..values.len()],
                kernels: self.kernels,
            };
            if reduces {
                let mut at = start.max(first);
                while at < last.min(end) {
                    let step = (last.min(end) - at).min(2);
                    let upper = rows.row(at - first, values.clone());
                    let lower = rows.row(at - first + step - 1, values.clone());
                    let pair = rows::Pair {
                        rows: [upper, lower],
                        weights: [
                            weights[at - start],
                            if step == 2 { weights[at - start + 1] } else { 0 },
                        ],
                    };
                    sum.add(&pair, at == start, at + step == last);
                    at += step;
                }
            } else if ends {
                // Two rows at most: the upper one may be the last of those pushed before.
                let lower = rows.row(last - 1 - first, values.clone());
                let upper = match start.checked_sub(first) {
                    Some(index) => rows.row(index, values.clone()),
                    None => &self.before[..],
                };
                let pair = rows::Pair {
                    rows: [upper, lower],
                    weights: [weights[0], if weights.len() == 2 { weights[1] } else { 0 }],
                };
                sum.add(&pair, true, true);
            }
            if ends {
                let row = &mut canvas.bytes[out * canvas.stride..][..geometry.width * geometry.channels];
                let line = columns::Line {
                    values: &self.line,
                    first: self.columns.start,
                    channels: geometry.channels,
                };
                columns::sum(&self.across, line, row, self.kernels);
                self.next_out = out + 1;
            }
        }
        if !reduces && rows.n > 0 {
            self.before.copy_from_slice(rows.row(rows.n - 1, values));
        }
    }

    fn copy(&mut self, geometry: &Geometry, first: usize, rows: Rows<'_>, canvas: &mut Canvas<'_>) {
        let n_values = geometry.width * geometry.channels;
        for index in 0..rows.n.min(geometry.height.saturating_sub(first)) {
            let row = &mut canvas.bytes[(first + index) * canvas.stride..][..n_values];
            row.copy_from_slice(rows.row(index, 0..n_values));
            self.next_out = first + index + 1;
        }
    }

    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> u64 {
        let buffers = self.sums.capacity() * size_of::<i32>()
            + self.before.capacity()
            + self.line.capacity() * size_of::<i16>();
        self.across.held_bytes() + self.down.held_bytes() + buffers as u64
    }

    /// Gives all buffers back.
    pub(crate) fn release(&mut self) {
        *self = Resizer::with_kernels(self.kernels);
    }
}

/// Makes a buffer so long, with anything in it; where it must grow, what it held is given back first.
pub(crate) fn refit<T: Copy + Default>(buffer: &mut Vec<T>, len: usize) {
    if buffer.capacity() < len {
        *buffer = Vec::new();
        buffer.reserve_exact(len);
    }
    buffer.resize(len, T::default());
}
