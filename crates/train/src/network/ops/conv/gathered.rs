//! Convolutions of small images: patches are copied behind each other, a few images at a time.

use std::ops::Range;

use super::super::super::arena::Span;
use super::super::super::kernels::correlate::Correlation;
use super::super::super::kernels::elementwise::add;
use super::super::super::kernels::product::{Kernels, Left, OVERREAD, Out, Right, Sizes};

/// Places whose patches are copied together.
const GATHERED: usize = 64;
/// Values of `k` in one product.
const DEPTH: usize = 512;

/// Adds one correlation of several images, by patches.
pub(super) struct Gathered<'a> {
    pub correlation: &'a Correlation,
    pub weights: Span,
    /// Room for the patches, and for the places where they are not next to each other.
    pub scratch: Span,
}

impl Gathered<'_> {
    /// Images whose patches are copied together.
    pub(super) fn images(correlation: &Correlation) -> usize {
        (GATHERED / (correlation.rows.n * correlation.cols.n).max(1)).max(1)
    }

    /// Rows of an image whose patches are copied together.
    pub(super) fn rows(correlation: &Correlation) -> usize {
        (GATHERED / correlation.cols.n.max(1)).clamp(1, correlation.rows.n.max(1))
    }

    pub(super) fn scratch_len(correlation: &Correlation) -> usize {
        let places = Gathered::images(correlation) * Gathered::rows(correlation) * correlation.cols.n;
        places * (correlation.patch().min(DEPTH) + correlation.width) + 2 * OVERREAD
    }

    /// Adds the rows of some images: `images` gives the source and the output of each.
    ///
    /// # Safety
    ///
    /// Nobody else uses these outputs, or the scratch.
    pub(super) unsafe fn add(&self, images: impl Iterator<Item = (Span, Span)> + Clone, rows: Range<usize>) {
        let correlation = self.correlation;
        let (patch, width, columns) = (correlation.patch(), correlation.width, correlation.cols.n);
        let n_images = images.clone().count();
        let places = n_images * rows.len() * columns;
        let most = patch.min(DEPTH);
        let patches = self.scratch.part(0..places * most);
        let made = self.scratch.part(places * most..places * (most + width));
        for depth in (0..patch).step_by(DEPTH) {
            let part = depth..(depth + DEPTH).min(patch);
            for (i, (source, _)) in images.clone().enumerate() {
                for (j, row) in rows.clone().enumerate() {
                    let line = patches.piece(i * rows.len() + j, columns * part.len());
                    // SAFETY: the scratch is the caller's; the source is only read.
                    unsafe { correlation.gather(row, part.clone(), source.read(), line.write()) };
                }
            }
            let sizes = Sizes {
                m: width,
                n: places,
                k: part.len(),
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
                    at: patches.at(),
                    k_stride: 1,
                    n_stride: part.len(),
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
