//! Real tables, where they are at hand.

use std::path::PathBuf;

use tidegate_data::TableOptions;

use crate::help::{expected, fit, metric, open, open_with, plan, usual};

/// On the numbers of a table alone, a linear model is what scikit-learn finds; its categories only help.
fn check(file: &str, target: &str, table: &str, figure: &str, texts: &[&str]) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let path = PathBuf::from(folder).join(file);
    if !path.is_file() {
        println!("skipped: {} is not here", path.display());
        return;
    }
    let numbers = TableOptions {
        ignore: texts.iter().map(|name| name.to_string()).collect(),
        ..TableOptions::default()
    };
    let bound = open_with(&path, target, &numbers);
    let (_, report) = fit(&bound, &usual(), &plan(&bound, 2), None);
    let (found, wanted) = (metric(&report, figure), expected(table, figure)[0]);
    println!("{table}: {figure} {found:.5}, scikit-learn {wanted:.5}");
    assert!(
        (found - wanted).abs() <= wanted * 0.01,
        "{table}: {found} instead of {wanted}"
    );
    let bound = open(&path, target);
    let (_, report) = fit(&bound, &usual(), &plan(&bound, 2), None);
    let with_texts = metric(&report, figure);
    println!("{table}: {figure} {with_texts:.5} with all columns");
    let better = if figure == "log_loss" {
        with_texts < found
    } else {
        with_texts > found
    };
    assert!(better, "{table}: {with_texts} with all columns, {found} without");
}

#[test]
fn house_prices_in_california() {
    check(
        "california_housing/housing.csv",
        "median_house_value",
        "housing",
        "r2",
        &["ocean_proximity"],
    );
}

#[test]
fn incomes_of_adults() {
    let texts = [2, 4, 6, 7, 8, 9, 10, 14].map(|i| format!("column_{i}"));
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    check("adult/adult-train.csv", "column_15", "adult", "log_loss", &texts);
}
