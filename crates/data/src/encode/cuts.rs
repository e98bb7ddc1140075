//! Where trees may cut the outputs of an encoder: places between its values, by how often those occur.

use super::{Encoder, Lookup, NumberScale, Time};
use crate::fit::{ColumnFit, Values};
use crate::sketch::{CategoryTable, Quantiles};

/// The most cuts of one output: with a bin for missing values that makes 256.
pub const MOST_CUTS: usize = 254;

impl Encoder {
    /// Ascending cuts for each dense output.
    pub(crate) fn cuts(&self, fit: &ColumnFit) -> Vec<Vec<f32>> {
        match (self, &fit.values) {
            (Encoder::Keep, Values::Numbers { quantiles, .. } | Values::Times { quantiles, .. }) => {
                vec![of_values(quantiles, |x| x as f32)]
            }
            (Encoder::Number(number), Values::Numbers { quantiles, .. }) => {
                let value = match number.scale {
                    // Bins are numbered: the cuts between them are halves, whatever the values were.
                    NumberScale::Bins { ref cuts } => halves(cuts.len() + 1),
                    _ => of_values(quantiles, |x| number.value(x)),
                };
                with_flag(vec![value], number.flag_missing)
            }
            (Encoder::Time(time), Values::Times { quantiles, .. }) => time_cuts(time, quantiles),
            (Encoder::Ordinal(ordinal), _) => vec![halves(ordinal.lookup.keys.len() + 1)],
            (Encoder::Frequency(frequency), Values::Categories(table)) => {
                by_category(&frequency.lookup, table)
            }
            (Encoder::Impact(impact), Values::Categories(table)) => by_category(&impact.lookup, table),
            (Encoder::Flag(_) | Encoder::Dummy(_), _) => vec![vec![0.5]; self.width().dense],
            _ => vec![Vec::new(); self.width().dense],
        }
    }
}

/// Cuts of the values themselves, brought into the unit of the output; the way there must not turn them round.
fn of_values(quantiles: &Quantiles, output: impl Fn(f64) -> f32) -> Vec<f32> {
    ascending(quantiles.cuts(MOST_CUTS + 1).into_iter().map(output).collect())
}

fn ascending(mut cuts: Vec<f32>) -> Vec<f32> {
    cuts.retain(|cut| cut.is_finite());
    cuts.sort_unstable_by(f32::total_cmp);
    cuts.dedup();
    cuts
}

/// Between the codes from −1 (never seen) to `n` − 1; where those are too many, evenly spread.
fn halves(n: usize) -> Vec<f32> {
    let step = n.div_ceil(MOST_CUTS).max(1);
    (0..n).step_by(step).map(|code| code as f32 - 0.5).collect()
}

fn with_flag(mut cuts: Vec<Vec<f32>>, flag_missing: bool) -> Vec<Vec<f32>> {
    if flag_missing {
        cuts.push(vec![0.5]);
    }
    cuts
}

fn time_cuts(time: &Time, quantiles: &Quantiles) -> Vec<Vec<f32>> {
    let mut cuts = Vec::new();
    for scaled in &time.parts {
        let range = (scaled.high - scaled.low).max(1.0);
        // A point on a circle has as many values as the part has.
        let even = |n: usize, low: f32, high: f32| -> Vec<f32> {
            (1..n).map(|i| low + (high - low) * i as f32 / n as f32).collect()
        };
        match (scaled.cyclic, scaled.part.cycle()) {
            (true, _) => {
                cuts.push(even(64, -1.0, 1.0));
                cuts.push(even(64, -1.0, 1.0));
            }
            (false, Some(_)) => {
                // Between each value and the next; where those are too many, evenly spread.
                let places = range as usize;
                let n = places.min(MOST_CUTS);
                let between = |i: usize| {
                    let place = (2 * i + 1) * places / (2 * n);
                    ((place as f64 + 0.5) / range) as f32
                };
                cuts.push((0..n).map(between).collect());
            }
            (false, None) => {
                let output = |x: f64| ((scaled.part.of(x) - scaled.low) / range) as f32;
                cuts.push(of_values(quantiles, output));
            }
        }
    }
    with_flag(cuts, time.flag_missing)
}

/// Cuts that split the rows evenly, by the value of each row's category.
fn by_category(lookup: &Lookup, table: &CategoryTable) -> Vec<Vec<f32>> {
    let cuts = |output: usize| {
        let mut values: Vec<(f32, u64)> = table
            .categories()
            .map(|category| (lookup.get(category.key())[output], category.count()))
            .collect();
        values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let rows: u64 = values.iter().map(|(_, count)| count).sum();
        let (mut cuts, mut before, mut next) = (Vec::new(), 0u64, 1u64);
        for pair in values.windows(2) {
            before += pair[0].1;
            // The next of so many even shares is full: cut in the middle between this value and the next.
            if pair[0].0 < pair[1].0 && before * (MOST_CUTS as u64 + 1) >= next * rows {
                cuts.push(pair[0].0.midpoint(pair[1].0));
                next = before * (MOST_CUTS as u64 + 1) / rows.max(1) + 1;
            }
        }
        ascending(cuts)
    };
    (0..lookup.width).map(cuts).collect()
}
