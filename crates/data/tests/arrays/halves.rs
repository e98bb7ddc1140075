//! Samples kept as halves: the same numbers wherever they are kept, in half the bytes.

use std::fs;

use tidegate_data::arrays::{ArraySource, Element, FeedOptions, Keep, Kept, Order};
use tidegate_memory::Ledger;

use crate::help::{Folder, ROOMY, feed, gzip, in_place, npy, thirds};

const LEN: usize = 300;

/// Numbers of many sizes that no half is equal to.
fn number(i: usize) -> f64 {
    let size = 10f64.powi((i % 9) as i32 - 5);
    (i as f64 * 0.7310585786300049).sin() * size
}

fn bytes(kind: &str, n: usize) -> Vec<u8> {
    let numbers = (0..n * LEN).map(number);
    match kind {
        "<f8" => numbers.flat_map(f64::to_le_bytes).collect(),
        ">f4" => numbers.flat_map(|x| (x as f32).to_be_bytes()).collect(),
        _ => numbers.flat_map(|x| (x as f32).to_le_bytes()).collect(),
    }
}

fn folder(kind: &str, n: usize) -> Folder {
    let x = npy(kind, &[n, LEN], &bytes(kind, n));
    Folder::new(&[
        ("x.npy", x.clone()),
        ("packed/x.npy.gz", gzip(&x)),
        ("y.npy", npy("<i4", &[n], &thirds(n))),
        ("packed/y.npy", npy("<i4", &[n], &thirds(n))),
    ])
}

fn narrowed(folder: &Folder, name: &str) -> ArraySource {
    let mut source = folder.open(name).unwrap();
    assert!(source.narrow() && !source.narrow());
    assert_eq!(source.element(), Element::F16);
    source
}

/// How far the nearest halves are from a number at the most: half of their distance there.
fn furthest(x: f64) -> f64 {
    let exponent = x.abs().log2().floor().max(-14.0);
    2f64.powf(exponent - 11.0)
}

#[test]
fn samples_are_the_same_halves_wherever_they_are_kept() {
    for kind in ["<f4", "<f8", ">f4"] {
        let n = 3_000;
        let folder = folder(kind, n);
        let unpacked = folder.path("unpacked");
        let options = FeedOptions {
            order: Order::Shuffled { seed: 4, epoch: 1 },
            batch: 50,
            ..in_place()
        };
        let plain = narrowed(&folder, "x.npy");
        let whole = folder.open("x.npy").unwrap();
        assert_eq!(plain.bytes(), (n * LEN * 2) as u64);
        assert_eq!(plain.bytes() * whole.element().bytes() as u64 / 2, whole.bytes());
        let expected = feed(&plain, &options);
        let numbers = expected.iter().flat_map(|batch| {
            let samples = batch.samples.iter().zip(batch.inputs.chunks(LEN));
            samples.flat_map(|(sample, row)| {
                row.iter()
                    .enumerate()
                    .map(move |(i, x)| (*sample as usize * LEN + i, *x))
            })
        });
        let mut lost = 0;
        for (i, found) in numbers {
            let x = if kind == "<f8" {
                number(i)
            } else {
                f64::from(number(i) as f32)
            };
            assert!(
                (f64::from(found) - x).abs() <= furthest(x),
                "{kind} {i}: {found} for {x}"
            );
            lost += usize::from(f64::from(found) != x);
        }
        assert!(lost > n * LEN / 2, "they are halves");
        let check = |source: &mut ArraySource, keep: Keep, kept: Kept, what: &str| {
            let ledger = Ledger::new(ROOMY);
            let bytes = source.keep_bytes(&keep);
            assert_eq!(source.keep(&keep, &ledger).unwrap(), kept, "{what}");
            assert!(ledger.peak() <= bytes, "{what}: {} of {bytes}", ledger.peak());
            if kept == Kept::Memory {
                assert_eq!(ledger.used(), (n * LEN * 2) as u64, "{what}");
            }
            for prefetch in [0, 1 << 20, 40 << 20] {
                let options = FeedOptions {
                    prefetch,
                    threads: 2,
                    ..options
                };
                assert!(
                    feed(source, &options) == expected,
                    "{kind}, {what}, {prefetch} bytes ahead"
                );
            }
        };
        let all = Keep {
            memory: u64::MAX,
            ..Keep::default()
        };
        let disk = Keep {
            folder: Some(unpacked.clone()),
            ..Keep::default()
        };
        let map = Keep {
            map: true,
            ..Keep::default()
        };
        check(
            &mut narrowed(&folder, "x.npy"),
            Keep::default(),
            Kept::Files,
            "from files",
        );
        check(&mut narrowed(&folder, "x.npy"), map, Kept::Files, "not mapped");
        check(
            &mut narrowed(&folder, "x.npy"),
            all.clone(),
            Kept::Memory,
            "in memory",
        );
        check(
            &mut narrowed(&folder, "packed/x.npy.gz"),
            all,
            Kept::Memory,
            "unpacked into memory",
        );
        check(
            &mut narrowed(&folder, "packed/x.npy.gz"),
            disk.clone(),
            Kept::Unpacked,
            "unpacked",
        );
        let files = || fs::read_dir(&unpacked).unwrap().map(|entry| entry.unwrap());
        let of_halves = files().next().unwrap();
        let metadata = of_halves.metadata().unwrap();
        assert_eq!(
            metadata.len(),
            (n * LEN * 2) as u64 + 32,
            "half the bytes, and what they come to"
        );
        check(
            &mut narrowed(&folder, "packed/x.npy.gz"),
            disk.clone(),
            Kept::Unpacked,
            "found again",
        );
        let again = files().next().unwrap().metadata().unwrap();
        assert_eq!(
            (files().count(), again.modified().unwrap()),
            (1, metadata.modified().unwrap())
        );
        // Unpacked as they are, they are other samples.
        let mut whole = folder.open("packed/x.npy.gz").unwrap();
        whole.keep(&disk, &Ledger::new(ROOMY)).unwrap();
        assert_eq!(files().count(), 2);
    }
}

#[test]
fn samples_in_memory_as_halves_are_let_go_and_read_again() {
    let folder = folder("<f4", 2_000);
    let mut source = narrowed(&folder, "x.npy");
    let expected = feed(&source, &in_place());
    let ledger = Ledger::new(ROOMY);
    let all = Keep {
        memory: u64::MAX,
        ..Keep::default()
    };
    source.keep(&all, &ledger).unwrap();
    source.let_go(1);
    assert_eq!((ledger.used(), source.is_in_memory()), (0, false));
    let mut seen = 0;
    source
        .feed(&in_place(), &ledger, |batch| {
            let mut inputs = vec![0.0; batch.n_samples() * LEN];
            batch.write_inputs(&mut inputs);
            assert!(inputs == expected[seen].inputs);
            seen += 1;
            Ok::<_, tidegate_data::Error>(std::ops::ControlFlow::Continue(()))
        })
        .unwrap();
    assert_eq!(seen, expected.len());
}

#[test]
fn what_no_half_can_hold_is_refused_by_name() {
    let n = 400;
    let mut values = bytes("<f4", n);
    let at = 4 * (317 * LEN + 5);
    values[at..at + 4].copy_from_slice(&(-70_000f32).to_le_bytes());
    let x = npy("<f4", &[n, LEN], &values);
    let folder = Folder::new(&[
        ("x.npy", x.clone()),
        ("packed/x.npy.gz", gzip(&x)),
        ("y.npy", npy("<i4", &[n], &thirds(n))),
        ("packed/y.npy", npy("<i4", &[n], &thirds(n))),
    ]);
    let ledger = Ledger::new(ROOMY);
    let refused = |error: tidegate_data::Error, name: &str| {
        let path = folder.path(name);
        assert_eq!(
            error.to_string(),
            format!(
                "{}: sample 317 holds -70000, and half precision goes up to ±65504",
                path.display()
            )
        );
        assert!(error.hint().unwrap().contains("--keep f16"));
    };
    let all = Keep {
        memory: u64::MAX,
        ..Keep::default()
    };
    let disk = Keep {
        folder: Some(folder.path("unpacked")),
        ..Keep::default()
    };
    refused(
        narrowed(&folder, "x.npy").keep(&all, &ledger).unwrap_err(),
        "x.npy",
    );
    for keep in [all, disk] {
        let kept = narrowed(&folder, "packed/x.npy.gz").keep(&keep, &ledger);
        refused(kept.unwrap_err(), "packed/x.npy.gz");
    }
    let fed =
        narrowed(&folder, "x.npy").feed(&in_place(), &ledger, |_| Ok(std::ops::ControlFlow::Continue(())));
    refused(fed.unwrap_err(), "x.npy");
    assert_eq!(ledger.used(), 0);
    let left = fs::read_dir(folder.path("unpacked")).map_or(0, |files| files.count());
    assert_eq!(left, 0, "nothing half written is left");
}

#[test]
fn whole_numbers_stay_as_they_are() {
    let mut source = Folder::images(20, &[4, 4]).open("x.npy").unwrap();
    assert!(!source.narrow());
    assert_eq!(source.element(), Element::U8);
}
