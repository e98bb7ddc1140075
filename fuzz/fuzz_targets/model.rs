//! Loading a model folder; zero bytes part `model.toml`, `encoders.json` and what was learned.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_train::{Model, Report};

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().unwrap();
    let parts: Vec<&[u8]> = bytes.splitn(3, |byte| *byte == 0).collect();
    let names = ["model.toml", "encoders.json", "weights.safetensors"];
    for (name, part) in names.iter().zip(&parts) {
        std::fs::write(folder.path().join(name), part).unwrap();
    }
    if let Some(learned) = parts.get(2) {
        std::fs::write(folder.path().join("forest.json"), learned).unwrap();
    }
    std::fs::write(folder.path().join("report.json"), bytes).unwrap();
    let _ = (Model::load(folder.path()), Report::load(folder.path()));
});
