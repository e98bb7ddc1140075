//! Arrays as a source of samples: opened far enough to know what they hold, then read in any order.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidegate_memory::{Grant, Ledger};
use twox_hash::XxHash3_64;

use super::answers::Answers;
use super::element::Element;
use super::find::{Finding, Found, LabelsAt, Set};
use super::half::narrows;
use super::header::{Header, Holds};
use super::labels::{LabelOptions, Labelled, Labels, Values};
use super::pressed::Pressed;
use super::problem::ArrayProblem;
use super::samples::{Held, HeldSamples, Mapped, SHARD_BYTES, Samples, Shard, Store};
use super::sums::Sums;
use super::unpack::{UNPACK_BYTES, into_file, into_memory, use_shared};
use crate::meter::Meter;
use crate::pack::{SamplesPack, block_bytes};
use crate::{Below, FeedTimes, Holdout, Input, Result};

/// How to read what was named.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ArrayOptions {
    /// The array of samples, where names do not tell: a key of an archive, a file of a folder.
    pub samples: Option<String>,
    pub labels_from: LabelsFrom,
    pub labels: LabelOptions,
    /// Where files may be.
    #[serde(default, skip_serializing_if = "Below::is_anywhere")]
    pub below: Below,
}

/// Where labels come from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelsFrom {
    /// By the usual names, or by the folders that samples are in.
    #[default]
    Found,
    /// A key of the archive, or a file.
    Named(String),
    /// Samples alone, to predict.
    Nowhere,
}

/// Where samples may be kept between epochs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// Bytes that they may take in memory: all of them are held if they fit, and none otherwise.
    pub memory: u64,
    /// Where to unpack compressed arrays that do not fit. There is no other way to read them.
    pub folder: Option<PathBuf>,
    /// Map the files instead of reading them, where their numbers stand as the machine has them.
    pub map: bool,
}

/// Where samples are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    Memory,
    /// As they stand.
    Files,
    /// In plain files of the folder that was named.
    Unpacked,
    Mapped,
}

/// Samples of one shape and type, each with its labels.
pub struct ArraySource {
    pub(crate) samples: Samples,
    pub(crate) labelled: Option<Labelled>,
    /// What the labels were read from.
    pub(super) label_inputs: Vec<Input>,
    pub(super) test: Option<Set>,
    pub(super) path: PathBuf,
    /// A number that changes with samples of which only some are looked at for a fingerprint.
    pub(super) mark: u64,
    pub(crate) meter: Meter,
    pub(crate) pressed: Pressed,
}

/// What decompressing takes; zstd may take more for its window.
const DECOMPRESSOR_BYTES: u64 = 1 << 20;
/// Files of which more than this are not mapped: each would be a mapping of its own.
const MOST_MAPPED: usize = 1_024;

impl ArraySource {
    /// Opens a `.npy`, `.npz` or IDX file, or a folder of them: reads headers and all labels, and checks that they fit
    /// together. Samples stay where they are.
    pub fn open(path: &Path, options: &ArrayOptions, ledger: &Ledger) -> Result<ArraySource> {
        let holder = ledger.holder("arrays");
        let mut finding = Finding {
            samples: options.samples.as_deref(),
            labels: &options.labels_from,
            below: &options.below,
            listed: holder.try_grant(0)?,
            holder,
        };
        let Found { training, test } = finding.find(path)?;
        ArraySource::of(training, test, path, &options.labels, finding.listed, ledger)
    }

    /// The samples that stand beside for a test, such as `x_test` and `y_test`, with labels as these have; `None` if
    /// there are none.
    pub fn open_test(&self, ledger: &Ledger) -> Result<Option<ArraySource>> {
        let Some(test) = &self.test else { return Ok(None) };
        let files = test
            .samples
            .iter()
            .map(|input| input.path().as_os_str().len() as u64);
        let listed = files.map(|letters| SHARD_BYTES + letters).sum();
        let listed = ledger.holder("arrays").try_grant(listed)?;
        let options = LabelOptions {
            known: self.labels().cloned(),
            ..LabelOptions::default()
        };
        let test = ArraySource::of(test.clone(), None, &self.path, &options, listed, ledger)?;
        let holds = |samples: &Samples| (samples.element, samples.shape.clone());
        if holds(&test.samples) != holds(&self.samples) {
            return Err(test.samples.differ_from(&self.samples).into());
        }
        Ok(Some(test))
    }

    fn of(
        set: Set,
        test: Option<Set>,
        path: &Path,
        options: &LabelOptions,
        listed: Grant,
        ledger: &Ledger,
    ) -> Result<ArraySource> {
        let holder = ledger.holder("arrays");
        let with_header = |input: Input| {
            let header = Header::read(&input, &holder)?;
            Ok((input, header))
        };
        let arrays: Vec<(Input, Header)> = set.samples.into_iter().map(with_header).collect::<Result<_>>()?;
        let (answers, folders) = match set.labels {
            LabelsAt::Nowhere => (Vec::new(), None),
            LabelsAt::Arrays(inputs) => {
                let answers = inputs.into_iter().map(|input| {
                    let (input, header) = with_header(input)?;
                    Ok(Answers::new(input, header)?)
                });
                (answers.collect::<Result<Vec<Answers>>>()?, None)
            }
            LabelsAt::Folders { classes, of } => (Vec::new(), Some((classes, of))),
        };
        let single = set.single.unwrap_or_else(|| are_single(&arrays, &answers));
        let samples = Samples::join(arrays, single, listed.pin())?;
        let labelled = match folders {
            Some((classes, of)) => {
                let labelled = Labelled::of_folders(classes, of.into_iter(), path, options, ledger);
                Some(labelled?)
            }
            None if answers.is_empty() => None,
            None => {
                check_lengths(&samples, &answers)?;
                Some(Labelled::read(&answers, options, ledger)?)
            }
        };
        Ok(ArraySource {
            samples,
            labelled,
            label_inputs: answers.into_iter().map(|answers| answers.input).collect(),
            test,
            path: path.into(),
            mark: 0,
            meter: Meter::default(),
            pressed: Pressed::default(),
        })
    }

    /// The rows of a table, each with its label behind it, as they stand in a pack: samples of one axis.
    pub(crate) fn of_pack(pack: &SamplesPack<f32>, labels: Labels, ledger: &Ledger) -> Result<ArraySource> {
        let path = pack.file.path();
        let input = Input::open(&path)?;
        let shard_bytes = SHARD_BYTES + path.as_os_str().len() as u64;
        let listed = ledger
            .holder("arrays")
            .try_grant(pack.blocks().len() as u64 * shard_bytes)?;
        let mut sums = Sums::of(&labels);
        let width = labels.width();
        pack.each(&ledger.holder("pack"), |sample| {
            sums.add(&sample[sample.len() - width..]);
        })?;
        let mut shards = Vec::with_capacity(pack.blocks().len());
        let mut first = 0;
        for (data_at, n_samples) in pack.blocks() {
            let header = Header {
                shape: vec![n_samples as usize, pack.values],
                holds: Holds::Number(Element::F32),
                big_endian: false,
                data_at,
            };
            shards.push(Shard {
                input: input.clone(),
                header,
                first,
                n_samples,
                unpacked: None,
                in_use: None,
            });
            first += n_samples;
        }
        Ok(ArraySource {
            samples: Samples {
                shards,
                n_samples: first,
                shape: vec![pack.values - width],
                labels: width,
                element: Element::F32,
                store: Store::Files,
                file: Some(input.unchanged_places()?),
                listed: listed.pin(),
            },
            labelled: Some(Labelled {
                labels,
                values: Values::Beside(sums),
            }),
            label_inputs: Vec::new(),
            test: None,
            path,
            mark: u64::from(pack.file.manifest.index_checksum),
            meter: Meter::default(),
            pressed: Pressed::default(),
        })
    }

    /// Rows of so many values and a label that are still to be encoded: what they will take is known, and they cannot be fed.
    pub(crate) fn foreseen(
        labels: &Labels,
        values: usize,
        n_samples: u64,
        path: &Path,
        ledger: &Ledger,
    ) -> Result<ArraySource> {
        let width = labels.width();
        let bytes = n_samples * 4 * (values + width) as u64;
        let blocks = bytes.div_ceil(block_bytes::<f32>(values + width));
        let listed = ledger
            .holder("arrays")
            .try_grant(blocks * (SHARD_BYTES + path.as_os_str().len() as u64))?;
        Ok(ArraySource {
            samples: Samples {
                shards: Vec::new(),
                n_samples,
                shape: vec![values],
                labels: width,
                element: Element::F32,
                store: Store::Files,
                file: None,
                listed: listed.pin(),
            },
            labelled: Some(Labelled {
                labels: labels.clone(),
                values: Values::Beside(Sums::of(labels)),
            }),
            label_inputs: Vec::new(),
            test: None,
            path: path.into(),
            mark: 0,
            meter: Meter::default(),
            pressed: Pressed::default(),
        })
    }

    /// Makes halves of samples that are floats, wherever they are held or unpacked and on their way from files: two bytes for
    /// each number. Whether there is anything to gain by it. To be asked before anything is kept or fed.
    pub fn narrow(&mut self) -> bool {
        let gains = narrows(self.samples.element)
            && self.samples.labels == 0
            && matches!(self.samples.store, Store::Files);
        if gains {
            self.samples.element = Element::F16;
        }
        gains
    }

    /// Where the time of feeds went so far.
    pub fn feed_times(&self) -> FeedTimes {
        self.images()
            .map_or_else(|| self.meter.times(), |images| images.meter.times())
    }

    /// What was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn n_samples(&self) -> u64 {
        self.samples.n_samples
    }

    /// The shape of one sample.
    pub fn shape(&self) -> &[usize] {
        &self.samples.shape
    }

    /// Numbers in a sample.
    pub fn sample_len(&self) -> usize {
        self.samples.sample_len()
    }

    pub fn element(&self) -> Element {
        self.samples.element
    }

    /// Bytes of all samples, unpacked.
    pub fn bytes(&self) -> u64 {
        self.samples.bytes()
    }

    /// What is predicted; `None` where there are no labels.
    pub fn labels(&self) -> Option<&Labels> {
        self.labelled.as_ref().map(|labelled| &labelled.labels)
    }

    /// The labels of a sample: the index of its class, a number, or several. Empty where there are none, or where they
    /// are read with the sample.
    pub fn target(&self, sample: u64) -> &[f32] {
        let Some(labelled) = &self.labelled else {
            return &[];
        };
        let Values::Here { values, .. } = &labelled.values else {
            return &[];
        };
        let width = labelled.labels.width();
        let start = (sample as usize).saturating_mul(width);
        values.get(start..start.saturating_add(width)).unwrap_or_default()
    }

    /// How many samples a part of them has.
    pub fn n_samples_of(&self, part: Part) -> u64 {
        match part {
            Part::All => self.n_samples(),
            part => (0..self.n_samples())
                .filter(|sample| part.contains(*sample))
                .count() as u64,
        }
    }

    /// Samples of each class, in the order of the classes; empty where a number is predicted.
    pub fn class_counts(&self, part: Part) -> Vec<u64> {
        self.sums(part).classes
    }

    /// The mean of each number that is predicted; of two classes, the share of the second.
    pub fn target_means(&self, part: Part) -> Vec<f64> {
        let sums = self.sums(part);
        let mean = |sum: &f64| sum / sums.n_samples.max(1) as f64;
        sums.numbers.iter().map(mean).collect()
    }

    fn sums(&self, part: Part) -> Sums {
        let Some(labelled) = &self.labelled else {
            return Sums::default();
        };
        match &labelled.values {
            // There are no parts of these.
            Values::Beside(sums) => sums.clone(),
            Values::Here { .. } => {
                let mut sums = Sums::of(&labelled.labels);
                let samples = (0..self.n_samples()).filter(|sample| part.contains(*sample));
                samples.for_each(|sample| sums.add(self.target(sample)));
                sums
            }
        }
    }

    /// Whether there are samples for a test beside.
    pub fn has_test(&self) -> bool {
        self.test.is_some()
    }

    /// Whether samples are compressed: [`ArraySource::keep`] must unpack them before they can be read.
    pub fn is_packed(&self) -> bool {
        matches!(self.samples.store, Store::Files) && self.samples.shards.iter().any(Shard::is_packed)
    }

    /// Whether all samples are held in memory.
    pub fn is_in_memory(&self) -> bool {
        self.held().is_some()
    }

    /// The samples that are held in memory, for as long as what this returns lives.
    pub(super) fn held(&self) -> Option<Arc<HeldSamples>> {
        match &self.samples.store {
            Store::Memory(held) => held.get(),
            _ => None,
        }
    }

    /// Whether samples are brought by threads even where they are in memory, for they are changed on their way.
    pub fn is_fed(&self) -> bool {
        self.images().is_some()
    }

    /// A number that changes with the data: with the shape, the labels, and size, beginning and end of every file.
    pub fn fingerprint(&self) -> Result<u64> {
        let mut hash = 0;
        let mut add = |bytes: &[u8]| hash = XxHash3_64::oneshot_with_seed(hash, bytes);
        add(self.element().name().as_bytes());
        add(&self.mark.to_le_bytes());
        self.shape()
            .iter()
            .for_each(|axis| add(&(*axis as u64).to_le_bytes()));
        let samples = self.samples.shards.iter().map(|shard| &shard.input);
        for input in samples.chain(&self.label_inputs) {
            add(&input.fingerprint()?.to_le_bytes());
            add(&input.checksum().unwrap_or_default().to_le_bytes());
        }
        if let Some(labelled) = &self.labelled {
            labelled
                .labels
                .classes()
                .iter()
                .for_each(|label| add(label.text.as_bytes()));
            let values = match &labelled.values {
                Values::Here { values, .. } => values.as_slice(),
                Values::Beside(_) => &[],
            };
            let mut bytes = [0; 4 << 10];
            for values in values.chunks(bytes.len() / 4) {
                let (into, _) = bytes.as_chunks_mut::<4>();
                into.iter_mut()
                    .zip(values)
                    .for_each(|(into, value)| *into = value.to_le_bytes());
                add(&bytes[..values.len() * 4]);
            }
        }
        Ok(hash)
    }

    /// The most bytes that [`ArraySource::keep`] holds at once, what it holds on to included.
    pub fn keep_bytes(&self, keep: &Keep) -> u64 {
        if let Some(images) = self.images() {
            return images.hold_bytes(keep.memory);
        }
        let decompressor = if self.is_packed() { DECOMPRESSOR_BYTES } else { 0 };
        match (self.bytes() <= keep.memory, self.is_packed()) {
            (true, _) => self.bytes() + decompressor,
            (false, true) => UNPACK_BYTES + decompressor,
            (false, false) => 0,
        }
    }

    /// Makes samples ready to be read again and again: holds them in memory where they fit into what is allowed and what
    /// the ledger has left, unpacks them otherwise where they are compressed. To be asked before the first feed of a
    /// compressed source, and at will of others. The order of samples does not depend on it.
    pub fn keep(&mut self, keep: &Keep, ledger: &Ledger) -> Result<Kept> {
        if self.is_in_memory() {
            return Ok(Kept::Memory);
        }
        if let Store::Images(images) = &mut self.samples.store {
            let n = images.hold(keep.memory, ledger)?;
            return Ok(match n == self.samples.n_samples {
                true => Kept::Memory,
                false => Kept::Files,
            });
        }
        let (bytes, holder) = (self.bytes(), ledger.holder("samples"));
        if bytes <= keep.memory
            && let Ok(grant) = holder.try_grant(bytes)
        {
            let mut all = vec![0; bytes as usize];
            let mut rest = all.as_mut_slice();
            for shard in &self.samples.shards {
                let bytes = shard.n_samples * self.samples.sample_bytes();
                let (now, later) = rest.split_at_mut(bytes as usize);
                into_memory(shard, self.samples.element, &holder, now)?;
                rest = later;
            }
            let grant = grant.pin();
            self.samples.store = Store::Memory(Held::new(HeldSamples { bytes: all, grant }));
            return Ok(Kept::Memory);
        }
        let mut kept = Kept::Files;
        for shard in &mut self.samples.shards {
            if shard.is_packed() {
                let Some(folder) = &keep.folder else {
                    return Err(ArrayProblem::Packed {
                        path: shard.input.path().into(),
                        bytes,
                        allowed: keep.memory,
                    }
                    .into());
                };
                shard.unpacked = Some(into_file(shard, self.samples.element, folder, &holder)?);
                shard.in_use = shard
                    .unpacked
                    .as_ref()
                    .and_then(|unpacked| use_shared(unpacked.path()));
            }
            if shard.unpacked.is_some() {
                kept = Kept::Unpacked;
            }
        }
        let shards = &self.samples.shards;
        let as_they_are = |shard: &Shard| shard.narrowed(self.samples.element).is_none();
        if keep.map
            && shards.iter().all(as_they_are)
            && shards.len() <= MOST_MAPPED
            && !shards.iter().any(Shard::is_turned)
        {
            let maps = shards.iter().map(Mapped::new).collect::<Result<_>>()?;
            self.samples.store = Store::Mapped(maps);
            kept = Kept::Mapped;
        }
        Ok(kept)
    }
}

/// Which samples are taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    All,
    /// Those that are not held out.
    Training(Holdout),
    HeldOut(Holdout),
}

impl Part {
    #[inline]
    pub fn contains(&self, sample: u64) -> bool {
        match self {
            Part::All => true,
            Part::Training(holdout) => !holdout.contains(sample),
            Part::HeldOut(holdout) => holdout.contains(sample),
        }
    }
}

/// Whether every array is one sample, by the number of labels. Where the first axes add up to it, they are shards.
fn are_single(arrays: &[(Input, Header)], answers: &[Answers]) -> bool {
    let n_labels: u64 = answers.iter().map(Answers::n).sum();
    let first_axes = arrays
        .iter()
        .map(|(_, header)| header.shape.first().map_or(1, |n| *n as u64));
    first_axes.fold(0, u64::saturating_add) != n_labels && arrays.len() as u64 == n_labels
}

/// As many labels as samples: shard by shard where both come so, and in all.
fn check_lengths(samples: &Samples, answers: &[Answers]) -> Result<(), ArrayProblem> {
    let differ = |samples: &Path, n_samples, labels: &Path, n_labels| ArrayProblem::Lengths {
        samples: samples.into(),
        n_samples,
        labels: labels.into(),
        n_labels,
    };
    if answers.len() == samples.shards.len() {
        for (shard, answers) in samples.shards.iter().zip(answers) {
            let (samples, labels) = (shard.input.path(), answers.input.path());
            if shard.n_samples != answers.n() {
                return Err(differ(samples, shard.n_samples, labels, answers.n()));
            }
        }
    }
    let n_labels = answers.iter().map(Answers::n).sum();
    match answers.first() {
        Some(first) if samples.n_samples != n_labels => Err(differ(
            samples.path(),
            samples.n_samples,
            first.input.path(),
            n_labels,
        )),
        _ => Ok(()),
    }
}
