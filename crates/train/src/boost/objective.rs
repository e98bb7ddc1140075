//! What is minimised: losses, their slopes and curvatures, and how these become integers.
//!
//! Sums of integers do not depend on the order in which they are added, so neither threads nor blocks nor the
//! budget change a bit of a histogram. The scale is fixed for a whole training, which is what lets one pass
//! over the data end a tree and begin the next.
//!
//! - The squared loss has curvature 1, a count. All other bits go to the slope: 31 of them, over four times
//!   the largest residual of the start, so that a target with heavy tails keeps its small residuals.
//! - The slope of the logistic losses lies within ±1 and the curvature within ¼: 16 bits each, rounded up or
//!   down at random without bias. Over `n` rows that adds at most `√n / 65534` to the variance that the sums
//!   have anyway: 4 % for 7 million rows in the worst case.

use serde::{Deserialize, Serialize};

use super::hash::row_bits;
use super::rows::Block;
use super::state::BlockState;
use crate::exponential::{exp_negative, ln_1p_unit, ln_from_one, nearest};

/// What a forest is trained for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Objective {
    /// A number, by `½ (y − z)²`.
    Squared,
    /// One of two values, by `ln(1 + e^z) − y z`.
    Logistic,
    /// One of so many classes, by `ln Σ e^(z_k) − z_y`.
    Softmax(usize),
}

impl Objective {
    /// Margins of a row, and trees of a round.
    pub fn n_outputs(self) -> usize {
        match self {
            Objective::Softmax(classes) => classes,
            _ => 1,
        }
    }

    /// Bits that the curvatures of a block take at the low end of a packed sum; the slopes have the rest.
    pub(super) fn hessian_bits(self) -> u32 {
        match self {
            Objective::Squared => 17,
            _ => 32,
        }
    }
}

/// The scales of the integers, and the weights of the classes.
#[derive(Debug, Clone)]
pub(super) struct Quantiser {
    pub(super) objective: Objective,
    pub(super) weights: Vec<f32>,
    scales: Scales,
}

#[derive(Debug, Clone, Copy)]
struct Scales {
    gradient: f32,
    hessian: f32,
}

/// Slopes of the squared loss lie within ±2³⁰, so that 65,536 of them fit the 47 bits they have.
const SQUARED_RANGE: f32 = (1u32 << 30) as f32;
/// The largest float below 2³⁰.
const SQUARED_MOST: f32 = 1_073_741_760.0;
/// One below the most that 16 bits hold, since random rounding may add one.
const GRADIENT_MOST: f32 = 32_766.0;
const HESSIAN_MOST: f32 = 65_534.0;

impl Quantiser {
    /// `largest` is the largest residual of the start.
    pub(super) fn new(objective: Objective, class_weights: Option<&[f32]>, largest: f32) -> Quantiser {
        let n = objective.n_outputs().max(2);
        let mut weights: Vec<f32> = class_weights.unwrap_or_default().to_vec();
        weights.resize(n, 1.0);
        let most = weights.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
        let (gradient, hessian) = match objective {
            // A power of two, so that scaling itself rounds nothing. Residuals that grow beyond four times the
            // largest are cut off there.
            Objective::Squared if largest > 0.0 => {
                let exponent = (SQUARED_RANGE / largest / 4.0).log2().floor();
                (exponent.clamp(-100.0, 100.0).exp2(), 1.0)
            }
            Objective::Squared => (1.0, 1.0),
            _ => (GRADIENT_MOST / most, HESSIAN_MOST / (0.25 * most)),
        };
        Quantiser {
            objective,
            weights,
            scales: Scales { gradient, hessian },
        }
    }

    /// What one step of an integer slope and curvature is worth.
    pub(super) fn units(&self) -> (f64, f64) {
        (
            1.0 / f64::from(self.scales.gradient),
            1.0 / f64::from(self.scales.hessian),
        )
    }
}

impl Scales {
    #[inline(always)]
    fn pack(self, gradient: f32, hessian: f32, bits: u32) -> u32 {
        const UNIT: f32 = 1.0 / 65_536.0;
        // Rounding down after adding a random part of one is rounding to the nearest after adding half less.
        let up = (bits & 0xFFFF) as i32 as f32 * UNIT - 0.5;
        let hessian_up = (bits >> 16) as i32 as f32 * UNIT - 0.5;
        let gradient = nearest(gradient * self.gradient + up);
        let hessian = nearest(hessian * self.hessian + hessian_up);
        ((gradient << 16) | hessian) as u32
    }
}

/// The class of a target, kept in range.
#[inline(always)]
pub(super) fn class(target: f32, n_classes: usize) -> usize {
    (target as usize).min(n_classes - 1)
}

/// Summed losses of a block.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Losses {
    pub(super) training: f64,
    pub(super) held_out: f64,
}

/// Sums run in so many lanes, whatever the machine, so that they are the same on each.
const LANES: usize = 16;

/// Losses of the block at its margins, and the packed slopes and curvatures for the first tree of the next round. `key` is for
/// the rounding of that tree.
pub(super) fn begin_round(
    quantiser: &Quantiser,
    key: u32,
    first_row: u32,
    block: &Block<'_>,
    state: &mut BlockState<'_>,
) -> Losses {
    if let Objective::Softmax(n_classes) = quantiser.objective {
        let losses = norms(quantiser, n_classes, block, state.margins, state.norms);
        slopes_of_class(quantiser, (0, key), first_row, block, state);
        return losses;
    }
    let (margins, packed) = (&*state.margins, &mut *state.gradients);
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just been asked for what the function needs.
        return unsafe { single_avx2(quantiser, key, first_row, block, margins, packed) };
    }
    single(quantiser, key, first_row, block, margins, packed)
}

/// The packed slopes and curvatures of one of several classes, whose tree is the next: its margins are still those of the
/// beginning of the round.
pub(super) fn slopes_of_class(
    quantiser: &Quantiser,
    (class, key): (usize, u32),
    first_row: u32,
    block: &Block<'_>,
    state: &mut BlockState<'_>,
) {
    let n_rows = state.n_rows;
    let margins = &state.margins[class * n_rows..(class + 1) * n_rows];
    let (norms, packed) = (&*state.norms, &mut *state.gradients);
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just been asked for what the function needs.
        return unsafe {
            slopes_avx2(
                quantiser,
                (class, key),
                first_row,
                block,
                (margins, norms),
                packed,
            )
        };
    }
    slopes(
        quantiser,
        (class, key),
        first_row,
        block,
        (margins, norms),
        packed,
    );
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn single_avx2(
    quantiser: &Quantiser,
    key: u32,
    first_row: u32,
    block: &Block<'_>,
    margins: &[f32],
    packed: &mut [u32],
) -> Losses {
    single(quantiser, key, first_row, block, margins, packed)
}

#[inline(always)]
fn single(
    quantiser: &Quantiser,
    key: u32,
    first_row: u32,
    block: &Block<'_>,
    margins: &[f32],
    packed: &mut [u32],
) -> Losses {
    let squared = quantiser.objective == Objective::Squared;
    let (scales, weights) = (quantiser.scales, [quantiser.weights[0], quantiser.weights[1]]);
    let (mut training, mut held_out) = ([0.0f64; LANES], [0.0f64; LANES]);
    let n_rows = margins.len();
    for start in (0..n_rows).step_by(LANES) {
        let n = LANES.min(n_rows - start);
        let (mut z, mut y, mut held) = ([0.0f32; LANES], [0.0f32; LANES], [0u8; LANES]);
        z[..n].copy_from_slice(&margins[start..start + n]);
        y[..n].copy_from_slice(&block.target[start..start + n]);
        held[..n].copy_from_slice(&block.held_out[start..start + n]);
        let mut loss = [0.0f32; LANES];
        let mut out = [0u32; LANES];
        let row = first_row.wrapping_add(start as u32);
        if squared {
            for lane in 0..LANES {
                (loss[lane], out[lane]) = squared_row(scales, z[lane], y[lane]);
            }
        } else {
            for lane in 0..LANES {
                let bits = row_bits(key, row.wrapping_add(lane as u32));
                (loss[lane], out[lane]) = logistic_row(scales, weights, z[lane], y[lane], bits);
            }
        }
        packed[start..start + n].copy_from_slice(&out[..n]);
        // Lanes beyond the last row.
        loss[n..].fill(0.0);
        for lane in 0..LANES {
            // Chosen, not multiplied by zero: a loss that is not finite must be seen, but where it belongs.
            training[lane] += f64::from(if held[lane] == 0 { loss[lane] } else { 0.0 });
            held_out[lane] += f64::from(if held[lane] == 0 { 0.0 } else { loss[lane] });
        }
    }
    Losses {
        training: training.iter().sum(),
        held_out: held_out.iter().sum(),
    }
}

#[inline(always)]
fn squared_row(scales: Scales, z: f32, y: f32) -> (f32, u32) {
    let gradient = z - y;
    let scaled = (gradient * scales.gradient).clamp(-SQUARED_MOST, SQUARED_MOST);
    let rounded = (scaled + 0.5f32.copysign(scaled)) as i32;
    (0.5 * gradient * gradient, rounded as u32)
}

#[inline(always)]
fn logistic_row(scales: Scales, weights: [f32; 2], z: f32, y: f32, bits: u32) -> (f32, u32) {
    let e = exp_negative(-z.abs());
    let q = 1.0 / (1.0 + e);
    let p = if z >= 0.0 { q } else { e * q };
    let loss = z.max(0.0) - y * z + ln_1p_unit(e);
    let weight = if y >= 0.5 { weights[1] } else { weights[0] };
    let packed = scales.pack((p - y) * weight, e * q * q * weight, bits);
    (loss * weight, packed)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn slopes_avx2(
    quantiser: &Quantiser,
    (class, key): (usize, u32),
    first_row: u32,
    block: &Block<'_>,
    (margins, norms): (&[f32], &[f32]),
    packed: &mut [u32],
) {
    slopes(
        quantiser,
        (class, key),
        first_row,
        block,
        (margins, norms),
        packed,
    );
}

#[inline(always)]
fn slopes(
    quantiser: &Quantiser,
    (class, key): (usize, u32),
    first_row: u32,
    block: &Block<'_>,
    (margins, norms): (&[f32], &[f32]),
    packed: &mut [u32],
) {
    let (scales, weights) = (quantiser.scales, &quantiser.weights[..]);
    let n_rows = packed.len();
    let (margins, norms, target) = (&margins[..n_rows], &norms[..n_rows], &block.target[..n_rows]);
    for row in 0..n_rows {
        let truth = self::class(target[row], weights.len());
        let weight = weights[truth];
        // Rounding may bring a margin above the norm.
        let p = exp_negative((margins[row] - norms[row]).min(0.0));
        let gradient = p - if truth == class { 1.0 } else { 0.0 };
        let bits = row_bits(key, first_row.wrapping_add(row as u32));
        packed[row] = scales.pack(gradient * weight, p * (1.0 - p) * weight, bits);
    }
}

/// Losses of several classes, and for every row the logarithm of the sum of the exponentials of its margins.
fn norms(
    quantiser: &Quantiser,
    n_classes: usize,
    block: &Block<'_>,
    margins: &[f32],
    norms: &mut [f32],
) -> Losses {
    let n_rows = block.target.len();
    let mut losses = Losses::default();
    for row in 0..n_rows {
        let z = |class: usize| margins[class * n_rows + row];
        let most = (0..n_classes).map(z).fold(f32::MIN, f32::max);
        let sum: f32 = (0..n_classes).map(|class| exp_negative(z(class) - most)).sum();
        norms[row] = most + ln_from_one(sum);
        let truth = class(block.target[row], n_classes);
        let weight = quantiser.weights[truth];
        let loss = f64::from(weight) * (f64::from(sum).ln() + f64::from(most - z(truth)));
        if block.held_out[row] == 0 {
            losses.training += loss;
        } else {
            losses.held_out += loss;
        }
    }
    losses
}

/// Probabilities (or the number itself) from margins, in place.
pub fn predictions(objective: Objective, margins: &mut [f32]) {
    match objective {
        Objective::Squared => {}
        Objective::Logistic => {
            for z in margins {
                *z = (1.0 / (1.0 + f64::from(-*z).exp())) as f32;
            }
        }
        Objective::Softmax(_) => {
            let most = margins.iter().copied().fold(f32::MIN, f32::max);
            let mut sum = 0.0;
            for z in margins.iter_mut() {
                *z = (*z - most).exp();
                sum += *z;
            }
            for z in margins {
                *z /= sum;
            }
        }
    }
}
