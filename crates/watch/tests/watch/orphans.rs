//! A supervisor that was itself killed: its worker goes, its record stays, the next command closes it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tidegate_memory::Host;
use tidegate_runs::{NewRun, Outcome, ProcessRef, Run, Started, Status, Store, read_flight};
use tidegate_watch::{RecordedRun, Update, boot_id, close_orphans, supervise, this_process};

use crate::help::{check_nothing_left, signal, wait_until, worker};

const HOME: &str = "TIDEGATE_TEST_ORPHANS_HOME";
const SCRIPT: &str = "TIDEGATE_TEST_ORPHANS_SCRIPT";

/// Not a test of its own: a supervisor that the tests below kill.
#[test]
fn doomed_supervisor() {
    let (Some(home), Ok(script)) = (std::env::var_os(HOME), std::env::var(SCRIPT)) else {
        return;
    };
    let home = Path::new(&home);
    let store = Store::open(home).unwrap();
    let new = NewRun {
        kind: "train".into(),
        budget_bytes: Some(64 << 20),
        supervisor: this_process(&Host::live()),
        boot_id: boot_id(),
        ..NewRun::default()
    };
    let id = store.create(&new).unwrap().id;
    let mut job = worker(&script);
    job.run = Some(RecordedRun {
        store: &store,
        id: &id,
    });
    let _ = supervise(&Host::live(), job, &mut |update| {
        if let Update::Output { line, .. } = update
            && line == "ready"
        {
            fs::write(home.join("ready"), "").unwrap();
        }
    });
}

/// A run whose supervisor has been killed with -9 while its worker ran.
fn orphan(home: &Path, script: &str) -> (Store, Run, Child) {
    let mut supervisor = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "orphans::doomed_supervisor", "--nocapture"])
        .env(HOME, home)
        .env(SCRIPT, script)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the worker is ready", || home.join("ready").exists());
    let store = Store::open(home).unwrap();
    assert!(
        close_orphans(&Host::live(), &store).unwrap().is_empty(),
        "it is alive and well"
    );
    let run = store.find("last").unwrap();
    assert_eq!(run.status, Status::Running);
    // A few samples more, with the progress in them; a slow machine takes fewer.
    std::thread::sleep(Duration::from_millis(200));
    let flight = store.run_dir(&run.id).flight();
    wait_until("three samples are written", || {
        read_flight(&flight).is_ok_and(|flight| flight.records.len() >= 3)
    });
    signal(supervisor.id().cast_signed(), libc::SIGKILL);
    supervisor.wait().unwrap();
    (store, run, supervisor)
}

const PROGRESS: &str = r#"say '{"event":"progress","epoch":1,"epochs":2,"step":8192,"done_bytes":1,"rows":5,"rows_per_second":1}'"#;

fn check_closed(store: &Store, run: &Run) {
    let flight = read_flight(&store.run_dir(&run.id).flight()).unwrap();
    assert!(
        flight.records.len() >= 3 && flight.damaged == 0,
        "{}",
        flight.records.len()
    );

    let closed = close_orphans(&Host::live(), store).unwrap();
    assert_eq!(closed.len(), 1);
    assert_eq!(
        (closed[0].id.as_str(), closed[0].status),
        (run.id.as_str(), Status::Failed)
    );
    let error = closed[0].error.as_deref().unwrap();
    assert!(
        error.starts_with("its supervisor was killed or crashed; last seen at "),
        "{error}"
    );
    assert!(
        error.contains("resident of 67.1 MB, epoch 1 step 8192"),
        "{error}"
    );
    if run.cgroup.is_some() {
        assert_eq!(closed[0].oom_kills, Some(0));
        assert!(closed[0].peak_bytes.is_some());
    }
    check_nothing_left(run.worker.unwrap().pid, run.cgroup.as_deref());
    assert!(close_orphans(&Host::live(), store).unwrap().is_empty());
}

#[test]
fn a_worker_ends_when_its_supervisor_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (store, run, _) = orphan(
        dir.path(),
        &format!("{PROGRESS}; echo ready; while :; do sleep 0.05; done"),
    );
    let worker = run.worker.unwrap();
    wait_until("the worker is gone", || {
        crate::help::living(|stat| stat.group == worker.pid).is_empty()
    });
    check_closed(&store, &run);
}

#[test]
fn a_worker_that_goes_on_without_its_supervisor_is_ended_by_the_next_command() {
    let dir = tempfile::tempdir().unwrap();
    let (store, run, _) = orphan(
        dir.path(),
        &format!("trap '' TERM; {PROGRESS}; echo ready; sleep 91; sleep 91"),
    );
    let worker = run.worker.unwrap();
    assert!(
        !crate::help::living(|stat| stat.group == worker.pid).is_empty(),
        "it ignored the signal"
    );
    check_closed(&store, &run);
}

#[test]
fn several_commands_close_an_orphan_once() {
    let dir = tempfile::tempdir().unwrap();
    let (_, run, _) = orphan(
        dir.path(),
        &format!("{PROGRESS}; echo ready; while :; do sleep 0.05; done"),
    );
    let closed: usize = std::thread::scope(|scope| {
        let commands: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    close_orphans(&Host::live(), &Store::open(dir.path()).unwrap())
                        .unwrap()
                        .len()
                })
            })
            .collect();
        commands.into_iter().map(|command| command.join().unwrap()).sum()
    });
    assert_eq!(closed, 1);
    check_nothing_left(run.worker.unwrap().pid, run.cgroup.as_deref());
}

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    (dir, store)
}

fn started(supervisor: ProcessRef, worker: ProcessRef, boot_id: Option<String>) -> Started {
    Started {
        supervisor,
        worker,
        containment: "watched: test".into(),
        cgroup: None,
        boot_id,
    }
}

#[test]
fn a_number_that_now_belongs_to_another_process_is_left_alone() {
    let (_dir, store) = store();
    let mut bystander = Command::new("sleep").arg("92").spawn().unwrap();
    let reused = ProcessRef {
        pid: bystander.id().cast_signed(),
        start_time: 1,
    };
    let run = store
        .create(&NewRun {
            kind: "train".into(),
            ..NewRun::default()
        })
        .unwrap();
    store
        .started(&run.id, &started(reused, reused, boot_id()))
        .unwrap();
    assert_eq!(close_orphans(&Host::live(), &store).unwrap().len(), 1);
    assert!(bystander.try_wait().unwrap().is_none(), "the bystander lives");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn a_folder_is_never_taken_for_a_cgroup() {
    let (dir, store) = store();
    let gone = ProcessRef {
        pid: i32::MAX,
        start_time: 1,
    };
    for name in ["tidegate-other", "home"] {
        let victim = dir.path().join(name);
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("cgroup.procs"), "1\n").unwrap();
        let run = store
            .create(&NewRun {
                kind: "train".into(),
                ..NewRun::default()
            })
            .unwrap();
        let started = Started {
            cgroup: Some(victim.clone()),
            ..started(gone, gone, boot_id())
        };
        store.started(&run.id, &started).unwrap();
        assert_eq!(close_orphans(&Host::live(), &store).unwrap().len(), 1);
        assert!(victim.join("cgroup.procs").exists());
    }
}

#[test]
fn a_run_that_is_only_starting_is_given_time() {
    let (_dir, store) = store();
    store
        .create(&NewRun {
            kind: "train".into(),
            ..NewRun::default()
        })
        .unwrap();
    let ours = NewRun {
        supervisor: this_process(&Host::live()),
        boot_id: boot_id(),
        ..NewRun::default()
    };
    store
        .create(&NewRun {
            kind: "train".into(),
            ..ours
        })
        .unwrap();
    assert!(close_orphans(&Host::live(), &store).unwrap().is_empty());

    let gone = Some(ProcessRef {
        pid: i32::MAX,
        start_time: 1,
    });
    let never = NewRun {
        supervisor: gone,
        boot_id: boot_id(),
        kind: "train".into(),
        ..NewRun::default()
    };
    let never = store.create(&never).unwrap();
    let closed = close_orphans(&Host::live(), &store).unwrap();
    assert_eq!((closed.len(), &closed[0].id), (1, &never.id));
    assert_eq!(
        closed[0].error.as_deref(),
        Some("it never started: its supervisor is gone")
    );
}

#[test]
fn a_supervisor_elsewhere_is_judged_by_its_silence() {
    let (_dir, store) = store();
    let elsewhere = ProcessRef {
        pid: 1,
        start_time: 1,
    };
    let run = store
        .create(&NewRun {
            kind: "train".into(),
            ..NewRun::default()
        })
        .unwrap();
    store
        .started(
            &run.id,
            &started(elsewhere, elsewhere, Some("another-boot pid:[1]".into())),
        )
        .unwrap();
    let flight = store.run_dir(&run.id).flight();
    fs::write(&flight, "").unwrap();
    assert!(
        close_orphans(&Host::live(), &store).unwrap().is_empty(),
        "it wrote just now"
    );

    let old = std::time::SystemTime::now() - Duration::from_secs(3600);
    fs::File::options()
        .write(true)
        .open(&flight)
        .unwrap()
        .set_modified(old)
        .unwrap();
    let closed = close_orphans(&Host::live(), &store).unwrap();
    assert!(
        closed[0].error.as_deref().unwrap().contains("restarted"),
        "{:?}",
        closed[0].error
    );
    assert!(!store.finish(&run.id, &Outcome::new(Status::Done)).unwrap());
}
