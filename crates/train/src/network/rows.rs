//! Networks over the rows of a table: the layer that takes their columns, and predictions, streamed within the budget.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use tidegate_data::arrays::{RowShape, row_labels};
use tidegate_data::encode::Encoders;
use tidegate_data::target::Target;
use tidegate_data::{Batch, Holdout, PassOptions, Position, Table};
use tidegate_memory::{Grant, Ledger};

use super::design::Design;
use super::folder::NetworkModel;
use super::layer::{Kind, Layer, Sparse};
use super::machine::{Machine, Program};
use super::plan::ARENA;
use crate::linear::{Plan, THREAD_BYTES, fit};
use crate::model::damaged;
use crate::predict::{PredictedRows, decide};
use crate::tensors::PIECE_BYTES;
use crate::{Error, PredictOptions, Prediction, RUNTIME, Result};

/// Weights that sparse columns may take by themselves: their vectors are as wide as that allows.
const SPARSE_WEIGHTS: usize = 1 << 22;
const WIDTHS: [usize; 4] = [64, 32, 16, 8];

/// Has the first layer take the columns of a table: where some are sparse, by a vector for each place, of the width that
/// was asked for or one that is not too large.
pub fn take_columns(layers: &mut Vec<Layer>, shape: &RowShape) {
    let fits = |width: &usize| shape.places.saturating_mul(*width) <= SPARSE_WEIGHTS;
    let (places, pairs) = (shape.places, shape.pairs);
    match layers.first_mut().map(|layer| &mut layer.kind) {
        // Without sparse columns this is no layer for it, and the shapes tell.
        Some(Kind::Sparse(sparse)) => (sparse.places, sparse.pairs) = (places, pairs),
        _ if pairs == 0 => {}
        _ => {
            let width = WIDTHS.into_iter().find(fits).unwrap_or(WIDTHS[3]);
            // They keep the numbers that they had.
            for (i, layer) in layers.iter_mut().enumerate() {
                layer.name.get_or_insert_with(|| i.to_string());
            }
            let sparse = Sparse { width, places, pairs };
            layers.insert(0, Layer::new(Kind::Sparse(sparse)).named("columns"));
        }
    }
}

/// Batches that are tried, the largest first.
const BATCHES: [usize; 5] = [256, 64, 16, 4, 1];

/// A network that learned from a table, ready to be asked about others.
pub struct RowNetwork {
    pub encoders: Encoders,
    design: Design,
    shape: RowShape,
    folder: PathBuf,
}

/// A program that predicts rows, and what that takes.
pub struct RowsPlanned {
    program: Program,
    batch: usize,
    pub plan: Plan,
}

impl RowNetwork {
    /// The network of a folder; `None` where it learned from arrays.
    pub fn load(folder: &Path) -> Result<Option<RowNetwork>> {
        let Some(encoders) = NetworkModel::load_encoders(folder)? else {
            return Ok(None);
        };
        let design = NetworkModel::load_design(folder)?;
        let pairs = match design.layers.first().map(|layer| &layer.kind) {
            Some(Kind::Sparse(sparse)) => sparse.pairs,
            _ => 0,
        };
        let width = encoders.width();
        let shape = RowShape {
            dense: width.dense,
            places: width.sparse,
            pairs,
        };
        if design.input != [shape.len()] || design.labels != row_labels(&encoders.target) {
            return Err(damaged(folder, "network and encoders do not belong together"));
        }
        Ok(Some(RowNetwork {
            encoders,
            design,
            shape,
            folder: folder.into(),
        }))
    }

    /// What predicting takes in all, with the largest batch that fits; refuses a budget that is too small.
    pub fn plan(&self, table: &Table, options: &PredictOptions) -> Result<RowsPlanned> {
        let mut planned = self.plan_for(BATCHES[0], table, options);
        for batch in &BATCHES[1..] {
            if !matches!(planned, Err(Error::BudgetTooSmall { .. })) {
                break;
            }
            planned = self.plan_for(*batch, table, options);
        }
        planned
    }

    fn plan_for(&self, batch: usize, table: &Table, options: &PredictOptions) -> Result<RowsPlanned> {
        // What the arena takes, by the number of threads.
        let arenas = (1..=options.threads.max(1)).map(|threads| Ok(self.program(batch, threads)?.bytes()));
        let arenas = arenas.collect::<Result<Vec<u64>>>()?;
        let needs = |threads: usize| {
            let runtime = options.runtime + (threads as u64 + 1) * THREAD_BYTES;
            let pass = table.pass_needs(share(threads).0);
            vec![
                (RUNTIME.to_string(), runtime),
                ("columns".into(), table.columns_bytes()),
                ("encoders".into(), self.encoders.bytes()),
                ("data buffers".into(), pass.bytes()),
                (ARENA.into(), arenas[threads - 1] + PIECE_BYTES),
                ("output".into(), options.output),
            ]
        };
        let plan = fit(needs, options.threads, options.budget)?;
        Ok(RowsPlanned {
            program: self.program(batch, plan.threads)?,
            batch,
            plan,
        })
    }

    fn program(&self, batch: usize, threads: usize) -> Result<Program> {
        NetworkModel::program(&self.design, batch, share(threads).1)
    }

    /// Streams `table` through the network; `out` receives the predictions in the order of the source, and `progress`,
    /// once per piece, the place that was reached. Either may end it.
    pub fn predict(
        &self,
        table: &Table,
        planned: RowsPlanned,
        ledger: &Ledger,
        mut out: impl FnMut(Prediction) -> Result<()>,
        mut progress: impl FnMut(Position) -> ControlFlow<()>,
    ) -> Result<PredictedRows> {
        let arena = ledger.holder(ARENA).try_grant(planned.plan.bytes(ARENA));
        let _held = arena
            .map(Grant::pin)
            .map_err(|source| Error::Memory { what: ARENA, source })?;
        let built = planned.program.build(0);
        let mut machine = built.map_err(|source| Error::Arena { source })?;
        NetworkModel::fill(&mut machine, &self.folder)?;
        let options = PassOptions {
            threads: share(planned.plan.threads).0,
            holdout: Holdout::new(0.0, 0),
            start: None,
        };
        let mut scores = vec![0.0; self.design.outputs()];
        let mut rows = PredictedRows::default();
        let counts = table.pass(
            &options,
            ledger,
            |_| (),
            |batch, (), position| {
                rows.note_parts(&batch.counts, position.part);
                for start in (0..batch.n_rows()).step_by(planned.batch) {
                    let n = planned.batch.min(batch.n_rows() - start);
                    self.forward(&mut machine, batch, start, n);
                    let made = machine.outputs().chunks_exact(self.design.outputs());
                    for (i, made) in made.take(n).enumerate() {
                        self.design.scores(made, &mut scores);
                        // Learned as what it is away from the mean.
                        if let Target::Number { mean, .. } = self.encoders.target {
                            scores[0] += mean;
                        }
                        let (class, score) = decide(&self.encoders.target, &scores);
                        out(Prediction {
                            part: position.part,
                            line: batch.row(start + i).line,
                            name: None,
                            score,
                            scores: &scores,
                            label: self
                                .encoders
                                .target
                                .labels()
                                .get(class)
                                .map(|label| label.text.as_str()),
                            class,
                        })?;
                    }
                }
                Ok::<_, Error>(progress(position))
            },
        )?;
        Ok(PredictedRows { counts, ..rows })
    }

    fn forward(&self, machine: &mut Machine, batch: &Batch, start: usize, n: usize) {
        let len = self.shape.len();
        let inputs = &mut machine.inputs()[..n * len];
        inputs.fill(0.0);
        for (i, into) in inputs.chunks_exact_mut(len).enumerate() {
            self.shape.write(&batch.row(start + i), into);
        }
        machine.forward(n);
    }
}

/// Threads that encode, and threads of the network.
fn share(threads: usize) -> (usize, usize) {
    let encoding = threads.div_ceil(2);
    (encoding, (threads - encoding).max(1))
}
