//! Categories without a list: a hash chooses the column, and its sign.

use serde::{Deserialize, Serialize};

use super::Width;
use crate::sketch::hash::MISSING;

/// `x_j = ±1` with `j = hash mod 2^bits`, and the sign the highest bit of the hash.
///
/// Two categories in one column cannot be told apart; with signs their effects cancel on average, instead of
/// adding up. Needs no fitting and no memory, whatever the number of categories. Missing values are zero in all
/// columns.
///
/// ```
/// use tidegate_data::encode::Hashed;
/// use tidegate_data::sketch::hash::hash;
/// let hashed = Hashed { bits: 10, signed: true };
/// let (index, sign) = hashed.index(hash(b"Oslo")).unwrap();
/// assert!(index < 1024 && sign.abs() == 1.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hashed {
    /// 1 to 31.
    pub bits: u8,
    pub signed: bool,
}

impl Default for Hashed {
    fn default() -> Hashed {
        Hashed {
            bits: 18,
            signed: true,
        }
    }
}

impl Hashed {
    /// The column that is not zero, and its value.
    #[inline]
    pub fn index(&self, hash: u64) -> Option<(u32, f32)> {
        (hash != MISSING).then(|| self.place(hash))
    }

    #[inline]
    pub(super) fn place(&self, hash: u64) -> (u32, f32) {
        let index = hash as u32 & ((1 << self.bits) - 1);
        let negative = self.signed && hash >> 63 == 1;
        (index, if negative { -1.0 } else { 1.0 })
    }

    pub fn width(&self) -> Width {
        Width::sparse(1 << self.bits)
    }

    pub fn name(&self, column: &str, output: usize) -> String {
        format!("{column}#{output}")
    }
}
