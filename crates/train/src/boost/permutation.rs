//! How much worse a forest gets when a feature is shuffled among the rows held out.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tidegate_memory::Ledger;

use super::forest::{Forest, Walk};
use super::hash::{Purpose, key, mix};
use super::objective::{Objective, class};
use super::plan::Shape;
use super::rows::{BlockBuffer, Blocks, Part, rows_bytes};
use crate::{Error, Result};

/// Rows that are looked at, at the most: the error of a mean over so many is below half a percent of its
/// spread.
pub const PERMUTED_ROWS: usize = 50_000;

/// A feature and what shuffling it costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Permuted {
    pub feature: String,
    /// The rise of the mean loss.
    pub rise: f64,
}

/// What a forest is judged on, and how.
pub struct Permutation<'a> {
    pub blocks: &'a dyn Blocks,
    pub seed: u64,
    pub threads: usize,
    pub ledger: &'a Ledger,
    /// Set by somebody else to end it.
    pub stop: &'a AtomicBool,
}

/// The rise of the held out loss for each feature, in the order of the features; empty without held out rows, `None`
/// when asked to stop. At most [`PERMUTED_ROWS`] rows are taken, evenly from all blocks. `progress` is told how many
/// features are done.
pub fn permutation_importance(
    forest: &Forest,
    permutation: &Permutation,
    progress: &mut dyn FnMut(usize),
) -> Result<Option<Vec<Permuted>>> {
    let Permutation {
        blocks,
        seed,
        threads,
        ledger,
        stop,
    } = *permutation;
    let n_rows = (0..blocks.n_blocks()).map(|block| blocks.n_rows(block)).sum();
    let shape = Shape {
        block_rows: blocks.largest_block(),
        ..Shape::new(n_rows, blocks.n_features())
    };
    let bytes = permutation_bytes(&shape, forest.n_outputs());
    let refused = |source| Error::Memory {
        what: "permutation",
        source,
    };
    let _held = ledger.holder("permutation").try_grant(bytes).map_err(refused)?;
    let sample = Sample::read(blocks)?;
    if sample.target.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let walks: Vec<Walk> = forest.trees.iter().map(super::forest::Tree::walk).collect();
    let judged = Judged::new(forest, &walks, &sample);
    let (n_features, next) = (forest.features.len(), AtomicUsize::new(0));
    let work = |progress: &mut dyn FnMut(usize)| {
        let mut found = Vec::new();
        loop {
            let feature = next.fetch_add(1, Ordering::Relaxed);
            if feature >= n_features || stop.load(Ordering::Relaxed) {
                break found;
            }
            progress(feature);
            let key = key(seed, feature as u64, Purpose::Permutation);
            found.push((feature, judged.shuffled(feature, key) - judged.loss));
        }
    };
    let mut rises = vec![0.0; n_features];
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| work(&mut |_| {}))).collect();
        let mut found = work(progress);
        for other in others {
            found.extend(other.join().expect("judging does not panic"));
        }
        for (feature, rise) in found {
            rises[feature] = rise;
        }
    });
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let named = forest.features.iter().zip(rises);
    let permuted = named.map(|(feature, rise)| Permuted {
        feature: feature.name.clone(),
        rise,
    });
    Ok(Some(permuted.collect()))
}

/// What it holds: the sample, its margins, and a buffer to read blocks into.
pub fn permutation_bytes(shape: &Shape, n_outputs: usize) -> u64 {
    let rows = PERMUTED_ROWS.min(shape.n_rows);
    rows_bytes(rows, shape.n_features + 4 * n_outputs) + rows_bytes(shape.largest_block(), shape.n_features)
}

/// Held out rows.
struct Sample {
    n_features: usize,
    bins: Vec<u8>,
    target: Vec<f32>,
}

impl Sample {
    fn read(blocks: &dyn Blocks) -> Result<Sample> {
        let (n_features, n_blocks) = (blocks.n_features(), blocks.n_blocks());
        let mut buffer = BlockBuffer::new(blocks.largest_block(), n_features, Part::Whole);
        let mut sample = Sample {
            n_features,
            bins: Vec::new(),
            target: Vec::new(),
        };
        for number in 0..n_blocks {
            blocks.read(number, Part::Whole, &mut buffer)?;
            let block = blocks.block(number, Part::Whole, &buffer);
            // What earlier blocks did not have is left to later ones.
            let quota = (PERMUTED_ROWS - sample.target.len()).div_ceil(n_blocks - number);
            let rows = (0..block.target.len()).filter(|row| block.held_out[*row] != 0);
            for row in rows.take(quota) {
                sample
                    .bins
                    .extend_from_slice(&block.bins[row * n_features..(row + 1) * n_features]);
                sample.target.push(block.target[row]);
            }
        }
        Ok(sample)
    }

    fn row(&self, row: usize) -> &[u8] {
        &self.bins[row * self.n_features..(row + 1) * self.n_features]
    }
}

struct Judged<'a> {
    forest: &'a Forest,
    walks: &'a [Walk],
    sample: &'a Sample,
    /// Row by row.
    margins: Vec<f32>,
    loss: f64,
}

impl<'a> Judged<'a> {
    fn new(forest: &'a Forest, walks: &'a [Walk], sample: &'a Sample) -> Judged<'a> {
        let n_outputs = forest.n_outputs();
        let mut margins = Vec::with_capacity(sample.target.len() * n_outputs);
        let mut total = 0.0;
        for (row, target) in sample.target.iter().enumerate() {
            let start = margins.len();
            margins.extend_from_slice(&forest.base);
            for (i, walk) in walks.iter().enumerate() {
                margins[start + i % n_outputs] += walk.value(sample.row(row));
            }
            total += loss(forest.objective, &margins[start..], *target);
        }
        Judged {
            forest,
            walks,
            sample,
            margins,
            loss: total / sample.target.len() as f64,
        }
    }

    /// The mean loss with the values of a feature in another order.
    fn shuffled(&self, feature: usize, key: u64) -> f64 {
        let n_rows = self.sample.target.len();
        let n_outputs = self.forest.n_outputs();
        let of_use: Vec<(usize, &Walk)> = self
            .walks
            .iter()
            .enumerate()
            .filter(|(_, walk)| walk.uses(feature))
            .collect();
        if of_use.is_empty() {
            return self.loss;
        }
        let mut bins: Vec<u8> = (0..n_rows).map(|row| self.sample.row(row)[feature]).collect();
        for i in (1..n_rows).rev() {
            bins.swap(i, (mix(key ^ i as u64) % (i as u64 + 1)) as usize);
        }
        let mut changed = vec![0; self.sample.n_features];
        let mut margins = vec![0.0; n_outputs];
        let mut total = 0.0;
        for (row, bin) in bins.iter().enumerate() {
            let known = self.sample.row(row);
            changed.copy_from_slice(known);
            changed[feature] = *bin;
            margins.copy_from_slice(&self.margins[row * n_outputs..(row + 1) * n_outputs]);
            for (i, walk) in &of_use {
                margins[i % n_outputs] += walk.value(&changed) - walk.value(known);
            }
            total += loss(self.forest.objective, &margins, self.sample.target[row]);
        }
        total / n_rows as f64
    }
}

/// The loss of a row.
fn loss(objective: Objective, margins: &[f32], target: f32) -> f64 {
    let z = f64::from(margins[0]);
    match objective {
        Objective::Squared => 0.5 * (z - f64::from(target)).powi(2),
        Objective::Logistic => z.max(0.0) - f64::from(target) * z + (-z.abs()).exp().ln_1p(),
        Objective::Softmax(classes) => {
            let most = margins.iter().copied().fold(f32::MIN, f32::max);
            let sum: f64 = margins.iter().map(|z| f64::from(z - most).exp()).sum();
            sum.ln() + f64::from(most - margins[class(target, classes)])
        }
    }
}
