//! What a few passes give is what scikit-learn solves in memory.

use crate::help::{assert_close, expected, fit_text, held_out_scores, metric};
use crate::tables::{self, Kind};

/// Predictions of the first rows held out, and the report's metrics of all of them.
fn check(table: &str, text: &str, predictions: f64, metrics: &[(&str, f64)]) {
    let (scratch, model, report) = fit_text(text);
    let scores = held_out_scores(&model, &scratch.path());
    for (i, (found, wanted)) in scores.iter().zip(expected(table, "first")).enumerate() {
        assert_close(&format!("{table}: prediction {i}"), *found, wanted, predictions);
    }
    for (name, tolerance) in metrics {
        assert_close(
            &format!("{table}: {name}"),
            metric(&report, name),
            expected(table, name)[0],
            *tolerance,
        );
    }
    assert!(report.converged, "{table}: {report:?}");
}

/// `sklearn.linear_model.Ridge(alpha=1)` on standardised columns.
#[test]
fn least_squares_is_the_exact_ridge_solution() {
    let text = tables::plain(Kind::Number);
    check("plain_number", &text, 1e-5, &[("rmse", 1e-6), ("r2", 1e-6)]);
}

/// `sklearn.linear_model.LogisticRegression(C=1)` on standardised columns.
#[test]
fn logistic_regression_is_what_lbfgs_finds() {
    let text = tables::plain(Kind::Two);
    let metrics = [("log_loss", 1e-5), ("auc", 1e-4), ("accuracy", 1e-12)];
    check("plain_two", &text, 1e-4, &metrics);
}
