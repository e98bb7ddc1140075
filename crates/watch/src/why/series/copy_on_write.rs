//! Forked processes that copy what they had in common with their parent.
//!
//! A forked worker starts with its parent's pages, and each page that it writes to becomes one of its own. Writing is also
//! what Python does to read an object: it counts the reference. The worker's resident size does not move with this, for
//! the page was resident before; what moves is what no other process has.

use super::samples::{Process, end_ms, processes};
use crate::why::Case;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Copied {
    pub(super) children: usize,
    /// What became their own.
    pub(super) bytes: f64,
    /// By how much their resident sizes grew in that time.
    pub(super) resident: f64,
    pub(super) seconds: f64,
}

/// Less than this is what any fork does.
const LEAST_BYTES: f64 = 16e6;
/// A child this much smaller than its parent has replaced its memory by another program, or was not forked.
const LIKE_PARENT: f64 = 0.5;

pub(super) fn copied(case: &Case) -> Option<Copied> {
    let all = processes(case);
    let mut sum = Copied {
        children: 0,
        bytes: 0.0,
        resident: 0.0,
        seconds: 0.0,
    };
    let mut from_ms = u64::MAX;
    let mut to_ms = 0;
    for child in all.iter().filter(|child| is_fork(child, &all)) {
        let looks = looks(child);
        let (Some(first), Some(most)) = (looks.first(), looks.iter().max_by_key(|look| look.own)) else {
            continue;
        };
        sum.children += 1;
        sum.bytes += most.own.saturating_sub(first.own) as f64;
        sum.resident += most.resident.saturating_sub(first.resident) as f64;
        from_ms = from_ms.min(first.time_ms);
        to_ms = to_ms.max(most.time_ms);
    }
    sum.seconds = to_ms.saturating_sub(from_ms) as f64 / 1e3;
    let start = proportional_at(&all, from_ms)?;
    let grown = proportional_at(&all, to_ms.min(end_ms(case)))? - start;
    let is_much = sum.bytes >= LEAST_BYTES && sum.bytes >= start * 0.1;
    // When a parent ends, what it shared becomes its children's own without a copy: the sum of all does not grow then.
    (is_much && sum.resident <= sum.bytes * 0.3 && grown >= sum.bytes * 0.5).then_some(sum)
}

/// One look at a child that told which pages are its own.
struct Look {
    time_ms: u64,
    resident: u64,
    own: u64,
}

fn looks(process: &Process<'_>) -> Vec<Look> {
    let look = |record: &&tidegate_runs::ProcessRecord| {
        Some(Look {
            time_ms: record.time_ms,
            resident: record.resident?,
            own: record.private.or(record.proportional)?,
        })
    };
    process.records.iter().filter_map(look).collect()
}

/// Whether it began as a copy of its parent, as far as its first look tells.
fn is_fork(child: &Process<'_>, all: &[Process<'_>]) -> bool {
    let Some(first) = looks(child).into_iter().next() else {
        return false;
    };
    let parent = all.iter().find(|parent| parent.pid == child.parent);
    let parent_resident = parent.and_then(|parent| {
        let before = parent
            .records
            .iter()
            .take_while(|record| record.time_ms <= first.time_ms);
        before.filter_map(|record| record.resident).last()
    });
    parent_resident.is_some_and(|bytes| first.resident as f64 >= bytes as f64 * LIKE_PARENT)
}

/// The sum over all that lived at a moment, by their last closer looks before it.
fn proportional_at(all: &[Process<'_>], time_ms: u64) -> Option<f64> {
    let living = all
        .iter()
        .filter(|process| process.end_ms.is_none_or(|end_ms| end_ms > time_ms));
    let shares = living.filter_map(|process| {
        let before = process
            .records
            .iter()
            .take_while(|record| record.time_ms <= time_ms);
        before.filter_map(|record| record.proportional).last()
    });
    shares.reduce(u64::saturating_add).map(|bytes| bytes as f64)
}
