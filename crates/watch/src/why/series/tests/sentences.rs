//! Single cases: what tells one shape from another, and how it is said.

use std::time::Duration;

use tidegate_runs::{FlightRecord, ProcessRecord};

use super::super::pattern::time_to_line;
use super::pattern;
use super::stacks::add;
use crate::why::{Case, PatternKind};

const MB: u64 = 1_000_000;

/// Ten looks a second at one process that holds so many megabytes.
fn flight(megabytes: impl IntoIterator<Item = u64>) -> Case {
    let mut case = Case::default();
    for (place, megabytes) in megabytes.into_iter().enumerate() {
        case.flight.push(FlightRecord {
            time_ms: place as u64 * 100,
            resident: Some(megabytes * MB + 10 * MB),
            anonymous: Some(megabytes * MB),
            file: Some(10 * MB),
            processes: 1,
            ..FlightRecord::default()
        });
    }
    case
}

fn check(name: &str, case: &Case, kind: PatternKind, sentence: &str) {
    let pattern = pattern(case).expect(name);
    assert_eq!(
        (pattern.kind, pattern.sentence.as_str()),
        (kind, sentence),
        "{name}"
    );
}

#[test]
fn too_little_has_no_shape() {
    assert_eq!(pattern(&Case::default()), None);
    assert_eq!(pattern(&flight([10, 20, 30, 40])), None);
    let mut dead = flight([10; 50]);
    dead.flight.iter_mut().for_each(|record| record.anonymous = None);
    dead.flight.iter_mut().for_each(|record| record.resident = None);
    assert_eq!(pattern(&dead), None);
}

#[test]
fn a_leak_is_told_with_its_rate_and_what_is_left() {
    let mut case = flight((0..400).map(|place| 200 + place));
    check(
        "no line",
        &case,
        PatternKind::Leak,
        "memory grew by 10 MB a second for 40 s and gave nothing back",
    );
    case.facts.limit = Some(1_199 * MB);
    let leak = pattern(&case).unwrap();
    assert_eq!(
        time_to_line(&case, &leak).map(|left| left.as_secs_f64().round()),
        Some(60.0)
    );
    check(
        "far from the line",
        &case,
        PatternKind::Leak,
        "memory grew by 10 MB a second for 40 s and gave nothing back; at this rate the line is reached after 60 s",
    );
    case.facts.limit = Some(600 * MB);
    check(
        "at the line",
        &case,
        PatternKind::Leak,
        "memory grew by 10 MB a second for 40 s and gave nothing back, up to the line of 600 MB",
    );
    case.facts.limit = Some(500 * MB);
    let leak = pattern(&case).unwrap();
    assert_eq!(time_to_line(&case, &leak), Some(Duration::ZERO));
    check(
        "below teeth",
        &flight((0..400).map(|place| 200 + place / 2 + place % 20 * 10)),
        PatternKind::Leak,
        "memory goes up and down, but its bottom rose by 5.07 MB a second for 40 s",
    );
    let steady = pattern(&flight([100; 50])).unwrap();
    assert_eq!(time_to_line(&case, &steady), None);
}

#[test]
fn the_fall_of_death_is_no_part_of_it() {
    let falling = [400, 250, 100, 20];
    check(
        "leak",
        &flight((0..100).map(|place| 100 + place * 4).chain(falling)),
        PatternKind::Leak,
        "memory grew by 40 MB a second for 9.9 s and gave nothing back",
    );
    let mut case = flight((0..100).map(|place| 100 + place * 4));
    case.flight.push(FlightRecord {
        time_ms: 10_000,
        cgroup_usage: Some(5 * MB),
        ..FlightRecord::default()
    });
    assert_eq!(pattern(&case).unwrap().kind, PatternKind::Leak, "the last look");
    check(
        "a fall after which it goes on is one",
        &flight((0..60).map(|place| if (20..40).contains(&place) { 500 } else { 100 })),
        PatternKind::Burst,
        "memory grew by 400 MB at once, 2 s after the start and gave 400 MB of it back",
    );
}

#[test]
fn the_stack_tells_a_load_from_steps() {
    let ramp = || flight((0..50).map(|place| 100 + place * 20));
    let mut one_call = ramp();
    let mut steps = ramp();
    for (place, record) in ramp().flight.iter().enumerate() {
        let held = record.anonymous.unwrap() / MB;
        let load: &[&str] =
            &["gil train.py:3:<module> > /venv/lib/python3.11/site-packages/pandas/io.py:7:read"];
        let step: &[&str] = match place % 3 {
            0 => &["gil train.py:8:<module>"],
            1 => &["gil train.py:9:<module> > train.py:2:forward"],
            _ => &["wait train.py:10:<module>"],
        };
        add(&mut one_call.stacks, 1, &[(record.time_ms, held, load)]);
        add(&mut steps.stacks, 1, &[(record.time_ms, held, step)]);
    }
    check(
        "one call",
        &one_call,
        PatternKind::Burst,
        "memory grew by 980 MB in one go of 4.9 s, up to the end",
    );
    check(
        "steps",
        &steps,
        PatternKind::Leak,
        "memory grew by 200 MB a second for 4.9 s and gave nothing back",
    );
}

#[test]
fn without_a_stack_speed_and_work_tell_a_load_from_steps() {
    let ramp = |megabytes: u64, busy: Option<u64>| {
        let mut case = flight((0..50).map(|place| 100 + place * megabytes / 10));
        for record in &mut case.flight {
            record.cpu_ms = busy.map(|busy| record.time_ms * busy / 100);
        }
        pattern(&case).unwrap().kind
    };
    assert_eq!(ramp(300, None), PatternKind::Burst, "fast, nothing known");
    assert_eq!(ramp(100, None), PatternKind::Leak, "not so fast, nothing known");
    assert_eq!(ramp(100, Some(100)), PatternKind::Burst, "not so fast, computing");
    assert_eq!(ramp(300, Some(5)), PatternKind::Leak, "fast, but mostly waiting");
    assert_eq!(ramp(50, Some(100)), PatternKind::Leak, "slow, computing");
}

#[test]
fn a_run_that_tells_its_use_shows_what_the_allocator_keeps() {
    let mut case = flight((0..100).map(|place| if place < 20 { 100 } else { 900 }));
    for record in &mut case.flight {
        let is_used = (2_000..5_000).contains(&record.time_ms);
        record.ledger_used = Some(if is_used { 850 * MB } else { 80 * MB });
    }
    check(
        "kept",
        &case,
        PatternKind::Retention,
        "memory stays at 900 MB though only 80 MB of it is in use, down from 850 MB: the allocator keeps what was freed",
    );
}

#[test]
fn a_growing_cgroup_is_no_leak_where_files_grow() {
    let mut case = flight([100; 100]);
    for record in &mut case.flight {
        record.cgroup_usage = Some(120 * MB + record.time_ms * MB / 10);
    }
    assert_eq!(
        pattern(&case).unwrap().kind,
        PatternKind::Steady,
        "what grows is not known"
    );
    for record in &mut case.flight {
        record.read_bytes = Some(record.time_ms * MB / 10);
        record.shared_memory = Some(0);
    }
    assert_eq!(
        pattern(&case).unwrap().kind,
        PatternKind::PageCache,
        "as much was read"
    );
    for record in &mut case.flight {
        record.cgroup_anonymous = Some(100 * MB);
        record.cgroup_file = Some(20 * MB + record.time_ms * MB / 10);
        record.cgroup_shared = Some(0);
        record.shared = Some(0);
        record.proportional = record.resident;
    }
    check(
        "the cgroup tells",
        &case,
        PatternKind::PageCache,
        "the page cache grew by 990 MB, which the kernel takes back when it needs it; what the run itself holds is 100 MB",
    );
    for record in &mut case.flight {
        record.cgroup_shared = Some(record.time_ms * MB / 10);
    }
    assert_eq!(
        pattern(&case).unwrap().kind,
        PatternKind::Leak,
        "shared memory that nobody has mapped is held"
    );
}

/// A parent and workers. Shares are told once a second; in between pages count once for each process that has them.
fn workers(own_at: impl Fn(u64) -> u64) -> Case {
    const COMMON: u64 = 800;
    const N: u64 = 4;
    let mut case = Case::default();
    for time_ms in (0..10_000).step_by(100) {
        let own = own_at(time_ms);
        let closely = time_ms % 1_000 == 0;
        let (resident, proportional) = ((COMMON + own) * N, COMMON + own * N);
        case.flight.push(FlightRecord {
            time_ms,
            resident: Some(resident * MB),
            proportional: closely.then_some(proportional * MB),
            anonymous: Some(if closely { proportional } else { resident } * MB),
            file: Some(0),
            processes: N as u32,
            ..FlightRecord::default()
        });
        for pid in 1..=N {
            case.processes.push(ProcessRecord {
                time_ms,
                pid: pid as i32,
                parent: i32::from(pid > 1),
                start_time: pid,
                name: "python3".into(),
                state: 'R',
                resident: Some((COMMON + own) * MB),
                proportional: closely.then_some((COMMON / N + own) * MB),
                private: closely.then_some(own * MB),
                ..ProcessRecord::default()
            });
        }
    }
    case
}

#[test]
fn shares_and_residence_do_not_mix() {
    check(
        "nothing moves",
        &workers(|_| 10),
        PatternKind::Steady,
        "memory stayed at 840 MB for 7.9 s after the start",
    );
    check(
        "workers that leak",
        &workers(|time_ms| time_ms / 100),
        PatternKind::Leak,
        "memory grew by 40 MB a second for 9.9 s and gave nothing back",
    );
}

#[test]
fn forked_workers_that_copy_are_no_leak() {
    let mut case = workers(|_| 0);
    // Resident sizes stay; what is shared becomes their own.
    for record in case
        .processes
        .iter_mut()
        .filter(|record| record.proportional.is_some())
    {
        let copied = record.time_ms * 700 / 10_000;
        record.private = Some(copied * MB);
        record.proportional = Some((200 + copied * 3 / 4) * MB);
    }
    for record in case
        .flight
        .iter_mut()
        .filter(|record| record.proportional.is_some())
    {
        let copied = record.time_ms * 700 / 10_000;
        record.proportional = Some((800 + copied * 3) * MB);
        record.anonymous = record.proportional;
    }
    check(
        "copied",
        &case,
        PatternKind::CopyOnWrite,
        "3 forked processes copied 1.89 GB of what they had in common within 9 s, while their resident sizes stayed as they were",
    );
    // The parent ends: what it shared becomes its children's own, and nothing is copied.
    let mut case = workers(|_| 0);
    for record in case.processes.iter_mut().filter(|record| record.time_ms >= 5_000) {
        record.private = record.private.map(|_| 260 * MB);
        record.proportional = record.proportional.map(|_| 266 * MB);
    }
    case.processes
        .retain(|record| record.pid != 1 || record.time_ms < 5_000);
    for record in case.flight.iter_mut().filter(|record| record.time_ms >= 5_000) {
        record.processes = 3;
        record.resident = Some(2_400 * MB);
        record.anonymous = Some(if record.proportional.is_some() { 800 } else { 2_400 } * MB);
    }
    case.facts.ended_children.push(crate::why::EndedChild {
        time_ms: 5_000,
        pid: 1,
        parent: 0,
        name: "python3".into(),
        exit: None,
        resident: None,
    });
    assert_eq!(pattern(&case).unwrap().kind, PatternKind::Steady);
}

#[test]
fn what_comes_and_goes_between_two_looks_is_not_called_steady() {
    let case = flight((0..60).map(|place| [20, 90, 30, 100, 60][place * 7 % 5]));
    check(
        "faster than it was looked at",
        &case,
        PatternKind::Sawtooth,
        "memory went up and down between 20 MB and 100 MB for 4.7 s, faster than it was looked at",
    );
}

#[test]
fn a_leak_that_was_killed_between_two_looks_came_up_to_the_line() {
    let mut case = flight((0..40).map(|place| 20 + place * 4));
    case.facts.limit = Some(200 * MB);
    case.facts.peak = Some(199 * MB);
    case.facts.exit = Some(crate::ended::Exit::Signal(libc::SIGKILL));
    check(
        "killed",
        &case,
        PatternKind::Leak,
        "memory grew by 40 MB a second for 3.9 s and gave nothing back, up to the line of 200 MB",
    );
}
