//! The end of a job: its last words, what it left behind, the counters, and what is only known now.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{Attend, Heeds, TICK};
use crate::ended::{Ended, Exit};
use crate::job::{OnSignal, StopReason};
use crate::queue::Item;
use crate::why::Facts;

/// How long output may still come after the worker is over, from processes that it left behind.
const DRAIN: Duration = Duration::from_millis(300);

impl Attend<'_> {
    /// The worker is over: hear its last words, end what it left behind, read the counters, clean up.
    pub(super) fn see_out(mut self) -> Ended {
        self.let_the_others_end();
        self.drain();
        self.end_what_is_left();
        // What was in the pipes when their last writers were killed.
        self.drain();
        let mut pipes = std::mem::take(&mut self.pipes);
        pipes.finish(|source, line| self.heard(source, line));
        let queue = self.queue;
        let mut trouble = |text| queue.push(Item::warning(text));
        self.recorder.end(&mut trouble);
        if let Some(terminal) = &mut self.child.terminal {
            terminal.give_back();
        }

        // One that was over before anybody looked still has its limits until it is waited for.
        self.limits.look(std::iter::once(self.child.pid));
        let (exit, max_resident) = self.child.reap();
        let final_record = self.sampler.last_look(self.confinement.group());
        self.recorder.keep(&final_record, &mut trouble);
        let mut ended = self.account(exit, max_resident);
        ended.facts = self.facts(&ended);
        self.recorder.facts(&ended.facts, &mut trouble);
        if let Some(trouble) = self.confinement.remove() {
            self.warn(trouble);
        }
        ended
    }

    /// Whoever was asked to end at the line has its time, also when the first process, a shell perhaps, is gone before.
    fn let_the_others_end(&mut self) {
        let asked = self.story.stopped_by == Some(StopReason::OverLine) && self.on_signal == OnSignal::PassOn;
        let Some(until) = self.story.kill_at.filter(|_| asked) else {
            return;
        };
        while Instant::now() < until && !self.sampler.left_over().is_empty() {
            self.wait(TICK, Heeds::Nothing);
        }
    }

    /// Passes on all that is in the pipes. Whoever reads our own output may be slow, and is waited for, as the job would
    /// have; where nothing more is to be read, but somebody could still write, only for a moment.
    fn drain(&mut self) {
        let mut quiet_since = Instant::now();
        while self.pipes.is_open() {
            let timeout = match self.pipes.is_waiting() {
                true if !self.signals.take().is_empty() => return,
                true => {
                    quiet_since = Instant::now();
                    TICK
                }
                false => DRAIN.saturating_sub(quiet_since.elapsed()),
            };
            if timeout.is_zero() {
                return;
            }
            self.wait(timeout, Heeds::Signals);
        }
    }

    /// Ends what the first process has left behind, and says so of a command that is not ours.
    fn end_what_is_left(&mut self) {
        let left = match self.confinement.group() {
            Some(group) => group.pids(),
            None => self.sampler.left_over(),
        };
        let left = left.iter().filter(|pid| **pid != self.child.pid).count();
        if left > 0 && self.on_signal == OnSignal::PassOn && self.story.killed_at.is_none() {
            let what = if left == 1 { "process" } else { "processes" };
            self.warn(format!("ended {left} {what} that it had left behind"));
        }
        // Before the status is taken: until then the numbers cannot belong to anyone else.
        self.child.kill_group();
        if let Some(group) = self.confinement.group() {
            group.kill();
        }
        for pid in self.sampler.left_over() {
            // SAFETY: kill has no memory effects; the start time says that it is a process we saw.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }

    /// What was seen, with what is only known now.
    fn facts(&mut self, ended: &Ended) -> Facts {
        let time_ms = self.sampler.time_ms();
        self.stillness.moved(time_ms, &self.sampler.family.ended);
        let kernel = std::mem::take(&mut self.kernel).end(ended.exit == Exit::Code(0));
        let devices = self.devices.end();
        let counters = std::mem::take(&mut self.counters).after(self.host);
        Facts {
            crashes: self
                .modules
                .crashes(&kernel, self.facts.command.first().map(Path::new)),
            kernel,
            exit: Some(ended.exit),
            failure: ended.failed.clone(),
            duration_ms: Some(time_ms),
            containment: ended.containment.clone(),
            peak: ended.peak,
            peak_source: ended.peak_source.map(str::to_owned),
            over_line: ended.over_line,
            taken: ended.taken.clone(),
            saved: ended.stopped == Some(true),
            stopped: ended.stopped.is_some(),
            limits: std::mem::take(&mut self.limits).tightest(),
            shared_memory_size: self.sampler.shared_memory_size,
            counters: [counters, devices.counters].concat(),
            device_faults: devices.faults,
            devices_unavailable: devices.unavailable,
            ended_children: std::mem::take(&mut self.sampler.family.ended),
            stalls: std::mem::take(&mut self.stillness.stalls),
            ..std::mem::take(&mut self.facts)
        }
    }

    fn account(&mut self, exit: Exit, max_resident: Option<u64>) -> Ended {
        // Below our own size the kernel's figure is that of the fork, not of the worker.
        let above_floor = max_resident.filter(|&bytes| self.resident_floor.is_none_or(|floor| bytes > floor));
        let (resident_peak, resident_source) = match above_floor {
            Some(bytes) => (Some(bytes), "ru_maxrss"),
            None => (self.sampler.peak_resident, "VmHWM"),
        };
        let group = self.confinement.group();
        let (peak, peak_source) = match group.and_then(|group| group.peak()) {
            Some(bytes) => (Some(bytes), Some("cgroup peak")),
            None => (resident_peak, resident_peak.map(|_| resident_source)),
        };
        let story = std::mem::take(&mut self.story);
        Ended {
            exit,
            peak,
            peak_source,
            resident_peak,
            oom_kills: group.and_then(|group| group.oom_kills()),
            limit: self.limit,
            containment: self.confinement.describe(),
            stopped_by: story.stopped_by,
            killed_by_us: story.killed_at.is_some(),
            over_line: story.over_line,
            stopped: story.stopped,
            taken: story.taken,
            failed: story.failed,
            done: story.done,
            speaks: self.speaks,
            last: self.sampler.last,
            duration: self.sampler.elapsed(),
            facts: Facts::default(),
        }
    }
}
