//! What the source of a run adds to its recordings: steps that keep something, and what grows between two waits.

use std::path::Path;

use tidegate_runs::FlightRecord;

use super::stacks::{Look, stacks};
use crate::why::{Case, PatternKind, Scripts};

fn scripts(source: &str) -> Scripts {
    Scripts::parse(Path::new("/job"), &[("/job/train.py".into(), source.into())])
}

/// A run that grows by 20 MB a second up to its end, with one thread that always stands there.
fn grows(seconds: u64, thread: &str) -> Case {
    let threads = [thread];
    let times = (0..=seconds * 20).map(|place| place * 50);
    let looks: Vec<Look<'_>> = times
        .map(|time_ms| (time_ms, 20 + time_ms / 50, &threads[..]))
        .collect();
    let flight = looks.iter().map(|(time_ms, megabytes, _)| FlightRecord {
        time_ms: *time_ms,
        processes: 1,
        anonymous: Some(megabytes * 1_000_000),
        resident: Some(megabytes * 1_000_000),
        ..FlightRecord::default()
    });
    let mut case = Case {
        flight: flight.collect(),
        stacks: stacks(&looks),
        ..Case::default()
    };
    case.facts.folder = "/job".into();
    case
}

#[test]
fn steps_that_keep_something_are_a_leak_and_one_call_is_none() {
    let check = |name: &str, source: &str, thread: &str, seconds: u64, expected: PatternKind| {
        let pattern = super::super::pattern(&grows(seconds, thread), &scripts(source)).expect(name);
        assert_eq!(pattern.kind, expected, "{name}: {}", pattern.sentence);
    };
    let append = "kept = []\nfor step in range(9):\n    kept.append(make(step))\n";
    check(
        "a loop of one line",
        append,
        "gil train.py:3:<module>",
        4,
        PatternKind::Leak,
    );
    check(
        "for a second",
        append,
        "gil train.py:3:<module>",
        1,
        PatternKind::Leak,
    );
    check("no source", "", "gil train.py:3:<module>", 4, PatternKind::Burst);
    check(
        "in a function that a loop calls",
        "def make(step):\n    return [step for _ in range(step)]\nfor step in range(9):\n    rows = make(step)\n    kept.append(rows)\n",
        "gil train.py:4:<module> > train.py:2:make",
        4,
        PatternKind::Leak,
    );
    check(
        "a file that is read whole",
        "import pandas as pd\ntable = pd.read_csv('a.csv')\n",
        "gil train.py:2:<module>",
        4,
        PatternKind::Burst,
    );
    check(
        "one of several files",
        "import pandas as pd\nfor name in names:\n    parts.append(pd.read_csv(name))\n",
        "gil train.py:3:<module>",
        4,
        PatternKind::Burst,
    );
    check(
        "a comprehension",
        "rows = [make(step) for step in range(9)]\n",
        "gil train.py:1:<module>",
        4,
        PatternKind::Burst,
    );
    check(
        "a loop that keeps nothing",
        "for epoch in range(9):\n    data = load()\n    train(data)\n",
        "gil train.py:2:<module>",
        4,
        PatternKind::Burst,
    );
}

#[test]
fn growth_between_two_waits_belongs_to_the_line_that_keeps() {
    let check = |name: &str, source: &str, thread: &str, expected: u32| {
        let (case, scripts) = (grows(2, thread), scripts(source));
        let lines: Vec<u32> = super::super::growth(&case, &scripts)
            .iter()
            .map(|growth| growth.place.line)
            .collect();
        assert_eq!(lines, [expected], "{name}");
        let now = super::super::growing_now(&case, &scripts).expect(name);
        assert_eq!(now.line, expected, "{name}");
    };
    let append = "import time\nwhile True:\n    data.append(bytearray(1 << 20))\n    time.sleep(0.01)\n";
    check("beside a sleep", append, "wait train.py:4:<module>", 3);
    check(
        "it has slept and waits for a processor",
        append,
        "run train.py:4:<module>",
        3,
    );
    check(
        "a line that runs is taken at its word",
        "while True:
    data.append(load())
    train(data)
",
        "gil train.py:3:<module>",
        3,
    );
    check("no source", "", "wait train.py:4:<module>", 4);
    check(
        "a function that sleeps",
        "import time\ndef pause():\n    time.sleep(1)\nwhile True:\n    data += [load()]\n    pause()\n",
        "wait train.py:6:<module> > train.py:3:pause",
        5,
    );
    check(
        "either of two lines",
        "while True:\n    a.append(load())\n    b.append(load())\n    time.sleep(1)\n",
        "wait train.py:4:<module>",
        4,
    );
}
