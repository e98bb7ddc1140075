//! Jobs that were not run under Tidegate.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;

use tidegate_memory::Host;
use tidegate_watch::why::{Cause, ForeignJob, Grade, Verdict, case_of_job, judge_told};

fn explain(job: &ForeignJob<'_>) -> Verdict {
    let (case, told) = case_of_job(&Host::live(), job).unwrap();
    judge_told(&case, told)
}

fn unseen(verdict: &Verdict, text: &str) -> bool {
    verdict
        .evidence
        .iter()
        .any(|evidence| evidence.text.contains(text))
}

#[test]
fn a_living_process_is_still_running_and_a_gone_one_is_not_known() {
    let mut child = Command::new("sleep").arg("91").spawn().unwrap();
    let pid = Some(child.id().cast_signed());
    let verdict = explain(&ForeignJob {
        pid,
        ..ForeignJob::default()
    });
    assert_eq!((verdict.cause, verdict.grade), (Cause::Unknown, Grade::Unknown));
    let sentence = verdict.sentence;
    assert!(
        sentence.starts_with("it is still running: it holds "),
        "{sentence}"
    );
    assert!(sentence.contains("nothing moved in "), "{sentence}");
    child.kill().unwrap();
    // Dead and not waited for: the kernel still tells how.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let verdict = explain(&ForeignJob {
        pid,
        ..ForeignJob::default()
    });
    assert!(unseen(&verdict, "nobody has waited for it"), "{verdict:?}");
    assert!(verdict.sentence.contains("SIGKILL"), "{}", verdict.sentence);
    child.wait().unwrap();
    let verdict = explain(&ForeignJob {
        pid,
        exit: Some("SIGSEGV"),
        ..ForeignJob::default()
    });
    assert!(unseen(&verdict, "it is gone"), "{verdict:?}");
    assert_eq!(verdict.cause, Cause::SegmentationFault);
}

#[test]
fn a_log_may_come_through_a_pipe_and_with_a_number() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer
        .write_all(
            b"Traceback (most recent call last):\n  File \"/a/train.py\", line 3, in <module>\nMemoryError\n",
        )
        .unwrap();
    drop(writer);
    let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
    let verdict = explain(&ForeignJob {
        // No process has it: the kernel gives no larger numbers than 2^22.
        pid: Some(i32::MAX),
        log: Some(Path::new(&path)),
        exit: Some("1"),
    });
    assert_eq!(
        (verdict.cause, verdict.grade),
        (Cause::MemoryError, Grade::Proven)
    );
}

#[test]
fn the_kernel_of_this_machine_is_asked_about_the_end_of_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("slurm.out");
    std::fs::write(&log, "epoch 1\n").unwrap();
    let file = std::fs::File::options().write(true).open(&log).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000))
        .unwrap();
    let verdict = explain(&ForeignJob {
        log: Some(&log),
        ..ForeignJob::default()
    });
    assert_eq!(verdict.cause, Cause::Unknown);
    // Read, and nothing there; or not to be read, which is said.
    let source = |source: &str| source.starts_with("the kernel's log, ");
    assert!(
        verdict.evidence.iter().any(|evidence| source(&evidence.source)),
        "{verdict:?}"
    );
}
