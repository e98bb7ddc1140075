//! The span of a column of times, and how finely they are told.

use serde::{Deserialize, Serialize};

/// The finest part that is not zero in some value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    #[default]
    Day,
    Hour,
    Minute,
    Second,
    Fraction,
}

/// First and last of the times seen, in seconds since 1970-01-01 in UTC, missing ones left out.
///
/// ```
/// use tidegate_data::sketch::{Resolution, Times};
/// let mut times = Times::default();
/// times.push_slice(&[0.0, 86_400.0, f64::NAN, 3_600.0]);
/// assert_eq!((times.count, times.max, times.resolution), (3, 86_400.0, Resolution::Hour));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub count: u64,
    /// Zero, as is the last, while nothing was seen.
    pub min: f64,
    pub max: f64,
    pub resolution: Resolution,
}

impl Times {
    pub fn push_slice(&mut self, seconds: &[f64]) {
        for &x in seconds.iter().filter(|x| x.is_finite()) {
            // Whole seconds as an integer: a remainder of floats takes ten times as long.
            let whole = x as i64;
            let resolution = match whole {
                _ if whole as f64 != x => Resolution::Fraction,
                _ if whole % 60 != 0 => Resolution::Second,
                _ if whole % 3_600 != 0 => Resolution::Minute,
                _ if whole % 86_400 != 0 => Resolution::Hour,
                _ => Resolution::Day,
            };
            self.merge(&Times {
                count: 1,
                min: x,
                max: x,
                resolution,
            });
        }
    }

    /// Adds what a later part of the data held.
    pub fn merge(&mut self, later: &Times) {
        if self.count == 0 || later.count == 0 {
            if self.count == 0 {
                *self = *later;
            }
            return;
        }
        self.count += later.count;
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.resolution = self.resolution.max(later.resolution);
    }
}
