//! Runs that hang, and runs that wait for their pages.

use std::time::Duration;

use tidegate_runs::{DeviceRecord, FlightRecord, Stream};

use super::super::stall::{stalls, thrashing};
use crate::why::{Case, EndedChild, LogLine, Stall};

/// A minute of looks, ten a second. `change` is given each one, and how far the time in which nothing should move has come.
fn minute(change: impl Fn(&mut FlightRecord, u64)) -> Case {
    let mut case = Case {
        start_ms: Some(1_000_000),
        ..Case::default()
    };
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

fn told(case: &Case) -> Vec<(u64, u64, Option<i32>)> {
    let stalls = stalls(case, Duration::from_secs(10));
    let seconds = |time_ms: u64| (time_ms + 500) / 1_000;
    let tell = |stall: &Stall| (seconds(stall.from_ms), seconds(stall.to_ms), stall.after_child);
    stalls.iter().map(tell).collect()
}

#[test]
fn a_hang_is_when_nothing_moves() {
    assert_eq!(told(&minute(|_, _| {})), [(20, 59, None)]);
    assert_eq!(told(&Case::default()), []);
    let nothing_known = minute(|record, _| record.cpu_ms = None);
    assert_eq!(told(&nothing_known), []);
    let heartbeat = minute(|record, quiet| {
        record.cpu_ms = record.cpu_ms.map(|ms| ms + quiet / 5_000 * 10);
        record.written_bytes = record.written_bytes.map(|bytes| bytes + quiet / 10_000 * 4_096);
    });
    assert_eq!(told(&heartbeat), [(20, 59, None)]);
}

#[test]
fn work_of_any_kind_is_no_hang() {
    type Work = fn(&mut FlightRecord, u64);
    let works: [(&str, Work); 5] = [
        ("2% of a core", |record, quiet| {
            record.cpu_ms = record.cpu_ms.map(|ms| ms + quiet / 500 * 10)
        }),
        ("reads", |record, quiet| {
            record.read_bytes = record.read_bytes.map(|bytes| bytes + quiet * 1_000)
        }),
        ("writes", |record, quiet| {
            record.written_bytes = record.written_bytes.map(|bytes| bytes + quiet * 1_000)
        }),
        ("faults", |record, quiet| {
            record.major_faults = record.major_faults.map(|faults| faults + quiet / 10)
        }),
        ("a burst every 5 s", |record, quiet| {
            record.cpu_ms = record.cpu_ms.map(|ms| ms + quiet / 5_000 * 500)
        }),
    ];
    for (name, work) in works {
        assert_eq!(told(&minute(work)), [], "{name}");
    }
    let mut device = minute(|_, _| {});
    for time_ms in (0..60_000).step_by(1_000) {
        device.devices.push(DeviceRecord {
            time_ms,
            utilization: Some(90),
            ..DeviceRecord::default()
        });
    }
    assert_eq!(told(&device), []);
    let mut output = minute(|_, _| {});
    output.log.push(LogLine {
        number: 1,
        time_ms: Some(1_000_000 + 40_500),
        stream: Stream::Out,
        text: "still here".into(),
    });
    assert_eq!(told(&output), [(20, 40, None), (41, 59, None)]);
    let mut unseen = minute(|_, _| {});
    unseen
        .flight
        .retain(|record| !(33_000..55_000).contains(&record.time_ms));
    assert_eq!(told(&unseen), [(20, 32, None)]);
}

#[test]
fn a_hang_after_a_child_died_says_so() {
    let mut case = minute(|_, _| {});
    for (time_ms, pid) in [(3_000, 5), (19_000, 6), (45_000, 7)] {
        case.facts.ended_children.push(EndedChild {
            time_ms,
            pid,
            parent: 1,
            name: "python3".into(),
            exit: None,
            resident: None,
        });
    }
    assert_eq!(told(&case), [(20, 59, Some(6))]);
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
    assert_eq!(thrashing(&Case::default()), None);
}
