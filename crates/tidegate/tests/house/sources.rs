//! How a source file looks: it says what it is, it is not too long, and none of its tests sleeps.

use crate::{files, none_of, read};

/// At this length there is a seam to be found.
const LONGEST: usize = 600;
/// Names that say nothing, so that everything ends up there.
const EMPTY_NAMES: [&str; 8] = [
    "base", "common", "core", "helpers", "misc", "types", "util", "utils",
];

fn sources() -> Vec<(String, String)> {
    let mut paths = files("crates", ".rs");
    paths.extend(files("benches", ".rs"));
    assert!(paths.len() > 50, "only {} source files were found", paths.len());
    paths
        .iter()
        .map(|path| (path.display().to_string(), read(path)))
        .collect()
}

#[test]
fn every_file_says_what_it_is() {
    let silent = sources()
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//! "));
    none_of(
        silent.map(|(path, _)| path).collect(),
        "Open the file with a `//! ` sentence that says what it holds.",
    );
}

#[test]
fn no_file_is_too_long() {
    let long = sources().into_iter().filter_map(|(path, text)| {
        let lines = text.lines().count();
        (lines > LONGEST).then(|| format!("{path}: {lines} lines"))
    });
    none_of(
        long.collect(),
        "Find the seam and split the file; tests of more than about 150 lines move to foo/tests.rs.",
    );
}

#[test]
fn no_file_or_folder_has_an_empty_name() {
    let empty = sources().into_iter().map(|(path, _)| path).filter(|path| {
        path.split('/')
            .any(|part| EMPTY_NAMES.contains(&part.trim_end_matches(".rs")))
    });
    none_of(empty.collect(), "Name the file for what it holds.");
}

#[test]
fn no_test_is_ignored() {
    // In two pieces, so as not to find itself.
    let attribute = concat!("#[", "ignore");
    let ignored = sources().into_iter().filter(|(_, text)| text.contains(attribute));
    none_of(
        ignored.map(|(path, _)| path).collect(),
        "A test that does not run is not a test: make it run, or take it out.",
    );
}

#[test]
fn no_snapshot_waits_to_be_read() {
    let mut waiting = files("crates", ".pending-snap");
    waiting.extend(files("crates", ".snap.new"));
    none_of(
        waiting.iter().map(|path| path.display().to_string()).collect(),
        "A test saw something new. Read it; accept it with `cargo insta accept`, or mend what changed.",
    );
}
