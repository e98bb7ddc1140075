//! `tidegate run`: a command behaves as it would have without us, and is explained when it is over.

use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::help::{Place, wait_for, wait_until};

/// The verdict of the last run.
fn why(place: &Place) -> Value {
    place.json("why")["verdict"].clone()
}

fn cause(place: &Place) -> String {
    let verdict = why(place);
    format!(
        "{} {}",
        verdict["grade"].as_str().unwrap(),
        verdict["cause"].as_str().unwrap()
    )
}

#[test]
fn output_input_and_exit_code_are_those_of_the_command() {
    let place = Place::new();
    let answer = place.run_words(&["run", "--", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(3), "out\n"));
    assert!(answer.stderr.starts_with("err\n"), "{}", answer.stderr);
    assert!(
        answer.stderr.contains("code 3") && answer.stderr.contains("more: tidegate why "),
        "{}",
        answer.stderr
    );
    assert_eq!(cause(&place), "proven failed");

    let mut child = place
        .command("run -- cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text: String = (0..100_000).map(|i| format!("{i}\n")).collect();
    let mut input = child.stdin.take().unwrap();
    let sent = text.clone();
    let writer = std::thread::spawn(move || input.write_all(sent.as_bytes()).unwrap());
    let answer = place.finish(child);
    writer.join().unwrap();
    assert_eq!(answer.code, Some(0));
    assert!(
        answer.stdout == text,
        "{} bytes of {}",
        answer.stdout.len(),
        text.len()
    );
    assert!(
        answer.stderr.is_empty(),
        "success says nothing: {}",
        answer.stderr
    );
    assert_eq!(cause(&place), "proven success");
}

#[test]
fn a_command_that_is_not_there_ends_as_in_a_shell() {
    let place = Place::new();
    assert_eq!(place.run("run -- no-such-program").code, Some(127));
    place.write("plain.txt", "no program");
    assert_eq!(place.run("run -- ./plain.txt").code, Some(126));
}

#[test]
fn it_dies_of_the_same_signal() {
    let place = Place::new();
    let mut child = place
        .command_of(["run", "--", "sh", "-c", "kill -SEGV $$"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGSEGV));
    assert_eq!(cause(&place), "proven segmentation_fault");
}

/// Starts a command and waits until it says so.
fn started(place: &Place, script: &str) -> Child {
    let mut child = place
        .command_of(["run", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = [0u8; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(&said, b"ready\n");
    child
}

fn send(child: &Child, signal: i32) {
    // SAFETY: kill has no memory effects; the child has not been waited for.
    unsafe { libc::kill(child.id().cast_signed(), signal) };
}

#[test]
fn signals_are_passed_on_and_the_command_decides() {
    let place = Place::new();
    let script = "trap 'echo saved; exit 7' USR1; echo ready; while :; do sleep 0.05; done";
    let child = started(&place, script);
    send(&child, libc::SIGUSR1);
    let answer = place.finish(child);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(7), "saved\n"));

    let mut child = started(&place, "echo ready; exec sleep 100");
    send(&child, libc::SIGTERM);
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
    assert_eq!(cause(&place), "proven stopped");

    // A kill from outside is no lack of memory.
    let mut child = started(&place, "echo ready; exec sleep 100");
    let below = || {
        let children =
            std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap_or_default();
        children
            .split_whitespace()
            .next()
            .and_then(|pid| pid.parse::<i32>().ok())
    };
    let victim = below().expect("the command runs");
    // SAFETY: as above; it is the child of our child.
    unsafe { libc::kill(victim, libc::SIGKILL) };
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    assert_eq!(cause(&place), "proven killed");
}

/// A reader that goes away ends the command, as it would have.
#[test]
fn a_closed_pipe_is_noticed() {
    let place = Place::new();
    let mut child = place
        .command("run -- yes")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut some = [0u8; 100];
    child.stdout.as_mut().unwrap().read_exact(&mut some).unwrap();
    drop(child.stdout.take());
    let mut status = None;
    wait_until("it ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().signal(), Some(libc::SIGPIPE));
}

/// With a terminal, the command has one: of the same size, with what is typed, and with Ctrl-C.
#[test]
fn a_terminal_stays_a_terminal() {
    let place = Place::new();
    let (ours, theirs) = terminal(91, 33);
    let script = "stty size; test -t 0 && test -t 1 && test -t 2 && echo all; read name; echo hello $name; exec sleep 100";
    let mut command = place.command_of(["run", "--", "sh", "-c", script]);
    let end = || Stdio::from(theirs.try_clone().unwrap());
    command.stdin(end()).stdout(end()).stderr(end());
    // SAFETY: between fork and exec, both are allowed: a session of its own, with this terminal.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    let mut child = command.spawn().unwrap();
    drop((command, theirs));
    let mut screen = std::fs::File::from(ours);
    let mut seen = String::new();
    let mut until = |screen: &mut std::fs::File, text: &str| {
        wait_for(text, Duration::from_secs(10), || {
            // It may all have come at once; a further read would wait for ever.
            if seen.contains(text) {
                return true;
            }
            let mut bytes = [0u8; 4096];
            if let Ok(read) = screen.read(&mut bytes) {
                seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
            seen.contains(text)
        });
    };
    until(&mut screen, "33 91");
    until(&mut screen, "all");
    // Ctrl-Z stops both, and whoever continues us continues the job.
    screen.write_all(&[26]).unwrap();
    let pid = child.id().cast_signed();
    wait_until("it is stopped", || state(pid) == Some('T'));
    wait_until("its job is, too", || child_of(pid).and_then(state) == Some('T'));
    // SAFETY: our own child.
    unsafe { libc::kill(pid, libc::SIGCONT) };
    wait_until("it goes on", || {
        state(pid) != Some('T') && child_of(pid).and_then(state) != Some('T')
    });
    screen.write_all(b"ada\r").unwrap();
    until(&mut screen, "hello ada");
    screen.write_all(&[3]).unwrap();
    until(&mut screen, "more: tidegate why");
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGINT));
    assert_eq!(cause(&place), "proven stopped");
}

/// As `ps` shows it: T is stopped.
fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// The first child of any thread of a process.
fn child_of(pid: i32) -> Option<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    threads.flatten().find_map(|thread| {
        let children = std::fs::read_to_string(thread.path().join("children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    })
}

/// Our end and the other end of a new terminal of this size.
fn terminal(columns: u16, rows: u16) -> (OwnedFd, OwnedFd) {
    let size = libc::winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let (mut ours, mut theirs) = (-1, -1);
    // SAFETY: fills two descriptors that nothing else owns.
    unsafe {
        let made = libc::openpty(
            &mut ours,
            &mut theirs,
            std::ptr::null_mut(),
            std::ptr::null(),
            &size,
        );
        assert_eq!(made, 0);
        (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs))
    }
}

/// The last lines of the log are those of the command, a progress bar by its last state and without colours.
#[test]
fn the_log_has_what_a_person_would_have_read() {
    let place = Place::new();
    let script = r"printf ' 10%%\r 50%%\r100%%\n'; printf '\033[31mred\033[0m\n'; printf 'no newline'";
    assert_eq!(place.run_words(&["run", "--", "sh", "-c", script]).code, Some(0));
    let shown = place.json("show last");
    let lines: Vec<&str> = shown["log_tail"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    let texts: Vec<&str> = lines
        .iter()
        .map(|line| line.splitn(3, ' ').nth(2).unwrap())
        .collect();
    assert_eq!(texts, ["100%", "red", "no newline"]);
    // The page shows the log in its colours.
    let log = place
        .home
        .join("runs")
        .join(shown["id"].as_str().unwrap())
        .join("log.txt");
    assert!(
        std::fs::read_to_string(log)
            .unwrap()
            .contains("out \x1b[31mred\x1b[0m\n")
    );
}

/// A shell that grows without end, by lines that it keeps.
const GROWS: &str = "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done";

#[test]
fn a_job_that_outgrows_its_line_is_killed_by_the_kernel_and_proven_so() {
    let place = Place::new();
    let mut child = place
        .command_of(["run", "--memory", "64MB", "--", "sh", "-c", GROWS])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let status = child.wait().unwrap();
    let verdict = why(&place);
    if !verdict["evidence"].to_string().contains("oom_kill") {
        eprintln!("skipped: this machine gives no cgroup to make");
        return;
    }
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    assert_eq!(cause(&place), "proven cgroup_oom");
    assert!(
        verdict["sentence"].as_str().unwrap().contains("64 MB"),
        "{verdict}"
    );
}

/// Attempts have less and less to do, and belong together.
#[test]
fn a_job_that_died_of_memory_is_tried_again_with_less() {
    let place = Place::new();
    let script =
        format!("echo scale ${{TIDEGATE_SCALE:-1}}; test \"$TIDEGATE_SCALE\" = 0.25 || {{ {GROWS}; }}");
    let answer = place.run_words(&[
        "run", "--memory", "64MB", "--retry", "3", "--", "sh", "-c", &script,
    ]);
    if place.run_ids().len() == 1 {
        eprintln!("skipped: this machine gives no cgroup to make");
        return;
    }
    assert_eq!(
        (answer.code, answer.stdout.as_str()),
        (Some(0), "scale 1\nscale 0.5\nscale 0.25\n")
    );
    assert!(
        answer.stderr.contains("trying again with TIDEGATE_SCALE=0.5"),
        "{}",
        answer.stderr
    );
    let last = place.json("show last");
    assert_eq!(last["attempt"], 3);
    let first = place.json(&format!("show {}", last["family"].as_str().unwrap()));
    assert_eq!(
        (first["attempt"].is_null(), first["status"].as_str()),
        (true, Some("failed"))
    );
    assert_eq!(first["verdict"]["cause"], "cgroup_oom");
}

/// What comes through a pipe is a log, too; what is none of these is refused.
#[test]
fn what_is_asked_about_must_be_something() {
    let place = Place::new();
    let mut child = place
        .command("why --log - --exit 1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input
        .write_all(b"epoch 1\nMemoryError: Unable to allocate 8.00 GiB for an array\n")
        .unwrap();
    drop(input);
    let answer = place.finish(child);
    assert!(
        answer.code == Some(0) && answer.stdout.contains("8.00 GiB"),
        "{}",
        answer.stdout
    );
    insta::assert_snapshot!(place.run("why --exit banana").error(), @r#"
    exit 2
    error: "banana" is no exit status that is known
      hint: as a shell, a scheduler or a container tells it: 137, 0:125, SIGSEGV, OOMKilled, OUT_OF_MEMORY
    "#);
    insta::assert_snapshot!(place.run("why --log nowhere.log").error(), @r"
    exit 2
    error: nowhere.log: the log cannot be read: No such file or directory (os error 2)
      hint: --log takes one file, or - for what comes through a pipe
    ");
    assert_eq!(place.run("why --pid 0").code, Some(2));
    insta::assert_snapshot!(place.run("why").error(), @r#"
    exit 2
    error: no run is called "last"
      hint: this home has no runs yet
    "#);
}

/// A report is for people who have no terminal: no colours, no drawing wider than a page, nothing that the log painted.
#[test]
fn a_report_is_plain_text() {
    let place = Place::new();
    let script = r"printf '\033[31mred\033[0m\007 text\n'; head -c 4000 /dev/zero | tr '\0' x; exit 7";
    assert_eq!(place.run_words(&["run", "--", "sh", "-c", script]).code, Some(7));
    let text = place.ok("why --report").stdout;
    assert!(text.contains("code 7") && text.contains("red text"), "{text}");
    let is_plain = |c: char| c == '\n' || !c.is_control();
    assert!(text.chars().all(is_plain), "{text:?}");
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest < Some(400), "{longest:?}");
}

/// A log and an exit status of a job that ran elsewhere.
#[test]
fn a_job_of_elsewhere_is_explained_by_what_is_left() {
    let place = Place::new();
    place.write(
        "job.log",
        "epoch 1\nslurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed.\n",
    );
    let told = place.json("why --log job.log --exit 0:125")["verdict"].clone();
    assert_eq!(
        (told["cause"].as_str(), told["grade"].as_str()),
        (Some("cgroup_oom"), Some("proven"))
    );
    let bare = place.json("why --exit 137")["verdict"].clone();
    assert_eq!(bare["grade"], "unknown", "137 is no proof: {bare}");
    let text = place.ok("why --exit OOMKilled --report").stdout;
    assert!(
        text.contains("not seen") && text.contains("its memory over time"),
        "{text}"
    );
}
