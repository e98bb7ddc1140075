//! Predictions for a table, streamed within the budget.

use std::ops::ControlFlow;

use tidegate_data::target::Target;
use tidegate_data::{Holdout, PassOptions, PassPosition, RowCounts, Table};
use tidegate_memory::Ledger;

use crate::{Error, Model, Result};

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

/// Streams `table` through the model; `out` receives the predictions in the order of the file and then, once
/// per block, the place that was reached. It may stop by returning an error.
pub fn predict(
    model: &Model,
    table: &Table,
    threads: usize,
    ledger: &Ledger,
    mut out: impl FnMut(Prediction) -> Result<()>,
    mut progress: impl FnMut(PassPosition) -> ControlFlow<()>,
) -> Result<RowCounts> {
    let needs = |threads: usize| {
        let pass = table.pass_needs(threads);
        ledger.used() + pass.slots as u64 * pass.slot_bytes
    };
    if needs(1) > ledger.budget() {
        let mut holders = vec![("runtime".to_string(), ledger.used())];
        holders.push(("data buffers".into(), needs(1) - ledger.used()));
        return Err(Error::BudgetTooSmall {
            least: needs(1),
            budget: ledger.budget(),
            holders,
        });
    }
    let threads = (1..=threads.max(1))
        .rev()
        .find(|&n| needs(n) <= ledger.budget())
        .unwrap_or(1);
    let options = PassOptions {
        threads,
        holdout: Holdout::new(0.0, 0),
        start: None,
    };
    table.pass(
        &options,
        ledger,
        |batch| {
            batch
                .rows()
                .map(|row| model.linear.predict(row.features))
                .collect::<Vec<f64>>()
        },
        |batch, scores, position| {
            for (row, score) in batch.rows().zip(scores) {
                let label = match &model.encoders.target {
                    Target::Number { .. } => None,
                    Target::Binary { negative, positive } => {
                        Some(if score >= 0.5 { positive } else { negative }.text.as_str())
                    }
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
