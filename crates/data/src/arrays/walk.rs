//! Going through the samples of a part in their order, from any place of it.

use super::order::{Route, Window};
use super::source::Part;

/// Where a part of the samples goes on after some of them were used.
pub(crate) struct Walk<'a> {
    pub route: &'a Route,
    pub part: Part,
    /// The window, and the position in it, that comes next.
    pub index: u64,
    pub at: u64,
    window: Window,
}

impl<'a> Walk<'a> {
    /// Behind the first `start` samples of the part.
    pub(crate) fn new(route: &'a Route, part: Part, start: u64) -> Walk<'a> {
        let mut walk = Walk {
            route,
            part,
            index: 0,
            at: 0,
            window: route.window(0),
        };
        match part {
            Part::All => {
                walk.enter(route.window_at(start.min(route.n_samples())));
                walk.at = start.saturating_sub(walk.window.first).min(walk.window.n_samples);
            }
            Part::Training(_) | Part::HeldOut(_) => walk.pass_over(start),
        }
        walk
    }

    /// Whole windows are counted without putting their samples in order.
    fn pass_over(&mut self, start: u64) {
        let mut left = start;
        while left > 0 && self.index < self.route.n_windows() {
            let here = self.count();
            if here > left {
                break;
            }
            left -= here;
            self.enter(self.index + 1);
        }
        while left > 0 && self.next().is_some() {
            left -= 1;
        }
    }

    /// Samples of the part in this window.
    fn count(&self) -> u64 {
        let blocks = (0..self.window.n_blocks).map(|slot| self.route.block(self.window.first_block + slot));
        let samples = blocks.flat_map(|block| {
            let (first, n) = self.route.samples_of(block);
            first..first + n
        });
        samples.filter(|sample| self.part.contains(*sample)).count() as u64
    }

    fn enter(&mut self, index: u64) {
        (self.index, self.at) = (index, 0);
        if index < self.route.n_windows() {
            self.window = self.route.window(index);
        }
    }

    /// The next sample of the part.
    pub(crate) fn next(&mut self) -> Option<u64> {
        while self.index < self.route.n_windows() {
            while self.at < self.window.n_samples {
                let (slot, offset) = self.window.sample(self.at);
                self.at += 1;
                let block = self.route.block(self.window.first_block + slot);
                let sample = block * self.route.per_block() + offset;
                if self.part.contains(sample) {
                    return Some(sample);
                }
            }
            self.enter(self.index + 1);
        }
        None
    }
}
