//! The threads of a program: they share the tasks of one operation, and allocate nothing to do so.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Looks at the state before a thread goes to sleep: some 20 µs, about what it takes to be woken.
const SPINS: u32 = 2_000;

/// A caller and its helpers. A task is told its number and that of the thread it runs on, from 0 for the caller.
pub(crate) struct Crew {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

type Task = dyn Fn(usize, usize) + Sync;

struct Shared {
    /// Counts what was given out; a helper works when it has changed.
    round: AtomicU64,
    work: UnsafeCell<Option<Work>>,
    next: AtomicUsize,
    /// Helpers that have not finished the round.
    busy: AtomicUsize,
    failed: AtomicBool,
    over: AtomicBool,
    asleep: Mutex<()>,
    wake: Condvar,
    finished: Condvar,
}

#[derive(Clone, Copy)]
struct Work {
    task: *const Task,
    n_tasks: usize,
}

// SAFETY: `work` is written by the caller while no helper is busy, before it publishes a new round, and read by helpers
// only after they saw that round.
unsafe impl Sync for Shared {}
// SAFETY: as above; the pointer in it is to a task that is `Sync`.
unsafe impl Send for Shared {}

impl Crew {
    /// So many threads, the calling one included.
    pub(crate) fn new(threads: usize) -> Crew {
        let shared = Arc::new(Shared {
            round: AtomicU64::new(0),
            work: UnsafeCell::new(None),
            next: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            asleep: Mutex::new(()),
            wake: Condvar::new(),
            finished: Condvar::new(),
        });
        let helper = |thread: usize| {
            let shared = Arc::clone(&shared);
            let name = format!("network {thread}");
            let spawned = std::thread::Builder::new().name(name);
            // Fewer threads give the same result.
            spawned.spawn(move || shared.help(thread)).ok()
        };
        let helpers = (1..threads.max(1)).filter_map(helper).collect();
        Crew { shared, helpers }
    }

    /// Runs every task once, on any thread and in any order, and returns when all are done.
    pub(crate) fn run(&self, n_tasks: usize, task: impl Fn(usize, usize) + Sync) {
        if n_tasks <= 1 || self.helpers.is_empty() {
            (0..n_tasks).for_each(|number| task(number, 0));
            return;
        }
        let shared = &*self.shared;
        let borrowed: &(dyn Fn(usize, usize) + Sync) = &task;
        // SAFETY: only the lifetime is changed; helpers use the task until they are no longer busy, and that is waited for.
        let task: *const Task =
            unsafe { std::mem::transmute::<&(dyn Fn(usize, usize) + Sync), &'static Task>(borrowed) };
        // SAFETY: no helper is busy, so none reads it.
        unsafe { *shared.work.get() = Some(Work { task, n_tasks }) };
        shared.next.store(0, Ordering::Relaxed);
        shared.busy.store(self.helpers.len(), Ordering::Relaxed);
        {
            let _asleep = lock(&shared.asleep);
            shared.round.fetch_add(1, Ordering::Release);
        }
        shared.wake.notify_all();
        shared.work_on(Work { task, n_tasks }, 0);
        if !spin_until(|| shared.busy.load(Ordering::Acquire) == 0) {
            let mut asleep = lock(&shared.asleep);
            while shared.busy.load(Ordering::Acquire) > 0 {
                asleep = shared
                    .finished
                    .wait(asleep)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
        assert!(
            !shared.failed.swap(false, Ordering::Relaxed),
            "a task of the network panicked"
        );
    }
}

impl Shared {
    fn help(&self, thread: usize) {
        let mut seen = 0;
        loop {
            let news = || self.round.load(Ordering::Acquire) != seen || self.over.load(Ordering::Relaxed);
            if !spin_until(news) {
                let mut asleep = lock(&self.asleep);
                while !news() {
                    asleep = self.wake.wait(asleep).unwrap_or_else(PoisonError::into_inner);
                }
            }
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            seen = self.round.load(Ordering::Acquire);
            // SAFETY: the round that was seen was published after the work was written, and the next one is not before
            // this helper is done.
            if let Some(work) = unsafe { *self.work.get() } {
                self.work_on(work, thread);
            }
            if self.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
                let _asleep = lock(&self.asleep);
                self.finished.notify_one();
            }
        }
    }

    /// Takes tasks until none are left.
    fn work_on(&self, work: Work, thread: usize) {
        // SAFETY: the caller of `run` keeps the task until no helper is busy.
        let task = unsafe { &*work.task };
        let all = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                if number >= work.n_tasks {
                    return;
                }
                task(number, thread);
            }
        }));
        if all.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        {
            let _asleep = lock(&self.shared.asleep);
            self.shared.over.store(true, Ordering::Relaxed);
        }
        self.shared.wake.notify_all();
        for helper in self.helpers.drain(..) {
            let _ = helper.join();
        }
    }
}

fn lock(mutex: &Mutex<()>) -> std::sync::MutexGuard<'_, ()> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spin_until(done: impl Fn() -> bool) -> bool {
    for _ in 0..SPINS {
        if done() {
            return true;
        }
        std::hint::spin_loop();
    }
    done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once_on_any_number_of_threads() {
        for threads in [1, 2, 3, 8] {
            let crew = Crew::new(threads);
            for n_tasks in [0, 1, 2, 7, 100] {
                for _ in 0..50 {
                    let runs: Vec<AtomicUsize> = (0..n_tasks).map(|_| AtomicUsize::new(0)).collect();
                    crew.run(n_tasks, |task, thread| {
                        assert!(thread < threads);
                        runs[task].fetch_add(1, Ordering::Relaxed);
                    });
                    assert!(runs.iter().all(|runs| runs.load(Ordering::Relaxed) == 1));
                }
            }
        }
    }

    #[test]
    fn a_task_that_panics_is_heard_of_and_the_crew_goes_on() {
        let crew = Crew::new(2);
        let panics = || crew.run(8, |task, _| assert!(task != 5));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        let sum = AtomicUsize::new(0);
        crew.run(8, |task, _| {
            sum.fetch_add(task, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 28);
    }
}
