//! Ctrl-C, once and twice, and what the signal handlers were before.
//!
//! Signals are the whole process's, so each supervisor here is a process of its own: this test binary,
//! run again to do nothing but `supervisor_process`.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tidegate_memory::Host;
use tidegate_watch::{Update, supervise};

use crate::help::{check_nothing_left, signal, sleepers, wait_until, worker};

const DIR: &str = "TIDEGATE_TEST_STOPS_DIR";
const SCRIPT: &str = "TIDEGATE_TEST_STOPS_SCRIPT";
const GRACE: &str = "TIDEGATE_TEST_STOPS_GRACE_MS";

/// Not a test of its own: what the supervisors below run. Writes how the worker ended.
#[test]
fn supervisor_process() {
    let (Some(dir), Ok(script)) = (std::env::var_os(DIR), std::env::var(SCRIPT)) else {
        return;
    };
    let dir = Path::new(&dir);
    let mut job = worker(&script);
    job.grace = Duration::from_millis(std::env::var(GRACE).unwrap().parse().unwrap());
    let mut stopping = Vec::new();
    let mut found = (0, None);
    let before = handlers();
    let ended = supervise(&Host::live(), job, &mut |update| match update {
        Update::Started { pid, cgroup, .. } => {
            found = (pid, cgroup.map(Path::to_path_buf));
        }
        // The script says when it is ready to be signalled.
        Update::Output { line: "ready", .. } => fs::write(dir.join("ready"), "").unwrap(),
        Update::Stopping { second } => stopping.push(second),
        _ => {}
    })
    .unwrap();
    assert_eq!(handlers(), before, "the handlers are given back");
    check_nothing_left(found.0, found.1.as_deref());
    fs::write(
        dir.join("ended"),
        format!("{}|{stopping:?}|{}", ended.exit_code(), ended.explain()),
    )
    .unwrap();
}

fn handlers() -> [usize; 3] {
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].map(|signal| {
        // SAFETY: all-zero bytes are a valid sigaction, and only the current one is asked for.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut now);
            now.sa_sigaction
        }
    })
}

fn start(dir: &Path, script: &str, grace: Duration) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    // Tests that run in the background, or under nohup, hand down that these signals are ignored.
    // SAFETY: signal(2) may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    let supervisor = command
        .args(["--exact", "stops::supervisor_process", "--nocapture"])
        .env(DIR, dir)
        .env(SCRIPT, script)
        .env(GRACE, grace.as_millis().to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the worker is ready", || dir.join("ready").exists());
    supervisor
}

fn check(script: &str, grace: Duration, signals: &[i32], expected: &str) -> Duration {
    let dir = tempfile::tempdir().unwrap();
    let mut supervisor = start(dir.path(), script, grace);
    let begin = Instant::now();
    for (n, &number) in signals.iter().enumerate() {
        if n > 0 {
            std::thread::sleep(Duration::from_millis(200));
        }
        signal(supervisor.id().cast_signed(), number);
    }
    assert!(supervisor.wait().unwrap().success());
    assert_eq!(
        fs::read_to_string(dir.path().join("ended")).unwrap(),
        expected,
        "{script}"
    );
    begin.elapsed()
}

const SAVES: &str = r#"trap 'say "{\"event\":\"stopped\",\"epoch\":1,\"step\":8,\"checkpoint\":true}"; exit 0' TERM
    echo ready; while :; do sleep 0.05; done"#;

#[test]
fn the_first_ctrl_c_lets_the_worker_save() {
    check(
        SAVES,
        Duration::from_secs(60),
        &[libc::SIGINT],
        "130|[false]|interrupted; a checkpoint was saved",
    );
}

#[test]
fn a_termination_and_a_hang_up_do_the_same() {
    let expected = "143|[false]|terminated; a checkpoint was saved";
    check(SAVES, Duration::from_secs(60), &[libc::SIGTERM], expected);
    check(SAVES, Duration::from_secs(60), &[libc::SIGHUP], expected);
}

#[test]
fn a_worker_that_ignores_the_request_is_killed_after_the_grace() {
    let script = "trap '' TERM; echo ready; sleep 81; sleep 81";
    let expected = "130|[false]|interrupted; it did not end by itself and was killed";
    let took = check(script, Duration::from_millis(400), &[libc::SIGINT], expected);
    assert!(
        took >= Duration::from_millis(400) && took < Duration::from_secs(3),
        "{took:?}"
    );
    assert!(sleepers("81").is_empty());
}

#[test]
fn the_second_ctrl_c_kills_at_once() {
    let script = "trap '' TERM; echo ready; sleep 82; sleep 82";
    let expected = "130|[false, true]|interrupted; it did not end by itself and was killed";
    let took = check(
        script,
        Duration::from_secs(60),
        &[libc::SIGINT, libc::SIGINT],
        expected,
    );
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert!(sleepers("82").is_empty());
}

#[test]
fn a_stopped_worker_is_woken_to_hear_it() {
    let script = r#"trap 'exit 0' TERM; echo ready; kill -STOP $$; sleep 83"#;
    let expected = "143|[false]|terminated; it did not say whether it saved anything";
    let took = check(script, Duration::from_secs(60), &[libc::SIGTERM], expected);
    assert!(took < Duration::from_secs(3), "{took:?}");
}
