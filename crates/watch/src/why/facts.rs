//! What is left of a run: all that a verdict is made of, whoever ran it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tidegate_runs::{DeviceRecord, FlightRecord, ProcessRecord, Stacks, Stream};

use super::verdict::{Evidence, Standing};
use crate::ended::{Exit, OverLine};
use crate::event::{Failure, MemoryTaken};

/// What only the supervisor could see, and only then: it writes it down at the end (`facts.json`). Of a job that was not
/// run under Tidegate most of it is not there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    pub command: Vec<String>,
    /// Where the command ran.
    pub folder: PathBuf,
    /// Notebooks whose kernels ran in it.
    pub notebooks: Vec<PathBuf>,
    /// The first process; its number means something in the kernel's log only.
    pub pid: Option<i32>,
    /// `None` where it is not known.
    pub exit: Option<Exit>,
    pub duration_ms: Option<u64>,
    /// What a worker of ours said of its failure.
    pub failure: Option<Failure>,
    /// Where nobody was left to see the end: what was found later.
    pub lost: Option<String>,
    /// The line, and how it was held: `cgroup v1`, `watched: …`.
    pub limit: Option<u64>,
    pub containment: String,
    pub peak: Option<u64>,
    pub peak_source: Option<String>,
    pub over_line: Option<OverLine>,
    /// Memory that was taken away from a worker of ours, which stopped for it, and whether it left a checkpoint.
    pub taken: Option<MemoryTaken>,
    pub saved: bool,
    /// A worker of ours said that it stopped: in good order, and before it was done.
    pub stopped: bool,
    /// The signals that the supervisor passed on or sent, in order.
    pub signals: Vec<SentSignal>,
    /// Counters that only rise, before and after.
    pub counters: Vec<Counter>,
    /// Lines of the kernel's log since the start.
    pub kernel: KernelLog,
    /// The functions in which processes crashed.
    pub crashes: Vec<Crash>,
    /// Processes below the first one that ended while it ran.
    pub ended_children: Vec<EndedChild>,
    /// Why the command could not even be started, if so.
    pub refused: Option<Refused>,
    /// Output and errors were recorded each by itself; on a terminal both are one.
    pub streams_apart: bool,
    /// The limits of the first process, as `getrlimit` names them: `RLIMIT_AS`, …; `None` is unlimited.
    pub limits: Vec<(String, Option<u64>)>,
    /// The size of `/dev/shm`.
    pub shared_memory_size: Option<u64>,
    /// Times at which nothing had moved for long.
    pub stalls: Vec<Stall>,
    /// Errors that drivers of accelerators reported, the first of each kind.
    pub device_faults: Vec<DeviceFault>,
    /// Why accelerators could not be looked at, if so.
    pub devices_unavailable: Option<String>,
}

/// An error that the driver of an accelerator reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFault {
    pub time_ms: u64,
    pub index: u32,
    /// NVIDIA's number of it; `None` where the driver only lost the device.
    pub xid: Option<u32>,
}

/// A command that could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The program, or what its first line says that it is to be run by.
    pub file: PathBuf,
    /// It is what the program is to be run by.
    pub interpreter: bool,
    /// As the kernel says it: `ENOENT`, `EACCES`, …
    pub errno: Option<i32>,
}

/// A signal that the supervisor sent to the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentSignal {
    pub time_ms: u64,
    pub signal: i32,
    pub why: SignalReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalReason {
    /// It came to the supervisor, which passed it on.
    PassedOn,
    /// Near the line, for the job to save (`--before-kill`).
    NearLine,
    /// Over the line.
    Line,
    /// What was left when the first process had ended.
    LeftOver,
}

/// A counter that only rises.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    pub kind: CounterKind,
    pub scope: Scope,
    /// The file and the name in it.
    pub source: String,
    /// `None` where it could not be read.
    pub before: Option<u64>,
    pub after: Option<u64>,
}

impl Counter {
    pub fn rise(&self) -> Option<u64> {
        Some(self.after?.saturating_sub(self.before?))
    }

    pub fn evidence(&self) -> Evidence {
        let (standing, text) = match (self.before, self.after) {
            (Some(before), Some(after)) => {
                let standing = match self.scope {
                    Scope::Own => Standing::Observed,
                    Scope::Above | Scope::Host => Standing::Partial,
                };
                (standing, format!("{before} before, {after} after"))
            }
            _ => (Standing::Unavailable, "could not be read".into()),
        };
        Evidence {
            standing,
            text,
            source: self.source.clone(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CounterKind {
    /// Processes that the kernel killed for want of memory.
    OomKills,
    /// Memory errors that were corrected, and that were not (EDAC).
    CorrectedErrors,
    UncorrectedErrors,
    MachineChecks,
    /// Times the processor was slowed down for heat.
    Throttled,
    /// Errors of disks.
    DiskErrors,
    /// Pages read from swap.
    SwappedIn,
    /// Uncorrected errors of an accelerator.
    DeviceErrors,
}

/// Who else a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Nobody else: a cgroup of its own.
    Own,
    /// A cgroup above, with others in it.
    Above,
    Host,
}

/// The kernel's log, as far as it could be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelLog {
    /// Where it was read from: `/dev/kmsg`, `journalctl`.
    pub source: String,
    /// Why it could not be read, if so.
    pub unavailable: Option<String>,
    pub lines: Vec<String>,
}

/// A process that crashed in native code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    pub pid: i32,
    /// The program or library whose code it ran.
    pub module: PathBuf,
    pub function: String,
}

/// A process below the first one that ended while it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedChild {
    pub time_ms: u64,
    pub pid: i32,
    pub parent: i32,
    pub name: String,
    /// Known where it was seen as a zombie.
    pub exit: Option<Exit>,
    /// What it had when it was last seen.
    pub resident: Option<u64>,
}

/// Nothing moved from here to there: no processor time, no output, no disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    pub from_ms: u64,
    pub to_ms: u64,
    /// A child that had died shortly before, if so.
    pub after_child: Option<i32>,
    /// What its threads waited for, where the kernel told.
    #[serde(default)]
    pub waits: Option<Waits>,
}

/// What the threads of a job that does not move wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// The function of the kernel that the main thread of the first process waits in.
    pub main: String,
    /// The main thread waits without end for what only the job itself could do.
    #[serde(default)]
    pub endless: bool,
    /// Some thread of some process waits for time to pass: it will go on by itself.
    pub sleeps: bool,
    /// Some other thread waits for something, but not without end.
    #[serde(default)]
    pub timed: bool,
    /// Some thread waits for what may come from outside: the network, a person.
    #[serde(default)]
    pub outside: bool,
    pub threads: usize,
}

/// A line of the job's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// From 1, in the whole log.
    pub number: u64,
    /// Milliseconds since 1970, where it was recorded.
    pub time_ms: Option<i64>,
    pub stream: Stream,
    pub text: String,
}

/// Everything that is left of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Case {
    /// What the run is called in the store, where it is in one.
    pub run: Option<String>,
    pub facts: Facts,
    /// The last lines of its output.
    pub log: Vec<LogLine>,
    /// Wall clock at the start of the recordings.
    pub start_ms: Option<i64>,
    pub flight: Vec<FlightRecord>,
    pub processes: Vec<ProcessRecord>,
    pub devices: Vec<DeviceRecord>,
    pub stacks: Stacks,
    /// What could not be seen, and why.
    pub unseen: Vec<Evidence>,
    /// Of a job that was not run under Tidegate.
    pub foreign: Option<Foreign>,
}

/// How a job that was not run under Tidegate was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Foreign {
    /// Whether the process of the number that was asked for is still there.
    pub lives: Option<bool>,
    /// When this machine started, in milliseconds since 1970.
    pub booted_ms: Option<i64>,
    /// When its log was last written.
    pub log_ms: Option<i64>,
}
