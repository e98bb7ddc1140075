//! Opening any bytes as an array of each format, with labels of others, and reading all of it in a small budget.
#![no_main]

use std::ops::ControlFlow;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tidegate_data::Error;
use tidegate_data::arrays::{ArrayOptions, ArraySource, FeedOptions, Keep, LabelsFrom, Order, Part};
use tidegate_memory::Ledger;

/// Which format, samples and labels. What a format begins with is put before the bytes.
type Files = (u8, Vec<u8>, Vec<u8>);

const NUMPY: &[u8] = b"\x93NUMPY";

fuzz_target!(|files: Files| {
    let (format, samples, labels) = files;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, begin: &[u8], bytes: &[u8]| {
        std::fs::write(folder.path().join(name), [begin, bytes].concat()).unwrap();
    };
    let name = match format % 4 {
        0 => {
            write("x.npy", NUMPY, &samples);
            write("y.npy", NUMPY, &labels);
            "x.npy"
        }
        1 => {
            write("train-images-idx3-ubyte", &[0, 0], &samples);
            write("train-labels-idx1-ubyte", &[0, 0], &labels);
            "train-images-idx3-ubyte"
        }
        2 => {
            write("d.npz", b"PK\x03\x04", &samples);
            "d.npz"
        }
        _ => {
            write("x.idx.gz", &[0x1f, 0x8b], &samples);
            write("y.idx.gz", &[0x1f, 0x8b], &labels);
            "x.idx.gz"
        }
    };
    let ledger = Ledger::new(16 << 20);
    for labels_from in [LabelsFrom::Found, LabelsFrom::Nowhere] {
        let options = ArrayOptions {
            labels_from,
            ..ArrayOptions::default()
        };
        let _ = read(&folder.path().join(name), &options, folder.path(), &ledger);
        assert_eq!(ledger.used(), 0);
    }
});

fn read(path: &Path, options: &ArrayOptions, folder: &Path, ledger: &Ledger) -> Result<(), Error> {
    let mut source = ArraySource::open(path, options, ledger)?;
    source.fingerprint()?;
    let keep = Keep {
        memory: 64 << 10,
        folder: Some(folder.join("unpacked")),
        map: false,
    };
    source.keep(&keep, ledger)?;
    let feed = FeedOptions {
        batch: 5,
        order: Order::Shuffled { seed: 1, epoch: 0 },
        start: 1,
        part: Part::All,
        prefetch: 1 << 20,
        threads: 1,
    };
    let mut inputs = Vec::new();
    source.feed(&feed, ledger, |batch| {
        inputs.resize(batch.n_samples() * source.sample_len(), 0.0);
        batch.write_inputs(&mut inputs);
        Ok::<_, Error>(ControlFlow::Continue(()))
    })?;
    Ok(())
}
