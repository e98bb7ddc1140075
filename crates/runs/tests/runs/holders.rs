//! Who held the budget: what moved is written, little of what did not, and a torn file tells the rest.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;
use tidegate_runs::{Error, HolderOverview, HolderWriter, Span, holders_overview};

const BUDGET: u64 = 1000;

fn written(snapshots: &[(u64, &[(&str, u64)])]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("holders.jsonl");
    let mut writer = HolderWriter::create(&path).unwrap();
    for (time_ms, holders) in snapshots {
        let holders: Vec<(String, u64)> = holders
            .iter()
            .map(|(name, bytes)| (name.to_string(), *bytes))
            .collect();
        writer.append(*time_ms, &holders, BUDGET).unwrap();
    }
    writer.end().unwrap();
    (dir, path)
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(str::to_string)
        .collect()
}

#[test]
fn what_moved_is_written_and_no_more_often_than_each_second() {
    let (_dir, path) = written(&[
        (0, &[("rows", 100)]),
        (100, &[("rows", 500)]),
        (1000, &[("rows", 105), ("model", 5)]),
        (2000, &[("rows", 110), ("model", 10)]),
        (3000, &[("rows", 111), ("model", 10)]),
        (3500, &[("rows", 300), ("model", 10)]),
        (4000, &[("model", 11)]),
        (5000, &[("model", 12)]),
        (6000, &[("model", 13)]),
    ]);
    assert_eq!(
        lines(&path),
        [
            r#"{"holder":0,"name":"rows"}"#,
            r#"{"time_ms":0,"used":[[0,100]]}"#,
            r#"{"holder":1,"name":"model"}"#,
            r#"{"time_ms":3000,"used":[[0,111],[1,10]]}"#,
            r#"{"time_ms":4000,"used":[[1,11]]}"#,
            // The last one, which was held back.
            r#"{"time_ms":6000,"used":[[1,13]]}"#,
        ]
    );
    assert!(
        matches!(HolderWriter::create(&path), Err(Error::Io { .. })),
        "never overwritten"
    );
}

#[test]
fn a_job_that_never_rests_fills_no_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("holders.jsonl");
    let mut writer = HolderWriter::create(&path).unwrap();
    let all =
        |bytes: u64| -> Vec<(String, u64)> { (0..40).map(|n| (format!("holder {n}"), bytes)).collect() };
    let states = [all(1_000_000_000), all(1_500_000_000)];
    // Ten days, in which everything moves every four seconds.
    for step in 0..216_000u64 {
        writer
            .append(step * 4000, &states[step as usize % 2], BUDGET << 20)
            .unwrap();
    }
    let bytes = fs::metadata(&path).unwrap().len();
    assert!((4 << 20..17 << 20).contains(&bytes), "{bytes}");
    let overview = holders_overview(&path, Span::default(), 500).unwrap();
    assert_eq!(overview.holders.len(), 40);
    assert!(
        overview.times_ms[499] > 800_000_000,
        "the last days are there, too"
    );
}

fn overview(path: &Path, from: Option<u64>, to: Option<u64>, points: usize) -> HolderOverview {
    let span = Span {
        from_ms: from,
        to_ms: to,
    };
    holders_overview(path, span, points).unwrap()
}

#[test]
fn holders_hold_what_they_held_until_the_next_snapshot() {
    let (_dir, path) = written(&[
        (1000, &[("rows", 100)]),
        (3000, &[("rows", 500), ("model", 0), ("idle", 0)]),
        (4100, &[("rows", 600), ("model", 300)]),
        (5200, &[("rows", 700), ("model", 50)]),
        (9000, &[]),
    ]);
    let whole = overview(&path, None, None, 5);
    assert_eq!(whole.times_ms, [1000, 3000, 5000, 7000, 9000]);
    // Up to 5200 the most was held as it was at 4100.
    let expected = [
        ("rows".to_string(), vec![100, 600, 600, 700, 700]),
        ("model".to_string(), vec![0, 300, 300, 50, 50]),
    ];
    assert_eq!(whole.holders, expected);

    let longer = overview(&path, Some(0), Some(12_000), 13);
    assert_eq!(
        longer.holders[0].1,
        [0, 100, 100, 500, 600, 600, 700, 700, 700, 700, 0, 0, 0]
    );
    let inner = overview(&path, Some(6000), Some(8000), 3);
    assert_eq!(inner.holders[0], ("rows".into(), vec![700; 3]));
    assert_eq!(overview(&path, Some(7), Some(6), 3), HolderOverview::default());
}

#[test]
fn what_is_missing_or_torn_is_told_apart() {
    let missing = Path::new("/no/such/holders.jsonl");
    assert!(matches!(
        holders_overview(missing, Span::default(), 9),
        Err(Error::NotRecorded { .. })
    ));
    let (_dir, path) = written(&[(0, &[("rows", 100)]), (2000, &[("rows", 200)])]);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() - 5]).unwrap();
    assert_eq!(
        overview(&path, None, None, 9).holders,
        [("rows".into(), vec![100])]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn junk_never_panics(
        lines in prop::collection::vec(prop_oneof![
            "[ -~]{0,40}",
            (0usize..4, "[a-c]").prop_map(|(holder, name)| format!("{{\"holder\":{holder},\"name\":\"{name}\"}}")),
            (any::<u64>(), prop::collection::vec((0usize..4, any::<u64>()), 0..4)).prop_map(|(time, used)| {
                format!("{{\"time_ms\":{time},\"used\":{used:?}}}").replace('(', "[").replace(')', "]")
            }),
        ], 0..30),
        (from, to) in any::<(Option<u64>, Option<u64>)>(),
        points in prop_oneof![0usize..20, Just(usize::MAX)],
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("holders.jsonl");
        fs::write(&path, lines.join("\n")).unwrap();
        let overview = overview(&path, from, to, points);
        prop_assert!(overview.holders.iter().all(|(_, held)| held.len() == overview.times_ms.len()));
    }
}
