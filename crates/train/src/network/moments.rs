//! What the optimizer keeps of each weight: in four bytes, in two, or in one.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::arena::{Span, values_of};
use super::kernels::moments as kernels;
use super::ops::dense;
use super::ops::pointwise::mix;
use super::tensor::Form;

/// In which form the optimizer keeps its moments: running means of gradients and of their squares, or velocities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Moments {
    #[default]
    F32,
    Bf16,
    /// One byte each, with a scale for every block.
    #[serde(rename = "8bit")]
    Int8,
}

/// Tensors of fewer values stay as they are: they cost nothing, and are the most delicate.
/// bitsandbytes (`min_8bit_size`) has the same bound.
const SMALL: usize = 4096;
/// Values that share a scale, at the most: eight bits are better the fewer share one, and 256 make its four bytes 1.6%.
pub(crate) const BLOCK: usize = 256;
/// Blocks of fewer values would save little more than two bytes each do.
const LEAST_BLOCK: usize = 16;

/// How the moments of one tensor lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    F32,
    Bf16,
    Int8(Blocks),
}

/// A tensor is cut into units, which operations never divide, and each of those into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// Values of the tensor.
    len: usize,
    unit: usize,
    block: usize,
}

impl Packing {
    pub(crate) fn new(moments: Moments, form: Form) -> Packing {
        let len = form.len();
        // What an operation takes at a time is whole units.
        let unit = match form {
            Form::Vector(_) => return Packing::F32,
            Form::Dense { outputs, .. } => dense::LEAST_CHUNK * outputs,
            Form::Conv { outputs, .. } | Form::Depthwise { outputs, .. } => outputs,
            Form::Rows { width, .. } => width,
        };
        match moments {
            _ if len < SMALL => Packing::F32,
            Moments::F32 => Packing::F32,
            Moments::Int8 if unit >= LEAST_BLOCK => {
                let even = unit.div_ceil(unit.div_ceil(BLOCK));
                let block = even.next_multiple_of(kernels::LANES);
                Packing::Int8(Blocks { len, unit, block })
            }
            Moments::Int8 | Moments::Bf16 => Packing::Bf16,
        }
    }

    /// Values of the arena that a moment of so many weights takes.
    pub(crate) fn room(&self, len: usize) -> usize {
        match self {
            Packing::F32 => len,
            Packing::Bf16 => values_of(2 * len),
            Packing::Int8(blocks) => values_of(len) + blocks.count(),
        }
    }

    /// Tasks take whole multiples of this.
    pub(crate) fn unit(&self) -> usize {
        match self {
            Packing::F32 | Packing::Bf16 => 1,
            Packing::Int8(blocks) => blocks.unit,
        }
    }

    /// Where what begins at `at` ends, if it is unpacked at once: no more than [`BLOCK`] values further.
    pub(crate) fn end(&self, at: usize) -> usize {
        match self {
            Packing::F32 | Packing::Bf16 => at + BLOCK,
            Packing::Int8(blocks) => blocks.end(at),
        }
    }

    /// Unpacks a part, which ends where [`Packing::end`] says or earlier.
    ///
    /// # Safety
    ///
    /// Nobody writes this part of the moment.
    pub(crate) unsafe fn load(&self, moment: Span, part: Range<usize>, signed: bool, values: &mut [f32]) {
        // SAFETY: the caller's.
        unsafe {
            match self {
                Packing::F32 => values.copy_from_slice(moment.part(part).read()),
                Packing::Bf16 => kernels::widen_halves(halves(moment, part), values),
                Packing::Int8(blocks) => {
                    let (codes, scale) = blocks.of(moment, part);
                    match signed {
                        true => kernels::widen_signed_codes(codes, *scale, values),
                        false => kernels::widen_codes(codes, *scale, values),
                    }
                }
            }
        }
    }

    /// Packs values where [`Packing::load`] had them from.
    ///
    /// # Safety
    ///
    /// Nobody else uses this part of the moment.
    pub(crate) unsafe fn store(&self, moment: Span, part: Range<usize>, rounding: Rounding, values: &[f32]) {
        let Rounding { signed, key } = rounding;
        let start = part.start;
        // SAFETY: the caller's.
        unsafe {
            match self {
                Packing::F32 => moment.part(part).write().copy_from_slice(values),
                Packing::Bf16 => kernels::narrow_to_halves(values, halves(moment, part), start, key),
                Packing::Int8(blocks) => {
                    let (codes, scale) = blocks.of(moment, part);
                    *scale = kernels::largest(values);
                    if *scale < f32::MIN_POSITIVE {
                        // Too small to divide by.
                        *scale = 0.0;
                        codes.fill(0);
                    } else if signed {
                        kernels::narrow_to_signed_codes(values, *scale, codes, start, key);
                    } else {
                        kernels::narrow_to_codes(values, *scale, codes, start, key);
                    }
                }
            }
        }
    }
}

/// How numbers become shorter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounding {
    /// Whether any of them may be below 0.
    pub signed: bool,
    pub key: u32,
}

impl Rounding {
    /// Of one moment of a tensor, at a step.
    pub(crate) fn new(signed: bool, (tensor, moment): (u32, usize), step: u64) -> Rounding {
        let which = mix(2 * tensor + moment as u32 + 1);
        Rounding {
            signed,
            key: mix(which ^ mix(step as u32 ^ mix((step >> 32) as u32))),
        }
    }
}

impl Blocks {
    fn per_unit(&self) -> usize {
        self.unit.div_ceil(self.block)
    }

    fn count(&self) -> usize {
        self.len / self.unit * self.per_unit() + (self.len % self.unit).div_ceil(self.block)
    }

    fn end(&self, at: usize) -> usize {
        let within = at % self.unit;
        let end = (within / self.block + 1) * self.block;
        (at - within + end.min(self.unit)).min(self.len)
    }

    /// The codes of a block and its scale: all codes of a tensor come first, then its scales.
    ///
    /// # Safety
    ///
    /// As for [`Span::write`], for this block.
    unsafe fn of<'a>(&self, moment: Span, part: Range<usize>) -> (&'a mut [u8], &'a mut f32) {
        let whole = (part.start % self.unit).is_multiple_of(self.block) && part.end == self.end(part.start);
        assert!(whole, "a block is never divided");
        let block = part.start / self.unit * self.per_unit() + part.start % self.unit / self.block;
        let at = values_of(self.len) + block;
        let codes: *mut u8 = moment.part(0..values_of(self.len)).at().cast();
        // SAFETY: within the codes; the rest is the caller's.
        unsafe {
            let codes = std::slice::from_raw_parts_mut(codes.add(part.start), part.len());
            (codes, &mut moment.part(at..at + 1).write()[0])
        }
    }
}

/// A part of a span that holds two bytes for each value.
///
/// # Safety
///
/// As for [`Span::write`], for this part.
unsafe fn halves<'a>(moment: Span, part: Range<usize>) -> &'a mut [u16] {
    let all: *mut u16 = moment.part(0..values_of(2 * part.end)).at().cast();
    // SAFETY: within the span; the rest is the caller's.
    unsafe { std::slice::from_raw_parts_mut(all.add(part.start), part.len()) }
}
