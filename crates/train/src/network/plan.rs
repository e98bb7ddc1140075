//! What a training of a network will hold, worked out before it holds it.

use std::cell::RefCell;

use tidegate_data::arrays::{ArraySource, FeedOptions, Keep, Order, Part};

use super::choose::Knobs;
use super::design::Design;
use super::graph::Graph;
use super::loss::Loss;
use super::lower::{Learning, Purpose};
use super::machine::Program;
use super::mistakes::Mistakes;
use super::setting::Setting;
use super::train::Options;
use crate::linear::{Plan, THREAD_BYTES};
use crate::tensors::PIECE_BYTES;
use crate::{Alternative, Change, Error, RUNTIME, Result};

/// The holders that a training takes from the ledger.
pub(super) const ARENA: &str = "network";
pub(super) const BEST: &str = "best weights";
pub(super) const EVALUATION: &str = "evaluation";
/// What the feed and the samples in memory are granted as.
pub(super) const FEED: &str = "feed";
pub(super) const SAMPLES: &str = "samples";
pub(super) const VALIDATION: &str = "samples that judge";

/// This part of the budget is left alone where samples are held as far as it goes.
const SPARE: u64 = 32;
/// More threads have less to do than it takes to wake them.
const MOST_THREADS: usize = 64;

/// This part of the budget is left alone where the program is made to fit: a plan may be so far below what the kernel
/// counts.
const MARGIN: u64 = 50;

/// What the code of networks takes beside the arena, over what the program itself does: 0.4 to 1 MB were measured.
const PROGRAM_BYTES: u64 = 600_000;
/// Bytes of memory for each byte of the kernel's page tables, which it counts too: 8 for a page of 4,096.
const PER_TABLE_BYTE: u64 = 512;

/// A program and what it takes to train it.
pub struct Planned {
    pub program: Program,
    /// How it is trained.
    pub setting: Setting,
    pub plan: Plan,
    /// How the samples are kept, those that judge, and how far they are read ahead.
    pub keep: Keep,
    pub keep_validation: Keep,
    pub prefetch: u64,
    /// What was changed so that it fits, and what else could be.
    pub changes: Vec<Change>,
    pub alternatives: Vec<Alternative>,
}

/// The budget in which so many bytes are planned, with what is left alone.
pub fn with_margin(needed: u64) -> u64 {
    needed + needed / (MARGIN - 1) + 1
}

/// How the program learns.
fn purpose(options: &Options, loss: &Loss, setting: &Setting, threads: usize) -> Purpose {
    Purpose {
        batch: setting.batch,
        threads,
        learning: Some(Learning {
            loss: loss.clone(),
            rule: options.rule,
            clip: options.clip,
            accumulates: setting.accumulate > 1,
            to_sample: false,
            moments: setting.moments,
            precision: setting.precision,
            recompute: setting.recompute.clone(),
        }),
    }
}

pub(super) fn feed_options(options: &Options, batch: usize, prefetch: u64, part: Part) -> FeedOptions {
    FeedOptions {
        batch,
        order: Order::InPlace,
        start: 0,
        part,
        prefetch,
        threads: options.feed_threads,
    }
}

/// Compiles the network and works out what training it takes beside what is `held` already, of the budget. Where it would
/// not fit, in the fastest way that does; then reads ahead as far as is of use, and holds the samples in memory where they
/// fit.
pub fn plan(
    design: &Design,
    source: &ArraySource,
    validation: Option<&ArraySource>,
    options: &Options,
    threads: usize,
    held: &[(String, u64)],
    budget: u64,
) -> Result<Planned> {
    let loss = options.loss.clone().unwrap_or_else(|| design.loss());
    let graph = Graph::new(
        &design.layers,
        &super::Shape(design.input.clone()),
        design.outputs(),
    )?;
    let compile = |setting: &Setting, threads: usize| {
        Program::of(graph.clone(), &purpose(options, &loss, setting, threads))
    };
    // One feed at a time: that of what is learned from, or of images that judge, which may be larger.
    let most = |bytes: &dyn Fn(&ArraySource) -> u64| {
        let judging = validation.filter(|validation| validation.is_fed()).map(bytes);
        bytes(source).max(judging.unwrap_or(0))
    };
    let feed_bytes = |batch: usize, prefetch: u64| {
        let feed = feed_options(options, batch, prefetch, Part::All);
        most(&|source| source.feed_bytes(&feed))
    };
    let least_feed = |batch: usize| {
        let feed = feed_options(options, batch, 0, Part::All);
        most(&|source| source.least_feed_bytes(&feed))
    };
    let evaluated = super::judge::bytes(&design.labels) + Mistakes::BYTES + PIECE_BYTES;
    let n_weights: usize = graph.weights.iter().map(|weight| weight.form.len()).sum();
    let best = if options.patience.is_some() {
        4 * n_weights as u64
    } else {
        0
    };
    let needs = |arena: u64, threads: usize, data: Data| {
        let mut holders = held.to_vec();
        if let Some((_, runtime)) = holders.iter_mut().find(|(name, _)| name == RUNTIME) {
            *runtime += threads as u64 * THREAD_BYTES + PROGRAM_BYTES + arena / PER_TABLE_BYTE;
        }
        let own = [
            (ARENA, arena),
            (BEST, best),
            (EVALUATION, evaluated),
            (FEED, data.feed),
            (SAMPLES, data.samples),
            (VALIDATION, data.validation),
        ];
        let own = own.into_iter().filter(|(_, bytes)| *bytes > 0);
        holders.extend(own.map(|(name, bytes)| (name.to_string(), bytes)));
        holders
    };
    let total = |holders: &[(String, u64)]| holders.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let mut keep = Keep {
        memory: 0,
        folder: options.unpacked.clone(),
        map: options.map,
    };
    let mut keep_validation = keep.clone();
    let whole = Keep {
        memory: u64::MAX,
        ..keep.clone()
    };
    let kept_bytes =
        |source: Option<&ArraySource>, keep: &Keep| source.map_or(0, |source| source.keep_bytes(keep));
    let least_data = |batch: usize| Data {
        feed: least_feed(batch),
        samples: source.keep_bytes(&keep),
        validation: kept_bytes(validation, &keep),
    };
    // Small samples are quickly fed from memory, or by windows of them.
    let quick_data = |batch: usize| {
        let least = least_data(batch);
        let window = Data {
            feed: feed_bytes(batch, source.good_prefetch(batch, 1) / 2),
            ..least
        };
        let held = Data {
            samples: source.keep_bytes(&whole),
            ..least
        };
        match window.feed < held.feed + held.samples {
            true => window,
            false => held,
        }
    };
    let room_with = |threads: usize, data: Data| {
        let others = total(&needs(0, threads, data));
        (budget - budget / MARGIN).checked_sub(others)
    };
    let roomy = |threads: usize, batch: usize| room_with(threads, quick_data(batch));
    let knobs = Knobs {
        plain: Setting {
            batch: options.batch,
            accumulate: options.accumulate,
            precision: options.precision.unwrap_or_default(),
            moments: options.moments.unwrap_or_default(),
            recompute: Vec::new(),
        },
        micro_batch: options.micro_batch,
        precision: options.precision,
        // What the optimizer has kept so far is in its form.
        moments: options
            .moments
            .or(options.begun.as_ref().map(|begun| begun.moments)),
        keeps: options.rule.n_states() > 0,
        recompute: options.recompute,
        begun: options.begun.as_ref(),
        mixes: options.mixes,
        threads: threads.clamp(1, MOST_THREADS),
        compile: &compile,
        room: &|threads, batch| room_with(threads, least_data(batch)),
        roomy: (!source.is_fed()).then_some(&roomy),
        peak: &|arena, threads, batch| total(&needs(arena, threads, least_data(batch))),
        sets: RefCell::default(),
        ways: RefCell::default(),
    };
    let way = knobs.choose().map_err(|least| {
        let holders = needs(least.bytes, least.threads, least_data(least.setting.batch));
        let needed = total(&holders);
        Error::BudgetTooSmall {
            least: with_margin(needed),
            budget,
            holders: compile(&least.setting, least.threads).in_shares(holders, ARENA),
        }
    })?;
    let (changes, mut alternatives) = (knobs.changes(&way), knobs.alternatives(&way));
    let (batch, threads) = (way.setting.batch, way.threads);
    let program = compile(&way.setting, threads);
    let mut data = least_data(batch);
    let read_one_by_one = total(&needs(program.bytes(), threads, data));
    let left = |data: Data| budget.checked_sub(total(&needs(program.bytes(), threads, data)));
    // What fits in memory as a whole is held there, what is learned from first, and needs no slots to be read into.
    let with_samples = Data {
        samples: source.keep_bytes(&whole),
        ..data
    };
    let mut prefetch = 0;
    if source.is_fed() {
        // Reading ahead comes first: what brings samples has to be there, wherever they are kept.
        prefetch =
            most(&|source| source.good_prefetch(batch, options.feed_threads)).min(left(data).unwrap_or(0));
        data.feed = feed_bytes(batch, prefetch);
        keep.memory = left(data).unwrap_or(0).saturating_sub(budget / SPARE);
        data.samples = source.keep_bytes(&keep);
        // What is left is for reading further ahead.
        prefetch += left(data).unwrap_or(0).saturating_sub(budget / SPARE);
        data.feed = feed_bytes(batch, prefetch);
    } else if !options.map && left(with_samples).is_some() {
        keep.memory = with_samples.samples;
        data = with_samples;
    } else if let Some(left) = left(data) {
        prefetch = source.good_prefetch(batch, 1).min(left);
        data.feed = feed_bytes(batch, prefetch);
    }
    let with_validation = Data {
        validation: kept_bytes(validation, &whole),
        ..data
    };
    if let Some(validation) = validation.filter(|validation| validation.is_fed()) {
        keep_validation.memory = left(data).unwrap_or(0).saturating_sub(budget / SPARE);
        data.validation = validation.keep_bytes(&keep_validation);
    } else if !options.map && left(with_validation).is_some() {
        keep_validation.memory = with_validation.validation;
        data = with_validation;
    }
    // What is in memory is not read into slots.
    let all_held = keep.memory > 0 && (validation.is_none() || keep_validation.memory > 0);
    if all_held && !source.is_fed() {
        let feed = feed_options(options, batch, 0, Part::All);
        let bytes = |source: &ArraySource| source.held_feed_bytes(&feed);
        data.feed = bytes(source).max(validation.map_or(0, bytes));
    }
    let plan = Plan {
        threads,
        holders: needs(program.bytes(), threads, data),
        budget,
        spare: 0,
    };
    // The others were added up as if samples were read one by one: with room for more they would be held as they are here.
    let held = total(&plan.holders).cast_signed() - read_one_by_one.cast_signed();
    for other in alternatives.iter_mut().filter(|other| other.peak <= budget) {
        other.peak = other.peak.saturating_add_signed(held).min(budget);
    }
    Ok(Planned {
        program,
        plan,
        keep,
        keep_validation,
        prefetch,
        setting: way.setting,
        changes,
        alternatives,
    })
}

/// What samples take.
#[derive(Clone, Copy)]
struct Data {
    feed: u64,
    samples: u64,
    validation: u64,
}
