//! How weights follow their gradients.

use serde::{Deserialize, Serialize};

use super::kernels::elementwise::vectorized;

/// An optimizer and its settings; they mean what they mean in PyTorch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Rule {
    /// `v = momentum · v + g`, `w -= rate · v`
    Sgd {
        #[serde(default)]
        momentum: f32,
        #[serde(default)]
        nesterov: bool,
        #[serde(default)]
        weight_decay: f32,
    },
    /// `m` and `v` are running means of `g` and `g²`: `w -= rate · m / (√v + ε)`
    Adam {
        #[serde(default = "beta1")]
        beta1: f32,
        #[serde(default = "beta2")]
        beta2: f32,
        #[serde(default = "epsilon")]
        epsilon: f32,
        #[serde(default)]
        weight_decay: f32,
    },
    /// Adam with weights that also shrink by `rate · weight_decay`.
    AdamW {
        #[serde(default = "beta1")]
        beta1: f32,
        #[serde(default = "beta2")]
        beta2: f32,
        #[serde(default = "epsilon")]
        epsilon: f32,
        #[serde(default = "decoupled")]
        weight_decay: f32,
    },
    /// `w -= rate · g / (√v + ε)`
    RmsProp {
        #[serde(default = "smoothing")]
        smoothing: f32,
        #[serde(default = "epsilon")]
        epsilon: f32,
        #[serde(default)]
        momentum: f32,
        #[serde(default)]
        weight_decay: f32,
    },
}

fn beta1() -> f32 {
    0.9
}

fn beta2() -> f32 {
    0.999
}

fn epsilon() -> f32 {
    1e-8
}

fn decoupled() -> f32 {
    0.01
}

fn smoothing() -> f32 {
    0.99
}

impl Default for Rule {
    fn default() -> Rule {
        Rule::Adam {
            beta1: beta1(),
            beta2: beta2(),
            epsilon: epsilon(),
            weight_decay: 0.0,
        }
    }
}

/// What changes from step to step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// The learning rate.
    pub rate: f32,
    /// Steps so far, this one included.
    pub step: u64,
}

impl Rule {
    /// Values that are kept for every weight.
    pub(crate) fn n_states(&self) -> usize {
        match self {
            Rule::Sgd { momentum, .. } => usize::from(*momentum != 0.0),
            Rule::Adam { .. } | Rule::AdamW { .. } => 2,
            Rule::RmsProp { momentum, .. } => 1 + usize::from(*momentum != 0.0),
        }
    }

    /// Changes weights by their gradients, which are taken times `factor`.
    pub(crate) fn apply(
        &self,
        moment: &Moment,
        weights: &mut [f32],
        gradients: &[f32],
        factor: f32,
        (first, second): (&mut [f32], &mut [f32]),
    ) {
        let rate = moment.rate;
        let pairs = weights.iter_mut().zip(gradients);
        match *self {
            Rule::Sgd {
                momentum,
                nesterov,
                weight_decay,
            } => match momentum == 0.0 {
                true => vectorized(|| {
                    pairs.for_each(|(weight, gradient)| {
                        *weight -= rate * (gradient * factor + weight_decay * *weight);
                    });
                }),
                false => vectorized(|| {
                    for ((weight, gradient), velocity) in pairs.zip(first) {
                        let gradient = gradient * factor + weight_decay * *weight;
                        *velocity = momentum * *velocity + gradient;
                        let way = if nesterov { gradient + momentum * *velocity } else { *velocity };
                        *weight -= rate * way;
                    }
                }),
            },
            Rule::Adam {
                beta1,
                beta2,
                epsilon,
                weight_decay,
            } => adam(moment, (beta1, beta2, epsilon), (weight_decay, 1.0), pairs, factor, (first, second)),
            Rule::AdamW {
                beta1,
                beta2,
                epsilon,
                weight_decay,
            } => {
                let kept = 1.0 - rate * weight_decay;
                adam(moment, (beta1, beta2, epsilon), (0.0, kept), pairs, factor, (first, second));
            }
            Rule::RmsProp {
                smoothing,
                epsilon,
                momentum,
                weight_decay,
            } => {
                let squared = |weight: f32, gradient: f32, square: &mut f32| {
                    let gradient = gradient * factor + weight_decay * weight;
                    *square = smoothing * *square + (1.0 - smoothing) * gradient * gradient;
                    gradient / (square.sqrt() + epsilon)
                };
                match momentum == 0.0 {
                    true => vectorized(|| {
                        for ((weight, gradient), square) in pairs.zip(first) {
                            *weight -= rate * squared(*weight, *gradient, square);
                        }
                    }),
                    false => vectorized(|| {
                        for (((weight, gradient), square), velocity) in pairs.zip(first).zip(second) {
                            *velocity = momentum * *velocity + squared(*weight, *gradient, square);
                            *weight -= rate * *velocity;
                        }
                    }),
                }
            }
        }
    }
}

#[inline(always)]
fn adam<'a>(
    moment: &Moment,
    (beta1, beta2, epsilon): (f32, f32, f32),
    (decay, kept): (f32, f32),
    pairs: impl Iterator<Item = (&'a mut f32, &'a f32)>,
    factor: f32,
    (first, second): (&mut [f32], &mut [f32]),
) {
    let power = |beta: f32| 1.0 - f64::from(beta).powf(moment.step as f64);
    let rate = (f64::from(moment.rate) / power(beta1)) as f32;
    let root = (1.0 / power(beta2).sqrt()) as f32;
    vectorized(|| {
        for (((weight, gradient), mean), square) in pairs.zip(first).zip(second) {
            let gradient = gradient * factor + decay * *weight;
            *mean = beta1 * *mean + (1.0 - beta1) * gradient;
            *square = beta2 * *square + (1.0 - beta2) * gradient * gradient;
            *weight = kept * *weight - rate * *mean / (square.sqrt() * root + epsilon);
        }
    });
}
