//! Boosted trees as a person uses them: the same however they are read, bounded or interrupted.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use serde_json::Value;

use crate::help::{Place, wait_for, wait_until};
use crate::tables::{Random, Rows, gzip, zstd};
use crate::training::{show, signal};

const TRAIN: &str = "train data.csv --target y --model boost";

fn id(trained: &Value) -> &str {
    trained["run"]["id"].as_str().unwrap()
}

fn metric(trained: &Value, name: &str) -> f64 {
    let metrics = trained["report"]["metrics"].as_array().unwrap();
    let found = metrics.iter().find(|metric| metric["name"] == name);
    let found = found.unwrap_or_else(|| panic!("{name} in {metrics:?}"));
    found["value"].as_f64().unwrap()
}

/// Numbers, categories few and many, truths, dates and gaps, with a target that depends on most of them.
fn mixed(n_rows: usize) -> Rows {
    let mut random = Random(11);
    let row = |_| {
        let a = random.number();
        let few = random.next() % 5;
        let many = random.next() % 200;
        let truth = random.next().is_multiple_of(2);
        let day = 1 + random.next() % 28;
        let signal = a + few as f64 / 4.0 + (many % 7) as f64 / 7.0 + f64::from(u8::from(truth));
        let y = u8::from(signal + 0.3 * random.number() > 1.6);
        let a = if random.next().is_multiple_of(10) {
            String::new()
        } else {
            format!("{a:.4}")
        };
        vec![
            a,
            format!("f{few}"),
            format!("m{many}"),
            truth.to_string(),
            format!("2013-{:02}-{day:02}", 1 + random.next() % 12),
            y.to_string(),
        ]
    };
    let header = ["a", "few", "many", "truth", "day", "y"]
        .map(String::from)
        .to_vec();
    Rows {
        header,
        rows: (0..n_rows).map(row).collect(),
    }
}

#[test]
fn auto_trains_trees_and_they_are_worth_something() {
    let place = Place::with(mixed(5_000).csv());
    let answer = place.ok("train data.csv --target y --memory 64MB");
    assert!(answer.stderr.contains("by boosted trees"), "{}", answer.stderr);
    let run = place.json("show last");
    assert_eq!(run["model"], "boost");
    assert!(metric(&place.json(&format!("{TRAIN} --memory 64MB")), "auc") > 0.95);
}

#[test]
fn threads_and_budget_change_no_bit() {
    let place = Place::with(mixed(60_000).csv());
    let mut first: Option<(Vec<u8>, Value)> = None;
    for options in [
        "--memory 256MB --threads 1",
        "--memory 256MB --threads 2",
        "--memory 256MB --threads 3",
        "--memory 40MB",
    ] {
        let trained = place.json(&format!("{TRAIN} --trees 8 {options}"));
        let found = (place.forest(id(&trained)), trained["report"].clone());
        let first = first.get_or_insert_with(|| found.clone());
        assert_eq!(found.1, first.1, "{options}");
        assert!(found.0 == first.0, "{options}: other trees");
    }
}

#[test]
fn packed_or_as_lines_of_json_it_is_the_same_forest() {
    let rows = mixed(3_000);
    let place = Place::with(rows.csv());
    place.write("data.csv.gz", gzip(&rows.csv()));
    place.write("data.csv.zst", zstd(&rows.csv()));
    let forest = |file: &str, options: &str| {
        let trained = place.json(&format!(
            "train {file} --target y --model boost --trees 5 --memory 96MB {options}"
        ));
        place.forest(id(&trained))
    };
    let plain = forest("data.csv", "");
    assert!(forest("data.csv.gz", "") == plain);
    assert!(forest("data.csv.zst", "") == plain);
    // Lines of JSON have no header: other rows would be held out, and be in other folds. Both files are read in one
    // piece, so that their values are summed up in the same order.
    let mut json = String::new();
    for row in &rows.rows {
        let a = if row[0].is_empty() { "null" } else { &row[0] };
        json.push_str(&format!(
            "{{\"a\": {a}, \"few\": {:?}, \"many\": {:?}, \"truth\": {}, \"day\": {:?}, \"y\": {}}}\n",
            row[1], row[2], row[3], row[4], row[5]
        ));
    }
    place.write("data.jsonl", json);
    let options = "--holdout 0 --ignore many";
    assert!(forest("data.jsonl", options) == forest("data.csv", options));
}

const TREES: u32 = 400;

/// Stops a training while its trees grow: sooner or later, as fast as this machine is.
fn stopped(place: &Place) -> String {
    let mut wait = Duration::from_millis(800);
    for _ in 0..8 {
        let mut child = place.spawn(&format!("{TRAIN} --trees {TREES} --memory 96MB"));
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.lines().any(|line| line.starts_with("plan:")) {
            assert!(
                stderr.read_line(&mut said).unwrap() > 0,
                "the plan is said: {said}"
            );
        }
        std::thread::sleep(wait);
        // It may have ended by now.
        // SAFETY: kill has no memory effects; the child is ours and not yet waited for.
        unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
        stderr.read_to_string(&mut said).unwrap();
        let code = place.finish(child).code;
        match code {
            Some(130) if said.contains("a checkpoint was saved") => {
                return place.json("show last")["id"].as_str().unwrap().to_string();
            }
            Some(130) => wait *= 2,
            Some(0) => wait /= 3,
            code => panic!("{code:?}: {said}"),
        }
    }
    panic!("never stopped while trees grew");
}

#[test]
fn interrupted_killed_and_resumed_it_is_the_same_forest() {
    let place = Place::with(mixed(20_000).csv());
    let whole = place.json(&format!("{TRAIN} --trees {TREES} --memory 96MB"));
    let expected = place.forest(id(&whole));
    let first = stopped(&place);
    assert_eq!(show(&place, &first)["status"], "stopped");
    // What goes on is killed outright, both processes at once.
    let mut child = place.spawn(&format!("resume {first}"));
    wait_for("the resumed run", Duration::from_secs(60), || {
        let run = place.look("show last");
        run["id"] != first.as_str() && run["status"] == "running"
    });
    let second = place.look("show last");
    signal(child.id().cast_signed(), libc::SIGKILL);
    child.wait().unwrap();
    wait_until("the worker goes", || place.processes().is_empty());
    let resumed = place.json(&format!("resume {}", second["id"].as_str().unwrap()));
    assert_eq!(resumed["report"], whole["report"]);
    assert!(place.forest(id(&resumed)) == expected, "other trees");
    // With another number of threads there is nothing else to see.
    let again = place.json(&format!("{TRAIN} --trees {TREES} --memory 96MB --threads 1"));
    assert!(
        place.forest(id(&again)) == expected,
        "other trees with one thread"
    );
}

#[test]
fn several_values_to_tell_apart() {
    let mut random = Random(3);
    let names = ["calm", "breeze", "gale", "storm"];
    let row = |_| {
        let (a, b) = (random.number(), random.number());
        let class = usize::from(a > 0.0) + 2 * usize::from(b > 0.0);
        format!("{a:.4},{b:.4},{}\n", names[class])
    };
    let rows: String = (0..6_000).map(row).collect();
    let place = Place::with(format!("a,b,y\n{rows}"));
    for (kind, least) in [("boost", 0.97), ("linear", 0.90)] {
        let trained = place.json(&format!("train data.csv --target y --model {kind} --memory 96MB"));
        assert!(
            metric(&trained, "accuracy") > least,
            "{kind}: {}",
            trained["report"]["metrics"]
        );
        let mut classes: Vec<&str> = trained["report"]["classes"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        classes.sort_unstable();
        assert_eq!(classes, ["breeze", "calm", "gale", "storm"], "{kind}");
        let predicted = place.ok("predict last data.csv").stdout;
        let right = predicted
            .lines()
            .skip(1)
            .zip(rows.lines())
            .filter(|(predicted, row)| predicted.split(',').nth(1) == row.split(',').nth(2))
            .count();
        assert!(right as f64 > least * 6_000.0, "{kind}: {right} of 6000");
    }
    // Numbers with more than two values are numbers, unless said otherwise.
    let digits = rows
        .replace("calm", "1")
        .replace("breeze", "2")
        .replace("gale", "3")
        .replace("storm", "4");
    place.write("digits.csv", format!("a,b,y\n{digits}"));
    let trained = place.json("train digits.csv --target y --memory 96MB");
    assert_eq!(trained["report"]["metrics"][0]["name"], "rmse");
    let trained = place.json("train digits.csv --target y --task multiclass --memory 96MB");
    assert!(
        metric(&trained, "accuracy") > 0.97,
        "{}",
        trained["report"]["metrics"]
    );
}

/// Sums of squares that a float cannot hold: the model is written, read again and used all the same.
#[test]
fn huge_targets() {
    let mut text = String::from("a,b,y\n");
    let mut random = Random(17);
    for i in 0..2_000 {
        let a = random.number();
        text.push_str(&format!("{a:.4},{},{:e}\n", i % 7, a * 2e18));
    }
    let place = Place::with(text);
    let trained = place.json("train data.csv --target y --model boost --trees 20 --memory 64MB");
    assert!(metric(&trained, "r2") > 0.9, "{}", trained["report"]["metrics"]);
    let predicted = place.ok("predict last data.csv").stdout;
    assert_eq!(predicted.lines().count(), 2_001);
}

/// What a column is worth, seen by shuffling it, takes memory for every class: it is in the plan.
#[test]
fn many_classes_in_a_small_budget() {
    let mut text = String::from("a,b,c,y\n");
    let mut random = Random(23);
    for i in 0..4_000 {
        let (a, b) = (random.number(), random.number());
        text.push_str(&format!("{a:.3},{b:.3},{},k{}\n", i % 5, i % 200));
    }
    let place = Place::with(text);
    let answer =
        place.run("train data.csv --target y --model boost --trees 2 --depth 3 --memory 24MB --json");
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
}

#[test]
fn options_that_trees_do_not_know() {
    let place = Place::with(mixed(500).csv());
    let refused = place.run(&format!("{TRAIN} --memory 64MB --l1 2"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("--l1 is a penalty of linear models"),
        "{}",
        refused.stderr
    );
    place.write("number.csv", Rows::regression(500).csv());
    let refused =
        place.run("train number.csv --target y --model boost --class-weights balanced --memory 64MB");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("this one is a number"),
        "{}",
        refused.stderr
    );
}

/// The model itself has nothing held out to be patient with: it gets as many trees as the folds had use for.
#[test]
fn patience_over_folds() {
    let place = Place::with(mixed(2_000).csv());
    let trained = place.json(&format!(
        "{TRAIN} --memory 64MB --trees 80 --folds 3 --patience 2 --holdout 0"
    ));
    let trees = trained["report"]["epochs"].as_u64().unwrap();
    assert!((1..80).contains(&trees), "{trees} trees");
    let shown = place.ok("show last").stdout;
    assert!(shown.contains("metrics over 3 folds"), "{shown}");
    let explained = place.ok("explain last").stdout;
    assert!(explained.contains(" ± "), "{explained}");
}
