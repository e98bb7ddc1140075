//! A pass gives the same from the source, while it writes the pack, and from the pack.

use std::ops::ControlFlow;

use proptest::prelude::*;
use tidegate_data::{Error, Holdout, PassOptions, Position};
use tidegate_memory::Ledger;

use crate::help::{ROOMY, Scratch, pass, pass_options, pass_with};

fn check_same(scratch: &Scratch, least_batches: usize) {
    let ledger = Ledger::new(ROOMY);
    let expected = pass(&scratch.table(), &pass_options(2, None), &ledger).unwrap();
    assert!(
        expected.batches.len() >= least_batches,
        "{}",
        expected.batches.len()
    );
    for threads in [1, 2, 5] {
        let _ = std::fs::remove_dir_all(scratch.store().path());
        let table = scratch.packed(&ledger);
        let pack = table.pack.as_ref().unwrap();
        assert!(!pack.is_ready());
        let written = pass(&table, &pass_options(threads, None), &ledger).unwrap();
        assert!(written == expected, "while it is written, {threads} threads");
        assert!(pack.is_ready(), "{:?}", pack.take_problems());
        let read = pass(&table, &pass_options(threads, None), &ledger).unwrap();
        assert!(read == expected, "from the pack, {threads} threads");
        // A later run: another table, the same pack.
        drop(table);
        let table = scratch.packed(&ledger);
        assert!(table.pack.as_ref().unwrap().is_ready());
        let source = scratch.table();
        for (i, batch) in expected.batches.iter().enumerate() {
            let options = pass_options(threads, Some(batch.position));
            let rest = pass(&table, &options, &ledger).unwrap();
            assert!(rest.batches == expected.batches[i + 1..], "behind batch {i}");
            assert_eq!(rest.counts, pass(&source, &options, &ledger).unwrap().counts);
        }
        assert!(table.pack.as_ref().unwrap().take_problems().is_empty());
        drop(table);
        assert_eq!(ledger.used(), 0);
    }
}

#[test]
fn batches_counts_and_positions_are_those_of_the_source() {
    check_same(&Scratch::mixed(90_000), 3);
}

#[test]
fn rows_without_sparse_values() {
    check_same(&Scratch::numbers(150_000), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn tables_of_any_length(n_rows in 2usize..400) {
        check_same(&Scratch::mixed(n_rows), 1);
    }
}

#[test]
fn a_pass_that_starts_later_stops_or_fails_leaves_no_pack() {
    let scratch = Scratch::mixed(90_000);
    let ledger = Ledger::new(ROOMY);
    let table = scratch.packed(&ledger);
    let whole = pass(&scratch.table(), &pass_options(2, None), &ledger).unwrap();
    let start = Some(whole.batches[0].position);
    let later = pass(&table, &pass_options(2, start), &ledger).unwrap();
    assert!(later.batches == whole.batches[1..]);
    for fails in [false, true] {
        let mut batches = 0;
        let ended = table.pass(
            &pass_options(2, None),
            &ledger,
            |_| (),
            |_, (), _| {
                batches += 1;
                match (batches < 2, fails) {
                    (true, _) => Ok(ControlFlow::Continue(())),
                    (false, true) => Err(Error::Changed { path: "x".into() }),
                    (false, false) => Ok(ControlFlow::Break(())),
                }
            },
        );
        assert_eq!(ended.is_err(), fails);
    }
    let pack = table.pack.as_ref().unwrap();
    assert!(!pack.is_ready() && pack.take_problems().is_empty());
    let left = std::fs::read_dir(scratch.store().path()).unwrap().count();
    assert_eq!((left, ledger.used()), (0, 0));
    assert!(pass(&table, &pass_options(2, None), &ledger).unwrap() == whole);
    assert!(pack.is_ready(), "the first complete pass writes it after all");
}

#[test]
fn a_pass_from_the_pack_can_be_stopped() {
    let scratch = Scratch::mixed(90_000);
    let ledger = Ledger::new(ROOMY);
    let table = scratch.packed(&ledger);
    pass(&table, &pass_options(2, None), &ledger).unwrap();
    let held = ledger.used();
    let mut batches = 0;
    let ended = table.pass(
        &pass_options(2, None),
        &ledger,
        |_| (),
        |_, (), _| {
            batches += 1;
            Ok::<_, Error>(ControlFlow::Break(()))
        },
    );
    assert_eq!((ended.is_ok(), batches, ledger.used()), (true, 1, held));
    assert!(table.pack.as_ref().unwrap().is_ready());
}

#[test]
fn memory_that_is_taken_away_takes_slots_of_both_kinds_of_pass() {
    let scratch = Scratch::mixed(120_000);
    let expected = pass(&scratch.table(), &pass_options(2, None), &Ledger::new(ROOMY)).unwrap();
    let ledger = Ledger::new(ROOMY);
    let table = scratch.packed(&ledger);
    // The first one writes the pack, the second reads it with what is left.
    for reads in [false, true] {
        assert_eq!(table.pack.as_ref().unwrap().is_ready(), reads);
        let held = ledger.used();
        let mut used = Vec::new();
        let found = pass_with(&table, &pass_options(2, None), &ledger, |n| {
            used.push(ledger.used());
            if n == 2 {
                ledger.lower(ledger.used() - ledger.spare_bytes() / 2);
            }
        });
        assert!(found.unwrap() == expected);
        assert!(used.last() < used.get(1), "{used:?}");
        assert!(ledger.used() >= held && ledger.spare_bytes() == 0);
    }
    assert!(table.pack.as_ref().unwrap().take_problems().is_empty());
}

#[test]
fn another_holdout_and_unknown_places_go_to_the_source() {
    let scratch = Scratch::mixed(60_000);
    let ledger = Ledger::new(ROOMY);
    let (table, source) = (scratch.packed(&ledger), scratch.table());
    let whole = pass(&table, &pass_options(2, None), &ledger).unwrap();
    let options = PassOptions {
        holdout: Holdout::new(0.5, 1),
        ..pass_options(2, None)
    };
    let other = pass(&table, &options, &ledger).unwrap();
    assert!(other == pass(&source, &options, &ledger).unwrap());
    assert_ne!(other.counts, whole.counts);
    // A place that no pass over this table has told.
    let elsewhere = Position {
        consumed: 1,
        ..whole.batches[0].position
    };
    let options = pass_options(2, Some(elsewhere));
    assert!(pass(&table, &options, &ledger).unwrap() == pass(&source, &options, &ledger).unwrap());
}

/// What the pack takes must never be what a training lacks.
#[test]
fn a_budget_without_room_for_the_pack_trains_without() {
    let scratch = Scratch::mixed(90_000);
    let source = scratch.table();
    let expected = pass(&source, &pass_options(1, None), &Ledger::new(ROOMY)).unwrap();
    let mut written = (false, false);
    for budget in (4..40).map(|step| step << 19) {
        let alone = pass(&source, &pass_options(1, None), &Ledger::new(budget));
        let mut table = scratch.table();
        let _ = std::fs::remove_dir_all(scratch.store().path());
        let ledger = Ledger::new(budget);
        table.use_pack(scratch.options(), crate::help::holdout(), &ledger);
        let packed = pass(&table, &pass_options(1, None), &ledger);
        match alone {
            Ok(_) => {
                assert!(packed.unwrap() == expected, "{budget}");
                let pack = table.pack.as_ref().unwrap();
                assert_eq!(pack.is_ready(), pack.take_problems().is_empty());
                match pack.is_ready() {
                    true => written.1 = true,
                    false => written.0 = true,
                }
            }
            Err(_) => assert!(packed.is_err(), "{budget}"),
        }
    }
    assert_eq!(
        written,
        (true, true),
        "small budgets go without, larger ones have it"
    );
}
