//! Taking up what was stopped: it ends as if nothing had happened.

use std::io::{BufRead, BufReader, Read, Write};
use std::time::Duration;

use serde_json::Value;

use crate::help::{Place, wait_for, wait_until};
use crate::tables::{Random, Rows};
use crate::training::{TRAIN, last_line, show, signal, start, start_with, wide};

#[test]
fn interrupted_and_resumed_it_ends_as_if_nothing_had_happened() {
    let place = Place::new();
    wide(&place);
    let epochs = 60;
    let whole = place.json(&format!("{TRAIN} --epochs {epochs}"));
    let expected = place.weights(whole["run"]["id"].as_str().unwrap());

    let training = start(&place, epochs);
    signal(training.parent, libc::SIGINT);
    let answer = place.finish(training.child);
    assert_eq!(answer.code, Some(130), "{}", answer.stderr);
    assert_eq!(last_line(&answer), "stopped: interrupted; a checkpoint was saved");
    assert!(
        answer
            .stderr
            .contains(&format!("hint: go on with `tidegate resume {}`", training.id))
    );
    let run = show(&place, &training.id);
    assert_eq!(run["status"], "stopped");
    assert!(run["peak_bytes"].as_u64().is_some());
    let why = place.json("why last");
    assert_eq!(
        (&why["verdict"]["cause"], &why["verdict"]["grade"]),
        (&"stopped".into(), &"proven".into()),
        "{why}"
    );

    let resumed = place.json("resume last");
    assert_eq!(resumed["report"]["epochs"], epochs);
    assert_eq!(
        resumed["report"], whole["report"],
        "the same figures to the last digit"
    );
    assert!(
        place.weights(resumed["run"]["id"].as_str().unwrap()) == expected,
        "other weights"
    );
}

#[test]
fn interrupted_inside_the_first_epoch() {
    // 250 columns are fitted by their full curvature: every block counts, and an epoch takes a while.
    let place = Place::new();
    let mut random = Random(9);
    let names: Vec<String> = (0..250).map(|i| format!("x{i}")).collect();
    let mut text = format!("{},y\n", names.join(","));
    for row in 0..12_000 {
        (0..250).for_each(|_| text.push_str(&format!("{:.2},", random.number())));
        text.push_str(&format!("{}\n", (row ^ (random.next() as i32)) & 1));
    }
    place.write("data.csv", text);
    let whole = place.json(&format!("{TRAIN} --threads 2"));
    let expected = place.weights(whole["run"]["id"].as_str().unwrap());

    let mut child = place.spawn(&format!("{TRAIN} --threads 2"));
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("plan:") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "the plan is said");
    }
    signal(child.id().cast_signed(), libc::SIGINT);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    let stopped = show(&place, "last");
    assert_eq!(
        stopped["metrics"].as_array().unwrap().len(),
        0,
        "no epoch was over"
    );

    // With other threads, which make no difference.
    let resumed = place.json("resume last");
    assert_eq!(resumed["report"], whole["report"]);
    assert!(
        place.weights(resumed["run"]["id"].as_str().unwrap()) == expected,
        "other weights"
    );
}

#[test]
fn interrupted_twice_over_it_still_ends_the_same() {
    let place = Place::new();
    wide(&place);
    let epochs = 40;
    let whole = place.json(&format!("{TRAIN} --epochs {epochs}"));
    let training = start(&place, epochs);
    signal(training.parent, libc::SIGINT);
    place.finish(training.child);
    let child = place.spawn("resume last");
    // The second part is stopped as soon as it is there, whatever it has done by then.
    wait_for("the resumed run", Duration::from_secs(60), || {
        let run = place.look("show last");
        run["id"] != training.id.as_str() && run["status"] != "starting"
    });
    signal(child.id().cast_signed(), libc::SIGINT);
    let code = place.finish(child).code;
    assert!(code == Some(130) || code == Some(0), "{code:?}");
    let last = match code {
        Some(130) => place.json("resume last")["run"]["id"].clone(),
        _ => show(&place, "last")["id"].clone(),
    };
    let expected = place.weights(whole["run"]["id"].as_str().unwrap());
    assert!(place.weights(last.as_str().unwrap()) == expected, "other weights");
}

#[test]
fn a_killed_parent_loses_nothing_that_was_saved() {
    let place = Place::new();
    wide(&place);
    let epochs = 60;
    let whole = place.json(&format!("{TRAIN} --epochs {epochs}"));
    let mut training = start(&place, epochs);
    signal(training.parent, libc::SIGKILL);
    training.child.wait().unwrap();
    wait_until("the worker goes", || place.processes().is_empty());
    let resumed = place.json(&format!("resume {}", training.id));
    assert_eq!(resumed["report"], whole["report"]);
    let weights = |trained: &Value| place.weights(trained["run"]["id"].as_str().unwrap());
    assert!(weights(&resumed) == weights(&whole), "other weights");
}

#[test]
fn a_table_that_changes_between_epochs_is_noticed() {
    let place = Place::new();
    wide(&place);
    // Without a pack every epoch reads the table.
    let training = start_with(&place, "--epochs 100000 --no-pack");
    let row = vec!["0.5"; 300].join(",") + ",1\n";
    let mut table = std::fs::OpenOptions::new()
        .append(true)
        .open(place.path("data.csv"))
        .unwrap();
    table.write_all(row.as_bytes()).unwrap();
    insta::assert_snapshot!(place.finish(training.child).error(), @r"
    exit 1
    error: [dir]/data.csv: changed while it was being read
      hint: train on a copy, or wait until the file is complete
    ");
    assert_eq!(show(&place, &training.id)["status"], "failed");
}

#[test]
fn what_is_done_is_not_taken_up() {
    let place = Place::with(Rows::binary(200).csv());
    place.ok("train data.csv --target y --model linear --memory 64MB");
    insta::assert_snapshot!(place.run("resume last").error(), @r"
    exit 2
    error: run [run] is done
      hint: a run that was stopped or failed can be taken up
    ");
}

#[test]
fn there_is_nothing_to_resume() {
    let place = Place::with(Rows::binary(200).csv());
    insta::assert_snapshot!(place.run("resume last").error(), @r#"
    exit 2
    error: no run is called "last"
      hint: this home has no runs yet
    "#);
    insta::assert_snapshot!(place.run("resume nothing").error(), @r#"
    exit 2
    error: no run is called "nothing"
      hint: this home has no runs yet
    "#);
    // The worker refuses before it has learned anything.
    assert_eq!(place.run("train data.csv --target nope").code, Some(2));
    insta::assert_snapshot!(place.run("resume last").error(), @r"
    exit 2
    error: run [run] left no checkpoint
      hint: start a new training
    ");
}
