//! Batches filled sample by sample on several threads, and taken in order.
//!
//! ```text
//!   assign a batch ──▶ fill its cells, one on any thread ──▶ take the batch, in order ──▶ its room is free again
//! ```
//!
//! All threads work on the batch that is needed next, however large it is, so that one slot is enough for all of them and
//! more of them only read further ahead.

use std::cell::UnsafeCell;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::meter::{Meter, Stage};
use crate::{Error, Result};

/// What is done with cells.
pub(crate) struct Steps<A, M, F, K> {
    /// Says which samples a batch is to hold next, in order; none at the end.
    pub assign: A,
    /// Makes what a thread works with.
    pub make: M,
    /// Fills a cell with a sample, on any thread; `false` if there is no such sample after all.
    pub fill: F,
    /// Uses a batch, in order, on the thread of the caller.
    pub take: K,
}

/// A batch whose cells are filled.
pub(crate) struct Filled<'a, T> {
    pub samples: &'a mut [u64],
    /// Which of the samples there are.
    pub present: &'a [bool],
    /// All cells, one behind the other.
    pub values: &'a [T],
}

/// The room of batches: so many slots of so many cells, each of so many values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub slots: usize,
    pub batch: usize,
    pub cell: usize,
}

impl Extent {
    /// Bytes of a slot whose values have so many bytes each.
    pub(crate) fn slot_bytes(batch: u64, cell: u64, value: u64) -> u64 {
        // The number of each sample, and whether it is there.
        batch.saturating_mul(cell.saturating_mul(value) + 9)
    }
}

pub(crate) fn run<T, W, A, M, F, K, E>(
    extent: Extent,
    threads: usize,
    meter: &Meter,
    steps: Steps<A, M, F, K>,
) -> Result<(), E>
where
    T: Copy + Default + Send + Sync,
    A: FnMut(&mut Vec<u64>) + Send,
    M: Fn() -> W + Sync,
    F: Fn(&mut W, u64, &mut [T]) -> Result<bool> + Sync,
    K: FnMut(Filled<'_, T>) -> Result<ControlFlow<()>, E>,
    E: From<Error>,
{
    let Steps {
        assign,
        make,
        fill,
        mut take,
    } = steps;
    let ring = Ring {
        turn: Mutex::new(Turn {
            assign,
            slots: (0..extent.slots.max(1))
                .map(|_| Slot {
                    samples: Vec::with_capacity(extent.batch),
                    present: Vec::with_capacity(extent.batch),
                    left: 0,
                })
                .collect(),
            assigned: 0,
            ungiven: 0,
            taken: 0,
            at_work: 0,
            over: false,
            failed: None,
        }),
        rooms: (0..extent.slots.max(1))
            .map(|_| Room::new(extent.batch * extent.cell))
            .collect(),
        cell: extent.cell,
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        let _stop = Stop(&ring);
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                let _stop = Stop(&ring);
                ring.work(&mut make(), &fill);
            });
        }
        while let Some(turn) = ring.next_filled(meter)? {
            let place = (turn.taken % ring.rooms.len() as u64) as usize;
            // Taken out for as long as they are used, so that threads can go on with other batches meanwhile.
            let mut slot = ring.lend(turn, place);
            // SAFETY: the batch is filled: no thread touches its room before it is given back.
            let values = unsafe { ring.rooms[place].read(slot.samples.len() * ring.cell) };
            let taken = take(Filled {
                samples: &mut slot.samples,
                present: &slot.present,
                values,
            });
            let broken_off = taken?.is_break();
            ring.give_back(place, slot);
            if broken_off {
                break;
            }
        }
        Ok(())
    })
}

/// Values that threads write to, each to a part of its own.
struct Room<T>(Box<[UnsafeCell<T>]>);

// SAFETY: a cell is written by the one thread that it was given to, and read by the caller's thread once all cells of
// the batch are written; the lock that says so orders both.
unsafe impl<T: Send + Sync> Sync for Room<T> {}

impl<T: Copy + Default> Room<T> {
    fn new(len: usize) -> Room<T> {
        Room((0..len).map(|_| UnsafeCell::new(T::default())).collect())
    }

    /// # Safety
    ///
    /// Nobody else may use this part meanwhile.
    #[expect(clippy::mut_from_ref, reason = "parts are told apart by the lock beside")]
    unsafe fn write(&self, at: usize, len: usize) -> &mut [T] {
        let part = &self.0[at..at + len];
        // SAFETY: it is within the room, and the caller's alone.
        unsafe { std::slice::from_raw_parts_mut(UnsafeCell::raw_get(part.as_ptr()), len) }
    }

    /// # Safety
    ///
    /// Nobody may write to it meanwhile.
    unsafe fn read(&self, len: usize) -> &[T] {
        let part = &self.0[..len];
        // SAFETY: it is within the room, and nobody writes.
        unsafe { std::slice::from_raw_parts(UnsafeCell::raw_get(part.as_ptr()), len) }
    }
}

struct Ring<T, A> {
    turn: Mutex<Turn<A>>,
    rooms: Vec<Room<T>>,
    cell: usize,
    changed: Condvar,
}

#[derive(Default)]
struct Slot {
    samples: Vec<u64>,
    present: Vec<bool>,
    /// Cells that are not filled yet.
    left: usize,
}

struct Turn<A> {
    assign: A,
    slots: Vec<Slot>,
    /// Batches assigned, cells of the last one that no thread was given yet, and batches used.
    assigned: u64,
    ungiven: usize,
    taken: u64,
    /// Cells that threads are filling now.
    at_work: usize,
    /// Nothing more is to be filled: it is the end, or somebody stopped.
    over: bool,
    /// The first cell that could not be filled, by its batch and its place in it, and why.
    failed: Option<((u64, usize), Error)>,
}

impl<A: FnMut(&mut Vec<u64>)> Turn<A> {
    /// The next cell to fill: slot, place in it, and sample; `None` if there is none for now.
    fn next_cell(&mut self) -> Option<(usize, usize, u64)> {
        let n_slots = self.slots.len() as u64;
        if self.ungiven == 0 {
            if self.over || self.assigned >= self.taken + n_slots {
                return None;
            }
            let slot = &mut self.slots[(self.assigned % n_slots) as usize];
            slot.samples.clear();
            (self.assign)(&mut slot.samples);
            let n = slot.samples.len();
            if n == 0 {
                self.over = true;
                return None;
            }
            slot.present.clear();
            slot.present.resize(n, true);
            slot.left = n;
            self.ungiven = n;
            self.assigned += 1;
        }
        // A batch with a cell to fill is not lent out.
        let at = ((self.assigned - 1) % n_slots) as usize;
        let samples = &self.slots[at].samples;
        let place = samples.len() - self.ungiven;
        self.ungiven -= 1;
        Some((at, place, samples[place]))
    }
}

impl<T: Copy + Default, A: FnMut(&mut Vec<u64>)> Ring<T, A> {
    /// What a thread does until the end.
    fn work<W>(&self, worker: &mut W, fill: &impl Fn(&mut W, u64, &mut [T]) -> Result<bool>) {
        let mut turn = lock(&self.turn);
        loop {
            if turn.failed.is_some() {
                return;
            }
            let Some((slot, place, sample)) = turn.next_cell() else {
                if turn.over {
                    self.changed.notify_all();
                    return;
                }
                turn = self.wait(turn);
                continue;
            };
            let batch = turn.assigned - 1;
            turn.at_work += 1;
            drop(turn);
            // SAFETY: this cell was given to this thread alone, and its batch is not taken before it is filled.
            let cell = unsafe { self.rooms[slot].write(place * self.cell, self.cell) };
            let filled = fill(worker, sample, cell);
            turn = lock(&self.turn);
            turn.at_work -= 1;
            if turn.failed.is_some() {
                self.changed.notify_all();
            }
            match filled {
                Ok(present) => {
                    let slot = &mut turn.slots[slot];
                    slot.present[place] = present;
                    slot.left -= 1;
                    if slot.left == 0 {
                        self.changed.notify_all();
                    }
                }
                Err(error) => {
                    turn.over = true;
                    // Of several, the first in the order of samples is told, behind the batches before it.
                    let cell = (batch, place);
                    if turn.failed.as_ref().is_none_or(|(other, _)| cell < *other) {
                        turn.failed = Some((cell, error));
                    }
                    self.changed.notify_all();
                    return;
                }
            }
        }
    }

    /// Waits for the next batch; `None` behind the last.
    fn next_filled(&self, meter: &Meter) -> Result<Option<MutexGuard<'_, Turn<A>>>> {
        let mut turn = lock(&self.turn);
        loop {
            let n_slots = turn.slots.len() as u64;
            let (taken, at_work) = (turn.taken, turn.at_work);
            // Cells are given out in order: one before it that fails, too, is among those being filled.
            let is_told = |failed: &mut ((u64, usize), Error)| failed.0.0 == taken && at_work == 0;
            if let Some((_, error)) = turn.failed.take_if(is_told) {
                return Err(error);
            }
            if turn.taken < turn.assigned && turn.slots[(turn.taken % n_slots) as usize].left == 0 {
                return Ok(Some(turn));
            }
            if turn.over && turn.taken == turn.assigned {
                return Ok(None);
            }
            turn = meter.time(Stage::Wait, || self.wait(turn));
        }
    }

    fn lend(&self, mut turn: MutexGuard<'_, Turn<A>>, place: usize) -> Slot {
        std::mem::take(&mut turn.slots[place])
    }

    fn give_back(&self, place: usize, slot: Slot) {
        let mut turn = lock(&self.turn);
        turn.slots[place] = slot;
        turn.taken += 1;
        self.changed.notify_all();
    }

    fn wait<'a>(&self, turn: MutexGuard<'a, Turn<A>>) -> MutexGuard<'a, Turn<A>> {
        self.changed.wait(turn).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes everybody when its holder is through, so that nobody waits for one who is gone.
struct Stop<'a, T, A>(&'a Ring<T, A>);

impl<T, A> Drop for Stop<'_, T, A> {
    fn drop(&mut self) {
        let mut turn = lock(&self.0.turn);
        turn.over = true;
        // What a thread left behind that panicked is never filled.
        if std::thread::panicking() {
            turn.assigned = turn.taken;
        }
        drop(turn);
        self.0.changed.notify_all();
    }
}

/// A panic elsewhere ends the whole run, and what stands behind a poisoned lock is not used any more.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: Extent = Extent {
        slots: 3,
        batch: 4,
        cell: 2,
    };

    /// Squares and cubes of the numbers below `n`, without multiples of `gap`, with an error at `bad`.
    fn powers(
        n: u64,
        gap: u64,
        bad: Option<u64>,
        extent: Extent,
        threads: usize,
        most: usize,
    ) -> Result<Vec<(u64, u64)>> {
        let (mut next, mut taken) = (0, Vec::new());
        let steps = Steps {
            assign: |samples: &mut Vec<u64>| {
                samples.extend((next..n).take(extent.batch));
                next += samples.len() as u64;
            },
            make: || (),
            fill: |(): &mut (), sample: u64, cell: &mut [u64]| {
                if bad == Some(sample) {
                    return Err(Error::Changed { path: "x".into() });
                }
                cell.copy_from_slice(&[sample * sample, sample.pow(3)]);
                Ok(!sample.is_multiple_of(gap))
            },
            take: |batch: Filled<'_, u64>| {
                let cells = batch.values.chunks_exact(2).zip(batch.present);
                taken.extend(
                    cells
                        .filter(|(_, present)| **present)
                        .map(|(cell, _)| (cell[0], cell[1])),
                );
                Ok::<_, Error>(match taken.len() < most {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            },
        };
        run(extent, threads, &Meter::default(), steps)?;
        Ok(taken)
    }

    #[test]
    fn samples_come_in_order_from_any_number_of_threads() {
        for slots in [1, 2, 5] {
            for threads in [1, 2, 7] {
                for n in [0u64, 1, 4, 5, 403] {
                    let extent = Extent { slots, ..EXTENT };
                    let expected: Vec<(u64, u64)> =
                        (0..n).filter(|i| i % 5 != 0).map(|i| (i * i, i.pow(3))).collect();
                    assert_eq!(powers(n, 5, None, extent, threads, usize::MAX).unwrap(), expected);
                }
            }
        }
    }

    #[test]
    fn who_takes_may_stop() {
        assert_eq!(powers(1_000, 1_001, None, EXTENT, 3, 4).unwrap().len(), 7);
    }

    #[test]
    fn an_error_is_told_behind_the_batches_before_it() {
        for threads in [1, 3] {
            let failed = |most| powers(50, 51, Some(9), EXTENT, threads, most);
            assert!(matches!(failed(usize::MAX), Err(Error::Changed { .. })));
            assert_eq!(failed(7).unwrap().len(), 7);
        }
    }

    #[test]
    fn a_panic_in_a_thread_is_no_hang() {
        let steps = Steps {
            assign: |samples: &mut Vec<u64>| samples.extend(0..4),
            make: || (),
            fill: |(): &mut (), sample: u64, _: &mut [u8]| match sample {
                3 => panic!("on purpose"),
                _ => Ok(true),
            },
            take: |_: Filled<'_, u8>| Ok::<_, Error>(ControlFlow::Continue(())),
        };
        let run = std::panic::AssertUnwindSafe(|| run(EXTENT, 2, &Meter::default(), steps));
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
