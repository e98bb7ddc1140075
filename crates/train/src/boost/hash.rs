//! Random numbers as a pure function of the seed, the tree and the row, so that no order of work changes them.

pub(super) use tidegate_data::sketch::hash::mix;

/// What a random number is for; each purpose has its own stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Rounding = 1,
    Rows = 2,
    Columns = 3,
    Permutation = 4,
}

/// A number for each (seed, index, purpose), such as a tree's.
pub(super) fn key(seed: u64, index: u64, purpose: Purpose) -> u64 {
    mix(mix(seed ^ ((purpose as u64) << 56)).wrapping_add(index))
}

/// 32 random bits of a row: the 32-bit finaliser of MurmurHash3 (Appleby, public domain), which vectorises.
#[inline(always)]
pub(super) fn row_bits(key: u32, row: u32) -> u32 {
    let x = row.wrapping_mul(0x9E37_79B1) ^ key;
    let x = (x ^ (x >> 16)).wrapping_mul(0x85EB_CA6B);
    let x = (x ^ (x >> 13)).wrapping_mul(0xC2B2_AE35);
    x ^ (x >> 16)
}

/// The rows that a tree learns from.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowSample {
    key: u32,
    /// Of 2³².
    below: u64,
}

impl RowSample {
    pub(super) fn new(seed: u64, tree: usize, share: f64) -> RowSample {
        RowSample {
            key: key(seed, tree as u64, Purpose::Rows) as u32,
            below: (share.clamp(0.0, 1.0) * 4_294_967_296.0) as u64,
        }
    }

    pub(super) fn is_all(&self) -> bool {
        self.below >= 1 << 32
    }

    #[inline(always)]
    pub(super) fn contains(&self, row: u32) -> bool {
        u64::from(row_bits(self.key, row)) < self.below
    }
}

/// `share` of `n` numbers below it, at least one, ascending.
pub(super) fn sample_columns(seed: u64, tree: usize, n: usize, share: f64) -> Vec<usize> {
    let wanted = ((n as f64 * share).ceil() as usize).clamp(1, n);
    let mut columns: Vec<usize> = (0..n).collect();
    let key = key(seed, tree as u64, Purpose::Columns);
    for i in 0..wanted {
        let pick = i + (mix(key ^ i as u64) % (n - i) as u64) as usize;
        columns.swap(i, pick);
    }
    columns.truncate(wanted);
    columns.sort_unstable();
    columns
}
