//! Networks over tables: rows become samples once, and are learned from in any order.

use serde_json::Value;

use crate::help::Place;
use crate::tables::Random;
use crate::training::{signal, start_command};

/// A target that only pairs of columns tell: no line does. With a column of many categories and one of texts.
fn table(n: usize) -> String {
    let mut random = Random(11);
    let mut text = String::from("a,b,kind,shop,words,y\n");
    for _ in 0..n {
        let (a, b) = (random.number(), random.number());
        let [kind, shop, word] = [3, 700, 40].map(|n| (random.next() >> 33) % n);
        let up = (a * b > 0.0) ^ (kind == 2) ^ (word == 7);
        let noise = (random.next() >> 33).is_multiple_of(20);
        let more = ["far", "near", "away"][(word % 3) as usize];
        let words = format!(
            "some word{word} and {more} things of {} to read",
            random.next() >> 40
        );
        text += &format!(
            "{a:.3},{b:.3},k{kind},shop {shop},{words},{}\n",
            u8::from(up ^ noise)
        );
    }
    text
}

const TRAIN: &str = "train data.csv --target y --model mlp --epochs 5 --learning-rate 0.003";

fn metric(report: &Value, name: &str) -> f64 {
    let metrics = report["metrics"].as_array().unwrap();
    let metric = metrics.iter().find(|metric| metric["name"] == name).unwrap();
    metric["value"].as_f64().unwrap()
}

#[test]
fn a_network_learns_what_no_line_tells_and_predicts_the_rows_that_it_judged() {
    let place = Place::with(table(6_000));
    let linear = place.json("train data.csv --target y --model linear --memory 60MB");
    assert!(metric(&linear["report"], "auc") < 0.7, "{linear}");
    let trained = place.json(&format!("{TRAIN} --memory 60MB"));
    let (run, report) = (&trained["run"], &trained["report"]);
    assert!(metric(report, "auc") > 0.87, "{report}");
    assert!(run["peak_bytes"].as_u64().unwrap() <= 60_000_000, "{run}");
    assert_eq!(report["rows"]["used"], 6_000);
    let (data, answer) = (table(6_000), place.ok("predict last data.csv"));
    let both = answer.stdout.lines().zip(data.lines()).skip(1);
    let right = both.filter(|(predicted, row)| predicted.split(',').nth(1) == row.rsplit(',').next());
    assert!(right.count() > 5_200, "{report}");
    assert!(
        place
            .ok("explain last")
            .stdout
            .starts_with("y, 0 or 1, by a network")
    );
}

#[test]
fn the_same_network_comes_of_any_budget_threads_and_of_the_pack() {
    let place = Place::with(table(3_000));
    let weights = |options: &str| {
        let trained = place.json(&format!("{TRAIN} {options}"));
        place.weights(trained["run"]["id"].as_str().unwrap())
    };
    let expected = weights("--memory 60MB --threads 1");
    assert_eq!(place.run("packs --json").stdout.matches("\"samples\"").count(), 2);
    assert!(
        expected == weights("--memory 60MB --threads 2"),
        "from the pack, on two threads"
    );
    let packs = || place.look("packs")["packs"].as_array().unwrap().len();
    assert!(
        expected == weights("--memory 200MB --no-pack"),
        "without a pack that stays"
    );
    assert_eq!(packs(), 2, "those of others stay");
    place.ok("packs --prune --all");
    assert!(expected == weights("--memory 200MB --no-pack"));
    assert_eq!(packs(), 0);
}

#[test]
fn stopped_and_resumed_a_network_over_a_table_ends_at_the_same_weights() {
    let place = Place::with(table(6_000));
    let command = format!("{TRAIN} --memory 60MB --batch 4");
    let training = start_command(&place, &command);
    signal(training.parent, libc::SIGINT);
    assert_eq!(place.finish(training.child).code, Some(130));
    let resumed = place.json("resume last");
    let whole = place.json(&command);
    assert_eq!(resumed["report"], whole["report"]);
    let weights = |trained: &Value| place.weights(trained["run"]["id"].as_str().unwrap());
    assert!(weights(&resumed) == weights(&whole), "other weights");
}

#[test]
fn folds_and_early_stops_are_for_networks_too() {
    let place = Place::with(table(1_500));
    let folds = place.json(&format!("{TRAIN} --folds 3 --memory 60MB"));
    assert_eq!(folds["report"]["folds"].as_array().unwrap().len(), 3);
    let patient =
        place.json("train data.csv --target y --model mlp --epochs 60 --patience 2 --learning-rate 0.02");
    assert!(patient["report"]["early_stop"]["best_epoch"].as_u64().unwrap() < 58);
}

#[test]
fn numbers_and_classes_are_predicted_by_networks_of_one_s_own() {
    let mut random = Random(5);
    let mut rows = String::from("a,b,size,colour\n");
    for _ in 0..3_000 {
        let (a, b) = (random.number(), random.number());
        let colour = ["red", "green", "blue"][usize::from(a > 0.3) + usize::from(a > 0.3 && b > 0.0)];
        rows += &format!("{a:.3},{b:.3},{:.3},{colour}\n", 1.7e9 + 30.0 * a * b);
    }
    let place = Place::with(rows);
    let job = |target: &str, other: &str| {
        format!(
            "memory = \"60MB\"\n[data]\npath = \"data.csv\"\ntarget = \"{target}\"\nignore = [\"{other}\"]\n[model]\n\
             layers = [{{ dense = 40, activation = \"gelu\" }}, \"batch_norm\"]\nlearning_rate = 0.01\n\
             [train]\nepochs = 12\nbatch = 64\n"
        )
    };
    place.write("job.toml", job("size", "colour"));
    // Far from zero: floats of 32 bits would tell such numbers apart by the hundred.
    let size = place.json("train job.toml");
    assert!(metric(&size["report"], "r2") > 0.9, "{}", size["report"]);
    let predicted = place.ok("predict last data.csv").stdout;
    let first: f64 = predicted
        .lines()
        .nth(1)
        .unwrap()
        .split(',')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    assert!((first - 1.7e9).abs() < 60.0, "{first}");
    // From the pack, where nobody counts rows again.
    let again = place.json("train job.toml");
    assert_eq!(again["report"], size["report"]);
    place.write("job.toml", job("colour", "size"));
    let colour = place.json("train job.toml");
    assert!(
        metric(&colour["report"], "accuracy") > 0.9,
        "{}",
        colour["report"]
    );
    let answer = place.ok("predict last data.csv");
    assert!(
        answer
            .stdout
            .starts_with("line,prediction,probability,probability_blue,probability_green,probability_red\n"),
        "{}",
        &answer.stdout[..200]
    );
}

#[test]
fn what_a_network_cannot_make_of_a_table_is_said() {
    let place = Place::with(table(9_000));
    insta::assert_snapshot!(place.run("train data.csv --target y --model cnn").error(), @r"
    exit 2
    error: cnn is for arrays of images, and the data are a table
      hint: give --model mlp, or list layers in a job file
    ");
    insta::assert_snapshot!(place.run("train data.csv --target y --model mlp --validation data.csv").error(), @r"
    exit 2
    error: --validation is for arrays, and the data are a table
      hint: judge it by --holdout or --folds
    ");
    insta::assert_snapshot!(place.run("train data.csv --target y --model mlp --patience 2 --holdout 0").error(), @r"
    exit 2
    error: --patience needs rows to judge by
      hint: hold some out: --holdout 0.1
    ");
    let refused = |columns: &str, layers: &str| {
        place.write(
            "job.toml",
            format!("[data]\npath = \"data.csv\"\ntarget = \"y\"\ncolumns = [{columns}]\n[model]\nlayers = [{layers}]\n"),
        );
        place.run("train job.toml").error()
    };
    insta::assert_snapshot!(refused("\"a\", \"b\"", "{ sparse = 8, places = 9, pairs = 1 }"), @r"
    exit 2
    error: layer 0 sparse gets 2 and needs the columns of a table that has sparse ones, as its first layer
    ");
    let twice = "{ dense = 8, activation = \"relu\", name = \"columns\" }";
    insta::assert_snapshot!(refused("\"a\", \"kind\"", twice), @r"
    exit 2
    error: layer columns gets the name of another layer and needs one of its own
    ");
    let small = place
        .run("train data.csv --target y --model mlp --batch 9000 --memory 28MB")
        .error();
    assert!(
        small.starts_with("exit 2\nerror: this job needs") && small.contains("activations"),
        "{small}"
    );
    assert!(small.contains("is the least that would do"), "{small}");
    place.write(
        "job.toml",
        "[data]\npath = \"data.csv\"\ntarget = \"y\"\n[model]\nlayers = [{ dense = 8 }, { sparse = 4 }]\n",
    );
    insta::assert_snapshot!(place.run("train job.toml").error(), @r"
    exit 2
    error: layer 1 sparse gets 8 and needs the columns of a table that has sparse ones, as its first layer
    ");
}
