//! Count, mean, spread and range of a numeric column.

use serde::{Deserialize, Serialize};

/// Moments of the finite values seen; missing and infinite ones are left out.
///
/// Welford's update for single values, Chan's for merging: `M2 = M2a + M2b + δ²·na·nb/n`, which stays exact to
/// rounding where a sum of squares would cancel.
///
/// ```
/// use tidegate_data::sketch::Moments;
/// let mut moments = Moments::default();
/// moments.push_slice(&[1.0, f64::NAN, 3.0]);
/// assert_eq!((moments.count, moments.mean, moments.variance()), (2, 2.0, 1.0));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    pub count: u64,
    pub mean: f64,
    /// The sum of squared distances to the mean.
    pub squares: f64,
    /// Zero, as is the maximum, while nothing was seen.
    pub min: f64,
    pub max: f64,
}

/// Values summed at once by [`Moments::push_slice`]: they stay in the first-level cache for the second look.
const CHUNK: usize = 512;

impl Moments {
    #[inline]
    pub fn push(&mut self, x: f64) {
        if !x.is_finite() {
            return;
        }
        let first = self.count == 0;
        self.count += 1;
        let delta = x - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (x - self.mean);
        self.min = if first { x } else { self.min.min(x) };
        self.max = if first { x } else { self.max.max(x) };
    }

    /// Many values at once, without a division for each.
    pub fn push_slice(&mut self, values: &[f64]) {
        for chunk in values.chunks(CHUNK) {
            let finite = |x: &&f64| x.is_finite();
            let (mut count, mut sum) = (0u64, 0.0);
            let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
            for x in chunk.iter().filter(finite) {
                count += 1;
                sum += x;
                min = min.min(*x);
                max = max.max(*x);
            }
            if count == 0 {
                continue;
            }
            let mean = sum / count as f64;
            let squares = chunk.iter().filter(finite).map(|x| (x - mean) * (x - mean)).sum();
            self.merge(&Moments {
                count,
                mean,
                squares,
                min,
                max,
            });
        }
    }

    /// Adds what a later part of the data held.
    pub fn merge(&mut self, later: &Moments) {
        if self.count == 0 || later.count == 0 {
            if self.count == 0 {
                *self = *later;
            }
            return;
        }
        let (a, b) = (self.count as f64, later.count as f64);
        let delta = later.mean - self.mean;
        self.count += later.count;
        self.mean += delta * (b / (a + b));
        self.squares += later.squares + delta * delta * (a * b / (a + b));
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
    }

    /// Of the values seen themselves: divided by their count.
    pub fn variance(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.squares / self.count as f64
    }

    pub fn deviation(&self) -> f64 {
        self.variance().sqrt()
    }
}
