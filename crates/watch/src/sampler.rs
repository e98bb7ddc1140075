//! Looking at a worker's memory: often, cheaply, and with its descendants.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tidegate_memory::{
    Host, ProcessMemory, memory_pressure, process_memory, process_status, process_tree, start_time,
};
use tidegate_runs::FlightRecord;

use crate::confine::Group;
use crate::ended::OverLine;
use crate::event::Event;

/// Proportional shares make the kernel walk all pages, about a millisecond per gigabyte: not every time.
const SHARES_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Sampler<'a> {
    host: &'a Host,
    pid: i32,
    limit: Option<u64>,
    start: Instant,
    shares_at: Option<Instant>,
    /// Mixed into every record, from the worker's own events.
    ledger_used: Option<u64>,
    ledger_peak: Option<u64>,
    ledger_budget: Option<u64>,
    epoch: u32,
    step: u64,
    /// The largest `VmHWM` of the worker itself.
    pub(crate) peak_resident: Option<u64>,
    /// Every process that was ever seen below the worker, with its start time: without a cgroup this is
    /// how one that left the group is found again.
    seen: HashMap<i32, u64>,
    /// The last look at the living worker.
    pub(crate) last: Option<FlightRecord>,
}

impl<'a> Sampler<'a> {
    pub(crate) fn new(host: &'a Host, pid: i32, limit: Option<u64>) -> Sampler<'a> {
        Sampler {
            host,
            pid,
            limit,
            start: Instant::now(),
            shares_at: None,
            ledger_used: None,
            ledger_peak: None,
            ledger_budget: None,
            epoch: 0,
            step: 0,
            peak_resident: None,
            seen: HashMap::new(),
            last: None,
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn heard(&mut self, event: &Event) {
        match event {
            Event::Ledger {
                used, peak, budget, ..
            } => {
                (self.ledger_used, self.ledger_peak) = (Some(*used), Some(*peak));
                self.ledger_budget = Some(*budget);
            }
            Event::Progress { epoch, step, .. } => (self.epoch, self.step) = (*epoch, *step),
            Event::Metric { epoch, step, .. } | Event::Checkpoint { epoch, step, .. } => {
                (self.epoch, self.step) = (*epoch, (*step).max(self.step));
            }
            _ => {}
        }
    }

    /// One look at everything.
    pub(crate) fn sample(&mut self, group: Option<&Group>) -> FlightRecord {
        let pids = match group {
            Some(group) => group.pids(),
            None => process_tree(self.host, self.pid),
        };
        if group.is_none() {
            // A worker that starts many short processes must not grow us.
            if self.seen.len() > 1024 {
                let host = self.host;
                self.seen
                    .retain(|&pid, &mut start| start_time(host, pid) == Some(start));
            }
            for &pid in &pids {
                if !self.seen.contains_key(&pid)
                    && let Some(start) = start_time(self.host, pid)
                {
                    self.seen.insert(pid, start);
                }
            }
        }
        let with_shares = self.shares_at.is_none_or(|at| at.elapsed() >= SHARES_EVERY);
        if with_shares {
            self.shares_at = Some(Instant::now());
        }
        let record = self.fill(self.measure(&pids, with_shares), group);
        self.last = Some(record);
        record
    }

    /// The last record: the processes are gone, the counters of the cgroup are not. `last` stays what was
    /// seen of the living.
    pub(crate) fn last_look(&mut self, group: Option<&Group>) -> FlightRecord {
        self.fill(Vec::new(), group)
    }

    /// Whether a watched worker has passed the line. Resident sizes count shared pages once for each
    /// process, so they only say that it may have; the proportional ones decide.
    pub(crate) fn over_line(&self, record: &FlightRecord) -> Option<OverLine> {
        let limit = self.limit?;
        if record.resident? <= limit {
            return None;
        }
        let held = match record.proportional {
            Some(held) => Some(held),
            None => shares(&self.measure(&process_tree(self.host, self.pid), true)),
        };
        let (used, figure) = match held {
            Some(held) => (held, "proportional"),
            None => (record.resident?, "resident"),
        };
        (used > limit).then_some(OverLine { used, limit, figure })
    }

    /// Processes that were once below the worker and still live. Only filled without a cgroup.
    pub(crate) fn left_over(&self) -> Vec<i32> {
        let same = |&(&pid, &start): &(&i32, &u64)| start_time(self.host, pid) == Some(start);
        self.seen
            .iter()
            .filter(same)
            .map(|(&pid, _)| pid)
            .filter(|&pid| pid != self.pid)
            .collect()
    }

    fn measure(&self, pids: &[i32], with_shares: bool) -> Vec<ProcessMemory> {
        let read = if with_shares {
            process_memory
        } else {
            process_status
        };
        pids.iter().filter_map(|&pid| read(self.host, pid)).collect()
    }

    fn fill(&mut self, processes: Vec<ProcessMemory>, group: Option<&Group>) -> FlightRecord {
        if let Some(worker) = processes.iter().find(|process| process.pid == self.pid) {
            self.peak_resident = self.peak_resident.max(worker.peak_resident);
        }
        let pressure = group
            .and_then(Group::pressure)
            .or_else(|| memory_pressure(self.host));
        FlightRecord {
            time_ms: u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX),
            resident: sum(&processes, |memory| memory.resident),
            proportional: shares(&processes),
            anonymous: sum(&processes, |memory| memory.anonymous),
            file: sum(&processes, |memory| memory.file),
            shared: sum(&processes, |memory| memory.shared),
            swap: sum(&processes, |memory| memory.swap),
            cgroup_usage: group.and_then(Group::usage),
            cgroup_peak: group.and_then(Group::peak),
            oom_kills: group.and_then(Group::oom_kills),
            ledger_used: self.ledger_used,
            ledger_peak: self.ledger_peak,
            budget: self.limit.or(self.ledger_budget),
            pressure_some: pressure.as_ref().map(|pressure| pressure.some_avg10 as f32),
            pressure_full: pressure.as_ref().map(|pressure| pressure.full_avg10 as f32),
            processes: u32::try_from(processes.len()).unwrap_or(u32::MAX),
            epoch: self.epoch,
            step: self.step,
        }
    }
}

/// Over those that told it: a process on its way out has no memory left to tell of.
fn sum(processes: &[ProcessMemory], field: fn(&ProcessMemory) -> Option<u64>) -> Option<u64> {
    processes.iter().filter_map(field).reduce(u64::saturating_add)
}

/// `None` unless every process that has memory told its share: half a sum would pass for the whole.
fn shares(processes: &[ProcessMemory]) -> Option<u64> {
    let with_memory = processes.iter().filter(|memory| memory.resident.is_some());
    let told: Option<Vec<u64>> = with_memory.map(|memory| memory.proportional).collect();
    told?.into_iter().reduce(u64::saturating_add)
}
