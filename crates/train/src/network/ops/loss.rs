//! The loss of every sample, and its slope by the outputs.

use super::super::arena::Buffer;
use super::super::loss::Loss;
use super::super::step::{Mix, Op, Step};
use crate::exponential::exp;

pub(crate) struct Losses {
    pub loss: Loss,
    pub outputs: usize,
    /// What the network made.
    pub made: Buffer,
    pub targets: Buffer,
    /// One for each sample.
    pub losses: Buffer,
    /// Where slopes go, if anything learns.
    pub slope: Option<Buffer>,
}

impl Op for Losses {
    fn run(&self, step: &Step<'_>) {
        let n = self.outputs;
        let n_targets = self.loss.n_targets(n);
        let rows = step.rows;
        // SAFETY: nothing else runs.
        unsafe {
            let made = step.span(self.made).part(0..rows * n).read();
            let targets = step.span(self.targets).part(0..rows * n_targets).read();
            let losses = step.span(self.losses).part(0..rows).write();
            let mut slopes = self
                .slope
                .filter(|_| step.training)
                .map(|slope| step.span(slope).part(0..rows * n).write());
            for (row, loss) in losses.iter_mut().enumerate() {
                let made = &made[row * n..(row + 1) * n];
                let target = |row: usize| &targets[row * n_targets..(row + 1) * n_targets];
                let mut slopes = slopes.as_mut().map(|slopes| &mut slopes[row * n..(row + 1) * n]);
                *loss = match step.mix {
                    None => self.of_row(made, target(row), step.share, slopes, false),
                    // The loss of its own target and of its partner's, each as far as it is in the sample.
                    Some(Mix { distance, share }) => {
                        let rest = 1.0 - share;
                        let partner = target((row + distance) % rows);
                        let own = self.of_row(
                            made,
                            target(row),
                            step.share * share,
                            slopes.as_deref_mut(),
                            false,
                        );
                        share * own + rest * self.of_row(made, partner, step.share * rest, slopes, true)
                    }
                };
            }
        }
    }
}

impl Losses {
    /// The loss of a sample. Its slopes are put in place of what is there, or added to it.
    fn of_row(
        &self,
        made: &[f32],
        targets: &[f32],
        share: f32,
        slopes: Option<&mut [f32]>,
        adds: bool,
    ) -> f32 {
        if let Loss::CrossEntropy {
            smoothing,
            class_weights,
        } = &self.loss
        {
            let options = (*smoothing, class_weights.as_slice());
            return cross_entropy(made, targets[0] as usize, options, share, slopes, adds);
        }
        let each = |value: fn(f32, f32, f32) -> (f32, f32), option: f32| {
            let part = 1.0 / made.len() as f32;
            let mut sum = 0.0;
            let mut slopes = slopes;
            for (i, (z, y)) in made.iter().zip(targets).enumerate() {
                let (loss, slope) = value(*z, *y, option);
                let weight = self.loss.weight(*y);
                let (loss, slope) = (weight * loss, weight * slope);
                sum += loss;
                if let Some(slopes) = &mut slopes {
                    let before = if adds { slopes[i] } else { 0.0 };
                    slopes[i] = before + slope * part * share;
                }
            }
            sum * part
        };
        match &self.loss {
            Loss::CrossEntropy { .. } | Loss::Binary { .. } => each(
                |z, y, _| {
                    let e = exp(-z.abs());
                    let positive = if z >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) };
                    (z.max(0.0) - z * y + e.ln_1p(), positive - y)
                },
                0.0,
            ),
            Loss::Mse => each(|z, y, _| ((z - y) * (z - y), 2.0 * (z - y)), 0.0),
            Loss::Mae => each(
                |z, y, _| {
                    let away = z - y;
                    (away.abs(), if away == 0.0 { 0.0 } else { away.signum() })
                },
                0.0,
            ),
            Loss::Huber { delta } => each(
                |z, y, delta| {
                    let away = z - y;
                    match away.abs() <= delta {
                        true => (0.5 * away * away, away),
                        false => (delta * (away.abs() - 0.5 * delta), delta * away.signum()),
                    }
                },
                *delta,
            ),
        }
    }
}

fn cross_entropy(
    made: &[f32],
    class: usize,
    (smoothing, weights): (f32, &[f32]),
    share: f32,
    slopes: Option<&mut [f32]>,
    adds: bool,
) -> f32 {
    let most = made.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = made.iter().map(|z| exp(z - most)).sum();
    let log_sum = sum.ln() + most;
    let weight = |class: usize| weights.get(class).copied().unwrap_or(1.0);
    let even = smoothing / made.len() as f32;
    // How much the loss asks of each class.
    let asked = |c: usize| {
        even * weight(c)
            + if c == class {
                (1.0 - smoothing) * weight(c)
            } else {
                0.0
            }
    };
    let all: f32 = match smoothing == 0.0 {
        true => weight(class),
        false => (0..made.len()).map(asked).sum(),
    };
    if let Some(slopes) = slopes {
        for (c, (slope, z)) in slopes.iter_mut().zip(made).enumerate() {
            let before = if adds { *slope } else { 0.0 };
            *slope = before + (all * (exp(z - most) / sum) - asked(c)) * share;
        }
    }
    match smoothing == 0.0 {
        true => all * (log_sum - made.get(class).copied().unwrap_or(f32::NAN)),
        false => made
            .iter()
            .enumerate()
            .map(|(c, z)| asked(c) * (log_sum - z))
            .sum(),
    }
}
