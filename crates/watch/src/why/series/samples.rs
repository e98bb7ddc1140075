//! The recordings as series: one figure over time, the same figure from the first point to the last.

use tidegate_runs::{FlightRecord, ProcessRecord};

use crate::why::Case;

/// One figure at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    /// Since the start of the recording.
    pub(super) seconds: f64,
    pub(super) bytes: f64,
}

/// What the run itself holds: anonymous pages, shared memory and what of both is swapped out. File pages are left out,
/// for the kernel takes them back as it likes. The memory that a process gives back by dying is left out, too.
pub(super) fn held(case: &Case) -> Vec<Point> {
    let living = living(case);
    let mut points = by_processes(&living, own);
    if points.len() < 2 {
        points = points_of(&living, |record| {
            let beside = record.cgroup_shared.unwrap_or(0) + record.cgroup_swap.unwrap_or(0);
            Some(record.cgroup_anonymous? + beside)
        });
    }
    if points.len() < 2 {
        points = total(case);
    } else {
        add_unmapped(&living, &mut points);
    }
    before_the_fall(&mut points);
    points
}

/// What the run takes of the machine: by proportional share where that is known, else by residence; what its cgroup
/// counts where that is all there is.
pub(super) fn total(case: &Case) -> Vec<Point> {
    let living = living(case);
    let points = by_processes(&living, |record| record.proportional.or(record.resident));
    match points.is_empty() {
        false => points,
        true => points_of(&living, |record| record.cgroup_usage),
    }
}

/// The line: what the supervisor held the job to, else what the job was told.
pub(super) fn limit(case: &Case) -> Option<u64> {
    let told = || case.flight.iter().rev().find_map(|record| record.budget);
    case.facts.limit.or_else(told).filter(|&limit| limit > 0)
}

/// The records in which something lived. The last one is taken when all is over; where nobody counted processes, a
/// record says nothing of that.
pub(super) fn living(case: &Case) -> Vec<&FlightRecord> {
    let counted = case.flight.iter().any(|record| record.processes > 0);
    let alive = |record: &&FlightRecord| !counted || record.processes > 0;
    case.flight.iter().filter(alive).collect()
}

fn own(record: &FlightRecord) -> Option<u64> {
    Some(record.anonymous? + record.shared.unwrap_or(0) + record.swap.unwrap_or(0))
}

fn seconds(record: &FlightRecord) -> f64 {
    record.time_ms as f64 / 1e3
}

fn points_of(records: &[&FlightRecord], figure: impl Fn(&FlightRecord) -> Option<u64>) -> Vec<Point> {
    let point = |record: &&FlightRecord| {
        Some(Point {
            seconds: seconds(record),
            bytes: figure(record)? as f64,
        })
    };
    records.iter().filter_map(point).collect()
}

/// A figure of all processes together. Only some looks tell proportional shares; in the others a page that several
/// processes have counts once for each, so the two kinds do not go into one series as they are: the difference between
/// residence and share, known at the closer looks, is taken off in between.
fn by_processes(records: &[&FlightRecord], figure: fn(&FlightRecord) -> Option<u64>) -> Vec<Point> {
    let alone = records.iter().all(|record| record.processes <= 1);
    let shared = |record: &&FlightRecord| {
        record.proportional?;
        Some(Knot {
            seconds: seconds(record),
            value: record.resident? as f64 - figure(record)? as f64,
            processes: record.processes,
        })
    };
    let knots: Vec<Knot> = records.iter().filter_map(shared).collect();
    if alone || knots.is_empty() {
        return points_of(records, figure);
    }
    let point = |record: &&FlightRecord| {
        let bytes = match (record.proportional, record.resident) {
            (None, Some(resident)) => {
                let known = between(&knots, seconds(record), record.processes);
                resident as f64 - known.or_else(|| near(&knots, record))?
            }
            _ => figure(record)? as f64,
        };
        Some(Point {
            seconds: seconds(record),
            bytes: bytes.max(0.0),
        })
    };
    records.iter().filter_map(point).collect()
}

struct Knot {
    seconds: f64,
    value: f64,
    processes: u32,
}

/// The value on the line between the knots around a moment. Where the number of processes was another at one of them, the
/// other tells: a fork changes what is shared at once. `None` where it was another at both.
fn between(knots: &[Knot], seconds: f64, processes: u32) -> Option<f64> {
    let after = knots.partition_point(|knot| knot.seconds < seconds);
    let around = (
        after.checked_sub(1).map(|before| &knots[before]),
        knots.get(after),
    );
    match around {
        (Some(before), Some(after)) if before.processes == processes && after.processes == processes => {
            let share = (seconds - before.seconds) / (after.seconds - before.seconds).max(1e-9);
            Some(before.value + (after.value - before.value) * share)
        }
        (before, after) => {
            let mut knots = before.into_iter().chain(after);
            knots
                .find(|knot| knot.processes == processes)
                .map(|knot| knot.value)
        }
    }
}

/// About what is shared where no closer look had as many processes: as at the nearest one, where there were more of them
/// their part of it.
fn near(knots: &[Knot], record: &FlightRecord) -> Option<f64> {
    let seconds = seconds(record);
    let away = |knot: &&Knot| (knot.seconds - seconds).abs();
    let nearest = knots.iter().min_by(|a, b| away(a).total_cmp(&away(b)))?;
    let part = f64::from(record.processes) / f64::from(nearest.processes.max(1));
    Some(nearest.value * part.min(1.0))
}

/// Shared memory that no process has mapped is held all the same; only the cgroup counts it.
fn add_unmapped(records: &[&FlightRecord], points: &mut [Point]) {
    let unmapped = |record: &&FlightRecord| {
        record.proportional?;
        let shared = record.cgroup_shared?.saturating_sub(record.shared?);
        Some(Knot {
            seconds: seconds(record),
            value: shared as f64,
            processes: 0,
        })
    };
    let knots: Vec<Knot> = records.iter().filter_map(unmapped).collect();
    for point in points {
        point.bytes += between(&knots, point.seconds, 0).unwrap_or(0.0);
    }
}

/// A process on its way out gives back all it had, over seconds if that is much. This is no part of what the memory did.
fn before_the_fall(points: &mut Vec<Point>) {
    let Some((first, last)) = points.first().zip(points.last()) else {
        return;
    };
    let longest = 3.0_f64.max((last.seconds - first.seconds) * 0.02);
    let mut top = points.len() - 1;
    while top > 0 && points[top - 1].bytes >= points[top].bytes {
        top -= 1;
    }
    // Level ground before the fall is no part of it.
    while top + 1 < points.len() && points[top + 1].bytes >= points[top].bytes * 0.999 {
        top += 1;
    }
    // Nor is a fall that comes to rest.
    let resting = points
        .iter()
        .rev()
        .take_while(|point| point.bytes <= last.bytes * 1.01)
        .count();
    let is_fall = last.bytes < points[top].bytes * 0.8 && last.seconds - points[top].seconds <= longest;
    if is_fall && resting <= 3 {
        points.truncate(top + 1);
    }
}

/// One process from its first record to its end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Process<'a> {
    pub(super) pid: i32,
    pub(super) start_time: u64,
    pub(super) parent: i32,
    pub(super) records: Vec<&'a ProcessRecord>,
    /// When it was known to be gone; `None` where it lived to the end of the recording.
    pub(super) end_ms: Option<u64>,
}

/// A living process is recorded at least every ten seconds: one that was not for longer is gone.
const SILENT_MS: u64 = 15_000;

/// All processes of a run, by their first records.
pub(super) fn processes(case: &Case) -> Vec<Process<'_>> {
    let mut all: Vec<Process<'_>> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for record in &case.processes {
        let place = *places.entry((record.pid, record.start_time)).or_insert(all.len());
        if place == all.len() {
            all.push(Process {
                pid: record.pid,
                start_time: record.start_time,
                parent: record.parent,
                records: Vec::new(),
                end_ms: None,
            });
        }
        all[place].records.push(record);
    }
    let end_ms = end_ms(case);
    for process in &mut all {
        process.end_ms = process_end(case, process, end_ms);
    }
    all
}

fn process_end(case: &Case, process: &Process<'_>, run_end_ms: u64) -> Option<u64> {
    let (first, last) = (process.records.first()?, process.records.last()?);
    let zombie = process
        .records
        .iter()
        .find(|record| matches!(record.state, 'Z' | 'X'));
    let ended = case.facts.ended_children.iter();
    let told = ended
        .filter(|child| child.pid == process.pid && child.time_ms >= first.time_ms)
        .map(|child| child.time_ms)
        .find(|&time_ms| time_ms + SILENT_MS >= last.time_ms);
    let silent = (last.time_ms + SILENT_MS < run_end_ms).then_some(last.time_ms);
    zombie.map(|record| record.time_ms).or(told).or(silent)
}

/// When the recording ends.
pub(super) fn end_ms(case: &Case) -> u64 {
    let flight = case.flight.last().map(|record| record.time_ms);
    let process = case.processes.last().map(|record| record.time_ms);
    flight.max(process).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_point_is_left_out() {
        const MB: u64 = 1_000_000;
        let look = |time_ms, processes, resident, proportional| FlightRecord {
            time_ms,
            processes,
            resident: Some(resident * MB),
            proportional,
            anonymous: proportional,
            ..FlightRecord::default()
        };
        let records = [
            look(0, 1, 3, Some(MB)),
            // A fork, and its end, between two closer looks.
            look(100, 2, 36, None),
            look(200, 3, 40, None),
            look(300, 1, 3, Some(MB)),
            look(400, 6, 50, Some(20 * MB)),
            look(500, 2, 40, None),
        ];
        let all: Vec<&FlightRecord> = records.iter().collect();
        let points: Vec<f64> = by_processes(&all, |record| record.proportional.or(record.resident))
            .iter()
            .map(|point| point.bytes / MB as f64)
            .collect();
        assert_eq!(points, [1.0, 34.0, 38.0, 1.0, 20.0, 30.0]);
    }
}
