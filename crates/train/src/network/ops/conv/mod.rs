//! Convolutions: `y[p, :] = activation(b + Σ x[p + tap, :] · W[tap])` over the taps of the kernel.
//!
//! Wide images are taken as they stand ([`Correlation`]). Of small ones, whose rows make too short products, patches are
//! copied behind each other first, a few images at a time. 3×3 taps over many channels are done by tiles ([`Winograd`]),
//! with a quarter of the products. A max-pool that follows is done while the rows are in the cache,
//! and only what it keeps is written: the largest values, and where they were.

mod backward;
mod forward;
mod gathered;
mod pooled;
mod tiled;

pub(crate) use backward::Backward;
pub(crate) use forward::Forward;
pub(crate) use pooled::Pooled;

use super::super::kernels::correlate::{Axis, Correlation, Phase, backward};
use super::super::kernels::winograd::Winograd;
use super::super::shape::Window;

/// Columns below which products along a row are too short.
const NARROW: usize = 12;
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
    /// The way forward by tiles, and that back to the input.
    tiles: Option<Winograd>,
    tiles_back: Option<Winograd>,
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
        let phases = backward(&forward);
        let gathers = output[1] < NARROW;
        let tiles = Winograd::of(&forward).filter(|_| groups == 1 && !gathers);
        let tiles_back = match phases.as_slice() {
            [only] if tiles.is_some() => Winograd::of(&only.correlation),
            _ => None,
        };
        Extent {
            input,
            output,
            groups,
            forward,
            phases,
            gathers,
            tiles,
            tiles_back,
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

    /// The way by tiles, where a max-pool that follows does not reach over them.
    fn tiles(&self, pooled: Option<&Pooled>) -> Option<&Winograd> {
        let fits = pooled.is_none_or(|pooled| pooled.fits_tiles());
        self.tiles.as_ref().filter(|_| fits)
    }

    /// Values that the weights take once they are transformed for the way forward, where that is by tiles.
    pub(crate) fn tiled_weights(&self, pooled: Option<&Pooled>) -> Option<usize> {
        self.tiles(pooled).map(Winograd::weights_len)
    }

    /// The same for the way back to the input.
    pub(crate) fn tiled_weights_back(&self) -> Option<usize> {
        self.tiles_back.as_ref().map(Winograd::weights_len)
    }

    /// Whether the images are so wide that they are taken as they stand.
    pub(crate) fn is_direct(&self) -> bool {
        !self.gathers
    }

    /// Whether the way forward can take values as they wait in half precision, a few rows at a time.
    pub(crate) fn reads_halves(&self, pooled: Option<&Pooled>) -> bool {
        self.is_direct() && pooled.is_none() && self.tiles.is_none()
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
