//! What a network is beside its weights: enough to take samples, and to say what it makes of them.

use serde::{Deserialize, Serialize};
use tidegate_data::arrays::{ArraySource, Element, Labels, SampleBatch};
use tidegate_data::images::ImageForm;
use tidegate_data::target::{Target, Task};

use super::layer::{Kind, Layer};
use super::loss::Loss;
use super::machine::Machine;
use super::scaling::Scaling;
use super::shape::Shape;
use crate::{Error, Result};

/// `network.json`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Design {
    pub layers: Vec<Layer>,
    /// The shape of a sample as it comes, and as the first layer takes it.
    pub sample: Vec<usize>,
    pub input: Vec<usize>,
    pub labels: Labels,
    pub scaling: Scaling,
    /// How pictures become samples, where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<ImageForm>,
}

impl Design {
    /// Refuses a sample with a token that the embedding does not have.
    pub(super) fn check_tokens(&self, batch: &SampleBatch, inputs: &[f32]) -> Result<()> {
        let Some(tokens) = self.tokens() else {
            return Ok(());
        };
        let known = |token: &f32| token.fract() == 0.0 && (0.0..tokens as f32).contains(token);
        match inputs.iter().position(|token| !known(token)) {
            None => Ok(()),
            Some(at) => Err(Error::UnknownToken {
                sample: batch.samples()[at / (inputs.len() / batch.n_samples())],
                token: f64::from(inputs[at]),
                tokens,
            }),
        }
    }

    /// Puts the samples and targets of a batch where a machine takes them from.
    pub(super) fn put(&self, batch: &SampleBatch, machine: &mut Machine) -> Result<()> {
        let len = self.input.iter().product::<usize>();
        let inputs = &mut machine.inputs()[..batch.n_samples() * len];
        self.scaling.write(batch, inputs);
        self.check_tokens(batch, inputs)?;
        let targets = batch.targets();
        let into = &mut machine.targets()[..targets.len()];
        into.copy_from_slice(targets);
        self.scale_targets(into);
        Ok(())
    }

    /// Values that the network makes of a sample.
    pub fn outputs(&self) -> usize {
        outputs(&self.labels)
    }

    /// Turns what the network made of a sample into scores: numbers, the probability of the positive value, or one for
    /// each class or flag.
    pub fn scores(&self, made: &[f32], scores: &mut [f64]) {
        match &self.labels {
            Labels::One(Target::Number { mean, deviation }) => {
                scores[0] = mean + deviation * f64::from(made[0]);
            }
            Labels::One(Target::Binary { .. }) => scores[0] = logistic(made[0]),
            Labels::One(Target::Classes { .. }) => {
                let most = made.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let mut sum = 0.0;
                for (score, made) in scores.iter_mut().zip(made) {
                    *score = f64::from(made - most).exp();
                    sum += *score;
                }
                scores.iter_mut().for_each(|score| *score /= sum);
            }
            Labels::Flags { .. } => {
                for (score, made) in scores.iter_mut().zip(made) {
                    *score = logistic(*made);
                }
            }
            Labels::Numbers { scales } => {
                for ((score, made), scale) in scores.iter_mut().zip(made).zip(scales) {
                    *score = scale.mean + scale.deviation * f64::from(*made);
                }
            }
        }
    }

    /// Turns the targets of samples into what the network should make: numbers are scaled.
    pub(super) fn scale_targets(&self, targets: &mut [f32]) {
        let scale = |value: &mut f32, mean: f64, deviation: f64| {
            let deviation = if deviation > 0.0 { deviation } else { 1.0 };
            *value = ((f64::from(*value) - mean) / deviation) as f32;
        };
        match &self.labels {
            Labels::One(Target::Number { mean, deviation }) => {
                targets
                    .iter_mut()
                    .for_each(|value| scale(value, *mean, *deviation));
            }
            Labels::Numbers { scales } => {
                for row in targets.chunks_exact_mut(scales.len().max(1)) {
                    for (value, of) in row.iter_mut().zip(scales) {
                        scale(value, of.mean, of.deviation);
                    }
                }
            }
            _ => {}
        }
    }

    /// The loss that suits the labels.
    pub fn loss(&self) -> Loss {
        match &self.labels {
            Labels::One(target) => match target.task() {
                Task::Regression => Loss::Mse,
                Task::Binary => binary(),
                Task::Multiclass => Loss::CrossEntropy {
                    smoothing: 0.0,
                    class_weights: Vec::new(),
                },
            },
            Labels::Flags { .. } => binary(),
            Labels::Numbers { .. } => Loss::Mse,
        }
    }

    /// Whether a loss is one for these labels.
    pub fn takes(&self, loss: &Loss) -> bool {
        match self.loss() {
            Loss::Mse => matches!(loss, Loss::Mse | Loss::Mae | Loss::Huber { .. }),
            suits => std::mem::discriminant(&suits) == std::mem::discriminant(loss),
        }
    }

    /// Tokens that a sample may hold, where it is made of them.
    pub(super) fn tokens(&self) -> Option<usize> {
        match self.layers.first().map(|layer| &layer.kind) {
            Some(Kind::Embedding(embedding)) => Some(embedding.tokens),
            _ => None,
        }
    }

    /// The word for the task in `model.toml`.
    pub fn task(&self) -> &'static str {
        match &self.labels {
            Labels::One(target) => match target.task() {
                Task::Regression => "regression",
                Task::Binary => "binary",
                Task::Multiclass => "multiclass",
            },
            Labels::Flags { .. } => "flags",
            Labels::Numbers { .. } => "numbers",
        }
    }
}

fn binary() -> Loss {
    Loss::Binary {
        class_weights: Vec::new(),
    }
}

fn logistic(z: f32) -> f64 {
    1.0 / (1.0 + (-f64::from(z)).exp())
}

pub(super) fn outputs(labels: &Labels) -> usize {
    match labels {
        Labels::One(target) => match target.task() {
            Task::Multiclass => target.labels().len(),
            Task::Regression | Task::Binary => 1,
        },
        Labels::Flags { width, .. } => *width,
        Labels::Numbers { scales } => scales.len(),
    }
}

/// The shape in which the first layer takes samples: images without channels get one.
pub fn input_shape(source: &ArraySource, layers: Option<&[Layer]>) -> Shape {
    let shape = source.shape().to_vec();
    let looks = |layer: &Layer| {
        matches!(
            layer.kind,
            Kind::Conv(_) | Kind::Depthwise(_) | Kind::Pool(..) | Kind::Residual(_) | Kind::Norm(_)
        )
    };
    let looked_at = layers.is_none_or(|layers| layers.first().is_some_and(looks));
    match shape.as_slice() {
        [] => Shape(vec![1]),
        // Bytes on two axes are the pixels of a grey image; other numbers may as well be a sequence.
        [rows, columns] if looked_at && (layers.is_none() || source.element() == Element::U8) => {
            Shape(vec![*rows, *columns, 1])
        }
        _ => Shape(shape),
    }
}
