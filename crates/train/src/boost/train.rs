//! The loop: round after round, until there are enough, the held out loss no longer falls, or somebody says stop.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use tidegate_memory::{Grant, Ledger};

use super::evaluate::evaluate;
use super::forest::{Forest, Walk};
use super::histogram::{Histograms, Packed};
use super::objective::{Losses, Quantiser};
use super::pass::{Crew, Halt, Route, Site, Slot, Tools, pass};
use super::plan::{BUFFERS, EVALUATION, HISTOGRAMS, PAGES, Plan, STATE, TREES};
use super::rows::{Blocks, Part};
use super::split::Rules;
use super::start::{Facts, facts};
use super::state::{Pieces, States};
use super::tree::{Grove, Sprout};
use super::{FeatureBins, Options, grow};
use crate::{Error, Quality, Result};

/// What is trained on, how, and within what.
#[derive(Clone, Copy)]
pub struct Training<'a> {
    pub blocks: &'a dyn Blocks,
    pub features: &'a [FeatureBins],
    pub options: &'a Options,
    pub plan: &'a Plan,
    pub ledger: &'a Ledger,
    /// Where state goes that does not fit in memory.
    pub scratch: &'a Path,
    pub stop: &'a AtomicBool,
}

/// A round that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Round<'f> {
    /// From 1.
    pub round: usize,
    /// Mean losses, weighted like the classes.
    pub training_loss: f64,
    pub held_out_loss: Option<f64>,
    /// The forest so far: what a training can be resumed from.
    pub forest: &'f Forest,
}

/// How a training ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Done(Box<Trained>),
    /// Asked to stop: the whole rounds so far, to resume from.
    Stopped(Option<Box<Forest>>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    pub forest: Forest,
    /// Rounds that were trained; the forest has fewer if an earlier one was the best.
    pub rounds: usize,
    /// Losses at the end of the last round of the forest.
    pub training_loss: f64,
    pub held_out_loss: Option<f64>,
    /// Of the held out rows.
    pub quality: Quality,
    pub training_rows: u64,
    pub held_out_rows: u64,
}

/// Trains a forest within its plan, from the start or on from the forest of a stopped training.
pub fn train(
    training: &Training<'_>,
    resume: Option<&Forest>,
    on_round: &mut dyn FnMut(Round<'_>),
) -> Result<Outcome> {
    let Training { blocks, plan, .. } = *training;
    let n_rows: Vec<usize> = (0..blocks.n_blocks()).map(|block| blocks.n_rows(block)).collect();
    check(training, &n_rows);
    let mut first_rows = Vec::with_capacity(n_rows.len());
    n_rows.iter().fold(0, |first, n| {
        first_rows.push(first);
        first + *n as u64
    });
    let granted = |name: &'static str| {
        let grant = training.ledger.holder(name).try_grant(plan.bytes(name));
        grant
            .map(Grant::pin)
            .map_err(|source| Error::Memory { what: name, source })
    };
    let holders = [BUFFERS, PAGES, STATE, HISTOGRAMS, TREES, EVALUATION];
    let _held = holders.into_iter().map(granted).collect::<Result<Vec<Grant>>>()?;
    let n_outputs = training.options.objective.n_outputs();
    let n_nodes = grow::max_nodes(training.options);
    let states = States::new(
        &n_rows,
        (plan.kept.hot, plan.kept.cold),
        n_outputs,
        n_nodes,
        training.scratch,
    )?;
    let n_bins = training.features.iter().map(FeatureBins::n_bins).sum();
    let largest = blocks.largest_block();
    let tools = || Tools {
        packed: Packed::new(plan.packed, n_bins),
        spare: vec![0; largest],
    };
    let slot = || Slot {
        rows: plan.row_buffer(largest),
        state: states.buffer(),
    };
    let mut crew = Crew {
        tools: (0..plan.threads).map(|_| tools()).collect(),
        slots: (0..plan.n_slots()).map(|_| slot()).collect(),
        n_carriers: plan.carriers,
    };
    let site = Site {
        blocks,
        states: &states,
        first_rows: &first_rows,
        stop: training.stop,
    };
    let mut rounds = Rounds::default();
    match rounds.run(training, site, &mut crew, resume, on_round) {
        Ok(trained) => Ok(Outcome::Done(Box::new(trained))),
        Err(Halt::Failed(error)) => Err(error),
        Err(Halt::Stopped) => {
            let so_far = rounds.forest.or_else(|| resume.cloned());
            Ok(Outcome::Stopped(so_far.map(Box::new)))
        }
    }
}

fn check(training: &Training<'_>, n_rows: &[usize]) {
    let (shape, features) = (&training.plan.shape, training.features);
    let n_bins: usize = features.iter().map(FeatureBins::n_bins).sum();
    let largest = n_rows.iter().copied().max().unwrap_or(0);
    assert!(
        training.blocks.n_features() == features.len()
            && features.len() == shape.n_features
            && n_bins <= shape.n_bins
            && largest <= shape.block_rows
            && n_rows.len() <= shape.n_blocks()
            && n_rows.iter().sum::<usize>() <= shape.n_rows,
        "the plan was made for other blocks: {shape:?}"
    );
    assert!(!features.is_empty(), "there is a feature");
}

fn no_forest(training: &Training<'_>, base: Vec<f32>) -> Forest {
    Forest {
        objective: training.options.objective,
        base,
        trees: Vec::new(),
        features: training.features.to_vec(),
    }
}

/// The rounds so far.
#[derive(Default)]
struct Rounds {
    forest: Option<Forest>,
    losses: Vec<(f64, Option<f64>)>,
}

impl Rounds {
    fn run(
        &mut self,
        training: &Training<'_>,
        site: Site<'_>,
        crew: &mut Crew,
        resume: Option<&Forest>,
        on_round: &mut dyn FnMut(Round<'_>),
    ) -> Result<Trained, Halt> {
        let Training { options, plan, .. } = *training;
        let objective = options.objective;
        let facts = facts(&site, crew, objective)?;
        if facts.n_impossible > 0 {
            let rows = facts.n_impossible;
            return Err(Halt::Failed(Error::ImpossibleTargets { rows }));
        }
        if facts.n_training == 0 {
            return Err(Halt::Failed(Error::NothingToTrainOn));
        }
        let weights = Quantiser::new(objective, options.class_weights.as_deref(), 0.0).weights;
        let base = facts.base(objective, &weights);
        let largest = facts.largest_residual(base[0]);
        let quantiser = Quantiser::new(objective, options.class_weights.as_deref(), largest);
        let (gradient_unit, hessian_unit) = quantiser.units();
        let grove = Grove {
            site,
            features: training.features,
            options,
            plan,
            quantiser,
            rules: Rules {
                gradient_unit,
                hessian_unit,
                l2: options.l2,
                min_child_weight: options.min_child_weight,
                min_gain: options.min_gain,
            },
        };
        let n_bins = training.features.iter().map(FeatureBins::n_bins).sum();
        let mut histograms = Histograms::new(plan.histograms, n_bins);
        let forest = self.forest.insert(match resume {
            Some(forest) => forest.clone(),
            None => no_forest(training, base.clone()),
        });
        if forest.fault().is_some()
            || forest.base != base
            || forest.features != training.features
            || forest.objective != objective
        {
            return Err(Halt::Failed(Error::OtherCheckpoint { what: "data" }));
        }
        let mut sprout = grove.sprout(forest.trees.len());
        self.losses = begin(&grove, forest, &facts, &sprout, &histograms, crew)?;
        while forest.n_rounds() < options.trees && !is_over(&self.losses, options.early_stopping) {
            let mut trees = Vec::with_capacity(base.len());
            let mut losses = Vec::new();
            for class in 0..base.len() {
                let is_last = forest.n_rounds() + 1 == options.trees && class + 1 == base.len();
                let (tree, leaves) = grove.grow(&sprout, &mut histograms, crew)?;
                let next = grove.sprout(forest.trees.len() + class + 1);
                let planted = (!is_last).then_some(&next);
                losses = grove.finish(&sprout, (&tree, &leaves), planted, &mut histograms, crew)?;
                trees.push(tree);
                sprout = next;
            }
            let (training_loss, held_out_loss) = facts.mean(sum(losses), &weights);
            if !training_loss.is_finite() {
                let epoch = forest.n_rounds() as u32 + 1;
                return Err(Halt::Failed(Error::Diverged { epoch }));
            }
            forest.trees.extend(trees);
            self.losses.push((training_loss, held_out_loss));
            on_round(Round {
                round: forest.n_rounds(),
                training_loss,
                held_out_loss,
                forest,
            });
        }
        let rounds = forest.n_rounds();
        let best = options
            .early_stopping
            .and_then(|_| best_round(&self.losses))
            .unwrap_or(rounds);
        let mut kept = forest.clone();
        if best < rounds {
            kept.trees.truncate(best * base.len());
            begin(
                &grove,
                &kept,
                &facts,
                &grove.sprout(kept.trees.len()),
                &histograms,
                crew,
            )?;
        }
        // The plan has the evaluation in their place.
        drop(histograms);
        crew.tools
            .iter_mut()
            .for_each(|tools| tools.packed = Packed::new(0, 0));
        let quality = evaluate(&grove.site, crew, objective, &facts)?;
        let (training_loss, held_out_loss) = match best {
            0 => (f64::NAN, None),
            best => self.losses[best - 1],
        };
        Ok(Trained {
            forest: kept,
            rounds,
            training_loss,
            held_out_loss,
            quality,
            training_rows: facts.n_training,
            held_out_rows: facts.n_held_out,
        })
    }
}

fn sum(losses: Vec<Losses>) -> Losses {
    losses.into_iter().fold(Losses::default(), |sum, block| Losses {
        training: sum.training + block.training,
        held_out: sum.held_out + block.held_out,
    })
}

/// The round, from 1, with the lowest held out loss.
fn best_round(losses: &[(f64, Option<f64>)]) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (i, (_, held_out)) in losses.iter().enumerate() {
        if let Some(loss) = held_out.filter(|loss| best.is_none_or(|(_, best)| *loss < best)) {
            best = Some((i + 1, loss));
        }
    }
    best.map(|(round, _)| round)
}

fn is_over(losses: &[(f64, Option<f64>)], early_stopping: Option<usize>) -> bool {
    match (early_stopping, best_round(losses)) {
        (Some(patience), Some(best)) => losses.len() - best >= patience.max(1),
        _ => false,
    }
}

/// Sets all margins to what the forest so far makes them, and plants the next tree. Returns the losses of the
/// rounds so far, the same as they were then.
fn begin(
    grove: &Grove<'_>,
    forest: &Forest,
    facts: &Facts,
    next: &Sprout,
    histograms: &Histograms,
    crew: &mut Crew,
) -> Result<Vec<(f64, Option<f64>)>, Halt> {
    let n_outputs = forest.n_outputs();
    let walks: Vec<Walk> = forest.trees.iter().map(super::forest::Tree::walk).collect();
    let n_blocks = grove.site.blocks.n_blocks();
    let by_block: Mutex<Vec<Vec<Losses>>> = Mutex::new(vec![Vec::new(); n_blocks]);
    let route = Route {
        rows: Part::Whole,
        reads: Pieces::default(),
        writes: Pieces {
            margins: 0..n_outputs,
            norms: true,
            gradients: true,
            order: true,
        },
        in_order: false,
    };
    pass(
        &grove.site,
        crew,
        &route,
        &|tools, visited, state| {
            for (class, base) in forest.base.iter().enumerate() {
                state.margins_of(class).fill(*base);
            }
            let mut losses = Vec::with_capacity(forest.n_rounds());
            for (round, walks) in walks.chunks(n_outputs).enumerate() {
                for (class, walk) in walks.iter().enumerate() {
                    let rows = visited.rows.bins.chunks_exact(grove.features.len());
                    for (margin, row) in state.margins_of(class).iter_mut().zip(rows) {
                        *margin += walk.value(row);
                    }
                }
                losses.push(grove.begin_round((round + 1) * n_outputs, visited, state));
            }
            if walks.is_empty() {
                grove.begin_round(0, visited, state);
            }
            by_block.lock().expect("no thread panics with it")[visited.number] = losses;
            grove.plant(next, histograms, tools, visited, state);
            Losses::default()
        },
        &|tools| grove.planted(next, histograms, tools),
    )?;
    let by_block = by_block.into_inner().expect("no thread panics with it");
    let of_round = |round: usize| sum(by_block.iter().map(|losses| losses[round]).collect());
    let weights = &grove.quantiser.weights;
    Ok((0..forest.n_rounds())
        .map(|round| facts.mean(of_round(round), weights))
        .collect())
}
