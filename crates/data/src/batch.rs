//! Encoded rows, ready for a model, in memory that was granted beforehand.

use tidegate_memory::{Grant, Holder};

use crate::{Fault, Result};

/// Rows of one block after encoding, in the order of the file.
pub struct Batch {
    width: usize,
    features: Vec<f32>,
    targets: Vec<f64>,
    held_out: Vec<bool>,
    lines: Vec<u64>,
    /// What happened to the rows of the block.
    pub counts: RowCounts,
    grant: Grant,
}

/// How many rows were used and how many were left out, and why.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowCounts {
    /// Rows in batches, held out ones included.
    pub rows: u64,
    pub held_out: u64,
    /// Rows left out because they are bad, with the line and fault of the first.
    pub bad: u64,
    pub first_bad: Option<(u64, Fault)>,
    /// Rows left out because their target is missing.
    pub without_target: u64,
}

impl RowCounts {
    /// Adds the counts of a later part of the file.
    pub fn add(&mut self, later: &RowCounts) {
        self.rows += later.rows;
        self.held_out += later.held_out;
        self.bad += later.bad;
        self.without_target += later.without_target;
        if self.first_bad.is_none() {
            self.first_bad.clone_from(&later.first_bad);
        }
    }
}

impl Batch {
    pub(crate) fn new(width: usize, holder: &Holder) -> Result<Batch> {
        Ok(Batch {
            width,
            features: Vec::new(),
            targets: Vec::new(),
            held_out: Vec::new(),
            lines: Vec::new(),
            counts: RowCounts::default(),
            grant: holder.try_grant(0)?,
        })
    }

    /// The bytes that a row takes.
    pub fn row_bytes(width: usize) -> u64 {
        (width * size_of::<f32>() + size_of::<f64>() + size_of::<bool>() + size_of::<u64>()) as u64
    }

    /// Makes room for `rows` rows; `false` when the budget refuses.
    pub(crate) fn reserve(&mut self, rows: u64) -> bool {
        if rows * Batch::row_bytes(self.width) <= self.grant.bytes() {
            return true;
        }
        // Blocks differ a little: some room to spare, so that few of them make a batch grow.
        let rows = rows + rows / 8;
        let more = rows * Batch::row_bytes(self.width) - self.grant.bytes();
        if self.grant.try_grow(more).is_err() {
            return false;
        }
        self.clear();
        let rows = rows as usize;
        self.features.reserve_exact(rows * self.width);
        self.targets.reserve_exact(rows);
        self.held_out.reserve_exact(rows);
        self.lines.reserve_exact(rows);
        // Written once here, so that memory is taken now and not little by little.
        self.features.resize(rows * self.width, 1.0);
        self.targets.resize(rows, 1.0);
        self.held_out.resize(rows, true);
        self.lines.resize(rows, 1);
        self.clear();
        true
    }

    pub(crate) fn clear(&mut self) {
        self.features.clear();
        self.targets.clear();
        self.held_out.clear();
        self.lines.clear();
        self.counts = RowCounts::default();
    }

    /// Appends a row.
    #[inline(always)]
    pub(crate) fn push(&mut self, features: &[f32], line: u64, target: f64, held_out: bool) {
        self.features.extend_from_slice(features);
        self.targets.push(target);
        self.held_out.push(held_out);
        self.lines.push(line);
        self.counts.rows += 1;
        self.counts.held_out += u64::from(held_out);
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn n_rows(&self) -> usize {
        self.targets.len()
    }

    /// Puts a score of each row in the place of its target, for predictions.
    pub fn score(&mut self, score: impl Fn(&[f32]) -> f64) {
        for (features, target) in self
            .features
            .chunks_exact(self.width.max(1))
            .zip(&mut self.targets)
        {
            *target = score(features);
        }
    }

    /// The rows in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.n_rows()).map(|i| Row {
            features: &self.features[i * self.width..(i + 1) * self.width],
            target: self.targets[i],
            held_out: self.held_out[i],
            line: self.lines[i],
        })
    }
}

/// One row of a [`Batch`].
#[derive(Debug, Clone, Copy)]
pub struct Row<'b> {
    pub features: &'b [f32],
    pub target: f64,
    pub held_out: bool,
    /// The line of the file on which the row starts.
    pub line: u64,
}
