//! What a network says of samples, streamed within the budget.

use std::ops::ControlFlow;
use std::path::Path;

use tidegate_data::arrays::{ArraySource, FeedOptions, Keep, Labels, Order, Part};
use tidegate_memory::{Grant, Ledger};

use super::design::Design;
use super::folder::NetworkModel;
use super::machine::Program;
use super::plan::ARENA;
use crate::linear::{Plan, THREAD_BYTES};
use crate::metrics::highest;
use crate::tensors::PIECE_BYTES;
use crate::{Error, Prediction, RUNTIME, Result};

/// Batches that are tried, the largest first.
const BATCHES: [usize; 4] = [64, 16, 4, 1];

/// A program that predicts, and what that takes.
pub struct PredictPlanned {
    program: Program,
    pub plan: Plan,
    pub keep: Keep,
    feed: FeedOptions,
}

/// Works out what predicting takes beside what is held already: the largest batch and as many threads as fit.
pub fn predict_plan(
    design: &Design,
    source: &ArraySource,
    threads: usize,
    keep: &Keep,
    held: &[(String, u64)],
    budget: u64,
) -> Result<PredictPlanned> {
    let mut least = None;
    for batch in BATCHES {
        for threads in (1..=threads.max(1)).rev() {
            let program = NetworkModel::program(design, batch, threads)?;
            let mut feed = FeedOptions {
                batch,
                order: Order::InPlace,
                start: 0,
                part: Part::All,
                prefetch: 0,
                threads: if source.is_fed() { threads } else { 1 },
            };
            let fixed = |feed: u64| {
                let mut holders = held.to_vec();
                if let Some((_, runtime)) = holders.iter_mut().find(|(name, _)| name == RUNTIME) {
                    *runtime += threads as u64 * THREAD_BYTES;
                }
                let own = [
                    (ARENA, program.bytes() + PIECE_BYTES),
                    ("feed", feed),
                    ("samples", source.keep_bytes(keep)),
                ];
                holders.extend(own.map(|(name, bytes)| (name.to_string(), bytes)));
                holders
            };
            let total = |holders: &[(String, u64)]| holders.iter().map(|(_, bytes)| bytes).sum::<u64>();
            let holders = fixed(source.least_feed_bytes(&feed));
            let needed = total(&holders);
            if needed <= budget {
                feed.prefetch = source.good_prefetch(batch, feed.threads).min(budget - needed);
                let plan = Plan {
                    threads,
                    holders: fixed(source.feed_bytes(&feed)),
                    budget,
                    spare: 0,
                };
                return Ok(PredictPlanned {
                    program,
                    plan,
                    keep: keep.clone(),
                    feed,
                });
            }
            least = Some((needed, holders));
        }
    }
    let (least, holders) = least.unwrap_or_default();
    Err(Error::BudgetTooSmall {
        least,
        budget,
        holders,
    })
}

/// Predicts every sample in its order. `progress` hears how many are done, and may break off.
pub fn predict(
    design: &Design,
    folder: &Path,
    source: &ArraySource,
    planned: PredictPlanned,
    ledger: &Ledger,
    mut take: impl FnMut(&Prediction) -> Result<()>,
    mut progress: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<()> {
    let arena = ledger.holder(ARENA).try_grant(planned.plan.bytes(ARENA));
    let _held = arena
        .map(Grant::pin)
        .map_err(|source| Error::Memory { what: ARENA, source })?;
    let built = planned.program.build(0);
    let mut machine = built.map_err(|source| Error::Arena { source })?;
    NetworkModel::fill(&mut machine, folder)?;
    let len = design.input.iter().product::<usize>();
    let outputs = design.outputs();
    let classes = design.labels.classes();
    let mut scores = vec![0.0; outputs];
    source.feed(&planned.feed, ledger, |batch| {
        let rows = batch.n_samples();
        if rows == 0 {
            return Ok(progress(batch.cursor()));
        }
        let inputs = &mut machine.inputs()[..rows * len];
        design.scaling.write(batch, inputs);
        design.check_tokens(batch, inputs)?;
        machine.forward(rows);
        for (made, sample) in machine.outputs().chunks_exact(outputs).zip(batch.samples()) {
            design.scores(made, &mut scores);
            let (class, score) = match (&design.labels, classes.len()) {
                (Labels::One(_), 2) => {
                    let class = usize::from(scores[0] >= 0.5);
                    (class, scores[0])
                }
                (Labels::One(_), 3..) => {
                    let class = highest(&scores);
                    (class, scores[class])
                }
                _ => (0, scores[0]),
            };
            let file = source.file(*sample).map(|path| path.display().to_string());
            take(&Prediction {
                part: 0,
                name: file.as_deref(),
                line: *sample,
                score,
                scores: &scores,
                label: classes.get(class).map(|label| label.text.as_str()),
                class,
            })?;
        }
        Ok::<_, Error>(progress(batch.cursor()))
    })?;
    Ok(())
}
