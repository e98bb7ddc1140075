//! Files that are not what they were.

use std::fs;
use std::path::Path;

/// Ways to damage a file.
pub(crate) const DAMAGES: [&str; 3] = ["cut", "changed", "gone"];

/// Damages a file in one of the ways.
pub(crate) fn damage(path: &Path, how: &str) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    match how {
        "cut" => fs::write(path, &bytes[..middle]).unwrap(),
        "gone" => fs::remove_file(path).unwrap(),
        _ => {
            bytes[middle] ^= 0x55;
            fs::write(path, bytes).unwrap();
        }
    }
}
