//! Budgets that are too small: the least that would do is named, and it is true.

use insta::assert_snapshot;

use crate::help::Place;
use crate::tables::{Rows, gzip};

/// The budget named in a refusal, in bytes.
fn least(place: &Place, file: &str, memory: &str) -> u64 {
    let answer = place.run(&format!(
        "train {file} --target y --model linear --memory {memory}"
    ));
    assert_eq!(answer.code, Some(2), "{}", answer.stderr);
    let hint = answer
        .stderr
        .split("hint: --memory ")
        .nth(1)
        .expect("the least budget is named");
    let (megabytes, rest) = hint.split_once("MB").unwrap();
    assert_eq!(rest.trim_end(), " is the least that would do");
    megabytes.parse::<u64>().unwrap() * 1_000_000
}

fn check(file: &str, table: impl AsRef<[u8]>) {
    let place = Place::new();
    place.write(file, table);
    let least = least(&place, file, "1MB");
    for _ in 0..3 {
        let trained = place.json(&format!(
            "train {file} --target y --model linear --memory {least}B"
        ));
        let peak = trained["run"]["peak_bytes"].as_u64();
        assert!(peak.is_none_or(|peak| peak <= least), "peak {peak:?} of {least}");
    }
    let less = least / 10 * 9;
    let refused = place.run(&format!(
        "train {file} --target y --model linear --memory {less}B"
    ));
    assert_eq!(
        refused.code,
        Some(2),
        "{less} of {least} bytes are enough: {}",
        refused.stderr
    );
}

#[test]
fn the_least_is_enough_for_a_small_table() {
    check("data.csv", Rows::binary(200).csv());
}

#[test]
fn the_least_is_enough_for_a_larger_table() {
    check("data.csv", Rows::binary(200_000).csv());
}

#[test]
fn the_least_is_enough_for_a_compressed_table() {
    check("data.csv.gz", gzip(&Rows::binary(200_000).csv()));
}

#[test]
fn the_least_is_enough_for_a_wide_table() {
    let width = 500;
    let names: Vec<String> = (0..width).map(|i| format!("x{i}")).collect();
    let mut random = crate::tables::Random(3);
    let mut text = format!("{},y\n", names.join(","));
    for row in 0..1_000 {
        (0..width).for_each(|_| text.push_str(&format!("{:.3},", random.number())));
        text.push_str(&format!("{}\n", row % 2));
    }
    check("data.csv", text);
}

#[test]
fn the_least_is_enough_for_very_short_rows() {
    let rows: String = (0..500_000).map(|i| format!("{},{}\n", i % 7, i % 2)).collect();
    check("data.csv", format!("a,y\n{rows}"));
}

#[test]
fn two_rows_do_not_need_much() {
    let place = Place::with("a,y\n1,1\n2,0\n");
    place.ok("train data.csv --target y --model linear --memory 32MB");
}

#[test]
fn more_columns_than_the_budget_can_hold() {
    let width = 20_000;
    let names: Vec<String> = (0..width).map(|i| format!("x{i}")).collect();
    let mut text = format!("{},y\n", names.join(","));
    for row in 0..60 {
        (0..width).for_each(|i| text.push_str(["0,", "1,", "2,"][(row * i) % 3]));
        text.push_str(&format!("{}\n", row % 2));
    }
    let place = Place::with(text);
    let trained = place.json("train data.csv --target y --model linear --memory 96MB");
    assert_eq!(trained["run"]["status"], "done");
    let refused = place.run("train data.csv --target y --model linear --memory 20MB");
    assert!(matches!(refused.code, Some(1 | 2)), "{}", refused.stderr);
    assert!(refused.stderr.contains("20001 columns"), "{}", refused.stderr);
    let least = refused
        .stderr
        .split("--memory ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    place.ok(&format!(
        "train data.csv --target y --model linear --memory {}",
        least.expect("the least is named")
    ));
}

#[test]
fn a_refusal_says_what_the_memory_is_for() {
    let place = Place::with(Rows::binary(200).csv());
    let answer = place
        .run("train data.csv --target y --model linear --memory 2MB")
        .error();
    let answer = answer.split("--memory").next().unwrap();
    assert_snapshot!(answer, @r"
    exit 2
    error: this job needs [size] and the budget is [size]: runtime [size] · columns [size] · data buffers [size] · model [size] · evaluation [size]
      hint:
    ");
    let trained = place.ok("train data.csv --target y --model linear --memory 64MB");
    assert!(trained.stderr.contains("plan: "), "{}", trained.stderr);
    assert_snapshot!(place.run("predict last data.csv --memory 2MB").error().split("--memory").next().unwrap(), @r"
    exit 2
    error: this job needs [size] and the budget is [size]: runtime [size] · columns [size] · encoders [size] · data buffers [size] · model [size] · output [size]
      hint:
    ");
}
