//! Memory that is taken away while a worker works: a thread that looks, lets go of what can go, and stops in good order
//! when that is not enough.
//!
//! What shrinks comes first: samples in memory, then what is read ahead. What must stay stays granted; if even that is more
//! than others leave, the training saves a checkpoint and ends, before the kernel ends it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use tidegate_data::arrays::ArraySource;
use tidegate_memory::{Allowance, Headroom, Host, Ledger, format_bytes, give_freed_memory_back};
use tidegate_watch::{Event, EventWriter, MemoryTaken};

use super::{Speaker, floor};

/// Between two looks.
const EVERY: Duration = Duration::from_millis(50);

/// What was taken away so far, as the looking thread and the working one both see it.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// What was left in the end, and what the job needed.
    last: Mutex<Option<(Allowance, u64)>>,
    /// How many look on: of several, the innermost knows what can shrink.
    lookers: AtomicUsize,
}

impl Taken {
    fn lock(&self) -> MutexGuard<'_, Option<(Allowance, u64)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes that are left to a job that was stopped for want of more.
    pub(super) fn left(&self) -> Option<u64> {
        self.lock().as_ref().map(|(allowed, _)| allowed.bytes)
    }

    /// Why it was stopped, with a budget that it could go on with.
    pub(super) fn reason(&self, enough: Option<u64>) -> Option<MemoryTaken> {
        let taken = self.lock();
        let (allowed, needs) = taken.as_ref()?;
        Some(MemoryTaken {
            bound: allowed.bound.clone(),
            needs: *needs,
            enough,
        })
    }
}

/// What can shrink, and to what.
pub(super) struct Shrinking<'a> {
    pub ledger: &'a Ledger,
    pub sources: Vec<&'a ArraySource>,
    /// What must stay.
    pub least: u64,
}

impl Shrinking<'_> {
    fn spare(&self) -> u64 {
        self.sources.iter().map(|source| source.spare_bytes()).sum()
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
    let mut headroom = Headroom::open(&Host::live(), budget, floor(budget));
    let (events, stop, taken) = (&speaker.events, speaker.stop, &speaker.taken);
    let (done, over) = mpsc::channel::<()>();
    let level = taken.lookers.fetch_add(1, Relaxed) + 1;
    let worked = std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut told = false;
            while let Err(mpsc::RecvTimeoutError::Timeout) = over.recv_timeout(EVERY) {
                if taken.lookers.load(Relaxed) != level {
                    continue;
                }
                let granted = shrinking.as_ref().map_or(budget, |what| what.ledger.used());
                let Some(allowed) = headroom.look(granted) else {
                    continue;
                };
                let enough = shrinking.as_ref().is_some_and(|what| {
                    let over = what.ledger.used() > allowed.bytes;
                    if over && !std::mem::replace(&mut told, true) {
                        tell(events, &allowed);
                    }
                    what.make_room(allowed.bytes)
                });
                if allowed.near && !enough {
                    let needs = match &shrinking {
                        Some(what) => what.ledger.used().saturating_sub(what.spare()),
                        None => granted,
                    };
                    *taken.lock() = Some((allowed, needs));
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
        "memory is being taken away: {} are left for this run ({}); it keeps fewer samples in memory and reads ahead less",
        format_bytes(allowed.bytes),
        allowed.bound.name
    );
    // Where nobody listens any more, the next event of the training itself finds out.
    let _ = events.send(&Event::Warning { text });
}
