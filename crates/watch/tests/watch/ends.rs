//! The ways in which a worker ends.

use std::time::{Duration, Instant};

use tidegate_memory::Host;
use tidegate_runs::{NewRun, Status, Store, Stream, read_flight, tail};
use tidegate_watch::{Error, Event, Exit, Job, RecordedRun, Update, supervise};

use crate::help::{DONE, check_nothing_left, foreign, run, run_with, signal, sleepers, wait_until, worker};

#[test]
fn a_worker_that_finishes_is_done_and_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let id = store
        .create(&NewRun {
            kind: "train".into(),
            ..NewRun::default()
        })
        .unwrap()
        .id;
    let mut job = worker(&format!(
        r#"say '{{"event":"plan","holders":[["data",7]],"needs":7,"model":"linear","rows":12}}'
           say '{{"event":"progress","epoch":1,"epochs":2,"step":40,"done_bytes":1,"rows":5,"rows_per_second":2.5}}'
           say '{{"event":"ledger","used":3,"peak":5,"budget":9}}'
           say '{{"event":"metric","epoch":1,"step":41,"name":"loss","value":0.25}}'
           echo hello; echo trouble >&2; sleep 0.1; {DONE}"#
    ));
    job.run = Some(RecordedRun {
        store: &store,
        id: &id,
    });
    let mut status_while_running = None;
    let (ended, heard) = run_with(job, |update| {
        if let Update::Event(Event::Metric { .. }) = update {
            status_while_running = Some(store.get(&id).unwrap());
        }
    });
    assert_eq!(
        (ended.exit, ended.exit_code(), ended.status()),
        (Exit::Code(0), 0, Status::Done)
    );
    assert!(
        ended.explain().starts_with("done (limit 67.1 MB, peak "),
        "{}",
        ended.explain()
    );

    let running = status_while_running.unwrap();
    assert_eq!(
        (running.status, running.worker.unwrap().pid),
        (Status::Running, heard.pid)
    );
    let kept = store.get(&id).unwrap();
    assert_eq!(
        (kept.status, kept.exit_code, kept.signal),
        (Status::Done, Some(0), None)
    );
    assert_eq!(
        (kept.model.as_deref(), kept.rows, kept.needs_bytes),
        (Some("linear"), Some(12), Some(7))
    );
    assert_eq!(
        (kept.metric_name.as_deref(), kept.metric_value, kept.error),
        (Some("auc"), Some(0.9), None)
    );
    assert!(
        kept.peak_bytes
            .is_some_and(|bytes| bytes > 0 && bytes <= 64 << 20)
    );
    assert_eq!(store.metrics(&id).unwrap()[0].value, 0.25);

    assert_eq!(
        heard.output,
        [(Stream::Out, "hello".into()), (Stream::Err, "trouble".into())]
    );
    let log = tail(&store.run_dir(&id).log(), 5).unwrap();
    assert!(
        log[0].ends_with(" out hello") && log[1].ends_with(" err trouble"),
        "{log:?}"
    );
    let flight = read_flight(&store.run_dir(&id).flight()).unwrap();
    assert_eq!((flight.header.unwrap().run_id, flight.damaged), (id, 0));
    let last = flight.records.last().unwrap();
    assert_eq!(
        (last.ledger_used, last.ledger_peak, last.budget),
        (Some(3), Some(5), Some(64 << 20))
    );
    assert_eq!((last.epoch, last.step), (1, 41));
    assert!(
        flight
            .records
            .iter()
            .any(|record| record.resident.is_some() && record.processes > 0)
    );
}

fn check(script: &str, exit: Exit, code: i32, words: &str) {
    let (ended, _) = run(worker(script));
    assert_eq!((ended.exit, ended.exit_code()), (exit, code), "{script}");
    assert!(ended.explain().contains(words), "{script}: {}", ended.explain());
}

#[test]
fn codes_and_signals_are_told_as_they_are() {
    check("exit 3", Exit::Code(3), 1, "exit code 3");
    check("exit 101", Exit::Code(101), 1, "a panic");
    check("exit 0", Exit::Code(0), 1, "never said that it was done");
    check("kill -ABRT $$", Exit::Signal(libc::SIGABRT), 1, "SIGABRT");
    check(
        "kill -SEGV $$",
        Exit::Signal(libc::SIGSEGV),
        1,
        "signal 11 (SIGSEGV",
    );
    check("kill -TERM $$", Exit::Signal(libc::SIGTERM), 1, "SIGTERM");
    check(
        r#"say '{"event":"failed","message":"no column y","usage":true}'; exit 9"#,
        Exit::Code(9),
        2,
        "no column y",
    );
    check(
        r#"say '{"event":"failed","message":"row 7 is bad"}'; exit 1"#,
        Exit::Code(1),
        1,
        "row 7 is bad",
    );
    check(&format!("{DONE}; exit 4"), Exit::Code(4), 1, "exit code 4");
}

#[test]
fn a_foreign_command_needs_no_events() {
    let (ended, heard) = run(foreign("echo args: $#; exit 0"));
    assert_eq!((ended.exit_code(), heard.output[0].1.as_str()), (0, "args: 0"));
    assert_eq!(run(foreign("exit 3")).0.exit_code(), 1);
}

#[test]
fn a_kill_from_outside_is_not_called_out_of_memory() {
    let (ended, heard) = run_with(worker("sleep 71"), |update| {
        if let Update::Started { pid, .. } = update {
            signal(*pid, libc::SIGKILL);
        }
    });
    assert_eq!(
        (ended.exit, ended.exit_code(), ended.killed_by_us),
        (Exit::Signal(9), 1, false)
    );
    let words = if heard.cgroup.is_some() {
        "its cgroup counted no OOM kill"
    } else {
        "was not measured"
    };
    assert!(ended.explain().contains(words), "{}", ended.explain());
}

#[test]
fn a_grandchild_that_holds_the_pipes_open_holds_nobody_up() {
    for confine in [true, false] {
        let mut job = worker(&format!("sleep 72 & sleep 0.1; {DONE}"));
        job.confine = confine;
        let start = Instant::now();
        let (ended, _) = run(job);
        assert_eq!(ended.exit_code(), 0, "{}", ended.explain());
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
        wait_until("the sleeper is gone", || sleepers("72").is_empty());
    }
}

#[test]
fn a_grandchild_that_left_the_group_does_not_stay() {
    for confine in [true, false] {
        let mut job = worker(&format!("setsid sleep 73 > /dev/null 2>&1 & sleep 0.4; {DONE}"));
        job.confine = confine;
        let (ended, _) = run(job);
        assert_eq!(ended.exit_code(), 0);
        wait_until("the daemon is gone", || sleepers("73").is_empty());
    }
}

#[test]
fn a_worker_that_is_done_and_then_hangs_is_done() {
    let mut job = worker(&format!("{DONE}; trap '' TERM; sleep 74; sleep 74"));
    job.grace = Duration::from_millis(300);
    let (ended, _) = run(job);
    assert_eq!(
        (ended.exit_code(), ended.killed_by_us),
        (0, true),
        "{}",
        ended.explain()
    );
}

#[test]
fn a_worker_that_closes_its_pipes_and_goes_on_is_waited_for() {
    let (ended, _) = run(worker(&format!("exec > /dev/null 2>&1; sleep 0.5; {DONE}")));
    assert_eq!(ended.exit_code(), 0);
    assert!(ended.duration >= Duration::from_millis(500));
}

#[test]
fn a_program_that_cannot_start_closes_its_run() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let id = store
        .create(&NewRun {
            kind: "run".into(),
            ..NewRun::default()
        })
        .unwrap()
        .id;
    let mut job = Job::new("/no/such/program", [""; 0]);
    job.limit_bytes = Some(64 << 20);
    job.run = Some(RecordedRun {
        store: &store,
        id: &id,
    });
    match supervise(&Host::live(), job, &mut |_| {}) {
        Err(error @ Error::Spawn { .. }) => assert!(error.hint().unwrap().contains("installed")),
        other => panic!("{other:?}"),
    }
    let kept = store.get(&id).unwrap();
    assert_eq!(kept.status, Status::Failed);
    assert!(kept.error.unwrap().contains("/no/such/program"));
    // The cgroup that was made for it is gone as well.
    if let Ok(own) = tidegate_memory::Cgroup::of(&Host::live(), None) {
        assert!(!own.path.join(format!("tidegate-{id}")).exists());
    }
}

#[test]
fn the_worker_is_the_kernels_first_choice_and_has_no_input() {
    let script = format!("cat /proc/self/oom_score_adj; cat; {DONE}");
    let (ended, heard) = run(worker(&script));
    assert_eq!(ended.exit_code(), 0);
    let score: i32 = heard.output[0].1.parse().unwrap();
    assert!(score >= 500 && heard.output.len() == 1, "{:?}", heard.output);
    check_nothing_left(heard.pid, None);
}
