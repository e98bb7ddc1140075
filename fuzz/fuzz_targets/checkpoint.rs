//! Loading a checkpoint; the first zero byte parts the state from the tensors.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_train::Checkpoint;

fuzz_target!(|bytes: &[u8]| {
    let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("state.json"), &bytes[..at]).unwrap();
    std::fs::write(
        folder.path().join("tensors.safetensors"),
        bytes.get(at + 1..).unwrap_or(&[]),
    )
    .unwrap();
    let _ = Checkpoint::load(folder.path());
});
