//! A training stopped at any block and taken up again ends in the same bits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate_data::Table;
use tidegate_memory::Ledger;
use tidegate_train::linear::{self, ClassWeights, Options, Outcome};
use tidegate_train::{Checkpoint, Error, Event};

use crate::help::{ROOMY, Scratch, bits, fit, open, plan, usual};
use crate::tables::{self, Kind};

/// Stops at the `k`th checkpoint, one of which is written behind every block; `None` when there is no `k`th.
fn stopped_at(table: &Table, options: &Options, k: usize) -> Option<Checkpoint> {
    let (stop, ledger) = (AtomicBool::new(false), Ledger::new(ROOMY));
    let mut seen = 0;
    let mut sink = |event: Event| {
        if let Event::Checkpoint { .. } = event {
            stop.store(seen >= k, Ordering::Relaxed);
            seen += 1;
        }
    };
    let outcome = linear::train(table, options, &plan(table, 2), &ledger, None, &stop, &mut sink).unwrap();
    assert_eq!(ledger.used(), 0);
    match outcome {
        Outcome::Done(_) => None,
        Outcome::Stopped { checkpoint, .. } => {
            assert!(checkpoint, "there is a place for it");
            Some(Checkpoint::load(options.checkpoint.as_ref().unwrap()).unwrap())
        }
    }
}

/// Returns the methods and epochs that were met on the way.
fn check(name: &'static str, text: String, epochs: u32) -> Vec<(String, u64)> {
    check_with(name, text, Options { epochs, ..usual() })
}

fn check_with(name: &'static str, text: String, straight_on: Options) -> Vec<(String, u64)> {
    let scratch = Scratch::new("table.csv", text);
    let table = open(&scratch.path(), "y");
    let options = Options {
        checkpoint: Some(scratch.beside("checkpoint")),
        checkpoint_every: Duration::ZERO,
        ..straight_on.clone()
    };
    let wanted = fit(&table, &straight_on, &plan(&table, 2), None);
    let mut met = Vec::new();
    for k in 0.. {
        let Some(checkpoint) = stopped_at(&table, &options, k) else {
            break;
        };
        let state = &checkpoint.state;
        met.push((
            state["method"].as_str().unwrap().to_string(),
            state["progress"]["epoch"].as_u64().unwrap(),
        ));
        let found = fit(&table, &straight_on, &plan(&table, 3), Some(&checkpoint));
        let place = format!("{name}, stop {k}: {:?}", met[k]);
        assert_eq!(bits(&found.0), bits(&wanted.0), "{place}");
        assert_eq!(found.1, wanted.1, "{place}");
    }
    met
}

fn count(met: &[(String, u64)], method: &str) -> usize {
    met.iter().filter(|(name, _)| name == method).count()
}

#[test]
fn two_values_stopped_at_every_block() {
    let met = check("two", tables::plain_rows(Kind::Two, 60_000), 4);
    assert!(
        count(&met, "streaming") >= 3 && count(&met, "newton") >= 3,
        "{met:?}"
    );
}

#[test]
fn a_number_stopped_at_every_block() {
    let met = check("number", tables::plain_rows(Kind::Number, 50_000), 3);
    assert!(
        count(&met, "streaming") >= 3 && count(&met, "newton") >= 3,
        "{met:?}"
    );
}

#[test]
fn wide_rows_stopped_at_every_block() {
    let met = check("wide", tables::wide(260, 2_500, Kind::Number), 3);
    assert!(count(&met, "adaptive") >= 7, "{met:?}");
}

#[test]
fn classes_stopped_at_every_block() {
    let balanced = |epochs| Options {
        epochs,
        class_weights: ClassWeights::Balanced,
        l1: 3.0,
        ..usual()
    };
    let met = check_with("classes", tables::lettered(60_000, 0), balanced(3));
    assert!(
        count(&met, "streaming") >= 2 && count(&met, "newton") >= 2,
        "{met:?}"
    );
    let met = check_with("wide classes", tables::lettered(4_000, 67), balanced(2));
    assert!(count(&met, "adaptive") >= 4, "{met:?}");
}

#[test]
fn patience_survives_every_stop() {
    let patient = Options {
        epochs: 6,
        l2: 0.0,
        patience: Some(1),
        ..usual()
    };
    let met = check_with("patience", tables::wide(300, 1_500, Kind::Two), patient);
    assert!(count(&met, "adaptive") >= 6, "{met:?}");
}

#[test]
fn a_checkpoint_of_another_training_is_refused() {
    let scratch = Scratch::new("table.csv", tables::plain(Kind::Two));
    let table = open(&scratch.path(), "y");
    let options = Options {
        checkpoint: Some(scratch.beside("checkpoint")),
        checkpoint_every: Duration::ZERO,
        ..usual()
    };
    let checkpoint = stopped_at(&table, &options, 0).unwrap();
    let other_kind = Scratch::new("number.csv", tables::plain(Kind::Number));
    let other_data = Scratch::new("narrow.csv", tables::separable());
    let other_l2 = Options { l2: 2.0, ..usual() };
    for (path, options, what) in [
        (other_kind.path(), usual(), "model"),
        (other_data.path(), usual(), "data file: it has changed since"),
        (scratch.path(), other_l2, "l2"),
    ] {
        let table = open(&path, "y");
        let ledger = Ledger::new(ROOMY);
        let stop = AtomicBool::new(false);
        let found = linear::train(
            &table,
            &options,
            &plan(&table, 1),
            &ledger,
            Some(&checkpoint),
            &stop,
            &mut |_| {},
        );
        assert!(
            matches!(found, Err(Error::OtherCheckpoint { what: w }) if w == what),
            "{what}: {found:?}"
        );
        assert_eq!(ledger.used(), 0);
    }
}
