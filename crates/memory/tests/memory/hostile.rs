//! Machines that write nonsense: whatever the files say, nothing panics and the budget stays within a bound.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tidegate_memory::{
    Amount, Cgroup, CgroupVersion, Host, memory_pressure, process_memory, resolve, start_time, tree_memory,
};

/// Lines made of pieces that the parsers look for, and of junk.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(" "),
        Just(":"),
        Just("/"),
        Just("-"),
        Just(" - "),
        Just("\n"),
        Just("\\040"),
        Just("\\9"),
        Just("("),
        Just(")"),
        Just("0::"),
        Just("memory"),
        Just("cgroup2 cgroup2 rw"),
        Just("cgroup cgroup rw,memory"),
        Just("/.."),
        Just("a"),
        Just("36 31 0:32 / /sys/fs/cgroup rw - cgroup2 c rw\n"),
        Just("4:memory:/x\n"),
        Just("0::/x\n"),
        Just("max"),
        Just("18446744073709551615"),
        Just("9223372036854771712"),
        Just("-1"),
        Just("0"),
        Just("7"),
        Just(" kB\n"),
        Just("MemAvailable:"),
        Just("VmRSS:"),
        Just("Name:\tx\n"),
        Just("Pss:"),
        Just("Max address space "),
        Just("unlimited"),
        Just("some avg10=1 avg60=1 avg300=1 total="),
        Just("hierarchical_memory_limit "),
        Just("oom_kill "),
        Just("é"),
        Just("\0"),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
    fs::write(path, text).expect("writable");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nonsense_never_panics(files in prop::collection::vec(text(), 12), slurm in "[0-9KMGTx(),:]{0,6}", asked: Option<u64>) {
        let root = tempfile::tempdir().expect("a temporary folder");
        for (path, text) in [
            "proc/self/cgroup", "proc/self/mountinfo", "proc/self/limits", "proc/meminfo", "proc/pressure/memory",
            "proc/7/stat", "proc/7/status", "proc/7/smaps_rollup", "proc/7/task/7/children",
            "sys/fs/cgroup/memory.max", "sys/fs/cgroup/x/memory.stat", "sys/fs/cgroup/x/memory.limit_in_bytes",
        ].iter().zip(&files) {
            write(root.path(), path, text);
        }
        let env = ["SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE"].map(|name| (name, slurm.as_str()));
        let host = Host::recorded(root.path(), env);
        if let Ok(budget) = resolve(&host, asked.map(Amount::Bytes)) {
            prop_assert!(0 < budget.bytes && budget.bytes <= budget.whole());
            prop_assert!(budget.bounds.iter().filter_map(|bound| bound.limit.bytes()).all(|bytes| budget.bytes <= bytes));
        }
        let _ = (process_memory(&host, 7), tree_memory(&host, 7), start_time(&host, 7), memory_pressure(&host));
        for version in [CgroupVersion::V1, CgroupVersion::V2] {
            let cgroup = Cgroup::at(root.path().join("sys/fs/cgroup/x"), version);
            let _ = (cgroup.limit(), cgroup.stat(), cgroup.events(), cgroup.swap(), cgroup.pressure());
        }
    }
}
