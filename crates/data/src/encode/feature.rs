//! A column of the table with the encoder that was chosen for it, and all of them together.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Dummy, Flag, Frequency, Hashed, Impact, ImpactFolds, Keys, Number, Ordinal, Text, Time, Width};
use crate::Role;
use crate::chunk::{Chunk, Read};
use crate::sketch::hash::{MISSING, hash};
use crate::target::Target;

/// A column that feeds the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Feature {
    pub name: String,
    pub role: Role,
    pub read: Read,
    pub encoder: Encoder,
    /// Sparse values that a row has on average.
    #[serde(default)]
    pub sparse_values: f64,
}

/// A fitted way of a column into numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoder {
    /// As it is, not-a-number where it is missing: for models that know what to do with that.
    Keep,
    Number(Number),
    Time(Time),
    Dummy(Dummy),
    Impact(Impact),
    Ordinal(Ordinal),
    Frequency(Frequency),
    Flag(Flag),
    Hash(Hashed),
    Text(Text),
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
        let widths = self.features.iter().map(|feature| feature.encoder.width());
        widths.fold(Width::default(), |sum, width| Width {
            dense: sum.dense + width.dense,
            sparse: sum.sparse + width.sparse,
        })
    }

    /// The name of an encoded value: the dense ones come first, then the sparse ones by place.
    pub fn name(&self, value: usize) -> String {
        let width = self.width();
        let (mut left, is_sparse) = match value.checked_sub(width.dense) {
            Some(place) => (place, true),
            None => (value, false),
        };
        for feature in &self.features {
            let own = feature.encoder.width();
            let (n, before) = if is_sparse {
                (own.sparse, own.dense)
            } else {
                (own.dense, 0)
            };
            if left < n {
                return feature.encoder.name(&feature.name, before + left);
            }
            left -= n;
        }
        format!("value {value}")
    }

    /// Sparse values that a row has on average.
    pub fn sparse_values(&self) -> f64 {
        self.features.iter().map(|feature| feature.sparse_values).sum()
    }

    /// What the encoders themselves take.
    pub fn bytes(&self) -> u64 {
        self.features
            .iter()
            .map(|feature| feature.encoder.bytes() as u64)
            .sum()
    }
}

impl Encoder {
    pub fn width(&self) -> Width {
        match self {
            Encoder::Keep => Width::dense(1),
            Encoder::Number(number) => number.width(),
            Encoder::Time(time) => time.width(),
            Encoder::Dummy(dummy) => dummy.width(),
            Encoder::Impact(impact) => impact.width(),
            Encoder::Ordinal(ordinal) => ordinal.width(),
            Encoder::Frequency(frequency) => frequency.width(),
            Encoder::Flag(flag) => flag.width(),
            Encoder::Hash(hashed) => hashed.width(),
            Encoder::Text(text) => text.width(),
        }
    }

    /// A name for an output, the dense ones first.
    pub fn name(&self, column: &str, output: usize) -> String {
        match self {
            Encoder::Keep => column.into(),
            Encoder::Number(number) => number.name(column, output),
            Encoder::Time(time) => time.name(column, output),
            Encoder::Dummy(dummy) => dummy.name(column, output),
            Encoder::Impact(impact) => impact.name(column, output),
            Encoder::Ordinal(ordinal) => ordinal.name(column, output),
            Encoder::Frequency(frequency) => frequency.name(column, output),
            Encoder::Flag(flag) => flag.name(column, output),
            Encoder::Hash(hashed) => hashed.name(column, output),
            Encoder::Text(text) => text.name(column, output),
        }
    }

    /// What a table of encodings calls it.
    pub fn kind(&self) -> &'static str {
        match self {
            Encoder::Keep => "as it is",
            Encoder::Number(_) => "number",
            Encoder::Time(_) => "parts",
            Encoder::Dummy(_) => "dummy",
            Encoder::Impact(_) => "impact",
            Encoder::Ordinal(_) => "ordinal",
            Encoder::Frequency(_) => "frequency",
            Encoder::Flag(_) => "flag",
            Encoder::Hash(_) => "hash",
            Encoder::Text(_) => "tokens",
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            Encoder::Dummy(dummy) => dummy.bytes(),
            Encoder::Impact(impact) => impact.bytes(),
            Encoder::Ordinal(ordinal) => ordinal.bytes(),
            Encoder::Frequency(frequency) => frequency.bytes(),
            Encoder::Text(text) => text.bytes(),
            _ => 256,
        }
    }

    /// The categories that training saw, where the encoder knows them all.
    pub(crate) fn known(&self) -> Option<&Keys> {
        match self {
            Encoder::Dummy(dummy) => dummy.known(),
            Encoder::Impact(impact) => Some(&impact.lookup.keys),
            Encoder::Ordinal(ordinal) => Some(&ordinal.lookup.keys),
            Encoder::Frequency(frequency) => Some(&frequency.lookup.keys),
            _ => None,
        }
    }

    /// Writes the dense values of the chosen rows, `stride` apart. Training rows are in folds; other rows, and
    /// encoders without folds, go without.
    pub(crate) fn encode_dense(
        &self,
        cells: &Cells,
        folds: Option<(&ImpactFolds, &[Option<u8>])>,
        out: &mut [f32],
        stride: usize,
    ) {
        match (self, cells) {
            (Encoder::Keep, Cells::Numbers(numbers)) => {
                for (number, out) in numbers.iter().zip(out.chunks_mut(stride)) {
                    out[0] = *number as f32;
                }
            }
            (Encoder::Number(number), Cells::Numbers(numbers)) => number.encode(numbers, out, stride),
            (Encoder::Time(time), Cells::Numbers(numbers)) => time.encode(numbers, out, stride),
            (Encoder::Flag(flag), Cells::Numbers(numbers)) => {
                for (number, out) in numbers.iter().zip(out.chunks_mut(stride)) {
                    out[0] = flag.number(*number);
                }
            }
            (Encoder::Flag(flag), Cells::Keys(keys)) => {
                for (key, out) in keys.iter().zip(out.chunks_mut(stride)) {
                    out[0] = flag.category(*key);
                }
            }
            (Encoder::Impact(impact), Cells::Keys(keys)) => {
                impact.encode(keys, out, stride);
                if let Some((of_folds, folds)) = folds {
                    for (i, fold) in folds.iter().enumerate() {
                        if let Some(fold) = fold {
                            let values = of_folds.get(keys[i], *fold);
                            out[i * stride..][..values.len()].copy_from_slice(values);
                        }
                    }
                }
            }
            (Encoder::Dummy(dummy), Cells::Keys(keys)) => dummy.encode(keys, out, stride),
            (Encoder::Ordinal(ordinal), Cells::Keys(keys)) => ordinal.encode(keys, out, stride),
            (Encoder::Frequency(frequency), Cells::Keys(keys)) => frequency.encode(keys, out, stride),
            _ => {}
        }
    }
}

/// The cells of the chosen rows of a column, as encoders take them.
pub(crate) enum Cells<'c> {
    Numbers(Cow<'c, [f64]>),
    Keys(Vec<u64>),
    /// To be read from the chunk itself.
    Texts,
}

impl Cells<'_> {
    /// The cells of a column that is not there.
    pub(crate) fn missing(read: Read, n_rows: usize) -> Cells<'static> {
        match read {
            Read::Text => Cells::Keys(vec![MISSING; n_rows]),
            Read::Number | Read::Boolean | Read::Time(_) => Cells::Numbers(vec![f64::NAN; n_rows].into()),
        }
    }

    pub(crate) fn of<'c>(chunk: &'c Chunk, column: usize, rows: &[u32]) -> Cells<'c> {
        match chunk.columns[column].read {
            Read::Text => {
                let key = |row: &u32| chunk.text(column, *row as usize).map_or(MISSING, hash);
                Cells::Keys(rows.iter().map(key).collect())
            }
            Read::Number | Read::Boolean | Read::Time(_) => {
                let numbers = chunk.numbers(column);
                Cells::Numbers(match rows.len() == numbers.len() {
                    true => numbers.into(),
                    false => rows.iter().map(|row| numbers[*row as usize]).collect(),
                })
            }
        }
    }
}
