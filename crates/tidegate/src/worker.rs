//! The worker: the same program as a child, where data is read and models are fitted.
//!
//! It takes its task as JSON on the command line, speaks [`tidegate_watch::Event`]s over the pipe that its
//! supervisor opened, and ends with 0, 1 or 2. SIGTERM asks it to save and end.

use std::cell::Cell;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tidegate_memory::{Cgroup, Grant, Host, Ledger, process_memory};
use tidegate_train::linear::Plan;
use tidegate_train::{Error as TrainError, RUNTIME};
use tidegate_watch::{Event, EventWriter, Failure, stop_flag};

use crate::{Error, Job, PredictJob, Result};

mod arrays;
mod boost;
mod destination;
mod device;
mod images;
mod linear;
mod look;
mod network;
mod predict;
mod pressure;
mod relay;
mod rows;
mod sheet;
mod times;
mod train;

/// What a worker is started for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    Train {
        job: PathBuf,
        budget: u64,
        checkpoint: PathBuf,
        model: PathBuf,
        resume: bool,
        packs: PathBuf,
    },
    Predict {
        job: PredictJob,
        budget: u64,
        model: PathBuf,
        /// Where compressed arrays are unpacked that do not fit in memory.
        packs: PathBuf,
    },
    /// What training would take: nothing is trained, and nothing is left.
    Plan {
        job: Box<Job>,
        budget: u64,
        packs: PathBuf,
        /// The memory of an accelerator to ask about.
        device_memory: Option<u64>,
    },
    /// What the columns of a table are, before anything is said of them.
    Look { job: Box<Job>, budget: u64 },
    /// A contact sheet of what a network will see.
    Preview {
        job: Box<Job>,
        output: PathBuf,
        rows: usize,
        budget: u64,
    },
    /// A contact sheet of what a network was wrong about.
    Mistakes {
        model: PathBuf,
        output: PathBuf,
        top: usize,
        budget: u64,
    },
}

/// What the program itself takes before it starts a thread, with what the kernel keeps for it: 1 to 2.5 MB were
/// measured. A fixed figure, so that plans do not depend on the moment.
const PROGRAM: u64 = 2_200_000;
/// What is resident of the program's file: 10.5 to 11 MB were measured.
const CODE: u64 = 11_000_000;
/// What it grows by from its start, where it starts larger than usual.
const PROGRAM_GROWTH: u64 = 1_400_000;
/// Below this a worker might not even be able to say that the budget is too small: the kernel would kill it first,
/// while it looks at a table. No job is done with less.
const FLOOR: u64 = 12_000_000;

/// The limit to set for a worker with this budget. A worker with less than the floor refuses the job, and
/// names the least budget that would do, before it reads more than a sample.
pub fn floor(budget: u64) -> u64 {
    budget.max(FLOOR)
}

pub(crate) fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Task {
    /// This program again, as a worker for the task.
    pub(crate) fn child(&self) -> Result<tidegate_watch::Job<'static>> {
        let program = std::env::current_exe().map_err(|source| Error::Io {
            path: "/proc/self/exe".into(),
            what: "this program cannot find itself",
            source,
        })?;
        // Only a path that is not text cannot be passed on: a home or a folder with such a name.
        let task = serde_json::to_string(self).map_err(|error| Error::Usage {
            what: format!("a folder on the way cannot be named: {error}"),
            hint: "work in a folder, and with a --home, whose name is UTF-8".into(),
        })?;
        charge_code_here(&program);
        let mut job = tidegate_watch::Job::new(program, ["worker", &task]);
        job.hold_stops = true;
        // Naming the functions of a panic takes more memory than most budgets have: it would end as an OOM kill.
        job.envs.push(("RUST_BACKTRACE".into(), "0".into()));
        Ok(job)
    }
}

/// Brings the program's code into the page cache. Pages of a file are charged to whoever brings them in first: a worker
/// that did would have some 4 MB less, and the kernel, which can take them back, has killed one near its line instead.
fn charge_code_here(program: &Path) {
    let Ok(file) = File::open(program) else {
        return; // The worker brings them in itself.
    };
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (offset, length) in maps.lines().filter_map(|line| code_of(line, program)) {
        // SAFETY: advice on an open descriptor touches no memory of ours.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, length, libc::POSIX_FADV_WILLNEED) };
    }
}

/// Where in the program a line of the map of this process has its code, and how much of it.
fn code_of(line: &str, program: &Path) -> Option<(i64, i64)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (_access, offset) = (fields.next()?, fields.next()?);
    let number = |text| i64::from_str_radix(text, 16).ok();
    let is_code = line.ends_with(program.to_str()?);
    is_code.then_some((number(offset)?, number(end)? - number(start)?))
}

/// Does the task and says everything over the pipe; the value is the exit code.
pub fn run(task: &str, events_fd: i32) -> i32 {
    abort_on_panic();
    let events = match EventWriter::from_fd(events_fd) {
        Ok(events) => events,
        Err(error) => {
            eprintln!("error: {error}");
            return 2;
        }
    };
    let stop = match stop_flag() {
        Ok(stop) => stop,
        Err(error) => {
            eprintln!("error: this process cannot be asked to stop: {error}");
            return 1;
        }
    };
    let speaker = Speaker {
        events,
        stop,
        ledger_told: Cell::new(None),
        taken: pressure::Taken::default(),
    };
    let done = serde_json::from_str(task)
        .map_err(|error| Error::Usage {
            what: format!("not a task: {error}"),
            hint: "the worker is started by tidegate itself".into(),
        })
        .and_then(|task| match task {
            Task::Train {
                job,
                budget,
                checkpoint,
                model,
                resume,
                packs,
            } => Job::read(&job).and_then(|job| {
                let places = train::Places {
                    checkpoint,
                    model,
                    resume,
                    packs,
                    keep: true,
                    dry: None,
                };
                train::train(&speaker, &job, budget, places)
            }),
            Task::Plan {
                job,
                budget,
                packs,
                device_memory,
            } => {
                let places = train::Places::dry(packs, device_memory);
                train::train(&speaker, &job, budget, places)
            }
            Task::Look { job, budget } => look::look(&speaker, &job, budget),
            Task::Predict {
                job,
                budget,
                model,
                packs,
            } => predict::predict(&speaker, &job, budget, &model, &packs),
            Task::Preview {
                job,
                output,
                rows,
                budget,
            } => sheet::preview(&speaker, &job, &output, rows, budget),
            Task::Mistakes {
                model,
                output,
                top,
                budget,
            } => sheet::mistakes(&speaker, &model, &output, top, budget),
        });
    match done {
        Ok(()) => 0,
        Err(error) => {
            let exit_code = error.exit_code();
            speaker.say(Event::Failed(Failure {
                message: error.message(),
                hint: error.hint(),
                usage: exit_code == 2,
                least: error.least(),
            }));
            exit_code
        }
    }
}

/// A panic on one thread must end the worker, not leave the others waiting for what that thread had. Where a reader of
/// broken files catches it, it is an error like any other.
fn abort_on_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if tidegate_data::is_guarded() {
            return;
        }
        tell(panic);
        std::process::abort();
    }));
}

/// Says events; when nobody listens any more, asks the work to stop.
struct Speaker {
    events: EventWriter,
    stop: &'static AtomicBool,
    ledger_told: Cell<Option<Instant>>,
    /// What others took of the memory, where it ends for that.
    taken: pressure::Taken,
}

/// Between two words on the state of the ledger.
const LEDGER_EVERY: Duration = Duration::from_millis(200);

impl Speaker {
    fn say(&self, event: Event) {
        if self.events.send(&event).is_err() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the work is to end early.
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Says that it did, and whether it can be taken up again.
    fn stopped(&self, epoch: u32, step: u64, checkpoint: bool) {
        self.stopped_with(epoch, step, checkpoint, None);
    }

    /// The same, with a budget that is left and that it could go on with, if memory was taken away.
    fn stopped_with(&self, epoch: u32, step: u64, checkpoint: bool, enough: Option<u64>) {
        self.say(Event::Stopped {
            epoch,
            step,
            checkpoint,
            reason: self.taken.reason(enough),
        });
    }

    /// Tells the state of the ledger, but not too often.
    fn ledger_at_times(&self, ledger: &Ledger) {
        let told = self.ledger_told.get();
        if told.is_none_or(|told| told.elapsed() >= LEDGER_EVERY) {
            self.ledger_told.set(Some(Instant::now()));
            self.ledger(ledger);
        }
    }

    fn ledger(&self, ledger: &Ledger) {
        let snapshot = ledger.snapshot();
        let holders = snapshot
            .holders
            .into_iter()
            .map(|holder| (holder.name, holder.held, holder.at_peak))
            .collect();
        self.say(Event::Ledger {
            used: snapshot.used,
            peak: snapshot.peak,
            budget: snapshot.budget,
            holders,
        });
    }
}

/// What to count for the program itself. Held by a cgroup, its code is not counted: those pages are the file's, and are
/// charged to the supervisor that brought them in. Where resident memory is watched instead, they count.
///
/// Looked at when each worker starts, which takes 0.3 ms, and not once per machine: so it holds for this build, this kernel
/// and this kind of limit, and there is no figure of another day that could be wrong.
fn runtime_bytes(budget: u64) -> u64 {
    let host = Host::live();
    let memory = process_memory(&host, std::process::id().cast_signed());
    let own = memory.and_then(|memory| memory.anonymous).unwrap_or(0);
    let code = match own_group(budget) {
        Some(_) => 0,
        None => CODE,
    };
    PROGRAM.max(own + PROGRAM_GROWTH) + code
}

/// The cgroup that holds this worker, and nobody else, to its budget.
fn own_group(budget: u64) -> Option<Cgroup> {
    let group = Cgroup::of(&Host::live(), None).ok()?;
    (group.limit().bytes()? <= floor(budget)).then_some(group)
}

/// A ledger with room for a look at the data even where the budget has none, so that the least budget can
/// be named.
fn sampling_ledger(budget: u64) -> Ledger {
    Ledger::new(floor(budget))
}

/// The account of the budget, with what the program itself and the table's columns take already in it.
fn working_ledger(plan: &Plan) -> Result<(Ledger, [Grant; 2])> {
    let ledger = Ledger::new(plan.budget);
    let grant = |name: &'static str| {
        let grant = ledger.holder(name).try_grant(plan.bytes(name));
        grant
            .map(Grant::pin)
            .map_err(|source| TrainError::Memory { what: name, source })
    };
    let held = [grant(RUNTIME)?, grant("columns")?];
    Ok((ledger, held))
}

/// Of the stages to come and of the one that is over, the fit of the encoders, the one that takes the most: holders
/// with their bytes, and what they take together. What the fit took is known by now: where the kernel counts this
/// process alone, by its count, for not all that was granted is touched.
fn largest_stage(stages: Vec<Vec<(String, u64)>>, ledger: &Ledger) -> (Vec<(String, u64)>, u64) {
    let sum = |holders: &[(String, u64)]| holders.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let fit = ledger.snapshot().holders.into_iter();
    let fit: Vec<(String, u64)> = fit.map(|holder| (holder.name, holder.at_peak)).collect();
    let counted = own_group(ledger.budget()).and_then(|group| group.peak());
    let granted = sum(&fit);
    let fit = (fit, counted.map_or(granted, |bytes| bytes.min(granted)));
    let to_come = stages.into_iter().map(|holders| {
        let bytes = sum(&holders);
        (holders, bytes)
    });
    // The first of equals, for it says more.
    let largest = std::iter::once(fit)
        .chain(to_come)
        .max_by_key(|(_, bytes)| *bytes);
    largest.unwrap_or_default()
}

/// What the pass that is over was granted and did not touch, where the kernel counts this process alone.
fn untouched(ledger: &Ledger) -> u64 {
    let granted: u64 = ledger
        .snapshot()
        .holders
        .iter()
        .map(|holder| holder.at_peak)
        .sum();
    let counted = own_group(ledger.budget()).and_then(|group| group.peak());
    counted.map_or(0, |bytes| granted.saturating_sub(bytes))
}

/// Rows per second since the epoch began.
struct Rate {
    epoch: u32,
    started: Instant,
    rows: u64,
}

impl Rate {
    fn new() -> Rate {
        Rate {
            epoch: 0,
            started: Instant::now(),
            rows: 0,
        }
    }

    fn at(&mut self, epoch: u32, rows: u64) -> f64 {
        if epoch != self.epoch {
            // The first progress of an epoch comes a moment after its start: count from there.
            let rows = if self.epoch == 0 { 0 } else { rows };
            *self = Rate {
                epoch,
                started: if self.epoch == 0 {
                    self.started
                } else {
                    Instant::now()
                },
                rows,
            };
        }
        (rows - self.rows.min(rows)) as f64 / self.started.elapsed().as_secs_f64().max(1e-3)
    }
}
