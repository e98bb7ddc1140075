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
/// Sums side by side: a whole number of times 1, 2, 3 or 4 channels.
const LANES: usize = 24;

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
        let bytes = 4 * batch * sample_len + lanes * size_of::<Lane>() + n_channels * size_of::<Moments>();
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
            prefetch: self.good_prefetch(batch).min(ledger.free() / 4),
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

/// Room to sum up a piece: a lane for each channel, or several.
struct Sums {
    n_channels: usize,
    lanes: Vec<Lane>,
}

/// Sums of distances to a number near the mean, so that their squares lose nothing.
#[derive(Clone, Copy)]
struct Lane {
    near: f64,
    count: f64,
    sum: f64,
    squares: f64,
    min: f32,
    max: f32,
}

impl Lane {
    fn new(near: f64) -> Lane {
        Lane {
            near,
            count: 0.0,
            sum: 0.0,
            squares: 0.0,
            min: f32::INFINITY,
            max: f32::NEG_INFINITY,
        }
    }

    #[inline(always)]
    fn add(&mut self, x: f32) {
        let finite = x.is_finite();
        let delta = if finite { f64::from(x) - self.near } else { 0.0 };
        self.count += if finite { 1.0 } else { 0.0 };
        self.sum += delta;
        self.squares += delta * delta;
        self.min = if finite && x < self.min { x } else { self.min };
        self.max = if finite && x > self.max { x } else { self.max };
    }

    fn moments(&self) -> Moments {
        let mean = self.sum / self.count;
        Moments {
            count: self.count as u64,
            mean: self.near + mean,
            squares: (self.squares - self.sum * mean).max(0.0),
            min: f64::from(self.min),
            max: f64::from(self.max),
        }
    }
}

impl Sums {
    fn new(n_channels: usize, n_lanes: usize) -> Sums {
        let lanes = vec![Lane::new(0.0); n_lanes];
        Sums { n_channels, lanes }
    }

    fn add(&mut self, numbers: &[f32], moments: &mut [Moments]) {
        for (i, lane) in self.lanes.iter_mut().enumerate() {
            let known = &moments[i % self.n_channels];
            // Before anything is known, the first number is near enough.
            let first = numbers
                .get(i % self.n_channels)
                .copied()
                .filter(|x| x.is_finite());
            let near = if known.count > 0 {
                known.mean
            } else {
                first.unwrap_or_default().into()
            };
            *lane = Lane::new(near);
        }
        for row in numbers.chunks(self.lanes.len()) {
            for (lane, x) in self.lanes.iter_mut().zip(row) {
                lane.add(*x);
            }
        }
        for (i, lane) in self.lanes.iter().enumerate() {
            if lane.count > 0.0 {
                moments[i % self.n_channels].merge(&lane.moments());
            }
        }
    }
}
