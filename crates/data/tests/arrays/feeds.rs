//! The same samples in the same order: for any number of threads, any budget, any way to keep them, and when stopped.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use proptest::prelude::*;
use tidegate_data::arrays::{ArraySource, FeedOptions, Keep, Kept, Order, Part};
use tidegate_data::{Error, Holdout};
use tidegate_memory::Ledger;

use crate::help::{Folder, ROOMY, Seen, feed, in_place, npy, pixels, thirds};

const SHUFFLED: Order = Order::Shuffled { seed: 7, epoch: 3 };

/// Small samples, 60 of a block, in more than two windows; the last block is not full.
fn small() -> Folder {
    Folder::images(40_011, &[33, 33])
}

fn shuffled() -> FeedOptions {
    FeedOptions {
        batch: 100,
        order: SHUFFLED,
        ..in_place()
    }
}

/// A feed without its inputs, which are checked against what was written.
fn checked(source: &ArraySource, options: &FeedOptions, written: &[u8]) -> Vec<(Vec<u64>, Vec<f32>, u64)> {
    let mut seen = Vec::new();
    let (ledger, len) = (Ledger::new(ROOMY), source.sample_len());
    let mut inputs = vec![f32::NAN; options.batch * len];
    let take = source.feed(options, &ledger, |batch| {
        batch.write_inputs(&mut inputs);
        for (sample, inputs) in batch.samples().iter().zip(inputs.chunks(len)) {
            let expected = &written[*sample as usize * len..][..len];
            assert!(
                inputs
                    .iter()
                    .zip(expected)
                    .all(|(x, byte)| *x == f32::from(*byte)),
                "{sample}"
            );
        }
        for (sample, target) in batch.samples().iter().zip(batch.targets()) {
            assert_eq!(*target, (sample % 3) as f32);
        }
        seen.push((batch.samples().to_vec(), batch.targets().to_vec(), batch.cursor()));
        Ok::<_, Error>(ControlFlow::Continue(()))
    });
    take.unwrap();
    assert_eq!((ledger.used(), ledger.peak()), (0, source.feed_bytes(options)));
    seen
}

#[test]
fn every_way_hands_out_the_same_batches() {
    let folder = small();
    let written = pixels(40_011, 1_089);
    let mut source = folder.open("x.npy").unwrap();
    let part = Part::Training(Holdout::new(0.1, 5));
    let one_by_one = FeedOptions { part, ..shuffled() };
    let expected = checked(&source, &one_by_one, &written);
    let samples: BTreeSet<u64> = expected
        .iter()
        .flat_map(|(samples, ..)| samples.clone())
        .collect();
    assert_eq!(samples.len() as u64, source.n_samples_of(part));
    assert!(samples.iter().all(|sample| part.contains(*sample)));
    // Several slots of a batch each, then one window, several windows, and more than there are.
    for (prefetch, threads) in [
        (1 << 20, 3),
        (17 << 20, 1),
        (17 << 20, 2),
        (40 << 20, 3),
        (200 << 20, 8),
    ] {
        let options = FeedOptions {
            prefetch,
            threads,
            ..one_by_one
        };
        assert_eq!(
            checked(&source, &options, &written),
            expected,
            "{prefetch} bytes, {threads} threads"
        );
    }
    let keep = Keep {
        map: true,
        ..Keep::default()
    };
    assert_eq!(source.keep(&keep, &Ledger::new(ROOMY)).unwrap(), Kept::Mapped);
    for prefetch in [0, 3 << 20, 40 << 20] {
        let options = FeedOptions {
            prefetch,
            threads: 2,
            ..one_by_one
        };
        assert_eq!(
            checked(&source, &options, &written),
            expected,
            "mapped, {prefetch} bytes"
        );
    }
    let keep = Keep {
        memory: 64 << 20,
        ..Keep::default()
    };
    assert_eq!(source.keep(&keep, &Ledger::new(ROOMY)).unwrap(), Kept::Memory);
    assert_eq!(checked(&source, &one_by_one, &written), expected, "in memory");
}

#[test]
fn epochs_differ_and_come_again() {
    let source = Folder::images(2_000, &[10]);
    let source = source.open("x.npy").unwrap();
    let epoch = |seed, epoch| {
        let options = FeedOptions {
            order: Order::Shuffled { seed, epoch },
            ..shuffled()
        };
        let samples = feed(&source, &options).into_iter().flat_map(|seen| seen.samples);
        samples.collect::<Vec<u64>>()
    };
    let first = epoch(1, 0);
    assert_eq!(first, epoch(1, 0));
    assert_ne!(first, epoch(1, 1));
    assert_ne!(first, epoch(2, 0));
    let mut sorted = first;
    sorted.sort();
    assert!(sorted.into_iter().eq(0..2_000));
}

#[test]
fn samples_stand_in_place_for_evaluation() {
    let source = Folder::images(5_000, &[30, 30]);
    let source = source.open("x.npy").unwrap();
    let holdout = Holdout::new(0.2, 9);
    for prefetch in [0, 20 << 20] {
        let held_out = FeedOptions {
            part: Part::HeldOut(holdout),
            prefetch,
            ..in_place()
        };
        let training = FeedOptions {
            part: Part::Training(holdout),
            ..held_out
        };
        let samples = |options| feed(&source, &options).into_iter().flat_map(|seen| seen.samples);
        let held_out: Vec<u64> = samples(held_out).collect();
        let training: Vec<u64> = samples(training).collect();
        assert!(held_out.is_sorted() && training.is_sorted());
        assert!((900..1_100).contains(&held_out.len()), "{}", held_out.len());
        let mut all = [held_out, training].concat();
        all.sort();
        assert!(all.into_iter().eq(0..5_000), "every sample is in one of both");
    }
}

#[test]
fn large_samples_are_read_one_by_one() {
    let (n, len) = (40, 100_000);
    let folder = Folder::images(n, &[100, 1_000]);
    let source = folder.open("x.npy").unwrap();
    let written = pixels(n, len);
    let options = FeedOptions {
        batch: 7,
        ..shuffled()
    };
    let expected = checked(&source, &options, &written);
    assert_eq!(
        expected
            .iter()
            .map(|(samples, ..)| samples.len())
            .collect::<Vec<_>>(),
        [7, 7, 7, 7, 7, 5]
    );
    for (prefetch, threads) in [(2 << 20, 2), (100 << 20, 4)] {
        let options = FeedOptions {
            prefetch,
            threads,
            ..options
        };
        assert_eq!(checked(&source, &options, &written), expected);
    }
}

#[test]
fn shards_are_one_array() {
    // Blocks and windows reach over the ends of files.
    let (sizes, len) = ([700usize, 1, 2_000, 299], 900);
    let written = pixels(3_000, len);
    let (mut files, mut first) = (Vec::new(), 0);
    for (i, n) in sizes.iter().enumerate() {
        let bytes = &written[first * len..(first + n) * len];
        let labels = thirds(3_000)[first * 4..(first + n) * 4].to_vec();
        files.push((format!("x_{i:03}.npy"), npy("|u1", &[*n, 30, 30], bytes)));
        files.push((format!("y_{i:03}.npy"), npy("<i4", &[*n], &labels)));
        first += n;
    }
    let files: Vec<(&str, Vec<u8>)> = files
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.clone()))
        .collect();
    let folder = Folder::new(&files);
    let mut shards = folder.open("").unwrap();
    assert_eq!(shards.n_samples(), 3_000);
    let one = Folder::images(3_000, &[30, 30]);
    let one = one.open("x.npy").unwrap();
    let expected = checked(&one, &shuffled(), &written);
    for prefetch in [0, 20 << 20] {
        let options = FeedOptions {
            prefetch,
            threads: 2,
            ..shuffled()
        };
        assert_eq!(checked(&shards, &options, &written), expected);
    }
    let keep = Keep {
        map: true,
        ..Keep::default()
    };
    assert_eq!(shards.keep(&keep, &Ledger::new(ROOMY)).unwrap(), Kept::Mapped);
    for prefetch in [0, 20 << 20] {
        let options = FeedOptions {
            prefetch,
            threads: 2,
            ..shuffled()
        };
        assert_eq!(checked(&shards, &options, &written), expected);
    }
}

#[test]
fn a_batch_may_be_larger_than_all_samples() {
    let folder = Folder::images(10, &[4]);
    let source = folder.open("x.npy").unwrap();
    for prefetch in [0, 1 << 20] {
        let options = FeedOptions {
            batch: usize::MAX,
            prefetch,
            ..shuffled()
        };
        let seen = feed(&source, &options);
        assert_eq!((seen.len(), seen[0].samples.len()), (1, 10));
    }
    // Nor does a batch of none stand still.
    let seen = feed(
        &source,
        &FeedOptions {
            batch: 0,
            ..shuffled()
        },
    );
    assert_eq!(seen.len(), 10);
}

#[test]
fn a_feed_that_begins_at_the_end_has_nothing() {
    let folder = Folder::images(100, &[4]);
    let source = folder.open("x.npy").unwrap();
    for part in [Part::All, Part::Training(Holdout::new(0.5, 1))] {
        for start in [source.n_samples_of(part), 1_000, u64::MAX] {
            for prefetch in [0, 1 << 20] {
                let options = FeedOptions {
                    start,
                    part,
                    prefetch,
                    ..shuffled()
                };
                assert_eq!(feed(&source, &options), []);
            }
        }
    }
}

#[test]
fn who_takes_may_fail_or_stop() {
    let source = small();
    let source = source.open("x.npy").unwrap();
    let ledger = Ledger::new(ROOMY);
    for prefetch in [0, 17 << 20] {
        let options = FeedOptions {
            prefetch,
            threads: 2,
            ..shuffled()
        };
        let mut left = 3;
        let cursor = source.feed(&options, &ledger, |_| {
            left -= 1;
            Ok::<_, Error>(if left == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        });
        assert_eq!(cursor.unwrap(), 300);
        let failed = source.feed(&options, &ledger, |_| {
            Err(Error::Changed { path: "model".into() })
        });
        assert!(matches!(failed, Err(Error::Changed { .. })));
        assert_eq!(ledger.used(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_stopped_feed_goes_on_where_it_was(
        n in 1usize..3_000,
        side in 1usize..60,
        batch in 1usize..400,
        share in prop::sample::select(vec![0.0, 0.1, 0.9]),
        held_out: bool,
        shuffle: bool,
        seed: u64,
        stop in 0usize..10,
        prefetch in prop::sample::select(vec![0u64, 300_000, 4 << 20, 40 << 20]),
        threads in 1usize..4,
        in_memory: bool,
    ) {
        let folder = Folder::images(n.max(2), &[side, side]);
        let mut source = folder.open("x.npy").unwrap();
        let holdout = Holdout::new(share, seed);
        let options = FeedOptions {
            batch,
            order: if shuffle { Order::Shuffled { seed, epoch: 1 } } else { Order::InPlace },
            start: 0,
            part: if held_out { Part::HeldOut(holdout) } else { Part::Training(holdout) },
            prefetch: 0,
            threads: 1,
        };
        let whole = feed(&source, &options);
        if in_memory {
            source.keep(&Keep { memory: 64 << 20, ..Keep::default() }, &Ledger::new(ROOMY)).unwrap();
        }
        let done = &whole[..stop.min(whole.len())];
        let start = done.last().map_or(0, |seen| seen.cursor);
        let rest: Vec<Seen> = feed(&source, &FeedOptions { start, prefetch, threads, ..options });
        prop_assert_eq!([done, &rest].concat(), whole);
    }
}
