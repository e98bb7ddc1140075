//! One pass over a table: pieces are encoded on several threads and reach the caller in order.

use std::marker::PhantomData;
use std::ops::ControlFlow;

use tidegate_memory::{Grant, Ledger};

use crate::batch::{Broken, Unseen};
use crate::chunk::{Chunk, Read, Wanted, shown};
use crate::csv::blocks::TextBuffer;
use crate::encode::{Cells, Encoder, Feature, TextScratch};
use crate::pipeline::{self, Slot, Slots, SourceFeed, Stages};
use crate::sketch::hash::{MISSING, fold};
use crate::source::{Piece, PieceSize, Place, Reading, SourceReader};
use crate::target::{Target, TargetValue};
use crate::{BadRows, Batch, Error, Fault, Holdout, Position, Result, RowCounts, Table};

/// The holder of all that a pass over a table takes: text, decoded rows, encoded rows, the reader's own.
pub const BUFFERS: &str = "data buffers";

/// How to read a table once.
#[derive(Debug, Clone, Copy)]
pub struct PassOptions {
    /// Threads that encode; the result does not depend on it.
    pub threads: usize,
    pub holdout: Holdout,
    /// Where to start, instead of the first row.
    pub start: Option<Position>,
}

/// Pieces of text that wait for each thread. The result does not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadAhead(usize);

impl ReadAhead {
    const CHOICES: [ReadAhead; 4] = [ReadAhead(8), ReadAhead(4), ReadAhead(2), ReadAhead(1)];

    /// Slots for so many threads, and one for the reader. Pieces of typed formats are larger.
    pub(crate) fn slots(self, is_text: bool, threads: usize) -> usize {
        let each = if is_text { self.0 } else { self.0.div_ceil(4) };
        each * threads + 1
    }
}

impl Default for ReadAhead {
    fn default() -> ReadAhead {
        ReadAhead::CHOICES[0]
    }
}

/// The memory that a pass will ask the ledger for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    pub slots: usize,
    pub slot_bytes: u64,
    /// What the reader holds beside the slots.
    pub reader_bytes: u64,
    /// Granted, and not likely to be touched: for rows that are shorter than those of the sample, and behind the last one.
    pub spare_bytes: u64,
}

impl Pass {
    pub fn bytes(&self) -> u64 {
        self.slots as u64 * self.slot_bytes + self.reader_bytes
    }

    /// What the kernel will count of it.
    pub fn likely_bytes(&self) -> u64 {
        self.bytes() - self.spare_bytes
    }
}

/// The rows of a chunk that are used.
#[derive(Debug, Default)]
pub(crate) struct Selected {
    pub rows: Vec<u32>,
    /// One for each of them; empty where the table has no target.
    pub targets: Vec<f64>,
    pub held_out: Vec<bool>,
    pub counts: RowCounts,
}

/// Sizes of one slot: its piece, and what is made of it.
struct SlotSize {
    piece: u64,
    out: u64,
}

impl Table {
    /// Reads ahead as far as it `fits`, or as little as possible.
    pub fn read_ahead_while(&mut self, fits: impl Fn(&Table) -> bool) {
        for ahead in ReadAhead::CHOICES {
            self.ahead = ahead;
            if fits(self) {
                break;
            }
        }
    }

    /// What a pass with so many threads needs, as long as rows keep the size they have in the sample.
    pub fn pass_needs(&self, threads: usize) -> Pass {
        let (size, piece) = (self.slot_size(), self.source.piece_size(&self.reading));
        let slots = self.n_slots(&piece, threads);
        Pass {
            slots,
            slot_bytes: size.piece + size.out,
            reader_bytes: piece.reader + threads as u64 * self.scratch_bytes(),
            spare_bytes: self.spare_bytes(&piece, slots, size.piece + size.out - piece.text),
        }
    }

    /// What the buffers of a pass take: over the pack where there is one, else over the source.
    pub fn buffers(&self, threads: usize) -> Pass {
        let packed = self.pack.as_ref().and_then(|pack| pack.pass_needs(self, threads));
        packed.unwrap_or_else(|| self.pass_needs(threads))
    }

    /// What the pass that fits the encoders needs, before they are chosen.
    pub fn fit_needs(&self, threads: usize) -> Pass {
        let piece = self.source.piece_size(&self.reading);
        let chunk = chunk_bytes(&piece, &self.reading);
        let slots = self.n_slots(&piece, threads);
        Pass {
            slots,
            slot_bytes: chunk + self.fit_bytes(),
            reader_bytes: piece.reader,
            spare_bytes: self.spare_bytes(&piece, slots, chunk - piece.text),
        }
    }

    /// What a pass leaves untouched of slots whose rows have room in so many bytes each.
    fn spare_bytes(&self, piece: &PieceSize, slots: usize, rows_bytes: u64) -> u64 {
        let room = slots as u64 * piece.rows;
        let there = (slots as u64 * piece.likely_rows).min(self.source.rows_guess().unwrap_or(u64::MAX));
        let unused = room.saturating_sub(there) as f64 / room.max(1) as f64;
        (unused * (slots as u64 * rows_bytes) as f64) as u64
    }

    /// As many as are read ahead, but no more than there are pieces.
    fn n_slots(&self, piece: &PieceSize, threads: usize) -> usize {
        let pieces = match (self.pieces, self.source.rows_guess()) {
            (Some(pieces), _) => pieces.max(1),
            // Pieces may be smaller than they could be: a quarter more of them, and two.
            (None, Some(rows)) => rows.saturating_mul(5) / (piece.rows.max(1) * 4) + 2,
            (None, None) => u64::MAX,
        };
        pieces.min(self.ahead.slots(piece.text > 0, threads) as u64) as usize
    }

    /// As many slots as a pass over its pack may have.
    pub(crate) fn packed_slots(&self, threads: usize) -> usize {
        let is_text = self.source.piece_size(&self.reading).text > 0;
        self.ahead.slots(is_text, threads)
    }

    /// What a thread that encodes a piece holds beside its buffers: the rows that it has chosen, with their targets,
    /// the keys of their texts and, where not all rows are chosen, their numbers.
    fn scratch_bytes(&self) -> u64 {
        // Numbers are copied where only some rows are used.
        let copied = |wanted: &&Wanted| wanted.read == Read::Text || !self.filter.is_none();
        let copied = self.reading.wanted.iter().filter(copied).count() as u64;
        self.source.piece_size(&self.reading).rows * (24 + 8 * copied)
    }

    fn slot_size(&self) -> SlotSize {
        let size = self.source.piece_size(&self.reading);
        let row = Batch::row_bytes(self.encoders.width(), self.encoders.sparse_values());
        SlotSize {
            piece: chunk_bytes(&size, &self.reading),
            out: (size.rows as f64 * row) as u64,
        }
    }

    /// What names, encoders and the places of the columns take.
    pub fn columns_bytes(&self) -> u64 {
        self.source.columns().len() as u64 * 512
    }

    /// Streams the table once, from its pack where it has one. `map` runs on several threads, `reduce` on the
    /// calling one, in the order of the source; it may stop the pass. Returns what became of the rows.
    pub fn pass<T, E>(
        &self,
        options: &PassOptions,
        ledger: &Ledger,
        map: impl Fn(&mut Batch) -> T + Sync,
        mut reduce: impl FnMut(&mut Batch, T, Position) -> Result<ControlFlow<()>, E>,
    ) -> Result<RowCounts, E>
    where
        T: Send,
        E: From<Error>,
    {
        match &self.pack {
            Some(pack) => pack.pass(self, options, ledger, &map, &mut reduce),
            None => self.stream(options, ledger, map, reduce),
        }
    }

    /// Streams the source once.
    pub(crate) fn stream<T, E>(
        &self,
        options: &PassOptions,
        ledger: &Ledger,
        map: impl Fn(&mut Batch) -> T + Sync,
        mut reduce: impl FnMut(&mut Batch, T, Position) -> Result<ControlFlow<()>, E>,
    ) -> Result<RowCounts, E>
    where
        T: Send,
        E: From<Error>,
    {
        let batches = ledger.holder(BUFFERS);
        let new_batch = || Batch::new(self.encoders.width(), &batches);
        let scratch = batches.try_grant(options.threads as u64 * self.scratch_bytes());
        let _scratch = scratch.map_err(Error::from)?;
        let (reader, slots) = self.start(&self.reading, options, ledger, self.slot_size(), new_batch)?;
        let sparse_values = self.encoders.sparse_values();
        let mut counts = RowCounts::default();
        let feed = SourceFeed {
            reader,
            prepare: |batch: &mut Batch, rows| batch.reserve(rows, sparse_values),
            out: PhantomData,
        };
        let stages = Stages {
            map: |place: &Place, slot: &mut Slot<Batch>| {
                self.source.decode(place, &self.reading, &mut slot.piece)?;
                self.encode(place, &slot.piece.chunk, &mut slot.out, &options.holdout)?;
                Ok(map(&mut slot.out))
            },
            reduce: |place: &Place, slot: &mut Slot<Batch>, mapped| {
                counts.add(&slot.out.counts);
                reduce(&mut slot.out, mapped, place.end())
            },
        };
        pipeline::run(feed, Slots { slots, ledger }, options.threads, stages)?;
        Ok(counts)
    }

    /// Streams chunks instead of batches: `map` makes something of each, of so many bytes, and `reduce` takes it in
    /// order.
    pub(crate) fn chunks<T: Send>(
        &self,
        reading: &Reading,
        threads: usize,
        made_bytes: u64,
        ledger: &Ledger,
        map: impl Fn(&Place, &Chunk) -> Result<T> + Sync,
        mut reduce: impl FnMut(&Chunk, T, &Place) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let options = PassOptions {
            threads,
            holdout: Holdout::new(0.0, 0),
            start: None,
        };
        let size = SlotSize {
            piece: chunk_bytes(&self.source.piece_size(reading), reading),
            out: made_bytes,
        };
        let holder = ledger.holder(BUFFERS);
        let (reader, slots) = self.start(reading, &options, ledger, size, || {
            Ok(holder.try_grant(made_bytes)?)
        })?;
        let feed = SourceFeed {
            reader,
            prepare: |_: &mut Grant, _rows| true,
            out: PhantomData,
        };
        let stages = Stages {
            map: |place: &Place, slot: &mut Slot<Grant>| {
                self.source.decode(place, reading, &mut slot.piece)?;
                map(place, &slot.piece.chunk)
            },
            reduce: |place: &Place, slot: &mut Slot<Grant>, made| reduce(&slot.piece.chunk, made, place),
        };
        pipeline::run(feed, Slots { slots, ledger }, options.threads, stages)
    }

    /// A reader at the start of the pass and as many slots as the budget allows, one at the least: a row that
    /// needs more than its share is found out by the reader, which can name it.
    fn start<'a, B>(
        &'a self,
        reading: &'a Reading,
        options: &PassOptions,
        ledger: &Ledger,
        size: SlotSize,
        out: impl Fn() -> Result<B>,
    ) -> Result<(SourceReader<'a>, Vec<Slot<B>>)> {
        let holder = ledger.holder(BUFFERS);
        let piece = self.source.piece_size(reading);
        let (is_text, most) = (piece.text > 0, self.n_slots(&piece, options.threads));
        let slot = || -> Result<Slot<B>> {
            let text = is_text.then(|| TextBuffer::new(&holder)).transpose()?;
            let chunk = Chunk::new(&reading.wanted, &reading.missing, &holder)?;
            Ok(Slot {
                piece: Piece { text, chunk },
                out: out()?,
            })
        };
        let reader = self
            .source
            .read(reading, options.start.unwrap_or_default(), ledger)?;
        let mut slots = vec![slot()?];
        let taken_at_once = if is_text { TextBuffer::bytes_needed() } else { 0 };
        while slots.len() < most {
            // The slots made so far will want the rest of their memory too.
            let promised = slots.len() as u64 * (size.piece + size.out).saturating_sub(taken_at_once);
            if slots.len() >= 2 && ledger.free() < promised + size.piece + size.out {
                break;
            }
            match slot() {
                Ok(slot) => slots.push(slot),
                Err(Error::Memory { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok((reader, slots))
    }

    /// Encodes the rows of a chunk into `batch`.
    fn encode(&self, place: &Place, chunk: &Chunk, batch: &mut Batch, holdout: &Holdout) -> Result<()> {
        batch.clear();
        let mut selected = self.select(place, chunk, holdout)?;
        for (i, &row) in selected.rows.iter().enumerate() {
            let line = chunk.lines[row as usize];
            match self.target_column {
                Some(_) => batch.push(line, selected.targets[i], selected.held_out[i]),
                None => batch.push(line, f64::NAN, false),
            }
        }
        batch.counts = std::mem::take(&mut selected.counts);
        let rows = &selected.rows;
        let cells = |(feature, column): (&Feature, &Option<usize>)| match (&feature.encoder, column) {
            // Texts are read row by row.
            (Encoder::Text(_), _) => Cells::Texts,
            (_, Some(column)) => Cells::of(chunk, *column, rows),
            (_, None) => Cells::missing(feature.read, rows.len()),
        };
        let features = || self.encoders.features.iter().zip(&self.feature_columns);
        let cells: Vec<Cells> = features().map(cells).collect();
        if self.target_column.is_none() {
            self.count_unseen(chunk, &cells, &mut batch.counts);
        }
        let width = self.encoders.width();
        if width.dense > 0 {
            let dense = batch.dense_mut();
            let (mut at, mut n_folds, mut folds) = (0, 0, Vec::new());
            for (i, feature) in self.encoders.features.iter().enumerate() {
                let own = feature.encoder.width().dense;
                if own > 0 && !rows.is_empty() {
                    if let Some(of_folds) = &self.folds[i]
                        && of_folds.n_folds() != n_folds
                    {
                        n_folds = of_folds.n_folds();
                        folds = self.folds_of(place, chunk, &selected, n_folds);
                    }
                    let folds = self.folds[i]
                        .as_ref()
                        .map(|of_folds| (of_folds, folds.as_slice()));
                    feature
                        .encoder
                        .encode_dense(&cells[i], folds, &mut dense[at..], width.dense);
                }
                at += own;
            }
        }
        if width.sparse > 0 {
            self.encode_sparse(chunk, rows, &cells, batch)?;
        }
        Ok(())
    }

    /// Counts the rows of a table to predict whose categories training never saw. All its rows are chosen.
    fn count_unseen(&self, chunk: &Chunk, cells: &[Cells], counts: &mut RowCounts) {
        let columns = self.feature_columns.iter().zip(cells);
        for (feature, (column, cells)) in self.encoders.features.iter().zip(columns) {
            let (Some(known), Some(column), Cells::Keys(keys)) = (feature.encoder.known(), column, cells)
            else {
                continue;
            };
            let mut unseen = Unseen::default();
            for (row, key) in keys.iter().enumerate() {
                if *key != MISSING && known.find(*key).is_none() {
                    let text = || chunk.text(*column, row).unwrap_or_default();
                    unseen.count(|| shown(&String::from_utf8_lossy(text())));
                }
            }
            if unseen.rows > 0 {
                counts.unseen.insert(feature.name.clone(), unseen);
            }
        }
    }

    /// Writes the sparse values of the chosen rows.
    fn encode_sparse(&self, chunk: &Chunk, rows: &[u32], cells: &[Cells], batch: &mut Batch) -> Result<()> {
        let mut scratch = TextScratch::default();
        let mut sparse: Vec<(&Encoder, &Cells, Option<usize>, u32)> = Vec::new();
        let mut first = 0;
        for ((feature, &column), cells) in self
            .encoders
            .features
            .iter()
            .zip(&self.feature_columns)
            .zip(cells)
        {
            let own = feature.encoder.width().sparse as u32;
            if own > 0 {
                sparse.push((&feature.encoder, cells, column, first));
            }
            first += own;
        }
        for (i, row) in rows.iter().enumerate() {
            for (encoder, cells, column, first) in &sparse {
                match (encoder, cells) {
                    (Encoder::Dummy(dummy), Cells::Keys(keys)) => {
                        if let Some(place) = dummy.index(keys[i]) {
                            batch.push_sparse(first + place, 1.0)?;
                        }
                    }
                    (Encoder::Hash(hashed), Cells::Keys(keys)) => {
                        if let Some((place, value)) = hashed.index(keys[i]) {
                            batch.push_sparse(first + place, value)?;
                        }
                    }
                    (Encoder::Text(text), _) => {
                        let bytes = column.and_then(|column| chunk.text(column, *row as usize));
                        for (place, value) in text.encode(bytes.unwrap_or_default(), &mut scratch) {
                            batch.push_sparse(first + place, *value)?;
                        }
                    }
                    _ => {}
                }
            }
            batch.end_sparse();
        }
        Ok(())
    }

    /// The fold of every chosen row that is trained on.
    fn folds_of(&self, place: &Place, chunk: &Chunk, selected: &Selected, n_folds: u8) -> Vec<Option<u8>> {
        let fold = |(row, held_out): (&u32, &bool)| {
            let key = row_key(place, chunk.lines[*row as usize]);
            (!held_out).then(|| fold(key, self.fold_seed, n_folds))
        };
        selected.rows.iter().zip(&selected.held_out).map(fold).collect()
    }

    /// The rows of a chunk that are used, with their targets where the table has one.
    pub(crate) fn select(&self, place: &Place, chunk: &Chunk, holdout: &Holdout) -> Result<Selected> {
        let mut selected = Selected::default();
        let counts = &mut selected.counts;
        (counts.bad, counts.first_bad) = (chunk.bad, chunk.first_bad.clone());
        for (at, column) in chunk.columns.iter().enumerate() {
            if let (Some((row, value)), true) = (&column.first_broken, Some(at) != self.target_column) {
                let broken = Broken {
                    count: column.broken,
                    first: (chunk.lines[*row], value.clone()),
                };
                counts.broken.insert(column.name.clone(), broken);
            }
        }
        let Some(target) = self.target_column else {
            counts.rows = chunk.n_rows() as u64;
            selected.rows = (0..chunk.n_rows() as u32).collect();
            return Ok(selected);
        };
        // The text of a broken target, where the chunk has kept it.
        let broken_value = |row| match &chunk.columns[target].first_broken {
            Some((first, value)) if *first == row => value.clone(),
            _ => "…".into(),
        };
        let mut asked: Vec<u32> = Vec::new();
        if self.filter.is_none() {
            asked.extend(0..chunk.n_rows() as u32);
        } else {
            let key = |line| row_key(place, line);
            self.filter.select(chunk, key, |row| asked.push(row as u32));
            counts.not_asked = (chunk.n_rows() - asked.len()) as u64;
        }
        selected.rows.reserve_exact(chunk.n_rows());
        selected.targets.reserve_exact(chunk.n_rows());
        selected.held_out.reserve_exact(chunk.n_rows());
        for row in asked.iter().map(|row| *row as usize) {
            let line = chunk.lines[row];
            match self.encoders.target.value(chunk, target, row) {
                TargetValue::Value(value) => {
                    let held_out = holdout.contains(row_key(place, line));
                    selected.rows.push(row as u32);
                    selected.targets.push(value);
                    selected.held_out.push(held_out);
                    counts.held_out += u64::from(held_out);
                }
                TargetValue::Missing if chunk.is_broken(target, row) => {
                    let value = broken_value(row);
                    if self.reading.bad_rows == BadRows::Fail {
                        return Err(self.bad_target(place, line, &value));
                    }
                    counts.bad += 1;
                    counts.first_bad.get_or_insert((line, self.target_fault(&value)));
                }
                TargetValue::Missing => counts.without_target += 1,
                TargetValue::Other => {
                    let value = match chunk.text(target, row) {
                        Some(text) => shown(&String::from_utf8_lossy(text)),
                        None => chunk.numbers(target)[row].to_string(),
                    };
                    if self.reading.bad_rows == BadRows::Fail {
                        return Err(self.bad_target(place, line, &value));
                    }
                    counts.bad += 1;
                    counts.first_bad.get_or_insert((line, self.target_fault(&value)));
                }
            }
        }
        counts.rows = selected.rows.len() as u64;
        Ok(selected)
    }

    fn bad_target(&self, place: &Place, line: u64, value: &str) -> Error {
        self.source.bad_row(place, line, self.target_fault(value))
    }

    fn target_fault(&self, value: &str) -> Fault {
        let (column, value) = (self.encoders.target_column.clone(), value.to_string());
        match &self.encoders.target {
            Target::Number { .. } => Fault::TargetNotANumber { column, value },
            classes => Fault::OtherValue {
                column,
                value,
                known: classes.labels().iter().map(|label| label.text.clone()).collect(),
            },
        }
    }
}

/// What the text of a piece and its chunk take.
fn chunk_bytes(size: &PieceSize, reading: &Reading) -> u64 {
    size.text + size.texts + size.rows * Chunk::row_bytes(reading.wanted.len())
}

/// A number for a row that no other row of the source has.
pub(crate) fn row_key(place: &Place, line: u64) -> u64 {
    line + ((place.start.part as u64) << 40)
}
