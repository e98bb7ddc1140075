//! Runs the same workloads over each allocator, each in a fresh process, and prints how much memory the
//! kernel saw for the bytes the program had asked for.

mod choice;
mod workloads;

use std::env;
use std::process::Command;
use std::time::Instant;

use tidegate_memory::{Counting, Host, process_status};

#[global_allocator]
static ALLOCATOR: Counting<choice::Chosen> = Counting::over(choice::Chosen);

/// How often each is run.
const RUNS: u32 = 5;

/// An allocator with settings: its label, and the environment that its process starts with.
const VARIANTS: [(&str, &[(&str, &str)]); 10] = [
    ("glibc", &[("ALLOCATOR", "system")]),
    ("glibc, 2 arenas", &[("ALLOCATOR", "system"), ("ARENAS", "2")]),
    ("glibc, 1 arena", &[("ALLOCATOR", "system"), ("ARENAS", "1")]),
    (
        "glibc, mmap from 128 KiB",
        &[("ALLOCATOR", "system"), ("MMAP", "131072"), ("TRIM", "131072")],
    ),
    (
        "glibc, 2 arenas, mmap from 1 MiB",
        &[
            ("ALLOCATOR", "system"),
            ("ARENAS", "2"),
            ("MMAP", "1048576"),
            ("TRIM", "1048576"),
        ],
    ),
    (
        "glibc, 2 arenas, mmap from 128 KiB",
        &[
            ("ALLOCATOR", "system"),
            ("ARENAS", "2"),
            ("MMAP", "131072"),
            ("TRIM", "1048576"),
        ],
    ),
    ("mimalloc", &[("ALLOCATOR", "mimalloc")]),
    (
        "mimalloc, purge at once",
        &[("ALLOCATOR", "mimalloc"), ("MIMALLOC_PURGE_DELAY", "0")],
    ),
    ("jemalloc", &[("ALLOCATOR", "jemalloc")]),
    (
        "jemalloc, 2 arenas, decay 0",
        &[
            ("ALLOCATOR", "jemalloc"),
            ("_RJEM_MALLOC_CONF", "narenas:2,dirty_decay_ms:0,muzzy_decay_ms:0"),
        ],
    ),
];

fn main() {
    match env::args().nth(1) {
        Some(workload) => measure(&workload),
        None => compare(),
    }
}

fn compare() {
    let program = env::current_exe().expect("a running program has a path");
    println!(
        "| workload | allocator | live peak MB | resident peak MB | ratio | resident after MB | seconds |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: |");
    for workload in ["blocks", "categories", "burst"] {
        for (label, settings) in VARIANTS {
            // Threads fall differently each time, so the live peak does too: means of five.
            let mut sums = [0.0; 4];
            for _ in 0..RUNS {
                let output = Command::new(&program)
                    .arg(workload)
                    .envs(settings.iter().copied())
                    .output();
                let output = output.expect("the program starts again");
                assert!(output.status.success(), "{label} {workload}: {output:?}");
                let text = String::from_utf8_lossy(&output.stdout);
                for (sum, field) in sums.iter_mut().zip(text.split_whitespace()) {
                    *sum += field.parse::<f64>().expect("a number");
                }
            }
            let [live, resident, after, seconds] = sums.map(|sum| sum / f64::from(RUNS));
            println!(
                "| {workload} | {label} | {live:.0} | {resident:.0} | {:.2} | {after:.0} | {seconds:.2} |",
                resident / live
            );
        }
    }
}

/// Runs one workload in this process and prints live peak, resident peak and resident afterwards (MB), seconds.
fn measure(workload: &str) {
    choice::apply_settings();
    let start = Instant::now();
    match workload {
        "blocks" => workloads::blocks(3_000),
        "categories" => workloads::categories(),
        "burst" => workloads::burst(),
        other => panic!("no workload {other}"),
    }
    let seconds = start.elapsed().as_secs_f64();
    let pid = i32::try_from(std::process::id()).expect("a pid fits");
    let status = process_status(&Host::live(), pid).expect("we live");
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "{} {} {} {seconds}",
        megabytes(ALLOCATOR.peak() as u64),
        megabytes(status.peak_resident.expect("VmHWM")),
        megabytes(status.resident.expect("VmRSS")),
    );
}
