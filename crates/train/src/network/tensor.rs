//! The tensors of a network: how they lie in memory and on disk, and what they start as.

use super::shape::product;

/// A tensor that belongs to a layer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Weight {
    pub name: String,
    /// On disk.
    pub form: Form,
    pub initial: Initial,
    /// Whether it is learned; others are only kept.
    pub learned: bool,
}

/// How a tensor lies in memory, and how on disk: there as PyTorch has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Vector(usize),
    /// `[inputs][outputs]`; on disk the other way.
    Dense {
        inputs: usize,
        outputs: usize,
    },
    /// `[group][row][column][input][output]`; on disk `[output][input][row][column]`, or without rows.
    Conv {
        groups: usize,
        kernel: [usize; 2],
        /// Of one group.
        inputs: usize,
        outputs: usize,
        two: bool,
    },
    /// `[row][column][output]`
    Depthwise {
        kernel: [usize; 2],
        outputs: usize,
        two: bool,
    },
    /// The same on disk.
    Rows {
        rows: usize,
        width: usize,
    },
}

impl Form {
    pub(crate) fn len(self) -> usize {
        product(&self.shape())
    }

    /// On disk.
    pub(crate) fn shape(self) -> Vec<usize> {
        let spatial = |kernel: [usize; 2], two: bool| match two {
            true => kernel.to_vec(),
            false => vec![kernel[1]],
        };
        match self {
            Form::Vector(n) => vec![n],
            Form::Dense { inputs, outputs } => vec![outputs, inputs],
            Form::Conv {
                groups,
                kernel,
                inputs,
                outputs,
                two,
            } => [vec![groups * outputs, inputs], spatial(kernel, two)].concat(),
            Form::Depthwise { kernel, outputs, two } => [vec![outputs, 1], spatial(kernel, two)].concat(),
            Form::Rows { rows, width } => vec![rows, width],
        }
    }

    /// Where the value that is `i`-th on disk lies in memory.
    pub(crate) fn place(self, i: usize) -> usize {
        match self {
            Form::Vector(_) | Form::Rows { .. } => i,
            Form::Dense { inputs, outputs } => i % inputs * outputs + i / inputs,
            Form::Conv {
                kernel,
                inputs,
                outputs,
                ..
            } => {
                let taps = kernel[0] * kernel[1];
                let (tap, input, output) = (i % taps, i / taps % inputs, i / taps / inputs);
                let (group, output) = (output / outputs, output % outputs);
                ((group * taps + tap) * inputs + input) * outputs + output
            }
            Form::Depthwise { kernel, outputs, .. } => {
                let taps = kernel[0] * kernel[1];
                i % taps * outputs + i / taps
            }
        }
    }
}

/// What a tensor starts as.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Initial {
    Constant(f32),
    /// Evenly between minus and plus this.
    Uniform(f32),
    /// By the normal distribution with this deviation.
    Normal(f32),
}
