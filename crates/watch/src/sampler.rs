//! Looking at a job's memory: often, cheaply, and with all its processes.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tidegate_memory::{
    Host, ProcessMemory, Resource, meminfo, memory_pressure, pressure, process_memory, process_tree,
    shared_memory, start_time,
};
use tidegate_runs::{FlightRecord, ProcessRecord};

use crate::confine::Group;
use crate::ended::OverLine;
use crate::event::Event;
use crate::family::Family;

/// A move is this part of the line, or of what is in use.
const MOVED: u64 = 100;
/// The part of the line from which on it is near.
pub(crate) const NEAR: f64 = 0.9;
/// Proportional shares make the kernel walk all pages, about a millisecond per gigabyte: not every time.
const CLOSELY_EVERY: Duration = Duration::from_secs(1);

/// Looking for dead children takes a file for each thread.
const TREE_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Sampler<'a> {
    host: &'a Host,
    pid: i32,
    limit: Option<u64>,
    pub(crate) start: Instant,
    closely_at: Option<Instant>,
    tree_at: Option<Instant>,
    /// Mixed into every record, from the worker's own events.
    ledger_used: Option<u64>,
    ledger_peak: Option<u64>,
    ledger_budget: Option<u64>,
    epoch: u32,
    step: u64,
    /// The largest `VmHWM` of the worker itself.
    pub(crate) peak_resident: Option<u64>,
    pub(crate) family: Family,
    pub(crate) shared_memory_size: Option<u64>,
    /// The last look at the living worker.
    pub(crate) last: Option<FlightRecord>,
}

/// One look: all processes together, and those of them that moved.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) record: FlightRecord,
    pub(crate) processes: Vec<ProcessRecord>,
}

impl<'a> Sampler<'a> {
    pub(crate) fn new(host: &'a Host, pid: i32, limit: Option<u64>) -> Sampler<'a> {
        Sampler {
            host,
            pid,
            limit,
            start: Instant::now(),
            closely_at: None,
            tree_at: None,
            ledger_used: None,
            ledger_peak: None,
            ledger_budget: None,
            epoch: 0,
            step: 0,
            peak_resident: None,
            family: Family::new(pid),
            shared_memory_size: None,
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
    pub(crate) fn sample(&mut self, group: Option<&Group>) -> Look {
        let pids = match group {
            Some(group) => group.pids(),
            None => process_tree(self.host, self.pid),
        };
        let due = self.closely_at.is_none_or(|at| at.elapsed() >= CLOSELY_EVERY);
        let closely = due && !self.may_be_dying(group);
        if closely {
            self.closely_at = Some(Instant::now());
        }
        // A cgroup does not list the dead, and one that died before it was seen may be what its parent waits for.
        let is_time = self.tree_at.is_none_or(|at| at.elapsed() >= TREE_EVERY);
        let dead = match group {
            Some(_) if is_time => {
                self.tree_at = Some(Instant::now());
                process_tree(self.host, self.pid)
            }
            _ => Vec::new(),
        };
        let known: HashSet<i32> = pids.iter().copied().collect();
        let pids: Vec<i32> = pids
            .into_iter()
            .chain(dead.into_iter().filter(|pid| !known.contains(pid)))
            .collect();
        let time_ms = self.time_ms();
        let held = self.family.look(self.host, &pids, closely, time_ms);
        let record = self.fill(&held, group, closely);
        self.last = Some(record);
        Look {
            record,
            processes: self.family.records(time_ms),
        }
    }

    /// A cheap look at whether memory has moved since the last real one. Where nothing is cheap, it may have.
    pub(crate) fn has_moved(&self, group: Option<&Group>) -> bool {
        let (Some(group), Some(last)) = (group, &self.last) else {
            return true;
        };
        let (before, now) = (last.cgroup_usage.unwrap_or(0), group.usage().unwrap_or(u64::MAX));
        before.abs_diff(now) > self.limit.unwrap_or(before) / MOVED
    }

    /// Whether the kernel may be about to kill one of these processes. Reading the pages of a process holds on to them:
    /// one that is killed meanwhile gives nothing back, and the kernel kills another one for it.
    fn may_be_dying(&self, group: Option<&Group>) -> bool {
        let Some((group, limit)) = group.zip(self.limit) else {
            return false;
        };
        let is_near = |bytes: u64| bytes as f64 >= NEAR * limit as f64;
        group.usage().is_some_and(is_near) && group.held().is_none_or(is_near) && self.has_moved(Some(group))
    }

    /// The last record: the processes are gone, the counters of the cgroup are not. `last` stays what was
    /// seen of the living.
    pub(crate) fn last_look(&mut self, group: Option<&Group>) -> FlightRecord {
        self.fill(&[], group, true)
    }

    pub(crate) fn time_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
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
            None => {
                let pids = process_tree(self.host, self.pid);
                let held: Vec<_> = pids
                    .iter()
                    .filter_map(|&pid| process_memory(self.host, pid))
                    .collect();
                shares(&held)
            }
        };
        let (used, proportional) = match held {
            Some(held) => (held, true),
            None => (record.resident?, false),
        };
        (used > limit).then_some(OverLine {
            used,
            limit,
            proportional,
        })
    }

    /// Processes of the job that still live, but for the first one.
    pub(crate) fn left_over(&self) -> Vec<i32> {
        let same = |&(pid, start): &(i32, u64)| start_time(self.host, pid) == Some(start);
        let living = self.family.living().filter(|(pid, _)| *pid != self.pid);
        living.filter(same).map(|(pid, _)| pid).collect()
    }

    fn fill(&mut self, processes: &[ProcessMemory], group: Option<&Group>, closely: bool) -> FlightRecord {
        if let Some(worker) = processes.iter().find(|process| process.pid == self.pid) {
            self.peak_resident = self.peak_resident.max(worker.peak_resident);
        }
        let waited = group
            .and_then(Group::pressure)
            .or_else(|| memory_pressure(self.host));
        let totals = self.family.totals();
        let mut record = FlightRecord {
            time_ms: self.time_ms(),
            resident: sum(processes, |memory| memory.resident),
            proportional: shares(processes),
            anonymous: sum(processes, |memory| memory.anonymous),
            file: sum(processes, |memory| memory.file),
            shared: sum(processes, |memory| memory.shared),
            swap: sum(processes, |memory| memory.swap),
            cgroup_usage: group.and_then(Group::usage),
            cgroup_peak: group.and_then(Group::peak),
            oom_kills: group.and_then(Group::oom_kills),
            ledger_used: self.ledger_used,
            ledger_peak: self.ledger_peak,
            budget: self.limit.or(self.ledger_budget),
            pressure_some: waited.as_ref().map(|pressure| pressure.some_avg10 as f32),
            pressure_full: waited.as_ref().map(|pressure| pressure.full_avg10 as f32),
            processes: u32::try_from(processes.len()).unwrap_or(u32::MAX),
            epoch: self.epoch,
            step: self.step,
            cpu_ms: Some(totals.cpu_ms),
            major_faults: Some(totals.major_faults),
            read_bytes: totals.read_bytes,
            written_bytes: totals.written_bytes,
            open_files: totals.open_files,
            threads: Some(totals.threads),
            ..FlightRecord::default()
        };
        if closely {
            let made_of = group.map(Group::made_of).unwrap_or_default();
            let machine = meminfo(self.host);
            let shm = shared_memory(self.host, self.pid);
            self.shared_memory_size = shm.map(|(_, size)| size).or(self.shared_memory_size);
            let waited = |resource| pressure(self.host, resource).map(|waited| waited.some_avg10 as f32);
            record = FlightRecord {
                cgroup_anonymous: made_of.anonymous,
                cgroup_file: made_of.file,
                cgroup_shared: made_of.shared,
                cgroup_swap: group.and_then(Group::swap),
                host_available: machine.available,
                host_swap: machine
                    .swap_total
                    .zip(machine.swap_free)
                    .map(|(all, free)| all - free),
                shared_memory: shm.map(|(used, _)| used),
                pressure_cpu: waited(Resource::Cpu),
                pressure_io: waited(Resource::Io),
                ..record
            };
        }
        record
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
