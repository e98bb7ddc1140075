//! The flight recorder under attack: whatever happens to the file, what is intact is read.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;
use tidegate_runs::{Error, FlightHeader, FlightRecord, FlightWriter, last_record, read_flight};

const HEADER: usize = 64;
const RECORD: usize = 264;

fn header() -> FlightHeader {
    FlightHeader {
        run_id: "k7mp2xqa".into(),
        start_ms: 1_794_773_730_123,
    }
}

fn write(records: &[FlightRecord]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flight.bin");
    let mut writer = FlightWriter::create(&path, &header()).unwrap();
    for record in records {
        writer.append(record).unwrap();
    }
    (dir, path)
}

fn a_size() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), Just(Some(0)), (0..u64::MAX).prop_map(Some)]
}

prop_compose! {
    fn a_record()(
        time_ms in any::<u64>(),
        sizes in prop::collection::vec(a_size(), 25),
        pressure in prop::collection::vec(prop_oneof![Just(None), (0f32..100.0).prop_map(Some)], 4),
        (processes, epoch, step) in any::<(u32, u32, u64)>(),
    ) -> FlightRecord {
        FlightRecord {
            time_ms,
            resident: sizes[0],
            proportional: sizes[1],
            anonymous: sizes[2],
            file: sizes[3],
            shared: sizes[4],
            swap: sizes[5],
            cgroup_usage: sizes[6],
            cgroup_peak: sizes[7],
            oom_kills: sizes[8],
            ledger_used: sizes[9],
            ledger_peak: sizes[10],
            budget: sizes[11],
            pressure_some: pressure[0],
            pressure_full: pressure[1],
            processes,
            epoch,
            step,
            cgroup_anonymous: sizes[12],
            cgroup_file: sizes[13],
            cgroup_shared: sizes[14],
            cgroup_swap: sizes[15],
            host_available: sizes[16],
            host_swap: sizes[17],
            shared_memory: sizes[18],
            major_faults: sizes[19],
            cpu_ms: sizes[20],
            read_bytes: sizes[21],
            written_bytes: sizes[22],
            open_files: sizes[23],
            threads: sizes[24],
            pressure_cpu: pressure[2],
            pressure_io: pressure[3],
        }
    }
}

fn some_records() -> impl Strategy<Value = Vec<FlightRecord>> {
    prop::collection::vec(a_record(), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn what_was_written_is_read(records in some_records()) {
        let (_dir, path) = write(&records);
        let flight = read_flight(&path).unwrap();
        prop_assert_eq!(flight.header, Some(header()));
        prop_assert_eq!(&flight.records, &records);
        prop_assert_eq!(flight.damaged, 0);
        prop_assert_eq!(last_record(&path).unwrap().1, records.last().copied());
    }

    #[test]
    fn a_cut_loses_only_what_it_cuts(records in some_records(), cut in any::<prop::sample::Index>()) {
        let (_dir, path) = write(&records);
        let length = HEADER + RECORD * records.len();
        let kept = cut.index(length + 1);
        OpenOptions::new().write(true).open(&path).unwrap().set_len(kept as u64).unwrap();
        if kept < HEADER {
            prop_assert!(read_flight(&path).is_err());
        } else {
            let whole = (kept - HEADER) / RECORD;
            let flight = read_flight(&path).unwrap();
            prop_assert_eq!(&flight.records, &records[..whole]);
            prop_assert_eq!(flight.damaged, usize::from(!(kept - HEADER).is_multiple_of(RECORD)));
            prop_assert_eq!(last_record(&path).unwrap().1, records[..whole].last().copied());
        }
    }

    #[test]
    fn a_flipped_bit_costs_one_record(records in some_records(), at in any::<prop::sample::Index>(), bit in 0..8) {
        let (_dir, path) = write(&records);
        let mut bytes = fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1u8 << bit;
        fs::write(&path, &bytes).unwrap();
        if at < HEADER {
            match read_flight(&path) {
                Ok(flight) => {
                    prop_assert_eq!(flight.header, None);
                    prop_assert_eq!(&flight.records, &records);
                }
                Err(error) => prop_assert!(records.is_empty(), "{}", error),
            }
        } else {
            let mut left = records.clone();
            left.remove((at - HEADER) / RECORD);
            let flight = read_flight(&path).unwrap();
            prop_assert_eq!((flight.records, flight.damaged), (left, 1));
        }
    }

    #[test]
    fn junk_never_panics(junk in prop::collection::vec(any::<u8>(), 0..600), with_magic: bool) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("flight.bin");
        let bytes = if with_magic { [b"TGFLIGHT".to_vec(), junk].concat() } else { junk };
        fs::write(&path, bytes).unwrap();
        prop_assert!(read_flight(&path).is_err());
        let _ = last_record(&path);
    }
}

fn with_header(path: &Path, change: impl FnOnce(&mut [u8])) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes[..HEADER]);
    let crc = crc32fast::hash(&bytes[..60]);
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn headers_with_a_right_checksum_and_wrong_claims_are_refused() {
    let record = FlightRecord {
        time_ms: 5,
        ..FlightRecord::default()
    };
    let (_dir, path) = write(&[record]);
    with_header(&path, |header| header[8] = 9);
    assert!(matches!(
        read_flight(&path),
        Err(Error::FlightVersion {
            found: 9,
            known: 2,
            ..
        })
    ));

    // A record size of zero or of gigabytes must not be believed.
    for size in [0u32, 1, u32::MAX] {
        let (_dir, path) = write(&[record]);
        with_header(&path, |header| {
            header[12..16].copy_from_slice(&size.to_le_bytes())
        });
        assert!(
            matches!(read_flight(&path), Err(Error::FlightVersion { .. })),
            "{size}"
        );
    }
    let (_dir, path) = write(&[record]);
    with_header(&path, |header| header[0] = b'X');
    assert!(matches!(read_flight(&path), Err(Error::NotAFlight { .. })));

    let (_dir, path) = write(&[record]);
    with_header(&path, |header| header[16..32].fill(0xff));
    assert_eq!(
        read_flight(&path).unwrap().records,
        [record],
        "an id that is not UTF-8 is no reason to fail"
    );
}

#[test]
fn records_in_the_wrong_place_are_damaged() {
    let records: Vec<FlightRecord> = (0..3)
        .map(|n| FlightRecord {
            time_ms: n,
            ..FlightRecord::default()
        })
        .collect();
    let (_dir, path) = write(&records);
    let mut bytes = fs::read(&path).unwrap();
    bytes.copy_within(HEADER..HEADER + RECORD, HEADER + RECORD);
    fs::write(&path, bytes).unwrap();
    let flight = read_flight(&path).unwrap();
    assert_eq!((flight.records.len(), flight.damaged), (2, 1));
}

#[test]
fn a_recording_is_never_overwritten() {
    let (_dir, path) = write(&[]);
    assert!(matches!(
        FlightWriter::create(&path, &header()),
        Err(Error::Io { .. })
    ));
}

const CHILD: &str = "TIDEGATE_TEST_FULL_DISK";

/// A limit on the size of files fails in the middle of a record, as a full disk does. The limit is the
/// whole process's, so this runs in one of its own.
#[test]
fn full_disk_process() {
    let Some(dir) = std::env::var_os(CHILD) else {
        return;
    };
    let path = Path::new(&dir).join("flight.bin");
    let mut writer = FlightWriter::create(&path, &header()).unwrap();
    let record = FlightRecord::default();
    writer.append(&record).unwrap();

    let bytes = (HEADER + RECORD + 50) as u64;
    // SAFETY: sets a limit and ignores a signal of this process, which exists for nothing else.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::setrlimit(
            libc::RLIMIT_FSIZE,
            &libc::rlimit {
                rlim_cur: bytes,
                rlim_max: bytes,
            },
        );
    }
    let told: Vec<bool> = (0..3).map(|_| writer.append(&record).is_ok()).collect();
    assert_eq!(told, [false, true, true]);
    assert!(writer.is_quiet());
}

#[test]
fn a_full_disk_is_said_once_and_then_nothing_more() {
    let dir = tempfile::tempdir().unwrap();
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "flight::full_disk_process", "--quiet"])
        .env(CHILD, dir.path())
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let flight = read_flight(&dir.path().join("flight.bin")).unwrap();
    assert_eq!((flight.records.len(), flight.damaged), (1, 1));
}

/// A file of the first version, whose records end before the figures that came later.
#[test]
fn an_earlier_version_is_read_without_what_it_lacks() {
    let (_dir, path) = write(&[FlightRecord {
        time_ms: 7,
        resident: Some(5),
        step: 9,
        threads: Some(3),
        ..FlightRecord::default()
    }]);
    let bytes = fs::read(&path).unwrap();
    let mut head = bytes[..60].to_vec();
    head[8..12].copy_from_slice(&1u32.to_le_bytes());
    head[12..16].copy_from_slice(&144u32.to_le_bytes());
    head.extend(crc32fast::hash(&head).to_le_bytes());
    let mut record = bytes[HEADER..HEADER + 140].to_vec();
    record.extend(crc32fast::hash(&record).to_le_bytes());
    fs::write(&path, [head, record].concat()).unwrap();
    let found = read_flight(&path).unwrap().records[0];
    assert_eq!(
        (found.time_ms, found.resident, found.step, found.threads),
        (7, Some(5), 9, None)
    );
}
