//! Homes of earlier versions: brought up to date where they can be written, and read as they are elsewhere.

use super::*;
use crate::pages::{RunsQuery, SortBy};
use crate::schema::{MIGRATIONS, migrate};

/// A home as a version of the schema left it, with two runs and metrics in it.
fn home_of(version: usize) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut db = Connection::open(dir.path().join("runs.db")).unwrap();
    migrate(&mut db, &MIGRATIONS[..version]).unwrap();
    db.execute_batch(
        "INSERT INTO runs (id, kind, status, command, created_ms, name, data, peak_bytes) VALUES
            ('abcd2345', 'train', 'done', '[\"tidegate\",\"train\"]', 7, 'old', 'flights.csv', 5),
            ('efgh6789', 'run', 'failed', '[\"no\",\"list\"]', 8, NULL, NULL, NULL)",
    )
    .unwrap();
    if version < 4 {
        db.execute_batch(
            "INSERT INTO metrics (run, epoch, step, name, value) VALUES
                ('efgh6789', 1, 1, 'auc', 0.5), ('abcd2345', 1, 10, 'loss', 0.9), ('efgh6789', 1, 2, 'auc', NULL),
                ('abcd2345', 2, 20, 'loss', 0.1), ('abcd2345', 3, 30, 'loss', NULL)",
        )
        .unwrap();
    }
    dir
}

fn check(store: &Store, whose: &str) {
    let ids = |query: RunsQuery| -> Vec<String> {
        let page = store.page(&query).unwrap();
        assert_eq!(page.total, page.runs.len() as u64);
        page.runs.into_iter().map(|run| run.id).collect()
    };
    for sort in SortBy::ALL {
        let query = RunsQuery {
            sort,
            ascending: true,
            ..RunsQuery::default()
        };
        assert_eq!(ids(query).len(), 2, "{whose}, {sort:?}");
    }
    for (text, expected) in [
        ("", vec!["efgh6789", "abcd2345"]),
        ("OLD", vec!["abcd2345"]),
        ("fl csv train", vec!["abcd2345"]),
        ("no list", vec!["efgh6789"]),
        ("verdict", vec![]),
        ("%", vec![]),
    ] {
        let query = RunsQuery {
            text: Some(text.into()),
            ..RunsQuery::default()
        };
        assert_eq!(ids(query), expected, "{whose}, {text:?}");
    }
    assert_eq!(store.find("old").unwrap().verdict, None);
    assert_eq!(store.counts().unwrap().iter().map(|(_, n)| n).sum::<u64>(), 2);

    let metrics = store.metrics("abcd2345").unwrap();
    let steps: Vec<u64> = metrics.iter().map(|metric| metric.step).collect();
    assert_eq!(steps, [10, 20, 30], "{whose}");
    let curves = store.metric_curves("abcd2345", 100).unwrap();
    let values: Vec<Option<f64>> = curves[0].points.iter().map(|point| point.value).collect();
    assert_eq!(values, [Some(0.9), Some(0.1), None], "{whose}");
}

#[test]
fn an_earlier_home_is_brought_up_to_date_with_its_runs_and_metrics() {
    for version in 1..4 {
        let dir = home_of(version);
        let store = Store::open(dir.path()).unwrap();
        check(&store, &format!("from version {version}"));
        let numbers: Vec<i64> = store
            .metrics_after("efgh6789", 0, 9)
            .unwrap()
            .iter()
            .map(|(seq, _)| *seq)
            .collect();
        assert_eq!(numbers, [1, 2]);
        let blocks: i64 = store
            .db
            .query_row("SELECT count(*) FROM metric_blocks", [], |row| row.get(0))
            .unwrap();
        assert_eq!(blocks, 2);
    }
}

#[test]
fn an_earlier_home_that_cannot_be_written_is_read() {
    for version in 1..4 {
        let dir = home_of(version);
        let store = Store::open_to_read(dir.path(), &dir.path().join("runs.db")).unwrap();
        check(&store, &format!("version {version}"));
    }
}
