//! A numeric column, centred and scaled, with a flag for missing values where there are any.

use serde::{Deserialize, Serialize};

/// Maps a number to `(x − mean) / deviation`, so that columns of any unit weigh alike.
///
/// A missing value becomes 0, the mean. Where the sample had missing values a second output tells them
/// apart: 1 for missing, 0 otherwise; for a linear model that is as good as the best constant to fill in.
///
/// ```
/// use tidegate_data::encode::Scale;
/// let scale = Scale { mean: 10.0, deviation: 2.0, flag_missing: true };
/// assert_eq!(scale.value(13.0), 1.5);
/// assert_eq!(scale.width(), 2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    pub mean: f64,
    /// Never zero: a column that does not vary in the sample keeps its unit.
    pub deviation: f64,
    pub flag_missing: bool,
}

impl Scale {
    /// Centres and scales by the moments of a sample.
    pub fn from_moments(mean: f64, variance: f64, flag_missing: bool) -> Scale {
        let deviation = variance.sqrt();
        // Deviations near the rounding of the mean itself would scale noise up to the size of a signal.
        let varies = deviation.is_finite() && deviation > mean.abs() * 1e-12 && deviation > f64::MIN_POSITIVE;
        Scale {
            mean,
            deviation: if varies { deviation } else { 1.0 },
            flag_missing,
        }
    }

    #[inline]
    pub fn value(&self, x: f64) -> f32 {
        ((x - self.mean) / self.deviation) as f32
    }

    /// How many outputs the column has.
    pub fn width(&self) -> usize {
        1 + usize::from(self.flag_missing)
    }
}
