//! Moving the rows of a block along the tree: to the children of a split, and to the values of the leaves.

use super::histogram::prefetch;
use super::split::Test;
use super::state::BlockState;

/// A split to carry out: the rows of `node` go to `left` and `right`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Applied {
    pub(super) node: usize,
    pub(super) left: usize,
    pub(super) right: usize,
    pub(super) test: Test,
}

/// What the rows of a node add to their margins at the end of a tree.
#[derive(Debug, Clone, Copy)]
pub(super) enum Leaf {
    Whole {
        node: usize,
        value: f32,
    },
    /// A split that was never carried out, because nothing came after it.
    Split {
        node: usize,
        test: Test,
        values: [f32; 2],
    },
}

/// Rows are fetched so many ahead of their use.
const AHEAD: usize = 32;

/// Groups the rows of split nodes by child, in place, keeping their order. `spare` has room for a block.
pub(super) fn apply(
    splits: &[Applied],
    bins: &[u8],
    n_features: usize,
    state: &mut BlockState<'_>,
    spare: &mut [u16],
) {
    for split in splits {
        let [start, end] = state.ranges[split.node];
        let order = &mut state.order[start as usize..end as usize];
        let test = split.test;
        let n_left = match test.set {
            None => divide(order, spare, bins, n_features, test.feature, |bin| {
                test.is_below(bin)
            }),
            Some(set) => divide(order, spare, bins, n_features, test.feature, |bin| {
                set.contains(bin)
            }),
        };
        let middle = start + n_left as u32;
        state.ranges[split.left] = [start, middle];
        state.ranges[split.right] = [middle, end];
    }
}

/// Puts the rows that go left first; returns how many there are.
#[inline(always)]
fn divide(
    order: &mut [u16],
    spare: &mut [u16],
    bins: &[u8],
    n_features: usize,
    feature: u32,
    goes_left: impl Fn(u8) -> bool,
) -> usize {
    let feature = feature as usize;
    check(order, bins, n_features, feature);
    assert!(spare.len() >= order.len());
    let (mut n_left, mut n_right) = (0, 0);
    for i in 0..order.len() {
        if let Some(&ahead) = order.get(i + AHEAD) {
            prefetch(bins, usize::from(ahead) * n_features + feature);
        }
        // SAFETY: `i` is below the length of the order. Every row was checked to have its bins. Both counts are
        // at most `i`, so below the lengths of order and spare, and at or below what has been read.
        unsafe {
            let row = *order.get_unchecked(i);
            let goes_left = goes_left(*bins.get_unchecked(usize::from(row) * n_features + feature));
            *order.get_unchecked_mut(n_left) = row;
            *spare.get_unchecked_mut(n_right) = row;
            n_left += usize::from(goes_left);
            n_right += usize::from(!goes_left);
        }
    }
    order[n_left..].copy_from_slice(&spare[..n_right]);
    n_left
}

/// Adds the values of the leaves to the margins of the rows in the order.
pub(super) fn add_values(
    leaves: &[Leaf],
    bins: &[u8],
    n_features: usize,
    class: usize,
    state: &mut BlockState<'_>,
) {
    for leaf in leaves {
        let node = match leaf {
            Leaf::Whole { node, .. } | Leaf::Split { node, .. } => *node,
        };
        let [start, end] = state.ranges[node];
        let rows = &state.order[start as usize..end as usize];
        let margins = &mut state.margins[class * state.n_rows..(class + 1) * state.n_rows];
        match *leaf {
            Leaf::Whole { value, .. } => {
                for &row in rows {
                    margins[usize::from(row)] += value;
                }
            }
            Leaf::Split { test, values, .. } => {
                let feature = test.feature as usize;
                check(rows, bins, n_features, feature);
                for (i, &row) in rows.iter().enumerate() {
                    if let Some(&ahead) = rows.get(i + AHEAD) {
                        prefetch(bins, usize::from(ahead) * n_features + feature);
                    }
                    let row = usize::from(row);
                    // SAFETY: every row was checked to have its bins.
                    let bin = unsafe { *bins.get_unchecked(row * n_features + feature) };
                    let goes_left = test.goes_left(bin);
                    margins[row] += values[usize::from(!goes_left)];
                }
            }
        }
    }
}

/// Every row of the order has its bins, and the feature is one of them.
fn check(order: &[u16], bins: &[u8], n_features: usize, feature: usize) {
    let last = order.iter().copied().max().unwrap_or(0);
    let fits = (usize::from(last) + 1) * n_features <= bins.len();
    assert!(order.is_empty() || (fits && feature < n_features));
}
