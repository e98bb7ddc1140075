//! A training that goes on until it is stopped, and what can be done to it.

use std::process::Child;
use std::time::Duration;

use serde_json::Value;

use crate::help::{Answer, Place, wait_for};
use crate::tables::Random;

/// Wider than what is fitted by its full curvature, so that training goes on for as many epochs as asked.
pub(crate) fn wide(place: &Place) {
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

pub(crate) const TRAIN: &str = "train data.csv --target y --model linear --memory 96MB";

/// A training that is under way and will not end by itself.
pub(crate) struct Training {
    pub(crate) child: Child,
    pub(crate) parent: i32,
    pub(crate) worker: i32,
    pub(crate) id: String,
}

/// Starts a training and waits for a checkpoint.
pub(crate) fn start(place: &Place, epochs: u32) -> Training {
    start_with(place, &format!("--epochs {epochs}"))
}

pub(crate) fn start_with(place: &Place, options: &str) -> Training {
    start_command(place, &format!("{TRAIN} {options}"))
}

pub(crate) fn start_command(place: &Place, command: &str) -> Training {
    let child = place.spawn(command);
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

pub(crate) fn signal(pid: i32, signal: i32) {
    assert!(pid > 1);
    // SAFETY: kill has no memory effects; the tests signal only processes that they started.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

pub(crate) fn show(place: &Place, id: &str) -> Value {
    place.json(&format!("show {id}"))
}

pub(crate) fn last_line(answer: &Answer) -> &str {
    let mut lines = answer.stderr.lines().filter(|line| !line.starts_with("  hint"));
    lines.next_back().unwrap_or_default()
}
