//! Reading an Arrow stream, or a file: the bytes stand behind the mark of the one, or between those of the other.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::read_source;

fuzz_target!(|bytes: &[u8]| {
    read_source("table.arrow", &[&[0xff; 4], bytes].concat());
    read_source("table.arrow", &[b"ARROW1\0\0", bytes, b"ARROW1"].concat());
});
