//! Accelerators, seen through a made-up library of NVIDIA's interface.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tidegate_memory::Host;
use tidegate_runs::{DeviceRecord, NewRun, Store, read_records};
use tidegate_watch::why::{Case, Cause, CounterKind, DeviceFault, collect, devices, judge};
use tidegate_watch::{Devices, Job, RecordedRun, supervise};

use crate::help::{foreign, run, wait_until};

/// A driver whose figures are lines of a file.
struct Driver {
    dir: TempDir,
}

impl Driver {
    fn new(figures: &str) -> Driver {
        let driver = Driver {
            dir: tempfile::tempdir().unwrap(),
        };
        driver.tell(figures);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/watch/devices/nvml.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(driver.library())
            .arg(format!("-DFIGURES=\"{}\"", driver.figures().display()))
            .arg(source)
            .status()
            .unwrap();
        assert!(built.success());
        driver
    }

    fn library(&self) -> PathBuf {
        self.dir.path().join("libnvidia-ml.so.1")
    }

    fn figures(&self) -> PathBuf {
        self.dir.path().join("figures")
    }

    /// All at once: it is read at any time.
    fn tell(&self, figures: &str) {
        let beside = self.dir.path().join("beside");
        fs::write(&beside, figures).unwrap();
        fs::rename(beside, self.figures()).unwrap();
    }
}

/// Runs a script with its own process, and with this library of a driver; the script can say `tell 'figures'`.
fn watched(library: &Path, figures: &Path, script: &str) -> (Case, Duration) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let id = store.create(&NewRun::default()).unwrap().id;
    let file = figures.display();
    let tell = format!("tell() {{ printf \"$1\\n\" > {file}.new; mv {file}.new {file}; }}");
    let mut job: Job<'_> = foreign(&format!("{tell}\n{script}"));
    job.devices = Devices::Through(library.into());
    job.run = Some(RecordedRun {
        store: &store,
        id: &id,
    });
    let begun = Instant::now();
    run(job);
    let elapsed = begun.elapsed();
    (collect(&store, &store.get(&id).unwrap()), elapsed)
}

const FIGURES: &str = "total 16000 used 1000 busy 40 temperature 50 throttle 4 ecc 3";

#[test]
fn figures_of_a_device_are_recorded_with_what_the_run_holds() {
    let driver = Driver::new(FIGURES);
    let (case, _) = watched(
        &driver.library(),
        &driver.figures(),
        &format!(
            "sleep 0.4; tell \"{FIGURES} pid $$ own 14000 used 15500 temperature 91 throttle 64\"; sleep 0.8; exit 0"
        ),
    );
    let first = &case.devices[0];
    let expected = DeviceRecord {
        time_ms: first.time_ms,
        memory_own: first.memory_own,
        index: 0,
        name: "Made-up GPU".into(),
        memory_used: Some(1_000),
        memory_total: Some(16_000),
        utilization: Some(40),
        temperature: Some(50),
        throttle_reasons: Some(4),
        uncorrected_errors: Some(3),
    };
    assert_eq!(*first, expected);
    assert!(matches!(first.memory_own, None | Some(0)), "{first:?}");
    // It is in the lists of those that compute and of those that draw, and holds it once.
    let full = case
        .devices
        .iter()
        .find(|record| record.memory_own == Some(14_000))
        .unwrap();
    assert_eq!((full.memory_used, full.temperature), (Some(15_500), Some(91)));
    assert!(case.devices.is_sorted_by_key(|record| record.time_ms));
    assert_eq!(case.facts.devices_unavailable, None);
    assert_eq!(
        devices(&case)[0].line(),
        "device 0, Made-up GPU: 15.5 KB of 16 KB in use at the most, 14 KB by this run, at up to 91 °C, slowed down by heat"
    );
}

#[test]
fn an_error_number_and_risen_errors_are_facts_and_evidence() {
    let driver = Driver::new(FIGURES);
    let (case, _) = watched(
        &driver.library(),
        &driver.figures(),
        &format!("sleep 0.4; tell \"{FIGURES} pid $$ own 14000 used 15500 xid 48 ecc 5\"; sleep 0.6; exit 1"),
    );
    let [fault] = case.facts.device_faults[..] else {
        panic!("{:?}", case.facts.device_faults);
    };
    let expected = DeviceFault {
        time_ms: fault.time_ms,
        index: 0,
        xid: Some(48),
    };
    assert_eq!(fault, expected);
    assert!(fault.time_ms >= 400, "{fault:?}");
    let counters = case.facts.counters.iter();
    let errors: Vec<_> = counters
        .filter(|counter| counter.kind == CounterKind::DeviceErrors)
        .collect();
    assert_eq!(
        (errors.len(), errors[0].before, errors[0].after),
        (1, Some(3), Some(5))
    );
    let verdict = judge(&case);
    assert_eq!(verdict.cause, Cause::Hardware, "{}", verdict.sentence);
    assert!(verdict.sentence.contains("Xid 48"), "{}", verdict.sentence);
    let texts: Vec<&str> = verdict.evidence.iter().map(|line| line.text.as_str()).collect();
    assert!(texts.contains(&"3 before, 5 after"), "{texts:?}");
}

#[test]
fn a_lost_device_is_a_fault_and_has_no_figures_any_more() {
    let driver = Driver::new(FIGURES);
    let (case, _) = watched(
        &driver.library(),
        &driver.figures(),
        "sleep 0.4; tell 'lost 1'; sleep 0.6; exit 1",
    );
    assert_eq!(case.facts.device_faults.len(), 1);
    assert_eq!(case.facts.device_faults[0].xid, None);
    assert!(
        case.devices
            .iter()
            .all(|record| record.memory_used == Some(1_000))
    );
}

#[test]
fn a_driver_that_hangs_holds_nobody_up() {
    let driver = Driver::new(FIGURES);
    let script = format!("sleep 0.4; tell \"{FIGURES} hang 1\"; sleep 0.8; exit 3");
    let (case, elapsed) = watched(&driver.library(), &driver.figures(), &script);
    assert!(elapsed < Duration::from_secs(3), "{elapsed:?}");
    let why = case.facts.devices_unavailable.as_deref().unwrap_or_default();
    assert!(why.starts_with("the driver has not answered for "), "{why}");
    let errors = case
        .facts
        .counters
        .iter()
        .find(|counter| counter.kind == CounterKind::DeviceErrors);
    assert_eq!(
        errors.map(|counter| (counter.before, counter.after)),
        Some((Some(3), None))
    );
    assert!(!case.devices.is_empty());
    // From the beginning: it cost nothing but the figures.
    driver.tell(&format!("{FIGURES} hang 1"));
    let (case, _) = watched(&driver.library(), &driver.figures(), "exit 0");
    assert!(case.facts.devices_unavailable.is_some() && case.devices.is_empty());
    driver.tell(FIGURES);
}

#[test]
fn a_missing_library_is_unavailable_and_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let none = dir.path().join("libnvidia-ml.so.1");
    let (case, _) = watched(&none, &dir.path().join("figures"), "sleep 0.2; exit 0");
    if case.devices.is_empty() {
        assert_eq!(
            case.facts.devices_unavailable.as_deref(),
            Some("no NVIDIA driver")
        );
    }
    assert!(case.facts.device_faults.is_empty());
    assert_eq!(judge(&case).cause, Cause::Success);
}

#[test]
fn cards_of_the_kernel_are_recorded_without_a_library() {
    let root = tempfile::tempdir().unwrap();
    let card = root.path().join("sys/class/drm/card1/device");
    fs::create_dir_all(&card).unwrap();
    fs::write(card.join("mem_info_vram_total"), "8000\n").unwrap();
    fs::write(card.join("mem_info_vram_used"), "3000\n").unwrap();
    let host = Host::recorded(root.path(), [("", ""); 0]);
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let id = store.create(&NewRun::default()).unwrap().id;
    let path = store.run_dir(&id).devices();
    let mut job = foreign("sleep 0.3");
    job.confine = false;
    job.devices = Devices::Through(root.path().join("none"));
    job.run = Some(RecordedRun {
        store: &store,
        id: &id,
    });
    supervise(&host, job, &mut |_| {}).unwrap();
    wait_until("the record is written", || path.exists());
    let record = read_records::<DeviceRecord>(&path).unwrap().records.remove(0);
    assert_eq!((record.index, record.name.as_str()), (1, "amdgpu card1"));
    assert_eq!(
        (record.memory_used, record.memory_total),
        (Some(3_000), Some(8_000))
    );
    assert_eq!(record.memory_own, None);
}
