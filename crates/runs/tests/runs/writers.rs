//! Many commands at once on one home.

use std::path::Path;
use std::process::{Child, Command};
use std::thread;

use tidegate_runs::{ListOptions, Metric, NewRun, Outcome, Status, Store};

const HOME: &str = "TIDEGATE_TEST_WRITER_HOME";

fn create_and_finish(home: &Path, runs: usize) {
    let store = Store::open(home).unwrap();
    for n in 0..runs {
        let new = NewRun {
            kind: "train".into(),
            name: Some(format!("job-{n}")),
            ..NewRun::default()
        };
        let run = store.create(&new).unwrap();
        for step in 0..3 {
            store
                .metric(
                    &run.id,
                    &Metric {
                        epoch: 1,
                        step,
                        name: "loss".into(),
                        value: 0.5,
                    },
                )
                .unwrap();
        }
        assert!(store.finish(&run.id, &Outcome::new(Status::Done)).unwrap());
    }
}

fn check(home: &Path, expected: usize) {
    let store = Store::open(home).unwrap();
    let runs = store.list(&ListOptions::default()).unwrap();
    assert_eq!(runs.len(), expected);
    for run in &runs {
        assert_eq!(run.status, Status::Done);
        assert_eq!(store.metrics(&run.id).unwrap().len(), 3);
        assert!(store.run_dir(&run.id).path().is_dir());
    }
}

#[test]
fn threads_that_open_a_new_home_at_once() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| create_and_finish(&home, 8));
            }
        });
        check(&home, 64);
    }
}

/// Not a test of its own: what the processes below run.
#[test]
fn writer_process() {
    if let Some(home) = std::env::var_os(HOME) {
        create_and_finish(Path::new(&home), 25);
    }
}

#[test]
fn processes_that_share_a_home() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let writers: Vec<Child> = (0..6)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "writers::writer_process", "--quiet"])
                .env(HOME, &home)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    check(&home, 150);
}

#[test]
fn one_of_many_finishes_wins() {
    let dir = tempfile::tempdir().unwrap();
    let run = Store::open(dir.path())
        .unwrap()
        .create(&NewRun {
            kind: "train".into(),
            ..NewRun::default()
        })
        .unwrap();
    let wins: usize = thread::scope(|scope| {
        let finishers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let store = Store::open(dir.path()).unwrap();
                    usize::from(store.finish(&run.id, &Outcome::new(Status::Stopped)).unwrap())
                })
            })
            .collect();
        finishers
            .into_iter()
            .map(|finisher| finisher.join().unwrap())
            .sum()
    });
    assert_eq!(wins, 1);
}
