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
    /// The checksums of what stands behind the bins of each block.
    behind: Vec<u32>,
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
            behind: Vec::new(),
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
        let behind = checksum(&body[1..]);
        let whole = combined(bins, behind, n_rows);
        self.builder.push(n_rows, 0, None, &body, whole)?;
        self.behind.push(behind);
        Ok(())
    }

    pub fn finish(self) -> Result<BinsPack, PackProblem> {
        let pack = BinsPack::new(self.builder.finish()?, self.n_features);
        for (known, behind) in pack.behind.iter().zip(self.behind) {
            let _ = known.set(behind);
        }
        Ok(pack)
    }
}

/// What is read of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Bins,
    /// What is to be predicted, and which rows are held out.
    Labels,
    Whole,
}

impl Part {
    pub fn has_bins(self) -> bool {
        self != Part::Labels
    }

    pub fn has_labels(self) -> bool {
        self != Part::Bins
    }
}

/// A complete pack of bins.
#[derive(Debug)]
pub struct BinsPack {
    file: PackFile,
    n_features: usize,
    /// The checksums of what stands behind the bins, of the blocks that were written or read whole: with them either part
    /// can be checked alone.
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

    /// Reads a part of a block into the beginning of its buffers, from any thread. Of a block that was neither written nor
    /// yet read whole, all is read, whatever the part. A damaged block is an error, and the pack is dropped so that the next run builds it again.
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
        let body = self.file.body(block);
        let known = self.behind[block].get().copied();
        let part = if known.is_some() { part } else { Part::Whole };
        let bins = if part.has_bins() {
            &mut bins[..n_rows * self.n_features]
        } else {
            &mut []
        };
        let (target, held_out) = match part.has_labels() {
            true => (bytes_of_mut(&mut target[..n_rows]), &mut held_out[..n_rows]),
            false => Default::default(),
        };
        match part {
            Part::Bins => self.file.read_part(block, 0, bins)?,
            Part::Labels => {
                self.file.read_part(block, body.segments[1].at, target)?;
                self.file.read_part(block, body.segments[2].at, held_out)?;
            }
            Part::Whole => {
                let mut into = [&mut *bins, &mut *target, &mut *held_out];
                self.file.read(block, &mut [], &body, &mut into)?;
            }
        }
        let behind = match known.filter(|_| part == Part::Bins) {
            Some(known) => known,
            None => checksum(&[target, held_out]),
        };
        let is_whole = match known.filter(|_| part == Part::Labels) {
            Some(known) => behind == known,
            None => combined(bins, behind, n_rows) == self.file.entries[block].body_checksum,
        };
        if !is_whole {
            return Err(self.file.damaged(block));
        }
        let _ = self.behind[block].set(behind);
        Ok(())
    }
}

/// CRC-32 of all buffers, one after another.
pub(super) fn checksum(body: &[&[u8]]) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    for bytes in body {
        checksum.update(bytes);
    }
    checksum.finalize()
}

/// The checksum of bins with what stands behind them, which has a checksum already.
fn combined(bins: &[u8], behind: u32, n_rows: usize) -> u32 {
    let behind_bytes = n_rows as u64 * (size_of::<f32>() + size_of::<u8>()) as u64;
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(bins);
    checksum.combine(&crc32fast::Hasher::new_with_initial_len(behind, behind_bytes));
    checksum.finalize()
}
