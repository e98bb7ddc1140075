//! Operations on single values: activations that stand alone, values left out, and the sum of two branches.

use super::super::arena::{Buffer, Span};
use super::super::kernels::elementwise::{activate, activate_into, activate_slopes, activate_slopes_into};
use super::super::kernels::vectorized::vectorized;
use super::super::layer::Activation;
use super::super::step::{Op, Step};

/// Values in a task.
const CHUNK: usize = 1 << 15;

/// Cuts the values of a batch into tasks.
pub(super) fn each_chunk(step: &Step<'_>, per_sample: usize, work: impl Fn(std::ops::Range<usize>) + Sync) {
    let len = step.rows * per_sample;
    step.crew.run(len.div_ceil(CHUNK), |task, _| {
        work(task * CHUNK..((task + 1) * CHUNK).min(len))
    });
}

/// `y = activation(x)`
pub(crate) struct Activate {
    pub len: usize,
    pub x: Buffer,
    pub y: Buffer,
    pub activation: Activation,
}

impl Op for Activate {
    fn run(&self, step: &Step<'_>) {
        let [x, y] = [self.x, self.y].map(|buffer| step.span(buffer));
        // SAFETY: every task has a part of its own.
        each_chunk(step, self.len, |part| unsafe {
            activate_into(self.activation, x.part(part.clone()).read(), y.part(part).write());
        });
    }
}

/// `∂x = ∂y · activation'`, in the place of `∂y` or elsewhere.
pub(crate) struct ActivateBack {
    pub len: usize,
    /// What tells the slope: what the activation made, or what it was given.
    pub told: Buffer,
    pub slope: Buffer,
    pub into: Option<(Buffer, bool)>,
    pub activation: Activation,
}

impl Op for ActivateBack {
    fn run(&self, step: &Step<'_>) {
        let [told, slope] = [self.told, self.slope].map(|buffer| step.span(buffer));
        let into = self.into.map(|(buffer, add)| (step.span(buffer), add));
        each_chunk(step, self.len, |part| {
            let of = |span: Span| span.part(part.clone());
            // SAFETY: every task has a part of its own.
            unsafe {
                match into {
                    None => activate_slopes(self.activation, of(slope).write(), of(told).read()),
                    Some((into, false)) => activate_slopes_into(
                        self.activation,
                        of(slope).read(),
                        of(told).read(),
                        of(into).write(),
                    ),
                    // The slope is nobody else's: it is turned in its place, then added.
                    Some((into, true)) => {
                        activate_slopes(self.activation, of(slope).write(), of(told).read());
                        super::super::kernels::elementwise::add(of(into).write(), of(slope).read());
                    }
                }
            }
        });
    }
}

/// `y = activation(a + b)`
pub(crate) struct Add {
    pub len: usize,
    pub a: Buffer,
    pub b: Buffer,
    pub y: Buffer,
    pub activation: Option<Activation>,
    pub kept: Option<Buffer>,
}

impl Op for Add {
    fn run(&self, step: &Step<'_>) {
        let [a, b, y] = [self.a, self.b, self.y].map(|buffer| step.span(buffer));
        let made = self.kept.map_or(y, |kept| step.span(kept));
        each_chunk(step, self.len, |part| {
            let of = |span: Span| span.part(part.clone());
            // SAFETY: every task has a part of its own; `y` may be `a`, and then each value is read before it is written.
            unsafe {
                let (b, sums) = (of(b).read(), of(made).write());
                if of(a).at() != of(made).at() {
                    sums.copy_from_slice(of(a).read());
                }
                super::super::kernels::elementwise::add(sums, b);
                match (self.activation, self.kept) {
                    (Some(activation), Some(_)) => activate_into(activation, sums, of(y).write()),
                    (Some(activation), None) => activate(activation, sums),
                    (None, _) => {}
                }
            }
        });
    }
}

/// `into (+)= from`
pub(crate) struct Copy {
    pub len: usize,
    pub from: Buffer,
    pub into: Buffer,
    pub add: bool,
}

impl Op for Copy {
    fn run(&self, step: &Step<'_>) {
        let [from, into] = [self.from, self.into].map(|buffer| step.span(buffer));
        // SAFETY: every task has a part of its own.
        each_chunk(step, self.len, |part| unsafe {
            let (from, into) = (from.part(part.clone()).read(), into.part(part).write());
            match self.add {
                true => super::super::kernels::elementwise::add(into, from),
                false => into.copy_from_slice(from),
            }
        });
    }
}

/// Leaves out a share of the values while learning, and makes up for it with the others. Which ones is a function of the
/// step's seed, so that the way back needs no memory of it.
pub(crate) struct Dropout {
    pub len: usize,
    pub share: f32,
    /// Tells layers apart.
    pub key: u32,
    pub from: Buffer,
    pub into: Buffer,
    pub add: bool,
}

impl Op for Dropout {
    fn run(&self, step: &Step<'_>) {
        let [from, into] = [self.from, self.into].map(|buffer| step.span(buffer));
        let share = if step.training { self.share } else { 0.0 };
        let bound = (f64::from(share) * f64::from(u32::MAX)) as u32;
        let scale = 1.0 / (1.0 - share);
        let seed = mix((step.seed ^ (step.seed >> 32)) as u32 ^ mix(self.key));
        // Batches of one step go on where the one before ended: however it is cut, the same values are left out.
        let before = (step.before * self.len) as u32;
        // SAFETY: every task has a part of its own.
        each_chunk(step, self.len, |part| unsafe {
            let start = before.wrapping_add(part.start as u32);
            let (from, into) = (from.part(part.clone()).read(), into.part(part).write());
            match self.add {
                true => leave_out::<true>(from, into, seed, start, bound, scale),
                false => leave_out::<false>(from, into, seed, start, bound, scale),
            }
        });
    }
}

vectorized! {
    fn leave_out<const ADD: bool>(from: &[f32], into: &mut [f32], seed: u32, start: u32, bound: u32, scale: f32) {
        for (i, (into, from)) in into.iter_mut().zip(from).enumerate() {
            let draw = mix(seed ^ start.wrapping_add(i as u32));
            let value = if draw >= bound { from * scale } else { 0.0 };
            *into = if ADD { *into + value } else { value };
        }
    }
}

/// A hash of 32 bits: every bit of the result depends on every bit of the number.
#[inline(always)]
pub(crate) fn mix(x: u32) -> u32 {
    let x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    let x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}
