//! The same table gives the same bits, however many threads read it and whatever the budget.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate_memory::Ledger;
use tidegate_train::linear::{self, Outcome};
use tidegate_train::{Model, Report};

use crate::help::{ROOMY, Scratch, bits, fit, open, plan, usual};
use crate::tables::{self, Kind};

fn assert_same(what: &str, found: &(Model, Report), wanted: &(Model, Report)) {
    assert_eq!(bits(&found.0), bits(&wanted.0), "{what}: weights");
    assert_eq!(found.1, wanted.1, "{what}: report");
}

fn several_blocks() -> [(&'static str, String); 5] {
    [
        ("number", tables::plain_rows(Kind::Number, 60_000)),
        ("two", tables::plain_rows(Kind::Two, 60_000)),
        ("wide", tables::wide(260, 2_000, Kind::Two)),
        ("classes", tables::lettered(60_000, 0)),
        ("wide classes", tables::lettered(4_000, 67)),
    ]
}

#[test]
fn any_number_of_threads() {
    for (name, text) in several_blocks() {
        let scratch = Scratch::new("table.csv", text);
        let table = open(&scratch.path(), "y");
        let one = fit(&table, &usual(), &plan(&table, 1), None);
        for threads in [2, 3, 8] {
            let found = fit(&table, &usual(), &plan(&table, threads), None);
            assert_same(&format!("{name}, {threads} threads"), &found, &one);
        }
    }
}

#[test]
fn any_budget() {
    for (name, text) in several_blocks() {
        let scratch = Scratch::new("table.csv", text);
        let table = open(&scratch.path(), "y");
        let roomy = fit(&table, &usual(), &plan(&table, 8), None);
        let least = linear::plan(&table, 1, 0, ROOMY).unwrap().total();
        for budget in [least, least + 3_000_000, least * 2] {
            let plan = linear::plan(&table, 8, 0, budget).unwrap();
            let found = fit(&table, &usual(), &plan, None);
            assert_same(&format!("{name}, {budget} bytes"), &found, &roomy);
        }
    }
}

/// Somebody takes memory away all the time, down to what cannot be done without.
#[test]
fn any_pressure() {
    for (name, text) in several_blocks() {
        let scratch = Scratch::new("table.csv", text);
        let table = open(&scratch.path(), "y");
        let wanted = fit(&table, &usual(), &plan(&table, 4), None);
        let (plan, buffers) = (plan(&table, 4), table.buffers(4));
        let least = plan.total() - (buffers.slots as u64 - 1) * buffers.slot_bytes;
        let (ledger, over) = (Ledger::new(plan.total()), AtomicBool::new(false));
        let mut spare = 0;
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    spare = spare.max(ledger.spare_bytes());
                    let less = ledger.used().saturating_sub(1 + ledger.spare_bytes() / 8);
                    ledger.lower(less.max(least));
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let stop = AtomicBool::new(false);
            let outcome = linear::train(&table, &usual(), &plan, &ledger, None, &stop, &mut |_| {});
            over.store(true, Ordering::Relaxed);
            outcome
        });
        let Ok(Outcome::Done(found)) = outcome else {
            panic!("{name}: {outcome:?}");
        };
        assert_same(name, &found, &wanted);
        assert_eq!((ledger.used(), ledger.spare_bytes()), (0, 0));
        assert!(
            spare > 0 || buffers.slots < 3,
            "{name}: there was something to let go"
        );
        assert_eq!(ledger.budget(), least, "{name}");
    }
}

#[test]
fn a_budget_below_the_least_is_refused_with_the_least() {
    let scratch = Scratch::new("table.csv", tables::plain(Kind::Two));
    let table = open(&scratch.path(), "y");
    let least = linear::plan(&table, 1, 0, ROOMY).unwrap().total();
    match linear::plan(&table, 4, 0, least - 1) {
        Err(tidegate_train::Error::BudgetTooSmall { least: named, .. }) => assert_eq!(named, least),
        other => panic!("{other:?}"),
    }
}

#[test]
fn packed_files_of_one_block() {
    for kind in [Kind::Number, Kind::Two] {
        let text = tables::plain(kind);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
        let plain_file = Scratch::new("table.csv", &text);
        let table = open(&plain_file.path(), "y");
        let wanted = fit(&table, &usual(), &plan(&table, 2), None);
        for (name, bytes) in [("gzip", gzip.finish().unwrap()), ("zstd", zstd)] {
            let scratch = Scratch::new("table.packed", bytes);
            let table = open(&scratch.path(), "y");
            let found = fit(&table, &usual(), &plan(&table, 2), None);
            assert_same(name, &found, &wanted);
        }
    }
}

#[test]
fn a_saved_model_predicts_the_same_bits() {
    let (scratch, model, report) = crate::help::fit_text(&tables::plain(Kind::Two));
    let folder = scratch.beside("model");
    model.save(&folder, &report).unwrap();
    let loaded = Model::load(&folder).unwrap();
    assert_eq!(loaded, model);
    assert_eq!(Report::load(&folder).unwrap(), report);
    let scores = |model: &Model| crate::help::held_out_scores(model, &scratch.path());
    assert_eq!(scores(&loaded), scores(&model));
}
