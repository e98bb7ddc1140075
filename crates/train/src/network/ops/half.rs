//! Values that wait in half precision: `bf16` or `f16`, the nearest to each value, ties to even.

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

use super::super::arena::{Buffer, Span};
use super::super::kernels::vectorized::vectorized;
use super::super::precision::Precision;
use super::super::step::{Op, Step};
use super::pointwise::each_chunk;

/// `into = half(from)`
pub(crate) struct Shrink {
    /// Of a sample.
    pub len: usize,
    pub from: Buffer,
    pub into: Buffer,
    pub precision: Precision,
}

/// `into = from`
pub(crate) struct Grow {
    /// Of a sample.
    pub len: usize,
    pub from: Buffer,
    pub into: Buffer,
    pub precision: Precision,
}

/// Values of two bytes each, in the room of half as many of four.
///
/// # Safety
///
/// Nobody else uses these values while the slice is in use.
#[allow(clippy::mut_from_ref)]
unsafe fn halves<'a>(span: Span, part: std::ops::Range<usize>) -> &'a mut [u16] {
    assert!(part.end <= 2 * span.len(), "within the buffer");
    // SAFETY: within the buffer, which is aligned for more than this; any bits are a value; the rest is the caller's.
    unsafe {
        let at = span.at().cast::<u16>().add(part.start);
        std::slice::from_raw_parts_mut(at, part.len())
    }
}

impl Op for Shrink {
    fn run(&self, step: &Step<'_>) {
        if !step.training {
            return; // There is no way back.
        }
        let [from, into] = [self.from, self.into].map(|buffer| step.span(buffer));
        each_chunk(step, self.len, |part| {
            // SAFETY: every task has a part of its own.
            let (from, into) = unsafe { (from.part(part.clone()).read(), halves(into, part)) };
            match self.precision {
                Precision::F16 => into.reinterpret_cast_mut::<f16>().convert_from_f32_slice(from),
                _ => to_bf16(from, into),
            }
        });
    }
}

impl Op for Grow {
    fn run(&self, step: &Step<'_>) {
        let [from, into] = [self.from, self.into].map(|buffer| step.span(buffer));
        each_chunk(step, self.len, |part| {
            // SAFETY: every task has a part of its own.
            unsafe { grow(from, part.clone(), self.precision, into.part(part).write()) };
        });
    }
}

/// A part of what waits in half precision, as it is in full.
///
/// # Safety
///
/// Nobody writes what it is made of.
pub(super) unsafe fn grow(from: Span, part: std::ops::Range<usize>, precision: Precision, into: &mut [f32]) {
    // SAFETY: the caller's.
    let from = unsafe { halves(from, part) };
    match precision {
        Precision::F16 => from.reinterpret_cast::<f16>().convert_to_f32_slice(into),
        _ => from_bf16(from, into),
    }
}

vectorized! {
    fn to_bf16(from: &[f32], into: &mut [u16]) {
        for (from, into) in from.iter().zip(into) {
            let bits = from.to_bits();
            let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
            // Rounding up could make an infinity of what is not a number.
            let quiet = (bits >> 16) | 0x40;
            *into = if from.is_nan() { quiet } else { rounded } as u16;
        }
    }

    fn from_bf16(from: &[u16], into: &mut [f32]) {
        for (from, into) in from.iter().zip(into) {
            *into = f32::from_bits(u32::from(*from) << 16);
        }
    }
}
