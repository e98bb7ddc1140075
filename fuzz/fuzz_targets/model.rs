//! Loading a model folder; zero bytes part `model.toml`, `encoders.json` and the weights.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_train::{Model, Report};

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().unwrap();
    let names = ["model.toml", "encoders.json", "weights.safetensors"];
    for (name, part) in names.iter().zip(bytes.splitn(3, |byte| *byte == 0)) {
        std::fs::write(folder.path().join(name), part).unwrap();
    }
    std::fs::write(folder.path().join("report.json"), bytes).unwrap();
    let _ = (Model::load(folder.path()), Report::load(folder.path()));
});
