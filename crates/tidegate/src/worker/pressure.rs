//! Memory that is taken away while a worker works: a thread that looks, lets go of what can go, and stops in good order
//! when that is not enough.
//!
//! What shrinks comes first. Samples in memory are let go from here. Whoever reads ahead or keeps what it could read again
//! has told the ledger so, looks at it from time to time and gives back what it is over: pieces of tables, feeds, the rows
//! of trees and their state. What must stay stays granted; if even that is more than others leave, the training saves a
//! checkpoint and ends, before the kernel ends it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use tidegate_data::arrays::ArraySource;
use tidegate_memory::{Allowance, Headroom, Host, Ledger, format_bytes, give_freed_memory_back};
use tidegate_watch::{Event, EventWriter, MemoryTaken};

use super::{Speaker, floor};
use crate::Error;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(50);

/// What was taken away so far, as the looking threads and the working one see it.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// The bounds as they were when the first looked: of what was taken since then, nothing is forgotten.
    headroom: Mutex<Option<Headroom>>,
    /// The last time that less was left than was promised, and what was granted then.
    short: Mutex<Option<(Allowance, u64)>>,
    /// What was left in the end, and what the job needed.
    last: Mutex<Option<(Allowance, u64)>>,
    /// Whether it was said.
    told: AtomicBool,
    /// How many look on: of several, the innermost knows what can shrink.
    lookers: AtomicUsize,
}

impl Taken {
    /// The bytes that are left to a job that was stopped for want of more.
    pub(super) fn left(&self) -> Option<u64> {
        lock(&self.last).as_ref().map(|(allowed, _)| allowed.bytes)
    }

    /// Why it was stopped, with a budget that it could go on with.
    pub(super) fn reason(&self, enough: Option<u64>) -> Option<MemoryTaken> {
        let taken = lock(&self.last);
        let (allowed, needs) = taken.as_ref()?;
        Some(MemoryTaken {
            bound: allowed.bound.clone(),
            needs: *needs,
            enough,
        })
    }

    /// Whether it ends for want of memory after some was taken away: then that is the reason.
    pub(super) fn explains(&self, error: &Error) -> bool {
        let short = lock(&self.short).clone().filter(|_| error.is_for_memory());
        short.is_some_and(|short| {
            lock(&self.last).get_or_insert(short);
            true
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What can shrink, and to what.
pub(super) struct Shrinking<'a> {
    /// Where everybody has told what could be done without, but for these samples.
    pub ledger: &'a Ledger,
    pub sources: Vec<&'a ArraySource>,
    /// What must stay.
    pub least: u64,
}

impl Shrinking<'_> {
    /// What can shrink of a table: pieces that wait, and what else its model has told.
    pub(super) fn of_table(ledger: &Ledger, least: u64) -> Shrinking<'_> {
        Shrinking {
            ledger,
            sources: Vec::new(),
            least,
        }
    }

    fn spare(&self) -> u64 {
        let samples = self.sources.iter().map(|source| source.spare_bytes());
        self.ledger.spare_bytes() + samples.sum::<u64>()
    }

    /// Makes room as far as it can, and says whether it will be enough.
    fn make_room(&self, allowed: u64) -> bool {
        let mut over = self.ledger.used().saturating_sub(allowed);
        for source in &self.sources {
            over = over.saturating_sub(source.let_go(over));
        }
        // Samples go first: the feed that takes their place finds room then.
        self.ledger.lower(allowed.max(self.least));
        self.ledger.used() <= allowed.saturating_add(self.spare())
    }
}

/// Works while a thread looks after the memory; of what nothing can shrink, it can only be stopped.
pub(super) fn watched<T>(
    speaker: &Speaker,
    budget: u64,
    shrinking: Option<Shrinking>,
    work: impl FnOnce() -> T,
) -> T {
    let (events, stop, taken) = (&speaker.events, speaker.stop, &speaker.taken);
    lock(&taken.headroom).get_or_insert_with(|| Headroom::open(&Host::live(), budget, floor(budget)));
    let (done, over) = mpsc::channel::<()>();
    let level = taken.lookers.fetch_add(1, Relaxed) + 1;
    let worked = std::thread::scope(|scope| {
        scope.spawn(move || {
            while let Err(mpsc::RecvTimeoutError::Timeout) = over.recv_timeout(EVERY) {
                if taken.lookers.load(Relaxed) != level {
                    continue;
                }
                let granted = shrinking.as_ref().map_or(budget, |what| what.ledger.used());
                let look = |headroom: &mut Headroom| headroom.look(granted);
                let Some(allowed) = lock(&taken.headroom).as_mut().and_then(look) else {
                    continue;
                };
                *lock(&taken.short) = Some((allowed.clone(), granted));
                let enough = shrinking.as_ref().is_some_and(|what| {
                    let over = what.ledger.used() > allowed.bytes;
                    if over && !taken.told.swap(true, Relaxed) {
                        tell(events, &allowed);
                    }
                    what.make_room(allowed.bytes)
                });
                if allowed.near && !enough {
                    let needs = match &shrinking {
                        Some(what) => what.ledger.used().saturating_sub(what.spare()),
                        None => granted,
                    };
                    // The first who says so knows what it was that could not go on.
                    lock(&taken.last).get_or_insert((allowed, needs));
                    stop.store(true, Relaxed);
                    return;
                }
            }
        });
        let worked = work();
        drop(done);
        worked
    });
    taken.lookers.fetch_sub(1, Relaxed);
    worked
}

/// Says that there is less, once.
fn tell(events: &EventWriter, allowed: &Allowance) {
    give_freed_memory_back();
    let text = format!(
        "memory is being taken away: {} are left for this run ({}); it keeps less in memory and reads ahead less",
        format_bytes(allowed.bytes),
        allowed.bound.name
    );
    // Where nobody listens any more, the next event of the training itself finds out.
    let _ = events.send(&Event::Warning { text });
}

/// A budget in figures that a person writes, and no more than it is.
pub(super) fn whole_megabytes(bytes: u64) -> u64 {
    bytes / 1_000_000 * 1_000_000
}
