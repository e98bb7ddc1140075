//! Exact counts of a few distinct numbers.

use serde::{Deserialize, Serialize};

/// Numbers and how often they came, by open addressing, at most half full. Not for NaN, and not for −0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Counts {
    /// A power of two of them, or none; a count of 0 is a free place.
    slots: Vec<(f64, u64)>,
    used: usize,
}

impl Counts {
    /// How many distinct numbers there are.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    #[inline]
    pub(super) fn add(&mut self, x: f64, count: u64) {
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        // Fibonacci hashing: the bits of round numbers are all in the upper half, the product spreads them.
        let spread = (x.to_bits() ^ x.to_bits() >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut at = (spread >> 32) as usize & mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.1 == 0 {
                *slot = (x, count);
                self.used += 1;
                return;
            }
            if slot.0 == x {
                slot.1 += count;
                return;
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![(0.0, 0); (self.slots.len() * 2).max(16)];
        let slots = std::mem::replace(&mut self.slots, larger);
        self.used = 0;
        for (x, count) in slots.into_iter().filter(|(_, count)| *count > 0) {
            self.add(x, count);
        }
    }

    /// In the order of the numbers.
    pub(super) fn sorted(&self) -> Vec<(f64, u64)> {
        let mut counted: Vec<(f64, u64)> = self
            .slots
            .iter()
            .copied()
            .filter(|(_, count)| *count > 0)
            .collect();
        counted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        counted
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<(f64, u64)>()
    }
}
