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
            // Eight sums side by side: each addition waits for the one before it in its own lane only.
            let mut lanes = [Lane::default(); 8];
            each_finite(chunk, &mut lanes, |lane, x, finite| {
                lane.count += u64::from(finite);
                lane.sum += if finite { x } else { 0.0 };
                lane.min = lane.min.min(if finite { x } else { f64::INFINITY });
                lane.max = lane.max.max(if finite { x } else { f64::NEG_INFINITY });
            });
            let count: u64 = lanes.iter().map(|lane| lane.count).sum();
            if count == 0 {
                continue;
            }
            let mean = lanes.iter().map(|lane| lane.sum).sum::<f64>() / count as f64;
            let mut squares = [0.0; 8];
            each_finite(chunk, &mut squares, |squares, x, finite| {
                let delta = if finite { x - mean } else { 0.0 };
                *squares += delta * delta;
            });
            self.merge(&Moments {
                count,
                mean,
                squares: squares.iter().sum(),
                min: lanes.iter().map(|lane| lane.min).fold(f64::INFINITY, f64::min),
                max: lanes
                    .iter()
                    .map(|lane| lane.max)
                    .fold(f64::NEG_INFINITY, f64::max),
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

#[derive(Clone, Copy)]
struct Lane {
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
}

impl Default for Lane {
    fn default() -> Lane {
        Lane {
            count: 0,
            sum: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }
}

/// Deals the values out to eight lanes in turn, with whether each is finite.
#[inline(always)]
fn each_finite<T>(values: &[f64], lanes: &mut [T; 8], mut take: impl FnMut(&mut T, f64, bool)) {
    let (rows, rest) = values.as_chunks::<8>();
    for row in rows {
        for (lane, &x) in lanes.iter_mut().zip(row) {
            take(lane, x, x.is_finite());
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        take(lane, x, x.is_finite());
    }
}
