//! Which rows of a source are used at all: those that fulfil a condition, or a sample of them.
//!
//! A [`Condition`] is written as in SQL and sees a row's values before they are encoded; a [`Sample`] keeps rows by
//! a hash of their place, the same rows in every epoch, for any number of threads and under any budget.

mod bind;
mod condition;
mod parse;
mod sample;
#[cfg(test)]
mod tests;

pub(crate) use bind::Held;
pub use condition::Condition;
pub use sample::{Ranked, Ranking, Sample, SampleSize};

use serde::{Deserialize, Serialize};

use crate::chunk::{Chunk, Wanted};

/// What a row has to be to be used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    pub condition: Option<Condition>,
    pub sample: Option<Sample>,
}

impl Filter {
    /// Whether every row is used.
    pub fn is_none(&self) -> bool {
        self.condition.is_none() && self.sample.is_none()
    }

    /// The columns that it needs, and how they are best read.
    pub fn columns(&self) -> Vec<Wanted> {
        self.condition
            .as_ref()
            .map(Condition::columns)
            .unwrap_or_default()
    }

    /// Adds the columns that it needs to those wanted already: one that is read for something else serves as well.
    pub(crate) fn add_columns(&self, wanted: &mut Vec<Wanted>) {
        for column in self.columns() {
            if !wanted.iter().any(|known| known.name == column.name) {
                wanted.push(column);
            }
        }
    }

    /// Calls `take` with each row of `chunk` that is used, in order; `key` tells a row from all others by its line.
    pub fn select(&self, chunk: &Chunk, key: impl Fn(u64) -> u64, mut take: impl FnMut(usize)) {
        let mut sampled = |row: usize| {
            let kept = |sample: &Sample| sample.contains(key(chunk.lines[row]));
            if self.sample.as_ref().is_none_or(kept) {
                take(row);
            }
        };
        match &self.condition {
            Some(condition) => condition.select(chunk, sampled),
            None => (0..chunk.n_rows()).for_each(&mut sampled),
        }
    }
}
