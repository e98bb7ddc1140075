//! One component of the picture, from samples at a reduced size to the wanted size.

use std::ops::Range;

use super::header::{Colour, Header};
use super::idct::Quantization;
use super::resize::{Canvas, Geometry, Kernels, Rectangle, Resizer, Rows, refit};
use super::{Fault, Target};

/// Sizes of a component: a function of header and target.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Layout {
    /// Whether the target needs it: gray out of colours is the luma alone.
    pub is_wanted: bool,
    /// Whether its samples are the output as they are.
    pub is_output: bool,
    /// Points of its inverse transform.
    pub points: usize,
    /// Blocks of the component in either direction, and with those that fill up its last units.
    pub blocks: (usize, usize),
    pub padded_blocks: (usize, usize),
    /// Blocks of one unit in either direction.
    pub sampling: (usize, usize),
    pub geometry: Geometry,
    progressive: bool,
}

impl Layout {
    pub(super) fn new(header: &Header, target: &Target, index: usize) -> Layout {
        let component = header.components()[index];
        let (most_across, most_down) = header.densest();
        let (width, height) = (header.width as usize, header.height as usize);
        let across = (component.across, most_across);
        let down = (component.down, most_down);
        let rectangle = &target.rectangle;
        let is_enough = |points: &usize| {
            let scaled =
                |length: f64, (own, most): (usize, usize)| length * (own * points) as f64 / (most * 8) as f64;
            scaled(rectangle.width, across) >= target.width as f64
                && scaled(rectangle.height, down) >= target.height as f64
        };
        let points = [1, 2, 4].into_iter().find(is_enough).unwrap_or(8);
        let share =
            |length: f64, (own, most): (usize, usize)| length * (own * points) as f64 / (most * 8) as f64;
        let luma_is_enough = target.channels == 1 && matches!(header.colour, Colour::Gray | Colour::Ycc);
        Layout {
            is_wanted: index == 0 || !luma_is_enough,
            is_output: luma_is_enough,
            points,
            blocks: (
                (width * across.0).div_ceil(across.1).div_ceil(8),
                (height * down.0).div_ceil(down.1).div_ceil(8),
            ),
            padded_blocks: (
                width.div_ceil(most_across * 8) * across.0,
                height.div_ceil(most_down * 8) * down.0,
            ),
            sampling: (across.0, down.0),
            geometry: Geometry {
                source_width: (width * across.0 * points).div_ceil(across.1 * 8),
                source_height: (height * down.0 * points).div_ceil(down.1 * 8),
                rectangle: Rectangle {
                    x: share(rectangle.x, across),
                    y: share(rectangle.y, down),
                    width: share(rectangle.width, across),
                    height: share(rectangle.height, down),
                },
                width: target.width,
                height: target.height,
                channels: 1,
            },
            progressive: header.progressive,
        }
    }

    /// Bytes from one row of samples to the next.
    pub(super) fn stride(&self) -> usize {
        self.padded_blocks.0 * self.points
    }

    fn strip_bytes(&self) -> usize {
        self.stride() * self.sampling.1 * self.points
    }

    /// Coefficients of a block that are held from pass to pass: at an eighth of the size its mean is all that counts.
    pub(super) fn held_of_block(&self) -> usize {
        match (self.progressive, self.points) {
            (false, _) => 0,
            (true, 1) => 1,
            (true, _) => 64,
        }
    }

    fn n_coefficients(&self) -> usize {
        self.padded_blocks.0 * self.padded_blocks.1 * self.held_of_block()
    }

    fn out_bytes(&self) -> usize {
        match self.is_output {
            true => 0,
            false => self.geometry.width * self.geometry.height,
        }
    }

    pub(super) fn bytes_needed(&self) -> u64 {
        if !self.is_wanted {
            return 0;
        }
        let coefficients = self.n_coefficients() * size_of::<i16>();
        let own = self.strip_bytes() + coefficients + self.out_bytes();
        own as u64 + self.geometry.bytes_needed()
    }

    /// The blocks of a row that the target needs.
    pub(super) fn wanted_blocks(&self, columns: &Range<usize>) -> Range<usize> {
        columns.start / self.points..columns.end.div_ceil(self.points)
    }
}

#[derive(Debug)]
pub(super) struct Plane {
    pub layout: Layout,
    pub factors: Quantization,
    /// Rows of samples of one row of units.
    pub strip: Vec<u8>,
    /// The coefficients that count, block by block in the file's order, where the picture is told in several passes.
    pub coefficients: Vec<i16>,
    resizer: Resizer,
    /// Rows of samples that went to the resizer.
    n_pushed: usize,
    /// Samples at the wanted size.
    pub out: Vec<u8>,
}

impl Plane {
    pub(super) fn new(kernels: Kernels) -> Plane {
        Plane {
            layout: Layout::default(),
            factors: Quantization::NONE,
            strip: Vec::new(),
            coefficients: Vec::new(),
            resizer: Resizer::with_kernels(kernels),
            n_pushed: 0,
            out: Vec::new(),
        }
    }

    /// Begins a picture.
    pub(super) fn prepare(&mut self, layout: Layout) {
        self.n_pushed = 0;
        self.factors = Quantization::NONE;
        if layout.is_wanted {
            refit(&mut self.strip, layout.strip_bytes());
            refit(&mut self.coefficients, layout.n_coefficients());
            self.coefficients.fill(0);
            refit(&mut self.out, layout.out_bytes());
            self.resizer.reset(&layout.geometry);
        }
        self.layout = layout;
    }

    pub(super) fn quantize(&mut self, factors: Option<&[u16; 64]>, at: usize) -> Result<(), Fault> {
        let what = "no quantization table";
        let factors = factors.ok_or(Fault::Broken { at, what })?;
        self.factors = Quantization::new(self.layout.points, factors);
        Ok(())
    }

    /// The columns of samples that count.
    pub(super) fn wanted_columns(&self) -> Range<usize> {
        self.resizer.wanted_columns()
    }

    /// Whether any of the next rows of samples counts.
    pub(super) fn wants_rows(&self, n: usize) -> bool {
        let wanted = self.resizer.wanted_rows();
        self.n_pushed < wanted.end && self.n_pushed + n > wanted.start
    }

    /// Whether the target has all it needs.
    pub(super) fn is_done(&self) -> bool {
        self.resizer.is_done()
    }

    /// Sends the first rows of the strip on.
    pub(super) fn push(&mut self, n: usize, canvas: &mut Canvas<'_>) {
        let layout = &self.layout;
        let n = n.min(layout.geometry.source_height.saturating_sub(self.n_pushed));
        let rows = Rows {
            bytes: &self.strip,
            stride: layout.stride(),
            n,
        };
        self.n_pushed += n;
        match layout.is_output {
            true => self.resizer.push(rows, canvas),
            false => {
                let mut out = Canvas {
                    bytes: &mut self.out,
                    stride: layout.geometry.width,
                };
                self.resizer.push(rows, &mut out);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> u64 {
        let own =
            self.strip.capacity() + self.coefficients.capacity() * size_of::<i16>() + self.out.capacity();
        own as u64 + self.resizer.held_bytes()
    }
}
