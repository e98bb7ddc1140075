//! Real tables, where they are at hand.

use std::path::PathBuf;

use crate::help::{expected, fit, metric, open, plan, usual};

fn check(file: &str, target: &str, table: &str, figure: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let path = PathBuf::from(folder).join(file);
    if !path.is_file() {
        println!("skipped: {} is not here", path.display());
        return;
    }
    let bound = open(&path, target);
    let (_, report) = fit(&bound, &usual(), &plan(&bound, 2), None);
    let (found, wanted) = (metric(&report, figure), expected(table, figure)[0]);
    println!("{table}: {figure} {found:.5}, scikit-learn {wanted:.5}");
    assert!(
        (found - wanted).abs() <= wanted * 0.01,
        "{table}: {found} instead of {wanted}"
    );
}

#[test]
fn house_prices_in_california() {
    check(
        "california_housing/housing.csv",
        "median_house_value",
        "housing",
        "r2",
    );
}

#[test]
fn incomes_of_adults() {
    check("adult/adult-train.csv", "column_15", "adult", "log_loss");
}
