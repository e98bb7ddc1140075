//! Networks that are made to fit: the fastest way that does, the same numbers, and the least budget where none does.

use std::path::Path;

use tidegate_memory::Ledger;
use tidegate_train::network::{self, Options, Planned, Precision, Recompute};
use tidegate_train::{Checkpoint, Error, Event};

use super::training::{bits, design, done, metric, open, options, run, write_bars};

/// No batch norm: a step is the same however it is cut.
const PLAIN: &str = r#"[{"conv": 24, "activation": "relu", "padding": "same"}, {"conv": 24, "activation": "gelu", "padding": "same"},
    {"max_pool": 2}, "flatten", {"dropout": 0.2}, {"dense": 16, "activation": "relu"}]"#;
/// Deep enough that values wait long for the way back.
const NORMED: &str = r#"[{"conv": 16, "padding": "same"}, {"norm": "batch", "activation": "relu"},
    {"residual": [{"conv": 16, "padding": "same"}, {"norm": "batch", "activation": "relu"}, {"conv": 16, "padding": "same"}, "batch_norm"], "activation": "relu"},
    {"residual": [{"conv": 16, "padding": "same"}, {"norm": "batch", "activation": "relu"}, {"conv": 16, "padding": "same"}, "batch_norm"], "activation": "relu"},
    {"residual": [{"conv": 16, "padding": "same"}, {"norm": "batch", "activation": "relu"}, {"conv": 16, "padding": "same"}, "batch_norm"], "activation": "relu"},
    {"residual": [{"conv": 16, "padding": "same"}, {"norm": "batch", "activation": "relu"}, {"conv": 16, "padding": "same"}, "batch_norm"], "activation": "relu"},
    "global_average_pool"]"#;

const ROOMY: u64 = 200_000_000;

fn large() -> Options {
    Options {
        batch: 96,
        epochs: 2,
        ..options()
    }
}

fn planned(path: &Path, options: &Options, layers: &str, budget: u64) -> Result<Planned, Error> {
    let ledger = Ledger::new(budget);
    let source = open(path, &ledger);
    let design = design(&source, options, layers, &ledger);
    network::plan(&design, &source, None, options, 2, &[], budget)
}

fn loss(path: &Path, options: &Options, layers: &str, budget: u64) -> f64 {
    let (_, report) = done(run(path, options, layers, budget, None, |_| false).unwrap());
    metric(&report, "log_loss")
}

#[test]
fn less_memory_trains_the_same() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 500);
    for (layers, part) in [(PLAIN, 2), (NORMED, 3)] {
        let options = large();
        let plain = planned(&path, &options, layers, ROOMY).unwrap();
        assert!(plain.changes.is_empty(), "{:?}", plain.changes);
        assert_eq!((plain.setting.batch, plain.setting.accumulate), (96, 1));
        // Nodes that are made again save less than smaller batches do, and leave batch norm as it is.
        let budget = plain.plan.total() * (part - 1) / part;
        let fitted = planned(&path, &options, layers, budget).unwrap();
        assert!(fitted.plan.total() <= budget);
        assert_eq!(fitted.setting.step(), 96);
        assert!(!fitted.changes.is_empty());
        assert!(
            fitted.changes.iter().all(|change| change.alters.is_none()),
            "{:?}",
            fitted.changes
        );
        assert!(fitted.changes.iter().map(|change| change.saves).sum::<u64>() > 0);
        let again = planned(&path, &options, layers, budget).unwrap();
        assert_eq!(again.setting, fitted.setting);
        let (expected, found) = (
            loss(&path, &options, layers, ROOMY),
            loss(&path, &options, layers, budget),
        );
        assert!(
            (found - expected).abs() < 1e-3 * expected,
            "{found} instead of {expected}"
        );
    }
}

#[test]
fn small_samples_stay_in_memory_where_a_smaller_batch_makes_room() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 20_000);
    let plain = planned(&path, &large(), PLAIN, ROOMY).unwrap();
    let samples = 20_000 * 12 * 10;
    assert_eq!(plain.keep.memory, samples);
    // The whole batch would fit, and leave samples to be read one by one.
    let budget = plain.plan.total() - samples / 2;
    let fitted = planned(&path, &large(), PLAIN, budget).unwrap();
    assert!(fitted.plan.total() <= budget);
    assert_eq!(fitted.keep.memory, samples);
    assert!(fitted.setting.batch < 96, "{:?}", fitted.setting);
    assert!(fitted.changes.iter().all(|change| change.alters.is_none()));
}

#[test]
fn batches_are_told_where_they_matter() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 200);
    let options = Options {
        micro_batch: Some(24),
        ..large()
    };
    let fitted = planned(&path, &options, NORMED, ROOMY).unwrap();
    assert_eq!((fitted.setting.batch, fitted.setting.accumulate), (24, 4));
    let small = planned(&path, &large(), NORMED, ROOMY).unwrap();
    let alternative = small
        .alternatives
        .iter()
        .find(|other| other.how == "--micro-batch 24")
        .unwrap();
    let alters = alternative.alters.clone().unwrap();
    assert!(alters.contains("24 samples at a time instead of 96"), "{alters}");
    assert!(alternative.peak < small.plan.total());
    let again = small
        .alternatives
        .iter()
        .find(|other| other.how == "--recompute most")
        .unwrap();
    assert_eq!(again.alters, None);
    assert!(again.slowdown > 1.0 && again.slowdown < 2.0, "{}", again.slowdown);
}

#[test]
fn another_way_takes_what_was_told_of_it() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 20_000);
    let told = planned(&path, &large(), NORMED, ROOMY).unwrap().alternatives;
    let most = Options {
        recompute: Some(Recompute::Most),
        ..large()
    };
    let micro = |batch| Options {
        micro_batch: Some(batch),
        ..large()
    };
    let ways = [
        ("--recompute most", most),
        ("--micro-batch 24", micro(24)),
        ("--micro-batch 12", micro(12)),
    ];
    for (how, options) in ways {
        let told = told.iter().find(|other| other.how == how).expect(how).peak;
        let taken = planned(&path, &options, NORMED, ROOMY).unwrap().plan.total();
        let off = told as f64 / taken as f64 - 1.0;
        assert!(off.abs() < 0.02, "{how}: {told} were told, {taken} are taken");
    }
}

#[test]
fn what_was_asked_for_is_not_changed() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 200);
    let options = Options {
        precision: Some(Precision::F32),
        recompute: Some(Recompute::None),
        micro_batch: Some(96),
        ..large()
    };
    let total = planned(&path, &options, PLAIN, ROOMY).unwrap().plan.total();
    let Err(Error::BudgetTooSmall { least, .. }) = planned(&path, &options, PLAIN, total / 2) else {
        panic!("half of {total} is enough");
    };
    assert!(least > total / 2 && least < total + total / 20, "{least}");
}

#[test]
fn the_least_budget_works_and_less_does_not() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 200);
    for layers in [PLAIN, NORMED] {
        let Err(Error::BudgetTooSmall { least, holders, .. }) = planned(&path, &large(), layers, 400_000)
        else {
            panic!("0.4 MB are enough");
        };
        assert!(
            holders
                .iter()
                .any(|(name, bytes)| name == "activations" && *bytes > 0)
        );
        let fitted = planned(&path, &large(), layers, least).unwrap();
        assert!(fitted.plan.total() <= least);
        assert!(planned(&path, &large(), layers, least * 9 / 10).is_err());
        done(run(&path, &large(), layers, least + 100_000, None, |_| false).unwrap());
    }
}

#[test]
fn a_training_goes_on_as_it_was_begun_and_is_planned_anew_where_that_does_not_fit() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 500);
    let options = Options {
        checkpoint: Some(temp.path().join("checkpoint")),
        ..large()
    };
    let budget = planned(&path, &options, PLAIN, ROOMY).unwrap().plan.total() / 2;
    let (model, _) = done(run(&path, &options, PLAIN, budget, None, |_| false).unwrap());
    let expected = bits(&model.machine);
    let stopped = |event: &Event| matches!(event, Event::Epoch { epoch: 1, .. });
    run(&path, &options, PLAIN, budget, None, stopped).unwrap();
    let checkpoint = Checkpoint::load(&temp.path().join("checkpoint")).unwrap();
    let begun = network::begun(&checkpoint).unwrap().unwrap();
    let resumed = Options {
        begun: Some(begun.clone()),
        ..options
    };
    // There is more memory now: what was begun in small batches goes on in them, to the same bits.
    assert_eq!(planned(&path, &resumed, PLAIN, ROOMY).unwrap().setting, begun);
    let (model, _) = done(run(&path, &resumed, PLAIN, ROOMY, Some(&checkpoint), |_| false).unwrap());
    assert!(bits(&model.machine) == expected);
    // There is less now.
    let fitted = planned(&path, &resumed, PLAIN, budget * 2 / 3).unwrap();
    assert!(fitted.setting != begun);
    assert_eq!(fitted.setting.step(), 96);
    done(
        run(&path, &resumed, PLAIN, budget * 2 / 3, Some(&checkpoint), |_| {
            false
        })
        .unwrap(),
    );
}
