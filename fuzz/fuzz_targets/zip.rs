//! Reading the tables in a zip archive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::read_source;

fuzz_target!(|bytes: &[u8]| read_source("table.zip", &[b"PK\x03\x04", bytes].concat()));
