//! Logs read piece by piece: forward, backward, from a time on, by words, and whatever bytes stand in them.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use tempfile::TempDir;
use tidegate_runs::{
    Error, LogLine, LogWriter, Needle, Stream, log_after, log_at_time, log_before, log_search, timestamp,
};

/// A log whose last line is as it will stay.
fn log_of(bytes: &[u8]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.txt");
    fs::write(&path, bytes).unwrap();
    make_old(&path);
    (dir, path)
}

fn make_old(path: &Path) {
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(60))
        .unwrap();
}

fn texts(lines: &[LogLine]) -> Vec<&str> {
    lines.iter().map(|line| line.text.as_str()).collect()
}

/// All lines, by windows of `n` from the start.
fn forward(path: &Path, n: usize) -> Vec<LogLine> {
    let mut lines = Vec::new();
    let mut at = 0;
    loop {
        let window = log_after(path, at, n).unwrap();
        assert_eq!(window.start, at, "windows follow each other");
        assert!(window.lines.len() <= n);
        if window.lines.is_empty() {
            assert_eq!(window.end, at);
            return lines;
        }
        assert!(window.end > at);
        at = window.end;
        lines.extend(window.lines);
    }
}

/// All lines, by windows of `n` from the end.
fn backward(path: &Path, n: usize) -> Vec<LogLine> {
    let mut lines = Vec::new();
    let mut at = u64::MAX;
    loop {
        let window = log_before(path, at, n).unwrap();
        assert!(at == u64::MAX || window.end == at, "windows follow each other");
        assert!(window.lines.len() <= n);
        if window.lines.is_empty() {
            assert_eq!(window.start, 0);
            return lines;
        }
        assert!(window.start < at);
        at = window.start;
        lines.splice(0..0, window.lines);
    }
}

#[test]
fn what_was_written_is_read_with_its_times() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.txt");
    let mut log = LogWriter::open(&path).unwrap();
    log.line(Stream::Out, b"\x1b[32mepoch 1\x1b[0m").unwrap();
    log.line(Stream::Err, b"").unwrap();
    log.line(Stream::Err, b"out x").unwrap();
    log.flush().unwrap();
    let window = log_after(&path, 0, 9).unwrap();
    assert_eq!(texts(&window.lines), ["\x1b[32mepoch 1\x1b[0m", "", "out x"]);
    let streams: Vec<Option<Stream>> = window.lines.iter().map(|line| line.stream).collect();
    assert_eq!(streams, [Some(Stream::Out), Some(Stream::Err), Some(Stream::Err)]);
    let now = tidegate_runs::now_ms();
    assert!(
        window
            .lines
            .iter()
            .all(|line| (now - 60_000..=now).contains(&line.time_ms.unwrap()))
    );
    assert_eq!((window.start, window.end), (0, window.length));
    assert_eq!(log_before(&path, u64::MAX, 9).unwrap(), window);
}

#[test]
fn lines_are_taken_as_they_stand() {
    let t = "2026-11-15T20:15:30.123Z";
    let time = tidegate_runs::parse_timestamp(t);
    let check = |line: &str, time_ms: Option<i64>, stream: Option<Stream>, text: &str| {
        let (_dir, path) = log_of(format!("{line}\n").as_bytes());
        let expected = LogLine {
            offset: 0,
            time_ms,
            stream,
            text: text.into(),
        };
        assert_eq!(log_after(&path, 0, 9).unwrap().lines, [expected], "{line:?}");
    };
    check(&format!("{t} out a b "), time, Some(Stream::Out), "a b ");
    check(&format!("{t} err "), time, Some(Stream::Err), "");
    check(&format!("{t} err"), time, Some(Stream::Err), "");
    check(&format!("{t} errand"), time, None, "errand");
    check(&format!("{t} "), time, None, "");
    check(t, time, None, "");
    check(&format!("{t}x"), None, None, &format!("{t}x"));
    check("2026-11-15 out x", None, None, "2026-11-15 out x");
    check("", None, None, "");
    check("tab\tand\rreturn", None, None, "tab\tand\rreturn");
}

#[test]
fn a_log_that_is_not_there_can_be_told_from_one_that_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("log.txt");
    assert!(matches!(
        log_after(&missing, 0, 1),
        Err(Error::NotRecorded { .. })
    ));
    assert!(matches!(
        log_before(&missing, 0, 1),
        Err(Error::NotRecorded { .. })
    ));
    assert!(matches!(log_at_time(&missing, 0), Err(Error::NotRecorded { .. })));
    assert!(matches!(
        log_search(&missing, &Needle::Errors, 0, 1, 1),
        Err(Error::NotRecorded { .. })
    ));
    fs::create_dir(&missing).unwrap();
    assert!(matches!(log_after(&missing, 0, 1), Err(Error::Io { .. })));
}

#[test]
fn a_line_that_is_being_written_is_left_for_later() {
    let (_dir, path) = log_of(b"");
    let mut file = File::options().append(true).open(&path).unwrap();
    file.write_all(b"one\ntw").unwrap();
    let window = log_after(&path, 0, 9).unwrap();
    assert_eq!(
        (texts(&window.lines), window.end, window.length),
        (vec!["one"], 4, 6)
    );
    assert_eq!(texts(&log_before(&path, u64::MAX, 9).unwrap().lines), ["one"]);
    let hits = log_search(&path, &Needle::Text("tw".into()), 0, 9, 99).unwrap();
    assert_eq!((hits.lines.len(), hits.next, hits.searched_to), (0, None, 4));
    file.write_all(b"o\n").unwrap();
    assert_eq!(texts(&log_after(&path, 4, 9).unwrap().lines), ["two"]);
    assert_eq!(
        log_search(&path, &Needle::Text("TW".into()), 4, 9, 99)
            .unwrap()
            .lines
            .len(),
        1
    );

    file.write_all(b"thr").unwrap();
    make_old(&path);
    assert_eq!(texts(&log_after(&path, 8, 9).unwrap().lines), ["thr"]);
    assert_eq!(
        texts(&log_before(&path, u64::MAX, 2).unwrap().lines),
        ["two", "thr"]
    );
}

#[test]
fn a_file_without_lines_is_read_in_pieces() {
    let mut bytes = vec![b'z'; 20 << 20];
    bytes[5_000_000] = b'\n';
    bytes[15_000_000..15_000_005].copy_from_slice(b"\nneed");
    let (_dir, path) = log_of(&bytes);
    let window = log_after(&path, 0, 1_000_000).unwrap();
    assert!(window.end <= (4 << 20) + 32 * 1024, "{}", window.end);
    assert!(window.lines.iter().all(|line| line.text.len() <= 32 * 1024));
    let window = log_before(&path, u64::MAX, 1_000_000).unwrap();
    assert!(window.end - window.start <= (4 << 20) + 32 * 1024);
    assert_eq!(forward(&path, 100), backward(&path, 77));
    let hits = log_search(&path, &Needle::Text("zneed".into()), 0, 9, u64::MAX).unwrap();
    assert!(hits.lines.is_empty() && hits.next.is_none() && hits.searched_to == 20 << 20);
    let hits = log_search(&path, &Needle::Text("need".into()), 0, 9, u64::MAX).unwrap();
    assert_eq!(hits.lines[0].offset, 15_000_001);
    assert_eq!(log_at_time(&path, 0).unwrap(), 20 << 20);
}

fn some_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..40),
        2 => (0i64..4_000_000_000_000, "(out|err) [ -~]{0,30}\n").prop_map(|(ms, text)| format!("{} {text}", timestamp(ms)).into_bytes()),
        // Around the lengths at which lines are cut.
        1 => (0usize..5, 0usize..4, any::<bool>()).prop_map(|(cells, more, ends)| {
            let mut line = vec![b'x'; (cells * 16 * 1024 + more).saturating_sub(2)];
            line.extend(ends.then_some(b'\n'));
            line
        }),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn windows_tile_the_file(bytes in some_bytes(), n in 1usize..7, m in 1usize..40) {
        let (_dir, path) = log_of(&bytes);
        let lines = forward(&path, n);
        prop_assert_eq!(&lines, &backward(&path, m));
        // Every line begins where the one before it ended, and short ones are cut by newlines alone.
        let ends = lines.iter().skip(1).map(|line| line.offset).chain([bytes.len() as u64]);
        let mut begin = 0;
        for (line, end) in lines.iter().zip(ends) {
            prop_assert_eq!(line.offset, begin);
            prop_assert!(end > begin && end - begin < 32 * 1024);
            let raw = &bytes[begin as usize..end as usize];
            prop_assert!(!raw[..raw.len() - 1].contains(&b'\n'));
            prop_assert!(raw.ends_with(b"\n") || end as usize == bytes.len() || raw.len() >= 16 * 1024);
            begin = end;
        }
        prop_assert_eq!(begin, bytes.len() as u64);
    }

    #[test]
    fn any_place_leads_to_the_lines_around_it(bytes in some_bytes(), at in any::<prop::sample::Index>(), n in 1usize..5) {
        let (_dir, path) = log_of(&bytes);
        let all = forward(&path, 100);
        let at = at.index(bytes.len() + 10) as u64;
        let after = log_after(&path, at, n).unwrap();
        let expected: Vec<LogLine> = all.iter().filter(|line| line.offset >= at).take(n).cloned().collect();
        prop_assert_eq!(&after.lines, &expected);
        prop_assert!(after.start >= at.min(bytes.len() as u64));
        let before = log_before(&path, after.start, n).unwrap();
        let mut expected: Vec<LogLine> = all.iter().rev().filter(|line| line.offset < after.start).take(n).cloned().collect();
        expected.reverse();
        prop_assert_eq!(&before.lines, &expected);
        prop_assert_eq!(before.end, after.start);
    }

    #[test]
    fn every_hit_is_found_once(bytes in some_bytes(), needle in "[a-zA-Z0-9: ]{1,2}|out|Z |xX", most in 1usize..6, budget in 1u64..100_000) {
        // Escape sequences are no text.
        let bytes: Vec<u8> = bytes.into_iter().map(|byte| if byte == 0x1b { b'x' } else { byte }).collect();
        let (_dir, path) = log_of(&bytes);
        let lower = |text: &str| text.to_ascii_lowercase();
        let expected: Vec<LogLine> = forward(&path, 100)
            .into_iter()
            // What is no UTF-8 is searched as it is, not as it is shown.
            .filter(|line| lower(&line.text).contains(&lower(&needle)))
            .collect();
        let what = Needle::Text(needle);
        let (mut found, mut from) = (Vec::new(), 0);
        loop {
            let hits = log_search(&path, &what, from, most, budget).unwrap();
            prop_assert!(hits.lines.len() <= most);
            found.extend(hits.lines);
            match hits.next {
                Some(next) => {
                    prop_assert!(next > from && next == hits.searched_to);
                    from = next;
                }
                None => {
                    prop_assert_eq!(hits.searched_to, bytes.len() as u64);
                    break;
                }
            }
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_time_leads_to_its_line(
        gaps in prop::collection::vec((0i64..2000, 0usize..3, 0usize..2000), 1..300),
        wanted in any::<prop::sample::Index>(),
        off in -1i64..2,
    ) {
        let mut text = String::from("before all times\n");
        let mut times = Vec::new();
        let mut now = 1_794_773_730_123;
        for (gap, without, length) in gaps {
            now += gap;
            times.push((now, text.len() as u64));
            text.push_str(&format!("{} out {}\n", timestamp(now), "x".repeat(length)));
            text.push_str(&"  belongs to it\n".repeat(without));
        }
        let (_dir, path) = log_of(text.as_bytes());
        let ms = times[wanted.index(times.len())].0 + off;
        let expected = times.iter().find(|(time, _)| *time >= ms).map_or(text.len() as u64, |(_, at)| *at);
        prop_assert_eq!(log_at_time(&path, ms).unwrap(), expected);
    }

    #[test]
    fn junk_never_panics(bytes in some_bytes(), at in any::<u64>(), ms in any::<i64>()) {
        let (_dir, path) = log_of(&bytes);
        log_after(&path, at, 3).unwrap();
        log_before(&path, at, 3).unwrap();
        prop_assert!(log_at_time(&path, ms).unwrap() <= bytes.len() as u64);
        for what in [Needle::Errors, Needle::Text(String::new()), Needle::Text("\n".into())] {
            log_search(&path, &what, at, 3, at).unwrap();
            log_search(&path, &what, 0, usize::MAX, u64::MAX).unwrap();
        }
    }
}

#[test]
fn a_search_looks_at_the_text_alone() {
    let t = "2026-11-15T20:15:30.123Z";
    let (_dir, path) = log_of(format!("{t} out epoch 1\n{t} err OUT of luck 2026\nplain out\n").as_bytes());
    let found = |text: &str| {
        let hits = log_search(&path, &Needle::Text(text.into()), 0, 99, u64::MAX).unwrap();
        hits.lines
            .into_iter()
            .map(|line| line.text)
            .collect::<Vec<String>>()
    };
    assert_eq!(found("out"), ["OUT of luck 2026", "plain out"]);
    assert_eq!(found("2026"), ["OUT of luck 2026"]);
    assert_eq!(found("Z err"), [""; 0]);
    assert_eq!(found("EPOCH"), ["epoch 1"]);
    assert_eq!(found("").len(), 3);
    assert_eq!(found("1\n").len(), 0);
}

#[test]
fn a_search_reads_through_colours() {
    let lines = [
        "plain step 12",
        "\u{1b}[32mINFO\u{1b}[0m st\u{1b}[1mep \u{1b}[33m12\u{1b}[0m",
        "\u{1b}[32mother\u{1b}[0m",
        "\u{1b}]8;;https://step 12\u{7}link",
    ];
    let t = "2026-11-15T20:15:30.123Z";
    let text: String = lines.iter().map(|line| format!("{t} out {line}\n")).collect();
    let (_dir, path) = log_of(text.as_bytes());
    let found = |text: &str| {
        let hits = log_search(&path, &Needle::Text(text.into()), 0, 99, u64::MAX).unwrap();
        let which = |line: &LogLine| lines.iter().position(|known| *known == line.text).unwrap();
        hits.lines.iter().map(which).collect::<Vec<usize>>()
    };
    assert_eq!(found("STEP 12"), [0, 1]);
    assert_eq!(found("info step"), [1]);
    assert_eq!(found("32m"), [0; 0]);
    assert_eq!(found("link"), [3]);
    assert_eq!(found("o"), [1, 2]);
}

/// Which of these lines are taken for an error.
fn errors_among(lines: &[&str]) -> Vec<String> {
    let stamped = |line: &&str| format!("2026-11-15T20:15:30.123Z err {line}\n");
    let (_dir, path) = log_of(lines.iter().map(stamped).collect::<String>().as_bytes());
    let hits = log_search(&path, &Needle::Errors, 0, usize::MAX, u64::MAX).unwrap();
    hits.lines.into_iter().map(|line| line.text).collect()
}

#[test]
fn what_looks_like_an_error_is_found() {
    let lines = include_str!("errors.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let lines: Vec<String> = lines
        .map(|line| line.replace("\\e", "\x1b").replace("\\r", "\r"))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let found = errors_among(&lines);
    let missed: Vec<&&str> = lines
        .iter()
        .filter(|line| !found.iter().any(|text| text == **line))
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
    assert!(lines.len() > 60);
}

#[test]
fn what_merely_has_the_words_is_not() {
    let lines: Vec<&str> = include_str!("near_misses.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(errors_among(&lines), [""; 0]);
    assert!(lines.len() > 60);
}
