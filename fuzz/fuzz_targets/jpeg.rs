//! Decoding any bytes as a JPEG to a sample of any size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::show_picture;

fuzz_target!(|given: ([u8; 3], &[u8])| {
    let (wanted, bytes) = given;
    show_picture("1.jpg", &[&[0xff, 0xd8], bytes].concat(), wanted);
});
