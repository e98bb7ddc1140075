//! Tables that make optimizers stumble: within 1% of scikit-learn after the usual five epochs.

use crate::help::{assert_close, expected, fit_text, metric, weights};
use crate::tables::{self, Kind};

fn check(table: &str, text: &str, figure: &str) {
    let (_scratch, model, report) = fit_text(text);
    assert!(
        weights(&model).iter().all(|w| w.is_finite()),
        "{table}: {:?}",
        weights(&model)
    );
    let wanted = expected(table, figure)[0];
    assert_close(
        &format!("{table}: {figure}"),
        metric(&report, figure),
        wanted,
        wanted * 0.01,
    );
}

fn check_both(table: &str, text: impl Fn(Kind) -> String) {
    check(&Kind::Number.name(table), &text(Kind::Number), "rmse");
    check(&Kind::Two.name(table), &text(Kind::Two), "log_loss");
}

#[test]
fn rows_sorted_by_their_target() {
    check_both("by_target", tables::by_target);
}

#[test]
fn classes_that_a_plane_separates() {
    check("separable", &tables::separable(), "log_loss");
}

#[test]
fn columns_that_say_the_same() {
    check_both("collinear", tables::collinear);
}

#[test]
fn a_column_that_never_changes() {
    check_both("constant", tables::constant);
}

#[test]
fn columns_in_nanometres_and_in_gigabytes() {
    check_both("extreme", tables::extreme);
}
