//! Workers that send nonsense, and callers that are slow or fall over.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use tidegate_memory::Host;
use tidegate_watch::{Done, Event, EventWriter, StopReason, Update, supervise};

use crate::help::{DONE, Heard, foreign, run, run_with, worker};

#[test]
fn junk_between_events_is_a_warning() {
    let (ended, heard) = run(worker(&format!(
        r#"say 'not json'; say '{{"event":"warning"}}'; printf '\377\376\000\n' > $EVENTS; say ''
           say '{{"event":"of a later version","x":[1,2]}}'; {DONE}"#
    )));
    assert_eq!(ended.exit_code(), 0, "{}", ended.explain());
    assert_eq!(heard.warnings().len(), 3, "{:?}", heard.warnings());
    assert!(heard.warnings()[0].contains("no event") && heard.warnings()[0].contains("not json"));
}

#[test]
fn lines_of_a_million_characters_are_cut_not_kept() {
    let (ended, heard) = run(worker(&format!(
        "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo after
         (head -c 1000000 /dev/zero | tr '\\0' y; echo) > $EVENTS; {DONE}"
    )));
    assert_eq!(ended.exit_code(), 0, "{}", ended.explain());
    assert!(heard.output[0].1.len() < 70_000 && heard.output[0].1.contains("bytes more)"));
    assert_eq!(heard.output[1].1, "after");
    assert!(
        heard.warnings()[0].contains("an event of 1000000 bytes is too long"),
        "{:?}",
        heard.warnings()
    );
}

#[test]
fn a_worker_of_another_version_is_refused() {
    let mut job = worker("");
    let script = r#"echo '{"event":"hello","version":99,"pid":1}' > /dev/fd/$2; sleep 75"#;
    job.args = ["-c", script, "sh"].map(Into::into).to_vec();
    let start = Instant::now();
    let (ended, _) = run(job);
    assert_eq!(
        (ended.exit_code(), ended.stopped_by),
        (1, Some(StopReason::ParentError))
    );
    assert!(ended.explain().contains("version 99"), "{}", ended.explain());
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn events_before_the_hello_are_refused() {
    let mut job = worker("");
    let script = r#"echo '{"event":"notice","text":"hi"}' > /dev/fd/$2; sleep 76"#;
    job.args = ["-c", script, "sh"].map(Into::into).to_vec();
    let (ended, _) = run(job);
    assert_eq!(
        (ended.exit_code(), ended.stopped_by),
        (1, Some(StopReason::ParentError))
    );
    assert!(ended.explain().contains("before its hello"));
}

#[test]
fn a_slow_caller_holds_nobody_up() {
    // A flood of 200,000 lines to a caller that could take 200 a second.
    let script = format!("seq 200000; {DONE}");
    let start = Instant::now();
    let (ended, heard) = run_with(worker(&script), |update| {
        if let Update::Output { .. } = update {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    assert_eq!(ended.exit_code(), 0);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(
        heard.warnings().iter().any(|text| text.contains("too fast")),
        "{:?}",
        heard.warnings()
    );
    assert!(matches!(
        heard.events.iter().find(|event| matches!(event, Event::Done(_))),
        Some(Event::Done(done)) if done.metric_value == Some(0.9)
    ));
}

#[test]
fn a_caller_that_panics_leaves_no_worker() {
    let mut heard = Heard::default();
    let job = worker("sleep 77");
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        supervise(&Host::live(), job, &mut |update| {
            let is_hello = matches!(update, Update::Event(Event::Hello { .. }));
            heard.add(update);
            assert!(!is_hello, "a bug in the caller");
        })
    }));
    assert!(panicked.is_err());
    heard.check_nothing_left();
}

/// In a process of its own: what other tests take beside it would count, too.
#[test]
fn a_flood_of_output_does_not_grow_the_supervisor() {
    const ALONE: &str = "TIDEGATE_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let alone = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "wire::a_flood_of_output_does_not_grow_the_supervisor"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&alone.stdout);
        assert!(alone.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    // 400 MB through the pipe; the queue and the buffers are bounded.
    let before = resident();
    let mut seen = 0u64;
    let job = foreign("head -c 400000000 /dev/zero | tr '\\0' 'x' | fold -w 999");
    let ended = supervise(&Host::live(), job, &mut |update| {
        if let Update::Output { line, .. } = update {
            seen += line.len() as u64;
        }
    });
    assert_eq!(ended.unwrap().exit_code(), 0);
    assert!(seen > 0);
    let grown = resident().saturating_sub(before);
    assert!(grown < 24 << 20, "grown by {grown} bytes");
}

fn resident() -> u64 {
    let host = Host::live();
    tidegate_memory::process_status(&host, std::process::id().cast_signed())
        .unwrap()
        .resident
        .unwrap()
}

const EVENTS_FD: &str = "TIDEGATE_TEST_EVENTS_FD";

/// Not a test of its own: a worker in Rust, whose threads share the wire.
#[test]
fn rust_worker() {
    let Some(fd) = std::env::var(EVENTS_FD).ok().and_then(|fd| fd.parse().ok()) else {
        return;
    };
    let writer = EventWriter::from_fd(fd).unwrap();
    std::thread::scope(|scope| {
        for epoch in 0..4 {
            let writer = &writer;
            scope.spawn(move || {
                for step in 0..500 {
                    let name = "loss".repeat(1 + step as usize % 300);
                    writer
                        .send(&Event::Metric {
                            epoch,
                            step,
                            name,
                            value: 0.5,
                        })
                        .unwrap();
                }
            });
        }
    });
    writer.send(&Event::Done(Done::default())).unwrap();
}

#[test]
fn threads_that_share_the_wire_do_not_mix_their_lines() {
    let mut job = worker("");
    let binary = std::env::current_exe().unwrap();
    let script = format!(
        "{EVENTS_FD}=$2 exec '{}' --exact wire::rust_worker --nocapture > /dev/null",
        binary.display()
    );
    job.args = ["-c", &script, "sh"].map(Into::into).to_vec();
    let (ended, heard) = run(job);
    assert_eq!(ended.exit_code(), 0, "{} {:?}", ended.explain(), heard.output);
    assert!(heard.warnings().is_empty(), "{:?}", heard.warnings());
    let metrics = heard
        .events
        .iter()
        .filter(|event| matches!(event, Event::Metric { .. }));
    assert_eq!(metrics.count(), 2000);
}

#[test]
fn a_worker_hears_that_nobody_listens() {
    let (read, write) = std::io::pipe().unwrap();
    drop(read);
    let writer = EventWriter::new(std::os::fd::OwnedFd::from(write).into());
    let error = writer.send(&Event::hello()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}
