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
/// While it does not, looks may take one part of so many.
const LOOKS: u32 = 400;
/// Growth that is worth a look at the stack.
const GROWN: u64 = 512 << 10;
/// Without growth, a stack is looked at this often, at first; and at the least.
const IDLE_FIRST: Duration = Duration::from_millis(500);
const IDLE_LAST: Duration = Duration::from_secs(10);
/// Looks may take this part of the time, in all; while memory grows, this part.
const SHARE: f64 = 0.002;
const SHARE_GROWING: f64 = 0.05;
/// What may be spent beyond that at once.
const ALLOWANCE: Duration = Duration::from_millis(100);
/// After a process was no Python yet, or could not be read, it is tried again after this, and twice as long each time.
const AGAIN_FIRST: Duration = Duration::from_millis(10);
const AGAIN_LAST: Duration = Duration::from_secs(5);
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
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.living.clear();
        state.living.extend(living);
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

    /// Looks at stacks until it is over.
    pub(crate) fn run(&self, host: &Host, path: PathBuf, start: Instant) {
        let mut looker = Looker {
            host,
            path,
            writer: None,
            start,
            known: HashMap::new(),
            spent: Duration::ZERO,
        };
        let mut pause = QUIET;
        while let Some(living) = self.wait(pause) {
            let begun = Instant::now();
            pause = match looker.look(&living) {
                true => BUSY,
                // Of a job with many processes, even asking for their sizes takes time.
                false => QUIET.max(begun.elapsed() * LOOKS),
            };
        }
    }
}

struct Looker<'a> {
    host: &'a Host,
    path: PathBuf,
    /// Made with the first stack: most runs are no Python.
    writer: Option<StackWriter>,
    start: Instant,
    known: HashMap<(i32, u64), Process>,
    /// Time that looking took.
    spent: Duration,
}

struct Process {
    spy: Spy,
    /// What it held at the last look at its stack, and when that was.
    held: u64,
    looked: Option<Instant>,
    idle: Duration,
}

enum Spy {
    /// To be tried at this time, and then after so long again.
    Not {
        next: Instant,
        pause: Duration,
    },
    Ready(Box<PythonSpy>),
}

impl Looker<'_> {
    /// Looks at those whose memory grew, and at the others at times. Returns whether any grew.
    fn look(&mut self, living: &[(i32, u64)]) -> bool {
        self.known.retain(|process, _| living.contains(process));
        let mut any_grew = false;
        for &(pid, start_time) in living {
            let now = Instant::now();
            let process = self.known.entry((pid, start_time)).or_insert_with(|| Process {
                spy: Spy::Not {
                    next: now,
                    pause: AGAIN_FIRST,
                },
                held: 0,
                looked: None,
                idle: IDLE_FIRST,
            });
            if let Spy::Not { next, pause } = &mut process.spy {
                if now < *next {
                    continue;
                }
                *next = now + *pause;
                *pause = (*pause * 2).min(AGAIN_LAST);
                if !runs_python(self.host, pid) {
                    continue;
                }
                let Some(spy) = open(pid) else { continue };
                process.spy = Spy::Ready(spy);
            }
            let Some(held) = held_memory(self.host, pid) else {
                continue;
            };
            let grew = held > process.held + GROWN.max(process.held / 200);
            // What was given back can grow again, and is worth a look then.
            process.held = process.held.min(held);
            any_grew |= grew;
            let due = process.looked.is_none_or(|at| now - at >= process.idle);
            let share = if grew { SHARE_GROWING } else { SHARE };
            let allowed = self.start.elapsed().mul_f64(share) + ALLOWANCE;
            if !(grew || due) || self.spent > allowed {
                continue;
            }
            process.idle = match grew {
                true => IDLE_FIRST,
                false => (process.idle * 2).min(IDLE_LAST),
            };
            (process.held, process.looked) = (held, Some(now));
            let Spy::Ready(spy) = &mut process.spy else {
                continue;
            };
            match stacks(spy) {
                Some(threads) => {
                    let sample = StackSample {
                        time_ms: u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX),
                        pid,
                        start_time,
                        held: Some(held),
                        threads: Vec::new(),
                    };
                    self.write(&sample, &threads);
                }
                // It may have become another program.
                None => {
                    process.spy = Spy::Not {
                        next: now + AGAIN_FIRST,
                        pause: AGAIN_FIRST,
                    };
                }
            }
            self.spent += now.elapsed();
        }
        any_grew
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
