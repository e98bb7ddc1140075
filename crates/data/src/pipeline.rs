//! Blocks through several threads and out again in order, in a fixed set of granted buffers.
//!
//! ```text
//!            free slots ◀───────────────────────────────┐
//!   reader ──▶ slot with rows ──▶ mappers (threads) ──▶ reducer, in the order of the file
//! ```
//!
//! A slot holds a piece of the source and what the mapper makes of it. The number of slots bounds the memory
//! and is the backpressure: the reader waits for a free one. Slots are admitted in order, so the oldest
//! block always has all it needs and the pipeline cannot wait on itself.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::source::{Piece, Place, SourceReader};
use crate::{Error, Result};

/// The memory of one block on its way.
pub(crate) struct Slot<B> {
    pub piece: Piece,
    pub out: B,
}

/// What is made of a block.
pub(crate) struct Stages<P, M, R> {
    /// Makes `out` large enough for so many rows, on the reader's thread; `false` when the budget refuses.
    pub prepare: P,
    pub map: M,
    pub reduce: R,
}

/// A block's turn, and what was made of it or the error that came instead.
type Mapped<B, T> = (u64, Result<(Place, Slot<B>, Result<T>)>);

pub(crate) fn run<B, T, P, M, R, E>(
    reader: SourceReader<'_>,
    slots: Vec<Slot<B>>,
    threads: usize,
    stages: Stages<P, M, R>,
) -> Result<(), E>
where
    B: Send,
    T: Send,
    P: FnMut(&mut B, u64) -> bool + Send,
    M: Fn(&Place, &mut Piece, &mut B) -> Result<T> + Sync,
    R: FnMut(&Place, &mut Piece, &mut B, T) -> Result<ControlFlow<()>, E>,
    E: From<Error>,
{
    let Stages {
        prepare,
        map,
        mut reduce,
    } = stages;
    let (free, free_slots) = channel();
    let (filled, filled_slots) = channel();
    let (mapped, results) = channel::<Mapped<B, T>>();
    let mut turn = reader.next_piece();
    let n_slots = slots.len();
    for slot in slots {
        // The receiver is in scope: this cannot fail.
        let _ = free.send(slot);
    }
    let filled_slots = Mutex::new(filled_slots);
    std::thread::scope(|scope| {
        let reading = Reading {
            reader,
            prepare,
            free: free_slots,
            filled,
            results: mapped.clone(),
            n_slots,
        };
        scope.spawn(move || reading.run());
        for _ in 0..threads.max(1) {
            let mapped = mapped.clone();
            let (map, filled_slots) = (&map, &filled_slots);
            scope.spawn(move || {
                while let Some((place, mut slot)) = next(filled_slots) {
                    let made = map(&place, &mut slot.piece, &mut slot.out);
                    if mapped.send((place.start.piece, Ok((place, slot, made)))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(mapped);
        // An early return drops `free` and `results`, which lets every thread run out.
        let (free, results) = (free, results);
        let mut waiting = BTreeMap::new();
        for (index, result) in results {
            waiting.insert(index, result);
            while let Some(result) = waiting.remove(&turn) {
                turn += 1;
                let (place, mut slot, made) = result?;
                if reduce(&place, &mut slot.piece, &mut slot.out, made?)?.is_break() {
                    return Ok(());
                }
                // The reader may have ended already.
                let _ = free.send(slot);
            }
        }
        debug_assert!(waiting.is_empty(), "every block has its turn");
        Ok(())
    })
}

/// The next filled slot, or `None` when the reader has ended.
fn next<B>(filled: &Mutex<Receiver<(Place, Slot<B>)>>) -> Option<(Place, Slot<B>)> {
    // A mapper that panicked while it waited left the queue as it was.
    let queue = filled.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    queue.recv().ok()
}

/// The reader's thread: fills free slots in order.
struct Reading<'s, B, T, P> {
    reader: SourceReader<'s>,
    prepare: P,
    free: Receiver<Slot<B>>,
    filled: Sender<(Place, Slot<B>)>,
    results: Sender<Mapped<B, T>>,
    n_slots: usize,
}

impl<B, T, P: FnMut(&mut B, u64) -> bool> Reading<'_, B, T, P> {
    fn run(mut self) {
        while let Ok(slot) = self.free.recv() {
            let index = self.reader.next_piece();
            match self.fill(slot) {
                Ok(Some(filled)) => {
                    if self.filled.send(filled).is_err() {
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    // Reported in its turn, behind the blocks before it.
                    let _ = self.results.send((index, Err(error)));
                    return;
                }
            }
        }
    }

    fn fill(&mut self, mut slot: Slot<B>) -> Result<Option<(Place, Slot<B>)>> {
        let Reading {
            reader,
            prepare,
            free,
            n_slots,
            ..
        } = self;
        // For a row that needs more than its share, the other slots are given up one by one, for good.
        let mut make_room = || {
            let others = *n_slots > 1 && free.recv().is_ok();
            *n_slots -= usize::from(others);
            others
        };
        let Some(place) = reader.read(&mut slot.piece, &mut make_room)? else {
            return Ok(None);
        };
        while !prepare(&mut slot.out, place.lines) {
            if !make_room() {
                return Err(reader.too_large(&place));
            }
        }
        Ok(Some((place, slot)))
    }
}
