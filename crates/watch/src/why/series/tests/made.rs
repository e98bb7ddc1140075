//! Recordings of programs that never ran: shapes of memory from seeds, sampled as the recorder samples.

use std::f64::consts::TAU;

use tidegate_runs::FlightRecord;

use crate::why::Case;

/// SplitMix64 (Steele, Lea and Flood 2014): small, and the same on every machine.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ 0x9E37_79B9_7F4A_7C15)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.next() >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// Even on a scale of orders of magnitude.
    pub(super) fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    pub(super) fn normal(&mut self) -> f64 {
        let (a, b) = (self.between(1e-12, 1.0), self.between(0.0, 1.0));
        (-2.0 * a.ln()).sqrt() * (TAU * b).cos()
    }

    pub(super) fn count(&mut self, low: usize, high: usize) -> usize {
        low + (self.next() % (high - low + 1) as u64) as usize
    }
}

/// What is drawn for one run: how long, how large, how often looked at, how rough.
pub(super) struct Setting {
    pub(super) seconds: f64,
    pub(super) base: f64,
    pub(super) every_ms: u64,
    /// Of the base, as a standard deviation.
    pub(super) noise: f64,
}

impl Setting {
    /// From 3 s to 10 h, and from 20 MB to 200 GB.
    pub(super) fn drawn(random: &mut Random) -> Setting {
        let seconds = random.magnitude(3.0, 36_000.0);
        let slow = match seconds {
            _ if seconds < 60.0 => 0,
            _ if seconds < 3_600.0 => random.count(0, 2),
            _ => 2,
        };
        Setting {
            seconds,
            base: random.magnitude(20e6, 200e9),
            every_ms: [100, 500, 1_000][slow],
            noise: [0.0, 0.001, 0.005, 0.02][random.count(0, 3)],
        }
    }

    pub(super) fn looks(&self) -> f64 {
        self.seconds * 1e3 / self.every_ms as f64
    }
}

/// A run of one process whose memory is `shape` times the base, over a time from 0 to 1.
pub(super) fn recorded(setting: &Setting, random: &mut Random, shape: impl Fn(f64) -> f64) -> Case {
    let mut case = Case::default();
    let end_ms = (setting.seconds * 1e3) as u64;
    let mut kept: Option<(u64, f64)> = None;
    for time_ms in (0..=end_ms).step_by(setting.every_ms as usize) {
        let x = time_ms as f64 / end_ms as f64;
        let rough = 1.0 + setting.noise * random.normal();
        let bytes = (setting.base * (shape(x) * rough).max(0.01)) as u64 / 4096 * 4096;
        // As `recorder.rs` keeps them.
        let is_due = kept.is_none_or(|(at_ms, before)| {
            time_ms < 60_000 || time_ms >= at_ms + 1_000 || (bytes as f64 - before).abs() > before / 100.0
        });
        if is_due {
            kept = Some((time_ms, bytes as f64));
            case.flight.push(FlightRecord {
                time_ms,
                resident: Some(bytes + (8 << 20)),
                anonymous: Some(bytes),
                file: Some(8 << 20),
                shared: Some(0),
                swap: Some(0),
                processes: 1,
                ..FlightRecord::default()
            });
        }
    }
    case
}

/// Up from 0 to 1 and back at once, `n` times; `phase` is where it begins.
pub(super) fn teeth(x: f64, n: f64, phase: f64) -> f64 {
    (x * n + phase).fract()
}
