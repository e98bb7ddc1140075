//! What becomes of values between the way forward and the way back: they stay, they wait in half precision, or they go and
//! are made again.
//!
//! The way back asks for values by [`Lowering::value`]. What is not there then is brought back first, by the operations
//! that made it, and so is what those need. So a run of nodes that are made again starts from the last one that stayed.

use super::super::arena::{Buffer, values_of};
use super::super::graph::{Graph, NodeKind};
use super::super::ops::half;
use super::super::precision::Precision;
use super::{Lowering, Purpose, Slope, pointwise_conv};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Between {
    Stays,
    /// Waits in half precision.
    Half,
    /// Goes, and is made again.
    Again,
    /// Goes, is made again, and waits in half precision if it is not yet its turn then.
    AgainInHalf,
    /// Goes, is made again, and goes once more if it is not yet its turn then.
    AgainEachTime,
}

/// Where the values of a node are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    There,
    /// In half precision: what the node made, and what its activation was given.
    Half {
        made: Buffer,
        kept: Option<Buffer>,
    },
    Gone,
}

/// What is to become of the values of each node, of which the way back asks for some. Those of `halves` wait in half
/// precision; twice among them, they do not wait at all where one operation makes them again.
pub(super) fn between(graph: &Graph, purpose: &Purpose, asked: &[usize], halves: &[usize]) -> Vec<Between> {
    let Some(learning) = &purpose.learning else {
        return vec![Between::Stays; graph.nodes.len()];
    };
    let last = graph.nodes.len() - 1;
    let again = |node: usize| node > 0 && learning.recompute.contains(&node);
    // What is only needed to make other things again is not kept for that where it costs little.
    let cheap = |node: usize| {
        !learning.recompute.is_empty() && !asked.contains(&node) && is_cheap(&graph.nodes[node].kind)
    };
    // The sample cannot be made again, and the outputs are read by others.
    let goes = |node: usize| node != last && (again(node) || cheap(node));
    let of = |node: usize| {
        let asked = asked.contains(&node);
        let n_halves = halves.iter().filter(|&&half| half == node).count();
        // One operation makes it, from what is there.
        let at_once = !graph.nodes[node].inputs.iter().any(|&input| goes(input));
        match (asked, n_halves) {
            _ if node == last => Between::Stays,
            (true, 2..) if again(node) && at_once => Between::AgainEachTime,
            (true, 1..) if again(node) => Between::AgainInHalf,
            _ if goes(node) => Between::Again,
            (true, 1..) => Between::Half,
            _ => Between::Stays,
        }
    };
    (0..graph.nodes.len()).map(of).collect()
}

/// Whether making it again takes about as long as reading it.
fn is_cheap(kind: &NodeKind) -> bool {
    matches!(
        kind,
        NodeKind::Norm { .. }
            | NodeKind::Add { .. }
            | NodeKind::Activation(_)
            | NodeKind::Dropout(_)
            | NodeKind::Pool { .. }
    )
}

impl Lowering<'_> {
    /// The node whose values these are: others give them another shape only.
    pub(super) fn source(&self, mut node: usize) -> usize {
        loop {
            let this = &self.graph.nodes[node];
            let same = match this.kind {
                NodeKind::Reshape => true,
                // The convolution before does the pool, too.
                NodeKind::Pool { .. } => {
                    this.inputs[0] + 1 == node && self.can_pool(this.inputs[0]).is_some()
                }
                _ => false,
            };
            if !same {
                return node;
            }
            node = this.inputs[0];
        }
    }

    /// Puts away what no node behind this one needs on the way forward.
    pub(super) fn put_away_after(&mut self, node: usize) {
        let graph = self.graph;
        for i in 0..graph.nodes[node].inputs.len() {
            let source = self.sources[graph.nodes[node].inputs[i]];
            if self.is_last_use(node, source) && self.stored[source] == Stored::There {
                self.put_away(source);
            }
        }
    }

    /// Whether no node behind this one needs the values of `source` on the way forward.
    pub(super) fn is_last_use(&self, node: usize, source: usize) -> bool {
        let mut later = self.graph.nodes[node + 1..].iter().flat_map(|node| &node.inputs);
        // Another shape of it is not yet the end of it.
        self.sources[node] != source && later.all(|&input| self.sources[input] != source)
    }

    pub(super) fn put_away(&mut self, node: usize) {
        match self.between[node] {
            Between::Stays => {}
            Between::Again | Between::AgainInHalf | Between::AgainEachTime => {
                self.stored[node] = Stored::Gone
            }
            Between::Half => self.halve(node),
        }
    }

    fn halve(&mut self, node: usize) {
        let made = self.shrink(node, self.made[node]);
        let kept = self.kept[node].map(|kept| self.shrink(node, kept));
        self.stored[node] = Stored::Half { made, kept };
    }

    pub(super) fn precision(&self) -> Precision {
        let learning = self.purpose.learning.as_ref();
        learning.map_or(Precision::F32, |learning| learning.precision)
    }

    /// Stores a buffer of the batch in half precision.
    fn shrink(&mut self, node: usize, from: Buffer) -> Buffer {
        let len = self.specs[from.0].len;
        let into = self.transient(values_of(2 * len));
        let op = half::Shrink {
            len: len / self.purpose.batch,
            from,
            into,
            precision: self.precision(),
        };
        self.push(node, op, &[Some(from), Some(into)]);
        self.halved += len / self.purpose.batch;
        into
    }

    fn grow(&mut self, node: usize, from: Buffer, len: usize) -> Buffer {
        let into = self.of_batch(len);
        let op = half::Grow {
            len,
            from,
            into,
            precision: self.precision(),
        };
        self.push(node, op, &[Some(from), Some(into)]);
        into
    }

    /// What a node made, for the way back.
    pub(super) fn value(&mut self, node: usize) -> Buffer {
        self.asked[self.sources[node]] = true;
        self.bring_back(node);
        self.made[node]
    }

    /// Sees to it that the values of a node are there.
    pub(super) fn bring_back(&mut self, node: usize) {
        let source = self.sources[node];
        match self.stored[source] {
            Stored::There => {}
            Stored::Half { made, kept } => {
                let len = self.specs[self.made[source].0].len / self.purpose.batch;
                self.made[source] = self.grow(source, made, len);
                if let Some(kept) = kept {
                    self.kept[source] = Some(self.grow(source, kept, len));
                }
                self.stored[source] = Stored::There;
            }
            Stored::Gone => {
                let inputs = self.graph.nodes[source].inputs.iter();
                let inputs: Vec<usize> = inputs.map(|&input| self.sources[input]).collect();
                let before: Vec<Stored> = inputs.iter().map(|&input| self.stored[input]).collect();
                let reads_halves = self.reads_halves(source);
                for (i, before) in before.iter().enumerate() {
                    if !(reads_halves && matches!(before, Stored::Half { .. })) {
                        self.bring_back(self.graph.nodes[source].inputs[i]);
                    }
                }
                // What they are in full precision is used now, and may be written over.
                for (input, before) in inputs.into_iter().zip(before) {
                    self.wait_on(input, before);
                }
                self.stored[source] = Stored::There;
                self.again.push(source);
                self.forward(source);
                self.held.push((source, self.made[source]));
            }
        }
        if source != node {
            self.made[node] = self.made[source];
            self.pooled[node] = self.pooled[source];
        }
    }

    /// Where the values of a node wait in half precision.
    pub(super) fn waits_as(&self, node: usize) -> Option<Buffer> {
        match self.stored[self.sources[node]] {
            Stored::Half { made, .. } => Some(made),
            _ => None,
        }
    }

    /// Whether a node can be made again from values that wait in half precision.
    fn reads_halves(&self, node: usize) -> bool {
        match &self.graph.nodes[node].kind {
            NodeKind::Conv { window, groups, .. } => {
                let extent = self.conv_extent(node, window, *groups);
                pointwise_conv(window, &extent).is_none() && extent.reads_halves(self.pooled[node].as_ref())
            }
            _ => false,
        }
    }

    /// Has a value wait as it did `before` it was brought back to make another: it is not yet its turn.
    fn wait_on(&mut self, node: usize, before: Stored) {
        match before {
            Stored::Half { .. } => self.stored[node] = before,
            Stored::Gone if self.between[node] == Between::AgainEachTime => self.stored[node] = Stored::Gone,
            Stored::Gone if self.between[node] == Between::AgainInHalf => {
                self.halve(node);
                self.held.extend(self.waits_as(node).map(|half| (node, half)));
            }
            _ => {}
        }
    }

    /// The slope of what a node made, as the way back takes it.
    pub(super) fn slope_of(&mut self, node: usize) -> Option<Slope> {
        let slope = self.slopes[node]?;
        if !slope.half {
            return Some(slope);
        }
        let len = self.graph.nodes[node].shape.len();
        let grown = Slope {
            buffer: self.grow(node, slope.buffer, len),
            shared: false,
            half: false,
        };
        self.slopes[node] = Some(grown);
        Some(grown)
    }

    /// A slope that waits for a node further up.
    pub(super) fn waiting(&mut self, node: usize, input: usize, slope: Slope) -> Slope {
        // Only what others go on with is worth a copy: a slope of its own is in nobody's way.
        if !self.precision().is_half() || input + 1 >= node || !slope.shared {
            return slope;
        }
        Slope {
            buffer: self.shrink(node, slope.buffer),
            shared: false,
            half: true,
        }
    }
}
