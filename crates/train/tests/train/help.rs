//! Training a text in a temporary folder, and the figures that `reference.py` printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tempfile::TempDir;
use tidegate_data::{FitOptions, Holdout, Purpose, Source, SourceOptions, Table, TableOptions};
use tidegate_memory::Ledger;
use tidegate_train::linear::{self, ClassWeights, Options, Outcome, Plan};
use tidegate_train::{Checkpoint, Event, Learned, Model, PredictOptions, Report, predict, predict_plan};

pub(crate) const ROOMY: u64 = 256 << 20;

/// A file in a folder of its own.
pub(crate) struct Scratch {
    folder: TempDir,
    name: &'static str,
}

impl Scratch {
    pub(crate) fn new(name: &'static str, bytes: impl AsRef<[u8]>) -> Scratch {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), bytes).unwrap();
        Scratch { folder, name }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(self.name)
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Five epochs, a tenth of the rows held out, no checkpoints: what the command line does if nothing is said.
pub(crate) fn usual() -> Options {
    Options {
        epochs: 5,
        l1: 0.0,
        l2: 1.0,
        class_weights: ClassWeights::None,
        class_counts: None,
        patience: None,
        holdout: Holdout::new(0.1, 1),
        checkpoint: None,
        checkpoint_every: Duration::from_secs(3600),
    }
}

pub(crate) fn open(path: &Path, target: &str) -> Table {
    open_with(path, target, &TableOptions::default())
}

pub(crate) fn open_with(path: &Path, target: &str, options: &TableOptions) -> Table {
    let ledger = Ledger::new(ROOMY);
    let mut table = Table::open(source(path), target, options, &ledger).unwrap();
    table
        .fit_encoders(Purpose::Linear, &fit_options(), &ledger)
        .unwrap();
    table
}

/// Encoders learn from the rows that the model learns from.
pub(crate) fn fit_options() -> FitOptions {
    FitOptions {
        threads: 2,
        holdout: usual().holdout,
        seed: 1,
        bytes: 32 << 20,
    }
}

pub(crate) fn source(path: &Path) -> Source {
    Source::open(
        &[path.to_path_buf()],
        &SourceOptions::default(),
        &[],
        &Ledger::new(ROOMY),
    )
    .unwrap()
}

pub(crate) fn plan(table: &Table, threads: usize) -> Plan {
    linear::plan(table, threads, 0, ROOMY).unwrap()
}

/// Trains to the end.
pub(crate) fn fit(
    table: &Table,
    options: &Options,
    plan: &Plan,
    resume: Option<&Checkpoint>,
) -> (Model, Report) {
    let ledger = Ledger::new(plan.budget);
    let stop = AtomicBool::new(false);
    let outcome = linear::train(table, options, plan, &ledger, resume, &stop, &mut |event| {
        if let Event::Warning { text, error } = event {
            panic!("{text}: {error:?}");
        }
    });
    assert_eq!(ledger.used(), 0, "every grant comes back");
    match outcome.unwrap() {
        Outcome::Done(done) => *done,
        stopped => panic!("{stopped:?}"),
    }
}

/// Trains on a text with target `y`, two threads and the usual options.
pub(crate) fn fit_text(text: &str) -> (Scratch, Model, Report) {
    fit_with(text, &usual())
}

pub(crate) fn fit_with(text: &str, options: &Options) -> (Scratch, Model, Report) {
    let scratch = Scratch::new("table.csv", text);
    let table = open(&scratch.path(), "y");
    let (model, report) = fit(&table, options, &plan(&table, 2), None);
    (scratch, model, report)
}

pub(crate) fn weights(model: &Model) -> &[f64] {
    match &model.learned {
        Learned::Linear(linear) => &linear.weights,
        other => panic!("not a linear model: {}", other.kind()),
    }
}

pub(crate) fn bits(model: &Model) -> Vec<u64> {
    weights(model).iter().map(|w| w.to_bits()).collect()
}

/// Scores of the rows held out, in the order of the file; all of one row, then all of the next.
pub(crate) fn held_out_scores(model: &Model, path: &Path) -> Vec<f64> {
    let ledger = Ledger::new(ROOMY);
    let table = Table::open_for(source(path), &model.encoders, &TableOptions::default()).unwrap();
    let options = PredictOptions {
        threads: 2,
        runtime: 0,
        output: 0,
        budget: ROOMY,
    };
    let plan = predict_plan(model, &table, &options).unwrap();
    let mut scores = Vec::new();
    let out = |prediction: tidegate_train::Prediction| {
        if usual().holdout.contains(prediction.line) {
            scores.extend_from_slice(prediction.scores);
        }
        Ok(())
    };
    predict(model, &table, &plan, &ledger, out, |_| {
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(ledger.used(), 0, "every grant comes back");
    scores
}

pub(crate) fn metric(report: &Report, name: &str) -> f64 {
    let found = report.metrics.iter().find(|metric| metric.name == name);
    found
        .unwrap_or_else(|| panic!("{name} in {:?}", report.metrics))
        .value
}

/// Figures that scikit-learn gave for a table: `expected("plain_two", "auc")`.
pub(crate) fn expected(table: &str, figure: &str) -> Vec<f64> {
    let found = include_str!("expected.txt").lines().find_map(|line| {
        let rest = line.strip_prefix(table)?.strip_prefix(' ')?;
        rest.strip_prefix(figure)?.strip_prefix(' ')
    });
    let found = found.unwrap_or_else(|| panic!("{table} {figure} is not in expected.txt"));
    found.split(' ').map(|value| value.parse().unwrap()).collect()
}

#[track_caller]
pub(crate) fn assert_close(what: &str, found: f64, expected: f64, tolerance: f64) {
    let off = (found - expected).abs();
    assert!(
        off <= tolerance,
        "{what}: {found} instead of {expected}, off by {off:.2e}"
    );
}
