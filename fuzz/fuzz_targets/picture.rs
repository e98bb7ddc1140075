//! Looking at the header of any bytes as a picture of each format, and decoding them, in no more memory than the budget.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::{PICTURE_BUDGET, show_picture};
use tidegate_memory::Counting;

#[global_allocator]
static ALLOCATED: Counting = Counting::new();

/// The bytes themselves, and what the fuzzer has of its own.
const BESIDE: usize = 2 << 20;

/// What each format begins with.
const BEGINNINGS: [&[u8]; 8] = [
    b"",
    b"\xff\xd8",
    b"\x89PNG\r\n\x1a\n",
    b"RIFF",
    b"BM",
    b"GIF89a",
    b"II\x2a\0",
    b"MM\0\x2a",
];

fuzz_target!(|given: (u8, [u8; 3], &[u8])| {
    let (format, wanted, bytes) = given;
    let begin = BEGINNINGS[usize::from(format) % BEGINNINGS.len()];
    show_picture("1.png", &[begin, bytes].concat(), wanted);
    assert!(ALLOCATED.peak() <= PICTURE_BUDGET as usize + BESIDE);
});
