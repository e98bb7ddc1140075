//! What a training will hold, computed before it holds it.

use tidegate_data::direct::READERS;
use tidegate_data::pack::WRITE_BEHIND_BYTES;
use tidegate_data::target::Task;

use super::grow::{max_histograms, max_nodes};
use super::histogram::{Histograms, Packed};
use super::objective::Objective;
use super::options::Options;
use super::rows::{BLOCK_ROWS, rows_bytes};
use super::state::BlockState;
use crate::{Error, Evaluator, Result};

/// What is to be trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub n_rows: usize,
    pub n_features: usize,
    /// The bins of all features together.
    pub n_bins: usize,
    /// Rows of a block; the last one may have fewer.
    pub block_rows: usize,
    /// Bytes of rows that may be in memory while they are read, when other things are there than while trees grow.
    pub rows_at_most: u64,
}

impl Shape {
    /// As long as the bins are not known, every feature is taken to have them all.
    pub fn new(n_rows: usize, n_features: usize) -> Shape {
        Shape {
            n_rows,
            n_features,
            n_bins: 256 * n_features,
            block_rows: BLOCK_ROWS,
            rows_at_most: u64::MAX,
        }
    }

    pub fn n_blocks(&self) -> usize {
        self.n_rows.div_ceil(self.block_rows)
    }

    /// Rows of the largest block.
    pub(super) fn largest_block(&self) -> usize {
        self.block_rows.min(self.n_rows)
    }
}

/// Bytes by holder, and what they allow. Whatever it allows, the model is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub shape: Shape,
    pub threads: usize,
    pub holders: Vec<(String, u64)>,
    pub budget: u64,
    /// So many blocks of rows stay in memory, the first ones; the others are read in every pass.
    pub resident_blocks: usize,
    /// So many blocks have their state in memory, the first ones; the others in a scratch file.
    pub resident_states: usize,
    /// Nodes whose histograms are kept at a time, and those that a thread adds to in a pass.
    pub histograms: usize,
    pub packed: usize,
}

/// Bytes that are read from disk in every pass, each beside all there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streamed {
    pub rows: u64,
    pub all_rows: u64,
    pub state: u64,
    pub all_state: u64,
}

/// The holder of the rows, which belongs to whoever makes the [`Blocks`](super::Blocks).
pub const ROWS: &str = "rows";
pub(super) const BUFFERS: &str = "block buffers";
pub(super) const PAGES: &str = "file pages";
pub(super) const STATE: &str = "row state";
pub(super) const HISTOGRAMS: &str = "histograms";
/// The holder of the trees.
pub const TREES: &str = "trees";
pub(super) const EVALUATION: &str = "evaluation";

impl Plan {
    pub fn total(&self) -> u64 {
        self.holders.iter().map(|(_, bytes)| bytes).sum()
    }

    /// What all rows would take in memory.
    pub fn bytes_of_all_rows(&self) -> u64 {
        rows_bytes(self.shape.n_rows, self.shape.n_features)
    }

    /// What the largest block of rows takes.
    pub fn block_bytes(&self) -> u64 {
        rows_bytes(self.shape.largest_block(), self.shape.n_features)
    }

    /// What is not in memory, of the rows and of their state.
    pub fn streamed(&self, options: &Options) -> Streamed {
        let state = |n_rows: usize| BlockState::bytes(n_rows, options.objective.n_outputs(), 0);
        let resident = (self.resident_states * self.shape.block_rows).min(self.shape.n_rows);
        Streamed {
            rows: self.bytes_of_all_rows().saturating_sub(self.bytes(ROWS)),
            all_rows: self.bytes_of_all_rows(),
            state: state(self.shape.n_rows) - state(resident),
            all_state: state(self.shape.n_rows),
        }
    }

    /// What a holder is planned to take.
    pub fn bytes(&self, holder: &str) -> u64 {
        let found = self.holders.iter().find(|(name, _)| name == holder);
        found.map_or(0, |(_, bytes)| *bytes)
    }
}

/// Works out what training takes within `budget`: with the threads and histograms that make for the fewest passes
/// per thread, and then with as much as possible in memory: first the state of the rows or first the rows, whichever saves
/// more of the disk. Refuses a budget that is too small even for one thread that streams everything and looks at one node at
/// a time.
pub fn plan(shape: &Shape, options: &Options, threads: usize, budget: u64) -> Result<Plan> {
    let full = max_histograms(options);
    // A node of two is the smaller one, which is added up; the other is what is left of their parent.
    let choices = std::iter::successors(Some((full, full.div_ceil(2))), |(_, packed)| {
        (*packed > 1).then(|| (packed / 2, packed / 2))
    });
    let choices: Vec<(usize, usize)> = choices.collect();
    let mut best: Option<(f64, Plan)> = None;
    for threads in (1..=threads.max(1)).rev() {
        for &(histograms, packed) in &choices {
            // Histograms that are not kept are added up for every node, in passes of their own.
            let passes = match histograms == full {
                true => options.depth,
                false => options.depth.max(max_nodes(options).div_ceil(packed)),
            };
            let cost = passes as f64 / threads as f64;
            let draft = Plan {
                shape: *shape,
                threads,
                holders: Vec::new(),
                budget,
                resident_blocks: 0,
                resident_states: 0,
                histograms,
                packed,
            };
            if best.as_ref().is_none_or(|(least, _)| cost < *least)
                && let Some(plan) = draft.filled(options)
            {
                best = Some((cost, plan));
            }
        }
    }
    if let Some((_, plan)) = best {
        return Ok(plan);
    }
    let least = Plan {
        shape: *shape,
        threads: 1,
        holders: Vec::new(),
        budget,
        resident_blocks: 0,
        resident_states: 0,
        histograms: 1,
        packed: 1,
    };
    let least = least.with_holders(options);
    Err(Error::BudgetTooSmall {
        least: least.total(),
        budget,
        holders: least.holders,
    })
}

impl Plan {
    /// The plan with as much in memory as fits; `None` if streaming everything does not.
    fn filled(mut self, options: &Options) -> Option<Plan> {
        let n_blocks = self.shape.n_blocks();
        (self.resident_states, self.resident_blocks) = (n_blocks, n_blocks);
        let whole = self.clone().with_holders(options);
        if whole.total() <= self.budget && self.bytes_of_all_rows() <= self.shape.rows_at_most {
            return Some(whole);
        }
        // While rows are read, the block under way is in memory, too, and so is what waits for the disk.
        let beside = self.block_bytes() + WRITE_BEHIND_BYTES;
        let fits = |plan: &Plan| {
            let plan = plan.clone().with_holders(options);
            let readable = plan.resident_blocks == 0 || plan.bytes(ROWS) + beside <= plan.shape.rows_at_most;
            readable && plan.total() <= plan.budget
        };
        // The most that fits: what more blocks take only grows, but for the last one, tried with all there is, too.
        let most = |plan: &mut Plan, set: fn(&mut Plan, usize)| {
            set(plan, n_blocks);
            if fits(plan) {
                return;
            }
            let (mut low, mut high) = (0, n_blocks.saturating_sub(1));
            while low < high {
                let middle = (low + high).div_ceil(2);
                set(plan, middle);
                (low, high) = if fits(plan) {
                    (middle, high)
                } else {
                    (low, middle - 1)
                };
            }
            set(plan, low);
        };
        (self.resident_states, self.resident_blocks) = (0, 0);
        let states = |plan: &mut Plan| most(plan, |plan, n| plan.resident_states = n);
        let rows = |plan: &mut Plan| most(plan, |plan, n| plan.resident_blocks = n);
        if self.states_first(options) {
            states(&mut self);
            rows(&mut self);
        } else {
            rows(&mut self);
            states(&mut self);
        }
        fits(&self).then(|| self.with_holders(options))
    }

    /// Whether a byte of state in memory saves more of the disk than a byte of rows, tree by tree.
    fn states_first(&self, options: &Options) -> bool {
        let (n_features, n_outputs) = (self.shape.n_features as u64, options.objective.n_outputs());
        let (value, place) = (size_of::<f32>() as u64, size_of::<u16>() as u64);
        let fills = options.depth.saturating_sub(1) as u64;
        let rows = (fills + 1) * n_features + rows_bytes(1, 0);
        // In every fill the slopes of one class and the order, which is written, too; at the end the margins, the slopes
        // of what comes next, and the order.
        let state = fills * (value + place + WRITING * place)
            + (2 * value + WRITING * value)
            + (value + WRITING * value)
            + (place + WRITING * place);
        state * rows_bytes(1, self.shape.n_features) > rows * BlockState::bytes(1, n_outputs, 0)
    }

    fn with_holders(mut self, options: &Options) -> Plan {
        let Shape {
            n_features, n_bins, ..
        } = self.shape;
        let (n_blocks, block_rows, threads) =
            (self.shape.n_blocks(), self.shape.largest_block(), self.threads);
        let n_outputs = options.objective.n_outputs();
        let n_nodes = max_nodes(options);
        let rows_of = |n: usize| (n * self.shape.block_rows).min(self.shape.n_rows);
        let state = |n_rows: usize, n_blocks: usize| {
            BlockState::bytes(n_rows, n_outputs, 0)
                + n_blocks as u64 * BlockState::bytes(0, n_outputs, n_nodes)
        };
        let streamed = |resident: usize, bytes: u64| {
            if resident < n_blocks {
                threads as u64 * bytes
            } else {
                0
            }
        };
        let rows = streamed(self.resident_blocks, rows_bytes(block_rows, n_features));
        let states = streamed(self.resident_states, state(block_rows, 1));
        // A block of rows or a piece of state is read or written through whole pages.
        let piece = streamed(self.resident_states, BlockState::piece_bytes(block_rows, n_nodes));
        let ahead = match rows {
            0 => 0,
            _ => READERS as u64 * rows_bytes(block_rows, n_features),
        };
        let pages = rows + ahead + piece;
        let buffers = rows + states + (threads * block_rows * size_of::<u16>()) as u64;
        let histograms =
            Histograms::bytes(self.histograms, n_bins) + threads as u64 * Packed::bytes(self.packed, n_bins);
        self.holders = vec![
            (ROWS.into(), rows_bytes(rows_of(self.resident_blocks), n_features)),
            (BUFFERS.into(), buffers),
            (PAGES.into(), pages),
            (
                STATE.into(),
                state(rows_of(self.resident_states), self.resident_states) + n_blocks as u64 * BLOCK_BYTES,
            ),
            (HISTOGRAMS.into(), histograms),
            (TREES.into(), trees_bytes(options)),
            (EVALUATION.into(), evaluation_bytes(options.objective)),
        ];
        self
    }
}

/// A byte that is written takes as long as so many that are read.
const WRITING: u64 = 2;
/// A block's first row, rows and losses.
const BLOCK_BYTES: u64 = 64;
/// A node of a tree in its flat arrays, in those of the copy that is kept at the end, and as it is walked. Every second
/// node may have a set of categories.
const NODE_BYTES: u64 = 50 + 50 + 56;

fn trees_bytes(options: &Options) -> u64 {
    let n_trees = (options.trees * options.objective.n_outputs()) as u64;
    n_trees * (2 * options.max_leaves() as u64 - 1) * NODE_BYTES
}

pub(super) fn evaluation_bytes(objective: Objective) -> u64 {
    match objective {
        Objective::Squared => Evaluator::bytes(Task::Regression, 0),
        Objective::Logistic => Evaluator::bytes(Task::Binary, 2),
        Objective::Softmax(classes) => Evaluator::bytes(Task::Multiclass, classes),
    }
}
