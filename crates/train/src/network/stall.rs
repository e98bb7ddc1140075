//! How long a model waits for its samples, and what for.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use tidegate_data::arrays::ArraySource;
use tidegate_data::{Bottleneck, FeedTimes};

/// How an epoch was fed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fed {
    pub seconds: f64,
    /// The share of that time during which the model waited for samples.
    pub stall: f64,
    pub bottleneck: Bottleneck,
    /// Where the time of the threads went that bring samples.
    pub times: FeedTimes,
}

/// An epoch being fed.
pub(super) struct Feeding {
    began: Instant,
    /// The first sample of what is fed: an epoch may be taken up in its middle.
    first: u64,
    before: FeedTimes,
}

impl Feeding {
    pub(super) fn start(source: &ArraySource, first: u64) -> Feeding {
        Feeding {
            began: Instant::now(),
            first,
            before: source.feed_times(),
        }
    }

    /// Samples learned from per second, up to this one.
    pub(super) fn rows_per_second(&self, position: u64) -> f64 {
        position.saturating_sub(self.first) as f64 / self.began.elapsed().as_secs_f64().max(1e-9)
    }

    /// How it went so far; `None` where samples stand in memory and nobody has to bring them.
    pub(super) fn so_far(&self, source: &ArraySource) -> Option<Fed> {
        if source.is_in_memory() {
            return None;
        }
        let seconds = self.began.elapsed().as_secs_f64();
        let times = source.feed_times().since(&self.before);
        Some(Fed {
            seconds,
            stall: (times.waited / seconds.max(1e-9)).clamp(0.0, 1.0),
            bottleneck: times.bottleneck(seconds),
            times,
        })
    }
}
