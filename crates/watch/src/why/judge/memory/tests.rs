//! Made-up cases of runs that were killed.

use tidegate_memory::TightBound;
use tidegate_runs::Stream;

use crate::ended::Exit;
use crate::event::MemoryTaken;
use crate::why::{
    Case, Cause, Counter, CounterKind, EndedChild, Facts, Grade, LogLine, Scope, SentSignal, SignalReason,
    judge,
};

const KILLED: Exit = Exit::Signal(libc::SIGKILL);
const FIRST: i32 = 100;

fn child(pid: i32, exit: Option<Exit>) -> EndedChild {
    EndedChild {
        time_ms: 500,
        pid,
        parent: FIRST,
        name: "python3".into(),
        exit,
        resident: None,
    }
}

/// A run with a cgroup of its own, which counted so many OOM kills.
fn case(exit: Exit, counted: u64, victims: &[i32]) -> Case {
    let line = |pid| {
        format!(
            "3,1,5000000,-;Memory cgroup out of memory: Killed process {pid} (python3) total-vm:900kB, anon-rss:800kB, \
             file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:4kB oom_score_adj:500"
        )
    };
    let mut facts = Facts {
        pid: Some(FIRST),
        exit: Some(exit),
        limit: Some(64 << 20),
        ended_children: vec![child(FIRST + 1, None)],
        counters: vec![Counter {
            kind: CounterKind::OomKills,
            scope: Scope::Own,
            source: "/sys/fs/cgroup/tidegate-1/memory.events oom_kill".into(),
            before: Some(0),
            after: Some(counted),
        }],
        ..Facts::default()
    };
    facts.kernel.source = "/dev/kmsg".into();
    facts.kernel.lines = victims.iter().map(line).collect();
    Case {
        facts,
        ..Case::default()
    }
}

fn check(case: &Case, expected: (Cause, Grade), words: &str) {
    let verdict = judge(case);
    assert_eq!((verdict.cause, verdict.grade), expected, "{}", verdict.sentence);
    assert!(verdict.sentence.contains(words), "{}", verdict.sentence);
}

#[test]
fn a_kill_of_a_child_is_not_the_end_of_its_parent() {
    let oom = (Cause::CgroupOom, Grade::Proven);
    let likely = (Cause::CgroupOom, Grade::Likely);
    let of_a_child = (Cause::ChildOom, Grade::Proven);
    check(&case(KILLED, 1, &[FIRST]), oom, "the kernel killed it");
    check(&case(KILLED, 2, &[FIRST + 1, FIRST]), oom, "the kernel killed it");
    check(
        &case(KILLED, 1, &[FIRST + 1]),
        of_a_child,
        "it was itself killed later, by a SIGKILL that somebody sent",
    );
    check(
        &case(Exit::Code(1), 1, &[FIRST + 1]),
        of_a_child,
        "it ended with code 1 itself",
    );
    // One kill of two is named, or none at all.
    check(&case(KILLED, 2, &[FIRST + 1]), likely, "the kernel killed it");
    check(&case(KILLED, 1, &[]), likely, "the kernel killed it");
    check(&case(Exit::Code(137), 1, &[]), likely, "the kernel killed it");
    // A shell around the command.
    check(
        &case(Exit::Code(137), 1, &[FIRST + 1]),
        oom,
        "the kernel killed it",
    );
}

#[test]
fn words_do_not_prove_a_kill() {
    let mut case = case(Exit::Code(137), 0, &[]);
    case.log = vec![LogLine {
        number: 1,
        time_ms: None,
        stream: Stream::Err,
        text: "Killed".into(),
    }];
    check(
        &case,
        (Cause::Killed, Grade::Likely),
        "it says that it was killed",
    );
    case.facts.ended_children.push(child(FIRST + 2, Some(KILLED)));
    check(
        &case,
        (Cause::Killed, Grade::Proven),
        "killed by SIGKILL from outside",
    );
}

#[test]
fn the_warning_near_the_line_may_be_the_end() {
    let mut case = case(Exit::Signal(libc::SIGUSR1), 0, &[]);
    case.facts.duration_ms = Some(3_100);
    case.facts.signals = vec![SentSignal {
        time_ms: 3_000,
        signal: libc::SIGUSR1,
        why: SignalReason::NearLine,
    }];
    let words = "signal 10 (SIGUSR1), which --before-kill sent near the line of 67.1 MB";
    check(&case, (Cause::Line, Grade::Proven), words);
    case.facts.duration_ms = Some(60_000);
    check(&case, (Cause::Line, Grade::Likely), words);
    // A shell around it.
    case.facts.duration_ms = Some(3_100);
    case.facts.exit = Some(Exit::Code(138));
    check(&case, (Cause::Line, Grade::Likely), "--before-kill");
    case.facts.exit = Some(Exit::Code(1));
    check(&case, (Cause::Failed, Grade::Proven), "code 1");
}

#[test]
fn memory_that_was_taken_away_is_proven_by_its_limit() {
    let mut case = case(Exit::Code(0), 0, &[]);
    case.run = Some("digits".into());
    case.facts.saved = true;
    case.facts.taken = Some(MemoryTaken {
        bound: TightBound {
            name: "/sys/fs/cgroup/jobs/memory.max".into(),
            limit_before: 500_000_000,
            limit: 300_000_000,
            used_before: 280_000_000,
            used: 297_000_000,
        },
        needs: 290_000_000,
        enough: Some(240_000_000),
    });
    let taken = (Cause::MemoryTaken, Grade::Proven);
    check(
        &case,
        taken,
        "memory was taken away: the limit was lowered from 500 MB to 300 MB while it needed 290 MB",
    );
    let verdict = judge(&case);
    assert_eq!(verdict.evidence[0].text, "500000000 before, 300000000 after");
    let command = |case: &Case| judge(case).remedies[0].command.clone();
    assert_eq!(
        command(&case).as_deref(),
        Some("tidegate resume digits --memory 240MB")
    );
    // Without a plan that fits it has to wait; without a checkpoint there is nothing to go on from.
    case.facts.taken.as_mut().unwrap().enough = None;
    assert_eq!(command(&case).as_deref(), Some("tidegate resume digits"));
    case.facts.saved = false;
    let remedies = judge(&case).remedies;
    assert!(!remedies.iter().any(|remedy| {
        remedy
            .command
            .as_deref()
            .is_some_and(|command| command.contains("resume"))
    }));
    // A job that ends so without a word of it is another one.
    case.facts.taken = None;
    assert_ne!(judge(&case).cause, Cause::MemoryTaken);
}
