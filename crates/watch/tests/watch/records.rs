//! What is written down of a run beside its memory and its log.

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_memory::Host;
use tidegate_runs::{NewRun, RunDir, Span, Store, flight_overview, holders_overview};
use tidegate_watch::{Error, Job, RecordedRun, supervise};

use crate::help::{DONE, foreign, run, worker};

fn home() -> (TempDir, Store, String) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let new = NewRun {
        kind: "train".into(),
        ..NewRun::default()
    };
    let id = store.create(&new).unwrap().id;
    (dir, store, id)
}

fn recorded(mut job: Job<'static>) -> (TempDir, RunDir) {
    let (dir, store, id) = home();
    // The store outlives the job, which is over when this returns.
    let files = store.run_dir(&id);
    job.envs = vec![
        ("OMP_NUM_THREADS".into(), "3".into()),
        ("TIDEGATE_API_TOKEN".into(), "hush".into()),
    ];
    let job = Job {
        run: Some(RecordedRun {
            store: &store,
            id: &id,
        }),
        ..job
    };
    let (ended, heard) = run(job);
    assert_eq!(ended.exit_code(), 0, "{}", ended.explain());
    assert!(heard.warnings().is_empty(), "{:?}", heard.warnings());
    (dir, files)
}

fn read(path: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn what_a_worker_says_of_columns_and_holders_is_kept() {
    let column =
        r#"{"name":"origin","role":"category","encoding":"dummy","dense":0,"sparse":3,"why":"few values"}"#;
    let ledger = |rows: u64, model: u64| {
        format!(
            r#"say '{{"event":"ledger","used":1,"peak":2,"budget":1000,"holders":[["rows",{rows},9],["model",{model},9]]}}'"#
        )
    };
    let (_dir, files) = recorded(worker(&format!(
        r#"say '{{"event":"encoding","columns":[{column}],"shape":"3 sparse"}}'
           {}; {}; sleep 1.2; {}; sleep 0.1; {}; {DONE}"#,
        ledger(100, 0),
        ledger(500, 0),
        ledger(200, 300),
        ledger(200, 301),
    )));
    let encoding = read(&files.encoding());
    assert_eq!(encoding["shape"], "3 sparse");
    assert_eq!(encoding["columns"][0]["name"], "origin");
    assert_eq!(encoding["columns"][0]["why"], "few values");

    let overview = holders_overview(&files.holders(), Span::default(), 100).unwrap();
    let ends = |held: &[u64]| (held[0], held[held.len() - 1]);
    assert_eq!(overview.holders[0].0, "rows");
    assert_eq!(
        (ends(&overview.holders[0].1), ends(&overview.holders[1].1)),
        ((100, 200), (0, 301))
    );
    // By the clock of the flight recorder.
    let flight = flight_overview(&files.flight(), Span::default(), 9).unwrap();
    let (first, last) = (
        overview.times_ms[0],
        overview.times_ms[overview.times_ms.len() - 1],
    );
    assert!(
        last - first >= 1200 && last <= flight.last_ms.unwrap(),
        "{first} to {last}"
    );
}

#[test]
fn where_a_run_was_started_is_kept() {
    let (_dir, files) = recorded(foreign("true"));
    let told = read(&files.environment());
    assert_eq!(told["tidegate"], env!("CARGO_PKG_VERSION"));
    assert_eq!(told["folder"], json!(std::env::current_dir().unwrap()));
    assert_eq!(told["variables"]["OMP_NUM_THREADS"], "3");
    assert!(!told.to_string().contains("hush") && told["variables"].get("PATH").is_none());
    assert!(told["machine"]["memory_bytes"].as_u64().unwrap() > 0);
    assert!(told["machine"]["cores"].as_u64().unwrap() > 0);
    assert!(told["kernel"].is_string() && told["host"].is_string());
    assert_eq!(told["python"], Value::Null);
    assert!(
        !files.holders().exists() && !files.encoding().exists(),
        "of a foreign command"
    );
}

#[test]
fn of_a_command_that_is_not_there_too() {
    let (_dir, store, id) = home();
    let job = Job {
        run: Some(RecordedRun {
            store: &store,
            id: &id,
        }),
        ..Job::new("/no/such/program", ["x"])
    };
    let ended = supervise(&Host::live(), job, &mut |_| {});
    assert!(matches!(ended, Err(Error::Spawn { .. })));
    assert_eq!(
        read(&store.run_dir(&id).environment())["tidegate"],
        env!("CARGO_PKG_VERSION")
    );
}
