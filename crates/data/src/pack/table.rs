//! A table and its pack: the first complete pass writes it, the later ones read it.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_memory::Ledger;

use super::rows::{RowsSlot, batch_checksum};
use super::{PackOptions, PackProblem, RowsFeed, RowsPack, RowsWriter};
use crate::pipeline::{self, Slots, Stages};
use crate::{Batch, Error, Holdout, Pass, PassOptions, Position, Result, RowCounts, Table};

/// The pack of a table, in whatever state it is.
pub struct TablePack {
    options: PackOptions,
    holdout: Holdout,
    state: Mutex<State>,
    problems: Mutex<Vec<PackProblem>>,
}

#[derive(Clone)]
enum State {
    /// The next pass from the first row to the last one writes it.
    Absent,
    Ready(Arc<RowsPack>),
    /// There was no room for it.
    Off,
}

/// How a pass ended early: by the data, or by the caller's own error.
enum Ended<E> {
    Data(Error),
    Caller(E),
}

impl<E> From<Error> for Ended<E> {
    fn from(error: Error) -> Ended<E> {
        Ended::Data(error)
    }
}

impl Table {
    /// Lets the passes of this table that hold out `holdout` read from a pack. Where there is none yet, the first
    /// pass over all rows writes it. Passes give the same batches, counts and positions either way, as long as `map`
    /// leaves its batch as it is.
    pub fn use_pack(&mut self, options: PackOptions, holdout: Holdout, ledger: &Ledger) {
        let opened = RowsPack::open(&options.store, options.key, self.width(), &ledger.holder("pack"));
        let mut problems = Vec::new();
        let state = match opened {
            Ok(Some(pack)) => State::Ready(Arc::new(pack)),
            Ok(None) => State::Absent,
            Err(problem) => {
                let state = State::after(&problem);
                problems.push(problem);
                state
            }
        };
        self.pack = Some(TablePack {
            options,
            holdout,
            state: Mutex::new(state),
            problems: Mutex::new(problems),
        });
    }
}

impl State {
    /// A pack that was damaged is built again; what went wrong otherwise would go wrong again.
    fn after(problem: &PackProblem) -> State {
        match problem {
            PackProblem::Damaged { .. } => State::Absent,
            _ => State::Off,
        }
    }
}

impl TablePack {
    /// Whether the next pass reads from the pack.
    pub fn is_ready(&self) -> bool {
        matches!(*self.state(), State::Ready(_))
    }

    /// The bytes of the pack on disk, when it is ready.
    pub fn bytes(&self) -> Option<u64> {
        match &*self.state() {
            State::Ready(pack) => Some(pack.file.manifest.data_bytes),
            _ => None,
        }
    }

    /// What went wrong since this was asked last; training went on without.
    pub fn take_problems(&self) -> Vec<PackProblem> {
        std::mem::take(&mut *self.problems.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A state is replaced in one step, so it is whole behind a poisoned lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a pass over the pack needs, where there is one.
    pub(crate) fn pass_needs(&self, table: &Table, threads: usize) -> Option<Pass> {
        match &*self.state() {
            State::Ready(pack) => Some(Pass {
                slots: pack.n_slots(table.packed_slots(threads)),
                slot_bytes: pack.slot_bytes(table.width()),
                reader_bytes: 0,
                spare_bytes: 0,
            }),
            _ => None,
        }
    }

    fn problem(&self, problem: PackProblem) {
        *self.state() = State::after(&problem);
        self.problems
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(problem);
    }

    /// One pass over `table`: from the pack, into the pack, or past it.
    pub(crate) fn pass<T, E>(
        &self,
        table: &Table,
        options: &PassOptions,
        ledger: &Ledger,
        map: &(impl Fn(&mut Batch) -> T + Sync),
        reduce: &mut impl FnMut(&mut Batch, T, Position) -> Result<ControlFlow<()>, E>,
    ) -> Result<RowCounts, E>
    where
        T: Send,
        E: From<Error>,
    {
        let state = match options.holdout == self.holdout {
            true => self.state().clone(),
            false => State::Off,
        };
        let start = options.start.unwrap_or_default();
        match state {
            State::Ready(pack) => self.read(&pack, table, options, ledger, map, reduce),
            State::Absent if start == Position::default() => self.write(table, options, ledger, map, reduce),
            _ => table.stream(options, ledger, map, reduce),
        }
    }

    /// Reads the pack. If it turns out damaged, the pass continues from the source where the pack ends to be good.
    fn read<T, E>(
        &self,
        pack: &RowsPack,
        table: &Table,
        options: &PassOptions,
        ledger: &Ledger,
        map: &(impl Fn(&mut Batch) -> T + Sync),
        reduce: &mut impl FnMut(&mut Batch, T, Position) -> Result<ControlFlow<()>, E>,
    ) -> Result<RowCounts, E>
    where
        T: Send,
        E: From<Error>,
    {
        let mut counts = RowCounts::default();
        let mut position = options.start.unwrap_or_default();
        let read = match pack.feed(position) {
            Ok(Some(feed)) => {
                let stages = Stages {
                    map: |position: &Position, slot: &mut RowsSlot| {
                        pack.check(position, slot)?;
                        Ok(map(&mut slot.batch))
                    },
                    reduce: |behind: &Position, slot: &mut RowsSlot, mapped| {
                        counts.add(&slot.batch.counts);
                        position = *behind;
                        reduce(&mut slot.batch, mapped, *behind).map_err(Ended::Caller)
                    },
                };
                run(pack, feed, table, options.threads, ledger, stages)
            }
            // A place that the pack does not know: the source may.
            Ok(None) => return table.stream(options, ledger, map, reduce),
            Err(error) => Err(Ended::Data(error)),
        };
        match read {
            Ok(()) => Ok(counts),
            Err(Ended::Caller(error)) => Err(error),
            Err(Ended::Data(error @ (Error::PackDamaged { .. } | Error::Unreadable { .. }))) => {
                // What cannot be read may not stand in the way of the next one.
                let _ = pack.file.store.remove(pack.file.key);
                self.problem(PackProblem::Damaged {
                    path: pack.file.path(),
                    what: told(&error),
                });
                let options = PassOptions {
                    start: Some(position),
                    ..*options
                };
                counts.add(&table.stream(&options, ledger, map, reduce)?);
                Ok(counts)
            }
            Err(Ended::Data(error)) => Err(error.into()),
        }
    }

    /// Streams the source and writes the pack on the way. A pass that ends early leaves none.
    fn write<T, E>(
        &self,
        table: &Table,
        options: &PassOptions,
        ledger: &Ledger,
        map: &(impl Fn(&mut Batch) -> T + Sync),
        reduce: &mut impl FnMut(&mut Batch, T, Position) -> Result<ControlFlow<()>, E>,
    ) -> Result<RowCounts, E>
    where
        T: Send,
        E: From<Error>,
    {
        let sparse_values = table.encoders.sparse_values();
        let holder = ledger.holder("pack");
        let mut writer = match RowsWriter::create(&self.options, table.width(), sparse_values, &holder) {
            Ok(writer) => Some(writer),
            Err(problem) => {
                self.problem(problem);
                return table.stream(options, ledger, map, reduce);
            }
        };
        let mut counts = RowCounts::default();
        let mut position = Position::default();
        let streamed = table.stream(
            options,
            ledger,
            // Before anybody else sees the batch: should it be changed, the checksum tells.
            |batch| (batch_checksum(batch), map(batch)),
            |batch, (checksum, mapped), behind| {
                let pushed = writer.as_mut().map(|writer| writer.push(batch, behind, checksum));
                if let Some(Err(problem)) = pushed {
                    writer = None;
                    self.problem(problem);
                }
                counts.add(&batch.counts);
                position = behind;
                let flow = reduce(batch, mapped, behind).map_err(Ended::Caller)?;
                if flow.is_break() {
                    writer = None;
                }
                Ok(flow)
            },
        );
        match streamed {
            Ok(_) => {}
            Err(Ended::Caller(error)) => return Err(error),
            // What the pack takes may be just what is missing: it goes first.
            Err(Ended::Data(Error::Memory { .. } | Error::RowTooLarge { .. })) if writer.is_some() => {
                drop(writer);
                self.problem(PackProblem::Memory);
                let options = PassOptions {
                    start: Some(position),
                    ..*options
                };
                counts.add(&table.stream(&options, ledger, map, reduce)?);
                return Ok(counts);
            }
            Err(Ended::Data(error)) => return Err(error.into()),
        }
        match writer.map(RowsWriter::finish) {
            Some(Ok(pack)) => *self.state() = State::Ready(Arc::new(pack)),
            Some(Err(problem)) => self.problem(problem),
            None => {}
        }
        Ok(counts)
    }
}

/// Runs a pass over a pack in as many slots as the budget allows.
fn run<T, E>(
    pack: &RowsPack,
    feed: RowsFeed<'_>,
    table: &Table,
    threads: usize,
    ledger: &Ledger,
    stages: Stages<
        impl Fn(&Position, &mut RowsSlot) -> Result<T> + Sync,
        impl FnMut(&Position, &mut RowsSlot, T) -> Result<ControlFlow<()>, Ended<E>>,
    >,
) -> Result<(), Ended<E>>
where
    T: Send,
{
    let batches = ledger.holder(crate::BUFFERS);
    let mut slots = vec![pack.slot(table.width(), &batches)?];
    while slots.len() < pack.n_slots(table.packed_slots(threads)) {
        match pack.slot(table.width(), &batches) {
            Ok(slot) => slots.push(slot),
            Err(_) => break,
        }
    }
    pipeline::run(feed, Slots { slots, ledger }, threads, stages)
}

/// An error and what caused it.
fn told(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
