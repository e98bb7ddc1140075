//! From a table to binned rows: one pass that encodes, bins and keeps.

use std::ops::ControlFlow;

use tidegate_data::{PassOptions, Position, RowCounts, Table};
use tidegate_memory::Ledger;

use super::rows::Resident;
use super::{FeatureBins, Plan, ROWS};
use crate::Result;

/// Streams `table` once and bins its rows; `progress` hears of every piece and may end it.
pub fn fill(
    table: &Table,
    features: &[FeatureBins],
    plan: &Plan,
    options: &PassOptions,
    ledger: &Ledger,
    mut progress: impl FnMut(Position, u64) -> ControlFlow<()>,
) -> Result<(Resident, RowCounts)> {
    let shape = &plan.shape;
    let mut rows = Resident::new(
        shape.n_rows,
        shape.n_features,
        shape.block_rows,
        &ledger.holder(ROWS),
    )?;
    let mut n_rows = 0;
    let counts = table.pass(
        options,
        ledger,
        |batch| {
            let mut bins = Vec::with_capacity(batch.n_rows() * features.len());
            for row in batch.rows() {
                bins.extend(features.iter().zip(row.dense).map(|(feature, x)| feature.bin(*x)));
            }
            bins
        },
        |batch, bins, position| -> Result<ControlFlow<()>> {
            for (row, bins) in batch.rows().zip(bins.chunks_exact(features.len())) {
                rows.push(bins, row.target as f32, row.held_out)?;
            }
            n_rows += batch.n_rows() as u64;
            Ok(progress(position, n_rows))
        },
    )?;
    Ok((rows, counts))
}
