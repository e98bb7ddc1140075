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
/// Sums side by side, about so many: vector instructions take several at once, and all stay in the first-level cache.
const LANES: usize = 384;

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
            prefetch: self.good_prefetch(batch, 1).min(ledger.free() / 4),
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

/// Room to sum up a piece: a lane for each channel, or several. Distances are taken to a number near the mean, so that
/// their squares lose nothing.
struct Sums {
    n_channels: usize,
    near: Vec<f64>,
    count: Vec<f64>,
    sum: Vec<f64>,
    squares: Vec<f64>,
    min: Vec<f32>,
    max: Vec<f32>,
}

impl Sums {
    const LANE_BYTES: usize = 4 * size_of::<f64>() + 2 * size_of::<f32>();

    fn new(n_channels: usize, n_lanes: usize) -> Sums {
        Sums {
            n_channels,
            near: vec![0.0; n_lanes],
            count: vec![0.0; n_lanes],
            sum: vec![0.0; n_lanes],
            squares: vec![0.0; n_lanes],
            min: vec![0.0; n_lanes],
            max: vec![0.0; n_lanes],
        }
    }

    fn add(&mut self, numbers: &[f32], moments: &mut [Moments]) {
        self.begin(numbers, moments);
        for row in numbers.chunks(self.near.len()) {
            self.add_row(row);
        }
        for lane in (0..self.near.len()).filter(|lane| self.count[*lane] > 0.0) {
            let (count, sum) = (self.count[lane], self.sum[lane]);
            moments[lane % self.n_channels].merge(&Moments {
                count: count as u64,
                mean: self.near[lane] + sum / count,
                squares: (self.squares[lane] - sum * sum / count).max(0.0),
                min: f64::from(self.min[lane]),
                max: f64::from(self.max[lane]),
            });
        }
    }

    fn begin(&mut self, numbers: &[f32], moments: &[Moments]) {
        for (lane, near) in self.near.iter_mut().enumerate() {
            let channel = lane % self.n_channels;
            // Before anything is known, the first number is near enough.
            let first = numbers.get(channel).copied().filter(|x| x.is_finite());
            *near = match &moments[channel] {
                Moments { count: 0, .. } => f64::from(first.unwrap_or_default()),
                known => known.mean,
            };
        }
        self.count.fill(0.0);
        self.sum.fill(0.0);
        self.squares.fill(0.0);
        self.min.fill(f32::INFINITY);
        self.max.fill(f32::NEG_INFINITY);
    }

    fn add_row(&mut self, row: &[f32]) {
        let n = row.len();
        let (near, count) = (&self.near[..n], &mut self.count[..n]);
        let (sum, squares) = (&mut self.sum[..n], &mut self.squares[..n]);
        for i in 0..n {
            let finite = row[i].is_finite();
            let delta = if finite { f64::from(row[i]) - near[i] } else { 0.0 };
            count[i] += if finite { 1.0 } else { 0.0 };
            sum[i] += delta;
            squares[i] += delta * delta;
        }
        let (min, max) = (&mut self.min[..n], &mut self.max[..n]);
        for i in 0..n {
            let least = if row[i].is_finite() { row[i] } else { f32::INFINITY };
            let most = if row[i].is_finite() {
                row[i]
            } else {
                f32::NEG_INFINITY
            };
            min[i] = if least < min[i] { least } else { min[i] };
            max[i] = if most > max[i] { most } else { max[i] };
        }
    }
}
