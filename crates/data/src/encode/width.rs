//! How many outputs a column has, by kind.

use serde::{Deserialize, Serialize};

/// Dense outputs have a value in every row; of the sparse ones a row names those that are not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Width {
    pub dense: usize,
    pub sparse: usize,
}

impl Width {
    pub fn dense(dense: usize) -> Width {
        Width { dense, sparse: 0 }
    }

    pub fn sparse(sparse: usize) -> Width {
        Width { dense: 0, sparse }
    }

    /// Values in all.
    pub fn total(&self) -> usize {
        self.dense + self.sparse
    }
}
