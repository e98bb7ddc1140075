//! Mean and spread of each channel, over a seeded sample, for scaling.

use std::ops::ControlFlow;

use tidegate_memory::Ledger;

use super::feed::FeedOptions;
use super::order::Order;
use super::source::{ArraySource, Part};
use crate::sketch::Moments;
use crate::{Error, Result};

/// Numbers summed up at once.
const PIECE: usize = 256 << 10;
/// Sums side by side, so that one addition does not wait for the one before.
const LANES: usize = 32;

impl ArraySource {
    /// Mean and spread along the last axis of a sample, the channels of an image or the features of a row, over at most
    /// `most` samples of a part, drawn by the seed. Numbers that are not finite are left out.
    ///
    /// ```text
    /// mean_c = Σ x_c / n        variance_c = Σ (x_c − mean_c)² / n
    /// ```
    pub fn moments(&self, part: Part, most: u64, seed: u64, ledger: &Ledger) -> Result<Vec<Moments>> {
        let (n_channels, sample_len) = (self.shape().last().copied().unwrap_or(1), self.sample_len());
        let batch = (PIECE / sample_len).clamp(1, most.clamp(1, 1 << 20) as usize);
        let lanes = n_channels * (LANES / n_channels).max(1);
        let bytes = 4 * batch * sample_len + lanes * Sums::LANE_BYTES + n_channels * size_of::<Moments>();
        let holder = ledger.holder("moments");
        let _granted = holder.try_grant(bytes as u64)?;
        let mut numbers = vec![0f32; batch * sample_len];
        let mut sums = Sums::new(n_channels, lanes);
        let mut moments = vec![Moments::default(); n_channels];
        let options = FeedOptions {
            batch,
            // Another order than any epoch's.
            order: Order::Shuffled {
                seed,
                epoch: u64::MAX,
            },
            start: 0,
            part,
            prefetch: ledger.free() / 4,
            threads: 1,
        };
        let mut left = most;
        self.feed(&options, ledger, |batch| {
            let n = left.min(batch.n_samples() as u64);
            left -= n;
            batch.write_inputs(&mut numbers);
            sums.add(&numbers[..n as usize * sample_len], &mut moments);
            Ok::<_, Error>(match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        })?;
        Ok(moments)
    }
}

/// Room to sum up a piece: a lane for each channel, or several. Loops over lanes that stand together become vector
/// instructions.
struct Sums {
    n_channels: usize,
    sums: Vec<f64>,
    counts: Vec<f64>,
    means: Vec<f64>,
    squares: Vec<f64>,
    min: Vec<f32>,
    max: Vec<f32>,
}

impl Sums {
    const LANE_BYTES: usize = 4 * size_of::<f64>() + 2 * size_of::<f32>();

    fn new(n_channels: usize, lanes: usize) -> Sums {
        Sums {
            n_channels,
            sums: vec![0.0; lanes],
            counts: vec![0.0; lanes],
            means: vec![0.0; lanes],
            squares: vec![0.0; lanes],
            min: vec![0.0; lanes],
            max: vec![0.0; lanes],
        }
    }

    fn add(&mut self, numbers: &[f32], moments: &mut [Moments]) {
        let lanes = self.sums.len();
        self.sums.fill(0.0);
        self.counts.fill(0.0);
        self.squares.fill(0.0);
        self.min.fill(f32::INFINITY);
        self.max.fill(f32::NEG_INFINITY);
        for row in numbers.chunks(lanes) {
            let each = row.iter().zip(&mut self.sums).zip(&mut self.counts);
            for (((x, sum), count), (min, max)) in each.zip(self.min.iter_mut().zip(&mut self.max)) {
                let finite = x.is_finite();
                *sum += f64::from(if finite { *x } else { 0.0 });
                *count += if finite { 1.0 } else { 0.0 };
                *min = min.min(if finite { *x } else { f32::INFINITY });
                *max = max.max(if finite { *x } else { f32::NEG_INFINITY });
            }
        }
        for lane in 0..lanes {
            let channel = lane % self.n_channels;
            let (sum, count) = (self.of(&self.sums, channel), self.of(&self.counts, channel));
            self.means[lane] = if count > 0.0 { sum / count } else { 0.0 };
        }
        for row in numbers.chunks(lanes) {
            for ((x, squares), mean) in row.iter().zip(&mut self.squares).zip(&self.means) {
                let delta = if x.is_finite() { f64::from(*x) - mean } else { 0.0 };
                *squares += delta * delta;
            }
        }
        for (channel, moments) in moments.iter_mut().enumerate() {
            let each = |values: &[f32], better: fn(f32, f32) -> f32, worst: f32| {
                let values = values.iter().skip(channel).step_by(self.n_channels);
                f64::from(values.copied().fold(worst, better))
            };
            let count = self.of(&self.counts, channel) as u64;
            if count == 0 {
                continue;
            }
            moments.merge(&Moments {
                count,
                mean: self.means[channel],
                squares: self.of(&self.squares, channel),
                min: each(&self.min, f32::min, f32::INFINITY),
                max: each(&self.max, f32::max, f32::NEG_INFINITY),
            });
        }
    }

    /// The sum over the lanes of a channel.
    fn of(&self, values: &[f64], channel: usize) -> f64 {
        values.iter().skip(channel).step_by(self.n_channels).sum()
    }
}
