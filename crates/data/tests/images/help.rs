//! Folders of pictures, and feeds as plain data to compare.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tidegate_data::arrays::{ArraySource, FeedOptions, Order, Part};
use tidegate_data::images::{self, ImageForm, ImageOptions, OpenedImages, PackedImages, Resize, Survey};
use tidegate_data::pack::PackStore;
use tidegate_data::{Error, Holdout};
use tidegate_memory::Ledger;

use crate::draw::Drawing;

pub(crate) const ROOMY: u64 = 256 << 20;
pub(crate) const SHUFFLED: Order = Order::Shuffled { seed: 7, epoch: 3 };

/// A folder of files.
pub(crate) struct Folder(pub TempDir);

impl Folder {
    pub(crate) fn new(files: &[(&str, Vec<u8>)]) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        files.iter().for_each(|(name, bytes)| folder.write(name, bytes));
        folder
    }

    /// Pictures of 20×16 in every format, by turns, of three classes: a half, a third and the rest.
    pub(crate) fn of_classes(n: usize) -> Folder {
        let folder = Folder::new(&[]);
        for i in 0..n {
            let drawing = Drawing::numbered(i as u64, 20, 16);
            let (ending, bytes) = match i % 6 {
                0 => ("jpg", drawing.jpeg()),
                1 => ("png", drawing.png()),
                2 => ("jpeg", drawing.progressive_jpeg()),
                3 => ("webp", drawing.webp()),
                4 => ("bmp", drawing.bmp()),
                _ => ("tif", drawing.tiff()),
            };
            let class = ["ant", "bee", "ant", "cat", "bee", "ant"][i % 6];
            folder.write(&format!("{class}/{i:04}.{ending}"), &bytes);
        }
        folder
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn make(&self, name: &str) {
        fs::create_dir_all(self.path(name)).unwrap();
    }

    pub(crate) fn link(&self, name: &str, to: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        match name {
            "" => self.0.path().into(),
            name => self.0.path().join(name),
        }
    }

    pub(crate) fn open(&self, name: &str) -> Result<OpenedImages, Error> {
        self.open_with(name, &ImageOptions::default())
    }

    pub(crate) fn open_with(&self, name: &str, options: &ImageOptions) -> Result<OpenedImages, Error> {
        open(&self.path(name), options, &Ledger::new(ROOMY))
    }

    /// What opening this was refused with, and the hint; paths are told from here.
    #[track_caller]
    pub(crate) fn refused(&self, name: &str, options: &ImageOptions) -> (String, String) {
        match self.open_with(name, options) {
            Ok(_) => panic!("this should have been refused"),
            Err(error) => (self.shorten(&error), error.hint().unwrap_or_default()),
        }
    }

    pub(crate) fn shorten(&self, error: &Error) -> String {
        let here = self.0.path().display().to_string();
        let said = error.to_string();
        said.replace(&format!("{here}/"), "").replace(&here, ".")
    }

    pub(crate) fn store(&self) -> PackStore {
        PackStore::at(self.path(".packs"))
    }
}

/// Opens images; if that fails, everything is given back.
pub(crate) fn open(path: &Path, options: &ImageOptions, ledger: &Ledger) -> Result<OpenedImages, Error> {
    let used = ledger.used();
    let opened = images::open(path, options, ledger, &mut |_, _| ControlFlow::Continue(()));
    if opened.is_err() {
        assert_eq!(ledger.used(), used, "what was granted comes back");
    }
    opened.map(|opened| opened.expect("nobody ended it"))
}

/// Opens images without labels.
pub(crate) fn unlabelled(
    path: &Path,
    form: ImageForm,
    options: &ImageOptions,
) -> Result<(ArraySource, Survey), Error> {
    let ledger = Ledger::new(ROOMY);
    let opened = images::open_unlabelled(
        path,
        form,
        options,
        &ledger,
        &mut |_, _| ControlFlow::Continue(()),
    );
    opened.map(|opened| opened.expect("nobody ended it"))
}

pub(crate) fn form(height: usize, width: usize, channels: usize, resize: Resize) -> ImageForm {
    ImageForm {
        height,
        width,
        channels,
        resize,
        margin: false,
    }
}

/// Samples of this side.
pub(crate) fn sized(side: usize) -> ImageOptions {
    ImageOptions {
        size: Some((side, side)),
        threads: 2,
        ..ImageOptions::default()
    }
}

/// Decodes a file to a sample; what is wrong with it otherwise.
pub(crate) fn decode(name: &str, bytes: &[u8], form: ImageForm) -> Result<Vec<u8>, String> {
    let folder = Folder::new(&[(name, bytes.to_vec())]);
    let options = ImageOptions {
        size: Some((form.height, form.width)),
        channels: Some(form.channels),
        resize: form.resize,
        ..ImageOptions::default()
    };
    let (source, _) = unlabelled(&folder.path(name), form, &options).map_err(|error| error.to_string())?;
    let mut sample = vec![0xee; source.sample_len()];
    let ledger = Ledger::new(ROOMY);
    let shown = source.show_image(0, Order::InPlace, &ledger, &mut sample);
    assert_eq!(ledger.used(), 0);
    match shown {
        Ok(true) => Ok(sample),
        Ok(false) => Err(source.bad_files().first[0].1.clone()),
        Err(error) => Err(error.to_string()),
    }
}

/// One sample as it is judged by.
pub(crate) fn shown(source: &ArraySource, sample: u64) -> Vec<u8> {
    let mut bytes = vec![0xee; source.sample_len()];
    let there = source.show_image(sample, Order::InPlace, &Ledger::new(ROOMY), &mut bytes);
    assert!(there.unwrap(), "sample {sample}");
    bytes
}

/// All samples as they stand, in batches of 8, one after another.
pub(crate) fn in_place() -> FeedOptions {
    FeedOptions {
        batch: 8,
        order: Order::InPlace,
        start: 0,
        part: Part::All,
        prefetch: 0,
        threads: 1,
    }
}

pub(crate) fn shuffled() -> FeedOptions {
    FeedOptions {
        order: SHUFFLED,
        ..in_place()
    }
}

pub(crate) fn training() -> Part {
    Part::Training(Holdout::new(0.25, 5))
}

/// A batch as plain data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub samples: Vec<u64>,
    /// What the network sees, mixed where that was asked for, and each sample before.
    pub inputs: Vec<f32>,
    pub bytes: Vec<u8>,
    pub targets: Vec<f32>,
    pub first: u64,
    pub cursor: u64,
}

/// All batches of a feed; what it was granted is what it said, and comes back.
#[track_caller]
pub(crate) fn feed(source: &ArraySource, options: &FeedOptions) -> Vec<Seen> {
    let (seen, cursor) = try_feed(source, options, &Ledger::new(ROOMY)).unwrap();
    if let Some(last) = seen.last() {
        assert_eq!(last.cursor, cursor);
    }
    seen
}

#[track_caller]
pub(crate) fn try_feed(
    source: &ArraySource,
    options: &FeedOptions,
    ledger: &Ledger,
) -> Result<(Vec<Seen>, u64), Error> {
    let (used, announced) = (ledger.used(), source.feed_bytes(options));
    let mut seen = Vec::new();
    let cursor = source.feed(options, ledger, |batch| {
        let mut inputs = vec![f32::NAN; batch.n_samples() * source.sample_len()];
        batch.write_inputs(&mut inputs);
        let bytes = (0..batch.n_samples()).flat_map(|place| batch.sample_bytes(place));
        seen.push(Seen {
            samples: batch.samples().to_vec(),
            inputs,
            bytes: bytes.copied().collect(),
            targets: batch.targets().to_vec(),
            first: batch.first(),
            cursor: batch.cursor(),
        });
        Ok::<_, Error>(ControlFlow::Continue(()))
    });
    assert_eq!(ledger.used(), used, "a feed gives everything back");
    if used + announced <= ledger.budget() && ledger.peak() >= used {
        assert_eq!(ledger.peak(), used + announced, "a feed takes what it said");
    }
    Ok((seen, cursor?))
}

/// The samples of all batches, in order.
pub(crate) fn samples(seen: &[Seen]) -> Vec<u64> {
    seen.iter().flat_map(|batch| batch.samples.clone()).collect()
}

/// Packs a source into the store of its folder.
pub(crate) fn pack(source: &mut ArraySource, store: &PackStore) -> Result<PackedImages, Error> {
    let ledger = Ledger::new(ROOMY);
    let packed = source.pack_images(store, 2, &ledger, &mut |_| ControlFlow::Continue(()));
    // The pack's index stays, and that is little.
    assert!(ledger.used() < 64 << 10, "{}", ledger.used());
    packed
}

/// The mean colour in the middle of each quarter of a sample.
pub(crate) fn quarters(sample: &[u8], height: usize, width: usize, channels: usize) -> [Vec<f64>; 4] {
    std::array::from_fn(|quarter| {
        let (rows, columns) = (middle(height, quarter / 2), middle(width, quarter % 2));
        let mut sums = vec![0.0; channels];
        for y in rows.clone() {
            for x in columns.clone() {
                let pixel = &sample[(y * width + x) * channels..][..channels];
                sums.iter_mut()
                    .zip(pixel)
                    .for_each(|(sum, value)| *sum += f64::from(*value));
            }
        }
        let n = (rows.len() * columns.len()) as f64;
        sums.into_iter().map(|sum| sum / n).collect()
    })
}

/// The middle half of the first or the second half of a side.
fn middle(side: usize, half: usize) -> std::ops::Range<usize> {
    let start = side * (1 + 4 * half) / 8;
    start..(side * (3 + 4 * half) / 8).max(start + 1)
}

/// Holds four quarters against the colours that they should have.
#[track_caller]
pub(crate) fn check_quarters(what: &str, found: &[Vec<f64>; 4], expected: &[[u8; 3]; 4], tolerance: f64) {
    for (quarter, (found, expected)) in found.iter().zip(expected).enumerate() {
        let expected: Vec<f64> = match found.len() {
            1 => vec![f64::from(crate::draw::gray(expected))],
            _ => expected.iter().map(|value| f64::from(*value)).collect(),
        };
        let far = found
            .iter()
            .zip(&expected)
            .any(|(found, expected)| (found - expected).abs() > tolerance);
        assert!(
            !far,
            "{what}: quarter {quarter} is {found:?} instead of {expected:?}"
        );
    }
}
