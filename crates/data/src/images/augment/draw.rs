//! Random numbers by key: the same key draws the same, whoever asks and whenever.

use super::arithmetic::{exp, ln};
use crate::sketch::hash::mix;

/// Which sample, and when: all that its draws depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampleKey {
    pub seed: u64,
    pub epoch: u64,
    /// The number of the sample in its source.
    pub sample: u64,
}

/// Which batch, and when: all that mixing depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchKey {
    pub seed: u64,
    pub epoch: u64,
    /// The position of the batch's first sample in the epoch.
    pub first: u64,
}

/// What is drawn for. The numbers never change: a run that is repeated draws the same.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stream {
    HorizontalFlip = 1,
    VerticalFlip = 2,
    Rotation = 3,
    Shift = 4,
    Shear = 5,
    Zoom = 6,
    Crop = 7,
    Brightness = 8,
    Contrast = 9,
    Saturation = 10,
    Hue = 11,
    Erase = 12,
    Partner = 13,
    MixupOrCutmix = 14,
    Mixup = 15,
    Cutmix = 16,
}

impl SampleKey {
    pub(super) fn draws(&self, stream: Stream) -> Draws {
        Draws::new([self.seed, self.epoch, self.sample], stream)
    }
}

impl BatchKey {
    pub(super) fn draws(&self, stream: Stream) -> Draws {
        Draws::new([self.seed, self.epoch, self.first], stream)
    }
}

/// SplitMix64, started by a key.
#[derive(Debug, Clone)]
pub(super) struct Draws {
    state: u64,
}

impl Draws {
    fn new(key: [u64; 3], stream: Stream) -> Draws {
        // Another start than that of the order of samples, which has the same seed.
        const START: u64 = 0xa5c1_7be9_0d42_6f83;
        let start = mix(START ^ stream as u64);
        Draws {
            state: key.into_iter().fold(start, |state, part| mix(state ^ part)),
        }
    }

    fn next(&mut self) -> u64 {
        // `mix` adds the constant of SplitMix64 before it mixes, so the state goes on by the same.
        let drawn = mix(self.state);
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        drawn
    }

    /// Between 0 and 1, and neither of them, so that there is a logarithm.
    pub(super) fn unit(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// The logarithm is uniform: half as much is as likely as double.
    pub(super) fn ratio_between(&mut self, low: f64, high: f64) -> f64 {
        exp(self.between(ln(low), ln(high))).clamp(low, high)
    }

    pub(super) fn with_probability(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Below `n`.
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Beta(α, α): the share that one of two equal gamma variables has of both.
    pub(super) fn beta(&mut self, alpha: f64) -> f64 {
        let (one, other) = (self.log_gamma_variable(alpha), self.log_gamma_variable(alpha));
        1.0 / (1.0 + exp(other - one))
    }

    /// The logarithm of a Gamma(α) variable, for those of small α are too small to be numbers. Marsaglia and Tsang,
    /// "A simple method for generating gamma variables", 2000; with their G(α) = G(α + 1) · U^(1/α) below 1.
    fn log_gamma_variable(&mut self, alpha: f64) -> f64 {
        if alpha < 1.0 {
            return ln(self.unit()) / alpha + self.log_gamma_variable(alpha + 1.0);
        }
        let d = alpha - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let root = 1.0 + c * x;
            if root <= 0.0 {
                continue;
            }
            let v = root * root * root;
            if ln(self.unit()) < 0.5 * x * x + d * (1.0 - v + ln(v)) {
                return ln(d * v);
            }
        }
    }

    /// Marsaglia's polar method, which takes no sine.
    fn normal(&mut self) -> f64 {
        loop {
            let (u, v) = (self.between(-1.0, 1.0), self.between(-1.0, 1.0));
            let s = u * u + v * v;
            if s < 1.0 {
                return u * (-2.0 * ln(s) / s).sqrt();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(stream: Stream, sample: u64) -> Draws {
        let key = SampleKey {
            seed: 7,
            epoch: 3,
            sample,
        };
        key.draws(stream)
    }

    /// Mean and variance of what is drawn for each of many samples.
    fn moments(draw: impl Fn(&mut Draws) -> f64) -> (f64, f64) {
        const N: u64 = 40_000;
        let drawn: Vec<f64> = (0..N)
            .map(|sample| draw(&mut draws(Stream::Mixup, sample)))
            .collect();
        let mean = drawn.iter().sum::<f64>() / N as f64;
        let squares = drawn.iter().map(|x| (x - mean) * (x - mean));
        (mean, squares.sum::<f64>() / N as f64)
    }

    #[test]
    fn numbers_are_uniform_and_normal() {
        let (mean, variance) = moments(Draws::unit);
        assert!((mean - 0.5).abs() < 0.006 && (variance - 1.0 / 12.0).abs() < 0.002);
        let (mean, variance) = moments(Draws::normal);
        assert!((mean).abs() < 0.02 && (variance - 1.0).abs() < 0.03);
        let (mean, _) = moments(|draws| draws.below(5) as f64);
        assert!((mean - 2.0).abs() < 0.03);
        let (mean, _) = moments(|draws| ln(draws.ratio_between(0.25, 4.0)));
        assert!((mean).abs() < 0.03);
    }

    #[test]
    fn beta_has_its_mean_and_variance() {
        for alpha in [0.01, 0.2, 0.5, 1.0, 2.0, 8.0, 100.0] {
            let (mean, variance) = moments(|draws| draws.beta(alpha));
            let expected = 1.0 / (4.0 * (2.0 * alpha + 1.0));
            assert!((mean - 0.5).abs() < 0.01, "{alpha}: {mean}");
            assert!(
                (variance / expected - 1.0).abs() < 0.04,
                "{alpha}: {variance}, not {expected}"
            );
        }
    }

    #[test]
    fn a_key_is_a_start_of_its_own() {
        let first = |key: [u64; 3], stream| Draws::new(key, stream).next();
        let start = first([1, 2, 3], Stream::Zoom);
        assert_eq!(start, first([1, 2, 3], Stream::Zoom));
        for other in [[2, 1, 3], [1, 3, 2], [0, 2, 3], [1, 2, 4]] {
            assert_ne!(start, first(other, Stream::Zoom));
        }
        assert_ne!(start, first([1, 2, 3], Stream::Crop));
    }
}
