//! Runs by page: every order, filters, searches, and homes of earlier versions.

use std::cmp::Ordering;

use proptest::prelude::*;
use tempfile::TempDir;
use tidegate_runs::{Judgement, NewRun, Outcome, Run, RunsQuery, SortBy, Status, Store, Summary};

/// A run that is yet to be written down.
#[derive(Debug, Clone)]
struct Made {
    name: Option<&'static str>,
    model: Option<&'static str>,
    status: Status,
    started: Option<i64>,
    ended: Option<i64>,
    sizes: [Option<u64>; 3],
    metric: Option<f64>,
}

fn made() -> impl Strategy<Value = Made> {
    let size = || prop_oneof![Just(None), Just(Some(0)), (1..4u64).prop_map(|n| Some(n << 20))];
    let time = || prop_oneof![Just(None), (0..5i64).prop_map(Some)];
    (
        prop::sample::select(vec![None, Some("flights"), Some("Flowers"), Some("adult")]),
        prop::sample::select(vec![None, Some("linear"), Some("boost")]),
        prop::sample::select(Status::ALL.to_vec()),
        (time(), time()),
        [size(), size(), size()],
        prop_oneof![Just(None), (-2..3).prop_map(|n| Some(f64::from(n) / 2.0))],
    )
        .prop_map(|(name, model, status, (started, ended), sizes, metric)| Made {
            name,
            model,
            status,
            started,
            ended,
            sizes,
            metric,
        })
}

/// Times and statuses as they may come to be by other clocks and other programs: the store alone writes them in order.
fn home_of(runs: &[Made]) -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let db = rusqlite::Connection::open(dir.path().join("runs.db")).unwrap();
    let signed = |size: Option<u64>| size.map(u64::cast_signed);
    for run in runs {
        let id = store
            .create(&NewRun {
                kind: "train".into(),
                name: run.name.map(str::to_string),
                ..NewRun::default()
            })
            .unwrap()
            .id;
        db.execute(
            "UPDATE runs SET model = ?2, status = ?3, started_ms = ?4, ended_ms = ?5, budget_bytes = ?6,
                needs_bytes = ?7, peak_bytes = ?8, metric_value = ?9 WHERE id = ?1",
            rusqlite::params![
                id,
                run.model,
                run.status.as_str(),
                run.started,
                run.ended,
                signed(run.sizes[0]),
                signed(run.sizes[1]),
                signed(run.sizes[2]),
                run.metric
            ],
        )
        .unwrap();
    }
    (dir, store)
}

/// What a run is sorted by, told without the database.
fn value_of(run: &Run, sort: SortBy) -> Option<f64> {
    match sort {
        SortBy::Created | SortBy::Name | SortBy::Model => None,
        SortBy::Status => Status::ALL
            .iter()
            .position(|status| *status == run.status)
            .map(|at| at as f64),
        SortBy::Duration => Some((run.ended_ms? - run.started_ms?) as f64).filter(|ms| *ms >= 0.0),
        SortBy::Peak => run.peak_bytes.map(|bytes| bytes as f64),
        SortBy::Share => Some(run.peak_bytes? as f64 / run.budget_bytes.filter(|bytes| *bytes > 0)? as f64),
        SortBy::Metric => run.metric_value,
        SortBy::PlanError => run.plan_error(),
    }
}

fn compare(one: &Run, other: &Run, sort: SortBy, ascending: bool) -> Ordering {
    let turned = |order: Ordering| if ascending { order } else { order.reverse() };
    let texts = |one: Option<&str>, other: Option<&str>| match (one, other) {
        (Some(one), Some(other)) => turned(one.to_lowercase().cmp(&other.to_lowercase())),
        (one, other) => other.is_some().cmp(&one.is_some()),
    };
    match sort {
        SortBy::Name => texts(one.name.as_deref(), other.name.as_deref()),
        SortBy::Model => texts(one.model.as_deref(), other.model.as_deref()),
        _ => match (value_of(one, sort), value_of(other, sort)) {
            (Some(one), Some(other)) => turned(one.total_cmp(&other)),
            (one, other) => other.is_some().cmp(&one.is_some()),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]

    #[test]
    fn pages_hold_every_run_once_and_in_order(runs in prop::collection::vec(made(), 0..24), limit in 1usize..9) {
        let (_dir, store) = home_of(&runs);
        let created: Vec<String> = store.list(&Default::default()).unwrap().into_iter().rev().map(|run| run.id).collect();
        for sort in SortBy::ALL {
            for ascending in [true, false] {
                let mut expected: Vec<Run> = created.iter().map(|id| store.get(id).unwrap()).collect();
                if !ascending {
                    expected.reverse();
                }
                expected.sort_by(|one, other| compare(one, other, sort, ascending));
                let mut found = Vec::new();
                loop {
                    let query = RunsQuery { sort, ascending, limit, offset: found.len(), ..RunsQuery::default() };
                    let page = store.page(&query).unwrap();
                    prop_assert_eq!(page.total, runs.len() as u64);
                    if page.runs.is_empty() {
                        break;
                    }
                    found.extend(page.runs);
                }
                let ids = |runs: &[Run]| -> Vec<String> { runs.iter().map(|run| run.id.clone()).collect() };
                prop_assert_eq!(ids(&found), ids(&expected), "{:?}, ascending {}", sort, ascending);
            }
        }
        let counts = store.counts().unwrap();
        for (status, count) in counts {
            prop_assert_eq!(count, runs.iter().filter(|run| run.status == status).count() as u64);
        }
    }
}

#[test]
fn orders_have_names() {
    for sort in SortBy::ALL {
        assert_eq!(SortBy::parse(sort.as_str()), Some(sort));
    }
    assert_eq!(SortBy::parse("size"), None);
}

fn search(text: &str) -> RunsQuery {
    RunsQuery {
        text: Some(text.into()),
        ..RunsQuery::default()
    }
}

fn named(name: &str) -> NewRun {
    NewRun {
        kind: "train".into(),
        name: Some(name.into()),
        ..NewRun::default()
    }
}

#[test]
fn a_search_finds_what_stands_anywhere_in_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let flights = store
        .create(&NewRun {
            data: Some("data/Flüge 2013/*.csv".into()),
            target: Some("delayed".into()),
            command: vec![
                "tidegate".into(),
                "train".into(),
                "a \"quoted\"\\word".into(),
                "100%".into(),
            ],
            ..named("Flights-v0")
        })
        .unwrap();
    let other = store.create(&named("other")).unwrap();
    store.set_model(&other.id, "boost").unwrap();
    store
        .finish(
            &other.id,
            &Outcome {
                error: Some("the disk is full".into()),
                ..Outcome::new(Status::Failed)
            },
        )
        .unwrap();
    let judgement = Judgement {
        cause: "disk_full".into(),
        grade: "proven".into(),
        sentence: "No space was left on /scratch.".into(),
    };
    store.judge(&other.id, &judgement).unwrap();

    let check = |text: &str, expected: &[&str]| {
        let page = store.page(&search(text)).unwrap();
        let found: Vec<&str> = page.runs.iter().map(|run| run.id.as_str()).collect();
        assert_eq!(found, expected, "{text:?}");
        assert_eq!(page.total, expected.len() as u64, "{text:?}");
    };
    let both = [other.id.as_str(), flights.id.as_str()];
    check("", &both);
    check(" \t\0", &both);
    for text in [
        "flights",
        "FLIGHTS-V0",
        "lights",
        "v0",
        "flüge",
        "FLÜGE",
        "2013 delayed",
        "\"quoted\"\\word",
        "quoted\"",
        "100%",
        "0%",
        "train tidegate",
        "TIDE ts-",
        "\"",
        "\\",
        "%",
        "[*",
        "/*.",
    ] {
        let expected: &[&str] = if text == "[*" { &[] } else { &[&flights.id] };
        check(text, expected);
    }
    check(&flights.id[1..], &[&flights.id]);
    for text in [
        "boost",
        "disk is full",
        "FULL the",
        "scratch space",
        "scratch.",
        "bo",
    ] {
        check(text, &[&other.id]);
    }
    for text in [
        "flights boost",
        "v0train",
        "delayedtidegate",
        "_rain",
        "zl",
        "\" AND \"flights",
        "NOT",
        "text:flights",
        "('",
        "disk_full",
        "trai*",
    ] {
        check(text, &[]);
    }
    let failed = RunsQuery {
        status: Some(Status::Failed),
        ..search("o")
    };
    assert_eq!(store.page(&failed).unwrap().total, 1);
    let of_another_kind = RunsQuery {
        kind: Some("run".into()),
        ..search("flights")
    };
    assert_eq!(store.page(&of_another_kind).unwrap().total, 0);
    store.page(&search(&"x y\" ".repeat(5000))).unwrap();
    store.page(&search(&"%".repeat(100_000))).unwrap();
}

#[test]
fn what_a_run_learns_is_found_and_what_it_was_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let run = store.create(&named("a")).unwrap();
    let total = |text: &str| store.page(&search(text)).unwrap().total;
    store.set_model(&run.id, "linear").unwrap();
    assert_eq!((total("linear"), total("boost")), (1, 0));
    store.set_model(&run.id, "boost").unwrap();
    store
        .update(
            &run.id,
            &Summary {
                rows: Some(5),
                ..Summary::default()
            },
        )
        .unwrap();
    assert_eq!(
        (total("linear"), total("boost"), total("li"), total("bo")),
        (0, 1, 0, 1)
    );
}

#[test]
fn a_reader_sees_that_another_has_written() {
    let dir = tempfile::tempdir().unwrap();
    let (reader, writer) = (Store::open(dir.path()).unwrap(), Store::open(dir.path()).unwrap());
    let before = reader.version().unwrap();
    assert_eq!(reader.version().unwrap(), before);
    writer.create(&named("a")).unwrap();
    assert_ne!(reader.version().unwrap(), before);
}
