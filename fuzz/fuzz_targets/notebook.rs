//! Reading a notebook, and looking through its cells.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tidegate_watch::why::{Notebook, cell_of, findings};

fuzz_target!(|json: &str| {
    if let Some(notebook) = Notebook::parse(json) {
        cell_of(&notebook, "/tmp/ipykernel_7/77.py");
    }
    findings(json, Path::new("train.ipynb"));
});
