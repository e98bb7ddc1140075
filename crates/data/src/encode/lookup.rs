//! From a category's hash to its numbers: sorted keys and flat values, as they are stored with a model.

use serde::{Deserialize, Serialize};

use crate::sketch::hash::MISSING;

/// Rows looked up together, so that their cache misses overlap.
const TOGETHER: usize = 32;

/// Keys in order, found through a directory of their highest bits: about one key to a place, so one look there
/// and one at the key, for 12 bytes a key.
///
/// ```
/// use tidegate_data::encode::Keys;
/// let keys = Keys::new(vec![7 << 60, 3 << 60], 0);
/// assert_eq!(keys.find(3 << 60), Some(0));
/// assert_eq!(keys.find(4 << 60), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredKeys", into = "StoredKeys")]
pub struct Keys {
    shared_bits: u32,
    keys: Vec<u64>,
    /// Where the keys of each place of the directory begin, and their end.
    starts: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
struct StoredKeys {
    shared_bits: u32,
    keys: Vec<u64>,
}

impl From<StoredKeys> for Keys {
    fn from(stored: StoredKeys) -> Keys {
        Keys::new(stored.keys, stored.shared_bits)
    }
}

impl From<Keys> for StoredKeys {
    fn from(keys: Keys) -> StoredKeys {
        StoredKeys {
            shared_bits: keys.shared_bits,
            keys: keys.keys,
        }
    }
}

impl Keys {
    /// Keys without their `shared_bits` lowest bits, brought into order.
    pub fn new(mut keys: Vec<u64>, shared_bits: u32) -> Keys {
        keys.sort_unstable();
        keys.dedup();
        let bits = directory_bits(keys.len());
        let mut starts = vec![0; (1 << bits) + 1];
        for key in &keys {
            starts[(key >> (64 - bits)) as usize + 1] += 1;
        }
        let mut before = 0;
        for start in &mut starts {
            before += *start;
            *start = before;
        }
        Keys {
            shared_bits: shared_bits.min(63),
            keys,
            starts,
        }
    }

    /// The place of a hash among the keys.
    #[inline]
    pub fn find(&self, hash: u64) -> Option<usize> {
        let key = hash >> self.shared_bits << self.shared_bits;
        let place = (key >> (64 - self.starts.len().ilog2())) as usize;
        let (start, end) = (self.starts[place] as usize, self.starts[place + 1] as usize);
        let found = self.keys[start..end].iter().position(|&other| other == key);
        found.map(|at| start + at)
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// In order.
    pub fn as_slice(&self) -> &[u64] {
        &self.keys
    }

    pub fn shared_bits(&self) -> u32 {
        self.shared_bits
    }

    pub fn bytes(&self) -> usize {
        self.keys.capacity() * 8 + self.starts.capacity() * 4
    }
}

/// Twice as many places as keys at most, and two at least.
fn directory_bits(keys: usize) -> u32 {
    keys.next_power_of_two().ilog2().clamp(1, 28)
}

/// The numbers of every category, `width` for each, and those of missing and unseen ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lookup {
    pub keys: Keys,
    pub width: usize,
    /// `width` for each key, in the order of the keys.
    pub values: Vec<f32>,
    pub missing: Vec<f32>,
    pub unseen: Vec<f32>,
}

impl Lookup {
    /// The numbers of a category.
    #[inline]
    pub fn get(&self, hash: u64) -> &[f32] {
        self.at(hash, self.keys.find(hash))
    }

    #[inline]
    fn at(&self, hash: u64, found: Option<usize>) -> &[f32] {
        match found {
            _ if hash == MISSING => &self.missing,
            Some(place) => &self.values[place * self.width..][..self.width],
            None => &self.unseen,
        }
    }

    /// Calls `visit` with the number of each row and the numbers of its category, in order.
    #[inline]
    pub fn each(&self, hashes: &[u64], mut visit: impl FnMut(usize, &[f32])) {
        let mut found = [None; TOGETHER];
        for (chunk, hashes) in hashes.chunks(TOGETHER).enumerate() {
            for (found, &hash) in found.iter_mut().zip(hashes) {
                *found = self.keys.find(hash);
            }
            for (i, (&hash, &found)) in hashes.iter().zip(&found).enumerate() {
                visit(chunk * TOGETHER + i, self.at(hash, found));
            }
        }
    }

    /// Writes the numbers of each row, rows being `stride` apart.
    pub fn encode(&self, hashes: &[u64], out: &mut [f32], stride: usize) {
        self.each(hashes, |row, values| {
            out[row * stride..][..values.len()].copy_from_slice(values);
        });
    }

    pub fn bytes(&self) -> usize {
        self.keys.bytes() + (self.values.capacity() + self.missing.capacity() + self.unseen.capacity()) * 4
    }
}
