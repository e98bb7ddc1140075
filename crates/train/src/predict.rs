//! Predictions for a table, streamed within the budget.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_data::target::Target;
use tidegate_data::{Batch, Holdout, PassOptions, Position, RowCounts, Table};
use tidegate_memory::{Grant, Ledger};

use crate::linear::{Plan, RUNTIME, THREAD_BYTES, fit};
use crate::{Error, Model, Result};

/// What the model says of one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction<'m> {
    /// The part of the source that the row is in.
    pub part: usize,
    /// The line of the file on which the row starts, or its number.
    pub line: u64,
    /// The file of the sample, where each has one of its own.
    pub name: Option<&'m str>,
    /// The predicted number, the probability of the positive value, or that of the predicted class.
    pub score: f64,
    /// All scores: of classes one each, in the order of the target's values; otherwise the one above.
    pub scores: &'m [f64],
    /// The predicted value of a target of classes.
    pub label: Option<&'m str>,
    /// Its place among the target's values.
    pub class: usize,
}

/// What became of the rows of a prediction, and in which part of the source the first ones stand that tell of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PredictedRows {
    pub counts: RowCounts,
    pub first_bad_part: usize,
    /// By column.
    pub first_broken_parts: BTreeMap<String, usize>,
}

impl PredictedRows {
    /// Notes where the first ones stand, before the counts of a piece are added.
    pub(crate) fn note_parts(&mut self, piece: &RowCounts, part: usize) {
        if self.counts.first_bad.is_none() && piece.first_bad.is_some() {
            self.counts.first_bad.clone_from(&piece.first_bad);
            self.first_bad_part = part;
        }
        for column in piece.broken.keys() {
            if !self.first_broken_parts.contains_key(column) {
                self.first_broken_parts.insert(column.clone(), part);
            }
        }
    }
}

/// The holders of what was learned and of the scores of several classes.
const MODEL: &str = "model";
const SCORES: &str = "scores";

/// What the caller of a prediction brings.
#[derive(Debug, Clone, Copy)]
pub struct PredictOptions {
    /// At the most; the predictions do not depend on it.
    pub threads: usize,
    /// What the program itself takes.
    pub runtime: u64,
    /// What the predictions take on their way out.
    pub output: u64,
    pub budget: u64,
}

/// What predicting takes in all; refuses a budget that is too small.
pub fn predict_plan(model: &Model, table: &Table, options: &PredictOptions) -> Result<Plan> {
    let encoders = &table.encoders;
    let classes = encoders.target.labels().len();
    let needs = |threads: usize| {
        let pass = table.pass_needs(threads);
        vec![
            (
                RUNTIME.to_string(),
                options.runtime + threads as u64 * THREAD_BYTES,
            ),
            ("columns".into(), table.columns_bytes()),
            ("encoders".into(), encoders.bytes()),
            ("data buffers".into(), pass.bytes()),
            (MODEL.into(), model.learned.bytes()),
            ("output".into(), options.output),
        ]
    };
    let mut plan = fit(needs, options.threads, options.budget)?;
    if classes > 2 {
        // No slot has more rows than would fill all of it. What there is no room for is scored later, one by one.
        let pass = table.pass_needs(plan.threads);
        let row = Batch::row_bytes(encoders.width(), encoders.sparse_values());
        let rows = (pass.slot_bytes as f64 / row) as u64;
        let all = pass.slots as u64 * rows * score_bytes(classes);
        let free = plan.budget.saturating_sub(plan.total());
        plan.holders.push((SCORES.into(), all.min(free)));
    }
    Ok(plan)
}

fn score_bytes(classes: usize) -> u64 {
    (classes * size_of::<f64>()) as u64
}

/// Where the scores of a batch are.
enum Scored<'r> {
    /// One a row, in the place of the target.
    InPlace,
    Beside(Scores<'r>),
    /// There was no room for them on their way to the caller.
    NotYet,
}

/// Several scores a row, one row after another.
struct Scores<'r> {
    values: Vec<f64>,
    room: &'r Room,
}

impl Drop for Scores<'_> {
    fn drop(&mut self) {
        let bytes = size_of_val(self.values.as_slice()) as u64;
        self.room.free.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Memory for scores on their way, granted as a whole and shared by the threads.
struct Room {
    free: AtomicU64,
    _grant: Grant,
}

impl Room {
    fn take(&self, bytes: u64) -> bool {
        let less = |free: u64| free.checked_sub(bytes);
        let taken = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.is_ok()
    }
}

/// Streams `table` through the model; `out` receives the predictions in the order of the source, and
/// `progress`, once per piece, the place that was reached. Either may end it.
pub fn predict(
    model: &Model,
    table: &Table,
    plan: &Plan,
    ledger: &Ledger,
    mut out: impl FnMut(Prediction) -> Result<()>,
    mut progress: impl FnMut(Position) -> ControlFlow<()>,
) -> Result<PredictedRows> {
    let options = PassOptions {
        threads: plan.threads,
        holdout: Holdout::new(0.0, 0),
        start: None,
    };
    let held = ledger.holder(MODEL).try_grant(model.learned.bytes());
    let _held = held
        .map(Grant::pin)
        .map_err(|source| Error::Memory { what: MODEL, source })?;
    let granted = ledger.holder(SCORES).try_grant(plan.bytes(SCORES));
    let room = Room {
        free: AtomicU64::new(plan.bytes(SCORES)),
        _grant: granted.map_err(|source| Error::Memory { what: SCORES, source })?,
    };
    let n_scores = model.learned.n_scores();
    let mut later = vec![0.0; n_scores];
    let labels = model.encoders.target.labels();
    let mut rows = PredictedRows::default();
    let counts = table.pass(
        &options,
        ledger,
        |batch| score(model, batch, &room),
        |batch, scored, position| {
            rows.note_parts(&batch.counts, position.part);
            for (i, row) in batch.rows().enumerate() {
                let own = [row.target];
                let scores = match &scored {
                    Scored::InPlace => own.as_slice(),
                    Scored::Beside(scores) => &scores.values[i * n_scores..][..n_scores],
                    Scored::NotYet => {
                        model.learned.predict(row, &mut later);
                        later.as_slice()
                    }
                };
                let (class, score) = decide(&model.encoders.target, scores);
                out(Prediction {
                    part: position.part,
                    line: row.line,
                    name: None,
                    score,
                    scores,
                    label: labels.get(class).map(|label| label.text.as_str()),
                    class,
                })?;
            }
            Ok::<_, Error>(progress(position))
        },
    )?;
    Ok(PredictedRows { counts, ..rows })
}

fn score<'r>(model: &Model, batch: &mut Batch, room: &'r Room) -> Scored<'r> {
    let n_scores = model.learned.n_scores();
    if n_scores == 1 {
        batch.score(|row| {
            let mut score = [0.0];
            model.learned.predict(row, &mut score);
            score[0]
        });
        return Scored::InPlace;
    }
    if !room.take(batch.n_rows() as u64 * score_bytes(n_scores)) {
        return Scored::NotYet;
    }
    let mut values = vec![0.0; batch.n_rows() * n_scores];
    for (row, scores) in batch.rows().zip(values.chunks_exact_mut(n_scores)) {
        model.learned.predict(row, scores);
    }
    Scored::Beside(Scores { values, room })
}

/// The place of the predicted value among the target's, and the score that stands for the row.
pub(crate) fn decide(target: &Target, scores: &[f64]) -> (usize, f64) {
    match target {
        Target::Number { .. } => (0, scores[0]),
        Target::Binary { .. } => (usize::from(scores[0] >= 0.5), scores[0]),
        Target::Classes { .. } => {
            let best = crate::metrics::highest(scores);
            (best, scores[best])
        }
    }
}
