//! A sample of the rows: those whose hash is small.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::sketch::hash::mix;

/// How much of a source to use: `0.1`, `10%` or `100000` rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleSize {
    /// Above 0 and at most 1.
    Share(f64),
    /// At least one.
    Rows(u64),
}

impl FromStr for SampleSize {
    type Err = String;

    /// Whole numbers are rows, so `1` is one row and `1.0` all of them.
    fn from_str(text: &str) -> Result<SampleSize, String> {
        let refused = || format!("{text:?} is neither a share, such as 0.1 or 10%, nor a number of rows");
        let (number, whole) = match text.trim().strip_suffix('%') {
            Some(percent) => (percent, 100.0),
            None => (text.trim(), 1.0),
        };
        if whole == 1.0 && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
            let rows = number.replace('_', "").parse().map_err(|_| refused())?;
            return if rows > 0 {
                Ok(SampleSize::Rows(rows))
            } else {
                Err(refused())
            };
        }
        let share = number.parse::<f64>().map_err(|_| refused())? / whole;
        if share > 0.0 && share <= 1.0 {
            Ok(SampleSize::Share(share))
        } else {
            Err(refused())
        }
    }
}

/// A share of the rows, the same in every epoch and for any number of threads, and unrelated to the rows that are
/// held out by the same seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    seed: u64,
    /// The largest hash that is kept.
    largest: u64,
}

impl Sample {
    /// About `share` (0 to 1) of the rows.
    pub fn share(share: f64, seed: u64) -> Sample {
        Sample {
            seed,
            largest: (share.clamp(0.0, 1.0) * 2f64.powi(64)) as u64,
        }
    }

    /// About so many of `total` rows; a [`Ranking`] makes it exact.
    pub fn about(rows: u64, total: u64, seed: u64) -> Sample {
        Sample::share(rows as f64 / total.max(1) as f64, seed)
    }

    #[inline]
    pub fn contains(&self, key: u64) -> bool {
        hash(key, self.seed) <= self.largest
    }
}

#[inline]
fn hash(key: u64, seed: u64) -> u64 {
    // Another start than those of the holdout and the folds, so that the same seed gives unrelated draws.
    const START: u64 = 0x5a3b_1e5a_3b1e_5a3b;
    mix(key.wrapping_add(mix(seed ^ START)))
}

/// Finds the sample of exactly so many rows by looking at all of them, in memory that does not depend on their
/// number.
///
/// Each look counts hashes in 65536 buckets and finds the bucket in which the last row of the sample is; the next
/// look divides that bucket. After two looks a bucket is one hash in four thousand million wide, so two are enough
/// for all but a few tables, and four for any. Rows are looked at in any order: counts of several threads add up.
#[derive(Debug, Clone)]
pub struct Ranking {
    seed: u64,
    /// Rows to be found among those looked at in this round.
    rows: u64,
    /// The hashes of this round: those that begin as `start` does in all but the last `bits` bits.
    start: u64,
    bits: u32,
    counts: Vec<u64>,
}

/// What a look at all rows came to.
#[derive(Debug)]
pub enum Ranked {
    /// Exactly the sample, or all rows where there are not as many.
    Sample(Sample),
    /// Another look is needed.
    Again(Ranking),
}

impl Ranking {
    const BUCKET_BITS: u32 = 16;
    /// What one ranking takes.
    pub const BYTES: u64 = 8 << Ranking::BUCKET_BITS;

    pub fn new(rows: u64, seed: u64) -> Ranking {
        Ranking {
            seed,
            rows,
            start: 0,
            bits: u64::BITS,
            counts: vec![0; 1 << Ranking::BUCKET_BITS],
        }
    }

    #[inline]
    pub fn look(&mut self, key: u64) {
        let within = hash(key, self.seed) ^ self.start;
        if self.bits == u64::BITS || within >> self.bits == 0 {
            self.counts[(within >> (self.bits - Ranking::BUCKET_BITS)) as usize] += 1;
        }
    }

    /// Adds what another thread looked at in the same round.
    pub fn add(&mut self, other: &Ranking) {
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count += other;
        }
    }

    /// Ends a round in which every row was looked at once.
    pub fn finish(mut self) -> Ranked {
        let width = self.bits - Ranking::BUCKET_BITS;
        let mut before = 0;
        for (bucket, count) in self.counts.iter_mut().enumerate() {
            let with = before + std::mem::take(count);
            let start = self.start | (bucket as u64) << width;
            if with == self.rows || (with > self.rows && width == 0) {
                let largest = start | ((1u64 << width) - 1);
                return Ranked::Sample(Sample {
                    seed: self.seed,
                    largest,
                });
            }
            if with > self.rows {
                self.counts.fill(0);
                return Ranked::Again(Ranking {
                    rows: self.rows - before,
                    start,
                    bits: width,
                    ..self
                });
            }
            before = with;
        }
        Ranked::Sample(Sample {
            seed: self.seed,
            largest: u64::MAX,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Holdout;
    use proptest::prelude::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, expected) in [
            ("0.1", Ok(SampleSize::Share(0.1))),
            ("10%", Ok(SampleSize::Share(0.1))),
            ("1.0", Ok(SampleSize::Share(1.0))),
            ("1", Ok(SampleSize::Rows(1))),
            (" 100_000 ", Ok(SampleSize::Rows(100_000))),
        ] {
            assert_eq!(text.parse::<SampleSize>(), expected);
        }
        for text in [
            "",
            "0",
            "0.0",
            "1.5",
            "-3",
            "110%",
            "ten",
            "nan",
            "1e99",
            "%",
            "99999999999999999999",
        ] {
            let refused = text.parse::<SampleSize>();
            assert!(refused.is_err(), "{text}: {refused:?}");
        }
    }

    #[test]
    fn a_share_is_about_that_share_and_unrelated_to_the_holdout() {
        let holdout = Holdout::new(0.5, 7);
        for share in [0.0, 0.01, 0.3, 1.0] {
            let sample = Sample::share(share, 7);
            let kept: Vec<u64> = (0..100_000).filter(|key| sample.contains(*key)).collect();
            assert!(
                (kept.len() as f64 / 1e5 - share).abs() < 0.005,
                "{share}: {}",
                kept.len()
            );
            let held = kept.iter().filter(|key| holdout.contains(**key)).count() as f64;
            assert!((held - kept.len() as f64 / 2.0).abs() < 600.0);
        }
    }

    fn exact(rows: u64, keys: &[u64], seed: u64) -> (Sample, u32) {
        let mut ranking = Ranking::new(rows, seed);
        for looks in 1.. {
            // As two threads would.
            let mut other = ranking.clone();
            let (a, b) = keys.split_at(keys.len() / 3);
            a.iter().for_each(|key| ranking.look(*key));
            b.iter().for_each(|key| other.look(*key));
            ranking.add(&other);
            match ranking.finish() {
                Ranked::Sample(sample) => return (sample, looks),
                Ranked::Again(next) => ranking = next,
            }
        }
        unreachable!("four looks are enough")
    }

    #[test]
    fn a_number_of_rows_is_exact_after_two_looks() {
        let keys: Vec<u64> = (0..300_000).collect();
        for rows in [1, 2, 1000, 150_000, 299_999, 300_000, 400_000] {
            let (sample, looks) = exact(rows, &keys, 3);
            let kept = keys.iter().filter(|key| sample.contains(**key)).count() as u64;
            assert_eq!(kept, rows.min(300_000));
            assert!(looks <= 2, "{looks}");
        }
    }

    proptest! {
        #[test]
        fn any_number_of_any_rows_is_exact(keys in prop::collection::hash_set(any::<u64>(), 1..200), rows in 1u64..250, seed in any::<u64>()) {
            let keys: Vec<u64> = keys.into_iter().collect();
            let (sample, _) = exact(rows, &keys, seed);
            let kept = keys.iter().filter(|key| sample.contains(**key)).count() as u64;
            prop_assert_eq!(kept, rows.min(keys.len() as u64));
        }
    }
}
