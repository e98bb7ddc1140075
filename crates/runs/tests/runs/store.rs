//! Creating, finding, finishing; names; databases of other versions and of other making.

use tempfile::TempDir;
use tidegate_runs::{
    Error, ListOptions, Metric, NewRun, Outcome, ProcessRef, Run, Started, Status, Store, Summary,
};

fn home() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("home")).unwrap();
    (dir, store)
}

fn named(name: &str) -> NewRun {
    NewRun {
        kind: "train".into(),
        name: Some(name.into()),
        ..NewRun::default()
    }
}

fn unnamed() -> NewRun {
    NewRun {
        kind: "train".into(),
        ..NewRun::default()
    }
}

#[test]
fn a_run_is_remembered_with_all_that_was_said() {
    let (_dir, store) = home();
    let run = store
        .create(&NewRun {
            name: Some("flights".into()),
            data: Some("flights.csv".into()),
            target: Some("delayed".into()),
            budget_bytes: Some(256 << 20),
            bound: Some("--memory".into()),
            command: vec!["tidegate".into(), "train".into(), "a \"b\"\n".into()],
            ..unnamed()
        })
        .unwrap();
    assert_eq!(run.status, Status::Starting);
    assert_eq!(run.id.len(), 8);
    assert!(store.run_dir(&run.id).path().is_dir());
    assert!(run.started_ms.is_none() && run.peak_bytes.is_none() && run.metric_value.is_none());

    let (supervisor, worker) = (
        ProcessRef {
            pid: 10,
            start_time: 99,
        },
        ProcessRef {
            pid: 11,
            start_time: 100,
        },
    );
    let started = Started {
        supervisor,
        worker,
        containment: "cgroup v2".into(),
        cgroup: Some("/sys/fs/cgroup/x".into()),
        boot_id: Some("boot".into()),
    };
    store.started(&run.id, &started).unwrap();
    store
        .update(
            &run.id,
            &Summary {
                rows: Some(1000),
                needs_bytes: Some(77),
                ..Summary::default()
            },
        )
        .unwrap();
    store.set_model(&run.id, "linear").unwrap();
    assert_eq!(store.running().unwrap().len(), 1);

    let first = Outcome {
        peak_bytes: Some(143 << 20),
        peak_source: Some("cgroup peak".into()),
        oom_kills: Some(0),
        metric_name: Some("auc".into()),
        metric_value: Some(0.9),
        exit_code: Some(0),
        ..Outcome::new(Status::Done)
    };
    assert!(store.finish(&run.id, &first).unwrap());
    let late = Outcome {
        error: Some("orphan".into()),
        ..Outcome::new(Status::Failed)
    };
    assert!(!store.finish(&run.id, &late).unwrap(), "the first finish wins");
    assert!(matches!(
        store.started(&run.id, &started),
        Err(Error::Over { .. })
    ));

    let kept = store.find("flights").unwrap();
    assert_eq!((kept.status, kept.error.as_deref()), (Status::Done, None));
    assert_eq!(
        (kept.rows, kept.needs_bytes, kept.model.as_deref()),
        (Some(1000), Some(77), Some("linear"))
    );
    assert_eq!(
        (kept.peak_bytes, kept.oom_kills, kept.signal),
        (Some(143 << 20), Some(0), None)
    );
    assert_eq!((kept.supervisor, kept.worker), (Some(supervisor), Some(worker)));
    assert_eq!(kept.command[2], "a \"b\"\n");
    assert!(kept.duration_ms(0).is_some() && kept.baseline_value.is_none());
    assert!(store.running().unwrap().is_empty());
    let json = serde_json::to_value(&kept).unwrap();
    assert_eq!(
        (&json["status"], &json["signal"]),
        (&"done".into(), &serde_json::Value::Null)
    );
}

#[test]
fn what_a_person_types_finds_the_run() {
    let (_dir, store) = home();
    assert!(matches!(
        store.find("last"),
        Err(Error::NotFound { known: 0, .. })
    ));
    let old = store.create(&named("flights")).unwrap();
    let other = store.create(&named("flowers")).unwrap();
    let new = store.create(&named("flights")).unwrap();
    let last = store.create(&unnamed()).unwrap();

    let found = |reference: &str| store.find(reference).map(|run| run.id);
    assert_eq!(found("last").unwrap(), last.id);
    assert_eq!(found("flights").unwrap(), new.id, "the newest of that name");
    assert_eq!(found(&old.id).unwrap(), old.id);
    assert_eq!(found("flo").unwrap(), other.id);
    assert_eq!(
        found("fli").unwrap(),
        new.id,
        "runs that share a name are one candidate"
    );
    assert_eq!(found(&last.id[..7]).unwrap(), last.id);
    match found("fl") {
        Err(Error::Ambiguous { candidates, .. }) => assert_eq!(candidates.len(), 2),
        other => panic!("{other:?}"),
    }
    for missing in [
        "",
        "FLIGHTS",
        "fl%",
        "_lights",
        "no such",
        "'; DROP TABLE runs; --",
    ] {
        assert!(
            matches!(found(missing), Err(Error::NotFound { known: 4, .. })),
            "{missing:?}"
        );
    }
    assert_eq!(
        found("0zz").unwrap_err().hint().unwrap(),
        "`tidegate runs` lists them; `last` is the newest"
    );
}

#[test]
fn names_that_would_confuse_are_refused() {
    let (_dir, store) = home();
    let too_long = "x".repeat(65);
    for name in ["", "last", "a b", "../up", "ümlaut", "a\n", too_long.as_str()] {
        match store.create(&named(name)) {
            Err(error @ Error::Name { .. }) => assert!(error.hint().unwrap().contains("--name flights-v2")),
            other => panic!("{name:?}: {other:?}"),
        }
    }
    assert!(store.list(&ListOptions::default()).unwrap().is_empty());
    for name in ["a", "Flights_2.1-b", "x".repeat(64).as_str()] {
        store.create(&named(name)).unwrap();
    }
}

#[test]
fn lists_are_newest_first_and_can_be_narrowed() {
    let (_dir, store) = home();
    let runs: Vec<Run> = (0..5).map(|_| store.create(&unnamed()).unwrap()).collect();
    store.finish(&runs[1].id, &Outcome::new(Status::Failed)).unwrap();
    let ids = |options: &ListOptions| -> Vec<String> {
        store
            .list(options)
            .unwrap()
            .into_iter()
            .map(|run| run.id)
            .collect()
    };
    let newest: Vec<String> = runs.iter().rev().map(|run| run.id.clone()).collect();
    assert_eq!(ids(&ListOptions::default()), newest);
    assert_eq!(
        ids(&ListOptions {
            limit: Some(2),
            ..ListOptions::default()
        }),
        newest[..2]
    );
    let failed = ListOptions {
        status: Some(Status::Failed),
        ..ListOptions::default()
    };
    assert_eq!(ids(&failed), [runs[1].id.clone()]);
}

#[test]
fn metrics_keep_their_order_and_their_nan() {
    let (_dir, store) = home();
    let run = store.create(&unnamed()).unwrap();
    for (step, value) in [(10, 0.5), (5, f64::NAN), (20, f64::INFINITY)] {
        store
            .metric(
                &run.id,
                &Metric {
                    epoch: 1,
                    step,
                    name: "loss".into(),
                    value,
                },
            )
            .unwrap();
    }
    let metrics = store.metrics(&run.id).unwrap();
    assert_eq!(
        metrics.iter().map(|metric| metric.step).collect::<Vec<_>>(),
        [10, 5, 20]
    );
    assert!(metrics[1].value.is_nan() && metrics[2].value.is_infinite());
    let nobody = Metric {
        epoch: 1,
        step: 1,
        name: "loss".into(),
        value: 1.0,
    };
    assert!(
        store.metric("no-such-run", &nobody).is_err(),
        "a metric belongs to a run"
    );
}

#[test]
fn a_newer_database_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("runs.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("CREATE TABLE runs (strange); PRAGMA user_version = 999;")
        .unwrap();
    drop(db);
    let before = std::fs::read(&path).unwrap();
    match Store::open(dir.path()) {
        Err(error @ Error::NewerSchema { found: 999, .. }) => {
            assert!(error.to_string().contains("999") && error.hint().is_some());
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn homes_that_cannot_be_used_are_errors_with_a_path() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let error = Store::open(&dir.path().join("file")).unwrap_err();
    assert!(
        matches!(&error, Error::Io { path, .. } if path.ends_with("file/runs")),
        "{error}"
    );

    std::fs::write(
        dir.path().join("runs.db"),
        "this is no database, it is a line of text\n".repeat(99),
    )
    .unwrap();
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, Error::Database { .. }), "{error}");
    assert!(error.hint().unwrap().contains("move"), "{:?}", error.hint());
}
