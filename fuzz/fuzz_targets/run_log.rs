//! The log of a run, from every side.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_runs::{Needle, log_after, log_at_time, log_before, log_search};

fuzz_target!(|input: (u64, i64, String, &[u8])| {
    let (offset, ms, text, bytes) = input;
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("a file that can be written");
    let path = file.path();
    let after = log_after(path, offset, 5).expect("any bytes are a log");
    let before = log_before(path, after.start, 5).expect("any bytes are a log");
    assert!(before.end <= after.start);
    let _ = log_at_time(path, ms);
    for needle in [Needle::Errors, Needle::Text(text)] {
        let _ = log_search(path, &needle, offset, 5, offset);
        let _ = log_search(path, &needle, 0, usize::MAX, u64::MAX);
    }
});
