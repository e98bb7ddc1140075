//! The line: held by the kernel where it can be, watched where it cannot.

use std::time::Duration;

use tidegate_watch::{Exit, OnSignal, StopReason};

use crate::help::{foreign, run};

#[test]
fn the_kernel_holds_the_line() {
    // `tail` keeps the last line, and /dev/zero has no line end.
    let mut job = foreign("exec tail /dev/zero");
    job.limit_bytes = Some(32 << 20);
    let (ended, heard) = run(job);
    if heard.cgroup.is_none() {
        println!("skipped: {}", heard.containment);
        return;
    }
    assert_eq!(ended.exit, Exit::Signal(9));
    assert_eq!((ended.exit_code(), ended.killed_by_us), (1, false));
    // Where a cgroup is killed as one, the kernel counts the process that set it off twice.
    let kills = ended.oom_kills.unwrap();
    let most = if heard.containment == "cgroup v2" { 2 } else { 1 };
    assert!((1..=most).contains(&kills), "{kills}");
    let peak = ended.peak.unwrap();
    assert_eq!(ended.peak_source, Some("cgroup peak"));
    assert!(peak <= 32 << 20 && peak > 30 << 20, "{peak}");
    assert_eq!(
        ended.explain(),
        format!(
            "killed by the kernel's OOM killer: oom_kill of the worker's cgroup rose by {kills} (limit 33.6 MB, peak 33.6 MB)"
        )
    );
}

#[test]
fn an_out_of_memory_child_is_told_apart_from_its_parent() {
    let mut job = foreign("tail /dev/zero; exit 5");
    job.limit_bytes = Some(32 << 20);
    let (ended, heard) = run(job);
    if heard.cgroup.is_none() {
        println!("skipped: {}", heard.containment);
        return;
    }
    if heard.containment == "cgroup v2" {
        // The group is killed together.
        assert_eq!(ended.exit, Exit::Signal(9));
        return;
    }
    assert_eq!((ended.exit, ended.oom_kills), (Exit::Code(5), Some(1)));
    assert_eq!(
        ended.explain(),
        "exit code 5; the kernel's OOM killer had killed 1 process of its cgroup"
    );
}

#[test]
fn a_watched_worker_is_stopped_at_the_line() {
    // Grows by a megabyte every few milliseconds, so that it is seen on the way.
    let grow = "x=$(head -c 1000000 /dev/zero | tr '\\0' x); while :; do y=$y$x; sleep 0.01; done";
    let mut job = foreign(grow);
    job.confine = false;
    job.limit_bytes = Some(24 << 20);
    let (ended, heard) = run(job);
    assert!(heard.cgroup.is_none() && heard.containment.starts_with("watched: "));
    let over = ended.over_line.unwrap();
    assert!(over.used > 24 << 20 && over.limit == 24 << 20);
    assert_eq!(
        (ended.stopped_by, ended.exit_code()),
        (Some(StopReason::OverLine), 1)
    );
    assert_eq!(ended.oom_kills, None, "nobody counted");
    assert!(
        ended
            .explain()
            .starts_with("stopped at the line: its proportional memory was "),
        "{}",
        ended.explain()
    );
    assert_eq!(heard.over_line, Some(over));
    assert!(
        ended.peak.is_some_and(|peak| peak > 20 << 20),
        "{:?} {:?}",
        ended.peak,
        ended.peak_source
    );
}

#[test]
fn a_watched_worker_that_will_not_stop_is_killed() {
    let grow =
        "trap '' TERM; x=$(head -c 9000000 /dev/zero | tr '\\0' x); while :; do y=$y$x; sleep 0.1; done";
    let mut job = foreign(grow);
    job.confine = false;
    job.limit_bytes = Some(24 << 20);
    job.grace = Duration::from_millis(200);
    let (ended, _) = run(job);
    assert_eq!(
        (ended.exit, ended.killed_by_us, ended.exit_code()),
        (Exit::Signal(9), true, 1)
    );
    assert!(
        ended
            .explain()
            .ends_with("it did not end by itself and was killed"),
        "{}",
        ended.explain()
    );
}

#[test]
fn a_limit_that_no_program_fits_in_is_an_honest_end() {
    let mut job = foreign("exit 0");
    job.limit_bytes = Some(4096);
    let mut heard = crate::help::Heard::default();
    // Whether exec fails or the kernel kills: it must end, and leave nothing.
    match tidegate_watch::supervise(&tidegate_memory::Host::live(), job, &mut |update| {
        heard.add(update)
    }) {
        Ok(ended) if heard.cgroup.is_some() => {
            assert_eq!(ended.exit_code(), 1, "{}", ended.explain());
            heard.check_nothing_left();
        }
        Ok(_) => println!("skipped: {}", heard.containment),
        Err(error) => assert!(matches!(error, tidegate_watch::Error::Spawn { .. }), "{error}"),
    }
}

/// The first process is a shell that only waits; the one that could save has the grace that was asked for.
#[test]
fn at_the_line_everybody_gets_the_time_to_save() {
    let dir = tempfile::tempdir().unwrap();
    let saved = dir.path().join("saved");
    let grow = format!(
        "trap 'sleep 6; echo yes > {}; exit 5' TERM; x=$(head -c 1000000 /dev/zero | tr '\\0' x); \
         while [ ${{#y}} -lt 14000000 ]; do y=$y$x; sleep 0.02; done; while :; do sleep 0.05; done",
        saved.display()
    );
    let mut job = foreign(&format!("bash -c '{}'; true", grow.replace('\'', "'\\''")));
    job.on_signal = OnSignal::PassOn;
    job.confine = false;
    job.limit_bytes = Some(24 << 20);
    job.grace = Duration::from_secs(20);
    let (ended, _) = run(job);
    assert_eq!(ended.stopped_by, Some(StopReason::OverLine));
    assert!(saved.exists(), "{}", ended.explain());
}
