//! Recordings of small programs that did run, in `tests/series`: a line `F` for all processes, a line `P` for one, sizes in
//! KiB, `-` for what was not read.

use tidegate_runs::{FlightRecord, ProcessRecord};

use super::pattern;
use crate::why::{Case, PatternKind};

use PatternKind::{Burst, CopyOnWrite, Leak, PageCache, Plateau, Sawtooth, Steady};

fn read(name: &str) -> Case {
    let path = format!("{}/tests/series/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut case = Case::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let size = |place: usize| words[place].parse::<u64>().ok().map(|kilobytes| kilobytes << 10);
        let number = |place: usize| {
            words[place]
                .parse::<u64>()
                .unwrap_or_else(|error| panic!("{line}: {error}"))
        };
        match words[0] {
            "F" => case.flight.push(FlightRecord {
                time_ms: number(1),
                resident: size(2),
                proportional: size(3),
                anonymous: size(4),
                file: size(5),
                shared: size(6),
                swap: size(7),
                processes: number(8) as u32,
                cpu_ms: Some(number(9)),
                cgroup_usage: size(10),
                cgroup_anonymous: size(11),
                cgroup_file: size(12),
                cgroup_shared: size(13),
                ..FlightRecord::default()
            }),
            _ => case.processes.push(ProcessRecord {
                time_ms: number(1),
                pid: number(2) as i32,
                parent: number(3) as i32,
                start_time: number(4),
                name: words[5].to_string(),
                state: words[6].chars().next().unwrap_or('?'),
                resident: size(7),
                proportional: size(8),
                private: size(9),
                ..ProcessRecord::default()
            }),
        }
    }
    case
}

#[test]
fn programs_that_ran_are_what_they_are() {
    let mut complaints = Vec::new();
    for (name, expected) in [
        // Keeps an array of each step.
        ("leak_loop", Leak),
        // A dictionary that only grows, in millions of small objects.
        ("leak_objects", Leak),
        // The same for three seconds.
        ("short_leak", Leak),
        // `malloc` without `free`.
        ("c_leak", Leak),
        // Three forked workers, each keeping what it makes.
        ("fork_leaks", Leak),
        // In a cgroup.
        ("page_leak", Leak),
        // Loads and frees in each epoch, and keeps a little of it.
        ("leak_epochs", Leak),
        ("epochs", Sawtooth),
        // `lru_cache` that fills and stays.
        ("lru", Plateau),
        // A cache without a bound over keys that are used up.
        ("cache_unbounded_keys", Plateau),
        // Blocks of random sizes, allocated and freed at random.
        ("c_churn", Plateau),
        ("read_csv", Burst),
        ("read_csv_train", Burst),
        ("json_load", Burst),
        ("three", Burst),
        // Millions of strings made and freed: the allocator keeps the pages.
        ("retention", Burst),
        ("idle", Steady),
        // Buffers of each size that comes up, and then the same work over and over.
        ("buffers", Burst),
        ("page_cache", PageCache),
        ("mapped", PageCache),
        // Three forked workers that read a list of strings, which counts references.
        ("fork_copies", CopyOnWrite),
    ] {
        let pattern = pattern(&read(name)).expect("seconds have a shape");
        println!("{name:22} {:14} {}", pattern.kind.as_str(), pattern.sentence);
        if pattern.kind != expected {
            complaints.push(format!(
                "{name}: {} — {}",
                pattern.kind.as_str(),
                pattern.sentence
            ));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
