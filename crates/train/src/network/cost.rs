//! About how long the operations of a program take, in a unit that does not depend on the machine: so what is chosen by it
//! is the same everywhere.

use super::graph::{Graph, NodeKind};
use super::layer::Over;
use super::machine::Program;
use super::moments::Moments;

/// What a value that passes through memory costs, in sums and products. Two cores did 85 of those in a nanosecond each,
/// and moved about 10 GB/s each: 8 bytes read and written are 0.8 ns.
const VALUE: f64 = 60.0;
/// What it takes to start an operation on all threads, in the same unit: some 5 µs.
const START: f64 = 4e5;
/// The way back takes about twice the way forward: to the input, and to the weights.
const BOTH_WAYS: f64 = 3.0;

/// So many nodes to start from are left out between two that are kept, at the most.
const MOST_APART: usize = 6;
/// The same, where those that are larger than the next are left out already.
const MOST_LEAN_APART: usize = 2;

/// What the way forward of a node costs for a sample.
fn forward(graph: &Graph, node: usize) -> f64 {
    let this = &graph.nodes[node];
    let len = this.shape.len() as f64;
    let from: f64 = this
        .inputs
        .iter()
        .map(|&input| graph.nodes[input].shape.len() as f64)
        .sum();
    let products = match &this.kind {
        NodeKind::Input | NodeKind::Reshape => return 0.0,
        NodeKind::Dense { inputs, .. } => 2.0 * *inputs as f64 * len,
        NodeKind::Conv { window, groups, .. } => {
            let taps = (window.kernel[0] * window.kernel[1]) as f64;
            let channels = graph.nodes[this.inputs[0]].shape.channels() as f64;
            2.0 * taps * channels / *groups as f64 * len
        }
        NodeKind::Depthwise { window, .. } => 4.0 * (window.kernel[0] * window.kernel[1]) as f64 * len,
        // Mean, deviation, and the values themselves.
        NodeKind::Norm { .. } => 2.0 * VALUE * len,
        NodeKind::Pool { .. }
        | NodeKind::GlobalPool(_)
        | NodeKind::Dropout(_)
        | NodeKind::Activation(_)
        | NodeKind::Add { .. }
        | NodeKind::Embedding { .. }
        | NodeKind::Sparse { .. } => 0.0,
    };
    products + VALUE / 2.0 * (from + len)
}

/// What packing moments costs for each weight, in values: steps of a network of 4.2 million weights took 28 ms, 32 ms
/// with two bytes for each moment, and 38 ms with one, on one thread.
fn packing(moments: Option<Moments>) -> f64 {
    match moments {
        Some(Moments::Bf16) => 1.3,
        Some(Moments::Int8) => 3.4,
        Some(Moments::F32) | None => 0.0,
    }
}

impl Program {
    /// About how long learning from a whole batch takes.
    pub(super) fn cost(&self) -> f64 {
        let (batch, threads) = (self.purpose.batch, self.purpose.threads.max(1));
        let all: f64 = (0..self.graph.nodes.len())
            .map(|node| forward(&self.graph, node))
            .sum();
        let again: f64 = self
            .lowered
            .again
            .iter()
            .map(|&node| forward(&self.graph, node))
            .sum();
        let halved = 2.0 * VALUE * self.lowered.halved as f64;
        // Threads share samples: those that are left over are waited for.
        let rounds = batch.div_ceil(threads) as f64;
        let (learned, _) = self.n_weights();
        let keeps = self.lowered.gradients.iter().any(Option::is_some);
        let moments = self.purpose.learning.as_ref().map(|learning| learning.moments);
        let weights = learned as f64 * VALUE * (if keeps { 2.0 } else { 1.0 } + packing(moments));
        (BOTH_WAYS * all + again + halved) * rounds
            + weights / threads as f64
            + START * self.lowered.ops.len() as f64
    }

    /// Whether values are normed by the mean of a batch.
    pub(super) fn norms_batches(&self) -> bool {
        let norms = |kind: &NodeKind| match kind {
            NodeKind::Norm { over, scale, .. } => *over == Over::Batch && self.graph.weights[*scale].learned,
            _ => false,
        };
        self.graph.nodes.iter().any(|node| norms(&node.kind))
    }

    /// Nodes that the way back asks for, and that could be made again for it.
    pub(super) fn asked_again(&self) -> Vec<usize> {
        let last = self.graph.nodes.len() - 1;
        let asked = self.lowered.asked.iter().copied();
        asked.filter(|&node| node > 0 && node < last).collect()
    }

    /// Sets of nodes that could be made again: those that save the most for what they cost, one more in each; and all but
    /// some that others start from, at even distances; without those that are larger than the next, too.
    pub(super) fn recompute_candidates(&self) -> Vec<Vec<usize>> {
        let nodes = &self.graph.nodes;
        let asked = self.asked_again();
        let worth = |node: usize| nodes[node].shape.len() as f64 / forward(&self.graph, node).max(1.0);
        // Sums come last: what follows them starts from there.
        let is_sum = |node: usize| matches!(nodes[node].kind, NodeKind::Add { .. });
        let mut by_worth = asked.clone();
        by_worth.sort_by(|&a, &b| {
            let worth = worth(b).total_cmp(&worth(a));
            is_sum(a).cmp(&is_sum(b)).then(worth).then(a.cmp(&b))
        });
        let one_more = (1..=by_worth.len()).map(|n| by_worth[..n].to_vec());
        // Where everything passes through one node, nothing before it is needed to go on.
        let crosses = |node: usize| {
            let behind = nodes.iter().enumerate().skip(node + 1);
            behind
                .into_iter()
                .any(|(_, other)| other.inputs.iter().any(|&input| input < node))
        };
        let starts: Vec<usize> = asked.iter().copied().filter(|&node| !crosses(node)).collect();
        let len = |node: usize| nodes[node].shape.len();
        let is_lean = |&(i, node): &(usize, usize)| {
            let next = starts.get(i + 1);
            is_sum(node) || next.is_none_or(|&next| len(node) <= len(next))
        };
        let lean = starts.iter().copied().enumerate().filter(is_lean);
        let lean: Vec<usize> = lean.map(|(_, node)| node).collect();
        let apart = |most: usize| (1..=most).flat_map(|every| (0..every).map(move |first| (every, first)));
        let ways = apart(MOST_APART).map(|way| (&starts, way));
        let ways = ways.chain(apart(MOST_LEAN_APART).map(|way| (&lean, way)));
        let from_starts = ways.map(|(starts, (every, first))| {
            let kept: Vec<usize> = starts.iter().copied().skip(first).step_by(every).collect();
            asked
                .iter()
                .copied()
                .filter(|node| !kept.contains(node))
                .collect()
        });
        let sets = one_more.chain(from_starts);
        sets.filter(|set: &Vec<usize>| !set.is_empty()).collect()
    }
}
