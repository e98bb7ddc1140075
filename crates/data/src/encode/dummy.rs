//! A category as one of many columns of zeros, with a 1 in its own.

use serde::{Deserialize, Serialize};

use super::category::{display_name, most_frequent_first};
use super::{Keys, Width};
use crate::sketch::CategoryTable;
use crate::sketch::hash::MISSING;

/// Which categories get a column: those that pass all three caps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DummyOptions {
    /// The most categories with a column of their own.
    pub max: usize,
    /// The most frequent categories until they make up this share of the rows that have a value.
    pub share: f64,
    /// Only categories with at least so many rows.
    pub least: u64,
    /// No column for the most frequent category, so that the columns do not add up to a constant.
    pub drop_one: bool,
    /// A column for missing values, where there are any. Without it they are zero in all columns.
    pub flag_missing: bool,
}

impl Default for DummyOptions {
    fn default() -> DummyOptions {
        DummyOptions {
            max: 50,
            share: 1.0,
            least: 1,
            drop_one: false,
            flag_missing: true,
        }
    }
}

/// `xⱼ = 1` if the row's category is the j-th, else 0.
///
/// The columns are the kept categories from the most frequent on, ties by name; then "other", for categories
/// beyond the caps and for unseen ones, where the caps cut any off; then "missing". Where the caps cut nothing
/// off, a category that was never seen is zero in all columns.
///
/// ```
/// use tidegate_data::encode::{Dummy, DummyOptions};
/// use tidegate_data::sketch::{CategoryTable, Shape, hash::hash};
/// let mut table = CategoryTable::with_capacity_bytes(Shape::COUNT, 1 << 16);
/// for city in ["Oslo", "Rome", "Oslo", "Bern"] {
///     table.add(hash(city.as_bytes()), || city.as_bytes(), 0, 0.0);
/// }
/// let dummy = Dummy::fit(&table, &DummyOptions { least: 2, ..DummyOptions::default() });
/// assert_eq!(dummy.width().sparse, 2);
/// assert_eq!(dummy.index(hash(b"Oslo")), Some(0));
/// assert_eq!(dummy.index(hash(b"Lima")), Some(1));
/// assert_eq!(dummy.name("city", 1), "city=other");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dummy {
    keys: Keys,
    /// The place of each key among the names.
    places: Vec<u32>,
    /// The categories with a column of their own, the most frequent first, the dropped one among them.
    pub names: Vec<String>,
    pub other: bool,
    pub missing: bool,
    /// The first name has no column.
    pub dropped: bool,
    /// The columns are written out, zeros and all, for models that take no sparse ones.
    #[serde(default)]
    pub dense: bool,
}

impl Dummy {
    pub fn fit(table: &CategoryTable, options: &DummyOptions) -> Dummy {
        let rows = table.rows() - table.missing().count();
        let mut covered = 0;
        let kept: Vec<_> = most_frequent_first(table)
            .into_iter()
            .take(options.max)
            .take_while(|category| {
                let wanted = (covered as f64) < options.share * rows as f64;
                covered += category.count();
                wanted && category.count() >= options.least
            })
            .collect();
        let mut placed: Vec<(u64, u32)> = (0..)
            .zip(&kept)
            .map(|(i, category)| (category.key(), i))
            .collect();
        placed.sort_unstable();
        Dummy {
            keys: Keys::new(placed.iter().map(|(key, _)| *key).collect(), table.shared_bits()),
            places: placed.iter().map(|(_, place)| *place).collect(),
            names: kept.iter().map(display_name).collect(),
            other: kept.len() < table.len(),
            missing: options.flag_missing && table.missing().count() > 0,
            dropped: options.drop_one && !kept.is_empty(),
            dense: false,
        }
    }

    pub(crate) fn written_out(self) -> Dummy {
        Dummy { dense: true, ..self }
    }

    /// Writes the columns of the rows with these keys, `stride` apart.
    pub(crate) fn encode(&self, keys: &[u64], out: &mut [f32], stride: usize) {
        let n = self.n_columns();
        for (key, out) in keys.iter().zip(out.chunks_mut(stride)) {
            out[..n].fill(0.0);
            if let Some(place) = self.index(*key) {
                out[place as usize] = 1.0;
            }
        }
    }

    /// The column that is 1, if any is.
    #[inline]
    pub fn index(&self, hash: u64) -> Option<u32> {
        let place = match self.keys.find(hash) {
            _ if hash == MISSING => self
                .missing
                .then(|| self.names.len() as u32 + u32::from(self.other)),
            Some(place) => Some(self.places[place]),
            None => self.other.then_some(self.names.len() as u32),
        };
        // Without the first column all others move up, and the first place has none.
        place?.checked_sub(u32::from(self.dropped))
    }

    /// The categories of training, where all of them have a column.
    pub(crate) fn known(&self) -> Option<&Keys> {
        (!self.other).then_some(&self.keys)
    }

    pub fn width(&self) -> Width {
        match self.dense {
            true => Width::dense(self.n_columns()),
            false => Width::sparse(self.n_columns()),
        }
    }

    fn n_columns(&self) -> usize {
        let extra = usize::from(self.other) + usize::from(self.missing);
        self.names.len() + extra - usize::from(self.dropped)
    }

    pub fn name(&self, column: &str, output: usize) -> String {
        let place = output + usize::from(self.dropped);
        let category = match self.names.get(place) {
            Some(name) => name.as_str(),
            None if self.other && place == self.names.len() => "other",
            None => "missing",
        };
        format!("{column}={category}")
    }

    pub fn bytes(&self) -> usize {
        let names: usize = self
            .names
            .iter()
            .map(|name| name.capacity() + size_of::<String>())
            .sum();
        self.keys.bytes() + self.places.capacity() * 4 + names
    }
}
