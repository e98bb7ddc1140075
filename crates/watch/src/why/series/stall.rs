//! Times in which a run stood still, or only waited for its own pages.

use std::time::Duration;

use tidegate_runs::FlightRecord;

use super::samples::living;
use super::words::{length, size};
use crate::why::{Case, CounterKind, Evidence, Stall, Standing};

/// Processor time below which nothing is computed: 1% of one core, and two ticks of the kernel's clock, which counts in
/// hundredths of a second.
const IDLE_SHARE: f64 = 0.01;
const IDLE_TICKS_MS: u64 = 20;
/// What a log or a heartbeat writes in a second does not count.
const QUIET_DISK: u64 = 64 << 10;
const QUIET_FAULTS: u64 = 2;
/// Where nobody looked for longer, nothing is known.
const LONGEST_GAP_MS: u64 = 5_000;
/// A child that died so long before, or was seen dead so long after, belongs to a stall.
const CHILD_BEFORE_MS: u64 = 10_000;
const CHILD_AFTER_MS: u64 = 2_000;

/// The times of at least this length in which nothing moved: no processor time, no disk, no faults that need one, no work
/// of a device, and no output as far as that has times. Nothing is claimed where processor time was not recorded.
pub fn stalls(case: &Case, at_least: Duration) -> Vec<Stall> {
    let at_least = u64::try_from(at_least.as_millis()).unwrap_or(u64::MAX).max(1);
    let seconds = seconds(case);
    let is_quiet = |span: &&(&FlightRecord, &FlightRecord)| is_quiet(case, span.0, span.1);
    let mut stalls = Vec::new();
    let mut place = 0;
    while place < seconds.len() {
        let quiet = seconds[place..].iter().take_while(is_quiet).count();
        if quiet == 0 {
            place += 1;
            continue;
        }
        let (first, last) = (seconds[place].0, seconds[place + quiet - 1].1);
        place += quiet;
        // Ticks that are let pass in each second may be work in all.
        let passed = last.time_ms - first.time_ms;
        let computed = rise(first.cpu_ms, last.cpu_ms).unwrap_or(0);
        if passed >= at_least && computed as f64 <= passed as f64 * IDLE_SHARE + IDLE_TICKS_MS as f64 {
            stalls.push(Stall {
                from_ms: first.time_ms,
                to_ms: last.time_ms,
                after_child: child_before(case, first.time_ms),
                waits: None,
            });
        }
    }
    stalls
}

/// Pairs of looks about a second apart, each beginning where the one before ended.
fn seconds(case: &Case) -> Vec<(&FlightRecord, &FlightRecord)> {
    let mut pairs = Vec::new();
    let mut first: Option<&FlightRecord> = None;
    for record in living(case).into_iter().filter(|record| record.cpu_ms.is_some()) {
        match first {
            Some(from) if record.time_ms < from.time_ms + 1_000 => {}
            Some(from) => {
                pairs.push((from, record));
                first = Some(record);
            }
            None => first = Some(record),
        }
    }
    pairs
}

/// `None` where one of both is not known.
fn rise(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

fn is_quiet(case: &Case, before: &FlightRecord, after: &FlightRecord) -> bool {
    let passed = after.time_ms - before.time_ms;
    let at_most = |before, after, most: u64| rise(before, after).is_none_or(|rise| rise <= most);
    let computed = (passed as f64 * IDLE_SHARE) as u64 + IDLE_TICKS_MS;
    passed <= LONGEST_GAP_MS
        && at_most(before.cpu_ms, after.cpu_ms, computed)
        && at_most(before.read_bytes, after.read_bytes, QUIET_DISK)
        && at_most(before.written_bytes, after.written_bytes, QUIET_DISK)
        && at_most(before.major_faults, after.major_faults, QUIET_FAULTS)
        && !device_works(case, before.time_ms, after.time_ms)
        && !speaks(case, before.time_ms, after.time_ms)
}

fn device_works(case: &Case, from_ms: u64, to_ms: u64) -> bool {
    let start = case.devices.partition_point(|record| record.time_ms < from_ms);
    let within = case.devices[start..]
        .iter()
        .take_while(|record| record.time_ms <= to_ms);
    within
        .into_iter()
        .any(|record| record.utilization.is_some_and(|percent| percent > 0))
}

/// Whether a line of output came in that time.
fn speaks(case: &Case, from_ms: u64, to_ms: u64) -> bool {
    let Some(start_ms) = case.start_ms else {
        return false;
    };
    let within = |time_ms: i64| {
        let since = time_ms - start_ms;
        since > from_ms as i64 && since <= to_ms as i64
    };
    case.log.iter().any(|line| line.time_ms.is_some_and(within))
}

fn child_before(case: &Case, from_ms: u64) -> Option<i32> {
    let near = from_ms.saturating_sub(CHILD_BEFORE_MS)..=from_ms + CHILD_AFTER_MS;
    let children = case
        .facts
        .ended_children
        .iter()
        .filter(|child| near.contains(&child.time_ms));
    children.max_by_key(|child| child.time_ms).map(|child| child.pid)
}

/// A time in which a run mostly waited for pages that had been taken from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Thrashing {
    pub from_ms: u64,
    pub to_ms: u64,
    /// Page faults a second that needed the disk.
    pub faults: f64,
    /// Share of that time in which all tasks waited for memory, in percent, where the kernel tells it.
    pub pressure_full: Option<f32>,
    /// Processor time as a share of one core.
    pub computed: f64,
    /// Swapped out at the end.
    pub swap: Option<u64>,
    /// Pages that the machine read from swap over the whole run.
    pub swapped_in: Option<u64>,
}

/// Below this many faults a second a disk keeps up: one takes from 0.1 ms to 10 ms.
const MANY_FAULTS: f64 = 100.0;
const HIGH_PRESSURE: f32 = 20.0;
const LITTLE_COMPUTED: f64 = 0.5;
const LEAST_THRASHING_MS: u64 = 5_000;

/// The longest time in which a run mostly waited for its pages. Many faults alone are a file that is read through a mapping,
/// so waiting has to be seen, too: by the pressure that the kernel tells, else by swap in use and little computed.
pub fn thrashing(case: &Case) -> Option<Thrashing> {
    let seconds = seconds(case);
    let is_waiting = |span: &&(&FlightRecord, &FlightRecord)| waits(span.0, span.1);
    let mut longest: Option<(&FlightRecord, &FlightRecord)> = None;
    let mut place = 0;
    while place < seconds.len() {
        let count = seconds[place..].iter().take_while(is_waiting).count();
        if count > 0 {
            let found = (seconds[place].0, seconds[place + count - 1].1);
            let length = |span: (&FlightRecord, &FlightRecord)| span.1.time_ms - span.0.time_ms;
            if longest.is_none_or(|known| length(known) < length(found)) {
                longest = Some(found);
            }
        }
        place += count.max(1);
    }
    let (first, last) = longest.filter(|(first, last)| last.time_ms - first.time_ms >= LEAST_THRASHING_MS)?;
    let passed = (last.time_ms - first.time_ms) as f64;
    let within = case
        .flight
        .iter()
        .filter(|record| (first.time_ms..=last.time_ms).contains(&record.time_ms));
    let pressures: Vec<f32> = within.filter_map(|record| record.pressure_full).collect();
    let swapped_in = case
        .facts
        .counters
        .iter()
        .find(|counter| counter.kind == CounterKind::SwappedIn);
    Some(Thrashing {
        from_ms: first.time_ms,
        to_ms: last.time_ms,
        faults: rise(first.major_faults, last.major_faults)? as f64 / passed * 1e3,
        pressure_full: (!pressures.is_empty())
            .then(|| pressures.iter().sum::<f32>() / pressures.len() as f32),
        computed: rise(first.cpu_ms, last.cpu_ms)? as f64 / passed,
        swap: last.swap.or(last.cgroup_swap),
        swapped_in: swapped_in.and_then(|counter| counter.rise()),
    })
}

fn waits(before: &FlightRecord, after: &FlightRecord) -> bool {
    let passed = (after.time_ms - before.time_ms) as f64 / 1e3;
    let faults = rise(before.major_faults, after.major_faults).unwrap_or(0) as f64 / passed;
    let computed = rise(before.cpu_ms, after.cpu_ms).unwrap_or(0) as f64 / 1e3 / passed;
    let is_swapped = after.swap.or(after.cgroup_swap).is_some_and(|bytes| bytes > 0);
    let waits = match after.pressure_full {
        Some(percent) => percent >= HIGH_PRESSURE,
        None => is_swapped && computed <= LITTLE_COMPUTED,
    };
    faults >= MANY_FAULTS && waits
}

impl Thrashing {
    /// As a line of evidence.
    pub fn evidence(&self) -> Evidence {
        let mut text = format!(
            "for {} it had {:.0} page faults a second that needed the disk",
            length((self.to_ms - self.from_ms) as f64 / 1e3),
            self.faults,
        );
        if let Some(percent) = self.pressure_full {
            text += &format!(", waited for memory in {percent:.0}% of the time");
        }
        text += &format!(", and computed for {:.0}% of a core", self.computed * 100.0);
        if let Some(bytes) = self.swap.filter(|&bytes| bytes > 0) {
            text += &format!("; {} of it was swapped out", size(bytes as f64));
        }
        Evidence {
            standing: Standing::Observed,
            text,
            source: "flight recorder".to_string(),
        }
    }
}
