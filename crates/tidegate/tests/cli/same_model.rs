//! The same table gives the same model, bit for bit, however it is packed, read and bounded.

use serde_json::Value;

use crate::help::Place;
use crate::tables::Rows;

/// Weights and report of a training.
fn trained(place: &Place, arguments: &str) -> (Vec<u8>, Value) {
    let trained = place.json(&format!("train {arguments} --target y --model linear"));
    let id = trained["run"]["id"].as_str().unwrap();
    (place.weights(id), trained["report"].clone())
}

fn check_all_the_same(place: &Place, variants: &[&str]) {
    let (weights, report) = trained(place, variants[0]);
    for variant in &variants[1..] {
        let (other_weights, other_report) = trained(place, variant);
        assert_eq!(report, other_report, "{variant}");
        assert!(weights == other_weights, "{variant}: other weights");
    }
}

/// 120,000 rows in five blocks, some values missing.
fn large() -> Rows {
    let mut rows = Rows::binary(120_000);
    for row in rows.rows.iter_mut().step_by(17) {
        row[2].clear();
    }
    rows
}

#[test]
fn read_by_any_number_of_threads() {
    let place = Place::with(large().csv());
    check_all_the_same(
        &place,
        &[
            "data.csv --memory 128MB --threads 1",
            "data.csv --memory 128MB --threads 2",
            "data.csv --memory 128MB --threads 5",
        ],
    );
}

#[test]
fn within_any_budget() {
    let place = Place::with(large().csv());
    check_all_the_same(
        &place,
        &[
            "data.csv --memory 36MB",
            "data.csv --memory 64MB",
            "data.csv --memory 1GB",
            "data.csv",
        ],
    );
}

#[test]
fn a_number_by_any_number_of_threads() {
    let place = Place::with(Rows::regression(60_000).csv());
    check_all_the_same(
        &place,
        &[
            "data.csv --memory 128MB --threads 1",
            "data.csv --memory 128MB --threads 3",
            "data.csv --memory 32MB --threads 3",
        ],
    );
}

#[test]
fn seeds_and_shares_choose_the_rows_held_out() {
    let place = Place::with(large().csv());
    let (weights, report) = trained(&place, "data.csv --memory 64MB --seed 1");
    let (other, _) = trained(&place, "data.csv --memory 64MB --seed 2");
    assert!(weights != other, "another seed holds out other rows");
    let held_out = report["rows"]["held_out"].as_u64().unwrap();
    assert!((11_500..12_500).contains(&held_out), "{held_out} of 120,000");
    let (_, report) = trained(&place, "data.csv --memory 64MB --holdout 0.5");
    let held_out = report["rows"]["held_out"].as_u64().unwrap();
    assert!((59_000..61_000).contains(&held_out), "{held_out} of 120,000");
}
