//! Memory that is taken away while images are fed: those in memory go block by block, and the same batches come out.

use std::ops::ControlFlow;

use tidegate_data::Error;
use tidegate_data::arrays::{ArraySource, FeedOptions, Keep};
use tidegate_data::images::{Augment, ImageOptions};
use tidegate_memory::Ledger;

use crate::help::{Folder, ROOMY, feed, pack, shuffled, sized, training};

/// What is taken away at a time: less than a block of pictures.
const LESS: u64 = 3 << 20;

/// Samples, inputs and cursor of each batch, and what was granted when it was taken; lowered behind the batches named.
type Taken = (Vec<u64>, Vec<f32>, u64);

fn pressed(
    source: &ArraySource,
    options: &FeedOptions,
    ledger: &Ledger,
    behind: &[usize],
    less: u64,
) -> (Vec<Taken>, Vec<u64>) {
    let (mut seen, mut used) = (Vec::new(), Vec::new());
    let fed = source.feed(options, ledger, |batch| {
        let mut inputs = vec![f32::NAN; batch.n_samples() * source.sample_len()];
        batch.write_inputs(&mut inputs);
        used.push(ledger.used());
        if behind.contains(&seen.len()) {
            let _ = source.let_go(less);
            ledger.lower((ledger.used()).min(used[used.len() - 1].saturating_sub(less)));
        }
        seen.push((batch.samples().to_vec(), inputs, batch.cursor()));
        Ok::<_, Error>(ControlFlow::Continue(()))
    });
    fed.unwrap();
    (seen, used)
}

#[test]
fn images_in_memory_go_block_by_block_and_the_batches_stay_the_same() {
    let side = 160;
    let folder = Folder::of_classes(150);
    let options = ImageOptions {
        augment: Augment::parse("standard,erase=0.5,mixup=0.4").unwrap(),
        ..sized(side)
    };
    let mut source = folder.open_with("", &options).unwrap().training;
    pack(&mut source, &folder.store()).unwrap();
    let options = FeedOptions {
        part: training(),
        batch: 8,
        prefetch: 3 << 20,
        threads: 2,
        ..shuffled()
    };
    let expected = pressed(&source, &options, &Ledger::new(ROOMY), &[], 0).0;
    let ledger = Ledger::new(ROOMY);
    let all = Keep {
        memory: u64::MAX,
        ..Keep::default()
    };
    let bytes = source.keep_bytes(&all);
    source.keep(&all, &ledger).unwrap();
    assert_eq!((source.spare_bytes(), ledger.used()), (bytes, bytes));
    assert!(bytes > 9 << 20, "more than two blocks");
    let (seen, used) = pressed(&source, &options, &ledger, &[2, 5], LESS);
    assert!(seen == expected);
    let held = ledger.used();
    assert!(held <= bytes - 2 * LESS, "{held} of {bytes}");
    assert!(used[3] <= used[2] - LESS && used[6] <= used[5] - LESS, "{used:?}");
    // All of them, and the reading ahead.
    let (seen, used) = pressed(&source, &options, &ledger, &[1], 1 << 30);
    assert!(seen == expected);
    assert_eq!(ledger.used(), 0);
    assert_eq!(used.last(), Some(&source.least_feed_bytes(&options)));
}

#[test]
fn room_for_large_pictures_stays_where_they_are_decoded() {
    let folder = Folder::of_classes(20);
    let source = folder.open_with("", &sized(16)).unwrap().training;
    let options = FeedOptions {
        batch: 4,
        prefetch: 8 << 20,
        threads: 2,
        ..shuffled()
    };
    let expected = feed(&source, &options);
    let ledger = Ledger::new(ROOMY);
    let (seen, _) = pressed(&source, &options, &ledger, &[1, 3], 1 << 30);
    let samples = |n: usize| (&expected[n].samples, expected[n].cursor);
    assert_eq!(seen.len(), expected.len());
    for (n, (found, _, cursor)) in seen.iter().enumerate() {
        assert_eq!((found, *cursor), samples(n));
    }
}
