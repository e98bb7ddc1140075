//! How good a network is, by samples that it did not learn from.

use tidegate_data::arrays::Labels;
use tidegate_data::target::Task;

use crate::{Evaluator, Metric, Quality};

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
        Labels::Numbers { scales } => scales.len() as u64 * Evaluator::bytes(Task::Regression, 0),
    }
}

impl Judge {
    /// `prior` is what the trivial model says: see [`Evaluator::new`], one behind the other where there are several.
    pub(super) fn new(labels: &Labels, prior: &[f64]) -> Judge {
        let several = |task: Task| {
            prior
                .iter()
                .map(|prior| Evaluator::new(task, &[*prior]))
                .collect()
        };
        match labels {
            Labels::One(target) => Judge::One(Box::new(Evaluator::new(target.task(), prior))),
            Labels::Flags { .. } => Judge::Several(several(Task::Binary)),
            Labels::Numbers { .. } => Judge::Several(several(Task::Regression)),
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
