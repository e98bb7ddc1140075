//! Growing one tree: passes that apply splits and fill histograms, and the pass that ends it and begins the next.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::crew::Crew;
use super::forest::Tree;
use super::grow::Growing;
use super::hash::{Purpose, RowSample, key, sample_columns};
use super::histogram::{Histograms, Layout, Rows, Sum};
use super::objective::{Losses, Quantiser, begin_round, slopes_of_class};
use super::options::Options;
use super::partition::{Applied, Leaf, add_values, apply};
use super::pass::{Halt, Route, Tools, Visited, pass};
use super::plan::Plan;
use super::rows::Part;
use super::split::{Rules, Split, best_split};
use super::state::{BlockState, Pieces};

/// What all trees of a training share.
pub(super) struct Grove<'a> {
    pub(super) features: &'a [super::FeatureBins],
    pub(super) options: &'a Options,
    pub(super) plan: &'a Plan,
    pub(super) quantiser: Quantiser,
    pub(super) rules: Rules,
}

/// The next tree, as far as it is known before it grows.
#[derive(Debug)]
pub(super) struct Sprout {
    /// Counted over all classes.
    number: usize,
    class: usize,
    layout: Layout,
    sample: RowSample,
}

/// The root's histogram has this slot.
const ROOT: usize = 0;

impl<'a> Grove<'a> {
    pub(super) fn sprout(&self, number: usize) -> Sprout {
        let options = self.options;
        let columns = sample_columns(options.seed, number, self.features.len(), options.column_sample);
        Sprout {
            number,
            class: number % self.n_outputs(),
            layout: Layout::new(self.features, &columns),
            sample: RowSample::new(options.seed, number, options.row_sample),
        }
    }

    pub(super) fn n_outputs(&self) -> usize {
        self.options.objective.n_outputs()
    }

    /// Losses at the margins of a block, and the slopes for tree `number`, the first of a round.
    pub(super) fn begin_round(
        &self,
        number: usize,
        visited: &Visited<'_>,
        state: &mut BlockState<'_>,
    ) -> Losses {
        let key = self.rounding(number);
        begin_round(&self.quantiser, key, visited.first_row, &visited.rows, state)
    }

    fn rounding(&self, number: usize) -> u32 {
        key(self.options.seed, number as u64, Purpose::Rounding) as u32
    }

    /// Puts the rows of a block that the tree learns from into its root.
    pub(super) fn plant(
        &self,
        sprout: &Sprout,
        histograms: &Histograms,
        tools: &mut Tools,
        visited: &Visited<'_>,
        state: &mut BlockState<'_>,
    ) {
        let mut n = 0;
        let all = sprout.sample.is_all();
        for (row, held_out) in visited.rows.held_out.iter().enumerate() {
            state.order[n] = row as u16;
            let sampled = all || sprout.sample.contains(visited.first_row.wrapping_add(row as u32));
            n += usize::from(*held_out == 0 && sampled);
        }
        state.ranges[0] = [0, n as u32];
        let rows = self.rows(visited, state, 0);
        tools
            .packed
            .add(0, &histograms.slots[ROOT], &rows, &sprout.layout);
    }

    pub(super) fn planted(&self, sprout: &Sprout, histograms: &Histograms, tools: &mut Tools) {
        let bits = self.options.objective.hessian_bits();
        tools
            .packed
            .empty(0, &histograms.slots[ROOT], bits, &sprout.layout);
    }

    fn rows<'b>(&self, visited: &Visited<'b>, state: &'b BlockState<'_>, node: usize) -> Rows<'b> {
        let [start, end] = state.ranges[node];
        Rows {
            order: &state.order[start as usize..end as usize],
            bins: visited.rows.bins,
            gradients: state.gradients,
            hessian_bits: self.options.objective.hessian_bits(),
        }
    }

    /// Grows a planted tree until no split is left to be chosen.
    pub(super) fn grow(
        &self,
        sprout: &Sprout,
        histograms: &mut Histograms,
        crew: &mut Crew<'_>,
    ) -> Result<(Tree, Vec<Leaf>), Halt> {
        let sums = histograms.sums_mut(ROOT);
        let column = sprout.layout.columns[0];
        let total = sums[column.offset..column.offset + column.n_bins]
            .iter()
            .fold(Sum::default(), |total, sum| total + *sum);
        let best = best_split(sums, &sprout.layout, total, &self.rules);
        let mut growing = Growing::new(self.options, total, best);
        let mut slots = Slots {
            of: vec![Some(ROOT)],
            free: (1..histograms.slots.len()).rev().collect(),
        };
        loop {
            let splits = growing.expand();
            if splits.is_empty() {
                break;
            }
            if self.plan.by_difference(self.options) {
                self.expand_by_difference(sprout, &splits, &mut growing, &mut slots, histograms, crew)?;
            } else {
                self.expand_in_groups(sprout, &splits, &mut growing, histograms, crew)?;
            }
        }
        Ok(growing.finish(self.features, &self.rules, self.options.learning_rate))
    }

    /// Adds up the lighter child of every split; the other is what is left of the parent.
    fn expand_by_difference(
        &self,
        sprout: &Sprout,
        splits: &[Applied],
        growing: &mut Growing,
        slots: &mut Slots,
        histograms: &mut Histograms,
        crew: &mut Crew<'_>,
    ) -> Result<(), Halt> {
        slots.of.resize(growing.nodes.len(), None);
        let mut pending = splits;
        for splits in splits.chunks(self.plan.packed) {
            let mut pairs = Vec::with_capacity(splits.len());
            for split in splits {
                let weight = |node: usize| growing.nodes[node].sum.h;
                let (light, heavy) = match weight(split.left) <= weight(split.right) {
                    true => (split.left, split.right),
                    false => (split.right, split.left),
                };
                slots.of[heavy] = slots.of[split.node].take();
                slots.of[light] = slots.free.pop();
                let slot = |node: usize| slots.of[node].expect("there are slots for all that can be of use");
                pairs.push(((light, slot(light)), (heavy, slot(heavy))));
            }
            let light: Vec<(usize, usize)> = pairs.iter().map(|(light, _)| *light).collect();
            self.fill(sprout, std::mem::take(&mut pending), &light, histograms, crew)?;
            for ((_, light), (_, heavy)) in &pairs {
                histograms.subtract(*heavy, *light);
            }
            let children: Vec<(usize, usize)> =
                pairs.iter().flat_map(|(light, heavy)| [*light, *heavy]).collect();
            self.find_splits(sprout, &children, growing, histograms);
            if growing.is_last_level() {
                slots
                    .free
                    .extend(children.iter().filter_map(|(node, _)| slots.of[*node].take()));
            }
        }
        Ok(())
    }

    /// Adds up all children, as many at a time as there is room for, and keeps nothing of them.
    fn expand_in_groups(
        &self,
        sprout: &Sprout,
        splits: &[Applied],
        growing: &mut Growing,
        histograms: &mut Histograms,
        crew: &mut Crew<'_>,
    ) -> Result<(), Halt> {
        let children: Vec<usize> = splits
            .iter()
            .flat_map(|split| [split.left, split.right])
            .collect();
        let mut pending = splits;
        for group in children.chunks(self.plan.packed.min(self.plan.histograms)) {
            let group: Vec<(usize, usize)> = group.iter().copied().zip(0..).collect();
            self.fill(sprout, std::mem::take(&mut pending), &group, histograms, crew)?;
            self.find_splits(sprout, &group, growing, histograms);
        }
        Ok(())
    }

    /// A pass that carries out `splits` and then adds up the rows of `nodes`, each given with its slot.
    fn fill(
        &self,
        sprout: &Sprout,
        splits: &[Applied],
        nodes: &[(usize, usize)],
        histograms: &mut Histograms,
        crew: &mut Crew<'_>,
    ) -> Result<(), Halt> {
        for (_, slot) in nodes {
            histograms.clear(*slot);
        }
        let histograms = &*histograms;
        let n_features = self.features.len();
        let route = Route {
            rows: Part::Bins,
            reads: Pieces {
                gradients: true,
                order: true,
                ..Pieces::default()
            },
            writes: Pieces {
                order: !splits.is_empty(),
                ..Pieces::default()
            },
            in_order: false,
        };
        let bits = self.options.objective.hessian_bits();
        pass(
            crew,
            &route,
            &|tools, visited, state| {
                apply(splits, visited.rows.bins, n_features, state, &mut tools.spare);
                for (index, (node, slot)) in nodes.iter().enumerate() {
                    let rows = self.rows(visited, state, *node);
                    tools
                        .packed
                        .add(index, &histograms.slots[*slot], &rows, &sprout.layout);
                }
                Losses::default()
            },
            &|tools| {
                for (index, (_, slot)) in nodes.iter().enumerate() {
                    tools
                        .packed
                        .empty(index, &histograms.slots[*slot], bits, &sprout.layout);
                }
            },
        )?;
        Ok(())
    }

    fn find_splits(
        &self,
        sprout: &Sprout,
        nodes: &[(usize, usize)],
        growing: &mut Growing,
        histograms: &Histograms,
    ) {
        let next = AtomicUsize::new(0);
        let known = &growing.nodes;
        let work = || {
            let mut found: Vec<(usize, Option<Split>)> = Vec::new();
            while let Some(&(node, slot)) = nodes.get(next.fetch_add(1, Ordering::Relaxed)) {
                let sums = histograms.slots[slot].lock().expect("no thread panics with it");
                found.push((
                    node,
                    best_split(&sums, &sprout.layout, known[node].sum, &self.rules),
                ));
            }
            found
        };
        let found = std::thread::scope(|scope| {
            let others: Vec<_> = (1..self.plan.threads.min(nodes.len()))
                .map(|_| scope.spawn(work))
                .collect();
            let mut found = work();
            for other in others {
                found.extend(other.join().expect("looking for splits does not panic"));
            }
            found
        });
        for (node, best) in found {
            growing.nodes[node].best = best;
        }
    }

    /// The pass that ends a tree: its values are added to the margins; after the last class of a round the
    /// losses are taken; and the next tree is planted, with the slopes of its class.
    pub(super) fn finish(
        &self,
        sprout: &Sprout,
        (tree, leaves): (&Tree, &[Leaf]),
        next: Option<&Sprout>,
        histograms: &mut Histograms,
        crew: &mut Crew<'_>,
    ) -> Result<Vec<Losses>, Halt> {
        histograms.clear(ROOT);
        let histograms = &*histograms;
        let (n_outputs, class) = (self.n_outputs(), sprout.class);
        let ends_round = class + 1 == n_outputs;
        let route = Route {
            rows: Part::Whole,
            reads: Pieces {
                margins: match ends_round {
                    true => 0..n_outputs,
                    false => class..class + 2,
                },
                norms: !ends_round,
                gradients: false,
                order: true,
            },
            writes: Pieces {
                margins: class..class + 1,
                norms: ends_round,
                gradients: next.is_some(),
                order: next.is_some(),
            },
            in_order: false,
        };
        let walk = tree.walk();
        let n_features = self.features.len();
        pass(
            crew,
            &route,
            &|tools, visited, state| {
                let bins = visited.rows.bins;
                add_values(leaves, bins, n_features, class, state);
                let all = sprout.sample.is_all();
                let margins = state.margins_of(class);
                for (row, held_out) in visited.rows.held_out.iter().enumerate() {
                    let sampled = all || sprout.sample.contains(visited.first_row.wrapping_add(row as u32));
                    if *held_out != 0 || !sampled {
                        margins[row] += walk.value(&bins[row * n_features..(row + 1) * n_features]);
                    }
                }
                let losses = match ends_round {
                    true => self.begin_round(sprout.number + 1, visited, state),
                    false => {
                        let of = (class + 1, self.rounding(sprout.number + 1));
                        slopes_of_class(&self.quantiser, of, visited.first_row, &visited.rows, state);
                        Losses::default()
                    }
                };
                if let Some(next) = next {
                    self.plant(next, histograms, tools, visited, state);
                }
                losses
            },
            &|tools| {
                if let Some(next) = next {
                    self.planted(next, histograms, tools);
                }
            },
        )
    }
}

/// Which histogram is whose.
struct Slots {
    of: Vec<Option<usize>>,
    free: Vec<usize>,
}
