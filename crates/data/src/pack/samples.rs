//! Packs of samples of one length, for networks, read in any order: encoded rows of a table, or pixels.

use std::marker::PhantomData;

use tidegate_memory::{Grant, Holder};

use super::bins::checksum;
use super::build::Builder;
use super::read::PackFile;
use super::rows::{Plain, bytes_of, bytes_of_mut};
use super::{Layout, PackKey, PackOptions, PackProblem, PackStore};
use crate::Result;

/// Samples are written in blocks of about so many bytes: each is a file of its own to those who read them.
const BLOCK_BYTES: usize = 2 << 20;

/// What samples are made of.
pub(crate) trait Value: Plain + Default {
    fn layout(values: usize) -> Layout;
    /// How long the samples of a pack are, if it is one of such values.
    fn values_of(layout: Layout) -> Option<usize>;
}

impl Value for f32 {
    fn layout(values: usize) -> Layout {
        Layout::Samples { values }
    }

    fn values_of(layout: Layout) -> Option<usize> {
        match layout {
            Layout::Samples { values } => Some(values),
            _ => None,
        }
    }
}

impl Value for u8 {
    fn layout(values: usize) -> Layout {
        Layout::Pixels { values }
    }

    fn values_of(layout: Layout) -> Option<usize> {
        match layout {
            Layout::Pixels { values } => Some(values),
            _ => None,
        }
    }
}

/// What writing takes beside what is on its way to the disk: a block.
pub(crate) fn block_bytes<T: Value>(values: usize) -> u64 {
    (block_rows::<T>(values) * values * size_of::<T>()) as u64
}

fn block_rows<T: Value>(values: usize) -> usize {
    (BLOCK_BYTES / (values * size_of::<T>())).max(1)
}

/// Writes a pack of samples. Dropped before it is finished, it leaves nothing behind.
pub(crate) struct SamplesWriter<T> {
    builder: Builder,
    values: usize,
    block: Vec<T>,
    #[expect(dead_code, reason = "held for its drop")]
    grant: Grant,
}

impl<T: Value> SamplesWriter<T> {
    /// Begins a pack, if the disk has room for the rows that are expected.
    pub(crate) fn create(
        options: &PackOptions,
        values: usize,
        holder: &Holder,
    ) -> Result<SamplesWriter<T>, PackProblem> {
        let layout = T::layout(values);
        let bytes = (options.n_rows as f64 * layout.row_bytes(0.0)) as u64;
        Ok(SamplesWriter {
            grant: holder.try_grant(block_bytes::<T>(values))?,
            builder: Builder::create(options, layout, bytes, holder)?,
            block: Vec::with_capacity(block_rows::<T>(values) * values),
            values,
        })
    }

    /// Appends a sample; `write` is given its values, all zero.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut [T])) -> Result<(), PackProblem> {
        let at = self.block.len();
        self.block.resize(at + self.values, T::default());
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

    pub(crate) fn finish(mut self) -> Result<SamplesPack<T>, PackProblem> {
        if !self.block.is_empty() {
            self.write_block()?;
        }
        Ok(SamplesPack {
            file: self.builder.finish()?,
            values: self.values,
            holds: PhantomData,
        })
    }
}

/// A complete pack of samples.
pub(crate) struct SamplesPack<T> {
    pub file: PackFile,
    pub values: usize,
    holds: PhantomData<T>,
}

impl<T: Value> SamplesPack<T> {
    /// Opens a pack of samples, however long they are; `None` if there is none.
    pub(crate) fn open(
        store: &PackStore,
        key: PackKey,
        holder: &Holder,
    ) -> Result<Option<SamplesPack<T>>, PackProblem> {
        let Some(layout) = store.layout(key)? else {
            return Ok(None);
        };
        let Some(values) = T::values_of(layout) else {
            return Err(store.damaged(key, format!("it holds {layout}")));
        };
        let file = store.open(key, T::layout(values), holder)?;
        Ok(file.map(|file| SamplesPack {
            file,
            values,
            holds: PhantomData,
        }))
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
    pub(crate) fn each(&self, holder: &Holder, mut take: impl FnMut(&[T])) -> Result<()> {
        let _granted = holder.try_grant(block_bytes::<T>(self.values))?;
        let mut block = vec![T::default(); block_rows::<T>(self.values) * self.values];
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

    pub(crate) fn n_samples(&self) -> u64 {
        self.file.manifest.n_rows
    }

    /// Reads one sample.
    pub(crate) fn read(&self, sample: u64, into: &mut [T]) -> Result<()> {
        let per_block = block_rows::<T>(self.values) as u64;
        let (block, row) = ((sample / per_block) as usize, sample % per_block);
        let at = row * (self.values * size_of::<T>()) as u64;
        self.file.read_part(block, at, bytes_of_mut(into))
    }
}
