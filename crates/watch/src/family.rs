//! The processes of a job as they come, grow and go.

use std::collections::HashMap;

use tidegate_memory::{
    Host, ProcessActivity, ProcessMemory, open_files, process_activity, process_disk, process_memory,
    process_status,
};
use tidegate_runs::{PROCESS_AT_LEAST_EVERY_MS, ProcessRecord};

use crate::ended::Exit;
use crate::why::EndedChild;

/// A process is recorded again when it moved by 1% of its size and at least this much, or after a while.
const MOVE: u64 = 256 << 10;
/// Children whose end is remembered one by one; of a job that starts thousands, the first and the last ones.
const MOST_ENDED: usize = 200;

/// All processes of a job that were ever seen.
#[derive(Debug)]
pub(crate) struct Family {
    root: i32,
    living: HashMap<i32, Member>,
    /// Of those that are gone.
    gone: Totals,
    pub(crate) ended: Vec<EndedChild>,
}

#[derive(Debug, Clone)]
struct Member {
    activity: ProcessActivity,
    memory: Option<ProcessMemory>,
    disk: Option<(u64, u64)>,
    files: Option<u64>,
    recorded: Option<ProcessRecord>,
    told_end: bool,
}

/// Sums over processes; what only some of them told is a sum of those.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) cpu_ms: u64,
    pub(crate) major_faults: u64,
    pub(crate) read_bytes: Option<u64>,
    pub(crate) written_bytes: Option<u64>,
    pub(crate) open_files: Option<u64>,
    pub(crate) threads: u64,
}

impl Family {
    pub(crate) fn new(root: i32) -> Family {
        Family {
            root,
            living: HashMap::new(),
            gone: Totals::default(),
            ended: Vec::new(),
        }
    }

    /// Looks at these processes, and at those seen before that are not among them; returns what the living hold.
    /// `closely` looks at their pages, files and disks, too, which costs more.
    pub(crate) fn look(
        &mut self,
        host: &Host,
        pids: &[i32],
        closely: bool,
        time_ms: u64,
    ) -> Vec<ProcessMemory> {
        let others: Vec<i32> = self
            .living
            .keys()
            .copied()
            .filter(|pid| !pids.contains(pid))
            .collect();
        for pid in pids.iter().copied().chain(others) {
            self.look_at(host, pid, closely, time_ms);
        }
        let members = self.living.values();
        members.filter_map(|member| member.memory.clone()).collect()
    }

    fn look_at(&mut self, host: &Host, pid: i32, closely: bool, time_ms: u64) {
        let found = process_activity(host, pid);
        let before = self.living.remove(&pid);
        // Another process may have its number by now.
        let (known, other) = match before {
            Some(member)
                if found
                    .as_ref()
                    .is_some_and(|now| now.start_time == member.activity.start_time) =>
            {
                (Some(member), None)
            }
            other => (None, other),
        };
        if let Some(gone) = other {
            self.bury(gone, None, time_ms);
        }
        let Some(activity) = found else { return };
        let mut member = known.unwrap_or_else(|| Member {
            activity: activity.clone(),
            memory: None,
            disk: None,
            files: None,
            recorded: None,
            told_end: false,
        });
        if matches!(activity.state, 'Z' | 'X') {
            member.memory = None;
            if !member.told_end {
                member.told_end = true;
                self.remember(&member, activity.wait_status.map(exit_of), time_ms);
            }
        } else {
            member.memory = match closely {
                true => process_memory(host, pid),
                // The private pages of the last closer look say more than none.
                false => process_status(host, pid),
            };
            if closely {
                member.disk = process_disk(host, pid).or(member.disk);
                member.files = open_files(host, pid);
            }
        }
        member.activity = activity;
        self.living.insert(pid, member);
    }

    fn bury(&mut self, member: Member, exit: Option<Exit>, time_ms: u64) {
        if !member.told_end {
            self.remember(&member, exit, time_ms);
        }
        self.gone.add(&member);
        (self.gone.open_files, self.gone.threads) = (None, 0);
    }

    /// Notes the end of a child; that of the first process is told otherwise.
    fn remember(&mut self, member: &Member, exit: Option<Exit>, time_ms: u64) {
        if member.activity.pid == self.root {
            return;
        }
        if self.ended.len() >= MOST_ENDED {
            self.ended.remove(MOST_ENDED / 2);
        }
        let recorded = member.recorded.as_ref().and_then(|record| record.resident);
        self.ended.push(EndedChild {
            time_ms,
            pid: member.activity.pid,
            parent: member.activity.parent,
            name: member.activity.name.clone(),
            exit,
            resident: member
                .memory
                .as_ref()
                .and_then(|memory| memory.resident)
                .or(recorded),
        });
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = self.gone;
        self.living.values().for_each(|member| totals.add(member));
        totals
    }

    /// Records of those that moved, or that were not recorded for long.
    pub(crate) fn records(&mut self, time_ms: u64) -> Vec<ProcessRecord> {
        let mut records = Vec::new();
        for member in self.living.values_mut() {
            let record = member.record(time_ms);
            if member.recorded.as_ref().is_none_or(|last| is_due(last, &record)) {
                member.recorded = Some(record.clone());
                records.push(record);
            }
        }
        records.sort_unstable_by_key(|record| record.pid);
        records
    }

    /// The living, with when they started.
    pub(crate) fn living(&self) -> impl Iterator<Item = (i32, u64)> {
        let alive = |member: &&Member| !matches!(member.activity.state, 'Z' | 'X');
        let identity = |member: &Member| (member.activity.pid, member.activity.start_time);
        self.living.values().filter(alive).map(identity)
    }
}

impl Member {
    fn record(&self, time_ms: u64) -> ProcessRecord {
        let (activity, memory) = (&self.activity, self.memory.as_ref());
        ProcessRecord {
            time_ms,
            pid: activity.pid,
            parent: activity.parent,
            start_time: activity.start_time,
            name: activity.name.clone(),
            state: activity.state,
            threads: activity.threads,
            resident: memory.and_then(|memory| memory.resident),
            proportional: memory.and_then(|memory| memory.proportional),
            private: memory.and_then(|memory| memory.private),
            anonymous: memory.and_then(|memory| memory.anonymous),
            file: memory.and_then(|memory| memory.file),
            shared: memory.and_then(|memory| memory.shared),
            swap: memory.and_then(|memory| memory.swap),
            virtual_size: Some(activity.virtual_size),
            minor_faults: Some(activity.minor_faults),
            major_faults: Some(activity.major_faults),
            cpu_ms: Some(activity.cpu_ms),
            read_bytes: self.disk.map(|(read, _)| read),
            written_bytes: self.disk.map(|(_, written)| written),
            open_files: self.files,
        }
    }
}

fn is_due(last: &ProcessRecord, now: &ProcessRecord) -> bool {
    let moved = |before: Option<u64>, now: Option<u64>| match (before, now) {
        (Some(before), Some(now)) => before.abs_diff(now) > MOVE.max(before / 100),
        (before, now) => before.is_some() != now.is_some(),
    };
    now.time_ms >= last.time_ms + PROCESS_AT_LEAST_EVERY_MS
        || now.state == 'Z' && last.state != 'Z'
        || moved(last.resident, now.resident)
        || now.proportional.is_some()
            && (last.proportional.is_none()
                || moved(last.proportional, now.proportional)
                || moved(last.private, now.private))
}

impl Totals {
    fn add(&mut self, member: &Member) {
        let plus = |sum: Option<u64>, more: Option<u64>| match (sum, more) {
            (None, None) => None,
            (sum, more) => Some(sum.unwrap_or(0) + more.unwrap_or(0)),
        };
        self.cpu_ms += member.activity.cpu_ms;
        self.major_faults += member.activity.major_faults;
        self.read_bytes = plus(self.read_bytes, member.disk.map(|(read, _)| read));
        self.written_bytes = plus(self.written_bytes, member.disk.map(|(_, written)| written));
        self.open_files = plus(self.open_files, member.files);
        self.threads += u64::from(member.activity.threads);
    }
}

/// What `wait` gives as a status.
pub(crate) fn exit_of(status: i32) -> Exit {
    match libc::WIFSIGNALED(status) {
        true => Exit::Signal(libc::WTERMSIG(status)),
        false => Exit::Code(libc::WEXITSTATUS(status)),
    }
}
