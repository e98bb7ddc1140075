//! What `tidegate run` passes on: output to the last byte and in its order, signals to who can use them, input once more.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use crate::help::Place;

/// Grows by half a megabyte at a time, slowly enough to be seen.
const GROWS: &str =
    "x=$(head -c 500000 /dev/zero | tr '\\0' a); i=0; while :; do y[i]=$x; i=$((i+1)); sleep 0.04; done";

fn is_confined(place: &Place) -> bool {
    let confined = place.json("doctor")["enforced"].as_bool().unwrap();
    if !confined {
        eprintln!("skipped: this machine gives no cgroup to make");
    }
    confined
}

#[test]
fn a_slow_reader_gets_every_byte() {
    let place = Place::new();
    let script = "head -c 65536 /dev/zero; head -c 65536 /dev/zero; head -c 65000 /dev/zero; exit 3";
    let mut child = place
        .command_of(["run", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    // Longer than anybody waits for a job that says nothing more.
    std::thread::sleep(Duration::from_millis(1_500));
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 2 * 65_536 + 65_000);
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn output_and_errors_that_go_to_one_place_keep_their_order() {
    let place = Place::new();
    let script = "i=0; while [ $i -lt 300 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done";
    let file = std::fs::File::create(place.path("both.txt")).unwrap();
    let status = place
        .command_of(["run", "--", "sh", "-c", script])
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .status()
        .unwrap();
    assert!(status.success());
    let expected: String = (0..300).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert!(place.read("both.txt") == expected, "{}", place.read("both.txt"));
}

#[test]
fn processes_that_are_left_behind_are_ended_and_told() {
    let place = Place::new();
    let answer = place.run_words(&["run", "--", "sh", "-c", "sleep 100 & echo early"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "early\n"));
    assert_eq!(
        answer.stderr,
        "tidegate: ended 1 process that it had left behind\n"
    );
    assert!(place.processes().is_empty());
}

/// Near the line whoever is prepared gets the signal, once, and can save; a shell around it does not die of it.
#[test]
fn near_the_line_a_job_can_save() {
    let place = Place::new();
    if !is_confined(&place) {
        return;
    }
    place.write("job.sh", format!("trap 'echo saved; exit 5' USR1; {GROWS}"));
    let words = [
        "run",
        "--memory",
        "40MB",
        "--before-kill",
        "USR1",
        "--",
        "sh",
        "-c",
    ];
    let answer = place.run_words(&[&words[..], &["bash job.sh; echo ended $?"]].concat());
    assert_eq!(answer.stdout, "saved\nended 5\n", "{}", answer.stderr);
    assert!(answer.stderr.contains("near the line"), "{}", answer.stderr);
}

/// One that is not prepared would die of the signal and save nothing.
#[test]
fn a_signal_that_nobody_is_prepared_for_is_not_sent() {
    let place = Place::new();
    if !is_confined(&place) {
        return;
    }
    let words = [
        "run",
        "--memory",
        "40MB",
        "--before-kill",
        "USR1",
        "--",
        "bash",
        "-c",
    ];
    let answer = place.run_words(&[&words[..], &[GROWS]].concat());
    assert!(answer.stderr.contains("was not sent"), "{}", answer.stderr);
    assert_eq!(place.json("why")["verdict"]["cause"], "cgroup_oom");
}

#[test]
fn what_came_through_is_not_tried_again() {
    let place = Place::new();
    if !is_confined(&place) {
        return;
    }
    let job = format!("bash -c '{}'; echo went on", GROWS.replace('\'', "'\\''"));
    let words = ["run", "--memory", "40MB", "--retry", "2", "--", "bash", "-c"];
    let answer = place.run_words(&[&words[..], &[&job]].concat());
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "went on\n"));
    assert_eq!(place.run_ids().len(), 1);
}

#[test]
fn every_attempt_reads_its_input_from_the_start() {
    let place = Place::new();
    if !is_confined(&place) {
        return;
    }
    place.write("input.txt", "first\nsecond\n");
    let job = format!("read line; echo $line; test \"$TIDEGATE_SCALE\" = 0.5 || {{ {GROWS}; }}");
    let output = place
        .command_of([
            "run", "--memory", "40MB", "--retry", "1", "--", "bash", "-c", &job,
        ])
        .stdin(std::fs::File::open(place.path("input.txt")).unwrap())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "first\nfirst\n");
    assert_eq!(output.status.code(), Some(0));
}
