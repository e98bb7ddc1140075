//! Packs of encoded rows: what a pass over the source gives, batch by batch and bit for bit.

use serde::{Deserialize, Serialize};
use tidegate_memory::{Grant, Holder};

use super::bins::checksum;
use super::build::Builder;
use super::read::PackFile;
use super::{Layout, PackKey, PackOptions, PackProblem, PackStore, frame};
use crate::encode::Width;
use crate::pipeline::Feed;
use crate::{Batch, Position, Result, RowCounts};

/// What a pass tells of a batch beside its rows, kept as a note in the batch's message.
#[derive(Debug, Serialize, Deserialize)]
struct Note<C> {
    /// Behind the batch.
    position: Position,
    counts: C,
}

fn layout(width: Width) -> Layout {
    Layout::Rows {
        dense: width.dense,
        sparse: width.sparse,
    }
}

/// The first offset of Arrow's lists, which a batch does not have.
const ZERO: [u8; 4] = [0; 4];

/// The buffers of a batch, as the layout has them.
fn body(batch: &Batch) -> Vec<&[u8]> {
    let mut body = Vec::with_capacity(8);
    if batch.width.dense > 0 {
        body.push(bytes_of(&batch.dense));
    }
    if batch.width.sparse > 0 {
        let (ends, places) = (bytes_of(&batch.ends), bytes_of(&batch.places));
        body.extend([&ZERO, ends, places, bytes_of(&batch.values)]);
    }
    body.push(bytes_of(&batch.targets));
    body.push(bytes_of(&batch.held_out));
    body.push(bytes_of(&batch.lines));
    body
}

/// The checksum of a batch, to be taken on any thread as soon as the batch is made.
pub(crate) fn batch_checksum(batch: &Batch) -> u32 {
    checksum(&body(batch))
}

/// Writes the batches of a pass.
pub(crate) struct RowsWriter {
    builder: Builder,
}

impl RowsWriter {
    pub(crate) fn create(
        options: &PackOptions,
        width: Width,
        sparse_values: f64,
        holder: &Holder,
    ) -> Result<RowsWriter, PackProblem> {
        let layout = layout(width);
        let bytes = (options.n_rows as f64 * layout.row_bytes(sparse_values)) as u64;
        let builder = Builder::create(options, layout, bytes, holder)?;
        Ok(RowsWriter { builder })
    }

    /// Appends the next batch of the pass, which ends at `position`.
    pub(crate) fn push(
        &mut self,
        batch: &Batch,
        position: Position,
        checksum: u32,
    ) -> Result<(), PackProblem> {
        let counts = &batch.counts;
        let note =
            serde_json::to_string(&Note { position, counts }).expect("numbers and texts are always JSON");
        let (n_rows, n_values) = (batch.n_rows(), batch.places.len());
        self.builder
            .push(n_rows, n_values, Some(&note), &body(batch), checksum)
    }

    pub(crate) fn finish(self) -> Result<RowsPack, PackProblem> {
        Ok(RowsPack::new(self.builder.finish()?))
    }
}

/// A complete pack of rows.
pub(crate) struct RowsPack {
    pub file: PackFile,
    /// The largest of all batches.
    n_rows: usize,
    n_values: usize,
}

impl RowsPack {
    fn new(file: PackFile) -> RowsPack {
        let n_rows = file.entries.iter().map(|entry| entry.n_rows).max();
        let n_values = file.entries.iter().map(|entry| entry.n_values).max();
        RowsPack {
            n_rows: n_rows.unwrap_or(0) as usize,
            n_values: n_values.unwrap_or(0) as usize,
            file,
        }
    }

    pub(crate) fn open(
        store: &PackStore,
        key: PackKey,
        width: Width,
        holder: &Holder,
    ) -> Result<Option<RowsPack>, PackProblem> {
        let file = store.open(key, layout(width), holder)?;
        Ok(file.map(RowsPack::new))
    }

    /// As many as are wanted, but no more than there are batches.
    pub(crate) fn n_slots(&self, wanted: usize) -> usize {
        wanted.min(self.file.entries.len()).max(1)
    }

    /// What room for any batch takes.
    pub(crate) fn slot_bytes(&self, width: Width) -> u64 {
        (self.file.largest_header() + self.n_rows) as u64 + Batch::bytes(width, self.n_rows, self.n_values)
    }

    /// Room for any batch.
    pub(crate) fn slot(&self, width: Width, holder: &Holder) -> Result<RowsSlot> {
        let header = self.file.largest_header();
        let grant = holder.try_grant((header + self.n_rows) as u64)?;
        let mut batch = Batch::new(width, holder)?;
        batch.make_room(self.n_rows, self.n_values)?;
        Ok(RowsSlot {
            batch,
            header: Vec::with_capacity(header),
            held_out: Vec::with_capacity(self.n_rows),
            grant,
        })
    }

    /// Starts reading at `start`; `None` where that is no place between two batches of this pack.
    pub(crate) fn feed(&self, start: Position) -> Result<Option<RowsFeed<'_>>> {
        let next = usize::try_from(start.piece).unwrap_or(usize::MAX);
        let known = match next.checked_sub(1) {
            None => start == Position::default(),
            Some(before) if before < self.file.entries.len() => {
                let mut header = vec![0; self.file.entries[before].header_bytes as usize];
                self.file.read_header(before, &mut header)?;
                self.note(before, &header)?.position == start
            }
            Some(_) => false,
        };
        Ok(known.then_some(RowsFeed { pack: self, next }))
    }

    fn note(&self, batch: usize, header: &[u8]) -> Result<Note<RowCounts>> {
        let whole = crc32fast::hash(header) == self.file.entries[batch].header_checksum;
        let note = frame::note(header).filter(|_| whole);
        let note: Option<Note<RowCounts>> = note.and_then(|note| serde_json::from_str(note).ok());
        note.filter(|note| note.position.piece == batch as u64 + 1)
            .ok_or_else(|| self.file.damaged(batch))
    }

    /// Makes sure that what was read into a slot is what was written, on any thread.
    pub(crate) fn check(&self, position: &Position, slot: &mut RowsSlot) -> Result<()> {
        let index = (position.piece - 1) as usize;
        let batch = &mut slot.batch;
        batch.held_out.clear();
        batch.held_out.extend(slot.held_out.iter().map(|byte| *byte != 0));
        let whole = batch_checksum(batch) == self.file.entries[index].body_checksum;
        // Who forged a checksum must not make us read beyond an end.
        let ends = batch.ends.is_sorted()
            && batch
                .ends
                .last()
                .is_none_or(|end| *end as usize == batch.places.len());
        let places = batch
            .places
            .iter()
            .fold(0, |most, place| most.max(*place as usize));
        if !whole || !ends || (places >= batch.width.sparse && !batch.places.is_empty()) {
            return Err(self.file.damaged(index));
        }
        Ok(())
    }
}

/// The memory of one batch on its way.
pub(crate) struct RowsSlot {
    pub batch: Batch,
    header: Vec<u8>,
    /// As bytes: what a file holds need not be a truth value.
    held_out: Vec<u8>,
    #[expect(dead_code, reason = "held for its drop")]
    grant: Grant,
}

/// The batches of a pack, in order.
pub(crate) struct RowsFeed<'p> {
    pack: &'p RowsPack,
    next: usize,
}

impl Feed for RowsFeed<'_> {
    type Slot = RowsSlot;
    type Place = Position;

    fn next_piece(&self) -> u64 {
        self.next as u64
    }

    fn fill(&mut self, slot: &mut RowsSlot, _: &mut dyn FnMut() -> bool) -> Result<Option<Position>> {
        let file = &self.pack.file;
        let Some(entry) = file.entries.get(self.next) else {
            return Ok(None);
        };
        let (n_rows, n_values) = (entry.n_rows as usize, entry.n_values as usize);
        let RowsSlot {
            batch,
            header,
            held_out,
            ..
        } = slot;
        let Width { dense, sparse } = batch.width;
        // Only what was never written before is written here: all of it is about to be read.
        header.resize(entry.header_bytes as usize, 0);
        held_out.resize(n_rows, 0);
        batch.dense.resize(n_rows * dense, 0.0);
        batch.ends.resize(if sparse > 0 { n_rows } else { 0 }, 0);
        batch.places.resize(n_values, 0);
        batch.values.resize(n_values, 0.0);
        batch.targets.resize(n_rows, 0.0);
        batch.lines.resize(n_rows, 0);
        let mut zero = ZERO;
        let mut into: Vec<&mut [u8]> = Vec::with_capacity(8);
        if dense > 0 {
            into.push(bytes_of_mut(&mut batch.dense));
        }
        if sparse > 0 {
            into.push(&mut zero);
            into.push(bytes_of_mut(&mut batch.ends));
            into.push(bytes_of_mut(&mut batch.places));
            into.push(bytes_of_mut(&mut batch.values));
        }
        into.push(bytes_of_mut(&mut batch.targets));
        into.push(held_out);
        into.push(bytes_of_mut(&mut batch.lines));
        file.read(self.next, header, &file.body(self.next), &mut into)?;
        let note = self.pack.note(self.next, header)?;
        batch.counts = note.counts;
        self.next += 1;
        Ok(Some(note.position))
    }
}

/// Numbers without padding, of which any bytes make some.
pub(crate) trait Plain: Copy {}

impl Plain for u8 {}
impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for f32 {}
impl Plain for f64 {}

/// Values as they stand in memory.
pub(super) fn bytes_of<T: Bytes>(values: &[T]) -> &[u8] {
    // SAFETY: the same memory, without padding, and every byte of it is written.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Memory of values, to be written byte by byte.
pub(super) fn bytes_of_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: the same memory, without padding; any bytes are values of `T`.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// Values without padding.
pub(super) trait Bytes: Copy {}

impl<T: Plain> Bytes for T {}
impl Bytes for bool {}

#[cfg(test)]
mod tests {
    use tidegate_memory::Ledger;

    use super::*;
    use crate::Error;

    /// A batch of two rows with checksums that are right, whatever it holds.
    fn read_back(ends: [u32; 2], places: &[u32]) -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let options = PackOptions {
            store: PackStore::at(folder.path()),
            key: PackKey::of(&[]),
            description: String::new(),
            n_rows: 2,
        };
        let (width, holder) = (Width { dense: 1, sparse: 4 }, Ledger::new(8 << 20).holder("pack"));
        let mut batch = Batch::new(width, &holder)?;
        (0..2).for_each(|line| batch.push(line, 0.0, false));
        batch.dense_mut();
        (batch.ends, batch.places) = (ends.into(), places.into());
        batch.values = vec![1.0; places.len()];
        let mut writer = RowsWriter::create(&options, width, 1.0, &holder)?;
        let position = Position {
            piece: 1,
            ..Position::default()
        };
        writer.push(&batch, position, batch_checksum(&batch))?;
        let pack = writer.finish()?;
        let mut slot = pack.slot(width, &holder)?;
        let mut feed = pack.feed(Position::default())?.expect("the first row is a place");
        let position = feed.fill(&mut slot, &mut || false)?.expect("there is a batch");
        pack.check(&position, &mut slot)?;
        assert_eq!(slot.batch.rows().count(), 2);
        Ok(())
    }

    #[test]
    fn a_right_checksum_does_not_make_wrong_places_right() {
        read_back([1, 3], &[0, 3, 2]).unwrap();
        for (ends, places) in [
            ([1, 3], [0, 4, 2]),
            ([3, 1], [0, 1, 2]),
            ([1, 2], [0, 1, 2]),
            ([1, 4], [0, 1, 2]),
        ] {
            let read = read_back(ends, &places);
            assert!(
                matches!(read, Err(Error::PackDamaged { batch: 0, .. })),
                "{ends:?} {places:?}"
            );
        }
    }
}
