//! A category as its place in an order.

use serde::{Deserialize, Serialize};

use super::category::{by_name, most_frequent_first};
use super::{Keys, Lookup, Width};
use crate::sketch::{Category, CategoryTable};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The most frequent first.
    #[default]
    Frequency,
    /// By the bytes of their names; those whose name was not kept come last.
    Name,
    /// By the mean of the target's first output, the lowest first. It uses the training rows' own targets.
    Target,
}

/// `x = place of the category`, from 0; −1 for a category that was never seen.
///
/// Missing values have a place among the others where they occurred in training, in the order of names the
/// last; else they are −1.
///
/// ```
/// use tidegate_data::encode::{Order, Ordinal};
/// use tidegate_data::sketch::{CategoryTable, Shape, hash::hash};
/// let mut table = CategoryTable::with_capacity_bytes(Shape::COUNT, 1 << 16);
/// for size in ["small", "large", "small"] {
///     table.add(hash(size.as_bytes()), || size.as_bytes(), 0, 0.0);
/// }
/// let ordinal = Ordinal::fit(&table, Order::Name);
/// assert_eq!([b"large", b"small", b"giant"].map(|size| ordinal.value(hash(size))), [0.0, 1.0, -1.0]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ordinal {
    pub order: Order,
    pub lookup: Lookup,
}

const UNSEEN: f32 = -1.0;

impl Ordinal {
    pub fn fit(table: &CategoryTable, order: Order) -> Ordinal {
        let missing = table.missing();
        let missing_occurs = missing.count() > 0;
        let mut categories = most_frequent_first(table);
        // Where missing values belong: before the categories for which this holds.
        let missing_first: &dyn Fn(&Category<'_>) -> bool = match order {
            Order::Frequency => &|other| other.count() < missing.count(),
            Order::Name => {
                categories.sort_by_key(by_name);
                &|_| false
            }
            Order::Target => {
                categories.sort_by(|a, b| {
                    mean(a)
                        .total_cmp(&mean(b))
                        .then_with(|| by_name(a).cmp(&by_name(b)))
                });
                &|other| mean(other) > mean(&missing)
            }
        };
        let missing_place = categories.partition_point(|other| !missing_first(other));
        let mut placed: Vec<(u64, f32)> = Vec::with_capacity(categories.len());
        for (i, category) in categories.iter().enumerate() {
            let moved = usize::from(missing_occurs && i >= missing_place);
            placed.push((category.key(), (i + moved) as f32));
        }
        placed.sort_unstable_by_key(|(key, _)| *key);
        Ordinal {
            order,
            lookup: Lookup {
                keys: Keys::new(placed.iter().map(|(key, _)| *key).collect(), table.shared_bits()),
                width: 1,
                values: placed.iter().map(|(_, place)| *place).collect(),
                missing: vec![if missing_occurs {
                    missing_place as f32
                } else {
                    UNSEEN
                }],
                unseen: vec![UNSEEN],
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
        format!("{column}~place")
    }

    pub fn bytes(&self) -> usize {
        self.lookup.bytes()
    }
}

fn mean(category: &Category<'_>) -> f64 {
    match category.count() {
        0 => 0.0,
        rows => category.sum(0) / rows as f64,
    }
}
