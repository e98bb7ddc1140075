//! Predictions for a table, streamed within the budget.

use std::ops::ControlFlow;

use tidegate_data::target::Target;
use tidegate_data::{Holdout, PassOptions, Position, RowCounts, Table};
use tidegate_memory::Ledger;

use crate::linear::{Plan, THREAD_BYTES, fit};
use crate::{Model, Result};

/// What the model says of one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction<'m> {
    /// The line of the file on which the row starts.
    pub line: u64,
    /// The predicted number, or the probability of the positive value.
    pub score: f64,
    /// The predicted value of a binary target.
    pub label: Option<&'m str>,
}

/// What predicting takes beside the `runtime`; refuses a budget that is too small.
pub fn predict_plan(table: &Table, threads: usize, runtime: u64, budget: u64) -> Result<Plan> {
    let needs = |threads: usize| {
        let pass = table.pass_needs(threads);
        vec![
            ("runtime".to_string(), runtime + threads as u64 * THREAD_BYTES),
            ("columns".into(), table.columns_bytes()),
            ("data buffers".into(), pass.slots as u64 * pass.slot_bytes),
        ]
    };
    fit(needs, threads, budget)
}

/// Streams `table` through the model; `out` receives the predictions in the order of the file, and
/// `progress`, once per block, the place that was reached. Either may end it.
pub fn predict(
    model: &Model,
    table: &Table,
    plan: &Plan,
    ledger: &Ledger,
    mut out: impl FnMut(Prediction) -> Result<()>,
    mut progress: impl FnMut(Position) -> ControlFlow<()>,
) -> Result<RowCounts> {
    let options = PassOptions {
        threads: plan.threads,
        holdout: Holdout::new(0.0, 0),
        start: None,
    };
    table.pass(
        &options,
        ledger,
        |batch| batch.score(|row| model.linear.predict(row)),
        |batch, (), position| {
            for row in batch.rows() {
                let score = row.target;
                let label = match &model.encoders.target {
                    Target::Number { .. } => None,
                    Target::Binary { negative, positive } => {
                        Some(if score >= 0.5 { positive } else { negative }.text.as_str())
                    }
                    Target::Classes { labels } => labels.get(score as usize).map(|label| label.text.as_str()),
                };
                out(Prediction {
                    line: row.line,
                    score,
                    label,
                })?;
            }
            Ok(progress(position))
        },
    )
}
