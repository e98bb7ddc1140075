//! Reading a Parquet file: the bytes stand between its marks, so that they are taken for one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::read_source;

fuzz_target!(|bytes: &[u8]| read_source("table.parquet", &[b"PAR1", bytes, b"PAR1"].concat()));
