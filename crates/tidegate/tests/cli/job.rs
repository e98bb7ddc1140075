//! Job files: everything said in one place, and kept with the run.

use insta::assert_snapshot;

use crate::help::Place;
use crate::tables::Rows;

const JOB: &str = r#"
memory = "64MB"
name = "from-file"

[data]
path = "data.csv"
target = "y"
holdout = 0.2

[model]
kind = "linear"
task = "binary"
l2 = 0.5

[train]
seed = 11
epochs = 3
threads = 2
"#;

#[test]
fn a_job_file_says_it_all() {
    let place = Place::with(Rows::binary(2_000).csv());
    place.write("job.toml", JOB);
    let by_file = place.json("train job.toml");
    assert_eq!(by_file["run"]["name"], "from-file");
    assert_eq!(by_file["run"]["budget_bytes"], 64_000_000);
    let by_options = place.json(
        "train data.csv --target y --model linear --memory 64MB --holdout 0.2 --task binary --l2 0.5 --seed 11 --epochs 3 --threads 2",
    );
    assert_eq!(by_file["report"], by_options["report"]);
    let weights = |trained: &serde_json::Value| place.weights(trained["run"]["id"].as_str().unwrap());
    assert!(weights(&by_file) == weights(&by_options));
}

#[test]
fn what_was_kept_trains_the_same_again() {
    let place = Place::with(Rows::binary(2_000).csv());
    let first = place.json("train data.csv --target y --model linear --memory 64MB --seed 3 --missing none");
    let id = first["run"]["id"].as_str().unwrap().to_string();
    let again = place.json(&format!("train home/runs/{id}/job.toml"));
    assert_eq!(first["report"], again["report"]);
    assert!(place.weights(&id) == place.weights(again["run"]["id"].as_str().unwrap()));
}

#[test]
fn options_override_the_file() {
    let place = Place::with(Rows::binary(2_000).csv());
    place.write("job.toml", JOB);
    let trained = place.json("train job.toml --memory 80MB --name other --holdout 0 --epochs 2");
    assert_eq!(trained["run"]["name"], "other");
    assert_eq!(trained["run"]["budget_bytes"], 80_000_000);
    assert_eq!(trained["report"]["rows"]["held_out"], 0);
}

#[test]
fn paths_are_from_the_folder_of_the_file() {
    let place = Place::new();
    std::fs::create_dir(place.path("jobs")).unwrap();
    place.write("jobs/data.csv", Rows::binary(500).csv());
    place.write("jobs/job.toml", JOB);
    place.ok("train jobs/job.toml");
}

#[test]
fn mistakes_are_named_with_their_line() {
    let place = Place::with(Rows::binary(500).csv());
    let check = |text: &str| {
        place.write("job.toml", text);
        place.run("train job.toml").error()
    };
    assert_snapshot!(check(&JOB.replace("holdout", "hold_out")), @r"
    exit 2
    error: job.toml: line 8: unknown field `hold_out`, expected one of `path`, `target`, `holdout`, `validation`, `samples`, `map`, `keep`, `delimiter`, `quote`, `header`, `bad_rows`, `missing`, `query`, `where`, `sample`, `columns`, `ignore`, `below`
      hint: the README shows a job file
    ");
    assert_snapshot!(check(&JOB.replace("\"64MB\"", "\"64 hats\"")), @r"
    exit 2
    error: job.toml: line 2: `64 hats` is not an amount of memory: `hats` is not a unit (write `2GB`, `1.5GiB`, `512M` or `80%`)
      hint: the README shows a job file
    ");
    assert_snapshot!(check(&JOB.replace("epochs = 3", "epochs = \"three\"")), @r#"
    exit 2
    error: job.toml: line 17: invalid type: string "three", expected u32
      hint: the README shows a job file
    "#);
    assert_snapshot!(check(&JOB.replace("target = \"y\"", "")), @r"
    exit 2
    error: which column is to be predicted?
      hint: say --target COLUMN; the columns are a, b, c, y
    ");
    assert_snapshot!(check("this is not a job"), @r"
    exit 2
    error: job.toml: line 1: key with no value, expected `=`
      hint: the README shows a job file
    ");
    assert_snapshot!(check(&JOB.replace("data.csv", "absent.csv")), @r"
    exit 2
    error: absent.csv: no such file
      hint: check the path
    ");
    assert_snapshot!(check(&JOB.replace("0.2", "1.5")), @r"
    exit 2
    error: --holdout 1.5 is not a share of the rows
      hint: 0 holds out nothing, 0.1 every tenth row
    ");
    assert_snapshot!(check(""), @r"
    exit 2
    error: job.toml: line 1: missing field `data`
      hint: the README shows a job file
    ");
    assert_snapshot!(place.run("train absent.toml").error(), @r"
    exit 2
    error: absent.toml: no such file
      hint: check the path
    ");
}

#[test]
fn what_is_said_of_columns_is_checked_before_data_is_read() {
    let place = Place::with(Rows::binary(500).csv());
    let check = |said: &str| {
        place.write("job.toml", format!("{JOB}\n[features]\na = {{ {said} }}\n"));
        place.run("train job.toml").error()
    };
    assert_snapshot!(check("encode = \"tokens\", weight = \"tfidf\", bits = 45"), @r#"
    exit 2
    error: column "a" in [features]: bits = 45 is out of range
      hint: give 1 to 31; 18 is usual
    "#);
    assert_snapshot!(check("clip = [nan, nan]"), @r#"
    exit 2
    error: column "a" in [features]: clip = [NaN, NaN] is out of range
      hint: give two numbers, the lower one first
    "#);
    assert_snapshot!(check("role = \"numeric\", encode = \"hash\""), @r#"
    exit 2
    error: column "a" in [features]: encode = "hash" does not go with role = "numeric"
      hint: leave the role out, or give role = "category"
    "#);
    assert_snapshot!(check("words = 0"), @r#"
    exit 2
    error: column "a" in [features]: words = 0 is out of range
      hint: give 1 or more
    "#);
}
