//! The same batches for any number of threads, any budget, wherever samples are kept, and when stopped.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use proptest::prelude::*;
use tidegate_data::arrays::{ArraySource, FeedOptions, Keep, Kept, Order, Part};
use tidegate_data::images::{Augment, ImageOptions, PackedImages};
use tidegate_data::{Error, Holdout};
use tidegate_memory::Ledger;

use crate::help::{
    Folder, ROOMY, SHUFFLED, Seen, feed, in_place, pack, samples, shown, shuffled, sized, training, try_feed,
    unlabelled,
};

const N: usize = 61;
const SIDE: usize = 16;

fn augmented(words: &str) -> ImageOptions {
    ImageOptions {
        augment: Augment::parse(words).unwrap(),
        ..sized(SIDE)
    }
}

/// Some files broken, all over the classes.
fn with_broken(folder: &Folder) {
    let cut = &crate::draw::Drawing::quarters(50, 50).png()[..90];
    for name in ["ant/0001.png", "ant/0030.png", "bee/0011.png", "cat/0999.png"] {
        folder.write(name, cut);
    }
}

const ALL: &str = "standard,shear=5,crop=0.6,brightness=0.3,hue=0.1,erase=0.5,mixup=0.4,cutmix=1";

#[test]
fn every_way_hands_out_the_same_batches() {
    for (words, broken) in [
        (None, false),
        (Some(ALL), false),
        (Some(ALL), true),
        (Some("mixup=0.3"), true),
    ] {
        let folder = Folder::of_classes(N);
        if broken {
            with_broken(&folder);
        }
        let options = words.map_or(sized(SIDE), augmented);
        let mut source = folder.open_with("", &options).unwrap().training;
        let one_by_one = FeedOptions {
            part: training(),
            ..shuffled()
        };
        let expected = feed(&source, &one_by_one);
        let check = |source: &ArraySource, what: &str| {
            for (threads, prefetch) in [(1, 0), (2, 0), (4, 0), (1, 100_000), (2, 3 << 20), (4, 100 << 20)] {
                let options = FeedOptions {
                    threads,
                    prefetch,
                    ..one_by_one
                };
                let same = feed(source, &options) == expected;
                assert!(
                    same,
                    "{what}, {words:?}, {threads} threads, {prefetch} bytes ahead"
                );
            }
        };
        check(&source, "from files");
        assert!(matches!(
            pack(&mut source, &folder.store()).unwrap(),
            PackedImages::Built
        ));
        check(&source, "from the pack");
        let ledger = Ledger::new(ROOMY);
        let row = source.keep_bytes(&Keep {
            memory: u64::MAX,
            ..Keep::default()
        }) / source.n_samples();
        for (rows, kept) in [(20, Kept::Files), (1_000, Kept::Memory)] {
            let keep = Keep {
                memory: rows * row + row / 2,
                ..Keep::default()
            };
            let bytes = source.keep_bytes(&keep);
            let used = ledger.used();
            let mut again = folder.open_with("", &options).unwrap().training;
            assert!(matches!(
                pack(&mut again, &folder.store()).unwrap(),
                PackedImages::Found
            ));
            assert_eq!(again.keep(&keep, &ledger).unwrap(), kept);
            assert_eq!(ledger.used() - used, bytes, "what was said is granted");
            assert_eq!(bytes, rows.min(source.n_samples()) * row);
            check(&again, &format!("{rows} samples in memory"));
        }
        assert_eq!(ledger.used(), 0);
        if broken {
            assert_eq!(source.bad_files().count, 4);
        }
    }
}

#[test]
fn inputs_are_the_bytes_of_samples_mixed_or_not() {
    let folder = Folder::of_classes(N);
    let plain = folder.open_with("", &sized(SIDE)).unwrap().training;
    for batch in feed(&plain, &shuffled()) {
        let bytes: Vec<f32> = batch.bytes.iter().map(|byte| f32::from(*byte)).collect();
        assert_eq!(batch.inputs, bytes);
        let samples = batch
            .samples
            .iter()
            .zip(batch.bytes.chunks_exact(SIDE * SIDE * 3));
        for ((sample, bytes), target) in samples.zip(&batch.targets) {
            // Not augmented, a sample that is learned from is as it is judged by.
            assert_eq!(shown(&plain, *sample), bytes);
            assert_eq!(plain.target(*sample), [*target]);
        }
    }
    let mixed = folder.open_with("", &augmented("mixup=0.5")).unwrap().training;
    let (mut n_mixed, options) = (0, shuffled());
    mixed
        .feed(&options, &Ledger::new(ROOMY), |batch| {
            let mixing = batch.mixing().copied();
            let Some(mixing) = mixing else {
                assert_eq!(batch.n_samples(), 1);
                return Ok::<_, Error>(ControlFlow::Continue(()));
            };
            n_mixed += 1;
            let mut inputs = vec![f32::NAN; batch.n_samples() * mixed.sample_len()];
            batch.write_inputs(&mut inputs);
            for (place, inputs) in inputs.chunks_exact(mixed.sample_len()).enumerate() {
                let (own, other) = (
                    batch.sample_bytes(place),
                    batch.sample_bytes(mixing.partner(place)),
                );
                for ((input, own), other) in inputs.iter().zip(own).zip(other) {
                    let expected = mixing.share * f32::from(*own) + (1.0 - mixing.share) * f32::from(*other);
                    assert!((input - expected).abs() < 1e-2);
                }
            }
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    assert_eq!(n_mixed, N.div_ceil(8));
}

#[test]
fn epochs_differ_and_come_again() {
    let folder = Folder::of_classes(N);
    let source = folder
        .open_with("", &augmented("rotation=30,flip"))
        .unwrap()
        .training;
    let epoch = |seed, epoch| {
        feed(
            &source,
            &FeedOptions {
                order: Order::Shuffled { seed, epoch },
                ..shuffled()
            },
        )
    };
    let first = epoch(1, 0);
    assert!(first == epoch(1, 0));
    let of = |seen: &[Seen], sample: u64| {
        let batch = seen.iter().find(|batch| batch.samples.contains(&sample)).unwrap();
        let place = batch.samples.iter().position(|other| *other == sample).unwrap();
        batch.bytes[place * SIDE * SIDE * 3..][..SIDE * SIDE * 3].to_vec()
    };
    for other in [epoch(1, 1), epoch(2, 0)] {
        assert_ne!(samples(&other), samples(&first));
        let mut sorted = samples(&other);
        sorted.sort();
        assert!(sorted.into_iter().eq(0..N as u64));
        let changed = (0..N as u64).filter(|sample| of(&other, *sample) != of(&first, *sample));
        assert!(changed.count() > N * 9 / 10, "augmented otherwise");
    }
    // A single sample is shown as its epoch has it.
    for sample in 0..N as u64 {
        let mut bytes = vec![0; SIDE * SIDE * 3];
        let order = Order::Shuffled { seed: 1, epoch: 0 };
        assert!(
            source
                .show_image(sample, order, &Ledger::new(ROOMY), &mut bytes)
                .unwrap()
        );
        assert_eq!(bytes, of(&first, sample));
    }
}

#[test]
fn evaluation_is_never_augmented() {
    let folder = Folder::of_classes(N);
    let plain = feed(&folder.open_with("", &sized(SIDE)).unwrap().training, &in_place());
    // All but the crop, for which samples are kept larger.
    let words = ALL.replace("crop=0.6,", "");
    let source = folder.open_with("", &augmented(&words)).unwrap().training;
    assert!(feed(&source, &in_place()) == plain);
    assert!(
        feed(&source, &shuffled())
            .iter()
            .all(|batch| batch.inputs.len() > 1)
    );
    assert_ne!(feed(&source, &shuffled())[0].bytes, plain[0].bytes);
    // With it, it is the centre, the same in every way.
    let cropped = folder.open_with("", &augmented(ALL)).unwrap().training;
    let centre = feed(&cropped, &in_place());
    assert_eq!(samples(&centre), samples(&plain));
    assert!(
        feed(
            &cropped,
            &FeedOptions {
                threads: 3,
                prefetch: 1 << 20,
                ..in_place()
            }
        ) == centre
    );
    // So it is where images are predicted.
    let form = folder.open_with("", &augmented(ALL)).unwrap().form;
    let (unlabelled, _) = unlabelled(&folder.path(""), form, &sized(SIDE)).unwrap();
    assert_eq!(
        feed(&unlabelled, &in_place())
            .iter()
            .map(|batch| &batch.bytes)
            .collect::<Vec<_>>(),
        centre.iter().map(|batch| &batch.bytes).collect::<Vec<_>>()
    );
    // Nor is what stands beside for validation.
    for (part, n) in [("train", 12), ("val", 9)] {
        let images = Folder::of_classes(n);
        std::fs::rename(images.path(""), folder.path(part)).unwrap();
    }
    let opened = folder.open_with("", &augmented(ALL)).unwrap();
    let validation = opened.validation.unwrap().source;
    let (judged, learned) = (feed(&validation, &in_place()), feed(&validation, &shuffled()));
    for batch in &learned {
        assert_eq!(
            batch.inputs,
            batch
                .bytes
                .iter()
                .map(|byte| f32::from(*byte))
                .collect::<Vec<f32>>()
        );
    }
    assert_eq!(samples(&judged).len(), 9);
}

#[test]
fn parts_are_disjoint_and_complete() {
    let folder = Folder::of_classes(120);
    let source = folder.open_with("", &sized(8)).unwrap().training;
    let holdout = Holdout::new(0.3, 9);
    let of = |part, order| {
        let options = FeedOptions {
            part,
            order,
            threads: 2,
            prefetch: 1 << 20,
            ..in_place()
        };
        samples(&feed(&source, &options))
    };
    let held_out = of(Part::HeldOut(holdout), Order::InPlace);
    let learned = of(Part::Training(holdout), SHUFFLED);
    assert!((20..55).contains(&held_out.len()), "{}", held_out.len());
    assert_eq!(learned.len() as u64, source.n_samples_of(Part::Training(holdout)));
    assert!(held_out.is_sorted());
    let mut all = [held_out, learned].concat();
    all.sort();
    assert!(all.into_iter().eq(0..120), "every sample is in one of both");
}

#[test]
fn a_feed_goes_on_from_every_batch() {
    for words in ["mixup=0.4", ALL] {
        let folder = Folder::of_classes(N);
        with_broken(&folder);
        let mut source = folder.open_with("", &augmented(words)).unwrap().training;
        let options = FeedOptions {
            part: training(),
            batch: 5,
            ..shuffled()
        };
        let whole = feed(&source, &options);
        for packed in [false, true] {
            if packed {
                pack(&mut source, &folder.store()).unwrap();
            }
            for done in (0..=whole.len()).step_by(3) {
                let start = done.checked_sub(1).map_or(0, |last| whole[last].cursor);
                let rest = FeedOptions {
                    start,
                    threads: 1 + done % 4,
                    prefetch: (done as u64 % 3) << 20,
                    ..options
                };
                assert!(feed(&source, &rest) == whole[done..], "{words}, from {start}");
            }
        }
    }
}

#[test]
fn numbers_are_the_bytes_times_a_factor() {
    let folder = Folder::of_classes(N);
    with_broken(&folder);
    let source = folder.open_with("", &augmented("rotation=20")).unwrap().training;
    for order in [Order::InPlace, SHUFFLED] {
        for (threads, prefetch, batch) in [(1, 0, 7), (3, 8 << 20, 7), (2, 1 << 20, usize::MAX), (1, 0, 0)] {
            let options = FeedOptions {
                batch,
                order,
                part: training(),
                threads,
                prefetch,
                start: 4,
            };
            let expected = feed(&source, &options);
            let ledger = Ledger::new(ROOMY);
            let mut batches = expected.iter();
            source
                .feed_images(&options, 1.0 / 255.0, &ledger, |batch| {
                    let expected = batches.next().expect("no more batches than of bytes");
                    let len = source.sample_len();
                    let all = batch
                        .samples
                        .iter()
                        .zip(batch.present)
                        .zip(batch.values.chunks_exact(len));
                    let there: Vec<_> = all.filter(|((_, present), _)| **present).collect();
                    assert_eq!(
                        there
                            .iter()
                            .map(|((sample, _), _)| **sample)
                            .collect::<Vec<u64>>(),
                        expected.samples
                    );
                    let values = there.iter().flat_map(|(_, values)| values.iter().copied());
                    let bytes = expected.bytes.iter().map(|byte| f32::from(*byte) * (1.0 / 255.0));
                    assert!(values.eq(bytes));
                    Ok::<_, Error>(ControlFlow::Continue(()))
                })
                .unwrap();
            assert!(batches.next().is_none());
            assert_eq!(ledger.used(), 0);
        }
    }
}

#[test]
fn a_batch_may_be_larger_than_all_samples_and_a_start_behind_them() {
    let folder = Folder::of_classes(10);
    let source = folder.open_with("", &sized(8)).unwrap().training;
    for prefetch in [0, 1 << 20] {
        let all = FeedOptions {
            batch: usize::MAX,
            prefetch,
            ..shuffled()
        };
        let seen = feed(&source, &all);
        assert_eq!((seen.len(), seen[0].samples.len()), (1, 10));
        let each = FeedOptions { batch: 0, ..all };
        assert_eq!(feed(&source, &each).len(), 10);
        for start in [10, 1_000, u64::MAX] {
            assert_eq!(feed(&source, &FeedOptions { start, ..all }), []);
        }
    }
}

#[test]
fn who_takes_may_fail_or_stop() {
    let folder = Folder::of_classes(N);
    let source = folder.open_with("", &sized(SIDE)).unwrap().training;
    let ledger = Ledger::new(ROOMY);
    for (threads, prefetch) in [(1, 0), (3, 8 << 20)] {
        let options = FeedOptions {
            threads,
            prefetch,
            ..shuffled()
        };
        let mut left = 3;
        let cursor = source.feed(&options, &ledger, |_| {
            left -= 1;
            Ok::<_, Error>(match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        });
        assert_eq!(cursor.unwrap(), 24);
        let failed = source.feed(&options, &ledger, |_| {
            Err(Error::Changed { path: "model".into() })
        });
        assert!(matches!(failed, Err(Error::Changed { .. })));
        assert_eq!(ledger.used(), 0);
    }
}

#[test]
fn with_less_than_asked_for_it_goes_on_with_the_least() {
    let folder = Folder::of_classes(N);
    let source = folder.open_with("", &sized(SIDE)).unwrap().training;
    let options = FeedOptions {
        prefetch: 16 << 20,
        threads: 4,
        ..shuffled()
    };
    let (asked, least) = (source.feed_bytes(&options), source.least_feed_bytes(&options));
    assert!(least < asked);
    let expected = feed(&source, &options);
    let (seen, _) = try_feed(&source, &options, &Ledger::new(least)).unwrap();
    assert!(seen == expected);
    let (seen, _) = try_feed(&source, &options, &Ledger::new(asked - 1)).unwrap();
    assert!(seen == expected);
    let refused = try_feed(&source, &options, &Ledger::new(least - 1)).unwrap_err();
    assert!(matches!(refused, Error::Memory { .. }), "{refused}");
}

#[test]
fn classes_are_counted_of_a_part() {
    let folder = Folder::of_classes(60);
    let source = folder.open_with("", &sized(8)).unwrap().training;
    assert_eq!(source.class_counts(Part::All), [30, 20, 10]);
    let holdout = Holdout::new(0.5, 3);
    let sum = |part| source.class_counts(part);
    let both = sum(Part::Training(holdout))
        .into_iter()
        .zip(sum(Part::HeldOut(holdout)));
    assert_eq!(both.map(|(a, b)| a + b).collect::<Vec<u64>>(), [30, 20, 10]);
    let names: BTreeSet<_> = (0..60).map(|sample| source.file(sample).unwrap()).collect();
    assert_eq!(names.len(), 60);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_stopped_feed_goes_on_where_it_was(
        batch in 1usize..40,
        share in prop::sample::select(vec![0.0, 0.2, 0.9]),
        held_out: bool,
        shuffle: bool,
        balanced: bool,
        seed: u64,
        stop in 0usize..10,
        prefetch in prop::sample::select(vec![0u64, 300_000, 4 << 20, 40 << 20]),
        threads in 1usize..4,
        words in prop::sample::select(vec!["flip", "crop=0.5,mixup=0.2", "rotation=9,cutmix=1,erase=1"]),
    ) {
        let folder = Folder::of_classes(47);
        let asked = ImageOptions { balanced, ..augmented(words) };
        let source = folder.open_with("", &asked).unwrap().training;
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
        let done = &whole[..stop.min(whole.len())];
        let start = done.last().map_or(0, |seen| seen.cursor);
        let rest = feed(&source, &FeedOptions { start, prefetch, threads, ..options });
        prop_assert!([done, &rest].concat() == whole);
    }
}
