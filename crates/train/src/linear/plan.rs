//! What a linear training will hold, computed before it holds it.

use tidegate_data::Table;
use tidegate_memory::Ledger;

use super::adaptive::Adaptive;
use super::moments::Moments;
use crate::{Error, Evaluator, Result};

/// Weights (bias included) up to which the model is fitted by its full curvature. At this width the matrix
/// takes half a megabyte and a row costs about as much as parsing it.
pub const FULL_WIDTH: usize = 257;

/// Bytes by holder, and the least total that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub threads: usize,
    /// Every holder with its bytes, what is already held included.
    pub holders: Vec<(String, u64)>,
}

/// Works out what training on `table` takes, with as many of `threads` as the budget allows; refuses a
/// budget that is too small even for one.
pub fn plan(table: &Table, threads: usize, ledger: &Ledger) -> Result<Plan> {
    let model = model_bytes(table, threads);
    let evaluation = Evaluator::bytes(table.encoders.target.task());
    let needs = |threads: usize| {
        let pass = table.pass_needs(threads);
        let mut holders: Vec<(String, u64)> = ledger
            .snapshot()
            .holders
            .into_iter()
            .filter(|h| h.held > 0)
            .map(|h| (h.name, h.held))
            .collect();
        holders.push(("data buffers".into(), pass.slots as u64 * pass.slot_bytes));
        holders.push(("model".into(), model));
        holders.push(("evaluation".into(), evaluation));
        holders
    };
    let total = |holders: &[(String, u64)]| holders.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let least = needs(1);
    if total(&least) > ledger.budget() {
        return Err(Error::BudgetTooSmall {
            least: total(&least),
            budget: ledger.budget(),
            holders: least,
        });
    }
    // Fewer threads wait for less memory; the result is the same.
    let threads = (1..=threads.max(1))
        .rev()
        .find(|&n| total(&needs(n)) <= ledger.budget())
        .unwrap_or(1);
    Ok(Plan {
        threads,
        holders: needs(threads),
    })
}

/// Weights, curvature, what blocks on their way carry, the scratch of a solve and the copies of a checkpoint.
fn model_bytes(table: &Table, threads: usize) -> u64 {
    let n = table.encoders.width() + 1;
    if n <= FULL_WIDTH {
        let in_flight = table.pass_needs(threads).slots as u64 + 8;
        in_flight * Moments::bytes(n)
    } else {
        Adaptive::bytes(n)
    }
}

/// How much of what is free the held out rows may take.
pub(super) fn held_out_limit(plan: &Plan, ledger: &Ledger) -> u64 {
    let planned: u64 = plan.holders.iter().map(|(_, bytes)| bytes).sum();
    // Half of the rest: rows can be shorter than in the sample, which makes larger batches.
    ledger.budget().saturating_sub(planned) / 2
}
