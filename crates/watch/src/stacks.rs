//! Where Python code is, looked at from outside: often while memory grows, seldom else.
//!
//! A thread of its own, for reading another process's stacks takes a while and must hold nobody up. It never stops the
//! process that it looks at: a stack that changes under the look is looked at again, or left out.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use py_spy::config::{Config, LockingStrategy};
use py_spy::{PythonSpy, StackTrace};
use tidegate_memory::{Host, held_memory, runs_python};
use tidegate_runs::{Frame, SeenThread, StackSample, StackWriter, ThreadStack};

/// Between two looks while memory grows, and while it does not.
const BUSY: Duration = Duration::from_millis(10);
const QUIET: Duration = Duration::from_millis(50);
/// While it does not, asking for sizes may take one part of so many.
const ASKING: u32 = 400;
/// Growth that is worth a look at the stack.
const GROWN: u64 = 512 << 10;
/// Without growth, a stack is looked at this often, at first; and at the least.
const IDLE_FIRST: Duration = Duration::from_millis(500);
const IDLE_LAST: Duration = Duration::from_secs(10);
/// Looks may take this part of the time, in all; while memory grows, this part; and while it grows near the line, where
/// each may be the last, this part. All in processor time: on a busy machine a look lasts long and costs no more.
const SHARE: f64 = 0.002;
const SHARE_GROWING: f64 = 0.05;
const SHARE_NEAR_LINE: f64 = 0.2;
const NEAR_LINE: f64 = 0.85;
/// What may be spent beyond that at once.
const ALLOWANCE: Duration = Duration::from_millis(100);
/// After a process was no Python yet, or could not be read, it is tried again after this, and half as long again each time;
/// trying may take one part of so many.
const AGAIN_FIRST: Duration = Duration::from_millis(10);
const AGAIN_LAST: Duration = Duration::from_secs(5);
const TRYING: u32 = 20;
/// A stack that changes under the look is missed now and then. After so many misses in a row it is another program's.
const MOST_MISSES: u32 = 5;
const MOST_THREADS: usize = 64;
const MOST_FRAMES: usize = 100;

/// What the attending thread tells the one that looks at stacks.
#[derive(Debug, Default)]
pub(crate) struct StackWatch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The living processes of the job with when they started.
    living: Vec<(i32, u64)>,
    over: bool,
}

impl StackWatch {
    pub(crate) fn follow(&self, living: impl Iterator<Item = (i32, u64)>) {
        let living: Vec<(i32, u64)> = living.collect();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Who is new is looked at before it has grown.
        if living.iter().any(|process| !state.living.contains(process)) {
            self.changed.notify_all();
        }
        state.living = living;
    }

    pub(crate) fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.changed.notify_all();
    }

    /// Waits, and returns who lives; `None` when it is over.
    fn wait(&self, time: Duration) -> Option<Vec<(i32, u64)>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.over {
            return None;
        }
        let (state, _) = self
            .changed
            .wait_timeout(state, time)
            .unwrap_or_else(PoisonError::into_inner);
        (!state.over).then(|| state.living.clone())
    }

    /// Looks at stacks until it is over. Near the line, if there is one, it looks more often.
    pub(crate) fn run(&self, host: &Host, path: PathBuf, start: Instant, limit: Option<u64>) {
        let mut looker = Looker {
            host,
            path,
            writer: None,
            start,
            limit,
            known: HashMap::new(),
            spent: Duration::ZERO,
        };
        let mut pause = QUIET;
        while let Some(living) = self.wait(pause) {
            pause = looker.look(&living);
        }
    }
}

struct Looker<'a> {
    host: &'a Host,
    path: PathBuf,
    /// Made with the first stack: most runs are no Python.
    writer: Option<StackWriter>,
    start: Instant,
    limit: Option<u64>,
    known: HashMap<(i32, u64), Process>,
    /// Processor time that looking took.
    spent: Duration,
}

struct Process {
    spy: Spy,
    /// What it held at the last look at its stack, and when that was; what it holds now.
    held: u64,
    looked: Option<Instant>,
    holds: u64,
    idle: Duration,
}

enum Spy {
    /// To be tried at this time, and then after so long again.
    Not {
        next: Instant,
        pause: Duration,
    },
    Ready {
        spy: Box<PythonSpy>,
        misses: u32,
    },
}

impl Spy {
    fn after(pause: Duration) -> Spy {
        let next = Instant::now() + pause;
        Spy::Not { next, pause }
    }

    /// Tries to become ready, when it is time.
    fn try_open(&mut self, host: &Host, pid: i32) {
        let Spy::Not { next, pause } = self else { return };
        let begun = Instant::now();
        if begun < *next {
            return;
        }
        let spent = processor_time();
        if let Some(spy) = runs_python(host, pid).then(|| open(pid)).flatten() {
            *self = Spy::Ready { spy, misses: 0 };
            return;
        }
        *next = begun + (*pause).max((processor_time() - spent) * TRYING);
        *pause = (*pause * 3 / 2).min(AGAIN_LAST);
    }
}

impl Looker<'_> {
    /// Looks at those whose memory grew, and at the others at times. Returns how long to wait before the next time.
    fn look(&mut self, living: &[(i32, u64)]) -> Duration {
        self.known.retain(|process, _| living.contains(process));
        let mut any_grew = false;
        let mut asking = Duration::ZERO;
        let mut next_try = QUIET;
        for &(pid, start_time) in living {
            let process = self.known.entry((pid, start_time)).or_insert_with(|| Process {
                spy: Spy::Not {
                    next: Instant::now(),
                    pause: AGAIN_FIRST,
                },
                held: 0,
                looked: None,
                holds: 0,
                idle: IDLE_FIRST,
            });
            process.spy.try_open(self.host, pid);
            if let Spy::Not { next, .. } = &process.spy {
                next_try = next_try.min(next.saturating_duration_since(Instant::now()));
                continue;
            }
            let begun = processor_time();
            let held = held_memory(self.host, pid);
            asking += processor_time() - begun;
            let Some(held) = held else { continue };
            process.holds = held;
            let grew = held > process.held + GROWN.max(process.held / 200);
            // What was given back can grow again, and is worth a look then.
            process.held = process.held.min(held);
            any_grew |= grew;
            let due = process.looked.is_none_or(|at| at.elapsed() >= process.idle);
            if (grew || due) && self.may_spend(grew) {
                self.look_at((pid, start_time), held, grew);
                self.spent += processor_time() - begun;
            }
        }
        match any_grew {
            true => BUSY,
            // Of a job with many processes, even asking for their sizes takes time.
            false => next_try.max(BUSY).max(asking * ASKING),
        }
    }

    fn may_spend(&self, grew: bool) -> bool {
        let held: u64 = self.known.values().map(|process| process.holds).sum();
        let is_near = self
            .limit
            .is_some_and(|limit| held as f64 >= limit as f64 * NEAR_LINE);
        let share = match (grew, is_near) {
            (true, true) => SHARE_NEAR_LINE,
            (true, false) => SHARE_GROWING,
            (false, _) => SHARE,
        };
        self.spent <= self.start.elapsed().mul_f64(share) + ALLOWANCE
    }

    fn look_at(&mut self, (pid, start_time): (i32, u64), held: u64, grew: bool) {
        let Some(process) = self.known.get_mut(&(pid, start_time)) else {
            return;
        };
        process.looked = Some(Instant::now());
        process.idle = match grew {
            true => IDLE_FIRST,
            false => (process.idle * 2).min(IDLE_LAST),
        };
        let Spy::Ready { spy, misses } = &mut process.spy else {
            return;
        };
        let Some(threads) = stacks(spy) else {
            *misses += 1;
            if *misses >= MOST_MISSES {
                process.spy = Spy::after(AGAIN_FIRST);
            }
            return;
        };
        *misses = 0;
        process.held = held;
        let sample = StackSample {
            time_ms: u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX),
            pid,
            start_time,
            held: Some(held),
            threads: Vec::new(),
        };
        self.write(&sample, &threads);
    }

    fn write(&mut self, sample: &StackSample, threads: &[SeenThread]) {
        if self.writer.is_none() {
            self.writer = StackWriter::create(&self.path).ok();
        }
        if let Some(writer) = &mut self.writer {
            // A full disk is said by the other recordings.
            let _ = writer.append(sample, threads);
        }
    }
}

fn open(pid: i32) -> Option<Box<PythonSpy>> {
    let config = Config {
        blocking: LockingStrategy::NonBlocking,
        full_filenames: true,
        ..Config::default()
    };
    let mut spy = PythonSpy::new(pid, &config).ok()?;
    // The interpreter is not there before its first stack can be read.
    spy.get_stack_traces().ok()?;
    Some(Box::new(spy))
}

/// Processor time of this thread.
fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock of the calling thread is written to a place that is ours.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    match status {
        0 => Duration::new(time.tv_sec as u64, time.tv_nsec as u32),
        _ => Duration::ZERO,
    }
}

/// The stacks of all threads; a second try where the first met them changing.
fn stacks(spy: &mut PythonSpy) -> Option<Vec<SeenThread>> {
    let traces = spy.get_stack_traces().or_else(|_| spy.get_stack_traces()).ok()?;
    Some(traces.into_iter().take(MOST_THREADS).map(thread).collect())
}

fn thread(trace: StackTrace) -> SeenThread {
    let frame = |frame: py_spy::Frame| Frame {
        file: frame.filename,
        line: u32::try_from(frame.line).unwrap_or(0),
        function: frame.name,
    };
    SeenThread {
        name: trace.thread_name,
        active: trace.active,
        gil: trace.owns_gil,
        frames: trace.frames.into_iter().take(MOST_FRAMES).map(frame).collect(),
    }
}

/// What a Python process holds, and the stacks of its threads now; `None` of any other process.
pub(crate) fn look_once(host: &Host, pid: i32) -> Option<(u64, Vec<SeenThread>)> {
    if !runs_python(host, pid) {
        return None;
    }
    let held = held_memory(host, pid)?;
    Some((held, stacks(&mut *open(pid)?)?))
}

/// Numbers for frames, in the order in which they are met.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    known: HashMap<Frame, u32>,
}

impl Numbers {
    pub(crate) fn number(&mut self, thread: &SeenThread) -> ThreadStack {
        let mut number = |frame: &Frame| {
            let next = self.known.len() as u32;
            *self.known.entry(frame.clone()).or_insert(next)
        };
        ThreadStack {
            name: thread.name.clone(),
            active: thread.active,
            gil: thread.gil,
            frames: thread.frames.iter().map(&mut number).collect(),
        }
    }

    pub(crate) fn into_frames(self) -> Vec<Frame> {
        let mut frames: Vec<(u32, Frame)> = self
            .known
            .into_iter()
            .map(|(frame, number)| (number, frame))
            .collect();
        frames.sort_unstable_by_key(|(number, _)| *number);
        frames.into_iter().map(|(_, frame)| frame).collect()
    }
}
