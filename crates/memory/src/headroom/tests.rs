//! Limits that are lowered and neighbours that grow, on copies of a machine's files.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

const MB: u64 = 1_000_000;
const BUDGET: u64 = 100 * MB;

/// A machine of which the job's own cgroup, its parent and the host can be changed.
struct Machine {
    folder: TempDir,
    version: CgroupVersion,
}

impl Machine {
    fn new(version: CgroupVersion) -> Machine {
        let machine = Machine {
            folder: tempfile::tempdir().unwrap(),
            version,
        };
        let (line, mount) = match version {
            CgroupVersion::V1 => (
                "4:memory:/jobs/own",
                "35 31 0:32 / /sys/fs/cgroup rw - cgroup cgroup rw,memory",
            ),
            CgroupVersion::V2 => ("0::/jobs/own", "35 31 0:32 / /sys/fs/cgroup rw - cgroup2 none rw"),
        };
        machine.write("proc/self/cgroup", line);
        machine.write("proc/self/mountinfo", mount);
        machine.holds(10 * MB);
        machine.host(8_000 * MB);
        machine.group("jobs/own", Some(BUDGET), 10 * MB, 0);
        machine.group("jobs", Some(400 * MB), 20 * MB, 5 * MB);
        machine
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path: PathBuf = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn holds(&self, bytes: u64) {
        self.write(
            "proc/self/statm",
            format!("99999 {} 100 1 0 1 0\n", bytes / 4096 + 100),
        );
    }

    fn host(&self, available: u64) {
        let text = format!(
            "MemTotal: {} kB\nMemAvailable: {} kB\n",
            (16_000 * MB) / 1024,
            available / 1024
        );
        self.write("proc/meminfo", text);
    }

    fn group(&self, name: &str, limit: Option<u64>, usage: u64, cached: u64) {
        let (limit_file, usage_file, none) = match self.version {
            CgroupVersion::V1 => (
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "9223372036854771712",
            ),
            CgroupVersion::V2 => ("memory.max", "memory.current", "max"),
        };
        let folder = format!("sys/fs/cgroup/{name}");
        let limit = limit.map_or(none.to_string(), |limit| limit.to_string());
        self.write(&format!("{folder}/{limit_file}"), limit);
        self.write(&format!("{folder}/{usage_file}"), usage.to_string());
        let stat = match self.version {
            CgroupVersion::V1 => format!("cache 1\ntotal_cache {cached}\ntotal_shmem 0\ntotal_dirty 0\n"),
            CgroupVersion::V2 => format!("anon 1\nfile {cached}\nshmem 0\nfile_dirty 0\n"),
        };
        self.write(&format!("{folder}/memory.stat"), stat);
    }

    fn headroom(&self) -> Headroom {
        Headroom::open(&Host::recorded(self.folder.path(), [("", ""); 0]), BUDGET, BUDGET)
    }
}

/// What it says once it has seen the same twice.
fn look(headroom: &mut Headroom, granted: u64) -> Option<Allowance> {
    let _ = headroom.look(granted);
    headroom.look(granted)
}

const VERSIONS: [CgroupVersion; 2] = [CgroupVersion::V1, CgroupVersion::V2];

#[test]
fn a_job_that_fills_its_own_cgroup_is_left_alone() {
    for version in VERSIONS {
        let machine = Machine::new(version);
        let mut headroom = machine.headroom();
        assert_eq!(look(&mut headroom, 10 * MB), None);
        machine.holds(99 * MB);
        machine.group("jobs/own", Some(BUDGET), BUDGET, 0);
        machine.group("jobs", Some(400 * MB), 110 * MB, 0);
        assert_eq!(look(&mut headroom, BUDGET), None);
        // What is only cached can be taken back.
        machine.group("jobs", Some(400 * MB), 399 * MB, 290 * MB);
        assert_eq!(look(&mut headroom, BUDGET), None);
    }
}

#[test]
fn a_limit_that_is_lowered_is_named() {
    for version in VERSIONS {
        let machine = Machine::new(version);
        let mut headroom = machine.headroom();
        let reserve = headroom.reserve();
        machine.holds(50 * MB);
        machine.group("jobs/own", Some(80 * MB), 60 * MB, 10 * MB);
        let allowed = look(&mut headroom, 90 * MB).expect("less than the budget");
        // 30 MB are left, beside what the job holds.
        assert!(allowed.bytes.abs_diff(80 * MB - reserve) < 8192, "{allowed:?}");
        assert!(!allowed.near);
        let bound = &allowed.bound;
        assert_eq!(
            (bound.limit_before, bound.limit, bound.used_before, bound.used),
            (BUDGET, 80 * MB, 10 * MB, 50 * MB)
        );
        assert!(
            bound.name.starts_with("/sys/fs/cgroup/jobs/own/memory."),
            "{}",
            bound.name
        );
        machine.group("jobs/own", Some(52 * MB), 51 * MB, 0);
        let allowed = look(&mut headroom, 90 * MB).expect("less still");
        assert!(allowed.near && allowed.bytes < 50 * MB, "{allowed:?}");
    }
}

#[test]
fn a_neighbour_that_grows_takes_from_what_is_left() {
    for version in VERSIONS {
        let machine = Machine::new(version);
        let mut headroom = machine.headroom();
        let reserve = headroom.reserve();
        machine.holds(60 * MB);
        // The job has 60 MB, its neighbours 310, and 30 are left.
        machine.group("jobs", Some(400 * MB), 370 * MB, 0);
        let allowed = look(&mut headroom, 95 * MB).expect("less than the budget");
        assert!(allowed.bytes.abs_diff(90 * MB - reserve) < 8192, "{allowed:?}");
        assert!(!allowed.near && allowed.bound.limit == allowed.bound.limit_before);
        machine.group("jobs", Some(400 * MB), 399 * MB, 0);
        let allowed = look(&mut headroom, 95 * MB).expect("less still");
        assert!(allowed.near);
        assert!(
            allowed.bytes.abs_diff(60 * MB - (reserve - MB)) < 8192,
            "{allowed:?}"
        );
        // Gone again, it is as it was.
        machine.group("jobs", Some(400 * MB), 100 * MB, 0);
        assert_eq!(look(&mut headroom, 95 * MB), None);
    }
}

#[test]
fn a_group_that_was_not_limited_may_come_to_be() {
    for version in VERSIONS {
        let machine = Machine::new(version);
        machine.group("jobs", None, 200 * MB, 0);
        let mut headroom = machine.headroom();
        assert_eq!(look(&mut headroom, 50 * MB), None);
        machine.group("jobs", Some(250 * MB), 240 * MB, 0);
        assert!(look(&mut headroom, 50 * MB).is_some());
    }
}

#[test]
fn a_host_that_runs_low_is_a_bound() {
    let machine = Machine::new(CgroupVersion::V2);
    let mut headroom = machine.headroom();
    machine.host(2 * MB);
    let allowed = look(&mut headroom, 50 * MB).expect("next to nothing is left");
    assert!(allowed.near);
    assert_eq!(allowed.bound.name, "/proc/meminfo MemAvailable");
}

#[test]
fn where_it_was_tight_from_the_start_nothing_is_taken_away() {
    for version in VERSIONS {
        let machine = Machine::new(version);
        // Room for the budget and not a byte more.
        machine.group("jobs", Some(110 * MB), 20 * MB, 0);
        let mut headroom = machine.headroom();
        machine.holds(99 * MB);
        machine.group("jobs", Some(110 * MB), 109 * MB, 0);
        let allowed = look(&mut headroom, BUDGET);
        assert!(allowed.is_none_or(|allowed| !allowed.near && allowed.bytes > 98 * MB));
    }
}

#[test]
fn a_machine_that_tells_nothing_bounds_nothing() {
    let nowhere = Host::recorded("/nonexistent", [("", ""); 0]);
    assert_eq!(look(&mut Headroom::open(&nowhere, BUDGET, BUDGET), BUDGET), None);
}

#[test]
fn a_look_costs_next_to_nothing() {
    let mut headroom = Headroom::open(&Host::live(), BUDGET, BUDGET);
    let began = std::time::Instant::now();
    for _ in 0..100 {
        std::hint::black_box(headroom.look(BUDGET));
    }
    // Far above what a look takes: a machine may be busy.
    assert!(began.elapsed().as_millis() < 500, "{:?}", began.elapsed());
}

#[test]
fn a_single_look_is_believed_where_there_is_no_time_to_lose() {
    let machine = Machine::new(CgroupVersion::V2);
    let mut headroom = machine.headroom();
    machine.holds(50 * MB);
    machine.group("jobs", Some(400 * MB), 370 * MB, 0);
    assert_eq!(headroom.look(90 * MB), None);
    assert!(headroom.look(90 * MB).is_some());
    let mut headroom = machine.headroom();
    machine.host(MB);
    assert!(headroom.look(90 * MB).is_some_and(|allowed| allowed.near));
}
