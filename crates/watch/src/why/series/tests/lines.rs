//! Which line growth is given to.

use tidegate_runs::FlightRecord;

use super::stacks::{Look, add, stacks};
use super::{growing_now, growth};
use crate::why::Case;

const MAIN: &str = "gil train.py:9:<module>";

fn case_of(looks: &[Look<'_>]) -> Case {
    Case {
        stacks: stacks(looks),
        ..Case::default()
    }
}

/// `train.py:4 120 MB`, each on a line; then the line it was growing on.
fn told(case: &Case) -> String {
    let growth = growth(case);
    let shares: f64 = growth.iter().map(|growth| growth.share).sum();
    assert!(shares <= 1.0, "{shares}");
    let lines = growth.iter().map(|growth| {
        let place = format!("{}:{}", growth.place.file, growth.place.line);
        let within: Vec<&str> = growth
            .within
            .iter()
            .map(|frame| frame.function.as_str())
            .collect();
        let mut text = format!("{place} {} MB", (growth.bytes + 500_000) / 1_000_000);
        if !within.is_empty() {
            text += &format!(" in {}", within.join(" > "));
        }
        if let Some(cell) = growth.cell {
            text += &format!(" cell {cell}");
        }
        text
    });
    let now = growing_now(case).map_or("nowhere".to_string(), |frame| {
        format!("{}:{}", frame.file, frame.line)
    });
    lines.chain([format!("now {now}")]).collect::<Vec<_>>().join(", ")
}

fn check(name: &str, looks: &[Look<'_>], expected: &str) {
    assert_eq!(told(&case_of(looks)), expected, "{name}");
}

#[test]
fn growth_belongs_to_the_line_that_ran() {
    const LOAD: &str = "gil train.py:9:<module> > train.py:4:load";
    const PARSE: &str = "gil train.py:9:<module> > train.py:4:load > train.py:2:parse";
    const FIT: &str = "gil train.py:12:<module>";
    check(
        "one line",
        &[(0, 10, &[LOAD]), (100, 60, &[LOAD]), (200, 110, &[LOAD])],
        "train.py:4 100 MB, now train.py:4",
    );
    check(
        "deeper in the same call",
        &[(0, 10, &[MAIN]), (100, 30, &[LOAD]), (200, 110, &[PARSE])],
        "train.py:2 80 MB, train.py:4 20 MB, now train.py:2",
    );
    check(
        "from one line to another",
        &[(0, 10, &[LOAD]), (100, 30, &[FIT]), (200, 130, &[FIT])],
        "train.py:12 112 MB, train.py:4 8 MB, now train.py:12",
    );
    check(
        "what was given back by the same line does not count",
        &[
            (0, 10, &[LOAD]),
            (100, 110, &[LOAD]),
            (200, 10, &[LOAD]),
            (300, 110, &[LOAD]),
            (400, 12, &[LOAD]),
            (500, 12, &[FIT]),
            (600, 52, &[FIT]),
            (700, 132, &[FIT]),
        ],
        "train.py:12 120 MB, train.py:4 2 MB, now train.py:12",
    );
    check(
        "a large block that comes and goes hides no small ones that stay",
        &[
            (0, 10, &[LOAD]),
            (100, 110, &[LOAD]),
            (200, 110, &[FIT]),
            (300, 150, &[FIT]),
            (400, 50, &[MAIN]),
            (500, 150, &[LOAD]),
            (600, 150, &[FIT]),
            (700, 190, &[FIT]),
            (800, 90, &[MAIN]),
            (900, 190, &[LOAD]),
            (1_000, 190, &[FIT]),
            (1_100, 230, &[FIT]),
        ],
        "train.py:12 120 MB, train.py:4 100 MB, now train.py:12",
    );
    check(
        "no growth",
        &[(0, 10, &[LOAD]), (100, 10, &[LOAD])],
        "now nowhere",
    );
    check("nothing at all", &[], "now nowhere");
}

#[test]
fn growth_belongs_to_the_code_of_the_user() {
    check(
        "libraries and the standard library",
        &[
            (
                0,
                10,
                &[
                    "gil train.py:9:<module> > /venv/lib/python3.11/site-packages/pandas/io.py:7:read > /usr/lib/python3.11/json/decoder.py:3:decode",
                ],
            ),
            (
                100,
                60,
                &[
                    "gil train.py:9:<module> > /venv/lib/python3.11/site-packages/pandas/io.py:7:read > /usr/lib/python3.11/json/decoder.py:3:decode",
                ],
            ),
        ],
        "train.py:9 50 MB in read > decode, now train.py:9",
    );
    check(
        "comprehensions and lambdas",
        &[
            (
                0,
                10,
                &["gil train.py:9:<module> > train.py:4:load > train.py:5:<listcomp> > train.py:5:<lambda>"],
            ),
            (100, 60, &["gil train.py:9:<module> > train.py:4:load"]),
        ],
        "train.py:4 50 MB, now train.py:4",
    );
    check(
        "an import",
        &[
            (
                0,
                10,
                &[
                    "gil train.py:1:<module> > <frozen importlib._bootstrap>:100:_load > /venv/lib/python3.11/site-packages/torch/__init__.py:9:<module>",
                ],
            ),
            (
                100,
                60,
                &[
                    "gil train.py:1:<module> > <frozen importlib._bootstrap>:100:_load > /venv/lib/python3.11/site-packages/torch/__init__.py:9:<module>",
                ],
            ),
        ],
        "train.py:1 50 MB in _load > <module>, now train.py:1",
    );
    check(
        "python -c",
        &[
            (0, 10, &["gil <string>:1:<module>"]),
            (100, 60, &["gil <string>:1:<module>"]),
        ],
        "<string>:1 50 MB, now <string>:1",
    );
    check(
        "a spawned worker and code that a dataclass made",
        &[
            (
                0,
                10,
                &[
                    "gil <string>:1:<module> > /usr/lib/python3.11/multiprocessing/spawn.py:116:spawn_main > train.py:30:work > <string>:3:__init__",
                ],
            ),
            (
                100,
                60,
                &[
                    "gil <string>:1:<module> > /usr/lib/python3.11/multiprocessing/spawn.py:116:spawn_main > train.py:30:work > <string>:3:__init__",
                ],
            ),
        ],
        "train.py:30 50 MB in __init__, now train.py:30",
    );
    check(
        "cells of notebooks",
        &[
            (
                0,
                10,
                &[
                    "gil /venv/bin/jupyter:8:<module> > /usr/lib/python3.11/runpy.py:8:run > <ipython-input-3-4f2a>:2:<module>",
                ],
            ),
            (
                100,
                60,
                &[
                    "gil /venv/bin/jupyter:8:<module> > /usr/lib/python3.11/runpy.py:8:run > <ipython-input-3-4f2a>:2:<module>",
                ],
            ),
            (
                200,
                80,
                &[
                    "gil /venv/bin/jupyter:8:<module> > /usr/lib/python3.11/runpy.py:8:run > /tmp/ipykernel_77/123456.py:5:<module>",
                ],
            ),
        ],
        "<ipython-input-3-4f2a>:2 62 MB cell 3, /tmp/ipykernel_77/123456.py:5 8 MB, now <ipython-input-3-4f2a>:2",
    );
    check(
        "no code of the user's",
        &[
            (
                0,
                10,
                &[
                    "gil /venv/bin/torchrun:8:<module> > /venv/lib/python3.11/site-packages/torch/run.py:7:main",
                ],
            ),
            (
                100,
                60,
                &[
                    "gil /venv/bin/torchrun:8:<module> > /venv/lib/python3.11/site-packages/torch/run.py:7:main",
                ],
            ),
        ],
        "/venv/lib/python3.11/site-packages/torch/run.py:7 50 MB, now /venv/lib/python3.11/site-packages/torch/run.py:7",
    );
}

#[test]
fn growth_belongs_to_the_thread_that_ran() {
    const MONITOR: &str = "gil /venv/lib/python3.11/site-packages/tqdm/monitor.py:9:run";
    check(
        "the one with the interpreter's lock",
        &[
            (0, 10, &["run train.py:9:<module>", "gil train.py:4:load"]),
            (100, 60, &["run train.py:9:<module>", "gil train.py:4:load"]),
        ],
        "train.py:4 50 MB, now train.py:4",
    );
    check(
        "those that run",
        &[
            (0, 10, &["run train.py:9:<module>", "run train.py:4:load"]),
            (100, 60, &["run train.py:9:<module>", "run train.py:4:load"]),
        ],
        "train.py:4 25 MB, train.py:9 25 MB, now train.py:4",
    );
    check(
        "not one that has no code of the user's",
        &[
            (0, 10, &["run train.py:9:<module>", MONITOR]),
            (100, 60, &["run train.py:9:<module>", MONITOR]),
        ],
        "train.py:9 50 MB, now train.py:9",
    );
    check(
        "a loop that mostly sleeps",
        &[
            (0, 10, &["wait train.py:5:<module>"]),
            (100, 20, &["wait train.py:5:<module>"]),
            (200, 30, &["gil train.py:4:<module>"]),
            (300, 40, &["wait train.py:5:<module>"]),
            (400, 50, &["wait train.py:5:<module>"]),
        ],
        "train.py:4 40 MB, now train.py:4",
    );
    check(
        "waiting for threads that are not Python's",
        &[
            (0, 10, &["gil train.py:1:<module>"]),
            (100, 20, &["gil train.py:1:<module>"]),
            (200, 20, &["wait train.py:5:<module>"]),
            (300, 60, &["wait train.py:5:<module>"]),
            (400, 90, &["wait train.py:5:<module>"]),
        ],
        "train.py:5 70 MB, train.py:1 10 MB, now train.py:5",
    );
}

#[test]
fn processes_count_together_if_they_live_at_the_peak() {
    const WORK: &str = "gil train.py:30:work";
    let mut case = case_of(&[(0, 10, &[MAIN]), (10_000, 60, &[MAIN]), (20_000, 60, &[MAIN])]);
    // The first worker is long gone when the second ones grow.
    add(&mut case.stacks, 2, &[(0, 10, &[WORK]), (1_000, 30, &[WORK])]);
    add(
        &mut case.stacks,
        3,
        &[(15_000, 10, &[WORK]), (20_000, 110, &[WORK])],
    );
    add(
        &mut case.stacks,
        4,
        &[(15_000, 10, &[WORK]), (20_000, 60, &[WORK])],
    );
    assert_eq!(
        told(&case),
        "train.py:30 150 MB, train.py:9 50 MB, now train.py:30"
    );
}

#[test]
fn growth_is_what_was_held_at_the_peak() {
    const LOAD: &str = "gil train.py:4:load";
    const SAVE: &str = "gil train.py:40:save";
    let mut case = case_of(&[
        (0, 10, &[LOAD]),
        (1_000, 510, &[LOAD]),
        (2_000, 10, &[LOAD]),
        (3_000, 30, &[SAVE]),
        (4_000, 60, &[SAVE]),
    ]);
    for (time_ms, megabytes) in [(0, 10), (1_000, 510), (2_000, 10), (3_000, 30), (4_000, 60)] {
        case.flight.push(FlightRecord {
            time_ms,
            anonymous: Some(megabytes * 1_000_000),
            resident: Some(megabytes * 1_000_000),
            processes: 1,
            ..FlightRecord::default()
        });
    }
    assert_eq!(told(&case), "train.py:4 500 MB, now train.py:40");
}
