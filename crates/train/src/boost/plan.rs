//! What a training will hold, computed before it holds it.

use tidegate_data::direct::buffer_bytes;
use tidegate_data::pack::WRITE_BEHIND_BYTES;
use tidegate_data::target::Task;

use super::grow::{max_histograms, max_nodes, max_packed};
use super::histogram::{Histograms, Packed};
use super::objective::Objective;
use super::options::{Growth, Options};
use super::rows::{BLOCK_ROWS, BlockBuffer, Part, bins_bytes, labels_bytes, rows_bytes};
use super::state::{Cold, Hot, piece_bytes};
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
    pub kept: Kept,
    /// Threads that read and write what is not kept, each with a block under way.
    pub carriers: usize,
    /// Nodes whose histograms are kept at a time, and those that a thread adds to in a pass.
    pub histograms: usize,
    pub packed: usize,
}

/// Of how many blocks a part stays in memory, always the first ones; that of the others is read when it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    pub bins: usize,
    /// What is to be predicted and which rows are held out, of blocks whose bins are kept.
    pub labels: usize,
    /// The state that every pass uses.
    pub hot: usize,
    /// The state that the last pass of a tree uses, of blocks whose other state is kept.
    pub cold: usize,
}

impl Kept {
    const NONE: Kept = Kept::all(0);

    /// What both keep.
    fn and(self, other: Kept) -> Kept {
        Kept {
            bins: self.bins.min(other.bins),
            labels: self.labels.min(other.labels),
            hot: self.hot.min(other.hot),
            cold: self.cold.min(other.cold),
        }
    }

    const fn all(n_blocks: usize) -> Kept {
        Kept {
            bins: n_blocks,
            labels: n_blocks,
            hot: n_blocks,
            cold: n_blocks,
        }
    }
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

    /// Whether all rows stay in memory.
    pub fn rows_fit(&self) -> bool {
        self.kept.bins.min(self.kept.labels) == self.shape.n_blocks()
    }

    /// What is not in memory, of the rows and of their state.
    pub fn streamed(&self, options: &Options) -> Streamed {
        let (n_rows, n_outputs) = (self.shape.n_rows, options.objective.n_outputs());
        let state = |hot: usize, cold: usize| Hot::bytes(hot, 0) + Cold::bytes(cold, n_outputs);
        let all_state = state(n_rows, n_rows);
        Streamed {
            rows: self.bytes_of_all_rows().saturating_sub(self.bytes(ROWS)),
            all_rows: self.bytes_of_all_rows(),
            state: all_state - state(self.rows_of(self.kept.hot), self.rows_of(self.kept.cold)),
            all_state,
        }
    }

    /// The same with less in memory, as much as fits in another budget, in the fastest way.
    pub fn within(&self, options: &Options, budget: u64) -> Option<Plan> {
        let draft = Plan {
            budget,
            // They have been read.
            shape: Shape {
                rows_at_most: u64::MAX,
                ..self.shape
            },
            ..self.clone()
        };
        let with = |carriers: usize| {
            let plan = Plan {
                carriers,
                ..draft.clone()
            };
            let plan = plan.filled(options)?;
            let kept = plan.kept.and(self.kept);
            let plan = Plan { kept, ..plan }.with_holders(options);
            (plan.total() <= budget).then_some(plan)
        };
        let plans = CARRIERS.into_iter().filter_map(with);
        plans.min_by(|a, b| a.nanoseconds(options).total_cmp(&b.nanoseconds(options)))
    }

    /// The same with nothing of the rows in memory, in the way that takes least.
    pub fn least(&self, options: &Options) -> Plan {
        let least = Plan {
            kept: Kept::NONE,
            carriers: 0,
            ..self.clone()
        };
        least.with_holders(options)
    }

    /// The rows of so many blocks.
    fn rows_of(&self, n_blocks: usize) -> usize {
        (n_blocks * self.shape.block_rows).min(self.shape.n_rows)
    }

    /// Blocks that are under way between memory and disk.
    pub(super) fn n_slots(&self) -> usize {
        match self.kept == Kept::all(self.shape.n_blocks()) {
            true => 0,
            false => self.threads + self.carriers,
        }
    }

    /// Room for what is read of the rows of a block.
    pub(super) fn row_buffer(&self, n_rows: usize) -> BlockBuffer {
        let (n_blocks, n_features) = (self.shape.n_blocks(), self.shape.n_features);
        match (self.kept.bins < n_blocks, self.kept.labels < n_blocks) {
            (true, _) => BlockBuffer::new(n_rows, n_features, Part::Whole),
            (false, true) => BlockBuffer::new(n_rows, n_features, Part::Labels),
            (false, false) => BlockBuffer::default(),
        }
    }

    /// What a holder is planned to take.
    pub fn bytes(&self, holder: &str) -> u64 {
        let found = self.holders.iter().find(|(name, _)| name == holder);
        found.map_or(0, |(_, bytes)| *bytes)
    }
}

/// Works out what training takes within `budget`: of all numbers of threads, of those that read and write, and of histograms,
/// those that make a tree soonest with as much in memory as then fits. Refuses a budget that is too small even for one thread
/// that streams everything and looks at one node at a time.
pub fn plan(shape: &Shape, options: &Options, threads: usize, budget: u64) -> Result<Plan> {
    let packed = max_packed(options);
    let halves = || std::iter::successors(Some(packed), |n| (*n > 1).then_some(n / 2));
    let kept = halves().map(|packed| (max_histograms(options, packed), packed));
    let choices: Vec<(usize, usize)> = kept.chain(halves().map(|n| (n, n))).collect();
    let draft = Plan {
        shape: *shape,
        threads: 1,
        holders: Vec::new(),
        budget,
        kept: Kept::NONE,
        carriers: 0,
        histograms: 1,
        packed: 1,
    };
    let mut best: Option<(f64, Plan)> = None;
    for threads in (1..=threads.max(1)).rev() {
        for &(histograms, packed) in &choices {
            for carriers in CARRIERS {
                let draft = Plan {
                    threads,
                    carriers,
                    histograms,
                    packed,
                    ..draft.clone()
                };
                let Some(plan) = draft.filled(options) else {
                    continue;
                };
                let nanoseconds = plan.nanoseconds(options);
                if best.as_ref().is_none_or(|(least, _)| nanoseconds < *least) {
                    best = Some((nanoseconds, plan));
                }
            }
        }
    }
    if let Some((_, plan)) = best {
        return Ok(plan);
    }
    let least = draft.with_holders(options);
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
        self.kept = Kept::all(n_blocks);
        let whole = self.clone().with_holders(options);
        if whole.total() <= self.budget && self.bytes_of_all_rows() <= self.shape.rows_at_most {
            return Some(whole);
        }
        // While rows are read, the block under way is in memory, too, and so is what waits for the disk.
        let beside = self.block_bytes() + WRITE_BEHIND_BYTES;
        let fits = |plan: &Plan| {
            let plan = plan.clone().with_holders(options);
            let readable = plan.kept.bins == 0 || plan.bytes(ROWS) + beside <= plan.shape.rows_at_most;
            readable && plan.total() <= plan.budget
        };
        self.kept = Kept::NONE;
        for (set, _) in self.parts_by_worth(options) {
            let with = |plan: &Plan, n: usize| {
                let mut plan = plan.clone();
                set(&mut plan.kept, n);
                plan
            };
            // The most that fits: what more blocks take only grows, but for the last one, tried with all there is, too.
            if fits(&with(&self, n_blocks)) {
                self = with(&self, n_blocks);
                continue;
            }
            let (mut low, mut high) = (0, n_blocks.saturating_sub(1));
            while low < high {
                let middle = (low + high).div_ceil(2);
                (low, high) = match fits(&with(&self, middle)) {
                    true => (middle, high),
                    false => (low, middle - 1),
                };
            }
            self = with(&self, low);
        }
        self.kept.labels = self.kept.labels.min(self.kept.bins);
        self.kept.cold = self.kept.cold.min(self.kept.hot);
        fits(&self).then(|| self.with_holders(options))
    }

    /// What can be kept, first that of which a byte saves most of the disk.
    fn parts_by_worth(&self, options: &Options) -> [(SetKept, f64); 4] {
        let (n_rows, n_outputs) = (self.shape.n_rows, options.objective.n_outputs());
        let none = self.disk_bytes(options, Kept::NONE);
        let parts: [(SetKept, u64); 4] = [
            (|kept, n| kept.hot = n, Hot::bytes(n_rows, 0)),
            (|kept, n| kept.bins = n, bins_bytes(n_rows, self.shape.n_features)),
            (|kept, n| kept.cold = n, Cold::bytes(n_rows, n_outputs)),
            (|kept, n| kept.labels = n, labels_bytes(n_rows)),
        ];
        let mut parts = parts.map(|(set, bytes)| {
            let mut kept = Kept::NONE;
            set(&mut kept, self.shape.n_blocks());
            let saved = none - self.disk_bytes(options, kept);
            (set, saved / bytes.max(1) as f64)
        });
        parts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        parts
    }

    /// Bytes that a tree reads from disk, and those that it writes as if they were read.
    fn disk_bytes(&self, options: &Options, kept: Kept) -> f64 {
        let value = size_of::<f32>() as f64;
        let place = size_of::<u16>() as f64;
        let n_outputs = options.objective.n_outputs() as f64;
        let passes = self.passes(options);
        let streamed = |kept: usize| (self.shape.n_rows - self.rows_of(kept)) as f64;
        let labels = labels_bytes(1) as f64;
        let bins = (passes + 1.0) * self.shape.n_features as f64;
        // In every pass the slopes and the order, which is written, too; at the end the order, and both of the next tree.
        let hot = passes * (value + place + WRITING * place) + place + WRITING * (value + place);
        // Margins are read and written; of several classes also those of the next one, norms, and all where a round ends.
        let several = match options.objective.n_outputs() {
            1 => 0.0,
            _ => 2.0 * value + (n_outputs + WRITING) * value / n_outputs,
        };
        let cold = value + WRITING * value + several;
        streamed(kept.bins) * bins
            + streamed(kept.labels) * labels
            + streamed(kept.hot) * hot
            + streamed(kept.cold) * cold
    }

    /// Passes over the rows that a tree takes before its last one.
    fn passes(&self, options: &Options) -> f64 {
        let n_leaves = options.max_leaves();
        let of_level = |level: u32| match self.by_difference(options) {
            true => (1usize << (level - 1)).min(n_leaves).div_ceil(self.packed),
            false => (1usize << level)
                .min(n_leaves)
                .div_ceil(self.packed.min(self.histograms)),
        };
        (1..self.levels(options)).map(of_level).sum::<usize>() as f64
    }

    /// Whether histograms are kept so that only one child of every split is added up.
    pub(super) fn by_difference(&self, options: &Options) -> bool {
        self.histograms >= max_histograms(options, self.packed)
    }

    /// Levels of splits: where the best leaf is split first, somewhat more than a full tree has.
    fn levels(&self, options: &Options) -> u32 {
        let full = options.max_leaves().next_power_of_two().ilog2();
        match options.growth {
            Growth::Depth => full.min(options.depth.max(1) as u32),
            Growth::Leaf => (full + 2).min(options.depth.max(1) as u32),
        }
    }

    /// About how long a tree takes: only the differences between plans count.
    fn nanoseconds(&self, options: &Options) -> f64 {
        let n_rows = self.shape.n_rows as f64;
        let share = match self.by_difference(options) {
            true => 0.5,
            false => 1.0,
        };
        let added =
            n_rows * self.shape.n_features as f64 * (1.0 + share * f64::from(self.levels(options) - 1));
        let work = (ADDING * added + VISITING * n_rows * self.passes(options)) / self.threads as f64;
        let readers = if self.carriers > 0 {
            self.carriers
        } else {
            self.threads
        };
        let disk = READING * self.disk_bytes(options, self.kept) / readers as f64;
        match self.carriers {
            0 => work + disk,
            // Both go on at the same time, but not quite.
            _ => work.max(disk) + 0.2 * work.min(disk),
        }
    }

    fn with_holders(mut self, options: &Options) -> Plan {
        let Shape {
            n_features, n_bins, ..
        } = self.shape;
        let (n_blocks, block_rows, threads) =
            (self.shape.n_blocks(), self.shape.largest_block(), self.threads);
        let n_outputs = options.objective.n_outputs();
        let (n_nodes, kept) = (max_nodes(options), self.kept);
        let if_streamed = |kept: usize, bytes: u64| if kept < n_blocks { bytes } else { 0 };
        let row_slot = match kept.bins < n_blocks {
            true => rows_bytes(block_rows, n_features),
            false => if_streamed(kept.labels, labels_bytes(block_rows)),
        };
        let state_slot = if_streamed(kept.hot, Hot::bytes(block_rows, n_nodes))
            + if_streamed(kept.cold, Cold::bytes(block_rows, n_outputs));
        // What is read or written goes through whole pages.
        let piece = if_streamed(
            kept.hot.min(kept.cold),
            piece_bytes(block_rows, n_outputs, n_nodes),
        );
        let pages = |bytes: u64| if bytes > 0 { buffer_bytes(bytes) } else { 0 };
        let n_carriers = if self.carriers > 0 { self.carriers } else { threads };
        let buffers = self.n_slots() as u64 * (row_slot + state_slot)
            + (threads * block_rows * size_of::<u16>()) as u64;
        let state = Hot::bytes(self.rows_of(kept.hot), kept.hot * n_nodes)
            + Cold::bytes(self.rows_of(kept.cold), n_outputs)
            + n_blocks as u64 * BLOCK_BYTES;
        let histograms =
            Histograms::bytes(self.histograms, n_bins) + threads as u64 * Packed::bytes(self.packed, n_bins);
        self.holders = vec![
            (
                ROWS.into(),
                bins_bytes(self.rows_of(kept.bins), n_features) + labels_bytes(self.rows_of(kept.labels)),
            ),
            (BUFFERS.into(), buffers),
            (PAGES.into(), n_carriers as u64 * (pages(row_slot) + pages(piece))),
            (STATE.into(), state),
            (HISTOGRAMS.into(), histograms),
            (TREES.into(), trees_bytes(options)),
            // It takes the place of the histograms, which are gone by then.
            (
                EVALUATION.into(),
                evaluation_bytes(options.objective).saturating_sub(histograms),
            ),
        ];
        self
    }
}

type SetKept = fn(&mut Kept, usize);

/// Threads that read and write beside those that work, the most that any disk gains from first.
const CARRIERS: [usize; 3] = [4, 2, 0];
/// Nanoseconds to add a bin of a row to a histogram, to come to a row in a pass, and to read a byte from disk by one thread.
const ADDING: f64 = 3.0;
const VISITING: f64 = 2.0;
const READING: f64 = 4.0;
/// A byte that is written takes as long as so many that are read.
const WRITING: f64 = 4.0;
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
