//! The loop: round after round, until there are enough, the held out loss no longer falls, or somebody says stop.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use tidegate_memory::Ledger;

use super::crew::Crew;
use super::evaluate::evaluate;
use super::forest::{Forest, Walk};
use super::histogram::{Histograms, Packed};
use super::objective::{Losses, Quantiser};
use super::pass::{Halt, Route, pass};
use super::plan::Plan;
use super::rows::{Blocks, Part};
use super::split::Rules;
use super::start::{Facts, facts};
use super::state::Pieces;
use super::tree::{Grove, Sprout};
use super::{FeatureBins, Options};
use crate::{Error, Quality, Result};

/// What is trained on, how, and within what.
pub struct Training<'a> {
    pub blocks: &'a mut dyn Blocks,
    pub features: &'a [FeatureBins],
    pub options: &'a Options,
    pub plan: &'a Plan,
    pub ledger: &'a Ledger,
    /// Where state goes that does not fit in memory, and rows that are let go of.
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
    training: Training<'_>,
    resume: Option<&Forest>,
    on_round: &mut dyn FnMut(Round<'_>),
) -> Result<Outcome> {
    check(&training);
    let told = Told::of(&training);
    let mut crew = Crew::new(training)?;
    let mut rounds = Rounds::default();
    match rounds.run(&told, &mut crew, resume, on_round) {
        Ok(trained) => Ok(Outcome::Done(Box::new(trained))),
        Err(Halt::Failed(error)) => Err(error),
        Err(Halt::Stopped) => {
            let so_far = rounds.forest.or_else(|| resume.cloned());
            Ok(Outcome::Stopped(so_far.map(Box::new)))
        }
    }
}

fn check(training: &Training<'_>) {
    let (blocks, shape, features) = (&training.blocks, &training.plan.shape, training.features);
    let n_bins: usize = features.iter().map(FeatureBins::n_bins).sum();
    let n_rows = (0..blocks.n_blocks()).map(|block| blocks.n_rows(block));
    assert!(
        blocks.n_features() == features.len()
            && features.len() == shape.n_features
            && n_bins <= shape.n_bins
            && blocks.largest_block() <= shape.block_rows
            && blocks.n_blocks() <= shape.n_blocks()
            && n_rows.sum::<usize>() <= shape.n_rows,
        "the plan was made for other blocks: {shape:?}"
    );
    assert!(!features.is_empty(), "there is a feature");
}

/// What is asked of the trees.
#[derive(Clone, Copy)]
struct Told<'a> {
    features: &'a [FeatureBins],
    options: &'a Options,
    plan: &'a Plan,
}

impl<'a> Told<'a> {
    fn of(training: &Training<'a>) -> Told<'a> {
        Told {
            features: training.features,
            options: training.options,
            plan: training.plan,
        }
    }

    fn no_forest(&self, base: Vec<f32>) -> Forest {
        Forest {
            objective: self.options.objective,
            base,
            trees: Vec::new(),
            features: self.features.to_vec(),
        }
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
        told: &Told<'_>,
        crew: &mut Crew<'_>,
        resume: Option<&Forest>,
        on_round: &mut dyn FnMut(Round<'_>),
    ) -> Result<Trained, Halt> {
        let Told {
            features,
            options,
            plan,
        } = *told;
        let objective = options.objective;
        let facts = facts(crew, objective)?;
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
            features,
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
        let n_bins = features.iter().map(FeatureBins::n_bins).sum();
        let mut histograms = Histograms::new(plan.histograms, n_bins);
        let forest = self.forest.insert(match resume {
            Some(forest) => forest.clone(),
            None => told.no_forest(base.clone()),
        });
        if forest.fault().is_some()
            || forest.base != base
            || forest.features != features
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
        let quality = evaluate(crew, objective, &facts)?;
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
    crew: &mut Crew<'_>,
) -> Result<Vec<(f64, Option<f64>)>, Halt> {
    let n_outputs = forest.n_outputs();
    let walks: Vec<Walk> = forest.trees.iter().map(super::forest::Tree::walk).collect();
    let n_blocks = crew.site.blocks.n_blocks();
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
