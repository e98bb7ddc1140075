//! Arrays written byte by byte, and feeds as plain data to compare.

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rawzip::{CompressionMethod, ZipArchiveWriter, ZipDataWriter};
use tempfile::TempDir;
use tidegate_data::Error;
use tidegate_data::arrays::{ArrayOptions, ArraySource, FeedOptions, LabelsFrom, Order, Part};
use tidegate_memory::Ledger;

pub(crate) const ROOMY: u64 = 256 << 20;

/// A NumPy file of version 1.
pub(crate) fn npy(descr: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let axes: Vec<String> = shape.iter().map(|axis| format!("{axis},")).collect();
    let mut text = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}",
        axes.join(" ")
    );
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let length = (text.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), data].concat()
}

/// An IDX file.
pub(crate) fn idx(code: u8, shape: &[u32], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, code, shape.len() as u8];
    shape.iter().for_each(|axis| bytes.extend(axis.to_be_bytes()));
    bytes.extend(data);
    bytes
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A NumPy archive of members that are each a NumPy file.
pub(crate) fn npz(members: &[(&str, Vec<u8>)], deflated: bool) -> Vec<u8> {
    let mut archive = ZipArchiveWriter::new(Vec::new());
    for (name, bytes) in members {
        let name = format!("{name}.npy");
        let method = if deflated {
            CompressionMethod::Deflate
        } else {
            CompressionMethod::Store
        };
        let (mut entry, config) = archive
            .new_file(&name)
            .compression_method(method)
            .start()
            .unwrap();
        let descriptor = if deflated {
            let encoder = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::fast());
            let mut writer = config.wrap(encoder);
            writer.write_all(bytes).unwrap();
            let (encoder, descriptor) = writer.finish().unwrap();
            encoder.finish().unwrap();
            descriptor
        } else {
            let mut writer: ZipDataWriter<_> = config.wrap(&mut entry);
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap().1
        };
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap()
}

/// Bytes of samples that tell where they are from: sample `i` begins with a hash of `i`.
pub(crate) fn pixels(n_samples: usize, sample_len: usize) -> Vec<u8> {
    let value = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    (0..n_samples * sample_len).map(|i| value(i) as u8).collect()
}

/// Labels 0 to 2, in turn.
pub(crate) fn thirds(n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| ((i % 3) as i32).to_le_bytes()).collect()
}

/// A folder of files.
pub(crate) struct Folder(pub TempDir);

impl Folder {
    pub(crate) fn new(files: &[(&str, Vec<u8>)]) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        files.iter().for_each(|(name, bytes)| folder.write(name, bytes));
        folder
    }

    /// Images of `shape` with labels 0 to 2.
    pub(crate) fn images(n: usize, shape: &[usize]) -> Folder {
        let whole = [&[n][..], shape].concat();
        let len = shape.iter().product();
        Folder::new(&[
            ("x.npy", npy("|u1", &whole, &pixels(n, len))),
            ("y.npy", npy("<i4", &[n], &thirds(n))),
        ])
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Opens a file, or the folder itself by an empty name.
    pub(crate) fn open(&self, name: &str) -> Result<ArraySource, Error> {
        self.open_with(name, &ArrayOptions::default())
    }

    pub(crate) fn open_with(&self, name: &str, options: &ArrayOptions) -> Result<ArraySource, Error> {
        open(&self.path(name), options, &Ledger::new(ROOMY))
    }
}

/// Opens arrays; if that fails, everything is given back.
pub(crate) fn open(path: &Path, options: &ArrayOptions, ledger: &Ledger) -> Result<ArraySource, Error> {
    let used = ledger.used();
    let source = ArraySource::open(path, options, ledger);
    if source.is_err() {
        assert_eq!(ledger.used(), used, "what was granted comes back");
    }
    source
}

pub(crate) fn without_labels() -> ArrayOptions {
    ArrayOptions {
        labels_from: LabelsFrom::Nowhere,
        ..ArrayOptions::default()
    }
}

/// All samples as they stand, in batches of 32.
pub(crate) fn in_place() -> FeedOptions {
    FeedOptions {
        batch: 32,
        order: Order::InPlace,
        start: 0,
        part: Part::All,
        prefetch: 0,
        threads: 1,
    }
}

/// A batch as plain data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub samples: Vec<u64>,
    pub inputs: Vec<f32>,
    pub targets: Vec<f32>,
    pub cursor: u64,
}

/// All batches of a feed; what it was granted is what it said, and comes back.
pub(crate) fn feed(source: &ArraySource, options: &FeedOptions) -> Vec<Seen> {
    let (ledger, mut seen) = (Ledger::new(ROOMY), Vec::new());
    let cursor = source
        .feed(options, &ledger, |batch| {
            let mut inputs = vec![f32::NAN; batch.n_samples() * source.sample_len()];
            batch.write_inputs(&mut inputs);
            seen.push(Seen {
                samples: batch.samples().to_vec(),
                inputs,
                targets: batch.targets().to_vec(),
                cursor: batch.cursor(),
            });
            Ok::<_, Error>(ControlFlow::Continue(()))
        })
        .unwrap();
    assert_eq!(ledger.used(), 0, "a feed gives everything back");
    assert_eq!(
        ledger.peak(),
        source.feed_bytes(options),
        "a feed takes what it said"
    );
    if let Some(last) = seen.last() {
        assert_eq!(last.cursor, cursor);
    }
    seen
}

/// The samples themselves, in place, as one list of numbers.
pub(crate) fn inputs(source: &ArraySource) -> Vec<f32> {
    feed(source, &in_place())
        .into_iter()
        .flat_map(|batch| batch.inputs)
        .collect()
}

/// The labels, in place.
pub(crate) fn targets(source: &ArraySource) -> Vec<f32> {
    (0..source.n_samples())
        .flat_map(|sample| source.target(sample).to_vec())
        .collect()
}

/// What a person reads, and the hint.
pub(crate) fn told(result: Result<ArraySource, Error>) -> (String, String) {
    let error = match result {
        Ok(_) => panic!("this should have been refused"),
        Err(error) => error,
    };
    (error.to_string(), error.hint().unwrap_or_default())
}
