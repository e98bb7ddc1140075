//! The budget on recorded machines. Each folder of `tests/hosts` is one layout: its `/proc` and `/sys`, its
//! environment, and in `expected.txt` what must be found there.

use std::fs;

use tidegate_memory::{Amount, BoundKind, Budget, Error, Host, resolve};

use crate::{hosts, recorded};

/// The layouts that must stay covered.
const LAYOUTS: [&str; 10] = [
    "bare-v2",
    "docker-v1",
    "docker-v2",
    "docker-v2-host-namespace",
    "hybrid",
    "kubernetes-v2",
    "login-node",
    "nested-outside-view",
    "slurm-v1",
    "slurm-v2-middle",
];

fn describe(budget: &Budget) -> String {
    let mut text = format!(
        "{} of {} bytes, by {}\n\n",
        budget.bytes,
        budget.whole(),
        budget.bound.name
    );
    for bound in &budget.bounds {
        text += &format!("{bound}\n");
    }
    text
}

#[test]
fn each_layout_has_its_budget() {
    let mut found: Vec<String> = fs::read_dir(hosts())
        .expect("tests/hosts is there")
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    found.sort();
    assert_eq!(found, LAYOUTS);
    for layout in LAYOUTS {
        let budget = resolve(&recorded(layout), None).unwrap_or_else(|error| panic!("{layout}: {error}"));
        let expected = fs::read_to_string(hosts().join(layout).join("expected.txt")).unwrap_or_default();
        let actual = describe(&budget);
        assert!(
            actual == expected,
            "{layout}: expected\n{expected}\nfound\n{actual}"
        );
    }
}

#[test]
fn what_is_asked_is_a_share_or_is_clipped() {
    let host = recorded("docker-v2");
    let ask = |asked: Amount| resolve(&host, Some(asked)).expect("a bound is known");
    let whole = 2_147_483_648;
    for (asked, bytes, clipped) in [
        (Amount::Share(0.5), whole / 2, false),
        (Amount::Share(1.0), whole, false),
        (Amount::Bytes(256_000_000), 256_000_000, false),
        (Amount::Bytes(whole), whole, false),
        (Amount::Bytes(whole + 1), whole, true),
        (Amount::Bytes(u64::MAX), whole, true),
    ] {
        let budget = ask(asked);
        assert_eq!(
            (budget.bytes, budget.clipped, budget.asked),
            (bytes, clipped, Some(asked)),
            "{asked}"
        );
        assert_eq!((budget.whole(), budget.bound.kind), (whole, BoundKind::Cgroup2));
    }
}

#[test]
fn a_limit_of_zero_leaves_nothing() {
    let root = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir_all(root.path().join("proc")).expect("writable");
    fs::write(root.path().join("proc/meminfo"), "MemAvailable: 0 kB\n").expect("writable");
    let host = Host::recorded(root.path(), [("", ""); 0]);
    for asked in [None, Some(Amount::Bytes(100)), Some(Amount::Share(0.5))] {
        let error = resolve(&host, asked).expect_err("nothing is left");
        assert!(
            matches!(error, Error::NothingLeft { .. }) && error.hint().is_some(),
            "{error}"
        );
    }
}

#[test]
fn a_budget_reads_back_from_json() {
    let budget = resolve(&recorded("slurm-v1"), Some(Amount::Share(0.5))).expect("a bound is known");
    let json = serde_json::to_string(&budget).expect("serializes");
    assert!(
        json.contains(r#""asked":"50%""#) && json.contains(r#""kind":"cgroup1""#),
        "{json}"
    );
    assert_eq!(serde_json::from_str::<Budget>(&json).expect("reads back"), budget);
}
