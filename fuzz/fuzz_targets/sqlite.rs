//! Reading the table of an SQLite file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::read_source;

fuzz_target!(|bytes: &[u8]| read_source("table.sqlite", &[b"SQLite format 3\0", bytes].concat()));
