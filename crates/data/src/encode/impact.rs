//! A category as the mean of the target among its rows, drawn towards the mean of all.

use serde::{Deserialize, Serialize};

use super::{Keys, Lookup, Width};
use crate::sketch::{Category, CategoryTable};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImpactOptions {
    /// `m`: how many rows of the overall mean every category starts with.
    pub smoothing: f64,
    /// Training rows are dealt out to so many folds.
    pub folds: u8,
}

impl Default for ImpactOptions {
    fn default() -> ImpactOptions {
        ImpactOptions {
            smoothing: 10.0,
            folds: 5,
        }
    }
}

/// `(n · mean of the category + m · mean) / (n + m)` over all training rows: what new rows get.
///
/// A class target has an output for every class but the first. A category that was never seen gets the mean;
/// missing values are a category of their own where they occurred in training, else they get the mean too.
/// Training rows must not see their own target: they are encoded with [`ImpactFolds`].
///
/// ```
/// use tidegate_data::encode::{Impact, ImpactOptions};
/// use tidegate_data::sketch::{CategoryTable, Shape, Targets, hash::hash};
/// let shape = Shape { folds: 2, targets: Targets::Number };
/// let mut table = CategoryTable::with_capacity_bytes(shape, 1 << 16);
/// for (row, (city, price)) in [("Oslo", 4.0), ("Oslo", 6.0), ("Rome", 2.0)].into_iter().enumerate() {
///     table.add(hash(city.as_bytes()), || city.as_bytes(), row as u8 % 2, price);
/// }
/// let impact = Impact::fit(&table, &ImpactOptions { smoothing: 1.0, folds: 2 });
/// assert_eq!(impact.get(hash(b"Oslo")), [(10.0 + 4.0) / 3.0]);
/// assert_eq!(impact.get(hash(b"Lima")), [4.0]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Impact {
    pub lookup: Lookup,
}

impl Impact {
    pub fn fit(table: &CategoryTable, options: &ImpactOptions) -> Impact {
        let outputs = table.shape().targets.outputs();
        let totals = Totals::of(table);
        let encode = |category: Option<&Category<'_>>, values: &mut Vec<f32>| {
            for output in 0..outputs {
                let (all_rows, all_sum) = totals.whole(output);
                let rows = category.map_or(0.0, |category| category.count() as f64);
                let sum = category.map_or(0.0, |category| category.sum(output));
                values.push(smoothed(
                    rows,
                    sum,
                    all_sum / all_rows.max(1.0),
                    options.smoothing,
                ));
            }
        };
        Impact {
            lookup: lookup(table, outputs, encode),
        }
    }

    /// The outputs of a category.
    #[inline]
    pub fn get(&self, hash: u64) -> &[f32] {
        self.lookup.get(hash)
    }

    /// Writes the outputs of each row, rows being `stride` apart.
    pub fn encode(&self, hashes: &[u64], out: &mut [f32], stride: usize) {
        self.lookup.encode(hashes, out, stride);
    }

    pub fn width(&self) -> Width {
        Width::dense(self.lookup.width)
    }

    pub fn name(&self, column: &str, output: usize) -> String {
        match self.lookup.width {
            1 => format!("{column}~target"),
            _ => format!("{column}~target{}", output + 1),
        }
    }

    pub fn bytes(&self) -> usize {
        self.lookup.bytes()
    }
}

/// The same for training rows: a row in fold `f` gets what the rows of all other folds tell, their mean
/// included, so that its own target has no part in its encoding.
///
/// Takes 12 + 4 · folds · outputs bytes a category, and is only needed while training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImpactFolds {
    /// The outputs of fold 0, then those of fold 1, …
    pub lookup: Lookup,
    pub outputs: usize,
}

impl ImpactFolds {
    /// The folds are those of the table.
    pub fn fit(table: &CategoryTable, options: &ImpactOptions) -> ImpactFolds {
        let outputs = table.shape().targets.outputs();
        let folds = usize::from(table.shape().folds);
        let totals = Totals::of(table);
        let encode = |category: Option<&Category<'_>>, values: &mut Vec<f32>| {
            for fold in 0..folds {
                let rows = category.map_or(0, |category| category.count() - category.fold_count(fold));
                for output in 0..outputs {
                    let (all_rows, all_sum) = totals.without(fold, output);
                    // Sums of the other folds, never the difference to all: that would bring the own fold's
                    // rounding in.
                    let others = (0..folds).filter(|&other| other != fold);
                    let sum = category.map_or(0.0, |category| {
                        others.map(|other| category.fold_sum(other, output)).sum()
                    });
                    let mean = all_sum / all_rows.max(1.0);
                    values.push(smoothed(rows as f64, sum, mean, options.smoothing));
                }
            }
        };
        ImpactFolds {
            lookup: lookup(table, outputs * folds, encode),
            outputs,
        }
    }

    pub fn n_folds(&self) -> u8 {
        (self.lookup.width / self.outputs.max(1)) as u8
    }

    /// The outputs of a category for a training row of this fold.
    #[inline]
    pub fn get(&self, hash: u64, fold: u8) -> &[f32] {
        &self.lookup.get(hash)[usize::from(fold) * self.outputs..][..self.outputs]
    }

    /// Writes the outputs of each training row, rows being `stride` apart.
    pub fn encode(&self, hashes: &[u64], folds: &[u8], out: &mut [f32], stride: usize) {
        self.lookup.each(hashes, |row, values| {
            let values = &values[usize::from(folds[row]) * self.outputs..][..self.outputs];
            out[row * stride..][..self.outputs].copy_from_slice(values);
        });
    }

    pub fn bytes(&self) -> usize {
        self.lookup.bytes()
    }
}

/// Without rows and without smoothing there is only the mean to go by.
fn smoothed(rows: f64, sum: f64, mean: f64, smoothing: f64) -> f32 {
    match rows + smoothing > 0.0 {
        true => ((sum + smoothing * mean) / (rows + smoothing)) as f32,
        false => mean as f32,
    }
}

fn lookup(
    table: &CategoryTable,
    width: usize,
    encode: impl Fn(Option<&Category<'_>>, &mut Vec<f32>),
) -> Lookup {
    let mut order: Vec<Category<'_>> = table.categories().collect();
    order.sort_unstable_by_key(Category::key);
    let mut values = Vec::with_capacity(order.len() * width);
    order
        .iter()
        .for_each(|category| encode(Some(category), &mut values));
    let (mut missing, mut unseen) = (Vec::new(), Vec::new());
    encode(Some(&table.missing()), &mut missing);
    encode(None, &mut unseen);
    Lookup {
        keys: Keys::new(order.iter().map(Category::key).collect(), table.shared_bits()),
        width,
        values,
        missing,
        unseen,
    }
}

/// Rows and sums over all categories, in each fold.
struct Totals {
    rows: Vec<u64>,
    /// By fold, then output.
    sums: Vec<Vec<f64>>,
}

impl Totals {
    fn of(table: &CategoryTable) -> Totals {
        let shape = table.shape();
        let folds = usize::from(shape.folds);
        let mut rows = vec![0; folds];
        let mut sums = vec![vec![0.0; shape.targets.outputs()]; folds];
        for category in table.categories().chain([table.missing()]) {
            for fold in 0..folds {
                rows[fold] += category.fold_count(fold);
                for (output, sum) in sums[fold].iter_mut().enumerate() {
                    *sum += category.fold_sum(fold, output);
                }
            }
        }
        Totals { rows, sums }
    }

    fn whole(&self, output: usize) -> (f64, f64) {
        self.without(usize::MAX, output)
    }

    fn without(&self, fold: usize, output: usize) -> (f64, f64) {
        let others = || (0..self.rows.len()).filter(|&other| other != fold);
        let rows: u64 = others().map(|other| self.rows[other]).sum();
        (rows as f64, others().map(|other| self.sums[other][output]).sum())
    }
}
