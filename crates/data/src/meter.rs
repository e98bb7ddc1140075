//! Where the time of a feed goes: who waits for whom, and what for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Counts the time that threads spend on each stage, and that who takes the batches waits for them.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    waited: AtomicU64,
    reading: AtomicU64,
    decoding: AtomicU64,
    augmenting: AtomicU64,
}

/// A stage of the way of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Who takes the batches has none to take.
    Wait,
    Read,
    Decode,
    Augment,
}

impl Meter {
    pub(crate) fn time<T>(&self, stage: Stage, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        self.add(stage, began.elapsed());
        done
    }

    pub(crate) fn add(&self, stage: Stage, time: Duration) {
        let counter = match stage {
            Stage::Wait => &self.waited,
            Stage::Read => &self.reading,
            Stage::Decode => &self.decoding,
            Stage::Augment => &self.augmenting,
        };
        counter.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn times(&self) -> FeedTimes {
        let seconds =
            |counter: &AtomicU64| Duration::from_nanos(counter.load(Ordering::Relaxed)).as_secs_f64();
        FeedTimes {
            waited: seconds(&self.waited),
            reading: seconds(&self.reading),
            decoding: seconds(&self.decoding),
            augmenting: seconds(&self.augmenting),
        }
    }
}

/// Seconds so far that batches were waited for, and that threads spent on each stage, summed over threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct FeedTimes {
    pub waited: f64,
    pub reading: f64,
    pub decoding: f64,
    pub augmenting: f64,
}

impl FeedTimes {
    /// What went by since an earlier moment.
    pub fn since(&self, earlier: &FeedTimes) -> FeedTimes {
        FeedTimes {
            waited: self.waited - earlier.waited,
            reading: self.reading - earlier.reading,
            decoding: self.decoding - earlier.decoding,
            augmenting: self.augmenting - earlier.augmenting,
        }
    }

    /// What holds the rest up, where so many seconds went by in all: the model, as long as it hardly waits; otherwise
    /// the stage that threads spend the most time on.
    pub fn bottleneck(&self, seconds: f64) -> Bottleneck {
        if self.waited < HARDLY * seconds {
            return Bottleneck::Model;
        }
        let stages = [
            (Bottleneck::Disk, self.reading),
            (Bottleneck::Decode, self.decoding),
            (Bottleneck::Augment, self.augmenting),
        ];
        let longest = stages.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        longest.map_or(Bottleneck::Disk, |(stage, _)| stage)
    }
}

/// Below this share of the time, waiting is nothing that holds anybody up.
const HARDLY: f64 = 0.05;

/// What holds a training up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bottleneck {
    Disk,
    Decode,
    Augment,
    Model,
}

impl Bottleneck {
    /// What held the model up, in a sentence.
    pub fn in_words(self) -> &'static str {
        match self {
            Bottleneck::Disk => "the disk",
            Bottleneck::Decode => "decoding",
            Bottleneck::Augment => "augmenting",
            Bottleneck::Model => "the model",
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Bottleneck::Disk => "disk",
            Bottleneck::Decode => "decode",
            Bottleneck::Augment => "augment",
            Bottleneck::Model => "model",
        }
    }
}
