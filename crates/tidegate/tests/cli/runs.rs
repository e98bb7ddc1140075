//! What is remembered: the list, one run, names, and the machine.

use insta::assert_snapshot;
use serde_json::Value;

use crate::help::Place;
use crate::tables::Rows;

const TRAIN: &str = "train data.csv --target y --model linear --memory 64MB";

#[test]
fn a_training_as_a_person_sees_it() {
    let place = Place::with(Rows::binary(500).csv());
    assert_snapshot!(place.run(TRAIN), @r#"
    exit 0
    --- stdout
    trained on 448 rows in [time]: 2 epochs, settled
      on 52 rows held out:
        log loss  0.3220  baseline 0.6908
        AUC  0.9280  baseline 0.5000
        accuracy  0.8462  baseline 0.5577
        F1  0.8261  baseline 0.000
        precision  0.8261  baseline 0.000
        recall  0.8261  baseline 0.000
        Brier score  0.1077  baseline 0.2488
      memory: peak [size] of [size] ([source]), [OOM kills]
      run [run]: tidegate show [run] · tidegate predict [run] DATA
    --- stderr
    memory [size],[held]
    predicting "y": one of two values, by a linear model
      column  role  distinct  missing  encoding  columns  bytes/row  why
      a  numeric  496  number  1  4  scaled by a sample
      b  numeric  490  number  1  4  scaled by a sample
      c  numeric  469  number  1  4  scaled by a sample
    shape: about 500 rows × 3 columns → about 500 × 3 (dense 3, sparse 0), [size] packed
    plan: [size] of [size]: runtime [size] · data buffers [size] · evaluation [size] · pack [size]
    epoch 1/5 in [time]: training loss 0.6931
    epoch 2/5 in [time]: training loss 0.2502 · log loss 0.3220 · AUC 0.9280
    "#);
}

#[test]
fn a_regression_as_a_person_sees_it() {
    let place = Place::with(Rows::regression(500).csv());
    assert_snapshot!(place.run(TRAIN), @r#"
    exit 0
    --- stdout
    trained on 448 rows in [time]: 2 epochs, settled
      on 52 rows held out:
        RMSE  0.8439  baseline 2.307
        R²  0.8662  baseline -6.635e-6
        MAE  0.7456  baseline 1.856
        MAPE  0.07932  baseline 0.2032
      memory: peak [size] of [size] ([source]), [OOM kills]
      run [run]: tidegate show [run] · tidegate predict [run] DATA
    --- stderr
    memory [size],[held]
    predicting "y": a number, by a linear model
      column  role  distinct  missing  encoding  columns  bytes/row  why
      a  numeric  496  number  1  4  scaled by a sample
      b  numeric  490  number  1  4  scaled by a sample
      c  numeric  469  number  1  4  scaled by a sample
    shape: about 500 rows × 3 columns → about 500 × 3 (dense 3, sparse 0), [size] packed
    plan: [size] of [size]: runtime [size] · data buffers [size] · pack [size]
    epoch 1/5 in [time]: training loss 0.5107
    epoch 2/5 in [time]: training loss 0.06185 · RMSE 0.8439 · R² 0.8662
    "#);
}

#[test]
fn nothing_held_out() {
    let place = Place::with(Rows::binary(500).csv());
    let answer = place.ok(&format!("{TRAIN} --holdout 0"));
    let shown = answer.to_string();
    assert_snapshot!(shown.split("--- stderr").next().unwrap(), @r"
    exit 0
    --- stdout
    trained on 500 rows in [time]: 2 epochs, settled
      no rows were held out: the training loss is 0.2570
      memory: peak [size] of [size] ([source]), [OOM kills]
      run [run]: tidegate show [run] · tidegate predict [run] DATA
    ");
    assert_eq!(
        place.json("show last")["report"]["metrics"],
        Value::Array(Vec::new())
    );
    let shown = place.ok("show last").stdout;
    assert!(!shown.contains("metrics on"), "{shown}");
}

#[test]
fn no_runs_yet() {
    let place = Place::new();
    assert_snapshot!(place.run("runs"), @r"
    exit 0
    --- stdout
    no runs yet in [dir]/home: tidegate train DATA --target COLUMN, or tidegate demo
    ");
    assert_eq!(place.json("runs"), Value::Array(Vec::new()));
    assert_snapshot!(place.run("show last").error(), @r#"
    exit 2
    error: no run is called "last"
      hint: this home has no runs yet
    "#);
}

#[test]
fn runs_are_listed_newest_first() {
    let place = Place::with(Rows::binary(500).csv());
    place.ok(&format!("{TRAIN} --name first"));
    assert_eq!(
        place
            .run("train data.csv --target nope --memory 64MB --name second")
            .code,
        Some(2)
    );
    place.ok(&format!("{TRAIN} --name third"));
    assert_snapshot!(place.run("runs"), @r"
    exit 0
    --- stdout
    RUN  NAME  STATUS  MODEL  METRIC  PEAK OF BUDGET  PLAN OFF  TOOK  STARTED
    [run]  third  done  linear  log loss 0.3220  [size] of [size]  [off]  [time]  just now
    [run]  second  failed  auto  -  [size] of [size]  -  [time]  just now
    [run]  first  done  linear  log loss 0.3220  [size] of [size]  [off]  [time]  just now
    ");
    let runs = place.json("runs");
    let field = |name: &str| {
        runs.as_array()
            .unwrap()
            .iter()
            .map(|run| run[name].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(field("name"), ["third", "second", "first"]);
    assert_eq!(field("status"), ["done", "failed", "done"]);
    assert_eq!(field("budget_bytes"), [64_000_000; 3]);
    assert_eq!(place.json("runs --limit 1").as_array().unwrap().len(), 1);
}

#[test]
fn a_run_is_found_by_what_a_person_types() {
    let place = Place::with(Rows::binary(500).csv());
    for name in ["flights-v1", "flights-v2", "boats"] {
        place.ok(&format!("{TRAIN} --name {name}"));
    }
    let found = |reference: &str| {
        place.json(&format!("show {reference}"))["name"]
            .as_str()
            .unwrap()
            .to_string()
    };
    assert_eq!(found("boats"), "boats");
    assert_eq!(found("boat"), "boats");
    assert_eq!(found("last"), "boats");
    assert_eq!(found("flights-v1"), "flights-v1");
    let id = place.json("show boats")["id"].as_str().unwrap().to_string();
    assert_eq!(found(&id), "boats");
    assert_eq!(found(&id[..6]), "boats");
    assert_eq!(place.run("show flights").code, Some(2));
    // The candidates come with their identifiers.
    assert_snapshot!(place.run("show flights").error(), @r#"
    exit 2
    error: "flights" fits 2 runs: [run] (flights-v2), [run] (flights-v1)
      hint: write more of it
    "#);
    assert_snapshot!(place.run("show planes").error(), @r#"
    exit 2
    error: no run is called "planes"
      hint: `tidegate runs` lists them; `last` is the newest
    "#);
    // The newest of a name.
    place.ok(&format!("{TRAIN} --name boats --seed 2"));
    assert_ne!(place.json("show boats")["id"], id.as_str());
}

#[test]
fn one_run_shown() {
    let place = Place::with(Rows::binary(500).csv());
    place.ok(&format!("{TRAIN} --name shown"));
    let text = place.ok("show shown").to_string();
    // The moment and the machine's bound are not the same twice.
    let stays = |line: &&str| {
        !line.starts_with("  started ") && !line.starts_with("  budget ") && !line.starts_with("  held by ")
    };
    assert_snapshot!(text.lines().filter(stays).collect::<Vec<_>>().join("\n"), @r"
    exit 0
    --- stdout
    run [run] (shown): done after [time]
      data  [dir]/data.csv ([size])
      target  y
      model  linear
      rows  500
      planned  [size], between [size] and [size]; [off] against the peak
      peak  [size] of [size] ([source])
      resident peak  [size]
      OOM kills  [OOM kills]
      exit code  0
      folder  [dir]/home/runs/[run]
      MEMORY  PLANNED  AT THE PEAK
      runtime  [size]  -
      columns  [size]  [size]
      data buffers  [size]  [size]
      model  [size]  [size]
      evaluation  [size]  [size]
      pack  [size]  [size]
      together  [size]  [size]
    metrics on 52 rows held out:
      log loss  0.3220  baseline 0.6908
      AUC  0.9280  baseline 0.5000
      accuracy  0.8462  baseline 0.5577
      F1  0.8261  baseline 0.000
      precision  0.8261  baseline 0.000
      recall  0.8261  baseline 0.000
      Brier score  0.1077  baseline 0.2488
    what it relies on, see tidegate explain [run]:
      COLUMN  ENCODING  IMPORTANCE  LARGEST WEIGHT
      a  number  ████████████████  52.0%  +2.969
      b  number  █████████████▉  45.0%  -2.567
      c  number  ▉  3.0%  +0.1721
    epoch 1: training loss 0.6931
    epoch 2: training loss 0.2502 · log loss 0.3220 · AUC 0.9280 · accuracy 0.8462 · F1 0.8261 · precision 0.8261 · recall 0.8261 · Brier score 0.1077
    ");
    let run = place.json("show shown");
    assert_eq!(run["status"], "done");
    assert_eq!(run["rows"], 500);
    assert_eq!(run["data"], place.path("data.csv").display().to_string());
    assert_eq!(run["report"]["metrics"][0]["name"], "log_loss");
    assert_eq!(run["metric_value"], run["report"]["metrics"][0]["value"]);
    assert!(run["job"].as_str().unwrap().contains("target = \"y\""));
    for figure in [
        "peak_bytes",
        "resident_peak_bytes",
        "needs_bytes",
        "budget_bytes",
        "created_ms",
        "ended_ms",
    ] {
        assert!(run[figure].as_u64().is_some(), "{figure} in {run}");
    }
}

#[test]
fn a_failed_run_tells_why() {
    let place = Place::with(Rows::binary(500).csv() + "1,2\n");
    assert_eq!(place.run(&format!("{TRAIN} --name broken")).code, Some(1));
    let run = place.json("show broken");
    assert_eq!(run["status"], "failed");
    assert!(
        run["error"]
            .as_str()
            .unwrap()
            .ends_with("data.csv:502: 2 fields where the table has 4 columns")
    );
    assert!(run["hint"].as_str().unwrap().contains("--bad-rows skip"));
    let shown = place.ok("show broken").stdout;
    assert!(shown.contains("data.csv:502: 2 fields"), "{shown}");
    assert_snapshot!(place.run("predict broken data.csv").error(), @r"
    exit 2
    error: run [run] has no model: it failed
      hint: see `tidegate show [run]`
    ");
}

#[test]
fn the_doctor_says_what_the_machine_allows() {
    let place = Place::new();
    let found = place.json("doctor");
    assert!(found["budget"]["bytes"].as_u64().unwrap() > 0);
    assert!(found["budget"]["bound"]["name"].as_str().is_some());
    assert!(found["budget"]["bounds"].as_array().unwrap().len() > 2);
    assert!(found["enforced"].is_boolean());
    assert!(found["free_bytes"].as_u64().is_some());
    assert!(found["cores"].as_u64().unwrap() > 0);
    let shown = place.ok("doctor").stdout;
    for word in [
        "a job may use ",
        "bound by ",
        "the line",
        "swap",
        "memory pressure",
        "disk",
    ] {
        assert!(shown.contains(word), "{word:?} in {shown}");
    }
    assert_eq!(
        std::fs::read_dir(place.path(".")).unwrap().count(),
        0,
        "nothing is left"
    );
    assert_snapshot!(place.run("doctor absent").error(), @r"
    exit 2
    error: absent: no such folder
      hint: name a folder whose disk is to be looked at
    ");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::with(Rows::binary(500).csv());
    place.ok(TRAIN);
    for arguments in ["runs", "show last", "runs --json", "doctor", "--help"] {
        let mut command = place.command(arguments);
        let mut child = command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let answer = place.finish(child);
        assert_eq!(
            (answer.code, answer.stderr.as_str()),
            (Some(0), ""),
            "{arguments}"
        );
    }
}

/// A run of ours is explained by what its worker said.
#[test]
fn why_a_training_failed_is_told_in_its_own_words() {
    let place = Place::with("x,y\n1,2\n2,oops\n");
    let answer = place.run("train data.csv --target y --task regression --memory 64MB");
    assert_ne!(answer.code, Some(0), "{}", answer.stderr);
    let verdict = place.json("why")["verdict"].clone();
    assert_eq!(
        (verdict["grade"].as_str(), verdict["cause"].as_str()),
        (Some("proven"), Some("failed")),
        "{verdict}"
    );
    assert!(
        verdict["sentence"].as_str().unwrap().contains("oops"),
        "{verdict}"
    );
    let text = place.ok("why").stdout;
    assert!(
        text.contains("train data.csv --target y") && !text.contains("--events-fd"),
        "{text}"
    );
}
