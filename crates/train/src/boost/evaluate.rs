//! Judging a forest by the rows held out.

use std::sync::Mutex;

use tidegate_data::target::Task;

use super::objective::{Losses, Objective, class, predictions};
use super::pass::{Halt, Site, Worker, pass};
use super::start::Facts;
use super::state::Pieces;
use crate::{Evaluator, Metric};

/// Metrics of the margins as they stand.
pub(super) fn evaluate(
    site: &Site<'_>,
    workers: &mut [Worker],
    objective: Objective,
    facts: &Facts,
) -> Result<Vec<Metric>, Halt> {
    let priors = facts.priors(objective);
    let judge = match objective {
        Objective::Squared => Judge::One(Evaluator::new(Task::Regression, priors[0])),
        Objective::Logistic => Judge::One(Evaluator::new(Task::Binary, priors[0])),
        Objective::Softmax(_) => Judge::Classes(Classes::new(priors)),
    };
    if facts.n_held_out == 0 {
        return Ok(Vec::new());
    }
    let n_outputs = objective.n_outputs();
    let reads = Pieces {
        margins: 0..n_outputs,
        ..Pieces::default()
    };
    let judge = Mutex::new(judge);
    // A single worker takes the blocks in order, so the sums are always the same.
    pass(
        site,
        &mut workers[..1],
        (reads, Pieces::default()),
        &|_, visited, state| {
            let mut judge = judge.lock().expect("no thread panics with it");
            let (rows, n_rows) = (&visited.rows, visited.rows.target.len());
            let margins = state.margins(0..n_outputs);
            let mut predicted = vec![0.0; n_outputs];
            for row in (0..n_rows).filter(|row| rows.held_out[*row] != 0) {
                for (class, predicted) in predicted.iter_mut().enumerate() {
                    *predicted = margins[class * n_rows + row];
                }
                predictions(objective, &mut predicted);
                match &mut *judge {
                    Judge::One(evaluator) => {
                        evaluator.push(f64::from(predicted[0]), f64::from(rows.target[row]));
                    }
                    Judge::Classes(classes) => classes.push(&predicted, rows.target[row]),
                }
            }
            Losses::default()
        },
        &|_| {},
    )?;
    Ok(match judge.into_inner().expect("no thread panics with it") {
        Judge::One(evaluator) => evaluator.metrics(),
        Judge::Classes(classes) => classes.metrics(),
    })
}

enum Judge {
    One(Evaluator),
    Classes(Classes),
}

/// Log loss and accuracy over several classes.
struct Classes {
    priors: Vec<f64>,
    majority: usize,
    rows: u64,
    log_loss: f64,
    prior_log_loss: f64,
    correct: u64,
    majority_correct: u64,
}

impl Classes {
    fn new(priors: Vec<f64>) -> Classes {
        let majority = largest(&priors);
        Classes {
            priors,
            majority,
            rows: 0,
            log_loss: 0.0,
            prior_log_loss: 0.0,
            correct: 0,
            majority_correct: 0,
        }
    }

    fn push(&mut self, predicted: &[f32], target: f32) {
        let truth = class(target, predicted.len());
        let surprise = |p: f64| -p.clamp(1e-15, 1.0).ln();
        self.rows += 1;
        self.log_loss += surprise(f64::from(predicted[truth]));
        self.prior_log_loss += surprise(self.priors[truth]);
        self.correct += u64::from(largest(predicted) == truth);
        self.majority_correct += u64::from(self.majority == truth);
    }

    fn metrics(&self) -> Vec<Metric> {
        let n = self.rows as f64;
        let metric = |name: &str, value: f64, baseline: f64, higher_is_better: bool| Metric {
            name: name.into(),
            value: value / n,
            baseline: Some(baseline / n),
            higher_is_better,
        };
        vec![
            metric("log_loss", self.log_loss, self.prior_log_loss, false),
            metric(
                "accuracy",
                self.correct as f64,
                self.majority_correct as f64,
                true,
            ),
        ]
    }
}

/// The place of the largest; of equal ones the first.
fn largest<T: PartialOrd>(values: &[T]) -> usize {
    let mut best = 0;
    for (i, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = i;
        }
    }
    best
}
