//! How the numbers of a sample become inputs.

use serde::{Deserialize, Serialize};
use tidegate_data::arrays::{ArraySource, Element, Part, SampleBatch};
use tidegate_data::sketch::Moments;
use tidegate_memory::Ledger;

use super::layer::{Kind, Layer};
use super::shape::Shape;
use crate::Result;

/// `input = (number - mean) · factor`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scaling {
    /// As they are: numbers of tokens.
    None,
    /// From 0 to 1.
    Byte,
    /// Every channel by its own mean and deviation.
    Standard { means: Vec<f32>, factors: Vec<f32> },
}

/// Samples that mean and deviation are taken from: the error of the mean is below a hundredth of a deviation.
const SAMPLED: u64 = 10_000;

impl Scaling {
    /// What suits the samples of a source and the first layer.
    pub fn choose(
        source: &ArraySource,
        layers: &[Layer],
        input: &Shape,
        part: Part,
        seed: u64,
        ledger: &Ledger,
    ) -> Result<Scaling> {
        let tokens = layers
            .first()
            .is_some_and(|layer| matches!(layer.kind, Kind::Embedding(_)));
        if tokens || source.element() == Element::Bool {
            return Ok(Scaling::None);
        }
        if source.element() == Element::U8 {
            return Ok(Scaling::Byte);
        }
        let mut moments = source.moments(part, SAMPLED, seed, ledger)?;
        if moments.len() != input.channels() {
            // A grey image: all its columns are one channel.
            let mut all = Moments::default();
            moments.iter().for_each(|column| all.merge(column));
            moments = vec![all];
        }
        let factor = |deviation: f64| {
            if deviation > 0.0 {
                (1.0 / deviation) as f32
            } else {
                1.0
            }
        };
        Ok(Scaling::Standard {
            means: moments.iter().map(|moments| moments.mean as f32).collect(),
            factors: moments
                .iter()
                .map(|moments| factor(moments.deviation()))
                .collect(),
        })
    }

    /// Writes the samples of a batch as inputs.
    pub(super) fn write(&self, batch: &SampleBatch, values: &mut [f32]) {
        match self {
            Scaling::None => batch.write_inputs(values),
            Scaling::Byte => batch.write_inputs_times(1.0 / 255.0, values),
            Scaling::Standard { means, factors } => {
                batch.write_inputs(values);
                for place in values.chunks_exact_mut(means.len().max(1)) {
                    for ((value, mean), factor) in place.iter_mut().zip(means).zip(factors) {
                        *value = (*value - mean) * factor;
                    }
                }
            }
        }
    }
}
