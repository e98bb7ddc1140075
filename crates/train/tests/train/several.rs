//! One of several classes, and classes that count unlike others: what scikit-learn solves in memory.

use tidegate_train::linear::{ClassWeights, FULL_WIDTH, Options};
use tidegate_train::{Error, Model};

use crate::help::{assert_close, expected, fit_text, fit_with, held_out_scores, metric, open, plan, usual};
use crate::tables::{self, LETTERS};

fn check(table: &str, text: &str, options: &Options, tolerance: f64) {
    let (scratch, model, report) = fit_with(text, options);
    let scores = held_out_scores(&model, &scratch.path());
    for (i, (found, wanted)) in scores.iter().zip(expected(table, "first")).enumerate() {
        assert_close(&format!("{table}: score {i}"), *found, wanted, tolerance);
    }
    let wanted = expected(table, "log_loss")[0];
    assert_close(table, metric(&report, "log_loss"), wanted, tolerance);
    assert!(report.converged, "{table}: {report:?}");
}

/// `sklearn.linear_model.LogisticRegression(C=1)` on four classes.
#[test]
fn softmax_is_what_lbfgs_finds() {
    let text = tables::lettered(6000, 0);
    check("blobs", &text, &usual(), 1e-4);
    let (_scratch, _, report) = fit_text(&text);
    let wanted = expected("blobs", "macro_f1")[0];
    assert_close("macro_f1", metric(&report, "macro_f1"), wanted, 1e-9);
    assert_eq!(report.classes, LETTERS);
    let counted: u64 = report.confusion.iter().flatten().sum();
    assert_eq!(counted, report.rows.held_out);
}

fn balanced() -> Options {
    Options {
        class_weights: ClassWeights::Balanced,
        ..usual()
    }
}

/// `class_weight="balanced"`
#[test]
fn balanced_classes() {
    check("balanced", &tables::lettered(6000, 0), &balanced(), 1e-4);
    let rare = tables::blobs(6000, 0, |class| u8::from(class == 2).to_string());
    check("balanced_two", &rare, &balanced(), 1e-4);
}

#[test]
fn weights_and_counts_of_the_caller() {
    let text = tables::lettered(6000, 0);
    let weights = |options: &Options| crate::help::weights(&fit_with(&text, options).1).to_vec();
    let equal = Options {
        class_weights: ClassWeights::Explicit(vec![1.0; 4]),
        ..usual()
    };
    assert_eq!(weights(&equal), weights(&usual()));
    let counted = Options {
        class_counts: Some(vec![10, 10, 10, 10]),
        ..balanced()
    };
    assert_eq!(weights(&counted), weights(&usual()));
}

#[test]
fn class_weights_that_do_not_fit_are_refused() {
    let texts = [
        tables::lettered(100, 0),
        tables::plain_rows(tables::Kind::Number, 100),
    ];
    for (text, classes) in texts.iter().zip([4, 0]) {
        for weights in [vec![1.0; 3], vec![-1.0, 1.0, 1.0, 1.0], vec![0.0; 4]] {
            let scratch = crate::help::Scratch::new("table.csv", text);
            let table = open(&scratch.path(), "y");
            let options = Options {
                class_weights: ClassWeights::Explicit(weights),
                ..usual()
            };
            let ledger = tidegate_memory::Ledger::new(crate::help::ROOMY);
            let stop = std::sync::atomic::AtomicBool::new(false);
            let plan = plan(&table, 1);
            let found =
                tidegate_train::linear::train(&table, &options, &plan, &ledger, None, &stop, &mut |_| {});
            assert!(
                matches!(found, Err(Error::ClassWeights { classes: c }) if c == classes),
                "{found:?}"
            );
        }
    }
}

#[test]
fn too_wide_for_the_curvature() {
    let text = tables::lettered(20_000, 67);
    let (_scratch, model, report) = fit_text(&text);
    assert!(crate::help::weights(&model).len() > FULL_WIDTH);
    let wanted = expected("wide_blobs", "log_loss")[0];
    assert_close("wide_blobs", metric(&report, "log_loss"), wanted, 0.01);
}

#[test]
fn a_saved_model_of_classes_predicts_the_same_bits() {
    let (scratch, model, report) = fit_text(&tables::lettered(3000, 0));
    let folder = scratch.beside("model");
    model.save(&folder, &report).unwrap();
    let loaded = Model::load(&folder).unwrap();
    assert_eq!(loaded, model);
    let scores = |model: &Model| held_out_scores(model, &scratch.path());
    assert_eq!(scores(&loaded), scores(&model));
    let first: f64 = scores(&model)[..4].iter().sum();
    assert_close("the scores of a row", first, 1.0, 1e-12);
}
