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
//!
//! All slots but one only make it quicker. When memory is taken away, they go as they come free, and what comes out is the
//! same.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use tidegate_memory::{Holder, Ledger, Spare, give_freed_memory_back};

use crate::pass::BUFFERS;
use crate::source::{Piece, Place, SourceReader};
use crate::{Error, Result};

/// Where blocks come from: the pieces of a source, or the batches of a pack.
pub(crate) trait Feed: Send {
    /// The memory of one block on its way.
    type Slot: Send;
    /// Where a block stands.
    type Place: Send;
    /// The number of the block that [`Feed::fill`] reads next.
    fn next_piece(&self) -> u64;
    /// Fills a slot with the next block; `None` at the end. `make_room` is called when the budget refuses: it gives
    /// up another slot and says whether there was one.
    fn fill(
        &mut self,
        slot: &mut Self::Slot,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Self::Place>>;
}

/// The memory of one piece of a source on its way, and of what is made of it.
pub(crate) struct Slot<B> {
    pub piece: Piece,
    pub out: B,
}

/// The pieces of a source.
pub(crate) struct SourceFeed<'a, B, P> {
    pub reader: SourceReader<'a>,
    /// Makes what a piece becomes large enough for so many rows; `false` when the budget refuses.
    pub prepare: P,
    pub out: PhantomData<fn(B)>,
}

impl<B: Send, P: FnMut(&mut B, u64) -> bool + Send> Feed for SourceFeed<'_, B, P> {
    type Slot = Slot<B>;
    type Place = Place;

    fn next_piece(&self) -> u64 {
        self.reader.next_piece()
    }

    fn fill(&mut self, slot: &mut Slot<B>, make_room: &mut dyn FnMut() -> bool) -> Result<Option<Place>> {
        let Some(place) = self.reader.read(&mut slot.piece, make_room)? else {
            return Ok(None);
        };
        while !(self.prepare)(&mut slot.out, place.lines) {
            if !make_room() {
                return Err(self.reader.too_large(&place));
            }
        }
        Ok(Some(place))
    }
}

/// The slots of a pass, and the account that has granted them as [`BUFFERS`].
pub(crate) struct Slots<'a, S> {
    pub slots: Vec<S>,
    pub ledger: &'a Ledger,
}

/// What is made of a block.
pub(crate) struct Stages<M, R> {
    pub map: M,
    pub reduce: R,
}

/// A block's turn, and what was made of it or the error that came instead.
type Mapped<P, S, T> = (u64, Result<(P, S, Result<T>)>);

pub(crate) fn run<F, T, M, R, E>(
    feed: F,
    Slots { slots, ledger }: Slots<'_, F::Slot>,
    threads: usize,
    stages: Stages<M, R>,
) -> Result<(), E>
where
    F: Feed,
    T: Send,
    M: Fn(&F::Place, &mut F::Slot) -> Result<T> + Sync,
    R: FnMut(&F::Place, &mut F::Slot, T) -> Result<ControlFlow<()>, E>,
    E: From<Error>,
{
    let Stages { map, mut reduce } = stages;
    let (free, free_slots) = channel();
    let (filled, filled_slots) = channel();
    let (mapped, results) = channel::<Mapped<F::Place, F::Slot, T>>();
    let mut turn = feed.next_piece();
    let n_slots = slots.len();
    for slot in slots {
        // The receiver is in scope: this cannot fail.
        let _ = free.send(slot);
    }
    let filled_slots = Mutex::new(filled_slots);
    std::thread::scope(|scope| {
        let reading = Reading {
            feed,
            free: free_slots,
            filled,
            results: mapped.clone(),
            n_slots,
            ledger,
            holder: ledger.holder(BUFFERS),
            spare: ledger.spare(0),
        };
        scope.spawn(move || reading.run());
        for _ in 0..threads.max(1) {
            let mapped = mapped.clone();
            let (map, filled_slots) = (&map, &filled_slots);
            scope.spawn(move || {
                while let Some((index, place, mut slot)) = next(filled_slots) {
                    let made = map(&place, &mut slot);
                    if mapped.send((index, Ok((place, slot, made)))).is_err() {
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
                if reduce(&place, &mut slot, made?)?.is_break() {
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

/// A block with its turn.
type Filled<P, S> = (u64, P, S);

/// The next filled slot, or `None` when the reader has ended.
fn next<P, S>(filled: &Mutex<Receiver<Filled<P, S>>>) -> Option<Filled<P, S>> {
    // A mapper that panicked while it waited left the queue as it was.
    let queue = filled.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    queue.recv().ok()
}

/// The reader's thread: fills free slots in order.
struct Reading<'a, F: Feed, T> {
    feed: F,
    free: Receiver<F::Slot>,
    filled: Sender<Filled<F::Place, F::Slot>>,
    results: Sender<Mapped<F::Place, F::Slot, T>>,
    n_slots: usize,
    ledger: &'a Ledger,
    holder: Holder,
    spare: Spare,
}

impl<F: Feed, T> Reading<'_, F, T> {
    fn run(mut self) {
        while let Some(mut slot) = self.free_slot() {
            let index = self.feed.next_piece();
            let Reading {
                feed, free, n_slots, ..
            } = &mut self;
            // For a row that needs more than its share, the other slots are given up one by one, for good.
            let mut make_room = || {
                let others = *n_slots > 1 && free.recv().is_ok();
                *n_slots -= usize::from(others);
                others
            };
            match feed.fill(&mut slot, &mut make_room) {
                Ok(Some(place)) => {
                    if self.filled.send((index, place, slot)).is_err() {
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

    /// The next slot that is free; `None` when nobody wants more. Where memory was taken away, those that come free are
    /// given up for good, until that is enough or one is left.
    fn free_slot(&mut self) -> Option<F::Slot> {
        self.tell_spare();
        let mut slot = self.free.recv().ok()?;
        while self.n_slots > 1 && self.ledger.over() > 0 {
            drop(slot);
            give_freed_memory_back();
            self.n_slots -= 1;
            self.tell_spare();
            slot = self.free.recv().ok()?;
        }
        Some(slot)
    }

    /// All slots but one could be done without: about so much of what they have all been granted.
    fn tell_spare(&mut self) {
        let n_slots = self.n_slots.max(1) as u64;
        self.spare.tell(self.holder.held() / n_slots * (n_slots - 1));
    }
}
