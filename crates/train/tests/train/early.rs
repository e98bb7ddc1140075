//! Early stopping: the best weights are kept, wherever the training was interrupted.

use tidegate_train::linear::Options;

use crate::help::{bits, fit_with, metric, usual};
use crate::tables::{self, Kind};

/// Few rows for so many columns that say nothing: more epochs learn the noise.
fn small() -> String {
    tables::blobs(1_200, 300, |class| (class % 2).to_string())
}

fn patient(patience: u32, epochs: u32) -> Options {
    Options {
        patience: Some(patience),
        epochs,
        l2: 0.0,
        ..usual()
    }
}

#[test]
fn the_best_epoch_is_kept() {
    let text = small();
    let losses: Vec<f64> = (1..=8)
        .map(|epochs| {
            let alone = Options {
                patience: None,
                ..patient(1, epochs)
            };
            metric(&fit_with(&text, &alone).2, "log_loss")
        })
        .collect();
    let best = (1..=8)
        .min_by(|a, b| losses[a - 1].total_cmp(&losses[b - 1]))
        .unwrap();
    assert!(best < 8, "the table should show it: {losses:?}");
    let (_scratch, model, report) = fit_with(&text, &patient(2, 12));
    let early = report.early_stop.clone().expect("later epochs are worse");
    assert_eq!(early.best_epoch as usize, best, "{losses:?}");
    assert!(early.epochs < 12, "{early:?}");
    assert_eq!(metric(&report, "log_loss"), losses[best - 1]);
    let only = Options {
        patience: None,
        ..patient(1, best as u32)
    };
    assert_eq!(bits(&model), bits(&fit_with(&text, &only).1));
}

#[test]
fn the_last_epoch_can_be_the_best() {
    let (_scratch, _, report) = fit_with(&tables::wide(300, 20_000, Kind::Two), &patient(1, 2));
    assert_eq!((report.early_stop, report.epochs), (None, 2));
}

#[test]
fn a_model_that_settles_is_the_solution() {
    let (_scratch, model, report) = fit_with(&tables::plain(Kind::Two), &patient(1, 5));
    let calm = Options {
        patience: None,
        ..patient(1, 5)
    };
    assert!(report.converged);
    assert_eq!(bits(&model), bits(&fit_with(&tables::plain(Kind::Two), &calm).1));
}
