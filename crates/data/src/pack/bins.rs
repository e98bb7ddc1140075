//! Packs of binned rows, for trees: blocks that several threads read in any order.

use std::sync::OnceLock;

use tidegate_memory::Holder;

use super::build::Builder;
use super::read::PackFile;
use super::rows::{bytes_of, bytes_of_mut};
use super::{Layout, PackKey, PackOptions, PackProblem, PackStore};
use crate::Result;

/// The most rows of a block: their numbers fit 16 bits.
const BLOCK_ROWS: usize = 65_536;

/// Writes a pack of bins. Dropped before it is finished, it leaves nothing behind.
pub struct BinsWriter {
    builder: Builder,
    n_features: usize,
}

impl BinsWriter {
    /// Begins a pack, if the disk has room for the rows that are expected.
    pub fn create(
        options: &PackOptions,
        n_features: usize,
        holder: &Holder,
    ) -> Result<BinsWriter, PackProblem> {
        let layout = Layout::Bins { features: n_features };
        let bytes = (options.n_rows as f64 * layout.row_bytes(0.0)) as u64;
        Ok(BinsWriter {
            builder: Builder::create(options, layout, bytes, holder)?,
            n_features,
        })
    }

    /// Appends a block of at most 65,536 rows: `bins` row by row, a byte per feature.
    ///
    /// # Panics
    ///
    /// If the slices do not hold the same number of rows, or too many.
    pub fn push_block(&mut self, bins: &[u8], target: &[f32], held_out: &[u8]) -> Result<(), PackProblem> {
        let n_rows = target.len();
        assert!(n_rows <= BLOCK_ROWS, "a block of {n_rows} rows");
        assert_eq!((bins.len(), held_out.len()), (n_rows * self.n_features, n_rows));
        let body = [bins, bytes_of(target), held_out];
        self.builder.push(n_rows, 0, None, &body, checksum(&body))
    }

    pub fn finish(self) -> Result<BinsPack, PackProblem> {
        Ok(BinsPack::new(self.builder.finish()?, self.n_features))
    }
}

/// What is read of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Only the bins, without what was to be predicted and which rows are held out.
    Bins,
    Whole,
}

/// A complete pack of bins.
#[derive(Debug)]
pub struct BinsPack {
    file: PackFile,
    n_features: usize,
    /// The checksums of what stands behind the bins, of the blocks that were read whole: with them the bins alone can
    /// be checked, too.
    behind: Box<[OnceLock<u32>]>,
}

impl BinsPack {
    fn new(mut file: PackFile, n_features: usize) -> BinsPack {
        file.read_directly();
        BinsPack {
            behind: file.entries.iter().map(|_| OnceLock::new()).collect(),
            file,
            n_features,
        }
    }

    /// Opens a pack; `None` if there is none. A torn one is dropped, and the problem says so: build it again.
    pub fn open(
        store: &PackStore,
        key: PackKey,
        n_features: usize,
        holder: &Holder,
    ) -> Result<Option<BinsPack>, PackProblem> {
        let layout = Layout::Bins { features: n_features };
        let file = store.open(key, layout, holder)?;
        Ok(file.map(|file| BinsPack::new(file, n_features)))
    }

    pub fn n_features(&self) -> usize {
        self.n_features
    }

    pub fn n_blocks(&self) -> usize {
        self.file.entries.len()
    }

    pub fn n_rows(&self, block: usize) -> usize {
        self.file.entries[block].n_rows as usize
    }

    /// The rows of all blocks.
    pub fn total_rows(&self) -> u64 {
        self.file.manifest.n_rows
    }

    /// Says that the pack is one of other rows than those that were meant.
    pub fn of_other_rows(&self) -> PackProblem {
        PackProblem::Damaged {
            path: self.file.path(),
            what: format!("it has {} rows, not those of the table", self.total_rows()),
        }
    }

    /// On disk.
    pub fn bytes(&self) -> u64 {
        self.file.manifest.data_bytes
    }

    /// Has the kernel read a block ahead, for somebody who reads that part of it soon.
    pub fn will_read(&self, block: usize, part: Part) {
        self.file.will_read(block, self.segments(block, part));
    }

    /// Reads a block into the beginning of the buffers, from any thread. Of a block that was not yet read whole, all is
    /// read, whatever the part. A damaged block is an error, and the pack is dropped so that the next run builds it again.
    ///
    /// # Panics
    ///
    /// If a buffer is too short for the block.
    pub fn read_block(
        &self,
        block: usize,
        part: Part,
        bins: &mut [u8],
        target: &mut [f32],
        held_out: &mut [u8],
    ) -> Result<()> {
        let n_rows = self.n_rows(block);
        let bins = &mut bins[..n_rows * self.n_features];
        let (target, held_out) = (bytes_of_mut(&mut target[..n_rows]), &mut held_out[..n_rows]);
        let segments = self.segments(block, part);
        let mut whole = self.file.body(block);
        whole.segments.truncate(segments);
        let behind_bytes = (target.len() + held_out.len()) as u64;
        let mut into = [&mut *bins, &mut *target, &mut *held_out];
        self.file.read(block, &mut [], &whole, &mut into[..segments])?;
        self.file.drop_cached(block, segments);
        let behind = match self.behind[block].get().filter(|_| segments == 1) {
            Some(known) => *known,
            None => checksum(&[target, held_out]),
        };
        let mut read = hasher(&[bins]);
        read.combine(&crc32fast::Hasher::new_with_initial_len(behind, behind_bytes));
        if read.finalize() != self.file.entries[block].body_checksum {
            return Err(self.file.damaged(block));
        }
        let _ = self.behind[block].set(behind);
        Ok(())
    }

    /// How many segments of a block's body are read for a part of it.
    fn segments(&self, block: usize, part: Part) -> usize {
        match part == Part::Bins && self.behind[block].get().is_some() {
            true => 1,
            false => 3,
        }
    }
}

/// CRC-32 of all buffers, one after another.
pub(super) fn checksum(body: &[&[u8]]) -> u32 {
    hasher(body).finalize()
}

fn hasher(body: &[&[u8]]) -> crc32fast::Hasher {
    let mut checksum = crc32fast::Hasher::new();
    for bytes in body {
        checksum.update(bytes);
    }
    checksum
}
