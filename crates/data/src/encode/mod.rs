//! A column's way into numbers, one file per encoder.

pub mod scale;

pub use scale::Scale;

use serde::{Deserialize, Serialize};

use crate::batch::Width;
use crate::chunk::{Chunk, Read};
use crate::target::Target;

/// A column that feeds the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Feature {
    pub name: String,
    pub read: Read,
    pub encoder: Encoder,
}

/// A fitted way of a column into numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoder {
    Scale(Scale),
}

/// Everything fitted on the training table that another table needs to be encoded the same way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Encoders {
    pub features: Vec<Feature>,
    pub target_column: String,
    pub target: Target,
    /// The user's own words for missing values.
    #[serde(default)]
    pub missing: Vec<String>,
}

impl Encoders {
    /// The number of values a row has after encoding.
    pub fn width(&self) -> Width {
        self.features
            .iter()
            .fold(Width::default(), |sum, feature| sum + feature.encoder.width())
    }

    /// A name for each encoded value, in order: the dense ones first.
    pub fn names(&self) -> Vec<String> {
        self.features
            .iter()
            .flat_map(|feature| feature.encoder.dense_names(&feature.name))
            .collect()
    }

    /// Sparse values that a row has on average.
    pub fn sparse_values(&self) -> f64 {
        0.0
    }
}

impl Encoder {
    pub fn width(&self) -> Width {
        match self {
            Encoder::Scale(scale) => Width {
                dense: scale.width(),
                sparse: 0,
            },
        }
    }

    fn dense_names(&self, column: &str) -> Vec<String> {
        match self {
            Encoder::Scale(scale) => {
                let mut names = vec![column.to_string()];
                if scale.flag_missing {
                    names.push(format!("{column} is missing"));
                }
                names
            }
        }
    }

    /// Writes the dense values of the chosen rows: `out[i * stride + at..]` for the i-th of them.
    pub(crate) fn encode_dense(
        &self,
        chunk: &Chunk,
        column: usize,
        rows: &[u32],
        out: &mut [f32],
        (at, stride): (usize, usize),
    ) {
        match self {
            Encoder::Scale(scale) => {
                let numbers = chunk.numbers(column);
                let inverse = 1.0 / scale.deviation;
                for (row, out) in rows.iter().zip(out.chunks_exact_mut(stride)) {
                    let number = numbers[*row as usize];
                    if number.is_nan() {
                        if scale.flag_missing {
                            out[at + 1] = 1.0;
                        }
                    } else {
                        out[at] = ((number - scale.mean) * inverse) as f32;
                    }
                }
            }
        }
    }
}
