//! The line: who comes near it is told so and may save, who passes it unconfined is stopped.

use std::time::Duration;

use tidegate_runs::FlightRecord;

use super::Attend;
use crate::confine::Group;
use crate::ended::signal_name;
use crate::job::{OnSignal, StopReason};
use crate::queue::Item;
use crate::sampler::NEAR;
use crate::why::SignalReason;

/// How long a worker of ours over the line has to save before it is killed: it is still growing.
const OVER_LINE_GRACE: Duration = Duration::from_secs(5);
/// A watched worker that is being stopped and grows beyond the line by this part of it gets no more time.
const FAR_OVER: u64 = 4;
/// Signals that end a job as everybody knows, whether it is prepared for them or not.
const ENDS: [i32; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

impl Attend<'_> {
    /// Stops a job that is over the line, where no kernel does.
    pub(super) fn hold_to_the_line(&mut self, record: &FlightRecord) {
        if self.confinement.group().is_some() {
            return;
        }
        let Some(over) = self.sampler.over_line(record) else {
            return;
        };
        if self.story.stopped_by.is_none() {
            self.story.over_line = Some(over);
            self.queue.push(Item::OverLine(over));
            let grace = match self.on_signal {
                OnSignal::Stop => self.grace.min(OVER_LINE_GRACE),
                // As it was asked for.
                OnSignal::PassOn => self.grace,
            };
            self.stop(StopReason::OverLine, grace);
            if self.on_signal == OnSignal::PassOn {
                // The first process may be a shell that only waits for the one that could save.
                self.signal_others(libc::SIGTERM);
            }
        } else if over.used - over.limit > over.limit / FAR_OVER {
            // It was asked to stop and grows on: the machine comes before its last words.
            self.kill();
        }
    }

    fn signal_others(&self, signal: i32) {
        for pid in self.sampler.left_over() {
            // SAFETY: kill has no memory effects; the start time says that it is a process we saw.
            unsafe { libc::kill(pid, signal) };
        }
    }

    /// Says when most of the line is taken, and lets the job save if it was asked for.
    pub(super) fn look_at_the_line(&mut self, all: Option<u64>) {
        let Some(limit) = self.limit else { return };
        let group = self.confinement.group();
        let Some(used) = all.filter(|used| *used as f64 >= NEAR * limit as f64) else {
            self.near = false;
            return;
        };
        // Of a cgroup, pages that are only cached do not count: the kernel takes them back first.
        let used = group.and_then(Group::held).unwrap_or(used);
        if self.near || (used as f64) < NEAR * limit as f64 {
            return;
        }
        self.near = true;
        self.queue.push(Item::NearLine { used, limit });
        if let Some(signal) = self.before_kill.take() {
            self.let_it_save(signal);
        }
    }

    /// Sends the signal to those that are prepared for it. Others would die of it, and save nothing.
    fn let_it_save(&mut self, signal: i32) {
        let living: Vec<i32> = self.sampler.family.living().map(|(pid, _)| pid).collect();
        let mut sent = 0;
        for pid in living.into_iter().filter(|pid| catches(*pid, signal)) {
            // SAFETY: kill has no memory effects; it was seen a moment ago.
            sent += usize::from(unsafe { libc::kill(pid, signal) } == 0);
        }
        if sent == 0 && ENDS.contains(&signal) {
            self.child.signal(signal, true);
        } else if sent == 0 {
            let name = signal_name(signal);
            self.warn(format!(
                "{name} was not sent: no process of it is prepared for it, and it would die"
            ));
            return;
        }
        self.note_signal(signal, SignalReason::NearLine);
    }
}

/// Whether a process has a handler for a signal.
fn catches(pid: i32, signal: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    crate::child::has_signal(&status, "SigCgt:", signal)
}
