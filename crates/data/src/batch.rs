//! Encoded rows, ready for a model, in memory that was granted beforehand.
//!
//! A row has dense values, one for each place, and sparse ones: pairs of a place and a value, for encodings
//! with many places of which a row uses few. Sparse values stay sparse: nothing here writes out their zeros.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_memory::{Grant, Holder, Refused};

pub use crate::encode::Width;
use crate::{Error, Fault, Result};

/// Rows of one piece after encoding, in the order of the source.
pub struct Batch {
    pub(crate) width: Width,
    pub(crate) dense: Vec<f32>,
    /// Where the sparse values of each row end; empty where rows have none.
    pub(crate) ends: Vec<u32>,
    pub(crate) places: Vec<u32>,
    pub(crate) values: Vec<f32>,
    pub(crate) targets: Vec<f64>,
    pub(crate) held_out: Vec<bool>,
    pub(crate) lines: Vec<u64>,
    /// What happened to the rows of the piece.
    pub counts: RowCounts,
    grant: Grant,
}

/// How many rows were used and how many were left out, and why.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RowCounts {
    /// Rows in batches, held out ones included.
    pub rows: u64,
    pub held_out: u64,
    /// Rows left out because they are bad, with the line and fault of the first.
    pub bad: u64,
    pub first_bad: Option<(u64, Fault)>,
    /// Rows left out because their target is missing.
    pub without_target: u64,
    /// Rows left out because they were not asked for: by a condition, or by sampling.
    pub not_asked: u64,
    /// Values that are not what their column should hold, by column: how many, and the first with its line.
    pub broken: BTreeMap<String, Broken>,
    /// Categories that training never saw, by column; only predictions count them.
    #[serde(default)]
    pub unseen: BTreeMap<String, Unseen>,
}

/// Rows whose category training never saw.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    pub rows: u64,
    /// The first of these categories, each once.
    pub examples: Vec<String>,
}

impl Unseen {
    /// Examples that are kept.
    const EXAMPLES: usize = 3;

    /// Counts a row; `value` says what stands in it.
    pub(crate) fn count(&mut self, value: impl FnOnce() -> String) {
        self.rows += 1;
        if self.examples.len() < Unseen::EXAMPLES {
            self.add_example(value());
        }
    }

    fn add_example(&mut self, value: String) {
        if self.examples.len() < Unseen::EXAMPLES && !self.examples.contains(&value) {
            self.examples.push(value);
        }
    }
}

/// Values that broke the role of their column and were taken as missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    pub count: u64,
    pub first: (u64, String),
}

impl RowCounts {
    /// Adds the counts of a later part of the source.
    pub fn add(&mut self, later: &RowCounts) {
        self.rows += later.rows;
        self.held_out += later.held_out;
        self.bad += later.bad;
        self.without_target += later.without_target;
        self.not_asked += later.not_asked;
        if self.first_bad.is_none() {
            self.first_bad.clone_from(&later.first_bad);
        }
        for (column, broken) in &later.broken {
            match self.broken.get_mut(column) {
                Some(known) => known.count += broken.count,
                None => {
                    self.broken.insert(column.clone(), broken.clone());
                }
            }
        }
        for (column, unseen) in &later.unseen {
            let known = self.unseen.entry(column.clone()).or_default();
            known.rows += unseen.rows;
            unseen
                .examples
                .iter()
                .for_each(|value| known.add_example(value.clone()));
        }
    }
}

impl Batch {
    pub(crate) fn new(width: Width, holder: &Holder) -> Result<Batch> {
        Ok(Batch {
            width,
            dense: Vec::new(),
            ends: Vec::new(),
            places: Vec::new(),
            values: Vec::new(),
            targets: Vec::new(),
            held_out: Vec::new(),
            lines: Vec::new(),
            counts: RowCounts::default(),
            grant: holder.try_grant(0)?,
        })
    }

    /// The bytes that a row takes with so many sparse values.
    pub fn row_bytes(width: Width, sparse_values: f64) -> f64 {
        let fixed = width.dense * size_of::<f32>()
            + size_of::<u32>()
            + size_of::<f64>()
            + size_of::<bool>()
            + size_of::<u64>();
        fixed as f64 + sparse_values * Batch::SPARSE_BYTES as f64
    }

    /// What so many rows take with so many sparse values in all.
    pub(crate) fn bytes(width: Width, rows: usize, sparse: usize) -> u64 {
        (Batch::row_bytes(width, 0.0) * rows as f64) as u64 + (sparse * Batch::SPARSE_BYTES) as u64
    }

    /// What the values of a row take, without its target and its line.
    pub(crate) fn values_bytes(width: Width, sparse_values: f64) -> f64 {
        (width.dense * size_of::<f32>()) as f64 + sparse_values * Batch::SPARSE_BYTES as f64
    }

    const SPARSE_BYTES: usize = size_of::<u32>() + size_of::<f32>();

    /// Makes room for `rows` rows with `sparse_values` each; `false` when the budget refuses.
    pub(crate) fn reserve(&mut self, rows: u64, sparse_values: f64) -> bool {
        let sparse = (rows as f64 * sparse_values).ceil() as usize;
        if rows as usize <= self.targets.capacity() && sparse <= self.places.capacity() {
            return true;
        }
        // Pieces differ a little: some room to spare, so that few of them make a batch grow.
        let rows = (rows as usize + rows as usize / 8).max(self.targets.capacity());
        let sparse = (sparse + sparse / 8).max(self.places.capacity());
        self.make_room(rows, sparse).is_ok()
    }

    /// Makes room for so many rows with so many sparse values in all.
    pub(crate) fn make_room(&mut self, rows: usize, sparse: usize) -> Result<(), Refused> {
        let needed = Batch::bytes(self.width, rows, sparse);
        self.grant.try_grow(needed.saturating_sub(self.grant.bytes()))?;
        self.clear();
        // Written once here, so that memory is taken now and not little by little.
        fn fill<T: Clone>(cells: &mut Vec<T>, n: usize, value: T) {
            cells.reserve_exact(n);
            cells.resize(n, value);
            cells.clear();
        }
        fill(&mut self.dense, rows * self.width.dense, 1.0);
        fill(&mut self.ends, rows, 1);
        fill(&mut self.targets, rows, 1.0);
        fill(&mut self.held_out, rows, true);
        fill(&mut self.lines, rows, 1);
        fill(&mut self.places, sparse, 1);
        fill(&mut self.values, sparse, 1.0);
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.dense.clear();
        self.ends.clear();
        self.places.clear();
        self.values.clear();
        self.targets.clear();
        self.held_out.clear();
        self.lines.clear();
        self.counts = RowCounts::default();
    }

    /// Appends a row whose values are written later.
    #[inline(always)]
    pub(crate) fn push(&mut self, line: u64, target: f64, held_out: bool) {
        self.targets.push(target);
        self.held_out.push(held_out);
        self.lines.push(line);
    }

    /// All dense values as zeros, to be written column by column.
    pub(crate) fn dense_mut(&mut self) -> &mut [f32] {
        self.dense.resize(self.targets.len() * self.width.dense, 0.0);
        &mut self.dense
    }

    /// Appends a sparse value to the row at hand. Rows of texts differ in length: where the room made beforehand
    /// does not do, the budget is asked for more.
    #[inline(always)]
    pub(crate) fn push_sparse(&mut self, place: u32, value: f32) -> Result<()> {
        if self.places.len() == self.places.capacity() {
            self.grow_sparse()?;
        }
        self.places.push(place);
        self.values.push(value);
        Ok(())
    }

    /// Ends the sparse values of a row.
    #[inline(always)]
    pub(crate) fn end_sparse(&mut self) {
        self.ends.push(self.places.len() as u32);
    }

    #[cold]
    fn grow_sparse(&mut self) -> Result<()> {
        let more = self.places.len() / 4 + 64;
        let bytes = (more * Batch::SPARSE_BYTES) as u64;
        self.grant.try_grow(bytes).map_err(|source| Error::Memory {
            what: "the sparse values of a batch",
            source: Box::new(source),
        })?;
        self.places.reserve_exact(more);
        self.values.reserve_exact(more);
        Ok(())
    }

    pub fn width(&self) -> Width {
        self.width
    }

    pub fn n_rows(&self) -> usize {
        self.targets.len()
    }

    /// Puts a score of each row in the place of its target, for predictions.
    pub fn score(&mut self, score: impl Fn(Row<'_>) -> f64) {
        for i in 0..self.n_rows() {
            let scored = score(self.row(i));
            self.targets[i] = scored;
        }
    }

    #[inline(always)]
    pub fn row(&self, i: usize) -> Row<'_> {
        let (start, end) = match self.ends.is_empty() {
            true => (0, 0),
            false => (
                if i == 0 { 0 } else { self.ends[i - 1] as usize },
                self.ends[i] as usize,
            ),
        };
        Row {
            dense: &self.dense[i * self.width.dense..(i + 1) * self.width.dense],
            places: &self.places[start..end],
            values: &self.values[start..end],
            target: self.targets[i],
            held_out: self.held_out[i],
            line: self.lines[i],
        }
    }

    /// The rows in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.n_rows()).map(|i| self.row(i))
    }
}

/// One row of a [`Batch`].
#[derive(Debug, Clone, Copy)]
pub struct Row<'b> {
    pub dense: &'b [f32],
    /// The places of the sparse values, counted from 0 behind the dense ones.
    pub places: &'b [u32],
    pub values: &'b [f32],
    pub target: f64,
    pub held_out: bool,
    /// Where the row stands: its line in a text file, otherwise its number; from 1.
    pub line: u64,
}

/// A row to make a [`Batch`] of, outside of any source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlainRow {
    pub dense: Vec<f32>,
    /// Places and their values.
    pub sparse: Vec<(u32, f32)>,
    pub target: f64,
    pub held_out: bool,
}

impl Batch {
    /// A batch of plain rows, for tests and benches: their lines are counted from 1.
    ///
    /// ```
    /// use tidegate_data::Batch;
    /// use tidegate_data::batch::{PlainRow, Width};
    /// use tidegate_memory::Ledger;
    ///
    /// let row = PlainRow { dense: vec![0.5], sparse: vec![(3, 1.0)], target: 1.0, held_out: false };
    /// let width = Width { dense: 1, sparse: 8 };
    /// let batch = Batch::from_rows(width, &[row], &Ledger::new(1 << 20).holder("batches"))?;
    /// assert_eq!((batch.n_rows(), batch.row(0).places), (1, [3].as_slice()));
    /// # Ok::<(), tidegate_data::Error>(())
    /// ```
    pub fn from_rows(width: Width, rows: &[PlainRow], holder: &Holder) -> Result<Batch> {
        let mut batch = Batch::new(width, holder)?;
        let sparse: usize = rows.iter().map(|row| row.sparse.len()).sum();
        let bytes = Batch::row_bytes(width, 0.0) * rows.len() as f64 + (sparse * Batch::SPARSE_BYTES) as f64;
        batch
            .grant
            .try_grow(bytes as u64)
            .map_err(|source| Error::Memory {
                what: "a batch",
                source: Box::new(source),
            })?;
        batch.places.reserve_exact(sparse);
        batch.values.reserve_exact(sparse);
        for (i, row) in rows.iter().enumerate() {
            batch.push(i as u64 + 1, row.target, row.held_out);
            batch.counts.rows += 1;
            batch.counts.held_out += u64::from(row.held_out);
            for (place, value) in &row.sparse {
                batch.push_sparse(*place, *value)?;
            }
            batch.end_sparse();
        }
        if width.dense > 0 {
            let dense = batch.dense_mut().chunks_exact_mut(width.dense);
            dense
                .zip(rows)
                .for_each(|(to, row)| to.copy_from_slice(&row.dense));
        }
        Ok(batch)
    }
}
