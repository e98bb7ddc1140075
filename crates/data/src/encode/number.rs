//! A numeric column: filled where it is missing, clipped, scaled, with a flag for missing values.

use serde::{Deserialize, Serialize};

use super::{Scale, Width};
use crate::sketch::{Moments, Quantiles};

/// What is wanted of a numeric column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NumberOptions {
    pub scale: ScaleBy,
    pub clip: Clip,
    pub impute: Impute,
    /// A second output that is 1 where the value is missing. By default where missing values were seen.
    pub flag_missing: Option<bool>,
}

impl Default for NumberOptions {
    fn default() -> NumberOptions {
        NumberOptions {
            scale: ScaleBy::Standard,
            clip: Clip::None,
            impute: Impute::Mean,
            flag_missing: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScaleBy {
    Keep,
    /// To mean 0 and deviation 1.
    Standard,
    /// To the range from 0 to 1.
    MinMax,
    /// To the share of values below, from 0 to 1.
    Rank,
    /// To the number of one of so many bins of equal weight.
    Bins(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clip {
    None,
    /// At these values.
    Values(f64, f64),
    /// At the values of these quantiles, such as 0.01 and 0.99.
    Quantiles(f64, f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Impute {
    Mean,
    Median,
    Constant(f64),
    /// Missing values stay missing.
    Leave,
}

/// How a value is scaled, with what was learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumberScale {
    Keep,
    /// `(x − mean) / deviation`
    Standard {
        mean: f64,
        deviation: f64,
    },
    /// `(x − min) / (max − min)`
    MinMax {
        min: f64,
        max: f64,
    },
    /// Between landmarks at equal shares of the values, interpolated; the middle of the shares where landmarks
    /// are equal.
    Rank {
        landmarks: Vec<f64>,
    },
    /// The number of cuts that are at most `x`.
    Bins {
        cuts: Vec<f64>,
    },
}

/// Landmarks of a rank: every half per cent, within the error of the sketch.
const LANDMARKS: usize = 201;

/// A fitted numeric column. A missing value becomes `fill`, unless it is left; then values are clipped, then scaled.
///
/// ```
/// use tidegate_data::encode::{Number, NumberScale};
/// let number = Number {
///     scale: NumberScale::MinMax { min: 10.0, max: 20.0 },
///     clip: Some((10.0, 18.0)),
///     fill: 15.0,
///     leave_missing: false,
///     flag_missing: true,
/// };
/// assert_eq!([15.0, 30.0, f64::NAN].map(|x| number.value(x)), [0.5, 0.8, 0.5]);
/// let mut out = [0.0; 4];
/// number.encode(&[20.0, f64::NAN], &mut out, 2);
/// assert_eq!(out, [0.8, 0.0, 0.5, 1.0]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Number {
    pub scale: NumberScale,
    /// In the unit of the column.
    pub clip: Option<(f64, f64)>,
    /// Stands for a missing value, in the unit of the column.
    pub fill: f64,
    /// Nothing stands for a missing value: it stays not-a-number, for models that know what to do with that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leave_missing: bool,
    pub flag_missing: bool,
}

impl Number {
    /// `missing` is how many rows had no value.
    pub fn fit(options: &NumberOptions, moments: &Moments, quantiles: &Quantiles, missing: u64) -> Number {
        let quantile = |q| quantiles.quantile(q).unwrap_or(0.0);
        let clip = match options.clip {
            Clip::None => None,
            Clip::Values(low, high) => Some((low.min(high), low.max(high))),
            Clip::Quantiles(low, high) => Some((quantile(low.min(high)), quantile(low.max(high)))),
        };
        let clipped = |x: f64| clip.map_or(x, |(low, high)| x.max(low).min(high));
        let scale = match options.scale {
            ScaleBy::Keep => NumberScale::Keep,
            ScaleBy::Standard => {
                let Scale { mean, deviation, .. } =
                    Scale::from_moments(moments.mean, moments.variance(), false);
                NumberScale::Standard { mean, deviation }
            }
            ScaleBy::MinMax => NumberScale::MinMax {
                min: clipped(moments.min),
                max: clipped(moments.max),
            },
            ScaleBy::Rank => {
                let shares: Vec<f64> = (0..LANDMARKS)
                    .map(|i| i as f64 / (LANDMARKS - 1) as f64)
                    .collect();
                NumberScale::Rank {
                    landmarks: quantiles.quantiles(&shares).unwrap_or_default(),
                }
            }
            ScaleBy::Bins(bins) => NumberScale::Bins {
                cuts: quantiles.cuts(bins),
            },
        };
        Number {
            scale,
            clip,
            fill: match options.impute {
                Impute::Mean => moments.mean,
                Impute::Median => quantile(0.5),
                Impute::Constant(value) => value,
                Impute::Leave => 0.0,
            },
            leave_missing: options.impute == Impute::Leave,
            flag_missing: options.flag_missing.unwrap_or(missing > 0),
        }
    }

    /// One value; not a number means missing.
    #[inline]
    pub fn value(&self, x: f64) -> f32 {
        if self.leave_missing && x.is_nan() {
            return f32::NAN;
        }
        let x = if x.is_nan() { self.fill } else { x };
        let x = self.clip.map_or(x, |(low, high)| x.max(low).min(high));
        let scaled = match &self.scale {
            NumberScale::Keep => x,
            NumberScale::Standard { mean, deviation } => (x - mean) / deviation,
            // A column that does not vary is 0, as is what the clip makes equal.
            NumberScale::MinMax { min, max } if min == max => x - min,
            NumberScale::MinMax { min, max } => (x - min) / (max - min),
            NumberScale::Rank { landmarks } => rank(landmarks, x),
            NumberScale::Bins { cuts } => cuts.partition_point(|&cut| cut <= x) as f64,
        };
        scaled as f32
    }

    /// Writes the outputs of each row, rows being `stride` apart.
    pub fn encode(&self, values: &[f64], out: &mut [f32], stride: usize) {
        for (row, &x) in values.iter().enumerate() {
            out[row * stride] = self.value(x);
            if self.flag_missing {
                out[row * stride + 1] = f32::from(u8::from(x.is_nan()));
            }
        }
    }

    pub fn width(&self) -> Width {
        Width::dense(1 + usize::from(self.flag_missing))
    }

    pub fn name(&self, column: &str, output: usize) -> String {
        match output {
            0 => column.to_string(),
            _ => format!("{column}=missing"),
        }
    }
}

/// The share of values below `x`; among equal landmarks the middle, as scikit-learn has it.
fn rank(landmarks: &[f64], x: f64) -> f64 {
    let Some(last) = landmarks.len().checked_sub(1).filter(|&last| last > 0) else {
        return 0.5;
    };
    let below = landmarks.partition_point(|&landmark| landmark < x);
    let up_to = landmarks.partition_point(|&landmark| landmark <= x);
    let place = match (below, up_to) {
        _ if up_to > below && below == 0 => 0.0,
        _ if up_to > below && up_to > last => last as f64,
        _ if up_to > below => (below + up_to - 1) as f64 / 2.0,
        (0, _) => 0.0,
        _ if below > last => last as f64,
        _ => {
            let (low, high) = (landmarks[below - 1], landmarks[below]);
            (below - 1) as f64 + (x - low) / (high - low)
        }
    };
    place / last as f64
}
