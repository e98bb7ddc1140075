//! What a training takes from the ledger: no more than its plan, and all of it comes back.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use tidegate_data::{BadRows, Table, TableOptions};
use tidegate_memory::Ledger;
use tidegate_train::Error;
use tidegate_train::linear::{self, Outcome};

use crate::help::{ROOMY, Scratch, fit, open, open_with, plan, usual};
use crate::tables::{self, Kind, uniform};

/// `n` rows of two cells; `shape` writes the first.
fn rows(n: usize, shape: impl Fn(usize) -> String) -> String {
    let mut text = String::from("x,y\n");
    for i in 0..n {
        writeln!(text, "{},{}", shape(i), u8::from(uniform(1, i) < 0.5)).unwrap();
    }
    text
}

fn digit(i: usize) -> String {
    ((uniform(2, i) * 10.0) as u8).to_string()
}

fn long(i: usize) -> String {
    format!("{:.250}", uniform(2, i))
}

fn shapes() -> Vec<(&'static str, Vec<u8>)> {
    let narrow = rows(600_000, digit);
    let packed = zstd::encode_all(narrow.as_bytes(), 1).unwrap();
    let half_and_half = rows(200_000, |i| if i < 12_000 { long(i) } else { digit(i) });
    vec![
        ("one row short of nothing", rows(40, digit).into()),
        ("narrow rows", narrow.into()),
        ("narrow rows, zstd", packed),
        ("long rows", rows(12_000, long).into()),
        ("long rows, then narrow ones", half_and_half.into()),
        ("five columns", tables::plain_rows(Kind::Number, 60_000).into()),
        ("260 columns", tables::wide(260, 2_000, Kind::Two).into()),
    ]
}

#[test]
fn the_peak_stays_within_the_plan() {
    let mut over = Vec::new();
    for (name, bytes) in shapes() {
        let scratch = Scratch::new("table", bytes);
        let table = open(&scratch.path(), "y");
        for threads in [1, 2, 4] {
            let plan = plan(&table, threads);
            let ledger = Ledger::new(ROOMY);
            let stop = AtomicBool::new(false);
            linear::train(&table, &usual(), &plan, &ledger, None, &stop, &mut |_| {}).unwrap();
            assert_eq!(ledger.used(), 0, "{name}");
            // Rows that turn out shorter than those of the sample come in larger pieces: the ledger keeps to the budget,
            // the plan is a little over.
            let spare = match name.contains("then") {
                true => plan.total() / 2,
                false => 0,
            };
            if ledger.peak() > plan.total() + spare {
                over.push(format!(
                    "{name}, {threads} threads: {} over {}",
                    ledger.peak(),
                    plan.total()
                ));
            }
        }
    }
    assert!(over.is_empty(), "{over:#?}");
}

/// The plan's own total as the budget is enough, and gives the same model as plenty does.
#[test]
fn the_plan_is_enough() {
    for (name, bytes) in shapes() {
        let scratch = Scratch::new("table", bytes);
        let table = open(&scratch.path(), "y");
        let (model, _) = fit(&table, &usual(), &plan(&table, 2), None);
        for threads in [1, 2] {
            let budget = plan(&table, threads).total();
            let tight = linear::plan(&table, threads, 0, budget).unwrap();
            let (found, _) = fit(&table, &usual(), &tight, None);
            assert_eq!(found, model, "{name}, {threads} threads, {budget} bytes");
        }
    }
}

#[test]
fn errors_give_everything_back() {
    let mut late = tables::plain_rows(Kind::Number, 50_000);
    late.push_str("1,2,3,4,5,six\n");
    let scratch = Scratch::new("table.csv", late);
    let strict = open(&scratch.path(), "y");
    let ledger = Ledger::new(ROOMY);
    let run = |table: &Table, ledger: &Ledger| {
        let stop = AtomicBool::new(false);
        linear::train(table, &usual(), &plan(table, 2), ledger, None, &stop, &mut |_| {})
    };
    let found = run(&strict, &ledger);
    match &found {
        Err(Error::Data(tidegate_data::Error::BadRow { line: 50_002, .. })) => {}
        _ => panic!("{found:?}"),
    }
    assert_eq!(ledger.used(), 0);

    let lenient = TableOptions {
        bad_rows: BadRows::Skip,
        ..TableOptions::default()
    };
    let lenient = open_with(&scratch.path(), "y", &lenient);
    match run(&lenient, &ledger).unwrap() {
        Outcome::Done(done) => assert_eq!((done.1.rows.bad, done.1.rows.used), (1, 50_000)),
        stopped => panic!("{stopped:?}"),
    }
    assert_eq!(ledger.used(), 0);

    let small = Ledger::new(100_000);
    assert!(run(&strict, &small).is_err());
    assert_eq!(small.used(), 0);
    std::fs::write(scratch.path(), "x,y\n1,2\n").unwrap();
    let found = run(&strict, &ledger);
    assert!(
        matches!(found, Err(Error::Data(tidegate_data::Error::Changed { .. }))),
        "{found:?}"
    );
    assert_eq!(ledger.used(), 0);
}
