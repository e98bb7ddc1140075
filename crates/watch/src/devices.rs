//! What the accelerators of the machine do while a job runs.
//!
//! A thread of its own asks their drivers: an answer takes milliseconds, and from a driver that hangs it never comes.
//! Nobody waits for that thread without a bound. One that does not come back is left behind, and said to be unavailable.

mod keep;
mod nvml;

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidegate_memory::{Card, Host, cards};
use tidegate_runs::{DeviceRecord, FlightHeader, now_ms};

use self::keep::Keeper;
use self::nvml::Nvidia;
use crate::job::{Devices, Job};
use crate::why::{Counter, DeviceFault};

/// Between two looks, and while memory moves or the job is young.
const QUIET: Duration = Duration::from_secs(1);
const BUSY: Duration = Duration::from_millis(250);
const YOUNG: Duration = Duration::from_secs(10);
/// Looks may take one part of so many of the time; they are at least this often.
const COST: u32 = 50;
const SLOWEST: Duration = Duration::from_secs(10);
/// How long the last look may take once the job is over, and any look before it is said to hang.
const PATIENCE: Duration = Duration::from_millis(500);
const HANGS: Duration = Duration::from_secs(2);

/// The thread that looks, as seen by the one that attends the job.
#[derive(Debug, Default)]
pub(crate) struct DeviceWatch {
    /// `None` where nobody looks, and why.
    shared: Option<Arc<Shared>>,
    unavailable: Option<String>,
}

/// What was seen, for the facts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) faults: Vec<DeviceFault>,
    pub(crate) counters: Vec<Counter>,
    pub(crate) unavailable: Option<String>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The living processes of the job.
    living: Vec<i32>,
    /// The driver has answered once.
    opened: bool,
    /// Since when a driver is being asked, while it is.
    asked: Option<Instant>,
    /// The job is over: one last look.
    over: bool,
    /// The thread has ended, or nobody waits for it any more.
    done: bool,
    left: bool,
    seen: Seen,
}

/// One look at all devices.
#[derive(Debug, Default)]
struct Look {
    records: Vec<DeviceRecord>,
    /// By device, with the number of the error.
    faults: Vec<(u32, Option<u32>)>,
}

enum Source {
    Nvidia(Nvidia),
    /// Cards that the kernel tells of.
    Kernel(Host),
}

impl DeviceWatch {
    /// Begins to look at the devices of a recorded job, if it wants that.
    pub(crate) fn start(host: &Host, job: &Job<'_>, start: Instant) -> DeviceWatch {
        let Some(run) = job.run else {
            return DeviceWatch::default();
        };
        let devices = match &job.devices {
            Devices::Unwatched => return DeviceWatch::default(),
            Devices::Watched if !has_nvidia() && cards(host).is_empty() => {
                return DeviceWatch {
                    shared: None,
                    unavailable: Some(nvml::NO_DRIVER.into()),
                };
            }
            devices => devices.clone(),
        };
        let header = FlightHeader {
            run_id: run.id.to_string(),
            start_ms: now_ms(),
        };
        let keeper = Keeper::new(run.store.run_dir(run.id).devices(), header);
        let shared = Arc::new(Shared::default());
        let (theirs, host) = (Arc::clone(&shared), host.clone());
        let thread = std::thread::Builder::new().name("devices".into());
        // Not of a scope: whoever waits for all threads of a scope would wait for the driver, too.
        let started = thread.spawn(move || theirs.run(host, &devices, keeper, start));
        DeviceWatch {
            unavailable: started.as_ref().err().map(ToString::to_string),
            shared: started.is_ok().then_some(shared),
        }
    }

    /// Tells which processes are those of the job.
    pub(crate) fn follow(&self, living: impl Iterator<Item = (i32, u64)>) {
        if let Some(shared) = &self.shared {
            let mut state = shared.state();
            state.living.clear();
            state.living.extend(living.map(|(pid, _)| pid));
        }
    }

    /// The job is over. Returns what was seen of its devices, with a last look if that does not take long.
    pub(crate) fn end(&self) -> Seen {
        let Some(shared) = &self.shared else {
            return Seen {
                unavailable: self.unavailable.clone(),
                ..Seen::default()
            };
        };
        let mut state = shared.state();
        state.over = true;
        shared.changed.notify_all();
        let until = Instant::now() + PATIENCE;
        let hangs = |state: &State| state.asked.is_some_and(|asked| asked.elapsed() >= HANGS);
        while state.opened && !state.done && !hangs(&state) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = shared.wait(state, left);
        }
        let mut seen = std::mem::take(&mut state.seen);
        if !state.done {
            state.left = true;
            let since = state.asked.map_or(Duration::ZERO, |asked| asked.elapsed());
            seen.unavailable = Some(match state.opened || since >= HANGS {
                true => format!(
                    "the driver has not answered for {:.1} s and was left behind",
                    since.as_secs_f64()
                ),
                false => "the run was over before the driver answered".into(),
            });
            // What had not risen by then may have since.
            let still = |counter: &&mut Counter| counter.rise() == Some(0);
            seen.counters
                .iter_mut()
                .filter(still)
                .for_each(|counter| counter.after = None);
        }
        seen
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&'s self, state: MutexGuard<'s, State>, time: Duration) -> MutexGuard<'s, State> {
        let waited = self.changed.wait_timeout(state, time);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Looks until the job is over, and once more.
    fn run(&self, host: Host, devices: &Devices, mut keeper: Keeper, start: Instant) {
        // Also when it panics: whoever waits for it need not.
        let _done = Done(self);
        self.state().asked = Some(Instant::now());
        let mut source = match open(host, devices) {
            Ok(source) => source,
            Err(why) => {
                self.state().seen.unavailable = Some(why);
                return;
            }
        };
        let mut pause = Duration::ZERO;
        loop {
            let (living, last) = self.rest(pause);
            let begun = Instant::now();
            let look = source.look(&living);
            if !self.answered() {
                return;
            }
            let time_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
            let moves = keeper.keep(look, time_ms);
            let mut state = self.state();
            keeper.tell(&mut state.seen);
            if last {
                return;
            }
            drop(state);
            let every = if moves || start.elapsed() < YOUNG {
                BUSY
            } else {
                QUIET
            };
            pause = every.max((begun.elapsed() * COST).min(SLOWEST));
        }
    }

    /// Waits until the next look is due. Returns who lives, and whether it is the last look.
    fn rest(&self, pause: Duration) -> (Vec<i32>, bool) {
        let due = Instant::now() + pause;
        let mut state = self.state();
        state.asked = None;
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if state.over || left.is_zero() {
                state.asked = Some(Instant::now());
                return (state.living.clone(), state.over);
            }
            state = self.wait(state, left);
        }
    }

    /// The driver has answered. Returns whether that is still of interest.
    fn answered(&self) -> bool {
        let mut state = self.state();
        (state.opened, state.asked) = (true, None);
        !state.left
    }
}

struct Done<'s>(&'s Shared);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.state().done = true;
        self.0.changed.notify_all();
    }
}

fn open(host: Host, devices: &Devices) -> Result<Source, String> {
    let nvidia = match devices {
        Devices::Through(library) => Nvidia::open(Some(library)),
        // Without the kernel's part, the library may try to load it: not in our name.
        _ if has_nvidia() => Nvidia::open(None),
        _ => Err(nvml::NO_DRIVER.into()),
    };
    match nvidia {
        Err(_) if !cards(&host).is_empty() => Ok(Source::Kernel(host)),
        nvidia => nvidia.map(Source::Nvidia),
    }
}

/// Whether the NVIDIA driver is in the kernel, or in that of the Windows around us.
fn has_nvidia() -> bool {
    let places = ["/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg"];
    places.iter().any(|place| Path::new(place).exists())
}

impl Source {
    fn look(&mut self, living: &[i32]) -> Look {
        match self {
            Source::Nvidia(nvidia) => nvidia.look(living),
            Source::Kernel(host) => Look {
                records: cards(host).into_iter().map(of_card).collect(),
                faults: Vec::new(),
            },
        }
    }
}

fn of_card(card: Card) -> DeviceRecord {
    DeviceRecord {
        index: card.number,
        name: format!("amdgpu card{}", card.number),
        memory_used: card.memory_used,
        memory_total: card.memory_total,
        utilization: card.busy,
        temperature: card.temperature,
        uncorrected_errors: card.uncorrected_errors,
        ..DeviceRecord::default()
    }
}
