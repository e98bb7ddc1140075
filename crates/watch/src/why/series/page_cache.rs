//! File pages that grow while what the run itself holds does not.

use tidegate_runs::FlightRecord;

use super::samples::{Point, living};
use crate::why::Case;

/// The growth of file pages, where it is most of all growth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FilePages {
    pub(super) bytes: f64,
    /// What the run itself held at the end.
    pub(super) held: f64,
    /// Counted by the cgroup; else mapped by the processes.
    pub(super) of_cgroup: bool,
}

/// Less than this is reading libraries.
const LEAST_BYTES: f64 = 32e6;

pub(super) fn file_pages(case: &Case, held: &[Point]) -> Option<FilePages> {
    let living = living(case);
    let (bytes, of_cgroup) = by_cgroup(&living)
        .or_else(|| by_usage(&living, held))
        .map(|bytes| (bytes, true))
        .or_else(|| Some((mapped(&living)?, false)))?;
    let grown = grown(held);
    (bytes >= LEAST_BYTES && bytes >= 2.0 * grown).then_some(FilePages {
        bytes,
        held: held.last()?.bytes,
        of_cgroup,
    })
}

/// From the lowest of the first tenth to the end.
fn grown(points: &[Point]) -> f64 {
    let first = points[..points.len().div_ceil(10)].iter();
    let low = first.map(|point| point.bytes).fold(f64::INFINITY, f64::min);
    points.last().map_or(0.0, |last| (last.bytes - low).max(0.0))
}

fn rise(records: &[&FlightRecord], figure: impl Fn(&FlightRecord) -> Option<u64>) -> Option<f64> {
    let mut known = records.iter().filter_map(|record| figure(record));
    let first = known.next()?;
    let last = known.next_back()?;
    Some(last as f64 - first as f64)
}

/// The cgroup tells what it is made of.
fn by_cgroup(records: &[&FlightRecord]) -> Option<f64> {
    let files = |record: &FlightRecord| Some(record.cgroup_file?.saturating_sub(record.cgroup_shared?));
    let bytes = rise(records, files)?;
    let usage = rise(records, |record| record.cgroup_usage)?;
    (bytes >= usage * 0.6).then_some(bytes)
}

/// The cgroup tells only how much it is. What is not the run's own is the page cache if that much was read or written, and
/// `/dev/shm` did not grow.
fn by_usage(records: &[&FlightRecord], held: &[Point]) -> Option<f64> {
    let beside = rise(records, |record| record.cgroup_usage)? - grown(held);
    let disk = rise(records, |record| {
        Some(record.read_bytes? + record.written_bytes.unwrap_or(0))
    })?;
    let shared = rise(records, |record| record.shared_memory)?;
    (disk >= beside * 0.5 && shared <= beside * 0.2).then_some(beside)
}

/// Pages of files that the processes have mapped. By share and by residence do not mix; of one process they are the same
/// but for libraries.
fn mapped(records: &[&FlightRecord]) -> Option<f64> {
    let alone = records.iter().all(|record| record.processes <= 1);
    rise(records, |record| {
        record.file.filter(|_| alone || record.proportional.is_some())
    })
}
