//! Binned rows in blocks: some in memory, the rest read when their turn comes.

use std::path::Path;

pub use tidegate_data::pack::Part;
use tidegate_memory::{Grant, Holder};

use crate::{Error, Result};

/// The most rows of a block: their numbers fit 16 bits, and their sums of 16 bit gradients fit 32.
pub const MOST_BLOCK_ROWS: usize = 65_536;
/// The rows of a block unless said otherwise: they stay in a core's cache, and streaming them takes little room.
pub const BLOCK_ROWS: usize = 16_384;

/// Binned rows, wherever they are.
///
/// **All of it fits**: [`Resident`] holds every block, and [`block`](Self::block) lends it.
///
/// **None of it fits**: a file holds the blocks; [`read`](Self::read) reads one into a buffer, and `block` lends that.
/// Buffers are made once, for [`largest_block`](Self::largest_block) rows, and granted before.
///
/// **A part fits**: the first [`Kept::bins`](super::Kept::bins) blocks have their bins in memory, the first
/// [`Kept::labels`](super::Kept::labels) all of them, and the rest is read. The trainer does not see the difference.
///
/// **Memory is taken away**: [`keep`](Self::keep) lets go of blocks between two passes.
///
/// A pass asks for every block once, from several threads, in no certain order. The same block always has the
/// same rows.
pub trait Blocks: Sync {
    fn n_blocks(&self) -> usize;
    /// At most [`MOST_BLOCK_ROWS`].
    fn n_rows(&self, block: usize) -> usize;
    fn n_features(&self) -> usize;
    /// Whether that part of a block is in memory. If it is of one block, it is of all before.
    fn in_memory(&self, block: usize, part: Part) -> bool;
    /// Reads what is not in memory of that part of a block.
    fn read(&self, block: usize, part: Part, buffer: &mut BlockBuffer) -> Result<()>;
    /// That part of a block, from memory and from the buffer that it was read into.
    fn block<'b>(&'b self, block: usize, part: Part, buffer: &'b BlockBuffer) -> Block<'b>;

    /// Whether [`keep`](Self::keep) lets go of what is in memory.
    fn can_let_go(&self) -> bool {
        false
    }

    /// Lets go of all bins but those of the first blocks, and of all labels likewise. What could not be read again is first
    /// written to a file in `folder`, which goes when these blocks do.
    fn keep(&mut self, _n_bins: usize, _n_labels: usize, _folder: &Path) -> Result<()> {
        Ok(())
    }

    fn largest_block(&self) -> usize {
        (0..self.n_blocks())
            .map(|block| self.n_rows(block))
            .max()
            .unwrap_or(0)
    }
}

/// Blocks that are only lent can be read and not be let go of.
impl Blocks for &dyn Blocks {
    fn n_blocks(&self) -> usize {
        (**self).n_blocks()
    }

    fn n_rows(&self, block: usize) -> usize {
        (**self).n_rows(block)
    }

    fn n_features(&self) -> usize {
        (**self).n_features()
    }

    fn in_memory(&self, block: usize, part: Part) -> bool {
        (**self).in_memory(block, part)
    }

    fn read(&self, block: usize, part: Part, buffer: &mut BlockBuffer) -> Result<()> {
        (**self).read(block, part, buffer)
    }

    fn block<'b>(&'b self, block: usize, part: Part, buffer: &'b BlockBuffer) -> Block<'b> {
        (**self).block(block, part, buffer)
    }
}

/// Rows of one block; what was not asked for is empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct Block<'b> {
    /// Row by row, a byte per feature.
    pub bins: &'b [u8],
    /// A number; 0 or 1; or the number of a class.
    pub target: &'b [f32],
    /// Not zero for rows to judge by instead of learning from them.
    pub held_out: &'b [u8],
}

/// Where blocks are read into.
#[derive(Debug, Default)]
pub struct BlockBuffer {
    pub bins: Vec<u8>,
    pub target: Vec<f32>,
    pub held_out: Vec<u8>,
}

impl BlockBuffer {
    /// Room for that part of blocks of so many rows, taken at once.
    pub fn new(n_rows: usize, n_features: usize, part: Part) -> BlockBuffer {
        let n_labels = if part.has_labels() { n_rows } else { 0 };
        let n_bins = if part.has_bins() { n_rows * n_features } else { 0 };
        BlockBuffer {
            bins: vec![0; n_bins],
            target: vec![0.0; n_labels],
            held_out: vec![0; n_labels],
        }
    }

    /// That part of the first `n_rows`.
    pub fn block(&self, part: Part, n_rows: usize, n_features: usize) -> Block<'_> {
        let mut block = Block::default();
        if part.has_bins() {
            block.bins = &self.bins[..n_rows * n_features];
        }
        if part.has_labels() {
            (block.target, block.held_out) = (&self.target[..n_rows], &self.held_out[..n_rows]);
        }
        block
    }
}

/// What a row takes beside its bins.
const LABELS_BYTES: u64 = (size_of::<f32>() + size_of::<u8>()) as u64;

/// The bytes of so many rows in memory.
pub fn rows_bytes(n_rows: usize, n_features: usize) -> u64 {
    bins_bytes(n_rows, n_features) + labels_bytes(n_rows)
}

pub(super) fn bins_bytes(n_rows: usize, n_features: usize) -> u64 {
    n_rows as u64 * n_features as u64
}

pub(super) fn labels_bytes(n_rows: usize) -> u64 {
    n_rows as u64 * LABELS_BYTES
}

/// Rows in memory, granted by a ledger block by block.
#[derive(Debug)]
pub struct Resident {
    n_features: usize,
    block_rows: usize,
    /// Rows still to come, so that the last block takes no more than it needs.
    expected: usize,
    blocks: Vec<BlockBuffer>,
    grant: Grant,
}

impl Resident {
    /// Room for `n_rows` rows in blocks of `block_rows`, taken from `holder` as the blocks begin.
    pub fn new(n_rows: usize, n_features: usize, block_rows: usize, holder: &Holder) -> Result<Resident> {
        let grant = holder.try_grant(0).map_err(refused)?;
        Ok(Resident {
            n_features,
            block_rows: block_rows.clamp(1, MOST_BLOCK_ROWS),
            expected: n_rows,
            blocks: Vec::new(),
            grant,
        })
    }

    /// Appends a row of one bin per feature.
    pub fn push(&mut self, bins: &[u8], target: f32, held_out: bool) -> Result<()> {
        assert_eq!(bins.len(), self.n_features, "a row has one bin per feature");
        if self
            .blocks
            .last()
            .is_none_or(|block| block.target.len() == self.block_rows)
        {
            self.begin_block()?;
        }
        let block = self.blocks.last_mut().expect("a block has begun");
        block.bins.extend_from_slice(bins);
        block.target.push(target);
        block.held_out.push(u8::from(held_out));
        self.expected = self.expected.saturating_sub(1);
        Ok(())
    }

    /// Appends a block, with or without its labels; `false` where there is no room for it.
    pub(super) fn push_block(&mut self, block: BlockBuffer) -> bool {
        let bytes = block.bins.len() as u64 + labels_bytes(block.target.len());
        let has_room = self.grant.try_grow(bytes).is_ok();
        if has_room {
            self.blocks.push(block);
        }
        has_room
    }

    /// Lets go of that part of a block.
    pub(super) fn let_go(&mut self, block: usize, part: Part) {
        let block = &mut self.blocks[block];
        if part.has_bins() {
            self.grant.shrink(block.bins.len() as u64);
            block.bins = Vec::new();
        }
        if part.has_labels() {
            self.grant.shrink(labels_bytes(block.target.len()));
            (block.target, block.held_out) = Default::default();
        }
    }

    /// That part of a block, which has so many rows.
    pub(super) fn block_of(&self, block: usize, part: Part, n_rows: usize) -> Block<'_> {
        self.blocks[block].block(part, n_rows, self.n_features)
    }

    fn begin_block(&mut self) -> Result<()> {
        // Rows beyond those expected come in whole blocks.
        let n_rows = match self.expected {
            0 => self.block_rows,
            expected => expected.min(self.block_rows),
        };
        self.grant
            .try_grow(rows_bytes(n_rows, self.n_features))
            .map_err(refused)?;
        self.blocks.push(BlockBuffer {
            bins: Vec::with_capacity(n_rows * self.n_features),
            target: Vec::with_capacity(n_rows),
            held_out: Vec::with_capacity(n_rows),
        });
        Ok(())
    }

    pub fn bytes(&self) -> u64 {
        self.grant.bytes()
    }
}

fn refused(source: tidegate_memory::Refused) -> Error {
    Error::Memory { what: "rows", source }
}

impl Blocks for Resident {
    fn n_blocks(&self) -> usize {
        self.blocks.len()
    }

    fn n_rows(&self, block: usize) -> usize {
        self.blocks[block].bins.len() / self.n_features
    }

    fn n_features(&self) -> usize {
        self.n_features
    }

    fn in_memory(&self, _: usize, _: Part) -> bool {
        true
    }

    fn read(&self, _: usize, _: Part, _: &mut BlockBuffer) -> Result<()> {
        Ok(())
    }

    fn block<'b>(&'b self, block: usize, part: Part, _: &'b BlockBuffer) -> Block<'b> {
        self.block_of(block, part, self.n_rows(block))
    }
}
