//! Counters that only rise, read before the job and after it. They count others too, so only their rise says something,
//! and only of their scope.

use std::path::{Path, PathBuf};

use tidegate_memory::{Cgroup, CgroupVersion, Host, vm_counter};

use crate::why::{Counter, CounterKind, Scope};

/// Cgroups above ours that are looked at.
const MOST_LEVELS: usize = 16;

/// What was read before the job.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    before: Vec<Counter>,
}

impl Counters {
    /// Reads all of them; `own` is the cgroup that only the job is in.
    pub(crate) fn before(host: &Host, own: Option<&Path>) -> Counters {
        let mut before = Vec::new();
        let mut add = |kind, scope, source: String, value| {
            before.push(Counter {
                kind,
                scope,
                source,
                before: value,
                after: None,
            });
        };
        if let Ok(cgroup) = Cgroup::of(host, None) {
            let levels = own.into_iter().map(|path| (Scope::Own, path));
            let above = cgroup
                .path
                .ancestors()
                .take(MOST_LEVELS)
                .map(|path| (Scope::Above, path));
            for (scope, path) in levels.chain(above) {
                let level = Cgroup::at(path, cgroup.version);
                if let Some(kills) = level.events().oom_kill {
                    let file = oom_file(cgroup.version);
                    add(
                        CounterKind::OomKills,
                        scope,
                        format!("{}/{file}", path.display()),
                        Some(kills),
                    );
                }
            }
        }
        let vmstat = |name: &str| format!("/proc/vmstat {name}");
        add(
            CounterKind::OomKills,
            Scope::Host,
            vmstat("oom_kill"),
            vm_counter(host, "oom_kill"),
        );
        add(
            CounterKind::SwappedIn,
            Scope::Host,
            vmstat("pswpin"),
            vm_counter(host, "pswpin"),
        );
        for (kind, path) in of_the_machine() {
            let value = number(&path);
            add(kind, Scope::Host, path.display().to_string(), value);
        }
        if let Some(checks) = machine_checks() {
            add(
                CounterKind::MachineChecks,
                Scope::Host,
                "/proc/interrupts MCE".into(),
                Some(checks),
            );
        }
        Counters { before }
    }

    /// Reads them again.
    pub(crate) fn after(self, host: &Host) -> Vec<Counter> {
        let mut counters = self.before;
        for counter in &mut counters {
            counter.after = match (counter.kind, counter.scope) {
                (CounterKind::OomKills, Scope::Host) => vm_counter(host, "oom_kill"),
                (CounterKind::SwappedIn, _) => vm_counter(host, "pswpin"),
                (CounterKind::MachineChecks, _) => machine_checks(),
                (CounterKind::OomKills, Scope::Own | Scope::Above) => {
                    let (folder, file) = counter.source.rsplit_once('/').unwrap_or_default();
                    let version = match file == oom_file(CgroupVersion::V1) {
                        true => CgroupVersion::V1,
                        false => CgroupVersion::V2,
                    };
                    Cgroup::at(folder, version).events().oom_kill
                }
                _ => number(Path::new(&counter.source)),
            };
        }
        counters
    }
}

fn oom_file(version: CgroupVersion) -> &'static str {
    match version {
        CgroupVersion::V1 => "memory.oom_control oom_kill",
        CgroupVersion::V2 => "memory.events oom_kill",
    }
}

/// Files with errors of memory and disks, and with times of too much heat.
fn of_the_machine() -> Vec<(CounterKind, PathBuf)> {
    let mut found = Vec::new();
    let mut each = |folder: &str, prefix: &str, files: &[(CounterKind, &str)]| {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(prefix) {
                let paths = files.iter().map(|(kind, file)| (*kind, entry.path().join(file)));
                found.extend(paths.filter(|(_, path)| path.exists()));
            }
        }
    };
    each(
        "/sys/devices/system/edac/mc",
        "mc",
        &[
            (CounterKind::CorrectedErrors, "ce_count"),
            (CounterKind::UncorrectedErrors, "ue_count"),
        ],
    );
    each("/sys/fs/ext4", "", &[(CounterKind::DiskErrors, "errors_count")]);
    each("/sys/block", "", &[(CounterKind::DiskErrors, "device/ioerr_cnt")]);
    each(
        "/sys/devices/system/cpu",
        "cpu0",
        &[(CounterKind::Throttled, "thermal_throttle/package_throttle_count")],
    );
    found.sort_by(|a, b| a.1.cmp(&b.1));
    found
}

/// A file with a number, in hexadecimal where it says so.
fn number(path: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Machine check exceptions of all processors.
fn machine_checks() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/interrupts").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("MCE:"))?;
    Some(
        line.split_whitespace()
            .map_while(|word| word.parse::<u64>().ok())
            .sum(),
    )
}
