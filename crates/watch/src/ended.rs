//! How a worker ended: what was measured, in figures and in one honest sentence.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidegate_memory::format_bytes;
use tidegate_runs::{FlightRecord, Outcome, Status};

use crate::event::{Done, Failure, MemoryTaken};
use crate::job::StopReason;
use crate::why::Facts;

/// How a process left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// It did not go within seconds of SIGKILL and was left there, or another part of this program took
    /// its exit status.
    Unknown,
}

/// The moment at which a watched worker passed the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverLine {
    pub used: u64,
    pub limit: u64,
    /// By proportional share where the kernel tells it, else by resident size.
    pub proportional: bool,
}

impl OverLine {
    pub fn figure(&self) -> &'static str {
        match self.proportional {
            true => "proportional",
            false => "resident",
        }
    }
}

/// Everything that is known about a worker that is over. `None` was not measured.
#[derive(Debug, Clone)]
pub struct Ended {
    pub exit: Exit,
    /// The kernel's peak, by the counter that `peak_source` names: `cgroup peak` (all memory of the
    /// group, file pages included), `ru_maxrss` or `VmHWM` (resident, of the worker alone).
    pub peak: Option<u64>,
    pub peak_source: Option<&'static str>,
    /// The worker's resident peak. The kernel counts from the fork, so a worker smaller than its
    /// supervisor has only the sampled `VmHWM`, or none.
    pub resident_peak: Option<u64>,
    /// By how much the cgroup's `oom_kill` rose.
    pub oom_kills: Option<u64>,
    pub limit: Option<u64>,
    /// `cgroup v1`, `cgroup v2`, `watched: …`.
    pub containment: String,
    pub stopped_by: Option<StopReason>,
    /// The supervisor sent SIGKILL while the worker still ran.
    pub killed_by_us: bool,
    pub over_line: Option<OverLine>,
    /// The worker said that it stopped in good order; whether it left a checkpoint.
    pub stopped: Option<bool>,
    /// Why it did, where it was not asked to.
    pub taken: Option<MemoryTaken>,
    pub failed: Option<Failure>,
    pub done: Option<Done>,
    /// A worker of ours was expected to say how it went.
    pub speaks: bool,
    pub last: Option<FlightRecord>,
    pub duration: Duration,
    /// What only the supervisor saw; also where no disk took it.
    pub facts: Facts,
}

impl Ended {
    pub fn status(&self) -> Status {
        match self.exit_code() {
            0 => Status::Done,
            130 | 143 => Status::Stopped,
            _ => Status::Failed,
        }
    }

    /// What `tidegate` exits with: 0 done, 1 failed, 2 bad usage, 130 interrupted, 143 terminated.
    pub fn exit_code(&self) -> i32 {
        if let Some(failure) = &self.failed {
            return if failure.usage { 2 } else { 1 };
        }
        // A worker that had finished when Ctrl-C came is done, not interrupted.
        // Nor does one that finished and then hung on its way out lose its work.
        let finished = self.done.is_some() && (self.exit == Exit::Code(0) || self.killed_by_us);
        if finished || (!self.speaks && self.stopped_by.is_none() && self.exit == Exit::Code(0)) {
            return 0;
        }
        match self.stopped_by {
            Some(StopReason::Interrupt) => 130,
            Some(StopReason::Terminate) => 143,
            Some(StopReason::OverLine | StopReason::ParentError) => 1,
            None if self.taken.is_some() => 1,
            None if !self.speaks && self.exit == Exit::Signal(libc::SIGINT) => 130,
            None if !self.speaks && matches!(self.exit, Exit::Signal(libc::SIGTERM | libc::SIGHUP)) => 143,
            // Someone else asked the worker to stop, and it did so in good order.
            None if self.stopped.is_some() && self.exit == Exit::Code(0) => 143,
            None => 1,
        }
    }

    /// One sentence that claims nothing that was not measured.
    pub fn explain(&self) -> String {
        if let Some(failure) = &self.failed {
            return format!("{}{}", failure.message, self.oom_aside());
        }
        if self.exit_code() == 0 {
            return format!("done{}", self.figures());
        }
        if let Some(over) = self.over_line {
            return format!(
                "stopped at the line: its {} memory was {} of {}{}",
                over.figure(),
                format_bytes(over.used),
                format_bytes(over.limit),
                if self.killed_by_us {
                    "; it did not end by itself and was killed"
                } else {
                    ""
                }
            );
        }
        if let Some(reason) = self.stopped_by {
            return self.explain_stop(reason);
        }
        if let Some(taken) = &self.taken {
            let saved = match self.stopped {
                Some(true) => "a checkpoint was saved",
                _ => "there was nothing to save",
            };
            return format!("stopped because {}; {saved}", taken.describe());
        }
        match self.exit {
            Exit::Signal(libc::SIGKILL) => match self.oom_kills {
                Some(0) => {
                    format!(
                        "killed by signal 9 (SIGKILL); its cgroup counted no OOM kill{}",
                        self.figures()
                    )
                }
                Some(kills) => format!(
                    "killed by the kernel's OOM killer: oom_kill of the worker's cgroup rose by {kills}{}",
                    self.figures()
                ),
                None => format!(
                    "killed by signal 9 (SIGKILL); by whom was not measured, it had no cgroup of its own{}",
                    self.figures()
                ),
            },
            Exit::Signal(signal) => {
                format!(
                    "ended by {}{}{}",
                    signal_name(signal),
                    self.oom_aside(),
                    self.figures()
                )
            }
            Exit::Code(0) if self.stopped.is_some() => "stopped in good order on request".into(),
            Exit::Code(0) => "exit code 0, but the worker never said that it was done".into(),
            Exit::Code(101) => {
                format!(
                    "exit code 101, as a Rust program has after a panic{}",
                    self.oom_aside()
                )
            }
            Exit::Code(code) => format!("exit code {code}{}", self.oom_aside()),
            Exit::Unknown => "how it ended is not known: its exit status was taken by someone else".into(),
        }
    }

    fn explain_stop(&self, reason: StopReason) -> String {
        let by = match reason {
            StopReason::Interrupt => "interrupted",
            StopReason::Terminate => "terminated",
            StopReason::OverLine => "stopped at the line",
            StopReason::ParentError => "stopped by its supervisor",
        };
        let how = match (self.stopped, self.killed_by_us, self.exit) {
            (_, true, Exit::Unknown) => "; it was still there seconds after SIGKILL, stuck inside the kernel",
            (Some(true), ..) => "; a checkpoint was saved",
            (_, true, _) => "; it did not end by itself and was killed",
            (Some(false), ..) => "; there was nothing to save",
            (None, false, _) => "; it did not say whether it saved anything",
        };
        format!("{by}{how}")
    }

    /// An OOM kill inside the group is worth saying whatever the worker itself died of.
    fn oom_aside(&self) -> String {
        match self.oom_kills {
            None | Some(0) => String::new(),
            Some(1) => "; the kernel's OOM killer had killed 1 process of its cgroup".into(),
            Some(kills) => format!("; the kernel's OOM killer had killed {kills} processes of its cgroup"),
        }
    }

    fn figures(&self) -> String {
        let limit = self.limit.map(|bytes| format!("limit {}", format_bytes(bytes)));
        let peak = self
            .peak
            .zip(self.peak_source)
            .map(|(bytes, source)| match source {
                "cgroup peak" => format!("peak {}", format_bytes(bytes)),
                source => format!("peak {} by {source}", format_bytes(bytes)),
            });
        let known: Vec<String> = limit.into_iter().chain(peak).collect();
        if known.is_empty() {
            String::new()
        } else {
            format!(" ({})", known.join(", "))
        }
    }

    /// What the run store keeps of it.
    pub fn outcome(&self) -> Outcome {
        let status = self.status();
        let done = self.done.as_ref();
        Outcome {
            peak_bytes: self.peak,
            peak_source: self.peak_source.map(str::to_string),
            resident_peak_bytes: self.resident_peak,
            oom_kills: self.oom_kills,
            metric_name: done.and_then(|done| done.metric_name.clone()),
            metric_value: done.and_then(|done| done.metric_value),
            baseline_value: done.and_then(|done| done.baseline_value),
            exit_code: if let Exit::Code(code) = self.exit {
                Some(code)
            } else {
                None
            },
            signal: if let Exit::Signal(signal) = self.exit {
                Some(signal)
            } else {
                None
            },
            error: (status != Status::Done).then(|| self.explain()),
            hint: self.failed.as_ref().and_then(|failure| failure.hint.clone()),
            ..Outcome::new(status)
        }
    }
}

/// The number of a signal by its name, with or without `SIG`, or by its number.
pub fn signal_number(text: &str) -> Option<i32> {
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let known = [
        ("HUP", libc::SIGHUP),
        ("INT", libc::SIGINT),
        ("QUIT", libc::SIGQUIT),
        ("KILL", libc::SIGKILL),
        ("USR1", libc::SIGUSR1),
        ("USR2", libc::SIGUSR2),
        ("ALRM", libc::SIGALRM),
        ("TERM", libc::SIGTERM),
        ("CONT", libc::SIGCONT),
        ("STOP", libc::SIGSTOP),
        ("TSTP", libc::SIGTSTP),
    ];
    let by_name = known
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, number)| *number);
    by_name.or_else(|| name.parse().ok().filter(|number| (1..=64).contains(number)))
}

/// Ends this process as the signal would have, so that whoever waits for it sees the same. Returns if it does not.
pub fn die_of(signal: i32) {
    let no_core = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the core of the one that matters was written, or not, already; then the signal does what it does by
    // default, to this process, which has nothing left to do.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &no_core);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
    }
}

/// A signal as a person knows it.
pub(crate) fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGABRT => "SIGABRT, an abort",
        libc::SIGSEGV => "SIGSEGV, an invalid memory access",
        libc::SIGBUS => "SIGBUS, a bus error",
        libc::SIGILL => "SIGILL, an illegal instruction",
        libc::SIGFPE => "SIGFPE, an arithmetic error",
        libc::SIGKILL => "SIGKILL",
        libc::SIGTERM => "SIGTERM",
        libc::SIGINT => "SIGINT",
        libc::SIGHUP => "SIGHUP",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGALRM => "SIGALRM, an alarm clock",
        libc::SIGVTALRM => "SIGVTALRM, an alarm clock",
        libc::SIGPROF => "SIGPROF, a profiler's clock",
        libc::SIGXCPU => "SIGXCPU, its limit of processor time",
        libc::SIGXFSZ => "SIGXFSZ, its limit of the size of a file",
        libc::SIGSYS => "SIGSYS, a forbidden system call",
        libc::SIGTRAP => "SIGTRAP, a breakpoint",
        libc::SIGSTKFLT => "SIGSTKFLT",
        libc::SIGIO => "SIGIO",
        libc::SIGPWR => "SIGPWR",
        libc::SIGSTOP => "SIGSTOP",
        libc::SIGTSTP => "SIGTSTP",
        libc::SIGCONT => "SIGCONT",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}
