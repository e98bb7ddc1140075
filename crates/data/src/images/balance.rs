//! As many samples of each class as of any other, however few it has.
//!
//! An epoch has as many samples as without. Classes take turns, in another order in every round; each hands out its samples
//! shuffled, and begins again, shuffled anew, when it is through.

use crate::arrays::{ArraySource, Part, Permutation};
use crate::sketch::hash::mix;

pub(crate) struct Balance {
    /// Samples of the part, class after class, and where each class ends. They are part of what a feed is granted.
    samples: Vec<u32>,
    ends: Vec<usize>,
    key: u64,
    position: u64,
}

impl Balance {
    /// Behind the first `start` samples of the epoch.
    pub(crate) fn new(source: &ArraySource, part: Part, seed: u64, epoch: u64, start: u64) -> Balance {
        let class = |sample: u64| source.target(sample).first().map_or(0, |class| *class as usize);
        let all = || (0..source.n_samples()).filter(|sample| part.contains(*sample));
        let mut counts: Vec<usize> = Vec::new();
        for sample in all() {
            let class = class(sample);
            counts.resize(counts.len().max(class + 1), 0);
            counts[class] += 1;
        }
        let mut next: Vec<usize> = Vec::with_capacity(counts.len());
        let mut ends = Vec::with_capacity(counts.len());
        let mut end = 0;
        for count in &counts {
            next.push(end);
            end += count;
            ends.push(end);
        }
        let mut samples = vec![0; end];
        for sample in all() {
            let class = class(sample);
            samples[next[class]] = sample as u32;
            next[class] += 1;
        }
        // Of a class without samples there is nothing to hand out.
        ends.dedup();
        if ends.first() == Some(&0) {
            ends.remove(0);
        }
        Balance {
            samples,
            ends,
            key: mix(seed ^ mix(epoch)),
            position: start,
        }
    }

    /// The next sample, and how often it came before in this epoch.
    pub(crate) fn next(&mut self) -> Option<(u64, u64)> {
        if self.position >= self.samples.len() as u64 {
            return None;
        }
        let n_classes = self.ends.len() as u64;
        let (round, turn) = (self.position / n_classes, self.position % n_classes);
        self.position += 1;
        let class = Permutation::new(n_classes, mix(self.key ^ mix(round))).place(turn) as usize;
        let start = class.checked_sub(1).map_or(0, |before| self.ends[before]);
        let n = (self.ends[class] - start) as u64;
        // Another start than the rounds': the same key would send both the same way.
        const START: u64 = 0x8f1d_42b7_c690_35ea;
        let key = mix(self.key ^ mix(((class as u64) << 40) ^ (round / n) ^ START));
        let place = Permutation::new(n, key).place(round % n);
        Some((u64::from(self.samples[start + place as usize]), round / n))
    }
}
