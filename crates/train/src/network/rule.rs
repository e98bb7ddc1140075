//! How weights follow their gradients.

use serde::{Deserialize, Serialize};

use super::kernels::vectorized::vectorized;

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

    /// Whether values of a state may be below 0: squares are not.
    pub(crate) fn is_signed(&self, state: usize) -> bool {
        match self {
            Rule::Sgd { .. } => true,
            Rule::Adam { .. } | Rule::AdamW { .. } => state == 0,
            Rule::RmsProp { .. } => state == 1,
        }
    }

    /// What this rule does to any weight at this moment, with gradients that are taken times `factor`.
    pub(crate) fn change(&self, moment: &Moment, factor: f32) -> Change {
        let rate = moment.rate;
        match *self {
            Rule::Sgd {
                momentum,
                nesterov,
                weight_decay,
            } => match momentum == 0.0 {
                true => Change::Descend((factor, weight_decay, rate)),
                false => Change::Roll((factor, weight_decay, rate), (momentum, nesterov)),
            },
            Rule::Adam {
                beta1,
                beta2,
                epsilon,
                weight_decay,
            } => Change::Adam(moment.adam((beta1, beta2, epsilon), (weight_decay, 1.0), factor)),
            Rule::AdamW {
                beta1,
                beta2,
                epsilon,
                weight_decay,
            } => {
                let kept = 1.0 - rate * weight_decay;
                Change::Adam(moment.adam((beta1, beta2, epsilon), (0.0, kept), factor))
            }
            Rule::RmsProp {
                smoothing,
                epsilon,
                momentum,
                weight_decay,
            } => Change::RmsProp((factor, weight_decay, rate), (smoothing, epsilon, momentum)),
        }
    }
}

/// A rule with the numbers of a step.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    Descend((f32, f32, f32)),
    Roll((f32, f32, f32), (f32, bool)),
    Adam(Adam),
    RmsProp((f32, f32, f32), (f32, f32, f32)),
}

impl Change {
    /// Changes weights by their gradients.
    pub(crate) fn apply(
        &self,
        weights: &mut [f32],
        gradients: &[f32],
        (first, second): (&mut [f32], &mut [f32]),
    ) {
        match *self {
            Change::Descend(options) => descend(weights, gradients, options),
            Change::Roll(options, way) => roll(weights, gradients, first, options, way),
            Change::Adam(options) => adam(weights, gradients, first, second, options),
            Change::RmsProp(options, way) => rms_prop(weights, gradients, first, second, options, way),
        }
    }
}

/// The numbers of a step of Adam.
#[derive(Clone, Copy)]
pub(crate) struct Adam {
    beta1: f32,
    beta2: f32,
    epsilon: f32,
    /// Added to the gradient, times the weight.
    decay: f32,
    /// What is left of a weight before it moves.
    kept: f32,
    factor: f32,
    rate: f32,
    /// What makes up for a mean that started at zero.
    root: f32,
}

impl Moment {
    fn adam(&self, (beta1, beta2, epsilon): (f32, f32, f32), (decay, kept): (f32, f32), factor: f32) -> Adam {
        let power = |beta: f32| 1.0 - f64::from(beta).powf(self.step as f64);
        Adam {
            beta1,
            beta2,
            epsilon,
            decay,
            kept,
            factor,
            rate: (f64::from(self.rate) / power(beta1)) as f32,
            root: (1.0 / power(beta2).sqrt()) as f32,
        }
    }
}

vectorized! {
    fn descend(weights: &mut [f32], gradients: &[f32], options: (f32, f32, f32)) {
        let (factor, decay, rate) = options;
        for (weight, gradient) in weights.iter_mut().zip(gradients) {
            *weight -= rate * (gradient * factor + decay * *weight);
        }
    }

    fn roll(weights: &mut [f32], gradients: &[f32], velocities: &mut [f32], options: (f32, f32, f32), way: (f32, bool)) {
        let ((factor, decay, rate), (momentum, nesterov)) = (options, way);
        for ((weight, gradient), velocity) in weights.iter_mut().zip(gradients).zip(velocities) {
            let gradient = gradient * factor + decay * *weight;
            *velocity = momentum * *velocity + gradient;
            let way = if nesterov { gradient + momentum * *velocity } else { *velocity };
            *weight -= rate * way;
        }
    }

    fn adam(weights: &mut [f32], gradients: &[f32], means: &mut [f32], squares: &mut [f32], options: Adam) {
        let Adam { beta1, beta2, epsilon, decay, kept, factor, rate, root } = options;
        let states = means.iter_mut().zip(squares);
        for ((weight, gradient), (mean, square)) in weights.iter_mut().zip(gradients).zip(states) {
            let gradient = gradient * factor + decay * *weight;
            *mean = beta1 * *mean + (1.0 - beta1) * gradient;
            *square = beta2 * *square + (1.0 - beta2) * gradient * gradient;
            *weight = kept * *weight - rate * *mean / (square.sqrt() * root + epsilon);
        }
    }

    fn rms_prop(
        weights: &mut [f32],
        gradients: &[f32],
        squares: &mut [f32],
        velocities: &mut [f32],
        options: (f32, f32, f32),
        way: (f32, f32, f32),
    ) {
        let ((factor, decay, rate), (smoothing, epsilon, momentum)) = (options, way);
        for (i, ((weight, gradient), square)) in weights.iter_mut().zip(gradients).zip(squares).enumerate() {
            let gradient = gradient * factor + decay * *weight;
            *square = smoothing * *square + (1.0 - smoothing) * gradient * gradient;
            let way = gradient / (square.sqrt() + epsilon);
            match velocities.get_mut(i) {
                Some(velocity) => {
                    *velocity = momentum * *velocity + way;
                    *weight -= rate * *velocity;
                }
                None => *weight -= rate * way,
            }
        }
    }
}
