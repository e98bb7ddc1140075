//! The shape of a sample: its axes, channels last.

use std::fmt;

use super::layer::{Axes, Padding};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape(pub Vec<usize>);

impl Shape {
    /// Values of a sample.
    pub fn len(&self) -> usize {
        product(&self.0)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The last axis.
    pub(crate) fn channels(&self) -> usize {
        self.0.last().copied().unwrap_or(1)
    }

    /// Everything but the last axis.
    pub(crate) fn places(&self) -> usize {
        self.0[..self.0.len().saturating_sub(1)].iter().product()
    }

    /// Rows, columns and channels, where it is an image or a sequence.
    pub(crate) fn image(&self) -> Option<[usize; 3]> {
        match *self.0.as_slice() {
            [length, channels] => Some([1, length, channels]),
            [rows, columns, channels] => Some([rows, columns, channels]),
            _ => None,
        }
    }
}

/// A product that stays at the largest number rather than begin anew.
pub(crate) fn product(factors: &[usize]) -> usize {
    factors
        .iter()
        .fold(1, |product, factor| product.saturating_mul(*factor))
}

/// `28×28×1`
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut axes = self.0.iter();
        match axes.next() {
            None => write!(f, "one value"),
            Some(first) => {
                write!(f, "{first}")?;
                axes.try_for_each(|axis| write!(f, "×{axis}"))
            }
        }
    }
}

/// A window that moves over an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub kernel: [usize; 2],
    pub stride: [usize; 2],
    pub dilation: [usize; 2],
    /// Before the first row and column.
    pub before: [usize; 2],
}

impl Window {
    /// The window and the rows and columns of its output; what is wrong where it does not fit.
    pub(crate) fn over(
        [rows, columns]: [usize; 2],
        two: bool,
        kernel: Axes,
        stride: Axes,
        dilation: Axes,
        padding: Padding,
    ) -> Result<(Window, [usize; 2]), String> {
        let (kernel, stride, dilation) = (kernel.of(two), stride.of(two), dilation.of(two));
        if kernel.contains(&0) || stride.contains(&0) || dilation.contains(&0) {
            return Err("a kernel, stride and dilation of 1 or more".into());
        }
        let mut window = Window {
            kernel,
            stride,
            dilation,
            before: [0; 2],
        };
        let mut out = [0; 2];
        for (axis, size) in [rows, columns].into_iter().enumerate() {
            let reach = dilation[axis] * (kernel[axis] - 1) + 1;
            let (before, after) = match padding {
                Padding::Valid => (0, 0),
                Padding::Same => {
                    let wanted = (size.div_ceil(stride[axis]) - 1) * stride[axis] + reach;
                    let total = wanted.saturating_sub(size);
                    (total / 2, total - total / 2)
                }
                Padding::Zeros(zeros) => {
                    let zeros = if two || axis == 1 { zeros.of(two)[axis] } else { 0 };
                    (zeros, zeros)
                }
            };
            let padded = size + before + after;
            if padded < reach {
                let what = if axis == 0 { "rows" } else { "columns" };
                return Err(format!("at least {reach} {what}, or padding"));
            }
            window.before[axis] = before;
            out[axis] = (padded - reach) / stride[axis] + 1;
        }
        Ok((window, out))
    }
}
