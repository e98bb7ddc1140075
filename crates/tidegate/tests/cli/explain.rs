//! What a model relies on, as a person and as a program reads it.

use crate::help::Place;
use crate::tables::{Random, Rows};

#[test]
fn a_linear_model_is_explained_by_its_weights() {
    let place = Place::with(Rows::binary(3_000).csv());
    place.ok("train data.csv --target y --memory 64MB --name model --model linear");
    let explained = place.json("explain model");
    let columns: Vec<&str> = explained["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["column"].as_str().unwrap())
        .collect();
    assert_eq!(columns.len(), 3);
    assert_eq!(columns[2], "c", "noise comes last: {columns:?}");
    let shares: f64 = explained["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["importance"]["share"].as_f64().unwrap())
        .sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    assert_eq!(explained["confusion"].as_array().unwrap().len(), 2);
    let said = place.ok("explain model").stdout;
    for part in [
        "y, 0 or 1, by a linear model",
        "LARGEST WEIGHT",
        "██",
        "calibration: the probability of \"1\"",
        "confusion: ",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn trees_are_explained_by_gain_and_by_shuffling() {
    let mut random = Random(3);
    let cities = ["Oslo", "Rome", "Bern"];
    let rows: String = (0..3_000)
        .map(|i| {
            let (a, b) = (random.number(), random.number());
            let y = a + if i % 3 == 1 { 1.0 } else { 0.0 };
            format!(
                "{a:.4},{b:.4},{},2024-01-{:02},{y:.4}\n",
                cities[i % 3],
                1 + i % 28
            )
        })
        .collect();
    let place = Place::with(format!("a,b,city,day,y\n{rows}"));
    place.ok("train data.csv --target y --memory 64MB --name model --model boost --trees 20");
    let explained = place.json("explain model");
    let first = &explained["columns"][0];
    assert!(
        ["a", "city"].contains(&first["column"].as_str().unwrap()),
        "{first}"
    );
    assert!(
        first["importance"]["permutation"].as_f64().unwrap() > 0.0,
        "{first}"
    );
    let day = |list: &str, of: &str| -> f64 {
        let all = explained[list].as_array().unwrap().iter();
        all.filter(|one| one["column"] == "day")
            .map(|one| one["importance"][of].as_f64().unwrap())
            .sum()
    };
    assert!(
        (day("columns", "gain") - day("encoded", "gain")).abs() < 1e-6,
        "summed by column"
    );
    assert_eq!(day("columns", "splits"), day("encoded", "splits"));
    let residuals = &explained["residuals"];
    let rows: u64 = residuals["bins"]
        .as_array()
        .unwrap()
        .iter()
        .chain([&residuals["below"], &residuals["above"]])
        .map(|rows| rows.as_u64().unwrap())
        .sum();
    assert_eq!(Some(rows), explained["rows"]["held_out"].as_u64(), "{residuals}");
    let said = place.ok("explain model --top 2").stdout;
    for part in [
        "y, a number, by boosted trees: 20 rounds",
        "errors of the rows held out, the truth above the prediction: ",
        "SHARE OF ROWS",
        "SHUFFLED",
        "and 2 columns more: --top 4",
        "by encoded column",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let shown = place.ok("show model").stdout;
    assert!(
        shown.contains("what it relies on") && shown.contains("SPLITS"),
        "{shown}"
    );
    assert!(!shown.contains("weights"), "{shown}");
}

#[test]
fn a_run_without_a_model_has_nothing_to_explain() {
    let place = Place::with(Rows::binary(300).csv());
    assert_eq!(place.run("explain absent").code, Some(2));
    assert_eq!(place.run("train data.csv --target y --memory 1MB").code, Some(2));
    let answer = place.run("explain last");
    assert_eq!(answer.code, Some(2), "{}", answer.stderr);
    assert!(
        answer.stderr.contains("has no model: it failed"),
        "{}",
        answer.stderr
    );
}

#[test]
fn a_run_says_which_rows_it_left_out() {
    let mut csv = Rows::binary(400).csv();
    csv.push_str("0.1,oops,50,1\n0.2,0.1,40,\n1,2\n");
    let place = Place::with(csv);
    place.ok("train data.csv --target y --memory 64MB --name model --bad-rows skip");
    let shown = place.ok("show model").stdout;
    assert!(
        shown.contains("left out: 1 row bad · 1 row without a target"),
        "{shown}"
    );
    assert!(
        shown.contains(
            "a value of \"b\" is not what the column holds and counts as missing: \"oops\" on line 402"
        ),
        "{shown}"
    );
}
