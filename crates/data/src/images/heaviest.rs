//! The images that take the most to decode, by their headers: they are tried first, so that what could break breaks there.

use std::cmp::Reverse;
use std::collections::BTreeSet;

/// So many are known: a batch of them.
const KNOWN: usize = 256;

/// What decoding takes, and the file; of equals, the first files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Heaviest(BTreeSet<(u64, Reverse<u64>)>);

impl Heaviest {
    pub(crate) fn add(&mut self, file: u64, bytes: u64) {
        self.0.insert((bytes, Reverse(file)));
        if self.0.len() > KNOWN {
            self.0.pop_first();
        }
    }

    pub(crate) fn merge(&mut self, other: &Heaviest) {
        other
            .0
            .iter()
            .for_each(|(bytes, Reverse(file))| self.add(*file, *bytes));
    }

    /// As samples, the heaviest first: files that are bad, which are given in order, are not counted as such.
    pub(crate) fn samples(&self, bad: &[usize]) -> Vec<u64> {
        let sample = |file: u64| file - bad.partition_point(|bad| (*bad as u64) < file) as u64;
        self.0
            .iter()
            .rev()
            .map(|(_, Reverse(file))| sample(*file))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_come_first_by_their_place_among_the_good() {
        let (mut all, mut other) = (Heaviest::default(), Heaviest::default());
        for file in 0..1_000u64 {
            let half = if file % 2 == 0 { &mut all } else { &mut other };
            half.add(file, if file == 700 { 9 } else { file / 100 });
        }
        all.merge(&other);
        let samples = all.samples(&[3, 5]);
        assert_eq!(samples.len(), KNOWN);
        // 700 and all from 900 on take as much as each other.
        assert_eq!(samples[..3], [698, 898, 899]);
        assert_eq!(samples[100], 997);
        assert_eq!(samples[101], 798);
    }
}
