//! Bytes made to break a reader: an error, never a panic, and nothing granted stays.

use std::ops::ControlFlow;

use proptest::prelude::*;
use tidegate_data::Error;
use tidegate_data::arrays::{ArrayOptions, ArraySource, FeedOptions, Keep, Order, Part};
use tidegate_memory::Ledger;

use crate::help::{Folder, gzip, idx, npy, npz, pixels, thirds, without_labels};

/// Opens, keeps and reads whatever these files are, in a small budget.
fn read_all(folder: &Folder, name: &str, options: &ArrayOptions) -> Result<(), Error> {
    let ledger = Ledger::new(4 << 20);
    let outcome = try_all(folder, name, options, &ledger);
    assert_eq!(ledger.used(), 0, "every grant returns");
    outcome
}

fn try_all(folder: &Folder, name: &str, options: &ArrayOptions, ledger: &Ledger) -> Result<(), Error> {
    let mut source = ArraySource::open(&folder.path(name), options, ledger)?;
    source.fingerprint()?;
    let keep = Keep {
        memory: 1 << 20,
        ..Keep::default()
    };
    source.keep(&keep, ledger)?;
    let feed = FeedOptions {
        batch: 3,
        order: Order::Shuffled { seed: 1, epoch: 0 },
        start: 0,
        part: Part::All,
        prefetch: 1 << 20,
        threads: 2,
    };
    let mut n = 0;
    source.feed(&feed, ledger, |batch| {
        let mut inputs = vec![0.0; batch.n_samples() * source.sample_len()];
        batch.write_inputs(&mut inputs);
        n += batch.n_samples() as u64;
        Ok::<_, Error>(ControlFlow::Continue(()))
    })?;
    assert_eq!(n, source.n_samples());
    source.moments(Part::All, 10, 0, ledger)?;
    Ok(())
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    let x = npy("<i2", &[9, 2, 2], &pixels(9, 8));
    let y = npy("<i4", &[9], &thirds(9));
    let text = npy(
        "<U2",
        &[9],
        &"a\0b\0c\0"
            .repeat(3)
            .chars()
            .flat_map(|c| (c as u32).to_le_bytes())
            .collect::<Vec<u8>>(),
    );
    vec![
        ("x.npy", x.clone()),
        ("y.npy", y.clone()),
        ("train-images-idx3-ubyte", idx(0x0b, &[9, 2, 2], &pixels(9, 8))),
        (
            "train-labels-idx1-ubyte",
            idx(0x08, &[9], &[0, 1, 2, 0, 1, 2, 0, 1, 2]),
        ),
        (
            "t10k-images-idx3-ubyte.gz",
            gzip(&idx(0x0b, &[9, 2, 2], &pixels(9, 8))),
        ),
        (
            "t10k-labels-idx1-ubyte.gz",
            gzip(&idx(0x08, &[9], &[0, 1, 2, 0, 1, 2, 0, 1, 2])),
        ),
        ("stored.npz", npz(&[("x", x.clone()), ("y", text)], false)),
        ("deflated.npz", npz(&[("x", x), ("y", y)], true)),
    ]
}

const OPENED: [&str; 5] = [
    "x.npy",
    "train-images-idx3-ubyte",
    "t10k-images-idx3-ubyte.gz",
    "stored.npz",
    "deflated.npz",
];

#[test]
fn whole_files_are_read() {
    let folder = Folder::new(&files());
    for name in OPENED {
        read_all(&folder, name, &ArrayOptions::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn files_cut_off_anywhere_are_errors() {
    for (name, bytes) in files() {
        let folder = Folder::new(&files());
        for end in 0..bytes.len() {
            folder.write(name, &bytes[..end]);
            for opened in OPENED {
                if stem(opened) == stem(name) {
                    assert!(
                        read_all(&folder, opened, &ArrayOptions::default()).is_err(),
                        "{name}, {end}"
                    );
                }
            }
        }
    }
}

/// What belongs together begins alike.
fn stem(name: &str) -> &str {
    match name {
        "x.npy" | "y.npy" => "xy",
        _ => &name[..4],
    }
}

#[test]
fn archives_that_bomb() {
    // A megabyte of zeros that says it is four bytes, and the other way round.
    let mut small = npz(&[("x", npy("|u1", &[1 << 20], &vec![0; 1 << 20]))], true);
    let size = (1u32 << 20) + 128;
    let at = small
        .windows(4)
        .rposition(|bytes| bytes == size.to_le_bytes())
        .unwrap();
    small[at..at + 4].copy_from_slice(&132u32.to_le_bytes());
    let folder = Folder::new(&[
        ("d.npz", small),
        ("x.idx.gz", gzip(&idx(8, &[u32::MAX, u32::MAX], &[0; 100]))),
    ]);
    assert!(read_all(&folder, "d.npz", &without_labels()).is_err());
    assert!(read_all(&folder, "x.idx.gz", &without_labels()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn changed_bytes_never_panic(
        which in 0usize..8,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        in_header: bool,
    ) {
        let mut files = files();
        let bytes = &mut files[which].1;
        let length = if in_header { bytes.len().min(130) } else { bytes.len() };
        for (at, byte) in changes {
            bytes[at.index(length)] = byte;
        }
        let folder = Folder::new(&files);
        for name in OPENED {
            let _ = read_all(&folder, name, &ArrayOptions::default());
        }
    }

    #[test]
    fn headers_of_anything_never_panic(text in "[{}()'\": ,0-9a-zA-Z_<>|-]{0,80}", version in 0u8..5) {
        let length = (text.len() as u32).to_le_bytes();
        let bytes = [b"\x93NUMPY", &[version, 0][..], &length, text.as_bytes(), &[0; 40]].concat();
        let _ = read_all(&Folder::new(&[("x.npy", bytes)]), "x.npy", &without_labels());
    }

    #[test]
    fn any_shape_and_type_is_read_or_refused(
        descr in prop::sample::select(vec!["<f2", "|u1", ">f8", "|S3", "<U1", "<i8", "|b1"]),
        shape in prop::collection::vec(prop::sample::select(vec![0usize, 1, 2, 3, 7, 1 << 31, 1 << 40, usize::MAX]), 0..5),
        bytes in 0usize..600,
    ) {
        let folder = Folder::new(&[("x.npy", npy(descr, &shape, &vec![1; bytes])), ("y.npy", npy(descr, &shape, &vec![1; bytes]))]);
        let _ = read_all(&folder, "x.npy", &without_labels());
        let _ = read_all(&folder, "x.npy", &ArrayOptions::default());
    }
}
