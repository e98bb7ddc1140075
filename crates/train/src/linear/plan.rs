//! What a linear training will hold, computed before it holds it.

use tidegate_data::pack::WRITE_BEHIND_BYTES;
use tidegate_data::{BUFFERS, Table};

use super::adaptive::Adaptive;
use super::moments::Moments;
use super::outputs;
use super::state::CELLS;
use super::train::Options;
use crate::tensors::PIECE_BYTES;
use crate::{Checkpoint, Error, Evaluator, Result};

/// Weights, of all outputs and with their biases, up to which the model is fitted by its full curvature. At this
/// width the matrix takes half a megabyte and a row costs about as much as parsing it.
pub const FULL_WIDTH: usize = 257;

/// Bytes by holder, and the least total that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub threads: usize,
    /// Every holder with its bytes, the program itself included.
    pub holders: Vec<(String, u64)>,
    pub budget: u64,
    /// What is granted for data buffers and not likely to be touched.
    pub spare: u64,
}

impl Plan {
    pub fn total(&self) -> u64 {
        self.holders.iter().map(|(_, bytes)| bytes).sum()
    }

    /// The holders with what the kernel will count of them.
    pub fn likely(&self) -> Vec<(String, u64)> {
        let mut holders = self.holders.clone();
        for (_, bytes) in holders.iter_mut().filter(|(name, _)| name == BUFFERS) {
            *bytes -= self.spare;
        }
        holders
    }

    /// What a holder is planned to take.
    pub fn bytes(&self, holder: &str) -> u64 {
        self.holders
            .iter()
            .find(|(name, _)| name == holder)
            .map_or(0, |(_, bytes)| *bytes)
    }
}

/// Works out what training on `table` takes beside the `runtime`, the bytes of the program itself, with as
/// many of `threads` as the budget allows; refuses a budget that is too small even for one. For options that take
/// the most: rows held out, and patience.
pub fn plan(table: &Table, threads: usize, runtime: u64, budget: u64) -> Result<Plan> {
    plan_of(table, (true, true), threads, runtime, budget)
}

/// Like [`plan`], for the options that the training will have.
pub fn plan_for(table: &Table, options: &Options, threads: usize, runtime: u64, budget: u64) -> Result<Plan> {
    let held_out = !options.holdout.is_none();
    let kept = (held_out, held_out && options.patience.is_some());
    plan_of(table, kept, threads, runtime, budget)
}

/// The least that training on `table` takes, as long as it reads ahead as it does.
pub fn least_bytes(table: &Table, held_out: bool, patient: bool, runtime: u64) -> u64 {
    let needs = needs(table, (held_out, held_out && patient), 1, runtime);
    needs.iter().map(|(_, bytes)| bytes).sum()
}

fn needs(
    table: &Table,
    (held_out, patient): (bool, bool),
    threads: usize,
    runtime: u64,
) -> Vec<(String, u64)> {
    let target = &table.encoders.target;
    let evaluation = match held_out {
        true => Evaluator::bytes(target.task(), target.labels().len()),
        false => 0,
    };
    let mut needs = vec![
        (RUNTIME.to_string(), runtime + threads as u64 * THREAD_BYTES),
        ("columns".into(), table.columns_bytes()),
        ("encoders".into(), table.encoder_bytes()),
        (BUFFERS.into(), table.buffers(threads).bytes()),
        (MODEL.into(), model_bytes(table, threads, patient)),
        (EVALUATION.into(), evaluation),
    ];
    match written_bytes(table, patient) {
        0 => {}
        bytes => needs.push((PAGES.into(), bytes)),
    }
    needs
}

fn plan_of(table: &Table, kept: (bool, bool), threads: usize, runtime: u64, budget: u64) -> Result<Plan> {
    let mut plan = fit(|threads| needs(table, kept, threads, runtime), threads, budget)?;
    plan.spare = table.buffers(plan.threads).spare_bytes;
    // A pack is made where there is room for it.
    let is_made = table.pack.as_ref().is_some_and(|pack| !pack.is_ready());
    let written = plan.bytes(PAGES);
    if is_made && plan.total() - written + WRITE_BEHIND_BYTES <= budget {
        // The pack waits for the disk, or the model does.
        plan.holders.retain(|(name, _)| name != PAGES);
        plan.holders.push(("pack".into(), WRITE_BEHIND_BYTES));
    }
    Ok(plan)
}

/// How many weights a checkpoint has of a model that is too wide for its full curvature.
pub fn begun_weights(checkpoint: &Checkpoint) -> Option<usize> {
    checkpoint.len(CELLS)
}

/// How many weights a model of this table will have.
pub fn n_weights(table: &Table) -> usize {
    (table.encoders.width().total() + 1) * outputs(&table.encoders.target)
}

/// The plan with the most threads that fits; the result does not depend on their number.
pub(crate) fn fit(needs: impl Fn(usize) -> Vec<(String, u64)>, threads: usize, budget: u64) -> Result<Plan> {
    let total = |holders: &[(String, u64)]| holders.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let fitting = (1..=threads.max(1))
        .rev()
        .map(|n| (n, needs(n)))
        .find(|(_, holders)| total(holders) <= budget);
    match fitting {
        Some((threads, holders)) => Ok(Plan {
            threads,
            holders,
            budget,
            spare: 0,
        }),
        None => Err(Error::BudgetTooSmall {
            least: total(&needs(1)),
            budget,
            holders: needs(1),
        }),
    }
}

/// The holder that stands for the program itself: it is planned, and takes nothing from the ledger.
pub const RUNTIME: &str = "runtime";
/// What a thread takes beside its buffers, stack and allocator included: 0.1 to 0.3 MB were measured.
pub const THREAD_BYTES: u64 = 250_000;

/// The holders that training itself takes from the ledger at its start.
pub(super) const MODEL: &str = "model";
pub(super) const EVALUATION: &str = "evaluation";
pub(super) const PAGES: &str = "file pages";

/// Weights, curvature, what pieces on their way carry, and the scratch of a solve.
fn model_bytes(table: &Table, threads: usize, patient: bool) -> u64 {
    let total = n_weights(table);
    let weights = (total * size_of::<f64>()) as u64;
    if total <= FULL_WIDTH {
        let in_flight = table.pass_needs(threads).slots as u64 + 8;
        8 * weights
            + in_flight * Moments::bytes(total)
            + (threads as u64 + 1)
                * Moments::panel_bytes(
                    table.encoders.width().total() + 1,
                    outputs(&table.encoders.target),
                )
    } else {
        // The cells, which become the weights, and with patience the weights that are judged and the best so far.
        let judged = if patient { 2 * weights } else { 0 };
        Adaptive::bytes(total) + judged + PIECE_BYTES
    }
}

/// What waits for the disk of a wide model that is saved.
fn written_bytes(table: &Table, patient: bool) -> u64 {
    let total = n_weights(table);
    match total <= FULL_WIDTH {
        true => 0,
        false => {
            let kept = if patient { 3 } else { 1 };
            ((kept * total * size_of::<f64>()) as u64).min(WRITE_BEHIND_BYTES)
        }
    }
}
