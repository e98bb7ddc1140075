//! Reading JSON lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::read_source;

fuzz_target!(|bytes: &[u8]| read_source("table.jsonl", bytes));
