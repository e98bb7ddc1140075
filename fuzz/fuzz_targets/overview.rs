//! Overviews of recordings: of memory, of processes, of holders.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_runs::{Span, flight_overview, holders_overview, process_overview};

fuzz_target!(|input: (Option<u64>, Option<u64>, u8, &[u8])| {
    let (from_ms, to_ms, points, bytes) = input;
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("a file that can be written");
    let (span, points) = (Span { from_ms, to_ms }, usize::from(points));
    let _ = flight_overview(file.path(), span, points);
    let _ = process_overview(file.path(), span, points, points);
    let _ = holders_overview(file.path(), span, points);
});
