//! How good a network is, by samples that it did not learn from.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_data::arrays::{ArraySource, FeedOptions, Labels};
use tidegate_data::target::Task;
use tidegate_memory::Ledger;

use super::design::Design;
use super::machine::Machine;
use super::mistakes::{Mistake, Mistakes};
use crate::{Error, Evaluator, Metric, Quality, Result};

/// Samples that judge, and what it takes to go through them.
pub(super) struct Evaluation<'a> {
    pub design: &'a Design,
    pub source: &'a ArraySource,
    pub feed: FeedOptions,
    pub ledger: &'a Ledger,
    /// See [`Judge::new`].
    pub prior: &'a [f64],
    pub stop: &'a AtomicBool,
}

/// What they say of a network.
pub(super) struct Judged {
    /// The mean of a sample.
    pub loss: f64,
    pub quality: Quality,
    pub mistakes: Vec<Mistake>,
}

impl Evaluation<'_> {
    /// `None` where no sample judges; breaks when asked to stop.
    pub(super) fn run(&self, machine: &mut Machine) -> Result<ControlFlow<(), Option<Judged>>> {
        let (labels, outputs) = (&self.design.labels, self.design.outputs());
        let mut judge = Judge::new(labels, self.prior);
        let (mut rows, mut loss, mut mistakes) = (0u64, 0.0, Mistakes::default());
        let mut scores = vec![0.0; outputs];
        let mut stopped = false;
        self.source.feed(&self.feed, self.ledger, |batch| {
            stopped = self.stop.load(Ordering::Relaxed);
            if stopped {
                return Ok::<_, Error>(ControlFlow::Break(()));
            }
            self.design.put(batch, machine)?;
            loss += machine.judge(batch.n_samples());
            rows += batch.n_samples() as u64;
            let made = machine.outputs().chunks_exact(outputs);
            let truths = batch.targets().chunks_exact(labels.width()).zip(batch.samples());
            for (made, (truth, sample)) in made.zip(truths) {
                self.design.scores(made, &mut scores);
                judge.push(&scores, truth);
                mistakes.look(labels, *sample, &scores, truth);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if stopped {
            return Ok(ControlFlow::Break(()));
        }
        if rows == 0 {
            return Ok(ControlFlow::Continue(None));
        }
        let mut mistakes = mistakes.worst();
        for mistake in &mut mistakes {
            let file = self.source.file(mistake.sample);
            mistake.file = file.map(|path| path.display().to_string());
        }
        Ok(ControlFlow::Continue(Some(Judged {
            loss: loss / rows as f64,
            quality: judge.quality(),
            mistakes,
        })))
    }
}

/// Takes in scores and truths of any labels.
#[derive(Debug, Clone)]
pub(super) enum Judge {
    One(Box<Evaluator>),
    /// One for each flag or number.
    Several(Vec<Evaluator>),
}

/// What a judge holds.
pub(super) fn bytes(labels: &Labels) -> u64 {
    match labels {
        Labels::One(target) => Evaluator::bytes(target.task(), target.labels().len()),
        Labels::Flags { width, .. } => *width as u64 * Evaluator::bytes(Task::Binary, 2),
        Labels::Numbers { scales } => scales.len() as u64 * Evaluator::FIGURES,
    }
}

impl Judge {
    /// `prior` is what the trivial model says: see [`Evaluator::new`], one behind the other where there are several.
    pub(super) fn new(labels: &Labels, prior: &[f64]) -> Judge {
        match labels {
            Labels::One(target) => Judge::One(Box::new(Evaluator::new(target.task(), prior))),
            Labels::Flags { .. } => {
                let flags = prior.iter().map(|prior| Evaluator::new(Task::Binary, &[*prior]));
                Judge::Several(flags.collect())
            }
            Labels::Numbers { .. } => {
                Judge::Several(prior.iter().copied().map(Evaluator::of_figures).collect())
            }
        }
    }

    pub(super) fn push(&mut self, scores: &[f64], truth: &[f32]) {
        match self {
            Judge::One(evaluator) => evaluator.push(scores, f64::from(truth[0])),
            Judge::Several(each) => {
                for ((evaluator, score), truth) in each.iter_mut().zip(scores).zip(truth) {
                    evaluator.push(&[*score], f64::from(*truth));
                }
            }
        }
    }

    /// Of several, the mean of every figure.
    pub(super) fn quality(&self) -> Quality {
        match self {
            Judge::One(evaluator) => evaluator.quality(),
            Judge::Several(each) => {
                let all: Vec<Vec<Metric>> = each.iter().map(Evaluator::metrics).collect();
                let n = all.len().max(1) as f64;
                let mean = |i: usize, value: &dyn Fn(&Metric) -> f64| {
                    all.iter()
                        .filter_map(|metrics| metrics.get(i))
                        .map(value)
                        .sum::<f64>()
                        / n
                };
                let first = all.first().map_or(&[][..], Vec::as_slice);
                let metrics = first.iter().enumerate().map(|(i, metric)| Metric {
                    name: format!("mean_{}", metric.name),
                    value: mean(i, &|metric| metric.value),
                    baseline: metric
                        .baseline
                        .map(|_| mean(i, &|metric| metric.baseline.unwrap_or(f64::NAN))),
                    higher_is_better: metric.higher_is_better,
                });
                Quality {
                    metrics: metrics.collect(),
                    ..Quality::default()
                }
            }
        }
    }
}
