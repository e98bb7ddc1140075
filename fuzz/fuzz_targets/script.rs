//! Looking through a script for what holds memory.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tidegate_watch::why::findings;

fuzz_target!(|source: &str| {
    findings(source, Path::new("train.py"));
});
