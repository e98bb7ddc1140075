//! The house rules, checked: who may depend on whom, under which licences, and documents that say what is so.
//!
//! A rule that only stands in prose is forgotten. Every failure here says what to do about it.

mod documents;
mod graph;
mod licences;
mod sources;

use std::path::{Path, PathBuf};

/// The folder of the whole workspace.
fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let root = crates.and_then(Path::parent).expect("this crate is in crates/");
    root.to_path_buf()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below `folder` whose name ends so, from the root; build folders left out.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in
            std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        {
            let path = entry.expect("a readable folder").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && name != "target" {
                folders.push(path);
            } else if name.ends_with(ending) {
                let path = path.strip_prefix(root()).expect("found below the root");
                found.push(path.to_path_buf());
            }
        }
    }
    found.sort();
    found
}

/// Fails with every complaint at once, and with what to do.
#[track_caller]
fn none_of(complaints: Vec<String>, remedy: &str) {
    assert!(
        complaints.is_empty(),
        "\n  {}\n{remedy}\n",
        complaints.join("\n  ")
    );
}
