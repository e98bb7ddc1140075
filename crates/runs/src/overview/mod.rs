//! Recordings of any length, told by as many points as a screen has room for.

mod flight;
mod holders;
mod processes;

pub use flight::{Overview, flight_overview};
pub use holders::{HolderOverview, holders_overview};
pub use processes::{ProcessOverview, ProcessSeries, process_overview};

/// A part of a recording, in milliseconds since its start, both ends included. `None` is where the recording begins or ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    pub from_ms: Option<u64>,
    pub to_ms: Option<u64>,
}

/// More points than any screen has.
const MOST_POINTS: usize = 20_000;

/// Times at even distances, the first and the last of a span among them; each stands for what follows up to the next.
#[derive(Debug, Clone, Copy)]
struct Timeline {
    from: u64,
    to: u64,
    n: u64,
}

impl Timeline {
    fn new(from: u64, to: u64, points: usize) -> Timeline {
        let points = points.max(2) as u64;
        Timeline {
            from,
            to,
            n: points.min((to - from).saturating_add(1)),
        }
    }

    /// Which of the times a moment of the span belongs to.
    fn at(&self, ms: u64) -> usize {
        match self.n {
            0 | 1 => 0,
            n => ((ms - self.from).saturating_mul(n - 1) / (self.to - self.from)) as usize,
        }
    }

    fn times(&self) -> impl Iterator<Item = u64> + use<> {
        let Timeline { from, to, n } = *self;
        let (length, steps) = (u128::from(to - from), u128::from(n.max(2) - 1));
        // Rounded up, so that each time belongs to itself.
        (0..n).map(move |at| from + (u128::from(at) * length).div_ceil(steps) as u64)
    }

    fn len(&self) -> usize {
        self.n as usize
    }

    fn holds(&self, ms: u64) -> bool {
        (self.from..=self.to).contains(&ms)
    }
}
