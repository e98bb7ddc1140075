//! A process with all its descendants, and what they hold together.

use std::collections::{HashMap, HashSet};
use std::fs;

use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::process::{ProcessMemory, process_memory, process_status, stat_fields};

/// What a tree of processes holds. A sum is over the processes that told it, `None` when none did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeMemory {
    /// Counts pages that processes share once for each of them; prefer `proportional`.
    pub resident: Option<u64>,
    pub proportional: Option<u64>,
    pub anonymous: Option<u64>,
    pub file: Option<u64>,
    pub shared: Option<u64>,
    pub swap: Option<u64>,
    /// Living processes of the tree that did not tell their resident size.
    pub unreadable: usize,
    /// The root first.
    pub processes: Vec<ProcessMemory>,
}

/// The pids of `root_pid` and its descendants, parents before children. Empty when it is gone.
///
/// A child that was orphaned belongs to init and is not found; the supervisor's cgroup counts it.
pub fn process_tree(host: &Host, root_pid: i32) -> Vec<i32> {
    if !host.path(format!("proc/{root_pid}/stat")).exists() {
        return Vec::new();
    }
    let mut pids = vec![root_pid];
    // The files are read one after the other while processes come and go, and a pid may be used again: one that
    // was seen already must not lead round in a circle.
    let mut seen = HashSet::from([root_pid]);
    let mut by_parent: Option<HashMap<i32, Vec<i32>>> = None;
    let mut next = 0;
    while let Some(&pid) = pids.get(next) {
        next += 1;
        let told = if by_parent.is_none() {
            children(host, pid)
        } else {
            None
        };
        // A kernel without `children` files: read every process's parent, once.
        let found = told.unwrap_or_else(|| {
            by_parent
                .get_or_insert_with(|| parents(host))
                .remove(&pid)
                .unwrap_or_default()
        });
        pids.extend(found.into_iter().filter(|pid| seen.insert(*pid)));
    }
    pids
}

/// The children of each thread of `pid`. No children when it has just gone; `None` where the kernel does
/// not tell.
fn children(host: &Host, pid: i32) -> Option<Vec<i32>> {
    let tasks = fs::read_dir(host.path(format!("proc/{pid}/task")));
    let mut found = Vec::new();
    let mut readable = false;
    for task in tasks.into_iter().flatten().flatten() {
        if let Ok(text) = crate::host::read(&task.path().join("children")) {
            readable = true;
            found.extend(text.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
    }
    (readable || !host.path(format!("proc/{pid}/stat")).exists()).then_some(found)
}

/// Every process by its parent.
fn parents(host: &Host) -> HashMap<i32, Vec<i32>> {
    let mut by_parent: HashMap<i32, Vec<i32>> = HashMap::new();
    let entries = fs::read_dir(host.path("proc")).into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        let Ok(text) = host.read(format!("proc/{pid}/stat")) else {
            continue;
        };
        let parent = stat_fields(&text).and_then(|mut fields| fields.nth(1)?.parse().ok());
        if let Some(parent) = parent {
            by_parent.entry(parent).or_default().push(pid);
        }
    }
    by_parent
        .values_mut()
        .for_each(|children| children.sort_unstable());
    by_parent
}

/// The memory of `root_pid` and its descendants with proportional shares.
pub fn tree_memory(host: &Host, root_pid: i32) -> TreeMemory {
    collect(
        process_tree(host, root_pid)
            .into_iter()
            .filter_map(|pid| process_memory(host, pid)),
    )
}

/// The memory of `root_pid` and its descendants from `status` alone: cheap at any size, but pages that
/// processes share are counted by each.
pub fn tree_status(host: &Host, root_pid: i32) -> TreeMemory {
    collect(
        process_tree(host, root_pid)
            .into_iter()
            .filter_map(|pid| process_status(host, pid)),
    )
}

fn collect(processes: impl Iterator<Item = ProcessMemory>) -> TreeMemory {
    let processes: Vec<ProcessMemory> = processes.collect();
    let sum = |field: fn(&ProcessMemory) -> Option<u64>| {
        processes.iter().filter_map(field).reduce(u64::saturating_add)
    };
    // Half shares and half nothing would pass for the whole.
    let all_shares = processes.iter().all(|process| process.proportional.is_some());
    TreeMemory {
        resident: sum(|p| p.resident),
        proportional: sum(|p| p.proportional).filter(|_| all_shares),
        anonymous: sum(|p| p.anonymous),
        file: sum(|p| p.file),
        shared: sum(|p| p.shared),
        swap: sum(|p| p.swap),
        unreadable: processes.iter().filter(|p| p.resident.is_none()).count(),
        processes,
    }
}
