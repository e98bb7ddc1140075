//! Binned rows wherever they are: the first blocks in memory, the others in a pack or a scratch file.

use std::path::Path;

use tidegate_data::pack::{BinsPack, Part};
use tidegate_memory::{Holder, Ledger, give_freed_memory_back};

use super::rows::{Block, BlockBuffer, Blocks, Resident};
use super::scratch::{Scratch, bytes, bytes_mut, whole_pages};
use super::{Kept, Plan, ROWS, Shape};
use crate::Result;

/// Binned rows, the first blocks in memory. What is let go of them is read from the pack, or from a file that it is written
/// to before.
pub struct Rows {
    resident: Resident,
    /// How many blocks have that part in memory.
    n_bins: usize,
    n_labels: usize,
    /// The rows of each block.
    n_rows: Vec<usize>,
    elsewhere: Elsewhere,
}

/// Where blocks are that are not in memory.
enum Elsewhere {
    /// All of them are in memory.
    Nowhere,
    /// It has all blocks.
    Pack(BinsPack),
    /// It has those that were let go.
    File(RowsFile),
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
        let mut rows = Rows::none(&plan.shape, &ledger.holder(ROWS))?;
        let (mut kept, mut spare) = (plan.kept, ledger.spare(0));
        for block in 0..pack.n_blocks() {
            let mut buffer = BlockBuffer::default();
            if block < kept.bins {
                buffer = BlockBuffer::new(pack.n_rows(block), plan.shape.n_features, Part::Whole);
                read(&pack, block, Part::Whole, &mut buffer)?;
            }
            rows.push(pack.n_rows(block), &mut buffer, &mut kept, ledger);
            spare.tell(rows.bytes());
        }
        rows.elsewhere = Elsewhere::Pack(pack);
        Ok(rows)
    }

    pub(super) fn none(shape: &Shape, holder: &Holder) -> Result<Rows> {
        Ok(Rows {
            resident: Resident::new(shape.n_rows, shape.n_features, shape.block_rows, holder)?,
            n_bins: 0,
            n_labels: 0,
            n_rows: Vec::new(),
            elsewhere: Elsewhere::Nowhere,
        })
    }

    /// Rows that are all in memory.
    pub fn all(resident: Resident) -> Rows {
        let n_rows: Vec<usize> = (0..resident.n_blocks())
            .map(|block| resident.n_rows(block))
            .collect();
        Rows {
            resident,
            n_bins: n_rows.len(),
            n_labels: n_rows.len(),
            n_rows,
            elsewhere: Elsewhere::Nowhere,
        }
    }

    /// What was not kept is in this pack, with all else.
    pub(super) fn packed(self, pack: BinsPack) -> Rows {
        let elsewhere = Elsewhere::Pack(pack);
        Rows { elsewhere, ..self }
    }

    /// Takes note of the next block of a pack, and keeps of it what is to stay in memory. Where memory was taken away, that
    /// is less from now on, and what was kept is let go, too.
    pub(super) fn push(&mut self, n_rows: usize, rows: &mut BlockBuffer, kept: &mut Kept, ledger: &Ledger) {
        let block = self.n_rows.len();
        self.n_rows.push(n_rows);
        // What is read ahead goes before rows do.
        let others = ledger.spare_bytes().saturating_sub(self.bytes());
        while ledger.over() > others && self.n_bins > 0 {
            self.let_go_of_labels(self.n_bins - 1);
            self.let_go_of_bins(self.n_bins - 1);
            give_freed_memory_back();
            kept.bins = self.n_bins;
        }
        if block >= kept.bins {
            return;
        }
        let mut rows = std::mem::take(rows);
        if block >= kept.labels {
            (rows.target, rows.held_out) = Default::default();
        }
        match self.resident.push_block(rows) {
            true => {
                self.n_bins += 1;
                self.n_labels += usize::from(block < kept.labels);
            }
            false => kept.bins = self.n_bins,
        }
    }

    fn let_go_of_labels(&mut self, n_labels: usize) {
        while self.n_labels > n_labels {
            self.n_labels -= 1;
            self.resident.let_go(self.n_labels, Part::Labels);
        }
    }

    fn let_go_of_bins(&mut self, n_bins: usize) {
        while self.n_bins > n_bins {
            self.n_bins -= 1;
            self.resident.let_go(self.n_bins, Part::Bins);
        }
    }

    pub(super) fn total_rows(&self) -> usize {
        self.n_rows.iter().sum()
    }

    /// How many blocks have their bins in memory, and how many of them their labels, too.
    pub fn kept(&self) -> (usize, usize) {
        (self.n_bins, self.n_labels)
    }

    /// What they take in memory.
    pub fn bytes(&self) -> u64 {
        self.resident.bytes()
    }
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
        self.n_rows.len()
    }

    fn n_rows(&self, block: usize) -> usize {
        self.n_rows[block]
    }

    fn n_features(&self) -> usize {
        self.resident.n_features()
    }

    fn in_memory(&self, block: usize, part: Part) -> bool {
        (block < self.n_bins || !part.has_bins()) && (block < self.n_labels || !part.has_labels())
    }

    fn read(&self, block: usize, part: Part, buffer: &mut BlockBuffer) -> Result<()> {
        let part = match part {
            Part::Whole if block < self.n_bins => Part::Labels,
            part => part,
        };
        match &self.elsewhere {
            _ if self.in_memory(block, part) => Ok(()),
            Elsewhere::Pack(pack) => read(pack, block, part, buffer),
            Elsewhere::File(file) => file.read(block, part, self.n_rows[block], buffer),
            Elsewhere::Nowhere => Ok(()),
        }
    }

    fn block<'b>(&'b self, block: usize, part: Part, buffer: &'b BlockBuffer) -> Block<'b> {
        let (n_rows, n_features) = (self.n_rows(block), self.n_features());
        let of = |part: Part| match self.in_memory(block, part) {
            true => self.resident.block_of(block, part, n_rows),
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

    fn can_let_go(&self) -> bool {
        true
    }

    fn keep(&mut self, n_bins: usize, n_labels: usize, folder: &Path) -> Result<()> {
        let n_labels = n_labels.min(n_bins);
        if n_bins >= self.n_bins && n_labels >= self.n_labels {
            return Ok(());
        }
        if matches!(self.elsewhere, Elsewhere::Nowhere) {
            self.elsewhere = Elsewhere::File(RowsFile {
                scratch: Scratch::new(folder)?,
                n_features: self.n_features(),
                block_rows: self.largest_block(),
            });
        }
        while self.n_labels > n_labels {
            self.write(self.n_labels - 1, Part::Labels)?;
            self.let_go_of_labels(self.n_labels - 1);
        }
        while self.n_bins > n_bins {
            self.write(self.n_bins - 1, Part::Bins)?;
            self.let_go_of_bins(self.n_bins - 1);
        }
        Ok(())
    }
}

impl Rows {
    /// Writes a part of a block to the file, where there is one.
    fn write(&self, block: usize, part: Part) -> Result<()> {
        match &self.elsewhere {
            Elsewhere::File(file) => {
                let rows = self.resident.block_of(block, part, self.n_rows[block]);
                file.write(block, &rows)
            }
            _ => Ok(()),
        }
    }
}

/// Blocks in a scratch file: bins, targets, and which rows are held out, each of which begins a page.
struct RowsFile {
    scratch: Scratch,
    n_features: usize,
    /// Of the largest block, which is what every place has room for.
    block_rows: usize,
}

impl RowsFile {
    /// Where the three parts of a block begin.
    fn places(&self, block: usize) -> [u64; 3] {
        let bins = whole_pages(self.block_rows * self.n_features);
        let target = whole_pages(self.block_rows * size_of::<f32>());
        let start = block as u64 * (bins + target + whole_pages(self.block_rows));
        [start, start + bins, start + bins + target]
    }

    fn write(&self, block: usize, rows: &Block<'_>) -> Result<()> {
        let [bins, target, held_out] = self.places(block);
        if !rows.bins.is_empty() {
            self.scratch.write(bins, rows.bins)?;
        }
        if !rows.target.is_empty() {
            self.scratch.write(target, bytes(rows.target))?;
            self.scratch.write(held_out, rows.held_out)?;
        }
        Ok(())
    }

    fn read(&self, block: usize, part: Part, n_rows: usize, buffer: &mut BlockBuffer) -> Result<()> {
        let [bins, target, held_out] = self.places(block);
        if part.has_bins() {
            let n_bins = n_rows * self.n_features;
            self.scratch.read(bins, &mut buffer.bins[..n_bins])?;
        }
        if part.has_labels() {
            self.scratch
                .read(target, bytes_mut(&mut buffer.target[..n_rows]))?;
            self.scratch.read(held_out, &mut buffer.held_out[..n_rows])?;
        }
        Ok(())
    }
}
