//! Problems for boosted trees, by the formulas of `boost_reference.py`, and blocks that live in a file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use tidegate_memory::Ledger;
use tidegate_train::Error;
use tidegate_train::boost::{
    self, Block, BlockBuffer, Blocks, FeatureBins, Forest, Kept, Objective, Options, Outcome, Part, Plan,
    Resident, Shape, Trained, Training,
};

use crate::tables::{normal, uniform};

pub(crate) const ROOMY: u64 = 1 << 30;

/// Rows of numbers with targets.
pub(crate) struct Problem {
    pub(crate) rows: Vec<Vec<f32>>,
    pub(crate) target: Vec<f32>,
    pub(crate) held_out: Vec<bool>,
    pub(crate) objective: Objective,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Kind {
    Number,
    Lognormal,
    Two,
    Three,
}

/// Eight features, the last one missing now and then.
pub(crate) fn problem(kind: Kind, n_rows: usize) -> Problem {
    let mut problem = Problem {
        rows: Vec::new(),
        target: Vec::new(),
        held_out: (0..n_rows).map(|row| row % 5 == 0).collect(),
        objective: match kind {
            Kind::Number | Kind::Lognormal => Objective::Squared,
            Kind::Two => Objective::Logistic,
            Kind::Three => Objective::Softmax(3),
        },
    };
    for row in 0..n_rows {
        let mut x: Vec<f32> = (0..8).map(|j| uniform(60, row * 8 + j) as f32).collect();
        let v: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
        let mut signal = 2.0 * (6.0 * v[0]).sin() + 8.0 * (v[1] - 0.5) * (v[2] - 0.5) + v[4] * v[4];
        signal += if v[3] > 0.6 { 1.5 } else { 0.0 };
        if uniform(61, row) < 0.2 {
            signal += 1.0;
            x[7] = f32::NAN;
        } else {
            signal += v[7];
        }
        let noise = normal(62, row);
        let noisy = signal + 0.5 * noise;
        let target = match kind {
            Kind::Number => noisy,
            Kind::Lognormal => (signal + 1.5 * noise).exp(),
            Kind::Two => f64::from(u8::from(
                uniform(63, row) < 1.0 / (1.0 + (-2.0 * (signal - 1.5)).exp()),
            )),
            Kind::Three => f64::from(u8::from(noisy > 0.5)) + f64::from(u8::from(noisy > 2.5)),
        };
        problem.rows.push(x);
        problem.target.push(target as f32);
    }
    problem
}

impl Problem {
    /// Cuts by quantiles of the rows to learn from.
    pub(crate) fn features(&self, n_bins: usize) -> Vec<FeatureBins> {
        let feature = |j: usize| {
            let learned = self
                .rows
                .iter()
                .zip(&self.held_out)
                .filter(|(_, held_out)| !**held_out);
            let mut values: Vec<(f32, f64)> = learned.map(|(row, _)| (row[j], 1.0)).collect();
            values.retain(|(value, _)| !value.is_nan());
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            FeatureBins::from_weighted(&format!("x{j}"), &values, n_bins)
        };
        (0..self.rows[0].len()).map(feature).collect()
    }

    pub(crate) fn resident(&self, features: &[FeatureBins], block_rows: usize, ledger: &Ledger) -> Resident {
        let holder = ledger.holder(boost::ROWS);
        let mut rows = Resident::new(self.rows.len(), features.len(), block_rows, &holder).unwrap();
        for ((row, target), held_out) in self.rows.iter().zip(&self.target).zip(&self.held_out) {
            rows.push(&binned(features, row), *target, *held_out).unwrap();
        }
        rows
    }

    pub(crate) fn shape(&self, features: &[FeatureBins], block_rows: usize) -> Shape {
        Shape {
            n_bins: features.iter().map(FeatureBins::n_bins).sum(),
            block_rows,
            ..Shape::new(self.rows.len(), features.len())
        }
    }

    /// Trains to the end with all in memory.
    pub(crate) fn fit(&self, options: &Options) -> Trained {
        let features = self.features(255);
        let ledger = Ledger::new(ROOMY);
        let rows = self.resident(&features, 4096, &ledger);
        let plan = boost::plan(&self.shape(&features, 4096), options, 2, ROOMY).unwrap();
        done(run(&rows, &features, options, &plan, &ledger, None, usize::MAX))
    }
}

pub(crate) fn binned(features: &[FeatureBins], row: &[f32]) -> Vec<u8> {
    features
        .iter()
        .zip(row)
        .map(|(feature, x)| feature.bin(*x))
        .collect()
}

/// Trains, asking to stop after round `last`.
pub(crate) fn run(
    blocks: &dyn Blocks,
    features: &[FeatureBins],
    options: &Options,
    plan: &Plan,
    ledger: &Ledger,
    resume: Option<&Forest>,
    last: usize,
) -> Result<Outcome, Error> {
    let (stop, folder) = (AtomicBool::new(false), tempfile::tempdir().unwrap());
    let mut lent = blocks;
    let training = Training {
        blocks: &mut lent,
        features,
        options,
        plan,
        ledger,
        scratch: folder.path(),
        stop: &stop,
    };
    boost::train(training, resume, &mut |round| {
        if round.round == last {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    })
}

pub(crate) fn done(outcome: Result<Outcome, Error>) -> Trained {
    match outcome.unwrap() {
        Outcome::Done(trained) => *trained,
        stopped => panic!("{stopped:?}"),
    }
}

/// Blocks of a file, but for the first ones, which are in memory.
pub(crate) struct Filed<'r> {
    rows: &'r Resident,
    kept: Kept,
    file: File,
    offsets: Vec<u64>,
}

impl<'r> Filed<'r> {
    pub(crate) fn new(rows: &'r Resident, kept: Kept, folder: &Path) -> Filed<'r> {
        let path = folder.join("blocks");
        let file = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        let (mut offsets, mut end) = (Vec::new(), 0);
        let unused = BlockBuffer::default();
        for number in 0..rows.n_blocks() {
            let block = rows.block(number, Part::Whole, &unused);
            let target: Vec<u8> = block.target.iter().flat_map(|y| y.to_le_bytes()).collect();
            let bytes = [block.bins, &target, block.held_out].concat();
            file.write_all_at(&bytes, end).unwrap();
            offsets.push(end);
            end += bytes.len() as u64;
        }
        Filed {
            rows,
            kept,
            file,
            offsets,
        }
    }
}

impl Blocks for Filed<'_> {
    fn n_blocks(&self) -> usize {
        self.rows.n_blocks()
    }

    fn n_rows(&self, block: usize) -> usize {
        self.rows.n_rows(block)
    }

    fn n_features(&self) -> usize {
        self.rows.n_features()
    }

    fn in_memory(&self, block: usize, part: Part) -> bool {
        let bins = block < self.kept.bins || !part.has_bins();
        bins && (block < self.kept.labels || !part.has_labels())
    }

    /// Fills the parts that are asked for and not in memory, and nothing else.
    fn read(&self, block: usize, part: Part, buffer: &mut BlockBuffer) -> Result<(), Error> {
        let (n_rows, n_features) = (self.n_rows(block), self.n_features());
        let mut bytes = vec![0; n_rows * (n_features + 5)];
        self.file.read_exact_at(&mut bytes, self.offsets[block]).unwrap();
        let (bins, rest) = bytes.split_at(n_rows * n_features);
        let (target, held_out) = rest.split_at(n_rows * 4);
        if part.has_bins() && block >= self.kept.bins {
            buffer.bins[..bins.len()].copy_from_slice(bins);
        }
        if part.has_labels() && block >= self.kept.labels {
            for (to, from) in buffer.target.iter_mut().zip(target.chunks_exact(4)) {
                *to = f32::from_le_bytes(from.try_into().unwrap());
            }
            buffer.held_out[..n_rows].copy_from_slice(held_out);
        }
        Ok(())
    }

    fn block<'b>(&'b self, block: usize, part: Part, buffer: &'b BlockBuffer) -> Block<'b> {
        let (n_rows, n_features) = (self.n_rows(block), self.n_features());
        let of = |part: Part| match self.in_memory(block, part) {
            true => self.rows.block(block, part, buffer),
            false => buffer.block(part, n_rows, n_features),
        };
        let bins = if part.has_bins() { of(Part::Bins).bins } else { &[] };
        match part.has_labels() {
            true => Block {
                bins,
                ..of(Part::Labels)
            },
            false => of(Part::Bins),
        }
    }
}
