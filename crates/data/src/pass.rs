//! One pass over a table: blocks are encoded on several threads and reach the caller in order.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use tidegate_memory::{Holder, Ledger};

pub use crate::batch::RowCounts;
use crate::csv::blocks::{BlockReader, Place, TextBuffer};
use crate::csv::rows::{RowSink, unquote, walk_rows};
use crate::number::{Number, parse_number};
use crate::pipeline::{self, Slot, Stages};
use crate::profile::{is_missing_or, is_word};
use crate::target::{Label, Target, TargetValue};
use crate::{BadRows, Batch, Compression, Error, Fault, Holdout, Result, Table};

/// How to read a table once.
#[derive(Debug, Clone, Copy)]
pub struct PassOptions {
    /// Threads that encode; the result does not depend on it.
    pub threads: usize,
    pub holdout: Holdout,
    /// Where to start, instead of the first row.
    pub start: Option<PassPosition>,
}

/// A place between two blocks: where a pass can be taken up again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassPosition {
    /// Blocks before this place.
    pub block: u64,
    pub line: u64,
    /// Bytes of decompressed text before this place.
    pub offset: u64,
    /// Bytes of the file read from disk so far.
    pub consumed: u64,
}

/// The memory that a pass will ask the ledger for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    pub slots: usize,
    pub slot_bytes: u64,
}

impl Table {
    /// What a pass with so many threads needs: two slots a thread and one for the reader, as long as rows
    /// keep the size they have in the sample.
    pub fn pass_needs(&self, threads: usize) -> Pass {
        let text = match self.input.compression() {
            Compression::Plain => TextBuffer::bytes_needed().min(self.input.bytes()),
            Compression::Gzip | Compression::Zstd => TextBuffer::bytes_needed(),
        };
        let rows = (text as f64 / self.row_text_bytes.max(1.0)).ceil() as u64;
        // A quarter more rows than the sample says, for blocks of shorter rows.
        let batch = (rows + rows / 4 + 1) * Batch::row_bytes(self.encoders.width());
        Pass {
            slots: 2 * threads + 1,
            slot_bytes: TextBuffer::bytes_needed() + batch,
        }
    }

    /// What names, encoders and the places of the columns take.
    pub fn columns_bytes(&self) -> u64 {
        self.columns.len() as u64 * 512
    }

    /// Streams the table once. `map` runs on several threads, `reduce` on the calling one, in the order of
    /// the file; it may stop the pass. Returns what became of the rows.
    pub fn pass<T, E>(
        &self,
        options: &PassOptions,
        ledger: &Ledger,
        map: impl Fn(&mut Batch) -> T + Sync,
        mut reduce: impl FnMut(&mut Batch, T, PassPosition) -> Result<ControlFlow<()>, E>,
    ) -> Result<RowCounts, E>
    where
        T: Send,
        E: From<Error>,
    {
        let (texts, batches) = (ledger.holder("text"), ledger.holder("batches"));
        let new_batch = || Batch::new(self.encoders.width(), &batches);
        let (reader, slots) = self.start(options, &texts, ledger, new_batch)?;
        let mut counts = RowCounts::default();
        let stages = Stages {
            prepare: |batch: &mut Batch, lines| batch.reserve(lines),
            map: |place: &Place, padded: &[u8], end, batch: &mut Batch| {
                self.encode(place, padded, end, batch, &options.holdout)?;
                Ok(map(batch))
            },
            reduce: |place: &Place, batch: &mut Batch, mapped| {
                counts.add(&batch.counts);
                reduce(batch, mapped, after(place))
            },
        };
        pipeline::run(reader, slots, options.threads, stages)?;
        Ok(counts)
    }

    /// Streams the distinct values of the target, a few of each block.
    pub(crate) fn target_values(
        &self,
        options: &PassOptions,
        ledger: &Ledger,
        mut seen: impl FnMut(Vec<String>) -> ControlFlow<()>,
    ) -> Result<()> {
        let texts = ledger.holder("text");
        let (reader, slots) = self.start(options, &texts, ledger, || Ok(()))?;
        let column = self.target_column.unwrap_or(usize::MAX);
        let stages = Stages {
            prepare: |_: &mut (), _lines| true,
            map: |place: &Place, padded: &[u8], end, _: &mut ()| {
                let mut sink = TargetValues {
                    table: self,
                    column,
                    skip_first: self.skips_first(place),
                    values: Vec::new(),
                };
                walk_rows(padded, end, place.line, &self.dialect, &mut sink);
                Ok(sink.values)
            },
            reduce: |_: &Place, _: &mut (), values| Ok(seen(values)),
        };
        pipeline::run(reader, slots, options.threads, stages)
    }

    /// A reader at the start of the pass and as many slots as the budget allows, two at the least.
    fn start<B>(
        &self,
        options: &PassOptions,
        texts: &Holder,
        ledger: &Ledger,
        out: impl Fn() -> Result<B>,
    ) -> Result<(BlockReader, Vec<Slot<B>>)> {
        let needs = self.pass_needs(options.threads);
        let start = options.start.map(|at| Place {
            index: at.block,
            line: at.line,
            lines: 0,
            offset: at.offset,
            bytes: 0,
            consumed: at.consumed,
        });
        let reader = BlockReader::new(&self.input, &self.dialect, texts, ledger.budget(), start)?;
        let mut slots = vec![Slot {
            text: TextBuffer::new(texts)?,
            out: out()?,
        }];
        while slots.len() < needs.slots {
            // The slots made so far will want their batches too.
            let promised = slots.len() as u64 * (needs.slot_bytes - TextBuffer::bytes_needed());
            if slots.len() >= 2 && ledger.free() < promised + needs.slot_bytes {
                break;
            }
            slots.push(Slot {
                text: TextBuffer::new(texts)?,
                out: out()?,
            });
        }
        Ok((reader, slots))
    }

    fn skips_first(&self, place: &Place) -> bool {
        place.index == 0 && self.dialect.header
    }

    /// Encodes the rows of a block into `batch`.
    fn encode(
        &self,
        place: &Place,
        padded: &[u8],
        end: usize,
        batch: &mut Batch,
        holdout: &Holdout,
    ) -> Result<()> {
        batch.clear();
        let mut outputs = vec![Output::Skip; self.columns.len()];
        let mut at = 0;
        for (feature, &column) in self.encoders.features.iter().zip(&self.feature_columns) {
            let scale = feature.scale;
            let flag = scale.flag_missing.then_some(at + 1);
            outputs[column] = Output::Feature {
                at,
                flag,
                mean: scale.mean,
                inverse: 1.0 / scale.deviation,
            };
            at += scale.width();
        }
        if let Some(column) = self.target_column {
            outputs[column] = Output::Target;
        }
        let mut encoding = Encoding {
            table: self,
            holdout,
            outputs,
            row: vec![0.0; batch.width()],
            batch,
            active: !self.skips_first(place),
            usual_words: self.missing.is_empty(),
            // Whole blocks are checked at once; only a block that fails is checked row by row.
            check_utf8: std::str::from_utf8(&padded[..end]).is_err(),
            line: 0,
            target: None,
            fault: None,
            failed: None,
        };
        walk_rows(padded, end, place.line, &self.dialect, &mut encoding);
        match encoding.failed {
            Some((line, fault)) => Err(Error::BadRow {
                path: self.input.path().into(),
                line,
                fault: fault.into(),
            }),
            None => Ok(()),
        }
    }
}

fn after(place: &Place) -> PassPosition {
    PassPosition {
        block: place.index + 1,
        line: place.line + place.lines,
        offset: place.offset + place.bytes,
        consumed: place.consumed,
    }
}

/// Where a column's value goes.
#[derive(Clone, Copy)]
enum Output {
    Skip,
    Feature {
        at: usize,
        flag: Option<usize>,
        mean: f64,
        inverse: f64,
    },
    Target,
}

/// Encodes the rows of one block.
struct Encoding<'t> {
    table: &'t Table,
    holdout: &'t Holdout,
    outputs: Vec<Output>,
    batch: &'t mut Batch,
    /// The encoded values of the row at hand.
    row: Vec<f32>,
    /// Fields are of interest: neither those of the header nor those behind a fatal row.
    active: bool,
    /// Only the usual words stand for missing values, none of which is a number.
    usual_words: bool,
    check_utf8: bool,
    /// The row at hand: its line, its target, what is wrong with it.
    line: u64,
    target: Option<f64>,
    fault: Option<Fault>,
    /// The first bad row, where those are fatal.
    failed: Option<(u64, Fault)>,
}

impl Encoding<'_> {
    #[cold]
    fn odd_value(&mut self, column: usize, field: &[u8], flag: Option<usize>) {
        if is_missing_or(field, &self.table.missing) {
            if let Some(flag) = flag {
                self.row[flag] = 1.0;
            }
            return;
        }
        let column = self.table.columns[column].clone();
        let value = shown(field, self.table.dialect.quote);
        let fault = match parse_number(field) {
            Number::Infinite => Fault::Infinite { column, value },
            _ => Fault::NotANumber { column, value },
        };
        self.fault.get_or_insert(fault);
    }

    #[cold]
    fn odd_target(&mut self, column: usize, field: &[u8], read: TargetValue) {
        if read == TargetValue::Missing || is_missing_or(field, &self.table.missing) {
            return;
        }
        let column = self.table.columns[column].clone();
        let value = shown(field, self.table.dialect.quote);
        let fault = match &self.table.encoders.target {
            Target::Number { .. } => Fault::TargetNotANumber { column, value },
            Target::Binary { negative, positive } => Fault::ThirdValue {
                column,
                value,
                negative: negative.text.clone(),
                positive: positive.text.clone(),
            },
        };
        self.fault.get_or_insert(fault);
    }

    #[cold]
    fn bad_row(&mut self, fault: Fault) {
        match self.table.bad_rows {
            BadRows::Fail => {
                self.failed = Some((self.line, fault));
                self.active = false;
            }
            BadRows::Skip => {
                self.batch.counts.bad += 1;
                self.batch.counts.first_bad.get_or_insert((self.line, fault));
            }
        }
    }

    /// The column that holds the first byte of `row` which is not UTF-8.
    fn not_utf8(&self, row: &[u8]) -> Option<Fault> {
        let error = std::str::from_utf8(row).err()?;
        let separators =
            memchr::memchr_iter(self.table.dialect.delimiter, &row[..error.valid_up_to()]).count();
        let column = self.table.columns.get(separators).cloned().unwrap_or_default();
        Some(Fault::NotUtf8 { column })
    }
}

impl RowSink for Encoding<'_> {
    #[inline(always)]
    fn begin_row(&mut self, line: u64) {
        if self.failed.is_some() {
            return;
        }
        self.line = line;
        self.target = None;
        self.row.fill(0.0);
    }

    #[inline(always)]
    fn field(&mut self, column: usize, bytes: &[u8]) {
        if !self.active {
            return;
        }
        match self.outputs.get(column) {
            Some(&Output::Feature {
                at,
                flag,
                mean,
                inverse,
            }) => match parse_number(bytes) {
                Number::Value(value) if self.usual_words || !is_word(bytes, &self.table.missing) => {
                    self.row[at] = ((value - mean) * inverse) as f32;
                }
                _ => self.odd_value(column, bytes, flag),
            },
            Some(Output::Target) => match self.table.encoders.target.read(bytes) {
                TargetValue::Value(value) if self.usual_words || !is_word(bytes, &self.table.missing) => {
                    self.target = Some(value);
                }
                read => self.odd_target(column, bytes, read),
            },
            _ => {}
        }
    }

    #[inline(always)]
    fn end_row(&mut self, fields: usize, row: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        let mut fault = self.fault.take();
        if !std::mem::replace(&mut self.active, true) {
            return;
        }
        if fields != self.outputs.len() {
            fault = Some(Fault::Ragged {
                expected: self.outputs.len(),
                found: fields,
            });
        }
        if self.check_utf8 {
            fault = self.not_utf8(row).or(fault);
        }
        if let Some(fault) = fault {
            return self.bad_row(fault);
        }
        match (self.target, self.table.target_column) {
            (Some(target), _) => {
                let held_out = self.holdout.contains(self.line);
                self.batch.push(&self.row, self.line, target, held_out);
            }
            (None, None) => self.batch.push(&self.row, self.line, f64::NAN, false),
            (None, Some(_)) => self.batch.counts.without_target += 1,
        }
    }
}

/// A value as an error shows it: at most 40 characters.
fn shown(field: &[u8], quote: Option<u8>) -> String {
    let text = unquote(field, quote);
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Collects distinct values of the target, two at most.
struct TargetValues<'t> {
    table: &'t Table,
    column: usize,
    skip_first: bool,
    values: Vec<String>,
}

impl RowSink for TargetValues<'_> {
    fn begin_row(&mut self, _line: u64) {}

    fn field(&mut self, column: usize, bytes: &[u8]) {
        if column != self.column
            || self.skip_first
            || self.values.len() >= 2
            || is_missing_or(bytes, &self.table.missing)
        {
            return;
        }
        let value = unquote(bytes, self.table.dialect.quote);
        if !self.values.iter().any(|known| Label::new(known).matches(bytes)) {
            self.values.push(value);
        }
    }

    fn end_row(&mut self, _fields: usize, _row: &[u8]) {
        self.skip_first = false;
    }
}
