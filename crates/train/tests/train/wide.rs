//! Tables too wide for the full curvature, fitted by adaptive steps: close to a solver, not equal to it.

use tidegate_train::linear::FULL_WIDTH;

use crate::help::{expected, fit_text, metric};
use crate::tables::{self, Kind};

fn check(columns: usize, kind: Kind, figure: &str, wanted: &str, tolerance: f64) {
    assert!(columns + 1 > FULL_WIDTH);
    let table = kind.name(&format!("wide_{columns}"));
    let (_scratch, _, report) = fit_text(&tables::wide(columns, 20_000, kind));
    let (found, wanted) = (metric(&report, figure), expected(&table, wanted)[0]);
    println!("{table}: {figure} {found:.4}, in memory {wanted:.4}");
    assert!(
        (found - wanted).abs() <= tolerance,
        "{table}: {figure} {found} instead of {wanted}"
    );
}

#[test]
fn three_hundred_columns_explain_what_least_squares_does() {
    check(300, Kind::Number, "r2", "ols_r2", 0.02);
}

#[test]
fn six_hundred_columns_explain_what_least_squares_does() {
    check(600, Kind::Number, "r2", "ols_r2", 0.02);
}

#[test]
fn three_hundred_columns_tell_two_values_apart() {
    check(300, Kind::Two, "log_loss", "log_loss", 0.02);
}
