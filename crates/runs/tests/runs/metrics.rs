//! Metrics by page, and curves that show every spike.

use std::collections::HashMap;

use proptest::prelude::*;
use tempfile::TempDir;
use tidegate_runs::{CurvePoint, Metric, NewRun, Store};

fn run() -> (TempDir, Store, String) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let new = NewRun {
        kind: "train".into(),
        ..NewRun::default()
    };
    let id = store.create(&new).unwrap().id;
    (dir, store, id)
}

/// Writes all at once, which no trainer does.
fn fill(dir: &TempDir, id: &str, metrics: &[(&str, f64)]) {
    let mut db = rusqlite::Connection::open(dir.path().join("runs.db")).unwrap();
    let transaction = db.transaction().unwrap();
    {
        let mut insert = transaction
            .prepare(
                "INSERT INTO metrics (run, seq, epoch, step, name, value) VALUES (?1, ?2, ?3, ?2, ?4, ?5)",
            )
            .unwrap();
        for (at, (name, value)) in metrics.iter().enumerate() {
            let seq = at as i64 + 1;
            insert
                .execute(rusqlite::params![id, seq, seq / 100, name, value])
                .unwrap();
        }
    }
    transaction.commit().unwrap();
}

#[test]
fn pages_of_metrics_follow_each_other() {
    let (_dir, store, id) = run();
    let other = store
        .create(&NewRun {
            kind: "train".into(),
            ..NewRun::default()
        })
        .unwrap()
        .id;
    for step in 0..10 {
        for id in [&id, &other] {
            let metric = Metric {
                epoch: 1,
                step,
                name: "loss".into(),
                value: 1.0 / step as f64,
            };
            store.metric(id, &metric).unwrap();
        }
    }
    let mut seen = Vec::new();
    let mut after = 0;
    loop {
        let page = store.metrics_after(&id, after, 3).unwrap();
        let Some((last, _)) = page.last() else { break };
        assert!(page.len() <= 3 && page[0].0 == after + 1);
        after = *last;
        seen.extend(page.into_iter().map(|(_, metric)| metric));
    }
    assert_eq!(seen, store.metrics(&id).unwrap());
    assert_eq!(
        seen.iter().map(|metric| metric.step).collect::<Vec<_>>(),
        (0..10).collect::<Vec<_>>()
    );
    assert!(store.metrics_after("nobody", 0, 9).unwrap().is_empty());
}

/// What every curve must show of what was recorded.
fn check_curves(metrics: &[(&str, f64)], points: usize) -> Result<(), TestCaseError> {
    let (dir, store, id) = run();
    fill(&dir, &id, metrics);
    let mut of_name: HashMap<&str, Vec<CurvePoint>> = HashMap::new();
    for (at, (name, value)) in metrics.iter().enumerate() {
        let step = at as u64 + 1;
        of_name.entry(name).or_default().push(CurvePoint {
            epoch: (step / 100) as u32,
            step,
            value: Some(*value).filter(|value| value.is_finite()),
        });
    }
    let curves = store.metric_curves(&id, points).unwrap();
    prop_assert_eq!(curves.len(), of_name.len());
    prop_assert!(curves.is_sorted_by_key(|curve| curve.points[0].step));
    for curve in curves {
        let all = &of_name[curve.name.as_str()];
        prop_assert!(
            curve.points.len() <= points.max(8),
            "{} points",
            curve.points.len()
        );
        if all.len() + 2 <= points {
            prop_assert_eq!(&curve.points, all);
        }
        prop_assert!(curve.points.is_sorted_by(|one, other| one.step < other.step));
        prop_assert!(curve.points.iter().all(|point| all.contains(point)));
        prop_assert_eq!(curve.points.first(), all.first());
        prop_assert_eq!(curve.points.last(), all.last());
        let values =
            |points: &[CurvePoint]| -> Vec<f64> { points.iter().filter_map(|point| point.value).collect() };
        let (drawn, recorded) = (values(&curve.points), values(all));
        prop_assert_eq!(
            drawn.iter().copied().reduce(f64::min),
            recorded.iter().copied().reduce(f64::min)
        );
        prop_assert_eq!(
            drawn.iter().copied().reduce(f64::max),
            recorded.iter().copied().reduce(f64::max)
        );
        let has_gap = |points: &[CurvePoint]| points.iter().any(|point| point.value.is_none());
        prop_assert_eq!(has_gap(&curve.points), has_gap(all));
    }
    Ok(())
}

fn a_value() -> impl Strategy<Value = f64> {
    prop_oneof![20 => -1.0..1.0f64, 1 => Just(f64::NAN), 1 => Just(f64::INFINITY), 1 => Just(f64::MAX), 1 => Just(f64::MIN)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn curves_keep_ends_and_extremes(
        metrics in prop::collection::vec((prop::sample::select(vec!["loss", "auc", "rate"]), a_value()), 0..400),
        points in 0usize..300,
    ) {
        check_curves(&metrics, points)?;
    }
}

/// As many as are no longer read one by one: the same is asked of what is kept of each block.
#[test]
fn curves_of_very_many_values_keep_them_too() {
    let n = 70_000;
    let mut metrics: Vec<(&str, f64)> = (0..n)
        .map(|at| (if at % 3 == 0 { "loss" } else { "auc" }, f64::from(at % 997)))
        .collect();
    metrics[31_111].1 = 1e9;
    metrics[31_112].1 = -1e9;
    metrics[40_000].1 = f64::NAN;
    metrics[69_000].0 = "seldom";
    metrics[50_000].0 = "seldom";
    for points in [8, 100, 5000] {
        check_curves(&metrics, points).unwrap();
    }
}
