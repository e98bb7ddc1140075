//! From a table to binned rows: one pass that encodes, bins, and keeps what fits; the rest goes to a pack.

use std::ops::ControlFlow;

use tidegate_data::pack::{BinsPack, BinsWriter, Part};
use tidegate_data::{Batch, PackProblem, PassOptions, Position, RowCounts, Table};
use tidegate_memory::{Grant, Holder, Ledger};

use super::plan::Kept;
use super::rows::{Block, BlockBuffer, Blocks, Resident};
use super::{FeatureBins, Plan, ROWS, Shape};
use crate::{Error, Result};

/// Binned rows, the first blocks in memory and the others in a pack.
pub struct Rows {
    resident: Resident,
    kept: Kept,
    /// Of all blocks, unless all of them are in memory.
    pack: Option<BinsPack>,
}

impl Rows {
    /// Whether a pack has the rows that are planned for, in such blocks.
    pub fn fits(pack: &BinsPack, shape: &Shape) -> bool {
        let largest = (0..pack.n_blocks()).map(|block| pack.n_rows(block)).max();
        pack.total_rows() == shape.n_rows as u64
            && pack.n_blocks() == shape.n_blocks()
            && largest.unwrap_or(0) <= shape.block_rows
    }

    /// Reads as many blocks of a pack into memory as the plan has room for.
    pub fn from_pack(pack: BinsPack, plan: &Plan, ledger: &Ledger) -> Result<Rows> {
        let (shape, kept) = (&plan.shape, plan.kept);
        let holder = ledger.holder(ROWS);
        let mut resident = Resident::new(shape.n_rows, shape.n_features, shape.block_rows, &holder)?;
        for block in 0..kept.bins {
            let mut buffer = BlockBuffer::new(pack.n_rows(block), shape.n_features, Part::Whole);
            read(&pack, block, Part::Whole, &mut buffer)?;
            resident.push_block(kept_of(block, kept, buffer))?;
        }
        Ok(Rows {
            resident,
            kept,
            pack: (!plan.rows_fit()).then_some(pack),
        })
    }
}

/// What stays in memory of a block that was read.
fn kept_of(block: usize, kept: Kept, mut rows: BlockBuffer) -> BlockBuffer {
    if block >= kept.labels {
        (rows.target, rows.held_out) = Default::default();
    }
    rows
}

fn read(pack: &BinsPack, block: usize, part: Part, buffer: &mut BlockBuffer) -> Result<()> {
    let BlockBuffer {
        bins,
        target,
        held_out,
    } = buffer;
    Ok(pack.read_block(block, part, bins, target, held_out)?)
}

impl Blocks for Rows {
    fn n_blocks(&self) -> usize {
        self.pack
            .as_ref()
            .map_or(self.resident.n_blocks(), BinsPack::n_blocks)
    }

    fn n_rows(&self, block: usize) -> usize {
        match &self.pack {
            Some(pack) => pack.n_rows(block),
            None => self.resident.n_rows(block),
        }
    }

    fn n_features(&self) -> usize {
        self.resident.n_features()
    }

    fn in_memory(&self, block: usize, part: Part) -> bool {
        let bins = block < self.kept.bins || !part.has_bins();
        let labels = block < self.kept.labels || !part.has_labels();
        self.pack.is_none() || (bins && labels)
    }

    fn read(&self, block: usize, part: Part, buffer: &mut BlockBuffer) -> Result<()> {
        let part = match part {
            Part::Whole if block < self.kept.bins => Part::Labels,
            part => part,
        };
        match &self.pack {
            Some(pack) if !self.in_memory(block, part) => read(pack, block, part, buffer),
            _ => Ok(()),
        }
    }

    fn block<'b>(&'b self, block: usize, part: Part, buffer: &'b BlockBuffer) -> Block<'b> {
        let (n_rows, n_features) = (self.n_rows(block), self.n_features());
        let of = |part: Part| match self.in_memory(block, part) {
            true => self.resident.block(block, part, buffer),
            false => buffer.block(part, n_rows, n_features),
        };
        let mut rows = Block::default();
        if part.has_bins() {
            rows.bins = of(Part::Bins).bins;
        }
        if part.has_labels() {
            (rows.target, rows.held_out) = (of(Part::Labels).target, of(Part::Labels).held_out);
        }
        rows
    }
}

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
    let mut filling = Filling::new(plan, writer, &ledger.holder(ROWS))?;
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
    let rows = filling.finish()?;
    match &rows.pack {
        // Somebody else put another one in its place meanwhile.
        Some(pack) if pack.total_rows() != n_rows => Err(no_pack(pack.of_other_rows())),
        _ => Ok(Some((rows, counts))),
    }
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
struct Filling {
    resident: Resident,
    kept: Kept,
    shape: Shape,
    writer: Option<BinsWriter>,
    /// The block under way, where not all of them stay in memory.
    current: BlockBuffer,
    n_blocks: usize,
    #[expect(dead_code, reason = "held for its drop")]
    grant: Grant,
}

impl Filling {
    fn new(plan: &Plan, writer: Option<BinsWriter>, holder: &Holder) -> Result<Filling> {
        let shape = plan.shape;
        // Where all blocks stay, the one under way is one of them.
        let bytes = if writer.is_some() { plan.block_bytes() } else { 0 };
        let grant = holder
            .try_grant(bytes)
            .map_err(|source| Error::Memory { what: ROWS, source })?;
        Ok(Filling {
            resident: Resident::new(shape.n_rows, shape.n_features, shape.block_rows, holder)?,
            kept: plan.kept,
            shape,
            writer,
            current: BlockBuffer::default(),
            n_blocks: 0,
            grant,
        })
    }

    #[inline]
    fn push(&mut self, bins: &[u8], target: f32, held_out: bool) -> Result<()> {
        if self.writer.is_none() {
            return self.resident.push(bins, target, held_out);
        }
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
        if let Some(writer) = &mut self.writer {
            writer.push_block(bins, target, held_out).map_err(no_pack)?;
        }
        if self.n_blocks < self.kept.bins {
            let rows = std::mem::take(&mut self.current);
            self.resident
                .push_block(kept_of(self.n_blocks, self.kept, rows))?;
        } else {
            bins.clear();
            target.clear();
            held_out.clear();
        }
        self.n_blocks += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<Rows> {
        if !self.current.target.is_empty() {
            self.end_block()?;
        }
        let pack = self.writer.map(BinsWriter::finish).transpose().map_err(no_pack)?;
        Ok(Rows {
            resident: self.resident,
            kept: self.kept,
            pack,
        })
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
