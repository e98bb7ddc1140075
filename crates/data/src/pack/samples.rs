//! Packs of rows of one length, for networks: samples that are read in any order.

use tidegate_memory::{Grant, Holder};

use super::bins::checksum;
use super::build::Builder;
use super::read::PackFile;
use super::rows::{bytes_of, bytes_of_mut};
use super::{Layout, PackKey, PackOptions, PackProblem, PackStore};
use crate::Result;

/// Samples are written in blocks of about so many bytes: each is a file of its own to those who read them.
const BLOCK_BYTES: usize = 2 << 20;

/// What writing takes beside what is on its way to the disk: a block.
pub(crate) fn block_bytes(values: usize) -> u64 {
    (block_rows(values) * values * size_of::<f32>()) as u64
}

fn block_rows(values: usize) -> usize {
    (BLOCK_BYTES / (values * size_of::<f32>())).max(1)
}

/// Writes a pack of samples. Dropped before it is finished, it leaves nothing behind.
pub(crate) struct SamplesWriter {
    builder: Builder,
    values: usize,
    block: Vec<f32>,
    #[expect(dead_code, reason = "held for its drop")]
    grant: Grant,
}

impl SamplesWriter {
    /// Begins a pack, if the disk has room for the rows that are expected.
    pub(crate) fn create(
        options: &PackOptions,
        values: usize,
        holder: &Holder,
    ) -> Result<SamplesWriter, PackProblem> {
        let layout = Layout::Samples { values };
        let bytes = (options.n_rows as f64 * layout.row_bytes(0.0)) as u64;
        Ok(SamplesWriter {
            grant: holder.try_grant(block_bytes(values))?,
            builder: Builder::create(options, layout, bytes, holder)?,
            block: Vec::with_capacity(block_rows(values) * values),
            values,
        })
    }

    /// Appends a sample; `write` is given its values, all zero.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut [f32])) -> Result<(), PackProblem> {
        let at = self.block.len();
        self.block.resize(at + self.values, 0.0);
        write(&mut self.block[at..]);
        match self.block.len() == self.block.capacity() {
            true => self.write_block(),
            false => Ok(()),
        }
    }

    fn write_block(&mut self) -> Result<(), PackProblem> {
        let body = [bytes_of(&self.block)];
        let n_rows = self.block.len() / self.values;
        self.builder.push(n_rows, 0, None, &body, checksum(&body))?;
        self.block.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<SamplesPack, PackProblem> {
        if !self.block.is_empty() {
            self.write_block()?;
        }
        Ok(SamplesPack {
            file: self.builder.finish()?,
            values: self.values,
        })
    }
}

/// A complete pack of samples.
pub(crate) struct SamplesPack {
    pub file: PackFile,
    pub values: usize,
}

impl SamplesPack {
    /// Opens a pack of samples, however long they are; `None` if there is none.
    pub(crate) fn open(
        store: &PackStore,
        key: PackKey,
        holder: &Holder,
    ) -> Result<Option<SamplesPack>, PackProblem> {
        let Some(Layout::Samples { values }) = store.layout(key) else {
            return Ok(None);
        };
        let file = store.open(key, Layout::Samples { values }, holder)?;
        Ok(file.map(|file| SamplesPack { file, values }))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.file.manifest.n_rows == 0
    }

    /// Where each block of samples stands: its first byte, and how many it has.
    pub(crate) fn blocks(&self) -> impl ExactSizeIterator<Item = (u64, u64)> {
        self.file
            .entries
            .iter()
            .map(|entry| (entry.offset + u64::from(entry.header_bytes), entry.n_rows.into()))
    }

    /// Reads every sample in its order, and holds blocks against their checksums. A damaged pack is an error, and goes, so
    /// that the next run builds it again.
    pub(crate) fn each(&self, holder: &Holder, mut take: impl FnMut(&[f32])) -> Result<()> {
        let _granted = holder.try_grant(block_bytes(self.values))?;
        let mut block = vec![0.0f32; block_rows(self.values) * self.values];
        for (i, entry) in self.file.entries.iter().enumerate() {
            let Some(samples) = block.get_mut(..entry.n_rows as usize * self.values) else {
                return Err(self.file.damaged(i));
            };
            let bytes = bytes_of_mut(samples);
            self.file
                .read(i, &mut [], &self.file.body(i), &mut [&mut *bytes])?;
            if checksum(&[&*bytes]) != entry.body_checksum {
                return Err(self.file.damaged(i));
            }
            samples.chunks_exact(self.values).for_each(&mut take);
        }
        Ok(())
    }
}
