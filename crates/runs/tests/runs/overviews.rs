//! Overviews of recordings: real records, every peak, bounded whatever the recording holds.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;
use tidegate_runs::{
    Error, FlightHeader, FlightRecord, FlightWriter, ProcessRecord, RecordWriter, Span, flight_overview,
    process_overview,
};

const HEADER: usize = 64;
const FLIGHT: usize = 264;
const PROCESS: usize = 176;

fn header() -> FlightHeader {
    FlightHeader {
        run_id: "k7mp2xqa".into(),
        start_ms: 1_794_773_730_123,
    }
}

fn flight_of(records: &[FlightRecord]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flight.bin");
    let mut writer = FlightWriter::create(&path, &header()).unwrap();
    records.iter().for_each(|record| writer.append(record).unwrap());
    (dir, path)
}

fn processes_of(records: &[ProcessRecord]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("processes.bin");
    let mut writer = RecordWriter::create(&path, &header()).unwrap();
    records.iter().for_each(|record| writer.append(record).unwrap());
    (dir, path)
}

/// Turns a bit of a record's fields that are no time and no place.
fn damage(path: &Path, size: usize, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[HEADER + size * at + size - 8] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn span(from_ms: Option<u64>, to_ms: Option<u64>) -> Span {
    Span { from_ms, to_ms }
}

prop_compose! {
    fn some_flight()(
        steps in prop::collection::vec((0u64..300, prop_oneof![Just(None), (0u64..1000).prop_map(Some)], 0u8..3), 1..200)
    ) -> Vec<FlightRecord> {
        let mut time_ms = 40;
        steps.into_iter().enumerate().map(|(step, (gap, bytes, by))| {
            time_ms += gap;
            FlightRecord {
                time_ms,
                step: step as u64,
                resident: bytes,
                proportional: bytes.filter(|_| by > 0).map(|bytes| bytes + 1),
                cgroup_usage: bytes.filter(|_| by > 1).map(|bytes| bytes + 2),
                ..FlightRecord::default()
            }
        }).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn an_overview_is_made_of_records_and_holds_every_extreme(
        records in some_flight(),
        points in 0usize..80,
        from in prop_oneof![Just(None), (0u64..20_000).prop_map(Some)],
        length in prop_oneof![Just(None), (0u64..20_000).prop_map(Some)],
        damaged in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let (_dir, path) = flight_of(&records);
        let mut places: Vec<usize> = damaged.iter().map(|at| at.index(records.len())).collect();
        places.sort_unstable();
        places.dedup();
        places.iter().for_each(|at| damage(&path, FLIGHT, *at));
        let intact: Vec<FlightRecord> =
            (0..records.len()).filter(|at| !places.contains(at)).map(|at| records[at]).collect();
        let to = length.map(|length| from.unwrap_or(0) + length);
        let overview = flight_overview(&path, span(from, to), points).unwrap();

        prop_assert_eq!(overview.first_ms, intact.first().map(|record| record.time_ms));
        prop_assert_eq!(overview.last_ms, intact.last().map(|record| record.time_ms));
        let is_within = |record: &&FlightRecord| {
            from.is_none_or(|from| record.time_ms >= from) && to.is_none_or(|to| record.time_ms <= to)
        };
        let within: Vec<FlightRecord> = intact.iter().filter(is_within).copied().collect();
        prop_assert!(overview.records.len() <= points.max(4));
        prop_assert!(overview.n_records >= within.len() as u64);
        prop_assert!(overview.damaged <= places.len() as u64);
        prop_assert!(overview.records.is_sorted_by_key(|record| record.time_ms));
        prop_assert!(overview.records.iter().all(|record| within.contains(record)));
        if within.len() + places.len() <= points {
            prop_assert_eq!(&overview.records, &within);
        }
        prop_assert_eq!(overview.records.first(), within.first());
        prop_assert_eq!(overview.records.last(), within.last());
        let ends = |records: &[FlightRecord]| {
            let used = records.iter().filter_map(FlightRecord::in_use);
            (used.clone().min(), used.max())
        };
        prop_assert_eq!(ends(&overview.records), ends(&within));
    }

    #[test]
    fn a_span_of_junk_never_panics(
        junk in prop::collection::vec(any::<u8>(), 0..4000),
        head in 0u8..3,
        from in any::<Option<u64>>(),
        to in any::<Option<u64>>(),
        points in prop_oneof![0usize..100, Just(usize::MAX)],
    ) {
        for (records, path) in [flight_of(&[]), processes_of(&[])] {
            let begin = fs::read(&path).unwrap();
            let begin = match head {
                0 => Vec::new(),
                1 => begin[..8].to_vec(),
                _ => begin,
            };
            fs::write(&path, [begin, junk.clone()].concat()).unwrap();
            let _ = flight_overview(&path, span(from, to), points);
            let _ = process_overview(&path, span(from, to), points, points);
            drop(records);
        }
    }

    /// Numbers and checksums right, times and sizes not.
    #[test]
    fn forged_times_never_panic(
        times in prop::collection::vec((any::<u64>(), any::<u64>(), 0i32..5), 1..60),
        from in any::<Option<u64>>(),
        to in any::<Option<u64>>(),
        points in 0usize..50,
    ) {
        let flight: Vec<FlightRecord> = times
            .iter()
            .map(|(time_ms, bytes, _)| FlightRecord { time_ms: *time_ms, resident: Some(*bytes), ..FlightRecord::default() })
            .collect();
        let (_dir, path) = flight_of(&flight);
        prop_assert!(flight_overview(&path, span(from, to), points).unwrap().records.len() <= points.max(4));
        let processes: Vec<ProcessRecord> = times
            .iter()
            .map(|(time_ms, bytes, pid)| ProcessRecord { time_ms: *time_ms, pid: *pid, resident: Some(*bytes), ..ProcessRecord::default() })
            .collect();
        let (_dir, path) = processes_of(&processes);
        process_overview(&path, span(from, to), points, 2).unwrap();
    }
}

#[test]
fn a_recording_that_is_not_there_can_be_told() {
    let missing = Path::new("/no/such/flight.bin");
    assert!(matches!(
        flight_overview(missing, Span::default(), 9),
        Err(Error::NotRecorded { .. })
    ));
    assert!(matches!(
        process_overview(missing, Span::default(), 9, 9),
        Err(Error::NotRecorded { .. })
    ));
    let (_dir, path) = flight_of(&[]);
    let empty = flight_overview(&path, Span::default(), 9).unwrap();
    assert_eq!(
        (empty.header, empty.records.len(), empty.first_ms),
        (Some(header()), 0, None)
    );
    assert!(matches!(
        process_overview(&path, Span::default(), 9, 9),
        Err(Error::NotAFlight { .. })
    ));
}

#[test]
fn an_earlier_version_has_an_overview_too() {
    let (_dir, path) = flight_of(&[]);
    let mut bytes = fs::read(&path).unwrap()[..60].to_vec();
    bytes[8..12].copy_from_slice(&1u32.to_le_bytes());
    bytes[12..16].copy_from_slice(&144u32.to_le_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    for at in 0..100u64 {
        let mut record = [0xff; 140];
        record[..8].copy_from_slice(&at.to_le_bytes());
        record[8..16].copy_from_slice(&(at * 100).to_le_bytes());
        record[16..24].copy_from_slice(&(at * 7 % 50).to_le_bytes());
        bytes.extend(record);
        bytes.extend(crc32fast::hash(&record).to_le_bytes());
    }
    bytes.extend([0; 50]);
    fs::write(&path, bytes).unwrap();
    let overview = flight_overview(&path, span(Some(1000), Some(8999)), 12).unwrap();
    assert_eq!(
        (overview.n_records, overview.damaged, overview.last_ms),
        (80, 1, Some(9900))
    );
    let used: Vec<Option<u64>> = overview.records.iter().map(FlightRecord::in_use).collect();
    assert!(used.contains(&Some(49)) && used.contains(&Some(0)) && used.len() <= 12);
}

/// A process that was seen at these times, holding so much.
fn seen(pid: i32, name: &str, looks: &[(u64, Option<u64>)]) -> Vec<ProcessRecord> {
    let record = |(time_ms, held): &(u64, Option<u64>)| ProcessRecord {
        time_ms: *time_ms,
        pid,
        start_time: 7,
        name: name.into(),
        resident: held.map(|held| held * 2),
        proportional: *held,
        ..ProcessRecord::default()
    };
    looks.iter().map(record).collect()
}

#[test]
fn processes_hold_what_they_held_until_they_are_seen_again() {
    let mut records = [
        seen(
            1,
            "python",
            &[
                (0, Some(10)),
                (2500, Some(90)),
                (2600, Some(20)),
                (9000, Some(20)),
            ],
        ),
        seen(2, "worker", &[(1000, Some(50)), (4000, Some(40))]),
        seen(3, "brief", &[(3000, Some(5))]),
        seen(4, "other", &[(3000, Some(6)), (5000, Some(7)), (5500, None)]),
        seen(5, "silent", &[(8000, None)]),
    ]
    .concat();
    records.sort_by_key(|record| record.time_ms);
    let (_dir, path) = processes_of(&records);
    let overview = process_overview(&path, Span::default(), 10, 2).unwrap();
    assert_eq!(overview.times_ms, (0..10).map(|n| n * 1000).collect::<Vec<_>>());
    assert_eq!(overview.n_processes, 5);
    let told = |n: usize| {
        (
            overview.processes[n].name.as_str(),
            overview.processes[n].peak,
            overview.processes[n].points.clone(),
        )
    };
    let points = |values: [u64; 10]| {
        values
            .map(|value| Some(value).filter(|value| *value > 0))
            .to_vec()
    };
    assert_eq!(
        told(0),
        ("python", 90, points([10, 10, 90, 20, 20, 20, 20, 20, 20, 20]))
    );
    assert_eq!(
        told(1),
        ("worker", 50, points([0, 50, 50, 50, 50, 0, 0, 0, 0, 0]))
    );
    let others = overview.others.unwrap();
    assert_eq!(
        (others.peak, others.points),
        (11, points([0, 0, 0, 11, 6, 7, 0, 0, 0, 0]))
    );

    // What was said before the span still holds in it, and who is seen after it was there all the while.
    let inner = process_overview(&path, span(Some(6000), Some(8000)), 3, 9).unwrap();
    assert_eq!(inner.times_ms, [6000, 7000, 8000]);
    assert_eq!((inner.processes.len(), inner.n_processes), (1, 2));
    assert_eq!(inner.processes[0].points, [Some(20); 3]);
    assert_eq!(inner.others, None);
    let nothing = process_overview(&path, span(Some(10_000), None), 3, 9).unwrap();
    assert!(nothing.processes.is_empty() && nothing.times_ms.is_empty());
}

#[test]
fn of_very_many_processes_the_largest_are_told() {
    // Like a build: each lives for a moment, one after the other, beside one that lives on.
    let n = 100_000;
    let mut records = Vec::new();
    for pid in 0..n {
        let time = pid as u64 / 10;
        let held = if pid % 20_000 == 77 {
            5_000_000 + pid as u64
        } else {
            1000 + pid as u64 % 7
        };
        records.extend(seen(pid + 10, "cc", &[(time, Some(held))]));
        if pid % 1000 == 0 {
            records.extend(seen(1, "make", &[(time, Some(100_000_000))]));
        }
    }
    let (_dir, path) = processes_of(&records);
    damage(&path, PROCESS, 20_077 + 21);
    let overview = process_overview(&path, Span::default(), 500, 5).unwrap();
    let largest: Vec<i32> = overview.processes.iter().map(|series| series.pid).collect();
    assert_eq!(
        largest,
        [1, 80_087, 60_087, 40_087, 87],
        "without the damaged one"
    );
    assert_eq!(overview.n_processes, n as u64);
    let peak = overview.others.unwrap().peak;
    assert!(
        (10_000..11_000).contains(&peak),
        "ten at a time held {peak}, not all those of 20 ms together"
    );
}

#[test]
fn names_are_those_that_processes_had_last() {
    let records = [
        seen(1, "tidegate", &[(0, Some(5))]),
        seen(1, "python3", &[(100, Some(6))]),
    ]
    .concat();
    let (_dir, path) = processes_of(&records);
    let overview = process_overview(&path, Span::default(), 10, 1).unwrap();
    assert_eq!(overview.processes[0].name, "python3");
}
