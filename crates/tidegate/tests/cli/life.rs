//! Stopping and killing: it is noticed at once, said plainly, and nothing is left behind.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::help::{Place, wait_until};
use crate::tables::Rows;
use crate::training::{last_line, show, signal, start, wide};

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
    place.ok("train data.csv --target y --model linear --memory 64MB");
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
