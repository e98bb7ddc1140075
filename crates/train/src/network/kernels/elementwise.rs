//! Activations, sums and other loops over slices.
//!
//! Sums and products only, without fused rounding: a value is the same on every processor.

use super::super::layer::Activation;
use super::vectorized::vectorized;
use crate::exponential::{exp, ln_1p_unit};

#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[inline(always)]
fn tanh(x: f32) -> f32 {
    // Near zero the other form loses what is small.
    let square = x * x;
    let small = x * (1.0 + square * (-1.0 / 3.0 + square * (2.0 / 15.0 + square * (-17.0 / 315.0))));
    let large = 1.0 - 2.0 / (exp(2.0 * x) + 1.0);
    if square < 0.04 { small } else { large }
}

/// `erf`, by Abramowitz and Stegun 7.1.26: within 1.5e-7.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let a = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * a);
    let mut sum = 1.061_405_4;
    for factor in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
        sum = sum * t + factor;
    }
    let y = 1.0 - sum * t * exp(-a * a);
    if x < 0.0 { -y } else { y }
}

#[inline(always)]
fn softplus(x: f32) -> f32 {
    x.max(0.0) + ln_1p_unit(exp(-x.abs()))
}

const GELU_SCALE: f32 = 0.797_884_6;
const GELU_CUBE: f32 = 0.044_715;
const SQRT_HALF: f32 = std::f32::consts::FRAC_1_SQRT_2;
/// The density of the normal distribution at 0.
const DENSITY: f32 = 0.398_942_3;

impl Activation {
    /// Whether its slope can be told from its result.
    pub(crate) fn slope_from_result(self) -> bool {
        matches!(
            self,
            Activation::Relu
                | Activation::Relu6
                | Activation::LeakyRelu
                | Activation::Elu
                | Activation::Sigmoid
                | Activation::Tanh
        )
    }

    #[inline(always)]
    fn value(self, x: f32) -> f32 {
        match self {
            // Unlike a maximum, this keeps what is not a number.
            Activation::Relu => {
                if x < 0.0 {
                    0.0
                } else {
                    x
                }
            }
            Activation::Relu6 => x.clamp(0.0, 6.0),
            Activation::LeakyRelu => {
                if x > 0.0 {
                    x
                } else {
                    0.01 * x
                }
            }
            Activation::Elu => {
                if x > 0.0 {
                    x
                } else {
                    exp(x) - 1.0
                }
            }
            Activation::Gelu => 0.5 * x * (1.0 + erf(x * SQRT_HALF)),
            Activation::GeluTanh => 0.5 * x * (1.0 + tanh(GELU_SCALE * (x + GELU_CUBE * x * x * x))),
            Activation::Silu => x * sigmoid(x),
            Activation::Sigmoid => sigmoid(x),
            Activation::Tanh => tanh(x),
            Activation::Softplus => softplus(x),
            Activation::HardSwish => x * (x + 3.0).clamp(0.0, 6.0) / 6.0,
        }
    }

    /// Its slope, by what it was given, or by what it made where that tells ([`Activation::slope_from_result`]).
    #[inline(always)]
    fn slope(self, x: f32) -> f32 {
        match self {
            Activation::Relu => {
                if x > 0.0 {
                    1.0
                } else {
                    0.0
                }
            }
            Activation::Relu6 => {
                if x > 0.0 && x < 6.0 {
                    1.0
                } else {
                    0.0
                }
            }
            Activation::LeakyRelu => {
                if x > 0.0 {
                    1.0
                } else {
                    0.01
                }
            }
            Activation::Elu => {
                if x > 0.0 {
                    1.0
                } else {
                    x + 1.0
                }
            }
            Activation::Sigmoid => x * (1.0 - x),
            Activation::Tanh => 1.0 - x * x,
            Activation::Gelu => 0.5 * (1.0 + erf(x * SQRT_HALF)) + x * DENSITY * exp(-0.5 * x * x),
            Activation::GeluTanh => {
                let t = tanh(GELU_SCALE * (x + GELU_CUBE * x * x * x));
                let inner = GELU_SCALE * (1.0 + 3.0 * GELU_CUBE * x * x);
                0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner
            }
            Activation::Silu => {
                let s = sigmoid(x);
                s * (1.0 + x * (1.0 - s))
            }
            Activation::Softplus => sigmoid(x),
            Activation::HardSwish => {
                if x <= -3.0 {
                    0.0
                } else if x >= 3.0 {
                    1.0
                } else {
                    (2.0 * x + 3.0) / 6.0
                }
            }
        }
    }
}

impl Activation {
    /// Its slope, by what it is given.
    #[inline(always)]
    pub(crate) fn slope_at(self, x: f32) -> f32 {
        match self.slope_from_result() {
            true => self.slope(self.value(x)),
            false => self.slope(x),
        }
    }
}

/// One loop for each activation: which it is must not be asked for every value. A plain loop: what a closure does would
/// not be compiled for the instruction set of the function around it.
macro_rules! by_activation {
    ($activation:expr, |$known:ident| $body:expr) => {
        by_activation!(@ $activation, $known, $body,
            Relu Relu6 LeakyRelu Elu Gelu GeluTanh Silu Sigmoid Tanh Softplus HardSwish)
    };
    (@ $activation:expr, $known:ident, $body:expr, $($variant:ident)*) => {
        match $activation {
            $(Activation::$variant => {
                let $known = Activation::$variant;
                $body
            })*
        }
    };
}

vectorized! {
    /// `values = activation(values)`
    pub(crate) fn activate(activation: Activation, values: &mut [f32]) {
        by_activation!(activation, |known| for value in values.iter_mut() {
            *value = known.value(*value);
        });
    }

    /// `out = activation(values)`
    pub(crate) fn activate_into(activation: Activation, values: &[f32], out: &mut [f32]) {
        by_activation!(activation, |known| for (out, value) in out.iter_mut().zip(values) {
            *out = known.value(*value);
        });
    }

    /// `slopes = slopes · activation'(told)`, by what [`Activation::slope_from_result`] says.
    pub(crate) fn activate_slopes(activation: Activation, slopes: &mut [f32], told: &[f32]) {
        by_activation!(activation, |known| for (slope, told) in slopes.iter_mut().zip(told) {
            *slope *= known.slope(*told);
        });
    }

    /// `out = slopes · activation'(told)`
    pub(crate) fn activate_slopes_into(activation: Activation, slopes: &[f32], told: &[f32], out: &mut [f32]) {
        by_activation!(activation, |known| for (out, (slope, told)) in out.iter_mut().zip(slopes.iter().zip(told)) {
            *out = slope * known.slope(*told);
        });
    }

    /// `sums += values`
    pub(crate) fn add(sums: &mut [f32], values: &[f32]) {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
    }

    /// `values[place][channel] = of[channel]`
    pub(crate) fn fill_places(values: &mut [f32], of: &[f32]) {
        let (lanes, rest) = of.as_chunks::<LANES>();
        for place in values.chunks_exact_mut(of.len()) {
            let (into, into_rest) = place.as_chunks_mut::<LANES>();
            // By vectors: a call to copy a few bytes takes longer than that.
            for (into, lanes) in into.iter_mut().zip(lanes) {
                *into = *lanes;
            }
            into_rest.copy_from_slice(rest);
        }
    }

    /// `sums[channel] += values[place][channel]`
    pub(crate) fn add_places(sums: &mut [f32], values: &[f32]) {
        let channels = sums.len();
        for first in (0..channels).step_by(LANES) {
            for block in values.chunks(BLOCK * channels) {
                let mut lanes = [0.0f32; LANES];
                for place in block.chunks_exact(channels) {
                    match place[first..].first_chunk::<LANES>() {
                        Some(values) => (0..LANES).for_each(|i| lanes[i] += values[i]),
                        None => lanes.iter_mut().zip(&place[first..]).for_each(|(sum, value)| *sum += value),
                    }
                }
                sums[first..].iter_mut().zip(lanes).for_each(|(sum, value)| *sum += value);
            }
        }
    }

    /// `sums[channel] += (values[place][channel] - means[channel])²`
    pub(crate) fn add_squares(sums: &mut [f32], values: &[f32], means: &[f32]) {
        let channels = sums.len();
        for first in (0..channels).step_by(LANES) {
            let mut mean = [0.0f32; LANES];
            mean.iter_mut().zip(&means[first..]).for_each(|(mean, known)| *mean = *known);
            for block in values.chunks(BLOCK * channels) {
                let mut lanes = [0.0f32; LANES];
                for place in block.chunks_exact(channels) {
                    match place[first..].first_chunk::<LANES>() {
                        Some(values) => (0..LANES).for_each(|i| {
                            let away = values[i] - mean[i];
                            lanes[i] += away * away;
                        }),
                        None => place[first..].iter().enumerate().for_each(|(i, value)| {
                            let away = value - mean[i];
                            lanes[i] += away * away;
                        }),
                    }
                }
                sums[first..].iter_mut().zip(lanes).for_each(|(sum, value)| *sum += value);
            }
        }
    }

    /// The sum of squares.
    pub(crate) fn sum_of_squares(values: &[f32]) -> f32 {
        let (chunks, rest) = values.as_chunks::<LANES>();
        let mut sums = [0.0f32; LANES];
        for chunk in chunks {
            for i in 0..LANES {
                sums[i] += chunk[i] * chunk[i];
            }
        }
        sums.iter().sum::<f32>() + rest.iter().map(|value| value * value).sum::<f32>()
    }

    /// `out[row][column] = values[column][row]` where `values` has rows of `stride`, of which the first `rows` count.
    pub(crate) fn transpose(values: &[f32], stride: usize, rows: usize, out: &mut [f32], columns: usize) {
        for (row, out) in out.chunks_exact_mut(columns).take(rows).enumerate() {
            for (column, out) in out.iter_mut().enumerate() {
                *out = values[column * stride + row];
            }
        }
    }
}

/// Places that are summed before they are added to the others: long sums of floats lose their end.
pub(crate) const BLOCK: usize = 128;

/// Values that one vector or two hold: loops over so many at once need no check of their bounds.
pub(crate) const LANES: usize = 16;

/// Keeps the larger of each value and its candidate, and says in `chosen` where it was the candidate. What is not a number
/// is not lost.
#[inline(always)]
pub(crate) fn keep_larger(values: &mut [f32], chosen: &mut [u8], candidates: &[f32], name: u8) {
    let (values, value_rest) = values.as_chunks_mut::<LANES>();
    let (chosen, chosen_rest) = chosen.as_chunks_mut::<LANES>();
    let (candidates, candidate_rest) = candidates.as_chunks::<LANES>();
    let larger = |value: f32, candidate: f32| candidate > value || candidate.is_nan();
    for ((values, chosen), candidates) in values.iter_mut().zip(chosen).zip(candidates) {
        // A mask of whole values first: bytes and floats in one loop would be taken one by one.
        let mut mask = [0u32; LANES];
        for i in 0..LANES {
            let takes = larger(values[i], candidates[i]);
            mask[i] = u32::from(takes);
            values[i] = if takes { candidates[i] } else { values[i] };
        }
        for i in 0..LANES {
            let takes = 0u8.wrapping_sub(mask[i] as u8);
            chosen[i] = (chosen[i] & !takes) | (name & takes);
        }
    }
    for ((value, chosen), candidate) in value_rest.iter_mut().zip(chosen_rest).zip(candidate_rest) {
        if larger(*value, *candidate) {
            (*value, *chosen) = (*candidate, name);
        }
    }
}

/// `out = slopes` where `chosen` is `name`, and zero or what was there elsewhere.
#[inline(always)]
pub(crate) fn give_chosen<const ADD: bool>(out: &mut [f32], slopes: &[f32], chosen: &[u8], name: u8) {
    let (outs, out_rest) = out.as_chunks_mut::<LANES>();
    let (slopes, slope_rest) = slopes.as_chunks::<LANES>();
    let (chosen, chosen_rest) = chosen.as_chunks::<LANES>();
    for ((out, slopes), chosen) in outs.iter_mut().zip(slopes).zip(chosen) {
        let mut mask = [0u32; LANES];
        for i in 0..LANES {
            mask[i] = 0u32.wrapping_sub(u32::from(chosen[i] == name));
        }
        for i in 0..LANES {
            let slope = f32::from_bits(slopes[i].to_bits() & mask[i]);
            out[i] = if ADD { out[i] + slope } else { slope };
        }
    }
    for ((out, slope), chosen) in out_rest.iter_mut().zip(slope_rest).zip(chosen_rest) {
        let slope = if *chosen == name { *slope } else { 0.0 };
        *out = if ADD { *out + slope } else { slope };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Activation; 11] = [
        Activation::Relu,
        Activation::Relu6,
        Activation::LeakyRelu,
        Activation::Elu,
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::Silu,
        Activation::Sigmoid,
        Activation::Tanh,
        Activation::Softplus,
        Activation::HardSwish,
    ];

    #[test]
    fn slopes_are_those_of_the_values() {
        for activation in ALL {
            for i in -400..400 {
                let x = i as f32 * 0.021 + 0.0013;
                let h = 1e-3;
                let measured = (activation.value(x + h) - activation.value(x - h)) / (2.0 * h);
                let told = match activation.slope_from_result() {
                    true => activation.value(x),
                    false => x,
                };
                let slope = activation.slope(told);
                assert!(
                    (measured - slope).abs() < 3e-3,
                    "{activation:?} at {x}: {measured} {slope}"
                );
            }
        }
    }

    #[test]
    fn values_are_those_of_the_library() {
        for i in -2000..2000 {
            let x = i as f32 * 0.01;
            let near =
                |a: f32, b: f64| assert!((f64::from(a) - b).abs() <= 3e-7 * (1.0 + b.abs()), "{x}: {a} {b}");
            let wide = f64::from(x);
            near(tanh(x), wide.tanh());
            near(sigmoid(x), 1.0 / (1.0 + (-wide).exp()));
            near(softplus(x), wide.max(0.0) + (-wide.abs()).exp().ln_1p());
            assert!((f64::from(exp(x)) / wide.exp() - 1.0).abs() < 3e-7);
        }
        assert!(exp(1000.0).is_finite() && exp(-1000.0) > 0.0 && exp(f32::NAN).is_nan());
    }
}
