//! What boosted trees hold: planned before rows are read, followed as far as memory is left.

use std::path::Path;

use tidegate_data::disk::Disk;
use tidegate_data::pack::WRITE_BEHIND_BYTES;
use tidegate_data::{BUFFERS, Table};
use tidegate_memory::{Grant, Ledger};
use tidegate_train::Error as TrainError;
use tidegate_train::boost::{self, Blocks, FeatureBins, Kept, Options, Plan, Rows, Shape};
use tidegate_watch::{Change, Plan as WirePlan};

use crate::Result;
use crate::worker::largest_stage;
use crate::worker::pressure::whole_megabytes;
use crate::worker::relay::About;
use crate::worker::train::{Prepared, least_to_fit};

/// This part of the budget is left alone where rows are kept in memory as far as it goes.
const SPARE: u64 = 32;

/// What the training holds, and says so.
pub(super) fn plan(prepared: &mut Prepared, features: &[FeatureBins], options: &Options) -> Result<Plan> {
    let budget = prepared.budget;
    let Stages {
        plan,
        growing,
        reading,
        judging,
    } = stages(prepared, features, options, budget)?;
    let mut stages = vec![growing, reading];
    if !prepared.holdout.is_none() && sum(&judging) <= budget {
        stages.push(judging);
    }
    let (holders, needs) = largest_stage(stages, &prepared.ledger);
    let about = About {
        rows: prepared.encoding.rows,
        ..About::table(&prepared.table)
    };
    let told = WirePlan {
        holders,
        needs,
        changes: prepared
            .changes
            .iter()
            .cloned()
            .chain(streams(&plan, options))
            .collect(),
        threads: Some(plan.threads as u64),
        // Rows that do not fit stream from a pack, and their state from a file of its own.
        disk_bytes: Some(match plan.rows_fit() {
            true => plan.streamed(options).state,
            false => plan.bytes_of_all_rows() + plan.streamed(options).state,
        }),
        ..WirePlan::default()
    };
    prepared.speaker.say(about.complete(told, "boost", budget));
    Ok(plan)
}

/// A plan, and the holders of each stage.
struct Stages {
    plan: Plan,
    growing: Holders,
    reading: Holders,
    judging: Holders,
}

type Holders = Vec<(String, u64)>;

fn sum(holders: &[(String, u64)]) -> u64 {
    holders.iter().map(|(_, bytes)| bytes).sum()
}

/// What the training holds: the rows are there while the table is read and while trees grow, the rest is not at
/// the same time.
fn stages(
    prepared: &mut Prepared,
    features: &[FeatureBins],
    options: &Options,
    budget: u64,
) -> Result<Stages> {
    let fixed = sum(&prepared.fixed);
    let threads = prepared.threads;
    let shape = Shape {
        n_bins: features.iter().map(FeatureBins::n_bins).sum(),
        ..Shape::new(prepared.encoding.rows.unwrap_or(0) as usize, features.len())
    };
    let rows_at_most = |table: &Table, threads: usize| {
        let reading = fixed + table.encoder_bytes() + table.pass_needs(threads).bytes();
        budget.saturating_sub(reading + budget / SPARE)
    };
    let encoders = prepared.table.encoders.bytes();
    // Not to the last byte: as much as possible is kept in memory, and the kernel counts in pages and batches.
    let growing = budget.saturating_sub(fixed + encoders + budget / SPARE);
    // Rows that stay in memory while trees grow are worth more than text that waits.
    let stays = boost::plan(&shape, options, threads, growing).map_or(0, |plan| {
        let under_way = plan.block_bytes() + WRITE_BEHIND_BYTES;
        plan.bytes(boost::ROWS) + if plan.rows_fit() { 0 } else { under_way }
    });
    prepared
        .table
        .read_ahead_while(|table| rows_at_most(table, threads) >= stays);
    // Fewer threads read where not even a block on its way to the disk has room.
    let all_rows = boost::rows_bytes(shape.n_rows, shape.n_features);
    let block = boost::rows_bytes(shape.n_rows.min(boost::BLOCK_ROWS), shape.n_features) + WRITE_BEHIND_BYTES;
    let fits = |threads: &usize| rows_at_most(&prepared.table, *threads) >= all_rows.min(block);
    prepared.threads = (1..=threads).rev().find(fits).unwrap_or(1);
    let prepared = &*prepared;
    let table = &prepared.table;
    let buffers = table.pass_needs(prepared.threads);
    let shape = Shape {
        rows_at_most: rows_at_most(table, prepared.threads),
        ..shape
    };
    let plan = boost::plan(&shape, options, threads, growing)
        .map_err(|error| with_fixed(error, prepared, budget))?;
    let stage = |encoders: u64, others: &[(String, u64)]| {
        let mut holders = prepared.fixed.to_vec();
        holders.push(("encoders".into(), encoders));
        holders.extend(others.iter().cloned());
        holders
    };
    let growing = stage(encoders, &plan.holders);
    let mut reading = stage(table.encoder_bytes(), &[(BUFFERS.into(), buffers.bytes())]);
    match plan.rows_fit() {
        true => reading.push((boost::ROWS.into(), plan.bytes(boost::ROWS))),
        // The block under way is in memory, too, and so is what waits for the disk.
        false => reading.extend([
            (boost::ROWS.into(), plan.bytes(boost::ROWS) + plan.block_bytes()),
            ("pack".into(), WRITE_BEHIND_BYTES),
        ]),
    }
    let least = sum(&reading);
    if least > budget {
        return Err(TrainError::BudgetTooSmall {
            least,
            budget,
            holders: reading,
        }
        .into());
    }
    // At the end columns are shuffled to see what they are worth, if there is room for it.
    let judged = boost::permutation_bytes(&shape, options.objective.n_outputs());
    let kept = |name: &str| (name.to_string(), plan.bytes(name));
    let judging = stage(
        encoders,
        &[
            kept(boost::ROWS),
            kept(boost::TREES),
            ("permutation".into(), judged),
        ],
    );
    for (_, bytes) in reading.iter_mut().filter(|(name, _)| name == BUFFERS) {
        *bytes -= buffers.spare_bytes;
    }
    Ok(Stages {
        plan,
        growing,
        reading,
        judging,
    })
}

/// The plan as it can be followed now that rows have been read: less stays in memory where some was taken away meanwhile.
pub(super) fn followed(
    plan: Plan,
    rows: &mut Rows,
    options: &Options,
    scratch: &Path,
    ledger: &Ledger,
) -> Result<Plan> {
    let left = (rows.bytes() + ledger.free()).saturating_sub(ledger.over());
    let (bins, labels) = rows.kept();
    if plan.total() <= left && (bins, labels) == (plan.kept.bins, plan.kept.labels) {
        return Ok(plan);
    }
    let kept = Kept {
        bins,
        labels,
        ..plan.kept
    };
    let fewer = Plan { kept, ..plan };
    let Some(plan) = fewer.within(options, left) else {
        let least = fewer.least(options);
        let beside = ledger.used().saturating_sub(rows.bytes());
        return Err(TrainError::BudgetTooSmall {
            least: beside + least.total(),
            budget: ledger.budget(),
            holders: least.holders,
        }
        .into());
    };
    rows.keep(plan.kept.bins, plan.kept.labels, scratch)?;
    Ok(plan)
}

/// What is left after memory was taken away, where the same trees can be trained with it.
pub(super) fn enough(
    prepared: &mut Prepared,
    features: &[FeatureBins],
    options: &Options,
    left: Option<u64>,
) -> Option<u64> {
    let left = whole_megabytes(left?);
    let fits = stages(prepared, features, options, left).is_ok();
    prepared.table.read_ahead_while(|_| false);
    (fits && least_to_fit(&prepared.table, prepared.runtime) <= left).then_some(left)
}

/// Says what streams from disk because it does not fit.
fn streams(plan: &Plan, options: &Options) -> Option<Change> {
    let boost::Streamed {
        rows,
        all_rows,
        state,
        all_state,
    } = plan.streamed(options);
    let share = |part: u64, all: u64, what: &str| {
        let percent = 100.0 * part as f64 / all.max(1) as f64;
        (part > 0).then(|| format!("{percent:.0}% of {what}"))
    };
    let parts = [
        share(rows, all_rows, "the rows"),
        share(state, all_state, "their state"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| Change {
        knob: "rows".into(),
        to: format!("{} stream from disk", parts.join(" and ")),
        saves: rows + state,
        slowdown: None,
        alters: None,
    })
}

/// Room for the state that is written to a folder without a disk: the kernel charges it to whoever writes it.
pub(super) fn scratch_grant(folder: &Path, state: u64, ledger: &Ledger) -> Result<Option<Grant>> {
    let is_memory = Disk::of(folder).is_ok_and(|disk| disk.is_memory);
    if state == 0 || !is_memory {
        return Ok(None);
    }
    let grant = ledger.holder("scratch").try_grant(state);
    let refused = |_| TrainError::ScratchInMemory {
        path: folder.into(),
        needed: state,
    };
    Ok(Some(grant.map_err(refused)?))
}

/// The least budget, with what the program itself takes.
fn with_fixed(error: TrainError, prepared: &Prepared, budget: u64) -> TrainError {
    let fixed = sum(&prepared.fixed);
    let encoders = prepared.table.encoders.bytes();
    match error {
        TrainError::BudgetTooSmall { least, holders, .. } => TrainError::BudgetTooSmall {
            least: least + fixed + encoders,
            budget,
            holders: prepared.fixed.iter().cloned().chain(holders).collect(),
        },
        error => error,
    }
}
