//! What to change, from the code of a run and where its memory grew.

use std::path::PathBuf;

use tidegate_runs::{Frame, ProcessRecord};
use tidegate_watch::OverLine;
use tidegate_watch::why::{
    Case, Cause, Facts, Growth, Remedy, general_remedies, read_sources, remedies, sources,
};

pub(crate) const MB: u64 = 1_000_000;

pub(crate) fn case(command: &str) -> Case {
    Case {
        facts: Facts {
            command: command.split(' ').map(str::to_string).collect(),
            folder: "/home/ada/job".into(),
            ..Facts::default()
        },
        ..Case::default()
    }
}

fn frame(file: &str, line: u32) -> Frame {
    Frame {
        file: file.into(),
        line,
        function: "<module>".into(),
    }
}

pub(crate) fn grew(file: &str, line: u32, bytes: u64, share: f64) -> Growth {
    Growth {
        place: frame(file, line),
        bytes,
        share,
        within: Vec::new(),
        cell: None,
        code: None,
    }
}

#[test]
fn the_script_is_named_on_the_command_line() {
    let check = |command: &[&str], expected: &[&str]| {
        let mut case = case("");
        case.facts.command = command.iter().map(|word| word.to_string()).collect();
        let found: Vec<String> = sources(&case)
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let expected: Vec<String> = expected
            .iter()
            .map(|path| format!("/home/ada/job/{path}"))
            .collect();
        assert_eq!(found, expected, "{command:?}");
    };
    check(&["python", "train.py"], &["train.py"]);
    check(
        &[
            "/usr/bin/python3.11",
            "-u",
            "-W",
            "ignore",
            "-X",
            "dev",
            "src/../train.py",
            "--data",
            "other.py",
        ],
        &["train.py"],
    );
    check(
        &[
            "env",
            "A=1",
            "nice",
            "-n",
            "5",
            "timeout",
            "60",
            "python3",
            "./train.py",
        ],
        &["train.py"],
    );
    check(&["./train.py", "--epochs", "3"], &["train.py"]);
    check(
        &["python", "-m", "pack.train", "--x"],
        &["pack/train.py", "pack/train/__main__.py"],
    );
    check(&["python", "job"], &["job", "job/__main__.py"]);
    check(
        &["python", "-m", "cProfile", "-o", "out.prof", "train.py"],
        &["train.py"],
    );
    check(
        &["torchrun", "--nproc_per_node", "4", "train.py", "--lr", "0.1"],
        &["train.py"],
    );
    check(
        &[
            "python",
            "-m",
            "torch.distributed.run",
            "--nproc_per_node=4",
            "-m",
            "pack.train",
        ],
        &["pack/train.py", "pack/train/__main__.py"],
    );
    check(
        &["accelerate", "launch", "--multi_gpu", "train.py"],
        &["train.py"],
    );
    check(
        &[
            "jupyter",
            "nbconvert",
            "--to",
            "notebook",
            "--execute",
            "look.ipynb",
        ],
        &["look.ipynb"],
    );
    check(
        &["papermill", "in.ipynb", "out.ipynb", "-p", "x", "1"],
        &["in.ipynb"],
    );
    check(
        &["bash", "-c", "cd . && OMP_NUM_THREADS=1 python 'train.py' --x"],
        &["train.py"],
    );
    check(&["python", "-c", "import train"], &[]);
    check(&["python", "-"], &[]);
    check(&["make", "all"], &[]);
    check(&[], &[]);
}

#[test]
fn files_of_the_stacks_are_read_too_but_not_libraries() {
    let mut case = case("python train.py");
    let files = [
        "/home/ada/job/train.py",
        "/home/ada/job/data/load.py",
        "/usr/lib/python3.11/threading.py",
        "/home/ada/.venv/lib/python3.11/site-packages/pandas/io/parsers.py",
        "<frozen importlib._bootstrap>",
        "/tmp/ipykernel_77/123.py",
        "model.py",
    ];
    case.stacks.frames = files.iter().map(|file| frame(file, 1)).collect();
    let found: Vec<String> = sources(&case)
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    assert_eq!(
        found,
        [
            "/home/ada/job/train.py",
            "/home/ada/job/data/load.py",
            "/home/ada/job/model.py"
        ]
    );
}

#[test]
fn sources_are_read_as_far_as_they_can_be() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("good.py"), "x = 1\n").expect("written");
    std::fs::write(path("latin.py"), b"# gr\xf6\xdfer\nx = 1\n").expect("written");
    std::fs::write(path("long.py"), "#".repeat((1 << 20) + 1)).expect("written");
    std::fs::create_dir(path("folder.py")).expect("made");
    let mut case = case("python good.py");
    case.facts.folder = folder.path().into();
    let others = ["latin.py", "long.py", "none.py", "folder.py"];
    case.stacks.frames = others.iter().map(|file| frame(file, 1)).collect();
    let read = read_sources(&case);
    let read: Vec<(&str, &str)> = read
        .iter()
        .map(|(path, text)| {
            (
                path.file_name().and_then(|name| name.to_str()).expect("a name"),
                text.as_str(),
            )
        })
        .collect();
    assert_eq!(
        read,
        [
            ("good.py", "x = 1\n"),
            ("latin.py", "# gr\u{fffd}\u{fffd}er\nx = 1\n")
        ]
    );
}

const SCRIPT: &str = "\
import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge

df = pd.read_csv('flights.csv')
noise = np.zeros((len(df), 100))
table = build(df)
model = Ridge()
model.fit(df, df['delay'])
";

fn of_script(case: &Case, cause: Cause, growth: &[Growth]) -> Vec<Remedy> {
    remedies(
        case,
        cause,
        growth,
        &[(PathBuf::from("/home/ada/job/train.py"), SCRIPT.to_string())],
    )
}

#[test]
fn what_was_measured_comes_first_by_what_it_saves() {
    let mut case = case("python train.py");
    case.facts.limit = Some(2_000 * MB);
    let growth = [
        grew("/home/ada/job/train.py", 7, 600 * MB, 0.3),
        grew("train.py", 5, 1_000 * MB, 0.5),
        grew("/home/ada/job/train.py", 6, 390 * MB, 0.19),
        grew("/home/ada/job/train.py", 9, 10 * MB, 0.01),
    ];
    let found = of_script(&case, Cause::Line, &growth);
    let told: Vec<String> = found
        .iter()
        .map(|remedy| {
            let line = remedy.place.as_ref().map_or(0, |place| place.line);
            format!(
                "{line} {} {:?} {}",
                remedy.measured,
                remedy.saves.map(|bytes| bytes / MB),
                remedy.title
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "5 true Some(900) Read flights.csv in pieces",
            "6 true Some(195) Use float32 instead of float64",
            "7 true None Look at train.py, line 7: memory grew there by 600 MB",
            "0 false None Draw the line higher",
        ]
    );
    let first = &found[0];
    assert_eq!(
        first.command.as_deref(),
        Some("tidegate train flights.csv --target delay --memory 2GB")
    );
    assert_eq!(first.before.as_deref(), Some("df = pd.read_csv('flights.csv')"));
    assert_eq!(
        first.place.as_ref().map(|place| place.file.as_str()),
        Some("/home/ada/job/train.py")
    );
    assert_eq!(found[2].before.as_deref(), Some("table = build(df)"));
    assert_eq!(found[3].command.as_deref(), Some("--memory 2.4GB"));
}

#[test]
fn without_measurement_all_is_a_hint() {
    for growth in [
        &[][..],
        &[grew("/home/ada/job/train.py", 5, MB, 0.04)],
        &[grew("/home/ada/job/other.py", 5, MB, 0.9)],
    ] {
        let found = of_script(&case("python train.py"), Cause::HostOom, growth);
        let hints: Vec<&Remedy> = found.iter().filter(|remedy| remedy.after.is_some()).collect();
        assert_eq!(hints.len(), 2);
        assert!(
            hints
                .iter()
                .all(|remedy| !remedy.measured && remedy.saves.is_none())
        );
        assert!(
            found.last().is_some_and(|last| last.after.is_some()),
            "hints come last"
        );
    }
}

#[test]
fn growth_inside_a_library_belongs_to_the_line_that_called_it() {
    let mut growth = grew(
        "/usr/lib/python3/dist-packages/pandas/io/parsers.py",
        1707,
        100 * MB,
        0.9,
    );
    growth.within = vec![
        frame("/home/ada/job/train.py", 5),
        frame("/usr/lib/python3/dist-packages/pandas/io/api.py", 12),
    ];
    let found = of_script(&case("python train.py"), Cause::CgroupOom, &[growth]);
    assert_eq!(found[0].title, "Read flights.csv in pieces");
    assert_eq!(found[0].saves, Some(90 * MB));
}

#[test]
fn nobody_is_sent_to_change_a_library_or_an_import() {
    let titles = |growth: Growth| -> Vec<String> {
        let found = of_script(&case("python train.py"), Cause::CgroupOom, &[growth]);
        let looks = found.into_iter().map(|remedy| remedy.title);
        looks.filter(|title| title.starts_with("Look at ")).collect()
    };
    let file = "/home/ada/job/other.py";
    assert_eq!(titles(grew(file, 7, 900 * MB, 0.9)).len(), 1);
    for library in [
        "/opt/env/lib/python3.12/site-packages/certifi/core.py",
        "/usr/lib/python3/dist-packages/pandas/io/parsers.py",
        "/usr/lib/python3.12/json/decoder.py",
        "<frozen importlib._bootstrap_external>",
    ] {
        assert_eq!(titles(grew(library, 7, 900 * MB, 0.9)), [""; 0], "{library}");
    }
    let mut import = grew(file, 7, 900 * MB, 0.9);
    import.within = vec![frame("<frozen importlib._bootstrap>", 1)];
    assert_eq!(titles(import), [""; 0]);
}

#[test]
fn a_graph_that_is_kept_grows_where_it_is_made() {
    let script = "\
import torch
total = 0
for x, y in loader:
    out = model(x)
    loss = criterion(out, y)
    loss.backward()
    total += loss
";
    let sources = [(PathBuf::from("train.py"), script.to_string())];
    let growth = [
        grew("/home/ada/job/train.py", 4, 800 * MB, 0.8),
        grew("/home/ada/job/train.py", 6, 200 * MB, 0.2),
    ];
    let found = remedies(&case("python train.py"), Cause::Line, &growth, &sources);
    assert_eq!(
        found[0].title,
        "Keep the number in `loss`, not the graph that made it"
    );
    assert_eq!((found[0].measured, found[0].saves), (true, Some(900 * MB)));
    // The host's memory says nothing about the device's.
    let found = remedies(&case("python train.py"), Cause::DeviceMemory, &growth, &sources);
    assert!(
        found
            .iter()
            .all(|remedy| !remedy.measured && remedy.saves.is_none())
    );
    let last = found.last().expect("a hint");
    assert_eq!(last.after.as_deref(), Some("    total += loss.item()"));
}

#[test]
fn each_cause_gets_what_matters_for_it() {
    let script = "\
import sys
import pandas as pd
from torch.utils.data import DataLoader
sys.setrecursionlimit(10**7)
df = pd.read_csv('x.csv')
loader = DataLoader(data, batch_size=64)
files = [open(path) for path in paths]
";
    let check = |cause: Cause, expected: &[&str]| {
        let found = remedies(
            &case("python train.py"),
            cause,
            &[],
            &[(PathBuf::from("train.py"), script.to_string())],
        );
        let lines: Vec<String> = found
            .iter()
            .filter(|remedy| remedy.after.is_some())
            .map(|remedy| remedy.before.clone().unwrap_or_default())
            .collect();
        assert_eq!(lines, expected, "{cause}");
    };
    let read = "df = pd.read_csv('x.csv')";
    let batch = "loader = DataLoader(data, batch_size=64)";
    check(Cause::HostOom, &[read, batch]);
    check(Cause::DeviceMemory, &[batch]);
    check(Cause::SharedMemory, &[batch]);
    check(Cause::OpenFiles, &["files = [open(path) for path in paths]"]);
    check(Cause::StackOverflow, &["sys.setrecursionlimit(10**7)"]);
    check(Cause::Unknown, &[]);
    check(Cause::MissingFile, &[]);
    check(Cause::Success, &[]);
}

#[test]
fn an_option_of_the_script_can_be_given_smaller() {
    let script = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--batch-size', default=64)\n";
    let check = |command: &str, expected: &str| {
        let found = remedies(
            &case(command),
            Cause::DeviceMemory,
            &[],
            &[(PathBuf::from("t.py"), script.to_string())],
        );
        let told: Vec<&str> = found
            .iter()
            .filter_map(|remedy| remedy.command.as_deref())
            .collect();
        assert!(told.contains(&expected), "{told:?}");
    };
    check("python t.py", "python t.py --batch-size 32");
    check(
        "python t.py --batch-size 128 --x",
        "python t.py --batch-size 32 --x",
    );
    check("python t.py --batch-size=128", "python t.py --batch-size=32");
}

#[test]
fn workers_that_hold_most_of_it_are_counted() {
    let mut case = case("python train.py");
    case.facts.pid = Some(10);
    let record = |pid: i32, time_ms: u64, megabytes: u64| ProcessRecord {
        time_ms,
        pid,
        private: Some(megabytes * MB),
        ..process()
    };
    case.processes = vec![
        record(10, 1_000, 500),
        record(11, 1_000, 100),
        record(12, 1_000, 400),
        record(11, 2_000, 600),
    ];
    let found = general_remedies(&case, Cause::HostOom);
    assert_eq!(found[0].title, "Let half as many processes work side by side");
    assert_eq!((found[0].measured, found[0].saves), (true, Some(500 * MB)));
    assert!(
        general_remedies(&case, Cause::DeviceMemory)
            .iter()
            .all(|remedy| !remedy.measured)
    );
}

fn process() -> ProcessRecord {
    ProcessRecord {
        time_ms: 0,
        pid: 0,
        parent: 1,
        start_time: 7,
        name: "python".into(),
        state: 'S',
        threads: 1,
        resident: None,
        proportional: None,
        private: None,
        anonymous: None,
        file: None,
        shared: None,
        swap: None,
        virtual_size: None,
        minor_faults: None,
        major_faults: None,
        cpu_ms: None,
        read_bytes: None,
        written_bytes: None,
        open_files: None,
    }
}

#[test]
fn the_line_is_drawn_where_the_run_was_seen_to_need_it() {
    let mut case = case("python train.py");
    case.facts.limit = Some(1_000 * MB);
    case.facts.over_line = Some(OverLine {
        used: 1_310 * MB,
        limit: 1_000 * MB,
        proportional: true,
    });
    let found = general_remedies(&case, Cause::Line);
    assert_eq!(found[0].command.as_deref(), Some("--memory 1.6GB"));
    case.facts.limit = None;
    assert!(general_remedies(&case, Cause::Line).is_empty());
}

#[test]
fn every_cause_of_a_resource_has_a_remedy() {
    use Cause::{
        AddressSpace, CgroupOom, DeviceMemory, DiskFull, HostOom, OpenFiles, Processes, SharedMemory,
        StackOverflow,
    };
    for cause in [
        AddressSpace,
        CgroupOom,
        DeviceMemory,
        DiskFull,
        HostOom,
        OpenFiles,
        Processes,
        SharedMemory,
        StackOverflow,
    ] {
        assert!(!general_remedies(&Case::default(), cause).is_empty(), "{cause}");
    }
    assert!(general_remedies(&Case::default(), Cause::Success).is_empty());
}

proptest::proptest! {
    #[test]
    fn no_command_makes_it_panic(words in proptest::collection::vec("[ -~]{0,20}", 0..8)) {
        let mut case = case("");
        case.facts.command = words;
        sources(&case);
    }
}
