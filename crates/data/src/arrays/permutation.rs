//! A keyed permutation of the numbers below any bound, one at a time and without memory.

use crate::sketch::hash::mix;

/// Passes of the network. Four would do for large bounds; small ones are mixed better by more.
const ROUNDS: u64 = 6;

/// Every number below `n` has one place below `n`, another for every key.
///
/// A Feistel network over the bits of the number: in turn, one half of them is combined with a hash of the other,
/// `low ← low ⊕ hash(high)`, `high ← high ⊕ hash(low)`. Each step can be taken back, so no two numbers end in one place.
/// The bits may make up to twice as many numbers as there are: a number that lands outside is sent through again until
/// it is inside ("cycle walking"), which is a permutation, too.
///
/// ```
/// use tidegate_data::arrays::Permutation;
/// let permutation = Permutation::new(5, 7);
/// let mut places: Vec<u64> = (0..5).map(|i| permutation.place(i)).collect();
/// assert_eq!(permutation.number(places[3]), 3);
/// places.sort();
/// assert_eq!(places, [0, 1, 2, 3, 4]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Permutation {
    n: u64,
    key: u64,
    /// Bits of the lower half, and masks of both.
    low_bits: u32,
    low: u64,
    high: u64,
}

impl Permutation {
    pub fn new(n: u64, key: u64) -> Permutation {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        let low_bits = bits.div_ceil(2);
        let mask = |bits: u32| {
            if bits == 0 {
                0
            } else {
                u64::MAX >> (u64::BITS - bits)
            }
        };
        Permutation {
            n,
            key: mix(key),
            low_bits,
            low: mask(low_bits),
            high: mask(bits - low_bits),
        }
    }

    /// Where this number, below `n`, stands.
    #[inline]
    pub fn place(&self, number: u64) -> u64 {
        debug_assert!(number < self.n);
        self.walk(number, |low, high| {
            for round in 0..ROUNDS / 2 {
                *low ^= self.hash(*high, 2 * round) & self.low;
                *high ^= self.hash(*low, 2 * round + 1) & self.high;
            }
        })
    }

    /// Which number stands at this place.
    #[inline]
    pub fn number(&self, place: u64) -> u64 {
        debug_assert!(place < self.n);
        self.walk(place, |low, high| {
            for round in (0..ROUNDS / 2).rev() {
                *high ^= self.hash(*low, 2 * round + 1) & self.high;
                *low ^= self.hash(*high, 2 * round) & self.low;
            }
        })
    }

    #[inline]
    fn walk(&self, mut x: u64, rounds: impl Fn(&mut u64, &mut u64)) -> u64 {
        // Out of bounds is out of bounds, not an endless loop.
        if x >= self.n {
            return x;
        }
        loop {
            let (mut low, mut high) = (x & self.low, x >> self.low_bits);
            rounds(&mut low, &mut high);
            x = high << self.low_bits | low;
            if x < self.n {
                return x;
            }
        }
    }

    #[inline]
    fn hash(&self, half: u64, round: u64) -> u64 {
        mix(half ^ self.key.wrapping_add(round.wrapping_mul(0xd6e8_feb8_6659_fd93)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_number_has_one_place() {
        for n in (1..300).chain([1_000, 1_023, 1_024, 1_025, 60_000]) {
            let permutation = Permutation::new(n, n * 3);
            let mut seen = vec![false; n as usize];
            for number in 0..n {
                let place = permutation.place(number);
                assert!(
                    !std::mem::replace(&mut seen[place as usize], true),
                    "{place} of {n}"
                );
                assert_eq!(permutation.number(place), number);
            }
        }
    }

    #[test]
    fn every_place_is_as_likely_as_another() {
        // Of 4,000 keys, each of n numbers should stand at each place 4,000 / n times, give or take.
        for n in [2u64, 3, 5, 8, 16, 33] {
            let mut counts = vec![0i64; (n * n) as usize];
            for key in 0..4_000 {
                let permutation = Permutation::new(n, key);
                (0..n).for_each(|number| counts[(number * n + permutation.place(number)) as usize] += 1);
            }
            let expected = 4_000 / n as i64;
            let spread = 6 * (expected as f64).sqrt() as i64;
            let far: Vec<&i64> = counts
                .iter()
                .filter(|count| (**count - expected).abs() > spread)
                .collect();
            assert!(far.is_empty(), "{n}: {far:?} where {expected} were expected");
        }
    }

    proptest! {
        #[test]
        fn places_are_inside_and_lead_back(n in 1u64.., key: u64, number: u64) {
            let (permutation, number) = (Permutation::new(n, key), number % n);
            let place = permutation.place(number);
            prop_assert!(place < n);
            prop_assert_eq!(permutation.number(place), number);
        }

        #[test]
        fn another_key_gives_another_order(n in 200u64..100_000, key: u64, step in 1u64..1_000) {
            let (a, b) = (Permutation::new(n, key), Permutation::new(n, key.wrapping_add(step)));
            let same = (0..200).filter(|number| a.place(*number) == b.place(*number)).count();
            prop_assert!(same < 20, "{} of 200 stand where they stood", same);
        }
    }
}
