//! The model: trees as flat arrays, and what they say of a row.

use serde::{Deserialize, Serialize};

use super::bins::FeatureBins;
use super::categories::BinSet;
use super::objective::{Objective, predictions};
use super::split::Test;

/// A tree. Node 0 is the root; all arrays have an entry per node. A node whose `left` is 0 is a leaf, because
/// the root is nobody's child.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Tree {
    pub feature: Vec<u32>,
    /// Values below it go to the left.
    pub threshold: Vec<f32>,
    /// The same in bins: `1..=bin` go to the left.
    pub bin: Vec<u8>,
    /// Where missing values go.
    pub default_left: Vec<bool>,
    pub left: Vec<u32>,
    pub right: Vec<u32>,
    /// What the node adds to the margin, or would if it were a leaf.
    pub value: Vec<f32>,
    /// What the split takes off twice the loss; 0 for a leaf.
    pub gain: Vec<f32>,
    /// The curvature of the rows here: for the squared loss, their number.
    pub cover: Vec<f32>,
    /// Of a split of categories: its place among the sets, from 1; 0 for a split of numbers.
    pub set: Vec<u32>,
    /// The bins of categories that go to the left.
    pub sets: Vec<BinSet>,
}

impl Tree {
    pub fn n_nodes(&self) -> usize {
        self.value.len()
    }

    pub fn is_leaf(&self, node: usize) -> bool {
        self.left[node] == 0
    }

    pub fn n_leaves(&self) -> usize {
        (0..self.n_nodes()).filter(|node| self.is_leaf(*node)).count()
    }

    pub fn depth(&self) -> usize {
        let mut depth = vec![0; self.n_nodes()];
        // Children come after their parents.
        for node in (0..self.n_nodes()).filter(|node| !self.is_leaf(*node)) {
            depth[self.left[node] as usize] = depth[node] + 1;
            depth[self.right[node] as usize] = depth[node] + 1;
        }
        depth.into_iter().max().unwrap_or(0)
    }

    fn fault(&self, features: &[FeatureBins]) -> Option<&'static str> {
        let n = self.n_nodes();
        let lengths = [
            self.feature.len(),
            self.threshold.len(),
            self.bin.len(),
            self.default_left.len(),
            self.left.len(),
            self.right.len(),
            self.gain.len(),
            self.cover.len(),
            self.set.len(),
        ];
        if n == 0 || lengths.iter().any(|len| *len != n) {
            return Some("a tree whose arrays differ in length");
        }
        for node in (0..n).filter(|node| !self.is_leaf(*node)) {
            let Some(feature) = features.get(self.feature[node] as usize) else {
                return Some("a split on a feature that is not there");
            };
            let (bin, default_left) = (self.bin[node], self.default_left[node]);
            if (self.set[node] > 0) != feature.categorical || self.set[node] as usize > self.sets.len() {
                return Some("a set where a threshold belongs, or none where one does");
            }
            let known = usize::from(bin) <= feature.cuts.len() && (bin > 0 || default_left);
            if self.set[node] == 0 && (!known || feature.threshold(bin) != self.threshold[node]) {
                return Some("a split that is not between two bins");
            }
            // Children come after their parents, so that every way down ends.
            let is_child = |child: u32| (node + 1..n).contains(&(child as usize));
            if !is_child(self.left[node]) || !is_child(self.right[node]) {
                return Some("a child before its parent");
            }
        }
        None
    }

    /// The value at the leaf of a row of numbers, NaN for missing ones.
    #[inline]
    pub fn value(&self, features: &[f32]) -> f32 {
        let mut node = 0;
        while self.left[node] != 0 {
            let x = features[self.feature[node] as usize];
            // Every number is at least the lowest float, the threshold that none is below.
            let goes_left = match self.set[node] {
                0 if x.is_nan() => self.default_left[node],
                0 => x.max(f32::MIN) < self.threshold[node],
                set => self.sets[set as usize - 1].contains(BinSet::bin_of(x)),
            };
            node = if goes_left {
                self.left[node]
            } else {
                self.right[node]
            } as usize;
        }
        self.value[node]
    }

    fn test(&self, node: usize) -> Test {
        let mut test = Test::new(
            self.feature[node] as usize,
            self.bin[node],
            self.default_left[node],
        );
        test.set = (self.set[node] as usize).checked_sub(1).map(|at| self.sets[at]);
        test
    }

    /// The tree as it is walked by rows of bins.
    pub(super) fn walk(&self) -> Walk {
        let step = |node: usize| Step {
            test: self.test(node),
            left: self.left[node],
            right: self.right[node],
            value: self.value[node],
        };
        Walk {
            steps: (0..self.n_nodes()).map(step).collect(),
        }
    }
}

/// A tree with all that a step needs side by side.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    test: Test,
    left: u32,
    right: u32,
    value: f32,
}

impl Walk {
    #[inline]
    pub(super) fn value(&self, bins: &[u8]) -> f32 {
        let mut step = &self.steps[0];
        while step.left != 0 {
            let goes_left = step.test.goes_left(bins[step.test.feature as usize]);
            let next = if goes_left { step.left } else { step.right };
            step = &self.steps[next as usize];
        }
        step.value
    }

    pub(super) fn uses(&self, feature: usize) -> bool {
        let uses = |step: &Step| step.left != 0 && step.test.feature as usize == feature;
        self.steps.iter().any(uses)
    }
}

/// A trained model: margins start at `base`, and every tree adds to the margin of its class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forest {
    pub objective: Objective,
    /// One per class; a single one for a number or two values.
    pub base: Vec<f32>,
    /// Round by round, within a round class by class.
    pub trees: Vec<Tree>,
    pub features: Vec<FeatureBins>,
}

impl Forest {
    pub fn n_outputs(&self) -> usize {
        self.base.len()
    }

    pub fn n_rounds(&self) -> usize {
        self.trees.len() / self.n_outputs()
    }

    /// What is wrong with a forest that was read from outside. One without a fault leads every row to a leaf.
    pub fn fault(&self) -> Option<&'static str> {
        let n_outputs = self.objective.n_outputs();
        if n_outputs == 0 || self.base.len() != n_outputs || !self.trees.len().is_multiple_of(n_outputs) {
            return Some("another number of classes than of margins or trees");
        }
        let numbers = self.trees.iter().flat_map(|tree| &tree.value).chain(&self.base);
        if !numbers.copied().all(f32::is_finite) {
            return Some("a value that is no number");
        }
        self.trees.iter().find_map(|tree| tree.fault(&self.features))
    }

    /// The margins of a row of numbers, NaN for missing ones.
    pub fn margins(&self, features: &[f32], margins: &mut [f32]) {
        margins.copy_from_slice(&self.base);
        for (i, tree) in self.trees.iter().enumerate() {
            margins[i % self.base.len()] += tree.value(features);
        }
    }

    /// The same for a row of bins, to the last bit.
    pub fn margins_binned(&self, bins: &[u8], margins: &mut [f32]) {
        margins.copy_from_slice(&self.base);
        for (i, tree) in self.trees.iter().enumerate() {
            let mut node = 0;
            while tree.left[node] != 0 {
                let goes_left = tree.test(node).goes_left(bins[tree.feature[node] as usize]);
                node = if goes_left {
                    tree.left[node]
                } else {
                    tree.right[node]
                } as usize;
            }
            margins[i % self.base.len()] += tree.value[node];
        }
    }

    /// The predicted number, the probability of the positive value, or one probability per class.
    pub fn predict(&self, features: &[f32], predicted: &mut [f32]) {
        self.margins(features, predicted);
        predictions(self.objective, predicted);
    }

    /// The same as numbers of double width, as all models give them.
    pub fn scores(&self, features: &[f32], scores: &mut [f64]) {
        // Few classes fit on the stack; more take a moment to allocate.
        let (mut few, mut many) = ([0f32; 8], Vec::new());
        let predicted = match scores.len() {
            n @ ..=8 => &mut few[..n],
            n => {
                many.resize(n, 0f32);
                many.as_mut_slice()
            }
        };
        self.predict(features, predicted);
        for (score, predicted) in scores.iter_mut().zip(predicted) {
            *score = f64::from(*predicted);
        }
    }

    /// What it takes in memory.
    pub fn bytes(&self) -> u64 {
        let nodes: usize = self.trees.iter().map(Tree::n_nodes).sum();
        let cuts: usize = self.features.iter().map(|feature| feature.cuts.len()).sum();
        let sets: usize = self.trees.iter().map(|tree| tree.sets.len()).sum();
        (nodes * 36 + sets * size_of::<BinSet>() + cuts * 4) as u64
    }

    /// What each feature did, in the order of the features.
    pub fn importance(&self) -> Vec<Importance> {
        let mut all: Vec<Importance> = self.features.iter().map(Importance::none).collect();
        for tree in &self.trees {
            for node in (0..tree.n_nodes()).filter(|node| !tree.is_leaf(*node)) {
                let importance = &mut all[tree.feature[node] as usize];
                importance.gain += f64::from(tree.gain[node]);
                importance.splits += 1;
            }
        }
        all
    }
}

/// How much the trees made of a feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Importance {
    pub feature: String,
    /// Summed over its splits.
    pub gain: f64,
    pub splits: u64,
}

impl Importance {
    fn none(feature: &FeatureBins) -> Importance {
        Importance {
            feature: feature.name.clone(),
            gain: 0.0,
            splits: 0,
        }
    }
}
