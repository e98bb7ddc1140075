//! Choosing what is read: several files, some rows, some columns.

use serde_json::Value;

use crate::help::Place;
use crate::tables::Rows;

const OPTIONS: &str = "--target y --memory 96MB --trees 5";

fn rows(trained: &Value) -> (u64, u64) {
    let rows = &trained["report"]["rows"];
    (
        rows["used"].as_u64().unwrap(),
        rows["not_asked"].as_u64().unwrap_or(0),
    )
}

#[test]
fn several_files_are_one_table() {
    let place = Place::new();
    let all = Rows::binary(3_000);
    std::fs::create_dir(place.path("parts")).unwrap();
    for (i, part) in all.rows.chunks(1_000).enumerate() {
        let part = Rows {
            header: all.header.clone(),
            rows: part.to_vec(),
        };
        place.write(&format!("parts/{i}.csv"), part.csv());
    }
    let named = place.json(&format!("train parts/0.csv parts/1.csv parts/2.csv {OPTIONS}"));
    let folder = place.json(&format!("train parts {OPTIONS}"));
    let pattern = place.json(&format!("train parts/*.csv {OPTIONS}"));
    assert_eq!(rows(&named), (3_000, 0));
    assert_eq!(named["report"], folder["report"]);
    assert_eq!(named["report"], pattern["report"]);
    let forest = |trained: &Value| place.forest(trained["run"]["id"].as_str().unwrap());
    assert!(forest(&named) == forest(&folder) && forest(&named) == forest(&pattern));
}

#[test]
fn files_that_drift_apart_are_both_named() {
    let place = Place::new();
    place.write("first.csv", Rows::binary(100).csv());
    place.write("second.csv", Rows::binary(100).csv().replacen("b", "bee", 1));
    let refused = place.run(&format!("train first.csv second.csv {OPTIONS}"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    for word in ["first.csv", "second.csv", "\"b\"", "\"bee\""] {
        assert!(refused.stderr.contains(word), "{word} in {}", refused.stderr);
    }
}

#[test]
fn only_rows_that_meet_a_condition() {
    let table = Rows::binary(4_000);
    let place = Place::with(table.csv());
    let wanted = table
        .rows
        .iter()
        .filter(|row| row[0].parse::<f64>().unwrap() > 0.25)
        .count() as u64;
    for model in ["boost", "linear"] {
        let mut words: Vec<&str> = "train data.csv --json --model"
            .split(' ')
            .chain([model])
            .collect();
        words.extend(OPTIONS.split(' '));
        words.extend(["--where", "a > 0.25"]);
        let answer = place.run_words(&words);
        assert_eq!(answer.code, Some(0), "{}", answer.stderr);
        let trained: Value = serde_json::from_str(&answer.stdout).unwrap();
        assert_eq!(rows(&trained), (wanted, 4_000 - wanted), "{model}");
    }
    let mut words: Vec<&str> = "train data.csv".split(' ').chain(OPTIONS.split(' ')).collect();
    words.extend(["--where", "a > 0.25 and"]);
    assert_eq!(place.run_words(&words).code, Some(2));
    *words.last_mut().unwrap() = "nothing > 3";
    let refused = place.run_words(&words);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("\"nothing\""), "{}", refused.stderr);
}

#[test]
fn a_broken_target_in_a_row_that_is_left_out_does_no_harm() {
    let mut text = String::from("a,b,y\n");
    for i in 0..2_000 {
        let target = match i {
            1_500 | 1_700 => "unknown".to_string(),
            i => format!("{}.5", i % 17),
        };
        text.push_str(&format!("{},{}.25,{target}\n", i % 10, i * 7 % 101));
    }
    let place = Place::with(text);
    let train = |condition: &str, more: &str| {
        let mut words = vec!["train", "data.csv", "--target", "y", "--memory", "64MB", "--json"];
        words.extend(more.split_whitespace());
        words.extend(["--where", condition]);
        place.run_words(&words)
    };
    for model in ["--model boost", "--model linear"] {
        let left_out = train("a > 0", model);
        assert_eq!(left_out.code, Some(0), "{}", left_out.stderr);
        let trained: Value = serde_json::from_str(&left_out.stdout).unwrap();
        assert_eq!(rows(&trained), (1_800, 200));
        let asked = train("a < 5", model);
        assert_eq!(asked.code, Some(1), "{}", asked.stderr);
        assert!(
            asked.stderr.contains("data.csv:1502:") && asked.stderr.contains("\"unknown\""),
            "{}",
            asked.stderr
        );
        let skipped = train("a < 5", &format!("{model} --bad-rows skip"));
        assert_eq!(skipped.code, Some(0), "{}", skipped.stderr);
        let trained: Value = serde_json::from_str(&skipped.stdout).unwrap();
        assert_eq!(rows(&trained), (998, 1_000));
        assert_eq!(trained["report"]["rows"]["bad"], 2);
    }
}

#[test]
fn a_condition_that_selects_nothing_is_told_apart_from_a_poor_target() {
    let place = Place::with(Rows::binary(500).csv());
    let mut words: Vec<&str> = "train data.csv".split(' ').chain(OPTIONS.split(' ')).collect();
    words.extend(["--where", "a > 1000000"]);
    let refused = place.run_words(&words);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    for part in [
        "no row meets --where \"a > 1000000\"",
        "hint: ask for other rows with --where",
    ] {
        assert!(refused.stderr.contains(part), "{part} in {}", refused.stderr);
    }
}

#[test]
fn dates_and_truths_are_compared_as_what_they_are() {
    let mut text = String::from("when,member,b,y\n");
    for i in 0..2_000 {
        let member = ["yes", "no", "no", "no"][i % 4];
        let (month, day) = (i / 28 % 12 + 1, i % 28 + 1);
        text.push_str(&format!(
            "2024-{month:02}-{day:02},{member},{},{}\n",
            i * 7 % 101,
            i / 3 % 2
        ));
    }
    let place = Place::with(&text);
    let train = |condition: &str| {
        let mut words: Vec<&str> = "train data.csv --json"
            .split(' ')
            .chain(OPTIONS.split(' '))
            .collect();
        words.extend(["--where", condition]);
        place.run_words(&words)
    };
    let late = text
        .lines()
        .filter(|line| line.starts_with("2024-") && *line >= "2024-06-01")
        .count() as u64;
    for (condition, wanted) in [
        ("member = 'yes'", 500),
        ("member != 'yes'", 1_500),
        ("when >= '2024-06-01'", late),
    ] {
        let answer = train(condition);
        assert_eq!(answer.code, Some(0), "{}", answer.stderr);
        let trained: Value = serde_json::from_str(&answer.stdout).unwrap();
        assert_eq!(rows(&trained), (wanted, 2_000 - wanted), "{condition}");
    }
    for (condition, holds) in [("member = 'maybe'", "truths"), ("when > 2024", "times")] {
        let refused = train(condition);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        let told = format!("holds {holds}\n");
        assert!(refused.stderr.contains(&told), "{told} in {}", refused.stderr);
    }
}

#[test]
fn a_sample_of_the_rows() {
    let place = Place::with(Rows::binary(20_000).csv());
    for model in ["boost", "linear"] {
        let train =
            |options: &str| place.json(&format!("train data.csv --model {model} {OPTIONS} {options}"));
        assert_eq!(rows(&train("--sample 5000")), (5_000, 15_000), "{model}");
        let (used, left) = rows(&train("--sample 0.25"));
        assert_eq!(used + left, 20_000, "{model}");
        assert!((4_700..5_300).contains(&used), "{model}: {used}");
        let [one, same, other] = ["--seed 1", "--seed 1", "--seed 2"]
            .map(|seed| train(&format!("--sample 5000 --threads 2 {seed}"))["report"].clone());
        assert_eq!(one, same, "{model}");
        assert_ne!(one, other, "{model}: another seed takes other rows");
    }
    let more = place.json(&format!("train data.csv {OPTIONS} --sample 50000"));
    assert_eq!(rows(&more), (20_000, 0), "there are no more than there are");
}

#[test]
fn some_of_the_columns() {
    let place = Place::with(Rows::binary(2_000).csv());
    let features = |options: &str| -> Vec<String> {
        let trained = place.json(&format!("train data.csv {OPTIONS} {options}"));
        let id = trained["run"]["id"].as_str().unwrap();
        let text = place.read(&format!("home/runs/{id}/model/encoders.json"));
        let encoders: Value = serde_json::from_str(&text).unwrap();
        let features = encoders["features"].as_array().unwrap();
        features
            .iter()
            .map(|feature| feature["name"].as_str().unwrap().to_string())
            .collect()
    };
    assert_eq!(features(""), ["a", "b", "c"]);
    assert_eq!(features("--columns a,b"), ["a", "b"]);
    assert_eq!(features("--ignore b"), ["a", "c"]);
    assert_eq!(features("--columns a,b --ignore b"), ["a"]);
    // A table without the columns that were left out can be predicted.
    let few: String = (0..10).map(|i| format!("0.{i}\n")).collect();
    place.write("few.csv", format!("a\n{few}"));
    assert_eq!(place.ok("predict last few.csv").stdout.lines().count(), 11);
    let refused = place.run(&format!("train data.csv {OPTIONS} --ignore nope"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("\"nope\""), "{}", refused.stderr);
    let refused = place.run(&format!("train data.csv {OPTIONS} --ignore a,b,c"));
    assert_ne!(refused.code, Some(0), "{}", refused.stderr);
}
