//! Memory: what the ledger grants and what the kernel counts, for arrays much larger than both.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use tidegate_data::arrays::{ArrayOptions, ArraySource, FeedOptions, Keep, Kept, Order, Part};
use tidegate_data::sketch::Moments;
use tidegate_data::{Error, Holdout};
use tidegate_memory::Ledger;

use crate::group::Group;
use crate::help::{Folder, npy, thirds};

/// What an array of 256 MB is read in.
const BUDGET: u64 = 36 << 20;
/// The program itself, and the buffer that a batch is written to.
const BASE: u64 = 4 << 20;
const N: usize = 250_000;
const SIDE: usize = 32;

/// Images of 256 MB in all, and their labels.
fn write_large(folder: &Path) {
    let header = npy("|u1", &[N, SIDE, SIDE], &[]);
    let mut file = BufWriter::new(File::create(folder.join("x.npy")).unwrap());
    file.write_all(&header).unwrap();
    for i in 0..N {
        file.write_all(&[(i % 251) as u8; SIDE * SIDE]).unwrap();
    }
    // What waits to be written cannot be dropped from the page cache.
    file.into_inner().unwrap().sync_all().unwrap();
    fs::write(folder.join("y.npy"), npy("<i4", &[N], &thirds(N))).unwrap();
}

/// An epoch in windows, an epoch of what is held out, moments: all in the budget.
fn work(folder: &Path, map: bool) {
    let ledger = Ledger::new(BUDGET);
    let mut source = ArraySource::open(&folder.join("x.npy"), &ArrayOptions::default(), &ledger).unwrap();
    let kept = source
        .keep(
            &Keep {
                memory: BUDGET / 2,
                folder: None,
                map,
            },
            &ledger,
        )
        .unwrap();
    assert_eq!(kept, if map { Kept::Mapped } else { Kept::Files });
    let holdout = Holdout::new(0.1, 3);
    let shuffled = FeedOptions {
        batch: 256,
        order: Order::Shuffled { seed: 3, epoch: 0 },
        start: 0,
        part: Part::Training(holdout),
        prefetch: 2 * (17 << 20),
        threads: 2,
    };
    assert!(source.good_prefetch(256, 1) <= shuffled.prefetch);
    let evaluation = FeedOptions {
        order: Order::InPlace,
        part: Part::HeldOut(holdout),
        ..shuffled
    };
    let mut inputs = vec![0.0; 256 * SIDE * SIDE];
    for options in [shuffled, evaluation] {
        let mut n = 0;
        source
            .feed(&options, &ledger, |batch| {
                batch.write_inputs(&mut inputs);
                for (sample, inputs) in batch.samples().iter().zip(inputs.chunks(SIDE * SIDE)) {
                    assert_eq!(inputs[SIDE], (sample % 251) as f32);
                }
                n += batch.n_samples() as u64;
                Ok::<_, Error>(ControlFlow::Continue(()))
            })
            .unwrap();
        assert_eq!(n, source.n_samples_of(options.part));
    }
    source
        .moments(Part::Training(holdout), 1_000, 3, &ledger)
        .unwrap();
    drop(source);
    assert_eq!(ledger.used(), 0);
}

#[test]
fn an_array_larger_than_the_budget_is_streamed() {
    let folder = tempfile::tempdir().unwrap();
    write_large(folder.path());
    for map in [false, true] {
        work(folder.path(), map);
    }
}

#[test]
fn a_feed_that_does_not_fit_is_refused_with_its_bytes() {
    let folder = Folder::images(1_000, &[100]);
    let source = folder.open("x.npy").unwrap();
    let options = FeedOptions {
        batch: 100,
        prefetch: 1 << 20,
        ..crate::help::in_place()
    };
    let least = source.least_feed_bytes(&options);
    let nothing = |_: &tidegate_data::arrays::SampleBatch<'_>| Ok::<_, Error>(ControlFlow::Continue(()));
    let refused = source.feed(
        &FeedOptions {
            prefetch: 0,
            ..options
        },
        &Ledger::new(least - 1),
        nothing,
    );
    assert!(matches!(refused, Err(Error::Memory { .. })));
    source
        .feed(
            &FeedOptions {
                prefetch: 0,
                ..options
            },
            &Ledger::new(least),
            nothing,
        )
        .unwrap();
    // With less than was asked for it goes on with fewer slots.
    let several = FeedOptions {
        prefetch: 50_000,
        ..options
    };
    let some = Ledger::new(source.feed_bytes(&several) - 1);
    source.feed(&several, &some, nothing).unwrap();
    assert!(some.peak() < some.budget());
}

/// Does nothing but where the test below starts it, in a cgroup of its own.
#[test]
fn as_a_child() {
    let Some(folder) = std::env::var_os("TIDEGATE_TEST_PEAK_OF_AN_ARRAY") else {
        return;
    };
    let map = std::env::var_os("TIDEGATE_TEST_MAPPED").is_some();
    work(Path::new(&folder), map);
}

#[test]
fn the_kernel_counts_no_more_than_was_granted() {
    let folder = tempfile::tempdir().unwrap();
    write_large(folder.path());
    let file = File::open(folder.path().join("x.npy")).unwrap();
    tidegate_data::pack::drop_range(&file, 0, file.metadata().unwrap().len());
    for map in [false, true] {
        let Some(group) = Group::make(if map { "map" } else { "read" }) else {
            eprintln!("skipped: no cgroup can be made here");
            return;
        };
        // Twice as much as there should be beside the budget: what would be taken has room to show.
        fs::write(group.0.join(group.2), (BUDGET + 2 * BASE).to_string()).unwrap();
        let mut child = Command::new("sh");
        child
            .args(["-c", "echo $$ > \"$0\" && exec \"$1\" --exact memory::as_a_child"])
            .arg(group.0.join("cgroup.procs"))
            .arg(std::env::current_exe().unwrap())
            .env("TIDEGATE_TEST_PEAK_OF_AN_ARRAY", folder.path());
        if map {
            child.env("TIDEGATE_TEST_MAPPED", "1");
        }
        let output = child.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
        let peak: u64 = fs::read_to_string(group.0.join(group.1))
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        println!("peak {:.1} MB, mapped: {map}", peak as f64 / 1e6);
        assert!(
            peak < BUDGET + BASE,
            "{peak} bytes for an array of 256 MB, mapped: {map}"
        );
    }
}

#[test]
fn moments_are_those_of_the_channels() {
    // Three channels: constant, counting, and with a hole.
    let (n, pixels) = (400usize, 10usize);
    let mut values = Vec::new();
    for i in 0..n * pixels {
        let hole = if i % 4 == 0 { f32::NAN } else { (i % 2) as f32 };
        values.extend([5.0, (i % 7) as f32, hole]);
    }
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let folder = Folder::new(&[
        ("x.npy", npy("<f4", &[n, pixels, 3], &bytes)),
        ("y.npy", npy("<i4", &[n], &thirds(n))),
    ]);
    let ledger = Ledger::new(64 << 20);
    let mut source = folder.open("x.npy").unwrap();
    let all = source.moments(Part::All, u64::MAX, 1, &ledger).unwrap();
    for (channel, found) in all.iter().enumerate() {
        let mut expected = Moments::default();
        let values = values.iter().skip(channel).step_by(3);
        values.for_each(|value| expected.push(f64::from(*value)));
        assert_eq!(
            (found.count, found.min, found.max),
            (expected.count, expected.min, expected.max)
        );
        assert!((found.mean - expected.mean).abs() < 1e-9);
        assert!((found.deviation() - expected.deviation()).abs() < 1e-9);
    }
    // A sample is the same wherever it is read from, and another for another seed.
    let few = source.moments(Part::All, 50, 1, &ledger).unwrap();
    assert_eq!(few[0].count, 500);
    assert_ne!(few, source.moments(Part::All, 50, 2, &ledger).unwrap());
    source
        .keep(
            &Keep {
                memory: 1 << 20,
                ..Keep::default()
            },
            &Ledger::new(1 << 20),
        )
        .unwrap();
    assert_eq!(few, source.moments(Part::All, 50, 1, &ledger).unwrap());
    assert_eq!(ledger.used(), 0);
}
