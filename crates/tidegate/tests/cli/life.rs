//! Stopping, killing and taking up again: nothing is lost that was learned, and nothing is left behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::help::{Answer, Place, wait_for, wait_until};
use crate::tables::{Random, Rows};

/// Wider than what is fitted by its full curvature, so that training goes on for as many epochs as asked.
fn wide(place: &Place) {
    let mut random = Random(5);
    let names: Vec<String> = (0..300).map(|i| format!("x{i}")).collect();
    let mut text = format!("{},y\n", names.join(","));
    for _ in 0..3_000 {
        let mut sum = 0.0;
        for column in 0..300 {
            let value = random.number();
            sum += value * f64::from(column % 3 - 1);
            text.push_str(&format!("{value:.2},"));
        }
        text.push_str(if sum > 0.0 { "1\n" } else { "0\n" });
    }
    place.write("data.csv", text);
}

const TRAIN: &str = "train data.csv --target y --memory 96MB";

/// A training that is under way and will not end by itself.
struct Training {
    child: Child,
    parent: i32,
    worker: i32,
    id: String,
}

/// Starts a training and waits for a checkpoint.
fn start(place: &Place, epochs: u32) -> Training {
    let child = place.spawn(&format!("{TRAIN} --epochs {epochs}"));
    let parent = child.id().cast_signed();
    wait_for("the first checkpoint", Duration::from_secs(60), || {
        place.run_ids().iter().any(|id| saved(place, id))
    });
    let run = place.look("show last");
    Training {
        child,
        parent,
        worker: run["worker"]["pid"].as_i64().unwrap() as i32,
        id: run["id"].as_str().unwrap().to_string(),
    }
}

/// Whether a run has a checkpoint.
fn saved(place: &Place, id: &str) -> bool {
    let state = place.home.join("runs").join(id).join("checkpoint/state.json");
    state.exists()
}

fn signal(pid: i32, signal: i32) {
    assert!(pid > 1);
    // SAFETY: kill has no memory effects; the tests signal only processes that they started.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

fn show(place: &Place, id: &str) -> Value {
    place.json(&format!("show {id}"))
}

fn last_line(answer: &Answer) -> &str {
    let lines = answer.stderr.lines().filter(|line| !line.starts_with("  hint"));
    lines.last().unwrap_or_default()
}

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
fn terminated_it_saves_and_says_so() {
    let place = Place::new();
    wide(&place);
    for number in [libc::SIGTERM, libc::SIGHUP] {
        let training = start(&place, 100_000);
        signal(training.parent, number);
        let answer = place.finish(training.child);
        assert_eq!(answer.code, Some(143), "{}", answer.stderr);
        assert_eq!(last_line(&answer), "stopped: terminated; a checkpoint was saved");
        assert_eq!(show(&place, &training.id)["status"], "stopped");
        std::fs::remove_dir_all(&place.home).unwrap();
    }
}

#[test]
fn a_worker_asked_to_stop_by_someone_else_saves_too() {
    let place = Place::new();
    wide(&place);
    let training = start(&place, 100_000);
    signal(training.worker, libc::SIGTERM);
    let answer = place.finish(training.child);
    assert_eq!(answer.code, Some(143), "{}", answer.stderr);
    assert_eq!(show(&place, &training.id)["status"], "stopped");
}

#[test]
fn a_second_interrupt_kills() {
    let place = Place::with(Rows::binary(200_000).csv());
    place.ok("train data.csv --target y --memory 64MB");
    // Nobody reads what it predicts, so it waits in a write and cannot end by itself.
    let mut command = place.command("predict last data.csv");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the worker", || place.processes().len() == 2);
    std::thread::sleep(Duration::from_millis(300));
    let parent = child.id().cast_signed();
    signal(parent, libc::SIGINT);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert_eq!(
        line,
        "stopping: the worker saves what it has; once more to kill it\n"
    );
    let asked = Instant::now();
    signal(parent, libc::SIGINT);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let answer = place.finish(child);
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert_eq!(answer.code, Some(130), "{rest}");
    assert_eq!(
        rest,
        "killing the worker\nstopped: interrupted; it did not end by itself and was killed\n"
    );
}

#[test]
fn a_killed_worker_is_noticed_at_once() {
    let place = Place::new();
    wide(&place);
    let training = start(&place, 100_000);
    let killed = Instant::now();
    signal(training.worker, libc::SIGKILL);
    let answer = place.finish(training.child);
    assert!(
        killed.elapsed() < Duration::from_secs(2),
        "{:?}",
        killed.elapsed()
    );
    assert_eq!(answer.code, Some(1), "{}", answer.stderr);
    assert!(
        last_line(&answer).starts_with("error: killed by signal 9 (SIGKILL)"),
        "{}",
        answer.stderr
    );
    let run = show(&place, &training.id);
    assert_eq!((&run["status"], &run["signal"]), (&"failed".into(), &9.into()));
    assert!(
        run["error"].as_str().unwrap().starts_with("killed by signal 9"),
        "{run}"
    );
    // What it had saved before is still good.
    assert!(
        place
            .home
            .join("runs")
            .join(&training.id)
            .join("checkpoint/state.json")
            .exists()
    );
}

#[test]
fn a_killed_parent_takes_its_worker_with_it() {
    let place = Place::new();
    wide(&place);
    let mut training = start(&place, 100_000);
    signal(training.parent, libc::SIGKILL);
    training.child.wait().unwrap();
    wait_until("the worker goes", || place.processes().is_empty());
    let answer = place.ok("runs");
    let note = format!(
        "note: run {} was found dead and closed: its supervisor was killed or crashed",
        training.id
    );
    assert!(answer.stderr.starts_with(&note), "{}", answer.stderr);
    assert!(answer.stderr.contains("last seen at "), "{}", answer.stderr);
    assert!(answer.stdout.contains("failed"), "{}", answer.stdout);
    let run = show(&place, &training.id);
    assert_eq!(run["status"], "failed");
    assert!(place.ok("runs").stderr.is_empty(), "it is said once");
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
fn parent_and_worker_killed_together() {
    let place = Place::new();
    wide(&place);
    let mut training = start(&place, 100_000);
    signal(training.parent, libc::SIGKILL);
    // The worker may have gone by itself in the meantime.
    // SAFETY: kill has no memory effects; the worker was started by this test.
    unsafe { libc::kill(training.worker, libc::SIGKILL) };
    training.child.wait().unwrap();
    let runs = place.json("runs");
    assert_eq!(
        (&runs[0]["id"], &runs[0]["status"]),
        (&training.id.into(), &"failed".into())
    );
}

#[test]
fn a_table_that_changes_between_epochs_is_noticed() {
    let place = Place::new();
    wide(&place);
    let training = start(&place, 100_000);
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
    place.ok("train data.csv --target y --memory 64MB");
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
