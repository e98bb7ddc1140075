//! Runs that wait for their pages.

use tidegate_runs::FlightRecord;

use super::super::thrashing::thrashing;
use crate::why::{Case, Counter, CounterKind, Scope};

/// A minute of looks, ten a second. `change` is given each one, and how long ago it came to a standstill.
fn minute(change: impl Fn(&mut FlightRecord, u64)) -> Case {
    let mut case = Case::default();
    for time_ms in (0..60_000).step_by(100) {
        // It works for 20 s, and then stands still.
        let worked = time_ms.min(20_000);
        let mut record = FlightRecord {
            time_ms,
            processes: 1,
            resident: Some(100_000_000),
            cpu_ms: Some(worked / 10 * 10),
            read_bytes: Some(worked * 1_000),
            written_bytes: Some(worked * 100),
            major_faults: Some(7),
            ..FlightRecord::default()
        };
        change(&mut record, time_ms.saturating_sub(20_000));
        case.flight.push(record);
    }
    case
}

#[test]
fn pages_of_files_make_no_storm() {
    let read_from_swap = |pages: u64| {
        let mut case = minute(|record, since| {
            record.major_faults = Some(since * 8);
            record.swap = Some(1_000_000);
        });
        case.facts.counters.push(Counter {
            kind: CounterKind::SwappedIn,
            scope: Scope::Host,
            source: "/proc/vmstat pswpin".into(),
            before: Some(5),
            after: Some(5 + pages),
        });
        thrashing(&case)
    };
    assert!(read_from_swap(320_000).is_some());
    assert_eq!(read_from_swap(100), None);
}

#[test]
fn thrashing_is_many_faults_and_waiting() {
    let thrash = |pressure: Option<f32>, swap: u64, cpu_percent: u64, faults: u64| {
        thrashing(&minute(|record, since| {
            record.major_faults = Some(since * faults / 1_000);
            record.cpu_ms = record.cpu_ms.map(|ms| ms + since * cpu_percent / 100);
            record.pressure_full = pressure.map(|pressure| if since > 0 { pressure } else { 0.0 });
            record.swap = Some(swap);
        }))
    };
    let found = thrash(Some(70.0), 2_000_000_000, 10, 800).expect("it thrashes");
    assert_eq!((found.from_ms / 1_000, found.to_ms / 1_000), (20, 59));
    assert_eq!(
        found.evidence().text,
        "for 39 s it had 800 page faults a second that needed the disk, waited for memory in 70% of the time, and \
         computed for 10% of a core; 2 GB of it was swapped out"
    );
    assert!(thrash(None, 2_000_000_000, 10, 800).is_some(), "by swap");
    assert!(thrash(Some(70.0), 0, 10, 800).is_some(), "of file pages");
    assert_eq!(thrash(Some(2.0), 0, 90, 800), None, "reads a mapped file");
    assert_eq!(thrash(None, 0, 10, 800), None, "no sign of waiting");
    assert_eq!(
        thrash(Some(70.0), 2_000_000_000, 10, 5),
        None,
        "waits, but not for its pages"
    );
    assert_eq!(
        thrash(Some(9.0), 2_000_000_000, 60, 800),
        None,
        "some of it is swapped out"
    );
    assert!(thrash(Some(9.0), 2_000_000_000, 60, 8_000).is_some(), "a storm");
    assert_eq!(thrashing(&Case::default()), None);
}
