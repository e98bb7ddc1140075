//! The rows of a table as samples of one length, each with its label behind it.
//!
//! ```text
//! dense values · (place, value) of each sparse one, then zeros · label
//! ```
//!
//! Rows that are held out stand in a pack of their own: whoever learns from the others never meets them.

use std::ops::ControlFlow;

use tidegate_memory::Ledger;

use super::labels::Labels;
use super::problem::ArrayProblem;
use super::source::ArraySource;
use crate::batch::Row;
use crate::encode::Encoder;
use crate::pack::{
    Layout, PackOptions, PackProblem, SamplesPack, SamplesWriter, WRITE_BEHIND_BYTES, block_bytes,
};
use crate::target::Target;
use crate::{Error, Holdout, PassOptions, Position, Result, RowCounts, Table};

/// What a row is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowShape {
    pub dense: usize,
    /// Places that sparse values may have.
    pub places: usize,
    /// Sparse values that a row has room for.
    pub pairs: usize,
}

/// Of a row with more sparse values than this, the largest are taken: it has long texts.
const MOST_PAIRS: usize = 512;

impl RowShape {
    /// Values of a row, its label not included.
    pub fn len(&self) -> usize {
        self.dense + 2 * self.pairs
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes a row, over zeros. Of more sparse values than there is room for, the largest are taken, in their order.
    pub fn write(&self, row: &Row, into: &mut [f32]) {
        let (dense, pairs) = into.split_at_mut(self.dense);
        dense.copy_from_slice(row.dense);
        let mut into = pairs.chunks_exact_mut(2);
        let mut put = |i: usize| {
            if let Some(pair) = into.next() {
                // Exact: there are no more places than a float can count.
                pair[0] = row.places[i] as f32;
                pair[1] = row.values[i];
            }
        };
        match row.places.len() <= self.pairs {
            true => (0..row.places.len()).for_each(put),
            false => {
                let mut kept: Vec<usize> = (0..row.places.len()).collect();
                let size = |i: &usize| row.values[*i].abs();
                kept.sort_by(|a, b| size(b).total_cmp(&size(a)));
                kept.truncate(self.pairs);
                kept.sort_unstable();
                kept.into_iter().for_each(&mut put);
            }
        }
    }
}

/// The labels of rows whose target is this. A number is told by what it is away from the mean: floats of 32 bits have
/// few digits.
pub fn row_labels(target: &Target) -> Labels {
    Labels::One(match target {
        Target::Number { deviation, .. } => Target::Number {
            mean: 0.0,
            deviation: *deviation,
        },
        target => target.clone(),
    })
}

/// How rows become samples.
pub struct RowsOptions {
    /// The packs of the rows to learn from, and of those that are held out.
    pub training: PackOptions,
    pub held_out: PackOptions,
    pub holdout: Holdout,
    pub threads: usize,
}

/// All rows of a table, ready to be learned from in any order.
pub struct RowSamples {
    pub training: ArraySource,
    /// `None` where no row is held out.
    pub held_out: Option<ArraySource>,
    pub shape: RowShape,
    /// What became of the rows; `None` where they were there already.
    pub counts: Option<RowCounts>,
}

/// Whether rows that are reckoned with are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreseen {
    There,
    /// Their packs are to be written, and will take so many bytes.
    ToCome {
        disk: u64,
    },
}

/// What hears where a pass is, and may end it.
type Progress<'p> = dyn FnMut(Position, u64) -> ControlFlow<()> + 'p;

impl RowSamples {
    /// The bytes that encoding takes beside a pass over the table: a block of each pack, and what waits for the disk. Rows
    /// of texts may come to be longer.
    pub fn bytes(table: &Table) -> u64 {
        let shape = shape(table, 0);
        2 * (block_bytes::<f32>(shape.len() + 1) + WRITE_BEHIND_BYTES)
    }

    /// Takes the rows from their packs, or encodes them into new ones; `None` when `progress` ends it. The table has
    /// places up to 2²⁴.
    pub fn of(
        table: &Table,
        options: &RowsOptions,
        ledger: &Ledger,
        progress: &mut Progress,
    ) -> Result<Option<RowSamples>> {
        let labels = row_labels(&table.encoders.target);
        if shape(table, 0).is_empty() {
            return Err(Error::NoFeatures {
                path: table.source.path().into(),
                target: table.encoders.target_column.clone(),
                left_out: Vec::new(),
            });
        }
        if let Some(packs) = open(table, options, ledger)? {
            match RowSamples::join(table, packs, None, labels.clone(), ledger) {
                // It is gone now, and is built again.
                Err(Error::PackDamaged { .. }) => {}
                joined => return joined.map(Some),
            }
        }
        let Some(shape) = measure(table, options, ledger, progress)? else {
            return Ok(None);
        };
        let Some((packs, counts)) = write(table, &shape, options, ledger, progress)? else {
            return Ok(None);
        };
        RowSamples::join(table, packs, Some(counts), labels, ledger).map(Some)
    }

    /// The rows as they will be, without encoding one: taken from their packs where those are there, and otherwise only
    /// reckoned with, for they cannot be fed. Of `n_rows`, the second so many are held out. `None` when `progress` ends it.
    pub fn foresee(
        table: &Table,
        options: &RowsOptions,
        (n_rows, held_out): (u64, u64),
        ledger: &Ledger,
        progress: &mut Progress,
    ) -> Result<Option<(RowSamples, Foreseen)>> {
        let labels = row_labels(&table.encoders.target);
        if let Some(packs) = open(table, options, ledger)? {
            let samples = RowSamples::join(table, packs, None, labels, ledger)?;
            return Ok(Some((samples, Foreseen::There)));
        }
        let Some(shape) = measure(table, options, ledger, progress)? else {
            return Ok(None);
        };
        let values = shape.len() + 1;
        let of = |n: u64| ArraySource::foreseen(&labels, shape.len(), n, table.source.path(), ledger);
        let samples = RowSamples {
            training: of(n_rows - held_out)?,
            held_out: (held_out > 0).then(|| of(held_out)).transpose()?,
            shape,
            counts: None,
        };
        let disk = n_rows * (values * size_of::<f32>()) as u64;
        Ok(Some((samples, Foreseen::ToCome { disk })))
    }

    fn join(
        table: &Table,
        (training, held_out): Packs,
        counts: Option<RowCounts>,
        labels: Labels,
        ledger: &Ledger,
    ) -> Result<RowSamples> {
        let width = table.encoders.width();
        Ok(RowSamples {
            shape: RowShape {
                dense: width.dense,
                places: width.sparse,
                pairs: (training.values - labels.width() - width.dense) / 2,
            },
            held_out: held_out
                .filter(|pack| !pack.is_empty())
                .map(|pack| ArraySource::of_pack(&pack, labels.clone(), ledger))
                .transpose()?,
            training: ArraySource::of_pack(&training, labels, ledger)?,
            counts,
        })
    }
}

fn shape(table: &Table, longest: usize) -> RowShape {
    let width = table.encoders.width();
    let one_each = table.encoders.features.iter();
    let one_each = one_each
        .filter(|feature| feature.encoder.width().sparse > 0)
        .count();
    RowShape {
        dense: width.dense,
        places: width.sparse,
        pairs: one_each.max(longest),
    }
}

/// The packs of earlier runs, if they are whole.
fn open(table: &Table, options: &RowsOptions, ledger: &Ledger) -> Result<Option<Packs>> {
    let holder = ledger.holder("pack");
    let opened = |options: &PackOptions| match SamplesPack::open(&options.store, options.key, &holder) {
        Ok(pack) => Ok(pack.filter(|pack| pack.values > table.encoders.width().dense)),
        // It is gone now, and is built again.
        Err(PackProblem::Damaged { .. }) => Ok(None),
        Err(problem) => Err(Error::from(problem)),
    };
    let Some(training) = opened(&options.training)? else {
        return Ok(None);
    };
    let held_out = match options.holdout.is_none() {
        true => None,
        false => match opened(&options.held_out)? {
            Some(pack) if pack.values == training.values => Some(pack),
            _ => return Ok(None),
        },
    };
    Ok(Some((training, held_out)))
}

/// How long rows are. Categories have one value each; texts are read to know.
fn measure(
    table: &Table,
    options: &RowsOptions,
    ledger: &Ledger,
    progress: &mut Progress,
) -> Result<Option<RowShape>> {
    let is_text = |encoder: &Encoder| matches!(encoder, Encoder::Text(_));
    if !table
        .encoders
        .features
        .iter()
        .any(|feature| is_text(&feature.encoder))
    {
        return Ok(Some(shape(table, 0)));
    }
    let mut longest = 0;
    let mut rows = 0;
    let mut ended = false;
    let pass = PassOptions {
        threads: options.threads,
        holdout: options.holdout,
        start: None,
    };
    table.pass(
        &pass,
        ledger,
        |batch| batch.rows().map(|row| row.places.len()).max().unwrap_or(0),
        |batch, most, position| {
            longest = longest.max(most);
            rows += batch.n_rows() as u64;
            let flow = progress(position, rows);
            ended = flow.is_break();
            Ok::<_, Error>(flow)
        },
    )?;
    Ok((!ended).then(|| shape(table, longest.min(MOST_PAIRS))))
}

/// The rows to learn from, and those that judge.
type Packs = (SamplesPack<f32>, Option<SamplesPack<f32>>);
type Written = (Packs, RowCounts);

/// Encodes all rows into two packs; `None` when `progress` ends it.
fn write(
    table: &Table,
    shape: &RowShape,
    options: &RowsOptions,
    ledger: &Ledger,
    progress: &mut Progress,
) -> Result<Option<Written>> {
    let holder = ledger.holder("pack");
    let values = shape.len() + 1;
    let create = |options: &PackOptions| {
        // One of other rows would stand in the way; one of these may be in use.
        let layout = options.store.layout(options.key).ok().flatten();
        if layout != Some(Layout::Samples { values }) {
            options.store.remove(options.key)?;
        }
        Ok::<_, Error>(SamplesWriter::create(options, values, &holder)?)
    };
    let mut training = create(&options.training)?;
    let mut held_out = match options.holdout.is_none() {
        true => None,
        false => Some(create(&options.held_out)?),
    };
    let mean = match table.encoders.target {
        Target::Number { mean, .. } => mean,
        _ => 0.0,
    };
    let mut rows = 0;
    let mut ended = false;
    let pass = PassOptions {
        threads: options.threads,
        holdout: options.holdout,
        start: None,
    };
    let counts = table.pass(
        &pass,
        ledger,
        |_| (),
        |batch, (), position| {
            for row in batch.rows() {
                let writer = match &mut held_out {
                    Some(held_out) if row.held_out => held_out,
                    _ => &mut training,
                };
                let target = (row.target - mean) as f32;
                if !target.is_finite() {
                    return Err(ArrayProblem::NotFinite {
                        path: table.source.path().into(),
                        sample: row.line,
                        value: row.target.to_string(),
                    }
                    .into());
                }
                writer.push(|into| {
                    shape.write(&row, &mut into[..values - 1]);
                    into[values - 1] = target;
                })?;
            }
            rows += batch.n_rows() as u64;
            let flow = progress(position, rows);
            ended = flow.is_break();
            Ok::<_, Error>(flow)
        },
    )?;
    if ended {
        return Ok(None);
    }
    let held_out = held_out.map(SamplesWriter::finish).transpose()?;
    let training = training.finish()?;
    match training.is_empty() {
        true => Err(Error::NoRows {
            path: table.source.path().into(),
        }),
        false => Ok(Some(((training, held_out), counts))),
    }
}
