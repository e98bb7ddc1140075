//! Closing what a killed supervisor left behind: its worker, its cgroup, and the run that looks alive.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use tidegate_memory::{Cgroup, CgroupVersion, Host, format_bytes, start_time};
use tidegate_runs::{FlightRecord, Outcome, ProcessRef, Run, Status, Store, clock, last_record, now_ms};

use crate::confine::{group_name, remove_group};
use crate::error::Result;
use crate::identity::{boot_id, is_alive};

/// How long a run may stay without a worker when nobody said who starts it.
const STARTING_GRACE_MS: i64 = 10_000;
/// A supervisor elsewhere (another container or machine with the same folder) that has recorded nothing
/// for this long is taken for dead. It writes at least every two seconds.
const SILENCE: Duration = Duration::from_secs(60);
/// How long an orphaned worker, which got SIGTERM when its supervisor died, has to finish saving.
const WORKER_GRACE: Duration = Duration::from_secs(3);

/// Finds runs whose supervisor is gone, ends and removes what is left of them, and marks them failed with
/// what is known. Returns the runs that this call closed; any number of commands may do this at once.
pub fn close_orphans(host: &Host, store: &Store) -> Result<Vec<Run>> {
    let here = boot_id();
    let mut closed = Vec::new();
    for run in store.running()? {
        if !is_orphan(host, store, &run, here.as_deref()) {
            continue;
        }
        let counters = end_left_overs(host, &run, here.as_deref());
        let outcome = outcome(store, &run, &counters, here.as_deref());
        if store.finish(&run.id, &outcome)? {
            closed.push(store.get(&run.id)?);
        }
    }
    remove_unrecorded(host);
    Ok(closed)
}

/// Cgroups of jobs without a run, `tidegate-p<pid>-<n>`, whose supervisor is gone. Only empty ones can be
/// removed this way, so nothing is harmed where the number belongs to another container.
fn remove_unrecorded(host: &Host) {
    let Ok(own) = Cgroup::of(host, None) else { return };
    for entry in std::fs::read_dir(&own.path).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix("tidegate-p")?.split('-').next()?.parse().ok());
        if pid.is_some_and(|pid: i32| start_time(host, pid).is_none()) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

fn is_orphan(host: &Host, store: &Store, run: &Run, here: Option<&str>) -> bool {
    let Some(supervisor) = run.supervisor else {
        return now_ms().saturating_sub(run.created_ms) > STARTING_GRACE_MS;
    };
    if run.boot_id.as_deref() == here {
        return !is_alive(host, supervisor);
    }
    // Its process numbers mean nothing here; a supervisor that lives keeps writing.
    silent_for(&store.run_dir(&run.id).flight(), run.created_ms) > SILENCE
}

/// Since the file was last written, or since the run was created when there is none.
fn silent_for(flight: &Path, created_ms: i64) -> Duration {
    let written = std::fs::metadata(flight).and_then(|metadata| metadata.modified());
    match written {
        Ok(written) => SystemTime::now().duration_since(written).unwrap_or_default(),
        Err(_) => Duration::from_millis(u64::try_from(now_ms() - created_ms).unwrap_or(0)),
    }
}

/// What the cgroup still knew.
#[derive(Default)]
struct Counters {
    peak: Option<u64>,
    oom_kills: Option<u64>,
}

fn end_left_overs(host: &Host, run: &Run, here: Option<&str>) -> Counters {
    if run.boot_id.as_deref() == here
        && let Some(worker) = run.worker
    {
        end_worker(host, worker);
    }
    let mut counters = Counters::default();
    let Some(path) = run.cgroup.as_deref().filter(|path| is_ours(path, &run.id)) else {
        return counters;
    };
    // By its files, since the record may be of another machine.
    let v1 = path.join("memory.usage_in_bytes").exists();
    let cgroup = Cgroup::at(path, if v1 { CgroupVersion::V1 } else { CgroupVersion::V2 });
    counters.peak = cgroup.peak();
    // A new cgroup starts from zero.
    counters.oom_kills = cgroup.events().oom_kill;
    // A failure shows in the next command, which finds no run for it but may remove it by hand.
    let _ = remove_group(path);
    if let (Some(parent), Some(supervisor)) = (path.parent(), run.supervisor) {
        let _ = std::fs::remove_dir(parent.join(format!("tidegate-supervisor-{}", supervisor.pid)));
    }
    counters
}

/// Never touches a directory that is not a cgroup of exactly this run.
fn is_ours(path: &Path, id: &str) -> bool {
    path.file_name().is_some_and(|name| *name == *group_name(id)) && path.join("cgroup.procs").exists()
}

fn end_worker(host: &Host, worker: ProcessRef) {
    let patience = Instant::now() + WORKER_GRACE;
    let signal = |signal| {
        // The start time was compared a moment ago: the number is still the worker's, and it leads the
        // group of the same number.
        // SAFETY: kill has no memory effects.
        unsafe { libc::kill(-worker.pid, signal) };
    };
    if worker.pid <= 1 || !is_alive(host, worker) {
        return;
    }
    signal(libc::SIGTERM);
    signal(libc::SIGCONT);
    while is_alive(host, worker) && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(20));
    }
    if is_alive(host, worker) {
        signal(libc::SIGKILL);
        while is_alive(host, worker) && Instant::now() < patience + Duration::from_secs(1) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn outcome(store: &Store, run: &Run, counters: &Counters, here: Option<&str>) -> Outcome {
    let seen = last_record(&store.run_dir(&run.id).flight()).ok();
    let (header, last) = seen.unwrap_or_default();
    let when = header
        .zip(last)
        .map(|(header, last)| header.start_ms.saturating_add_unsigned(last.time_ms));

    let cause = match (run.status, run.boot_id.as_deref() == here) {
        (Status::Starting, _) => "it never started: its supervisor is gone",
        (_, true) => "its supervisor was killed or crashed",
        (_, false) if same_boot(run.boot_id.as_deref(), here) => {
            "its supervisor fell silent in another container"
        }
        (_, false) => "the machine was restarted, or its supervisor fell silent on another one",
    };
    let (peak_bytes, peak_source) = match (counters.peak, last.and_then(|last| last.cgroup_peak)) {
        (Some(peak), _) => (Some(peak), Some("cgroup peak")),
        (None, Some(peak)) => (Some(peak), Some("cgroup peak, last seen")),
        (None, None) => (None, None),
    };
    Outcome {
        peak_bytes,
        peak_source: peak_source.map(str::to_string),
        oom_kills: counters.oom_kills.or(last.and_then(|last| last.oom_kills)),
        error: Some(match (when, last) {
            (Some(when), Some(last)) => format!("{cause}; last seen at {}", last_seen(when, &last)),
            _ => cause.to_string(),
        }),
        ..Outcome::new(Status::Failed)
    }
}

/// The boot is the part of the identity before the process namespace.
fn same_boot(there: Option<&str>, here: Option<&str>) -> bool {
    let boot = |id: Option<&str>| id.and_then(|id| id.split(' ').next().map(str::to_string));
    boot(there).is_some() && boot(there) == boot(here)
}

/// `20:15:31 UTC with 143 MB resident of 256 MB, epoch 1 step 8192`
fn last_seen(when_ms: i64, last: &FlightRecord) -> String {
    let mut text = format!("{} UTC", clock(when_ms));
    let held = match (last.resident, last.cgroup_usage) {
        (Some(resident), _) => Some((resident, "resident")),
        (None, Some(usage)) => Some((usage, "in its cgroup")),
        (None, None) => None,
    };
    if let Some((bytes, what)) = held {
        text.push_str(&format!(" with {} {what}", format_bytes(bytes)));
        if let Some(budget) = last.budget {
            text.push_str(&format!(" of {}", format_bytes(budget)));
        }
    }
    if last.epoch > 0 || last.step > 0 {
        text.push_str(&format!(", epoch {} step {}", last.epoch, last.step));
    }
    text
}

#[cfg(test)]
mod tests {
    use tidegate_runs::NewRun;

    use super::*;

    #[test]
    fn grace_ends() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let mut run = store
            .create(&NewRun {
                kind: "train".into(),
                ..NewRun::default()
            })
            .unwrap();
        let here = boot_id();
        assert!(!is_orphan(&Host::live(), &store, &run, here.as_deref()));
        run.created_ms -= STARTING_GRACE_MS + 1;
        assert!(is_orphan(&Host::live(), &store, &run, here.as_deref()));
    }

    #[test]
    fn the_last_sight_is_told_with_what_there_is() {
        let mut last = FlightRecord::default();
        assert_eq!(last_seen(1_794_773_731_000, &last), "20:15:31 UTC");
        last.resident = Some(143_000_000);
        assert_eq!(
            last_seen(1_794_773_731_000, &last),
            "20:15:31 UTC with 143 MB resident"
        );
        (last.budget, last.epoch, last.step) = (Some(256_000_000), 1, 8192);
        assert_eq!(
            last_seen(1_794_773_731_000, &last),
            "20:15:31 UTC with 143 MB resident of 256 MB, epoch 1 step 8192"
        );
    }
}
