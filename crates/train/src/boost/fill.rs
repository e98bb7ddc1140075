//! From a table to binned rows: one pass that encodes, bins, and keeps what fits; the rest goes to a pack.

use std::ops::ControlFlow;

use tidegate_data::pack::BinsWriter;
use tidegate_data::{Batch, PackProblem, PassOptions, Position, RowCounts, Table};
use tidegate_memory::{Grant, Ledger, Spare};

use super::plan::Kept;
use super::rows::{BlockBuffer, Resident};
use super::store::Rows;
use super::{FeatureBins, Plan, ROWS, Shape};
use crate::{Error, Result};

/// Streams `table` once and bins its rows. Blocks beyond those that the plan keeps in memory are read from the pack
/// that `writer` makes of all of them. `progress` hears of every piece and may end it: then there is `None`, and no pack.
pub fn fill(
    table: &Table,
    features: &[FeatureBins],
    plan: &Plan,
    writer: Option<BinsWriter>,
    options: &PassOptions,
    ledger: &Ledger,
    mut progress: impl FnMut(Position, u64) -> ControlFlow<()>,
) -> Result<Option<(Rows, RowCounts)>> {
    let mut filling = Filling::new(plan, writer, ledger)?;
    let (mut n_rows, mut stopped) = (0, false);
    let counts = table.pass(
        options,
        ledger,
        |batch| binned(batch, features),
        |batch, bins, position| -> Result<ControlFlow<()>> {
            n_rows += batch.n_rows() as u64;
            if n_rows > plan.shape.n_rows as u64 {
                return Err(changed(table));
            }
            for (row, bins) in batch.rows().zip(bins.chunks_exact(features.len())) {
                filling.push(bins, row.target as f32, row.held_out)?;
            }
            let next = progress(position, n_rows);
            stopped = next.is_break();
            Ok(next)
        },
    )?;
    if stopped {
        return Ok(None);
    }
    if n_rows != plan.shape.n_rows as u64 {
        return Err(changed(table));
    }
    Ok(Some((filling.finish()?, counts)))
}

/// The first rows of `table`, binned and in memory: to see how long trees take.
pub fn first_rows(
    table: &Table,
    features: &[FeatureBins],
    shape: &Shape,
    options: &PassOptions,
    ledger: &Ledger,
) -> Result<Resident> {
    let holder = ledger.holder(ROWS);
    let mut rows = Resident::new(shape.n_rows, features.len(), shape.block_rows, &holder)?;
    let mut left = shape.n_rows;
    table.pass(
        options,
        ledger,
        |batch| binned(batch, features),
        |batch, bins, _| -> Result<ControlFlow<()>> {
            for (row, bins) in batch.rows().zip(bins.chunks_exact(features.len())).take(left) {
                rows.push(bins, row.target as f32, row.held_out)?;
            }
            left = left.saturating_sub(batch.n_rows());
            Ok(match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        },
    )?;
    Ok(rows)
}

fn binned(batch: &Batch, features: &[FeatureBins]) -> Vec<u8> {
    let mut bins = Vec::with_capacity(batch.n_rows() * features.len());
    for row in batch.rows() {
        bins.extend(features.iter().zip(row.dense).map(|(feature, x)| feature.bin(*x)));
    }
    bins
}

/// Rows on their way into blocks.
enum Filling<'l> {
    /// All of them stay in memory.
    Whole(Resident),
    Packed(Box<Packing<'l>>),
}

/// Blocks on their way into a pack, the first ones kept in memory, too.
struct Packing<'l> {
    writer: BinsWriter,
    rows: Rows,
    kept: Kept,
    shape: Shape,
    /// The block under way.
    current: BlockBuffer,
    ledger: &'l Ledger,
    spare: Spare,
    #[expect(dead_code, reason = "held for its drop")]
    grant: Grant,
}

impl<'l> Filling<'l> {
    fn new(plan: &Plan, writer: Option<BinsWriter>, ledger: &'l Ledger) -> Result<Filling<'l>> {
        let (shape, holder) = (plan.shape, ledger.holder(ROWS));
        let Some(writer) = writer else {
            let resident = Resident::new(shape.n_rows, shape.n_features, shape.block_rows, &holder)?;
            return Ok(Filling::Whole(resident));
        };
        let grant = holder.try_grant(plan.block_bytes());
        Ok(Filling::Packed(Box::new(Packing {
            writer,
            rows: Rows::none(&shape, &holder)?,
            kept: plan.kept,
            shape,
            current: BlockBuffer::default(),
            ledger,
            spare: ledger.spare(0),
            grant: grant.map_err(|source| Error::Memory { what: ROWS, source })?,
        })))
    }

    #[inline]
    fn push(&mut self, bins: &[u8], target: f32, held_out: bool) -> Result<()> {
        match self {
            Filling::Whole(resident) => resident.push(bins, target, held_out),
            Filling::Packed(packing) => packing.push(bins, target, held_out),
        }
    }

    fn finish(self) -> Result<Rows> {
        match self {
            Filling::Whole(resident) => Ok(Rows::all(resident)),
            Filling::Packed(packing) => packing.finish(),
        }
    }
}

impl Packing<'_> {
    #[inline]
    fn push(&mut self, bins: &[u8], target: f32, held_out: bool) -> Result<()> {
        if self.current.target.is_empty() {
            let n_rows = self.shape.largest_block();
            self.current.bins.reserve_exact(n_rows * self.shape.n_features);
            self.current.target.reserve_exact(n_rows);
            self.current.held_out.reserve_exact(n_rows);
        }
        self.current.bins.extend_from_slice(bins);
        self.current.target.push(target);
        self.current.held_out.push(u8::from(held_out));
        if self.current.target.len() == self.shape.block_rows {
            self.end_block()?;
        }
        Ok(())
    }

    /// Packs the block under way, and keeps of it what stays in memory.
    fn end_block(&mut self) -> Result<()> {
        let BlockBuffer {
            bins,
            target,
            held_out,
        } = &mut self.current;
        self.writer.push_block(bins, target, held_out).map_err(no_pack)?;
        let n_rows = target.len();
        self.rows
            .push(n_rows, &mut self.current, &mut self.kept, self.ledger);
        self.spare.tell(self.rows.bytes());
        self.current.bins.clear();
        self.current.target.clear();
        self.current.held_out.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Rows> {
        if !self.current.target.is_empty() {
            self.end_block()?;
        }
        let pack = self.writer.finish().map_err(no_pack)?;
        // Somebody else put another one in its place meanwhile.
        if pack.total_rows() != self.rows.total_rows() as u64 {
            return Err(no_pack(pack.of_other_rows()));
        }
        Ok(self.rows.packed(pack))
    }
}

/// A second reading brought other rows than the first, which the plan was made for.
fn changed(table: &Table) -> Error {
    let path = table.source.path().into();
    Error::Data(tidegate_data::Error::Changed { path })
}

fn no_pack(problem: PackProblem) -> Error {
    Error::Data(problem.into())
}
