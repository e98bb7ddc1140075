//! Which nodes of a tree are split, and in which order.
//!
//! A pass over the data is dear, so as many nodes as possible are expanded in one: their rows are given to
//! their children, whose histograms then tell their own best splits. Growth by depth takes level after level.
//! Growth by leaf splits the best leaf of all, again and again; a leaf that has as many better ones beside it
//! as there are splits left is never taken, so all that stand before it are expanded at once, on the chance,
//! and the order of best leaves is followed through what is known. Expanding more than twice the splits of the
//! tree is not worth it.

use super::bins::FeatureBins;
use super::forest::Tree;
use super::histogram::Sum;
use super::options::{Growth, Options};
use super::partition::{Applied, Leaf};
use super::split::{Rules, Split, Test};

/// A node while the tree grows.
#[derive(Debug, Clone)]
pub(super) struct Node {
    depth: usize,
    pub(super) sum: Sum,
    pub(super) best: Option<Split>,
    /// Set when its rows have been given to them.
    children: Option<[usize; 2]>,
    /// It is split in the tree as it will be.
    chosen: bool,
}

/// A growing tree.
#[derive(Debug)]
pub(super) struct Growing {
    pub(super) nodes: Vec<Node>,
    growth: Growth,
    max_depth: usize,
    max_leaves: usize,
    n_leaves: usize,
    level: usize,
    n_expanded: usize,
}

/// The most nodes that [`Growing`] ever has.
pub(super) fn max_nodes(options: &Options) -> usize {
    let n_splits = options.max_leaves() - 1;
    match options.growth {
        Growth::Depth => 2 * n_splits + 1,
        Growth::Leaf => 4 * n_splits + 1,
    }
}

/// The most nodes whose histograms are added up in one pass, the others being what is left of their parents.
pub(super) fn max_packed(options: &Options) -> usize {
    let n_leaves = options.max_leaves();
    match options.growth {
        Growth::Depth => n_leaves.min(of_level(options, 1)).div_ceil(2),
        Growth::Leaf => n_leaves,
    }
}

/// The most nodes whose histograms are of use at the same time, where those of so many are added up in one pass. Of the last
/// level that is split, none is of use once its splits are known.
pub(super) fn max_histograms(options: &Options, packed: usize) -> usize {
    let n_leaves = options.max_leaves();
    match options.growth {
        Growth::Depth => {
            let before_last = n_leaves.min(of_level(options, 2));
            n_leaves.min(of_level(options, 1)).min(before_last + packed)
        }
        Growth::Leaf => 2 * n_leaves - 1,
    }
}

/// The nodes of the level that lies so many above the leaves.
fn of_level(options: &Options, above: usize) -> usize {
    1 << options.depth.clamp(1, 16).saturating_sub(above)
}

impl Growing {
    pub(super) fn new(options: &Options, root: Sum, best: Option<Split>) -> Growing {
        let root = Node {
            depth: 0,
            sum: root,
            best,
            children: None,
            chosen: false,
        };
        Growing {
            nodes: vec![root],
            growth: options.growth,
            max_depth: options.depth,
            max_leaves: options.max_leaves(),
            n_leaves: 1,
            level: 0,
            n_expanded: 0,
        }
    }

    /// The nodes to expand in the next pass, with children made for them; none when the tree is complete.
    pub(super) fn expand(&mut self) -> Vec<Applied> {
        let nodes = match self.growth {
            Growth::Depth => self.next_level(),
            Growth::Leaf => self.next_best(),
        };
        self.n_expanded += nodes.len();
        nodes
            .into_iter()
            .filter_map(|node| self.add_children(node))
            .collect()
    }

    fn add_children(&mut self, node: usize) -> Option<Applied> {
        let split = self.nodes[node].best?;
        let left = self.nodes.len();
        let depth = self.nodes[node].depth + 1;
        for sum in [split.left, split.right] {
            self.nodes.push(Node {
                depth,
                sum,
                best: None,
                children: None,
                chosen: false,
            });
        }
        self.nodes[node].children = Some([left, left + 1]);
        Some(Applied {
            node,
            left,
            right: left + 1,
            test: Test::of(&split),
        })
    }

    fn choose(&mut self, node: usize) {
        self.nodes[node].chosen = true;
        self.n_leaves += 1;
    }

    fn gain(&self, node: usize) -> f64 {
        self.nodes[node].best.map_or(0.0, |split| split.gain)
    }

    /// Best gain first, of equal ones the older node.
    fn sort_by_gain(&self, nodes: &mut [usize]) {
        nodes.sort_by(|a, b| self.gain(*b).total_cmp(&self.gain(*a)).then(a.cmp(b)));
    }

    fn next_level(&mut self) -> Vec<usize> {
        let can_split =
            |node: &usize| self.nodes[*node].depth == self.level && self.nodes[*node].best.is_some();
        let mut nodes: Vec<usize> = (0..self.nodes.len()).filter(can_split).collect();
        let n_left = self.max_leaves - self.n_leaves;
        if nodes.len() > n_left {
            self.sort_by_gain(&mut nodes);
            nodes.truncate(n_left);
            nodes.sort_unstable();
        }
        for node in &nodes {
            self.choose(*node);
        }
        self.level += 1;
        // Leaves need no histograms, so nothing is left to be passed over.
        if self.level == self.max_depth || self.n_leaves == self.max_leaves {
            nodes.clear();
        }
        nodes
    }

    fn next_best(&mut self) -> Vec<usize> {
        loop {
            let n_left = self.max_leaves - self.n_leaves;
            let mut frontier = self.frontier();
            self.sort_by_gain(&mut frontier);
            frontier.truncate(n_left);
            let Some(&best) = frontier.first() else {
                return Vec::new();
            };
            let is_last = n_left == 1 || self.nodes[best].depth + 1 >= self.max_depth;
            if is_last || self.nodes[best].children.is_some() {
                self.choose(best);
                continue;
            }
            // What is left to try beyond what the tree needs.
            let on_chance = 2 * (self.max_leaves - 1) - self.n_expanded - n_left;
            let unknown = |node: &usize| {
                let node = &self.nodes[*node];
                node.children.is_none() && node.depth + 1 < self.max_depth
            };
            return frontier.into_iter().filter(unknown).take(1 + on_chance).collect();
        }
    }

    /// Leaves of the tree so far that could be split.
    fn frontier(&self) -> Vec<usize> {
        let (mut found, mut stack) = (Vec::new(), vec![0]);
        while let Some(node) = stack.pop() {
            match (&self.nodes[node], self.nodes[node].children) {
                (Node { chosen: true, .. }, Some(children)) => stack.extend(children),
                (
                    Node {
                        chosen: false,
                        best: Some(_),
                        ..
                    },
                    _,
                ) => found.push(node),
                _ => {}
            }
        }
        found
    }

    /// Whether the children that were made last are leaves or become parents of leaves: then their histograms are of no use
    /// once their splits are known.
    pub(super) fn is_last_level(&self) -> bool {
        self.growth == Growth::Depth && self.level + 1 == self.max_depth
    }

    /// The tree as it has grown, and what its leaves add to the rows.
    pub(super) fn finish(
        &self,
        features: &[FeatureBins],
        rules: &Rules,
        learning_rate: f64,
    ) -> (Tree, Vec<Leaf>) {
        let mut tree = Tree::default();
        let mut leaves = Vec::new();
        let value = |sum: Sum| (rules.value(sum) * learning_rate) as f32;
        push(
            &mut tree,
            value(self.nodes[0].sum),
            rules.weight(self.nodes[0].sum),
        );
        // (node while growing, node of the tree)
        let mut queue = std::collections::VecDeque::from([(0, 0)]);
        while let Some((node, place)) = queue.pop_front() {
            let Some(split) = self.nodes[node].best.filter(|_| self.nodes[node].chosen) else {
                let value = tree.value[place];
                leaves.push(Leaf::Whole { node, value });
                continue;
            };
            tree.feature[place] = split.feature as u32;
            tree.bin[place] = split.bin;
            match split.set {
                None => tree.threshold[place] = features[split.feature].threshold(split.bin),
                Some(set) => {
                    tree.sets.push(set);
                    tree.set[place] = tree.sets.len() as u32;
                }
            }
            tree.default_left[place] = split.default_left;
            // Of huge targets, beyond what the format holds.
            tree.gain[place] = (split.gain as f32).min(f32::MAX);
            let left = push(&mut tree, value(split.left), rules.weight(split.left));
            let right = push(&mut tree, value(split.right), rules.weight(split.right));
            (tree.left[place], tree.right[place]) = (left as u32, right as u32);
            match self.nodes[node].children {
                Some(children) => queue.extend([(children[0], left), (children[1], right)]),
                None => leaves.push(Leaf::Split {
                    node,
                    test: Test::of(&split),
                    values: [tree.value[left], tree.value[right]],
                }),
            }
        }
        (tree, leaves)
    }
}

/// Appends a leaf.
fn push(tree: &mut Tree, value: f32, cover: f64) -> usize {
    tree.feature.push(0);
    tree.threshold.push(0.0);
    tree.bin.push(0);
    tree.default_left.push(false);
    tree.left.push(0);
    tree.right.push(0);
    tree.value.push(value);
    tree.gain.push(0.0);
    tree.cover.push(cover as f32);
    tree.set.push(0);
    tree.value.len() - 1
}
