//! Sums of slopes and curvatures by bin: packed ones that a thread adds to, and whole ones for a node.

use super::FeatureBins;
use std::sync::Mutex;

/// Where the bins of a tree's features lie in its histograms.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) columns: Vec<Column>,
    pub(super) n_bins: usize,
    /// Every feature is a column, in order.
    whole: bool,
    n_features: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) feature: usize,
    pub(super) offset: usize,
    pub(super) n_bins: usize,
    /// Its bins are categories, without an order of their own.
    pub(super) categorical: bool,
}

/// Entries after the last bin, so that no byte taken for a bin leads outside.
const PADDING: usize = 256;

/// Entries of a packed histogram of `n_bins` bins.
pub(super) fn packed_len(n_bins: usize) -> usize {
    n_bins + PADDING
}

impl Layout {
    /// `columns` ascend.
    pub(super) fn new(features: &[FeatureBins], columns: &[usize]) -> Layout {
        let mut total = 0;
        let place = |&feature: &usize| {
            let offset = total;
            let n_bins = features[feature].n_bins();
            total += n_bins;
            Column {
                feature,
                offset,
                n_bins,
                categorical: features[feature].categorical,
            }
        };
        let columns: Vec<Column> = columns.iter().map(place).collect();
        Layout {
            whole: columns.len() == features.len(),
            columns,
            n_bins: total,
            n_features: features.len(),
        }
    }
}

/// A sum of slopes and curvatures, in their integer units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) g: i64,
    pub(super) h: i64,
}

impl std::ops::Add for Sum {
    type Output = Sum;
    #[inline(always)]
    fn add(self, other: Sum) -> Sum {
        Sum {
            g: self.g + other.g,
            h: self.h + other.h,
        }
    }
}

impl std::ops::Sub for Sum {
    type Output = Sum;
    #[inline(always)]
    fn sub(self, other: Sum) -> Sum {
        Sum {
            g: self.g - other.g,
            h: self.h - other.h,
        }
    }
}

/// The histograms of the nodes being looked at. A slot belongs to a node; threads add to it now and then.
#[derive(Debug)]
pub(super) struct Histograms {
    pub(super) slots: Vec<Mutex<Vec<Sum>>>,
}

impl Histograms {
    pub(super) fn new(n_slots: usize, n_bins: usize) -> Histograms {
        let slot = || Mutex::new(vec![Sum::default(); n_bins]);
        Histograms {
            slots: (0..n_slots).map(|_| slot()).collect(),
        }
    }

    pub(super) fn bytes(n_slots: usize, n_bins: usize) -> u64 {
        (n_slots * n_bins * size_of::<Sum>()) as u64
    }

    pub(super) fn clear(&mut self, slot: usize) {
        self.sums_mut(slot).fill(Sum::default());
    }

    pub(super) fn sums_mut(&mut self, slot: usize) -> &mut Vec<Sum> {
        self.slots[slot]
            .get_mut()
            .expect("no thread panicked while adding")
    }

    /// What is left of the parent in slot `large` after taking away the child in slot `small`.
    pub(super) fn subtract(&mut self, large: usize, small: usize) {
        let small_sums = std::mem::take(self.sums_mut(small));
        for (sum, part) in self.sums_mut(large).iter_mut().zip(&small_sums) {
            *sum = *sum - *part;
        }
        *self.sums_mut(small) = small_sums;
    }
}

/// A thread's packed histograms: a slope in the high bits and a curvature in the low ones of each entry, so
/// that one addition does both. They are emptied into whole sums before 65,536 rows could overflow them.
#[derive(Debug)]
pub(super) struct Packed {
    sums: Vec<i64>,
    /// Rows in each since it was last emptied.
    n_rows: Vec<usize>,
    len: usize,
}

/// Rows that a packed sum has room for.
const PACKED_ROWS: usize = super::MOST_BLOCK_ROWS;

impl Packed {
    pub(super) fn new(n_histograms: usize, n_bins: usize) -> Packed {
        let len = packed_len(n_bins);
        Packed {
            sums: vec![0; n_histograms * len],
            n_rows: vec![0; n_histograms],
            len,
        }
    }

    pub(super) fn bytes(n_histograms: usize, n_bins: usize) -> u64 {
        (n_histograms * packed_len(n_bins) * size_of::<i64>()) as u64
    }

    /// Adds `rows` of a block to histogram `index`, which stands for `slot`.
    pub(super) fn add(&mut self, index: usize, slot: &Mutex<Vec<Sum>>, rows: &Rows<'_>, layout: &Layout) {
        if self.n_rows[index] + rows.order.len() > PACKED_ROWS {
            self.empty(index, slot, rows.hessian_bits, layout);
        }
        self.n_rows[index] += rows.order.len();
        let sums = &mut self.sums[index * self.len..(index + 1) * self.len];
        accumulate(sums, rows, layout);
    }

    /// Moves histogram `index` over to the sums of its node.
    pub(super) fn empty(&mut self, index: usize, slot: &Mutex<Vec<Sum>>, hessian_bits: u32, layout: &Layout) {
        if std::mem::take(&mut self.n_rows[index]) == 0 {
            return;
        }
        let packed = &mut self.sums[index * self.len..(index + 1) * self.len];
        let mask = (1i64 << hessian_bits) - 1;
        let mut sums = slot.lock().expect("no thread panicked while adding");
        for (sum, packed) in sums.iter_mut().zip(&packed[..layout.n_bins]) {
            // The curvatures are never negative, so the slopes stand unharmed above them.
            sum.g += packed >> hessian_bits;
            sum.h += packed & mask;
        }
        packed.fill(0);
    }
}

/// Rows of a node within a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'b> {
    pub(super) order: &'b [u16],
    pub(super) bins: &'b [u8],
    pub(super) gradients: &'b [u32],
    pub(super) hessian_bits: u32,
}

fn accumulate(sums: &mut [i64], rows: &Rows<'_>, layout: &Layout) {
    match (rows.hessian_bits, layout.whole) {
        (17, true) => accumulate_as::<17, true>(sums, rows, layout),
        (17, false) => accumulate_as::<17, false>(sums, rows, layout),
        (_, true) => accumulate_as::<32, true>(sums, rows, layout),
        (_, false) => accumulate_as::<32, false>(sums, rows, layout),
    }
}

/// Rows are fetched so many ahead of their use.
const AHEAD: usize = 16;
/// Rows that are added at a time: a feature's place is then looked up once for all of them.
const TOGETHER: usize = 4;

fn accumulate_as<const HESSIAN_BITS: u32, const WHOLE: bool>(
    sums: &mut [i64],
    rows: &Rows<'_>,
    layout: &Layout,
) {
    let n_features = layout.n_features;
    let n_rows = rows.gradients.len();
    assert_eq!(rows.bins.len(), n_rows * n_features);
    // The largest, rather than `all`, because that vectorises.
    let last = rows.order.iter().copied().max();
    assert!(last.is_none_or(|row| usize::from(row) < n_rows));
    assert!(sums.len() >= packed_len(layout.n_bins));
    let known = |column: &Column| column.offset <= layout.n_bins && column.feature < n_features;
    assert!(layout.columns.iter().all(known) && (!WHOLE || layout.columns.len() == n_features));
    let (groups, rest) = rows.order.as_chunks::<TOGETHER>();
    for (i, group) in groups.iter().enumerate() {
        if let Some(ahead) = groups.get(i + AHEAD / TOGETHER) {
            for row in ahead {
                prefetch(rows.bins, usize::from(*row) * n_features);
            }
        }
        // SAFETY: rows, columns and sums were checked above as the function asks.
        unsafe { add_rows::<HESSIAN_BITS, WHOLE, TOGETHER>(sums, group, rows, layout) };
    }
    for row in rest {
        // SAFETY: as above.
        unsafe { add_rows::<HESSIAN_BITS, WHOLE, 1>(sums, &[*row], rows, layout) };
    }
}

/// # Safety
///
/// Every row of the group has a gradient and as many bins as there are features; every column's feature is one
/// of those (with `WHOLE`, columns and features are the same), and its offset has 256 entries of `sums` after it.
#[inline(always)]
unsafe fn add_rows<const HESSIAN_BITS: u32, const WHOLE: bool, const N: usize>(
    sums: &mut [i64],
    group: &[u16; N],
    rows: &Rows<'_>,
    layout: &Layout,
) {
    // SAFETY: promised by the caller for every row.
    let value =
        |row: &u16| unpacked::<HESSIAN_BITS>(unsafe { *rows.gradients.get_unchecked(usize::from(*row)) });
    let values: [i64; N] = std::array::from_fn(|k| value(&group[k]));
    let starts: [usize; N] = std::array::from_fn(|k| usize::from(group[k]) * layout.n_features);
    for (i, column) in layout.columns.iter().enumerate() {
        let feature = if WHOLE { i } else { column.feature };
        // SAFETY: promised by the caller for every column and row; a byte is at most 255.
        unsafe {
            let sums = sums.get_unchecked_mut(column.offset..column.offset + PADDING);
            for k in 0..N {
                let bin = *rows.bins.get_unchecked(starts[k] + feature);
                *sums.get_unchecked_mut(usize::from(bin)) += values[k];
            }
        }
    }
}

#[inline(always)]
fn unpacked<const HESSIAN_BITS: u32>(packed: u32) -> i64 {
    if HESSIAN_BITS == 17 {
        (i64::from(packed as i32) << 17) + 1
    } else {
        (i64::from(packed as i32 >> 16) << 32) + i64::from(packed & 0xFFFF)
    }
}

#[inline(always)]
pub(super) fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(at).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at);
}
