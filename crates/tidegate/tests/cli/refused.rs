//! `tidegate run` of what cannot be started: it ends like a shell, and the reason is kept.

use std::os::unix::fs::PermissionsExt;

use crate::help::Place;

/// Runs a file with this text and these rights, and checks the exit code and the verdict.
fn check(text: Option<&str>, mode: u32, code: i32, cause: &str, named: &str) {
    let place = Place::new();
    let path = place.path("job");
    if let Some(text) = text {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let answer = place.run_words(&["run", "--", path.to_str().unwrap(), "--epochs", "3"]);
    assert_eq!(answer.code, Some(code), "{}", answer.stderr);
    let explained = place.json("why");
    let verdict = &explained["verdict"];
    assert_eq!(
        (verdict["grade"].as_str(), verdict["cause"].as_str()),
        (Some("proven"), Some(cause)),
        "{verdict}"
    );
    assert!(verdict["sentence"].as_str().unwrap().contains(named), "{verdict}");
}

#[test]
fn a_command_that_cannot_be_started_is_explained() {
    check(None, 0, 127, "missing_file", "/job was not found");
    check(
        Some("#!/bin/sh\n"),
        0o644,
        126,
        "permission",
        "/job may not be executed",
    );
    check(
        Some("#!/nowhere/python3\n"),
        0o755,
        127,
        "missing_file",
        "/nowhere/python3, which is to run it",
    );
}
