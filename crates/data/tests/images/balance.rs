//! Balanced feeds: each class as often as any other, however few images it has.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use tidegate_data::arrays::{FeedOptions, Order, Part};
use tidegate_data::images::{Augment, ImageOptions};
use tidegate_data::{Error, Holdout};
use tidegate_memory::Ledger;

use crate::draw::Drawing;
use crate::help::{Folder, ROOMY, Seen, feed, in_place, pack, samples, shuffled, sized};

/// So many pictures of each class.
fn classes(counts: &[usize]) -> Folder {
    let folder = Folder::new(&[]);
    let mut number = 0;
    for (class, n) in counts.iter().enumerate() {
        for i in 0..*n {
            number += 1;
            let bytes = Drawing::numbered(number, 10, 10).png();
            folder.write(&format!("class {class}/{i}.png"), &bytes);
        }
    }
    folder
}

fn balanced() -> ImageOptions {
    ImageOptions {
        balanced: true,
        augment: Augment::parse("rotation=40").unwrap(),
        ..sized(12)
    }
}

/// How often each class comes.
fn turns(seen: &[Seen]) -> Vec<u64> {
    let mut counts = BTreeMap::new();
    for target in seen.iter().flat_map(|batch| &batch.targets) {
        *counts.entry(*target as u32).or_default() += 1;
    }
    counts.into_values().collect()
}

#[test]
fn each_class_comes_as_often_as_any_other() {
    let folder = classes(&[30, 5, 2]);
    let source = folder.open_with("", &balanced()).unwrap().training;
    for (batch, epoch) in [(8, 0), (1, 1), (37, 2), (5, 3)] {
        let options = FeedOptions {
            batch,
            order: Order::Shuffled { seed: 3, epoch },
            ..shuffled()
        };
        let seen = feed(&source, &options);
        // As many samples as without, each with the target of its file.
        assert_eq!(samples(&seen).len(), 37);
        let turns = turns(&seen);
        assert!(turns.iter().all(|n| (12..=13).contains(n)), "{turns:?}");
        for batch in &seen {
            assert_eq!(batch.samples.len(), batch.targets.len());
            for (sample, target) in batch.samples.iter().zip(&batch.targets) {
                assert_eq!(source.target(*sample), [*target]);
                let class = source
                    .file(*sample)
                    .unwrap()
                    .parent()
                    .unwrap()
                    .display()
                    .to_string();
                assert!(class.ends_with(&format!("class {target}")), "{class}");
            }
        }
    }
}

#[test]
fn a_sample_that_comes_again_looks_otherwise() {
    let folder = classes(&[30, 5, 2]);
    let source = folder.open_with("", &balanced()).unwrap().training;
    let seen = feed(&source, &shuffled());
    let mut looks: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
    for batch in &seen {
        for (sample, bytes) in batch.samples.iter().zip(batch.bytes.chunks_exact(12 * 12 * 3)) {
            looks.entry(*sample).or_default().push(bytes.to_vec());
        }
    }
    // The two of the smallest class take turns, six times each or more.
    let [.., first, second] = &looks.values().collect::<Vec<_>>()[..] else {
        panic!()
    };
    assert!(
        first.len() >= 6 && second.len() >= 6,
        "{} and {}",
        first.len(),
        second.len()
    );
    for looks in looks.values() {
        let mut others = looks.clone();
        others.sort();
        others.dedup();
        assert_eq!(others.len(), looks.len());
    }
    // And in the next epoch again.
    let options = FeedOptions {
        order: Order::Shuffled { seed: 7, epoch: 4 },
        ..shuffled()
    };
    assert_ne!(samples(&feed(&source, &options)), samples(&seen));
}

#[test]
fn balanced_feeds_go_on_and_are_the_same_everywhere() {
    let folder = classes(&[20, 9, 3]);
    folder.write("class 1/broken.png", &Drawing::quarters(40, 40).png()[..80]);
    let mut source = folder.open_with("", &balanced()).unwrap().training;
    let options = FeedOptions {
        batch: 4,
        part: Part::Training(Holdout::new(0.2, 1)),
        ..shuffled()
    };
    let whole = feed(&source, &options);
    for packed in [false, true] {
        if packed {
            pack(&mut source, &folder.store()).unwrap();
        }
        for (threads, prefetch) in [(1, 0), (2, 200_000), (4, 32 << 20)] {
            for done in 0..=whole.len() {
                let start = done.checked_sub(1).map_or(0, |last| whole[last].cursor);
                let rest = FeedOptions {
                    start,
                    threads,
                    prefetch,
                    ..options
                };
                assert!(
                    feed(&source, &rest) == whole[done..],
                    "from {start}, {threads} threads"
                );
            }
        }
    }
}

#[test]
fn numbers_of_a_balanced_feed_tell_their_samples() {
    let folder = classes(&[12, 2]);
    let source = folder.open_with("", &balanced()).unwrap().training;
    let expected = feed(&source, &shuffled());
    let mut batches = expected.iter();
    source
        .feed_images(&shuffled(), 0.5, &Ledger::new(ROOMY), |batch| {
            let expected = batches.next().unwrap();
            assert_eq!(batch.samples, expected.samples);
            let bytes = expected.bytes.iter().map(|byte| f32::from(*byte) * 0.5);
            assert!(batch.values.iter().copied().eq(bytes));
            Ok::<_, Error>(ControlFlow::Continue(()))
        })
        .unwrap();
    assert!(batches.next().is_none());
}

#[test]
fn a_class_may_be_missing_in_a_part_and_evaluation_is_not_balanced() {
    let folder = classes(&[20, 1, 10]);
    let source = folder.open_with("", &balanced()).unwrap().training;
    let judged = feed(&source, &in_place());
    assert!(samples(&judged).into_iter().eq(0..31));
    // Somewhere the only one of its class is held out, and somewhere it is all there is to learn of it.
    let mut without = 0;
    for seed in 0..20 {
        let part = Part::Training(Holdout::new(0.5, seed));
        let n_classes = source.class_counts(part).iter().filter(|n| **n > 0).count();
        let turns = turns(&feed(&source, &FeedOptions { part, ..shuffled() }));
        assert_eq!(turns.len(), n_classes);
        let (least, most) = (turns.iter().min().unwrap(), turns.iter().max().unwrap());
        assert!(most - least <= 1, "{turns:?}");
        without += usize::from(n_classes == 2);
    }
    assert!((1..20).contains(&without), "{without}");
}
