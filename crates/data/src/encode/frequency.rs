//! A category as how often it occurs.

use serde::{Deserialize, Serialize};

use super::{Keys, Lookup, Width};
use crate::sketch::{Category, CategoryTable};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// `n / all rows`
    #[default]
    Share,
    /// `n`
    Count,
    /// `ln(1 + n)`
    Logarithm,
}

/// `x = n / all rows` of the category, or its count, or the logarithm of one more; 0 for one never seen.
/// Missing values are counted as a category of their own.
///
/// ```
/// use tidegate_data::encode::{Frequency, Measure};
/// use tidegate_data::sketch::{CategoryTable, Shape, hash::hash};
/// let mut table = CategoryTable::with_capacity_bytes(Shape::COUNT, 1 << 16);
/// for city in ["Oslo", "Rome", "Oslo", "Oslo"] {
///     table.add(hash(city.as_bytes()), || city.as_bytes(), 0, 0.0);
/// }
/// let frequency = Frequency::fit(&table, Measure::Share);
/// assert_eq!([b"Oslo", b"Rome", b"Lima"].map(|city| frequency.value(hash(city))), [0.75, 0.25, 0.0]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frequency {
    pub measure: Measure,
    pub lookup: Lookup,
}

impl Frequency {
    pub fn fit(table: &CategoryTable, measure: Measure) -> Frequency {
        let rows = table.rows().max(1) as f64;
        let value = |category: &Category<'_>| {
            let count = category.count() as f64;
            let value = match measure {
                Measure::Share => count / rows,
                Measure::Count => count,
                Measure::Logarithm => count.ln_1p(),
            };
            value as f32
        };
        let mut valued: Vec<(u64, f32)> = table
            .categories()
            .map(|category| (category.key(), value(&category)))
            .collect();
        valued.sort_unstable_by_key(|(key, _)| *key);
        Frequency {
            measure,
            lookup: Lookup {
                keys: Keys::new(valued.iter().map(|(key, _)| *key).collect(), table.shared_bits()),
                width: 1,
                values: valued.iter().map(|(_, value)| *value).collect(),
                missing: vec![value(&table.missing())],
                unseen: vec![0.0],
            },
        }
    }

    #[inline]
    pub fn value(&self, hash: u64) -> f32 {
        self.lookup.get(hash)[0]
    }

    /// Writes the output of each row, rows being `stride` apart.
    pub fn encode(&self, hashes: &[u64], out: &mut [f32], stride: usize) {
        self.lookup.encode(hashes, out, stride);
    }

    pub fn width(&self) -> Width {
        Width::dense(1)
    }

    pub fn name(&self, column: &str, _output: usize) -> String {
        format!("{column}~frequency")
    }

    pub fn bytes(&self) -> usize {
        self.lookup.bytes()
    }
}
