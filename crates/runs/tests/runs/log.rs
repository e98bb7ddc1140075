//! The log: times, odd bytes, long lines, and its tail.

use std::fs;

use tidegate_runs::{LogWriter, Stream, tail};

fn written(lines: &[&[u8]]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.txt");
    let mut log = LogWriter::open(&path).unwrap();
    for line in lines {
        log.line(Stream::Err, line).unwrap();
    }
    log.flush().unwrap();
    let text = fs::read_to_string(path).unwrap();
    // `2026-11-15T20:15:30.123Z err text`
    for line in text.lines() {
        assert_eq!(
            (&line[4..5], &line[10..11], &line[23..29]),
            ("-", "T", "Z err "),
            "{line}"
        );
    }
    text.lines().map(|line| line[29..].to_string()).collect()
}

#[test]
fn any_bytes_become_one_line_each() {
    assert_eq!(
        written(&[b"plain", b"", b"bad \xff utf-8", b"a\nb"]),
        ["plain", "", "bad \u{fffd} utf-8", "a b"]
    );
}

#[test]
fn a_long_line_is_cut_and_says_so() {
    let lines = written(&[&vec![b'x'; 1_000_000]]);
    assert!(
        lines[0].len() < 10_000 && lines[0].ends_with("… (991808 bytes more)"),
        "{}",
        lines[0].len()
    );
}

fn check_tail(text: &str, n: usize, expected: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.txt");
    fs::write(&path, text).unwrap();
    assert_eq!(
        tail(&path, n).unwrap(),
        expected,
        "the last {n} of {:?}",
        &text[..text.len().min(40)]
    );
}

#[test]
fn the_tail_is_the_last_lines() {
    check_tail("", 3, &[]);
    check_tail("a\nb\nc\n", 0, &[]);
    check_tail("a\nb\nc\n", 2, &["b", "c"]);
    check_tail("a\nb\nc", 2, &["b", "c"]);
    check_tail("a\nb\nc\n", 9, &["a", "b", "c"]);
    check_tail("a\n\n\n", 2, &["", ""]);
    // Lines that end exactly on the border of a block, and blocks without any line end.
    for length in [16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1, 100_000] {
        let long = "y".repeat(length);
        check_tail(&format!("first\n{long}\nlast\n"), 2, &[&long, "last"]);
        check_tail(&format!("first\n{long}\nlast\n"), 3, &["first", &long, "last"]);
    }
}

#[test]
fn the_tail_of_a_file_without_lines_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.txt");
    fs::write(&path, "z".repeat(20 << 20)).unwrap();
    let lines = tail(&path, 5).unwrap();
    assert!(lines.len() == 1 && lines[0].len() <= 4 << 20);
}

#[test]
fn a_log_that_is_not_there_is_an_error_with_its_path() {
    let error = tail(std::path::Path::new("/no/such/log.txt"), 5).unwrap_err();
    assert!(error.to_string().contains("/no/such/log.txt"));
}
