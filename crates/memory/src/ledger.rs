//! The account of the budget: named holders ask for bytes, grants hold them, dropping a grant gives back.
//!
//! # Scenarios
//!
//! **A stage that can do with less** (prefetch, a cache) uses [`Holder::try_grant`] or [`Grant::try_grow`] and
//! takes [`Refused::Exhausted`] as the sign to stay small. It never waits.
//!
//! **A stage that needs a piece to go on** uses [`Holder::grant`], which waits for bytes to come back. That is
//! the backpressure: a reader that is ahead of the model sleeps here. Fresh requests are served in the order
//! they came.
//!
//! **A piece turns out larger than thought.** [`Grant::grow`] waits while keeping what it has. Growers are
//! served before fresh requests, because finishing them is what gives bytes back.
//!
//! **Two growers need each other's bytes.** They would wait for ever. The ledger works out, at every wait,
//! whether all who wait can still be served: what is free and what running holders have not pinned can come
//! back; whoever fits in that finishes and gives back what it holds; and so on. The request that makes this
//! fail gets [`Refused::Deadlock`] at once, naming who holds what, instead of a hang.
//!
//! **Weights, optimizer state, fitted encoders** stay until the end: [`Grant::pin`] says so, and nobody waits
//! for them. Whoever could only have been served from pinned bytes is refused when they are pinned.
//!
//! **The last checkpoint must always fit.** [`Ledger::with_reserve`] keeps bytes aside that only the holders
//! made by [`Ledger::reserve_holder`] can take.
//!
//! **Memory is taken away while the job runs.** [`Ledger::lower`] draws the line lower: what is granted stays, and nothing new
//! is granted above it. Whoever reads ahead, or keeps what can be read again, has told so with [`Ledger::spare`]: it looks at
//! [`Ledger::over`] from time to time and gives back what is asked for. What all of them could do without
//! ([`Ledger::spare_bytes`]) decides whether the job can go on.
//!
//! **The job is stopped.** [`Ledger::close`] wakes everybody who waits with [`Refused::Closed`].
//!
//! # The one rule
//!
//! The ledger counts on a grant that is neither pinned nor waiting to come back by itself. A thread that keeps
//! one grant while it waits for another has to say so, with [`Holder::grant_holding`]. And pieces in a queue
//! do not move while the stage that empties it waits: so ask once, at the head of the pipeline, for all that a
//! piece will need on its way, and [`Grant::split`] it there.
//!
//! ```
//! use tidegate_memory::{Ledger, Refused};
//!
//! let ledger = Ledger::with_reserve(1_000, 100);
//! let reader = ledger.holder("reader");
//! let mut block = reader.try_grant(600)?;
//! block.try_grow(200)?;
//! assert_eq!(ledger.free(), 200);
//!
//! // Ordinary holders see 900 of the 1,000 bytes, the checkpoint sees them all.
//! assert!(matches!(reader.try_grant(150), Err(Refused::Exhausted { free: 100, .. })));
//! let checkpoint = ledger.reserve_holder("checkpoint").grant(150)?;
//!
//! drop((block, checkpoint));
//! assert_eq!((ledger.used(), ledger.peak()), (0, 950));
//! # Ok::<(), Refused>(())
//! ```

mod grant;
mod refused;
mod spare;
mod state;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

pub use grant::{Grant, Holder};
pub use refused::Refused;
pub use spare::Spare;
use state::State;

/// A budget being handed out. Cheap to clone; all clones are the same account. There is no global one: what
/// needs bytes is given a ledger or a [`Holder`].
#[derive(Debug, Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Signalled when a waiter has got its answer.
    answered: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of ours panics halfway through a change, so the state behind a poisoned lock is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers whom the changed state lets answer, and wakes them.
    fn settle(&self, mut state: MutexGuard<'_, State>) {
        if state.settle() {
            drop(state);
            self.answered.notify_all();
        }
    }
}

impl Ledger {
    pub fn new(budget: u64) -> Self {
        Self::with_reserve(budget, 0)
    }

    /// A ledger of `budget` bytes of which `reserve` are kept for [`reserve_holder`](Self::reserve_holder)s.
    /// A reserve above the budget is all of it.
    pub fn with_reserve(budget: u64, reserve: u64) -> Self {
        let state = Mutex::new(State::new(budget, reserve.min(budget)));
        Ledger {
            shared: Arc::new(Shared {
                state,
                answered: Condvar::new(),
            }),
        }
    }

    /// The holder of that name. Asked twice, it is the same account.
    pub fn holder(&self, name: &str) -> Holder {
        Holder::new(&self.shared, name, false)
    }

    /// A holder that may also use the reserve.
    pub fn reserve_holder(&self, name: &str) -> Holder {
        Holder::new(&self.shared, name, true)
    }

    pub fn budget(&self) -> u64 {
        self.shared.lock().budget
    }

    /// The bytes granted now.
    pub fn used(&self) -> u64 {
        self.shared.lock().used()
    }

    /// The bytes not granted now, the reserve included.
    pub fn free(&self) -> u64 {
        self.shared.lock().free(true)
    }

    /// The most bytes that were ever granted at once.
    pub fn peak(&self) -> u64 {
        self.shared.lock().peak
    }

    /// Lowers the budget of an account in use; a larger one changes nothing. What is granted stays, nothing new is granted
    /// above it, and those who wait for what can never come any more are refused.
    pub fn lower(&self, budget: u64) {
        let mut state = self.shared.lock();
        state.lower(budget);
        self.shared.settle(state);
    }

    /// The bytes that are granted beyond a budget that was lowered.
    pub fn over(&self) -> u64 {
        self.shared.lock().over()
    }

    /// Says that so many granted bytes could be done without, for as long as what this returns lives. Whoever says so looks at
    /// [`over`](Self::over) from time to time.
    pub fn spare(&self, bytes: u64) -> Spare {
        Spare::new(&self.shared, bytes)
    }

    /// What all holders together could do without, as they have told.
    pub fn spare_bytes(&self) -> u64 {
        self.shared.lock().spare
    }

    pub fn snapshot(&self) -> LedgerSnapshot {
        self.shared.lock().snapshot()
    }

    /// Refuses everybody who waits and every later request, so that no thread of a stopping job sleeps on.
    /// Grants stay valid and still give back.
    pub fn close(&self) {
        let mut state = self.shared.lock();
        state.close();
        self.shared.settle(state);
    }
}

/// The account at one moment, for events, progress and refusals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerSnapshot {
    pub budget: u64,
    pub reserve: u64,
    pub used: u64,
    pub peak: u64,
    /// In the order the holders were made.
    pub holders: Vec<HolderSnapshot>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderSnapshot {
    pub name: String,
    pub held: u64,
    /// The part of `held` that stays until the end.
    pub pinned: u64,
    pub peak: u64,
    /// Held when the whole account was at its peak; over all holders this adds up to it.
    pub at_peak: u64,
    /// Bytes asked for by requests that wait now.
    pub waiting: u64,
}
