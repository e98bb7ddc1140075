//! What is to be supervised, and what the caller hears while it is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_runs::{FlightRecord, Store, Stream};

use crate::ended::OverLine;
use crate::event::Event;

/// A command to run under the line.
#[derive(Debug)]
pub struct Job<'a> {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Added to the inherited environment.
    pub envs: Vec<(OsString, OsString)>,
    /// The worker speaks our events: `--events-fd N` is appended to its arguments, where N is the number
    /// of the open pipe it finds itself with. A foreign command gets neither.
    pub events: bool,
    /// SIGTERM and SIGINT wait, blocked, until the worker is ready for them: it calls [`crate::stop_flag`].
    pub hold_stops: bool,
    /// Pass our standard input on; otherwise the worker reads from `/dev/null`.
    pub stdin: bool,
    pub output: Output,
    /// The line. `None`: nothing is enforced.
    pub limit_bytes: Option<u64>,
    /// Hold the line with a cgroup where the kernel lets us; otherwise only watch.
    pub confine: bool,
    pub on_signal: OnSignal,
    /// Sent once when the job comes near the line, so that it can save.
    pub before_kill: Option<i32>,
    /// Where to record it: flight, log, metrics and outcome.
    pub run: Option<RecordedRun<'a>>,
    /// Look at the stacks of Python processes, too.
    pub stacks: bool,
    /// Look at the accelerators of the machine, too.
    pub devices: Devices,
    /// Between asking the worker to stop and killing it.
    pub grace: Duration,
    /// Between two looks at its memory. Stretched when looking itself gets costly.
    pub sample_every: Duration,
}

impl Job<'_> {
    /// A worker of ours with no line and no record; the fields are there to be set.
    pub fn new(program: impl Into<PathBuf>, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Job {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            envs: Vec::new(),
            events: true,
            hold_stops: false,
            stdin: false,
            output: Output::Log,
            limit_bytes: None,
            confine: true,
            on_signal: OnSignal::Stop,
            before_kill: None,
            run: None,
            stacks: false,
            devices: Devices::Unwatched,
            grace: Duration::from_secs(30),
            sample_every: Duration::from_millis(100),
        }
    }
}

/// Where the worker's standard output and error go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// To ours, untouched and unrecorded.
    Inherit,
    /// Line by line to the caller and, time-stamped, to the run's log.
    Log,
    /// To ours, byte by byte as it comes, and line by line to the run's log. Where ours is a terminal, the job has one,
    /// too.
    Through,
}

/// Whose word is taken for what accelerators do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Devices {
    Unwatched,
    /// That of the drivers of this machine, where there are any.
    Watched,
    /// That of a library of NVIDIA's interface (NVML) at this place.
    Through(PathBuf),
}

/// What is done with a signal that comes to the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnSignal {
    /// The job is stopped in good order: asked, and killed after the grace or at the second signal.
    Stop,
    /// The job gets it, and decides.
    PassOn,
}

/// A run of the store that this job is. The supervisor writes all of its record: started, metrics,
/// flight, log and outcome.
#[derive(Debug, Clone, Copy)]
pub struct RecordedRun<'a> {
    pub store: &'a Store,
    pub id: &'a str,
}

/// Why the supervisor ended a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM or SIGHUP to the supervisor.
    Terminate,
    /// The memory of a watched worker passed the line.
    OverLine,
    /// The supervisor cannot go on: a worker that speaks another version, a caller that panicked.
    ParentError,
}

/// What the caller hears. Updates arrive in order on the caller's own thread. A caller that is slow
/// holds nobody up: samples, progress and output that it has no time for are left out (the log and the
/// flight recorder have them all).
#[derive(Debug)]
pub enum Update<'a> {
    /// The worker runs, and as which run it is recorded. `containment` is `cgroup v1`, `cgroup v2` or `watched: …` with
    /// the reason.
    Started {
        pid: i32,
        run: Option<&'a str>,
        containment: &'a str,
        cgroup: Option<&'a Path>,
    },
    /// From the worker; warnings also come from the supervisor itself.
    Event(&'a Event),
    Sample(&'a FlightRecord),
    Output {
        stream: Stream,
        line: &'a str,
    },
    /// The worker was asked to stop, or, the second time, killed.
    Stopping {
        second: bool,
    },
    /// Most of the line is taken, by memory that the kernel cannot take back.
    NearLine {
        used: u64,
        limit: u64,
    },
    /// A watched worker passed the line and is being stopped.
    OverLine(OverLine),
}
