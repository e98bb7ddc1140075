//! Slots made ready ahead by several threads and taken in order, with nothing allocated on the way.
//!
//! ```text
//!   assign, in order ──▶ fill, on any thread ──▶ take, in order ──▶ the slot is free again
//! ```
//!
//! The n-th piece of work always uses slot n modulo their number, so that the oldest piece has what it needs and nobody
//! waits on himself.

use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::meter::{Meter, Stage};
use crate::{Error, Result};

/// What is done with a slot.
pub(crate) struct Steps<A, F, T> {
    /// Says what a slot is to hold next, in order; `false` at the end.
    pub assign: A,
    /// Fills the slot, on any thread.
    pub fill: F,
    /// Uses it, in order, on the thread of the caller.
    pub take: T,
}

pub(crate) fn run<S, A, F, T, E>(
    slots: Vec<S>,
    threads: usize,
    meter: &Meter,
    steps: Steps<A, F, T>,
) -> Result<(), E>
where
    S: Send,
    A: FnMut(&mut S) -> bool + Send,
    F: Fn(&mut S) -> Result<()> + Sync,
    T: FnMut(&mut S) -> Result<ControlFlow<()>, E>,
    E: From<Error>,
{
    let Steps {
        assign,
        fill,
        mut take,
    } = steps;
    let ring = Ring {
        turn: Mutex::new(Turn {
            assign,
            assigned: 0,
            taken: 0,
            over: false,
            states: slots.iter().map(|_| State::Empty).collect(),
        }),
        slots: slots.into_iter().map(Mutex::new).collect(),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        let _stop = Stop(&ring, false);
        for _ in 0..threads.clamp(1, ring.slots.len().max(1)) {
            scope.spawn(|| {
                let _stop = Stop(&ring, true);
                ring.fill_slots(meter, &fill);
            });
        }
        while let Some(place) = ring.next_filled(meter)? {
            if take(&mut lock(&ring.slots[place]))?.is_break() {
                break;
            }
            ring.give_back(place);
        }
        Ok(())
    })
}

struct Ring<S, A> {
    turn: Mutex<Turn<A>>,
    slots: Vec<Mutex<S>>,
    changed: Condvar,
}

struct Turn<A> {
    assign: A,
    /// Pieces handed to threads, and pieces used.
    assigned: u64,
    taken: u64,
    /// Nothing more is to be filled: it is the end, or somebody stopped.
    over: bool,
    states: Vec<State>,
}

enum State {
    Empty,
    Filling,
    Filled,
    Failed(Error),
}

impl<S, A: FnMut(&mut S) -> bool> Ring<S, A> {
    /// What a thread does until the end.
    fn fill_slots(&self, meter: &Meter, fill: &impl Fn(&mut S) -> Result<()>) {
        let n_slots = self.slots.len() as u64;
        let mut turn = lock(&self.turn);
        loop {
            while !turn.over && turn.assigned >= turn.taken + n_slots {
                turn = self.wait(turn);
            }
            if turn.over {
                return;
            }
            let place = (turn.assigned % n_slots) as usize;
            let mut slot = lock(&self.slots[place]);
            if !(turn.assign)(&mut slot) {
                turn.over = true;
                self.changed.notify_all();
                return;
            }
            turn.assigned += 1;
            turn.states[place] = State::Filling;
            drop(turn);
            let filled = meter.time(Stage::Read, || fill(&mut slot));
            drop(slot);
            turn = lock(&self.turn);
            turn.states[place] = match filled {
                Ok(()) => State::Filled,
                Err(error) => {
                    // Told in its turn, behind the pieces before it.
                    turn.over = true;
                    State::Failed(error)
                }
            };
            self.changed.notify_all();
        }
    }

    /// The slot of the next piece, once it is filled; `None` behind the last.
    fn next_filled(&self, meter: &Meter) -> Result<Option<usize>> {
        let mut turn = lock(&self.turn);
        loop {
            if turn.over && turn.taken == turn.assigned {
                return Ok(None);
            }
            let place = (turn.taken % self.slots.len() as u64) as usize;
            match std::mem::replace(&mut turn.states[place], State::Empty) {
                State::Filled => return Ok(Some(place)),
                State::Failed(error) => return Err(error),
                state => turn.states[place] = state,
            }
            turn = meter.time(Stage::Wait, || self.wait(turn));
        }
    }

    fn give_back(&self, place: usize) {
        let mut turn = lock(&self.turn);
        turn.states[place] = State::Empty;
        turn.taken += 1;
        self.changed.notify_all();
    }

    fn wait<'a>(&self, turn: MutexGuard<'a, Turn<A>>) -> MutexGuard<'a, Turn<A>> {
        self.changed.wait(turn).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes everybody when its holder is through, so that nobody waits for one who is gone.
struct Stop<'a, S, A>(&'a Ring<S, A>, bool);

impl<S, A> Drop for Stop<'_, S, A> {
    fn drop(&mut self) {
        let Stop(ring, is_thread) = *self;
        if is_thread && !std::thread::panicking() {
            return;
        }
        let mut turn = lock(&ring.turn);
        turn.over = true;
        // What a thread left behind that panicked is never filled.
        if is_thread {
            turn.assigned = turn.taken;
        }
        drop(turn);
        ring.changed.notify_all();
    }
}

/// A panic elsewhere ends the whole run, and what stands behind a poisoned lock is not used any more.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Squares the numbers below `n`, with an error instead of one of them.
    fn squares(n: u64, n_slots: usize, threads: usize, bad: Option<u64>, most: usize) -> Result<Vec<u64>> {
        let (mut next, mut taken) = (0, Vec::new());
        let steps = Steps {
            assign: |slot: &mut u64| {
                *slot = next;
                next += 1;
                next <= n
            },
            fill: |slot: &mut u64| match Some(*slot) == bad {
                true => Err(Error::Changed { path: "x".into() }),
                false => {
                    *slot *= *slot;
                    Ok(())
                }
            },
            take: |slot: &mut u64| {
                taken.push(*slot);
                Ok::<_, Error>(match taken.len() < most {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            },
        };
        run(vec![0; n_slots], threads, &Meter::default(), steps)?;
        Ok(taken)
    }

    #[test]
    fn pieces_come_in_order_from_any_number_of_threads() {
        for (n_slots, threads) in [(1, 1), (1, 4), (2, 2), (3, 2), (8, 4)] {
            for n in [0, 1, 7, 500] {
                let expected: Vec<u64> = (0..n).map(|i| i * i).collect();
                assert_eq!(squares(n, n_slots, threads, None, usize::MAX).unwrap(), expected);
            }
        }
    }

    #[test]
    fn who_takes_may_stop() {
        assert_eq!(squares(1_000, 4, 3, None, 3).unwrap(), [0, 1, 4]);
    }

    #[test]
    fn an_error_is_told_in_its_turn() {
        for threads in [1, 3] {
            assert!(matches!(
                squares(50, 4, threads, Some(9), usize::MAX),
                Err(Error::Changed { .. })
            ));
            // Those before it are taken first.
            assert_eq!(squares(50, 4, threads, Some(9), 9).unwrap().len(), 9);
        }
    }

    #[test]
    fn a_panic_in_a_thread_is_no_hang() {
        let mut left = 10;
        let steps = Steps {
            assign: |_: &mut ()| {
                left -= 1;
                left > 0
            },
            fill: |_: &mut ()| panic!("on purpose"),
            take: |_: &mut ()| Ok::<_, Error>(ControlFlow::Continue(())),
        };
        let run = std::panic::AssertUnwindSafe(|| run(vec![(); 3], 2, &Meter::default(), steps));
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
