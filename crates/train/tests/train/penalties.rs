//! The L1 penalty: the weights of scikit-learn, and exact zeros.

use tidegate_train::linear::Options;

use crate::help::{assert_close, expected, fit_with, metric, usual, weights};
use crate::tables::{self, Kind};

fn lasso(l1: f64) -> Options {
    Options {
        l1,
        l2: 0.0,
        epochs: 10,
        ..usual()
    }
}

/// `Lasso(alpha=300 / n)` on the standardised target, and `LogisticRegression(l1_ratio=1, C=1 / 60)`.
#[test]
fn weights_are_those_of_a_solver_in_memory() {
    for (kind, l1) in [(Kind::Number, 300.0), (Kind::Two, 60.0)] {
        let table = kind.name("lasso");
        let (_scratch, model, report) = fit_with(&tables::plain(kind), &lasso(l1));
        assert!(report.converged, "{table}: {report:?}");
        for (i, wanted) in expected(&table, "weights").into_iter().enumerate() {
            let found = weights(&model)[i];
            assert_close(&format!("{table}: weight {i}"), found, wanted, 3e-3);
            assert_eq!(found == 0.0, wanted == 0.0, "{table}: weight {i} is {found}");
        }
    }
}

#[test]
fn one_epoch_has_its_zeros_too() {
    let once = Options {
        epochs: 1,
        ..lasso(300.0)
    };
    let (_scratch, model, _) = fit_with(&tables::plain(Kind::Number), &once);
    assert_eq!(weights(&model)[1], 0.0);
}

/// One in five columns of the wide tables says nothing.
#[test]
fn wide_tables_lose_columns_that_say_nothing() {
    let text = tables::wide(300, 20_000, Kind::Number);
    let zeros = |l1| {
        let (_scratch, model, report) = fit_with(&text, &Options { l1, ..usual() });
        let zeros = weights(&model).iter().filter(|w| **w == 0.0).count();
        (zeros as f64, metric(&report, "r2"))
    };
    assert_eq!(zeros(0.0).0, 0.0);
    let (found, r2) = zeros(50.0);
    println!("{found} zeros, r2 {r2}");
    assert!(found >= expected("wide_lasso", "zeros")[0] * 0.5, "{found} zeros");
    assert_close("r2", r2, expected("wide_lasso", "r2")[0], 0.01);
    assert_eq!(zeros(1e9).0, 300.0);
}
