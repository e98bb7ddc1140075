//! Times in which a run only waited for its own pages.

use tidegate_runs::FlightRecord;

use super::samples::living;
use super::words::{length, size};
use crate::why::{Case, CounterKind, Evidence, Standing};

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
/// From here on most of the time goes into faults, however fast the disk: each takes 0.1 ms at the least.
const STORM: f64 = 3_000.0;
const HIGH_PRESSURE: f32 = 20.0;
const LITTLE_COMPUTED: f64 = 0.5;
const LEAST_THRASHING_MS: u64 = 5_000;

/// The longest time in which a run mostly waited for its pages. Many faults alone are a file that is read through a mapping,
/// so waiting has to be seen, too: by the pressure that the kernel tells, or by swap in use and little computed or a storm of
/// faults.
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
    let faults = rise(first.major_faults, last.major_faults)?;
    let swapped_in = swapped_in.and_then(|counter| counter.rise());
    let waited = pressures.iter().any(|percent| *percent >= HIGH_PRESSURE);
    // Pages that did not come from swap came from files, which are read like that.
    if !waited && swapped_in.is_some_and(|pages| pages < faults / 2) {
        return None;
    }
    Some(Thrashing {
        from_ms: first.time_ms,
        to_ms: last.time_ms,
        faults: faults as f64 / passed * 1e3,
        pressure_full: (!pressures.is_empty())
            .then(|| pressures.iter().sum::<f32>() / pressures.len() as f32),
        computed: rise(first.cpu_ms, last.cpu_ms)? as f64 / passed,
        swap: last.swap.or(last.cgroup_swap),
        swapped_in,
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
    // The pressure may be that of the whole machine, in which others go on, and a fast disk makes faults look like work.
    let storms = is_swapped && faults >= STORM;
    (faults >= MANY_FAULTS && waits) || storms
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
