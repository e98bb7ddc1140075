//! Memory that is taken away while samples are fed: less is read ahead, and the same batches come out.

use std::ops::ControlFlow;

use tidegate_data::arrays::{ArraySource, FeedOptions, Keep, Kept, Order};
use tidegate_data::{Error, Result};
use tidegate_memory::Ledger;

use crate::help::{Folder, ROOMY, Seen, feed, gzip, in_place, npy, pixels, thirds};

/// The batches of a feed whose ledger is lowered by `less` bytes behind each of the batches named, as a watcher would, and
/// what was granted when each batch was taken.
fn pressed(
    source: &ArraySource,
    options: &FeedOptions,
    ledger: &Ledger,
    behind: &[usize],
    less: u64,
) -> Result<(Vec<Seen>, Vec<u64>)> {
    let (mut seen, mut used) = (Vec::new(), Vec::new());
    source.feed(options, ledger, |batch| {
        let mut inputs = vec![f32::NAN; batch.n_samples() * source.sample_len()];
        batch.write_inputs(&mut inputs);
        used.push(ledger.used());
        seen.push(Seen {
            samples: batch.samples().to_vec(),
            inputs,
            targets: batch.targets().to_vec(),
            cursor: batch.cursor(),
        });
        if behind.contains(&(seen.len() - 1)) {
            let budget = ledger.used().saturating_sub(less);
            let _ = source.let_go(less);
            ledger.lower(budget);
        }
        Ok::<_, Error>(ControlFlow::Continue(()))
    })?;
    Ok((seen, used))
}

/// Small samples in three windows of 16 MB.
fn small() -> Folder {
    Folder::images(40_011, &[33, 33])
}

const SHUFFLED: Order = Order::Shuffled { seed: 7, epoch: 3 };

#[test]
fn a_feed_reads_ahead_less_and_hands_out_the_same() {
    let folder = small();
    let source = folder.open("x.npy").unwrap();
    let options = FeedOptions {
        batch: 200,
        order: SHUFFLED,
        prefetch: 60 << 20,
        threads: 2,
        ..in_place()
    };
    let expected = feed(&source, &options);
    for less in [1, 20 << 20, 40 << 20, 50 << 20] {
        let source = folder.open("x.npy").unwrap();
        let ledger = Ledger::new(ROOMY);
        let (seen, used) = pressed(&source, &options, &ledger, &[3, 90], less).unwrap();
        assert!(seen == expected, "{less} bytes less");
        assert_eq!(ledger.used(), 0);
        // From the next batch on it holds so much less, as far as there is something to do without.
        let least = source.least_feed_bytes(&options);
        let allowed = |before: u64| before.saturating_sub(less).max(least);
        assert!(used[4] <= allowed(used[3]), "{} of {}", used[4], used[3]);
        assert!(used[91] <= allowed(used[90]), "{} of {}", used[91], used[90]);
        // And so it stays: the next epoch does not take it again.
        let later = pressed(&source, &options, &Ledger::new(ROOMY), &[], 0).unwrap();
        assert!(later.0 == expected && later.1[0] <= used[91]);
    }
}

#[test]
fn samples_one_by_one_are_read_ahead_less_too() {
    let folder = Folder::images(300, &[300, 300]);
    let source = folder.open("x.npy").unwrap();
    let options = FeedOptions {
        batch: 7,
        order: SHUFFLED,
        prefetch: 5 << 20,
        threads: 3,
        start: 13,
        ..in_place()
    };
    let expected = feed(&source, &options);
    let behind: Vec<usize> = (0..41).collect();
    let ledger = Ledger::new(ROOMY);
    let (seen, used) = pressed(&source, &options, &ledger, &behind, 1).unwrap();
    assert!(seen == expected);
    assert!(used.is_sorted_by(|a, b| a >= b), "{used:?}");
    assert_eq!(used.last(), Some(&source.least_feed_bytes(&options)));
}

#[test]
fn samples_in_memory_are_let_go_and_read_from_their_files() {
    let folder = small();
    let mut source = folder.open("x.npy").unwrap();
    let options = FeedOptions {
        batch: 200,
        order: SHUFFLED,
        ..in_place()
    };
    let expected = feed(&source, &options);
    let ledger = Ledger::new(ROOMY);
    let keep = Keep {
        memory: u64::MAX,
        ..Keep::default()
    };
    assert_eq!(source.keep(&keep, &ledger).unwrap(), Kept::Memory);
    let held = source.bytes();
    assert_eq!(source.spare_bytes(), held);
    let (seen, used) = pressed(&source, &options, &ledger, &[5], held / 2).unwrap();
    assert!(seen == expected);
    assert!(used[5] > held && used[6] < held / 2, "{} {}", used[5], used[6]);
    assert!(!source.is_in_memory() && source.spare_bytes() == 0);
    assert_eq!(ledger.used(), 0);
    let again = pressed(&source, &options, &ledger, &[], 0).unwrap();
    assert!(again.0 == expected && ledger.over() == 0);
}

#[test]
fn what_was_unpacked_into_memory_stays() {
    let (n, len) = (500, 64);
    let x = npy("|u1", &[n, len], &pixels(n, len));
    let folder = Folder::new(&[("x.npy.gz", gzip(&x)), ("y.npy", npy("<i4", &[n], &thirds(n)))]);
    let mut source = folder.open("x.npy.gz").unwrap();
    let ledger = Ledger::new(ROOMY);
    let keep = Keep {
        memory: u64::MAX,
        ..Keep::default()
    };
    assert_eq!(source.keep(&keep, &ledger).unwrap(), Kept::Memory);
    assert_eq!((source.spare_bytes(), source.can_let_go()), (0, false));
    source.let_go(u64::MAX);
    assert!(source.is_in_memory());
}
