//! In how many rows each hashed token of a text column occurs.

use serde::{Deserialize, Serialize};

/// Document frequencies by the index that tokens are hashed to: 4 bytes for each of the 2^bits indices.
///
/// ```
/// use tidegate_data::sketch::Documents;
/// let mut documents = Documents::new(4);
/// documents.push([3, 5]);
/// documents.push([3]);
/// assert_eq!((documents.rows, documents.counts[3], documents.counts[5]), (2, 2, 1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Documents {
    /// All rows, those without a token among them.
    pub rows: u64,
    pub counts: Vec<u32>,
}

impl Documents {
    pub fn new(bits: u8) -> Documents {
        Documents {
            rows: 0,
            counts: vec![0; 1 << bits],
        }
    }

    /// What so many bits take: to be asked for before they are made.
    pub fn bytes_needed(bits: u8) -> u64 {
        4 << bits
    }

    /// Counts a row by its indices, each given once.
    #[inline]
    pub fn push(&mut self, indices: impl IntoIterator<Item = u32>) {
        self.rows += 1;
        for index in indices {
            let count = &mut self.counts[index as usize];
            *count = count.saturating_add(1);
        }
    }

    /// Adds what a later part of the data held, hashed to as many bits.
    pub fn merge(&mut self, later: &Documents) {
        assert_eq!(
            self.counts.len(),
            later.counts.len(),
            "one column has one number of bits"
        );
        self.rows += later.rows;
        for (mine, theirs) in self.counts.iter_mut().zip(&later.counts) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// `ln((1 + rows) / (1 + count)) + 1`: what a token weighs the more, the rarer it is.
    pub fn inverse_frequencies(&self) -> Vec<f32> {
        let rows = (1 + self.rows) as f64;
        let weight = |&count: &u32| ((rows / (1.0 + f64::from(count))).ln() + 1.0) as f32;
        self.counts.iter().map(weight).collect()
    }

    pub fn bytes(&self) -> usize {
        self.counts.capacity() * 4
    }
}
