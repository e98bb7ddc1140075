//! The meters on recorded machines.

use std::fs;

use tidegate_memory::{
    Cgroup, CgroupEvents, CgroupStat, CgroupVersion, Host, Limit, Resource, meminfo, memory_pressure,
    pressure, process_memory, process_status, process_tree, start_time, tree_memory, tree_status,
};

use crate::{hosts, recorded};

const KB: u64 = 1024;

#[test]
fn a_tree_is_summed_by_proportional_share() {
    let host = recorded("bare-v2");
    assert_eq!(process_tree(&host, 4242), [4242, 4243, 4244, 4246]);
    let tree = tree_memory(&host, 4242);
    // The zombie has no memory; the one without VmRSS (a kernel thread, or no permission) is said to be unreadable.
    assert_eq!(
        tree.processes.iter().map(|p| p.pid).collect::<Vec<_>>(),
        [4242, 4243, 4246]
    );
    assert_eq!((tree.unreadable, tree.resident), (1, Some(370_000 * KB)));
    assert_eq!(
        tree.proportional, None,
        "a share is missing, so there is no sum of all shares"
    );
    let split = (tree.anonymous, tree.file, tree.shared, tree.swap);
    assert_eq!(
        split,
        (
            Some(170_000 * KB),
            Some(42_500 * KB),
            Some(7_500 * KB),
            Some(4 * KB)
        )
    );
    let root = &tree.processes[0];
    assert_eq!(root.name.as_deref(), Some("python3 (train)"));
    assert_eq!(
        (root.proportional, root.peak_resident),
        (Some(150_000 * KB), Some(300_000 * KB))
    );

    let status = tree_status(&host, 4242);
    assert_eq!(
        (status.proportional, status.anonymous),
        (None, Some(280_000 * KB))
    );
    let loader = process_memory(&host, 4243).expect("alive");
    assert_eq!(
        (loader.proportional, loader.swap),
        (Some(70_000 * KB), Some(4 * KB))
    );
}

#[test]
fn a_kernel_without_children_files_is_scanned() {
    let host = recorded("docker-v1");
    assert_eq!(process_tree(&host, 17), [17, 18]);
    assert_eq!(process_tree(&host, 1), [1, 17, 18]);
    let tree = tree_memory(&host, 17);
    assert_eq!(
        (tree.resident, tree.proportional, tree.unreadable),
        (Some(60_000 * KB), None, 0)
    );
}

#[test]
fn processes_that_name_each_other_do_not_lead_in_a_circle() {
    let root = tempfile::tempdir().expect("a temporary folder");
    for (pid, children) in [(7, "8 7 "), (8, "7 8 9 ")] {
        let folder = root.path().join(format!("proc/{pid}"));
        fs::create_dir_all(folder.join(format!("task/{pid}"))).expect("writable");
        fs::write(folder.join("stat"), format!("{pid} (x) S 1")).expect("writable");
        fs::write(folder.join(format!("task/{pid}/children")), children).expect("writable");
    }
    let host = Host::recorded(root.path(), [("", ""); 0]);
    assert_eq!(process_tree(&host, 7), [7, 8, 9]);
}

#[test]
fn who_is_gone_has_nothing() {
    let host = recorded("bare-v2");
    assert_eq!(process_memory(&host, 99), None);
    assert_eq!(process_status(&host, 4244), None, "a zombie");
    assert!(process_tree(&host, 99).is_empty());
    let tree = tree_memory(&host, 99);
    assert_eq!(
        (tree.resident, tree.proportional, tree.unreadable),
        (None, None, 0)
    );
    assert_eq!(
        (start_time(&host, 4242), start_time(&host, 4246)),
        (Some(88_123), Some(88_160))
    );
    assert_eq!(start_time(&host, 99), None);
}

#[test]
fn cgroup_counters_are_read_by_version() {
    let v2 = Cgroup::of(&recorded("bare-v2"), None).expect("a cgroup");
    assert_eq!(
        (v2.version, v2.usage(), v2.peak()),
        (CgroupVersion::V2, Some(734_003_200), Some(912_261_120))
    );
    assert_eq!((v2.limit(), v2.swap()), (Limit::Unlimited, Some(4096)));
    assert_eq!(
        v2.stat(),
        CgroupStat {
            anonymous: Some(524_288_000),
            file: Some(188_743_680),
            shared: Some(8_388_608),
            kernel: Some(20_971_520),
            dirty: Some(1_048_576),
        }
    );
    let events = CgroupEvents {
        oom_kill: Some(1),
        oom: Some(2),
        max: Some(12),
        high: Some(3),
    };
    assert_eq!(v2.events(), events);
    assert_eq!(
        v2.pressure().map(|p| (p.some_avg10, p.full_total_us)),
        Some((1.5, 765_432))
    );
    assert_eq!(v2.pressure_on(Resource::Cpu).map(|p| p.some_avg10), Some(12.1));
    assert_eq!(v2.pressure_on(Resource::Io), None);

    let v1 = Cgroup::of(&recorded("docker-v1"), None).expect("a cgroup");
    assert_eq!((v1.usage(), v1.peak()), (Some(104_857_600), Some(157_286_400)));
    assert_eq!((v1.limit(), v1.swap()), (Limit::Bytes(536_870_912), None));
    let events = CgroupEvents {
        oom_kill: Some(1),
        oom: None,
        max: Some(12),
        high: None,
    };
    assert_eq!(v1.events(), events);
    let stat = v1.stat();
    assert_eq!(
        (stat.anonymous, stat.file, stat.shared),
        (Some(73_400_320), Some(20_971_520), Some(4096))
    );
    assert_eq!((stat.kernel, v1.pressure()), (None, None));
}

#[test]
fn the_cgroup_that_counts_a_process_is_found() {
    let at = |layout: &str| {
        let cgroup = Cgroup::of(&recorded(layout), None).expect(layout);
        let path = cgroup
            .path
            .strip_prefix(hosts().join(layout))
            .expect("inside")
            .display()
            .to_string();
        format!("{} {path}", cgroup.version)
    };
    assert_eq!(at("docker-v1"), "v1 sys/fs/cgroup/memory");
    assert_eq!(at("docker-v2"), "v2 sys/fs/cgroup");
    assert_eq!(at("hybrid"), "v1 sys/fs/cgroup/memory/jobs/a4f1");
    assert_eq!(
        at("slurm-v1"),
        "v1 sys/fs/cgroup/memory/slurm/uid_1000/job_4711/step_0/task_0"
    );
    // The session has no memory files: its slice counts it.
    assert_eq!(at("login-node"), "v2 sys/fs/cgroup/user.slice/user-1000.slice");
    let error = Cgroup::of(&recorded("bare-v2"), Some(99)).expect_err("no such process");
    assert_eq!(
        error.to_string(),
        "process 99 is in no memory cgroup that is visible here: /proc/99/cgroup: no such file"
    );
}

#[test]
fn the_machine_is_read() {
    let host = recorded("bare-v2");
    let info = meminfo(&host);
    assert_eq!(
        (info.total, info.available),
        (Some(32_594_456 * KB), Some(24_117_248 * KB))
    );
    assert_eq!(
        (info.swap_total, info.shared),
        (Some(2_097_148 * KB), Some(301_244 * KB))
    );
    assert_eq!(memory_pressure(&host).map(|p| p.some_total_us), Some(55_501));
    assert_eq!(pressure(&host, Resource::Io), None);
}
