//! A graph becomes operations: forward, back, and what weights do with their gradients; with the life of every buffer.

mod backward;
mod between;
mod forward;

use std::collections::BTreeMap;

use super::arena::{Buffer, Spec, values_of};
use super::graph::{Graph, NodeKind};
use super::kernels::correlate::Axis;
use super::loss::Loss;
use super::moments::{Moments, Packing};
use super::ops::{batch_norm, conv, dense, depthwise, loss, pool, sparse, update};
use super::precision::Precision;
use super::rule::Rule;
use super::shape::Window;
use super::step::{Learned, Op};

pub(crate) use between::Between;

/// What a program is made for.
#[derive(Debug, Clone)]
pub struct Purpose {
    /// Samples of a batch, at the most.
    pub batch: usize,
    pub threads: usize,
    /// How it learns; without it the program only predicts.
    pub learning: Option<Learning>,
}

#[derive(Debug, Clone)]
pub struct Learning {
    pub loss: Loss,
    pub rule: Rule,
    /// The norm beyond which gradients are made smaller.
    pub clip: Option<f32>,
    /// Whether gradients are kept until several batches are summed.
    pub accumulates: bool,
    /// Whether the slope by the sample itself is worked out, too.
    pub to_sample: bool,
    /// What the optimizer keeps of each weight.
    pub moments: Moments,
    /// What activations and slopes wait in; with `F16`, slopes are scaled.
    pub precision: Precision,
    /// Nodes of the graph whose values are made again on the way back, rather than kept.
    pub recompute: Vec<usize>,
}

impl Learning {
    /// Whether gradients wait until all of them are there.
    fn keeps_gradients(&self) -> bool {
        self.clip.is_some() || self.accumulates || self.scales()
    }

    /// Whether slopes are scaled, and steps skipped whose gradients are not finite.
    fn scales(&self) -> bool {
        self.precision == Precision::F16
    }
}

/// Operations and buffers, before they have places.
pub(crate) struct Lowered {
    pub specs: Vec<Spec>,
    pub ops: Vec<Placed>,
    /// Operations that are the way forward, the loss not included.
    pub n_forward: usize,
    /// Operations that are forward, loss, and back; the update follows.
    pub n_back: usize,
    pub input: Buffer,
    pub output: Buffer,
    pub targets: Buffer,
    pub losses: Buffer,
    pub scratch: Buffer,
    pub scratch_len: usize,
    pub weights: Vec<Buffer>,
    pub gradients: Vec<Option<Buffer>>,
    pub states: Vec<Vec<Buffer>>,
    /// Whether the states of a tensor are packed: bits rather than numbers.
    pub packed: Vec<bool>,
    /// Not 0 where the last step was skipped, with slopes that are scaled.
    pub skipped: Option<Buffer>,
    pub input_slope: Option<Buffer>,
    /// Nodes whose values the way back asks for, those that are made again for it, and the values of a sample that wait in
    /// half precision.
    pub asked: Vec<usize>,
    pub again: Vec<usize>,
    pub halved: usize,
    /// Where the values of nodes are on the way forward, and where those that are made again are then.
    pub held: Vec<(usize, Buffer)>,
    /// The node whose operation is the first to use a buffer, for buffers that do not live as long as the program.
    pub owners: BTreeMap<usize, usize>,
}

pub(crate) struct Placed {
    pub op: Box<dyn Op>,
    /// The node that it belongs to.
    pub node: usize,
    /// What a node makes, where this operation makes it.
    pub made: Option<(Buffer, usize)>,
    pub uses: Vec<Buffer>,
}

/// A slope and whether others read it, too.
#[derive(Debug, Clone, Copy)]
struct Slope {
    buffer: Buffer,
    shared: bool,
    /// Whether it is stored in half precision.
    half: bool,
}

struct Lowering<'a> {
    graph: &'a Graph,
    purpose: &'a Purpose,
    specs: Vec<Spec>,
    ops: Vec<Placed>,
    scratch_len: usize,
    /// What each node makes.
    made: Vec<Buffer>,
    /// What the activation of a node is given, where that is kept.
    kept: Vec<Option<Buffer>>,
    /// Other things that the way back asks for.
    told: Vec<Option<Buffer>>,
    /// The convolution of a max-pool that is done with it.
    pooled: Vec<Option<conv::Pooled>>,
    /// What becomes of the values of each node until the way back, and where they are then.
    between: Vec<Between>,
    stored: Vec<between::Stored>,
    /// The node whose values each node has, itself or another.
    sources: Vec<usize>,
    /// Nodes whose values the way back has asked for.
    asked: Vec<bool>,
    /// Nodes that are made again, where values have been, and the values of a sample that wait in half precision.
    again: Vec<usize>,
    held: Vec<(usize, Buffer)>,
    halved: usize,
    uses: Vec<usize>,
    slopes: Vec<Option<Slope>>,
    needs_slope: Vec<bool>,
    weights: Vec<Buffer>,
    learned: Vec<Option<Learned>>,
    skipped: Option<Buffer>,
    owners: BTreeMap<usize, usize>,
}

/// The operations of a graph, where all values stay until the way back.
pub(crate) fn lower(graph: &Graph, purpose: &Purpose) -> Lowered {
    lower_with(graph, purpose, vec![Between::Stays; graph.nodes.len()])
}

/// The operations of a graph; of the values that the way back `asked` for, those of `halves` wait in half precision, see
/// [`between::between`].
pub(crate) fn lower_between(graph: &Graph, purpose: &Purpose, asked: &[usize], halves: &[usize]) -> Lowered {
    lower_with(graph, purpose, between::between(graph, purpose, asked, halves))
}

fn lower_with(graph: &Graph, purpose: &Purpose, between: Vec<Between>) -> Lowered {
    let n_nodes = graph.nodes.len();
    let mut uses = vec![0; n_nodes];
    graph
        .nodes
        .iter()
        .flat_map(|node| &node.inputs)
        .for_each(|&input| uses[input] += 1);
    let mut lowering = Lowering {
        graph,
        purpose,
        specs: Vec::new(),
        ops: Vec::new(),
        scratch_len: 0,
        made: Vec::with_capacity(n_nodes),
        kept: vec![None; n_nodes],
        told: vec![None; n_nodes],
        pooled: vec![None; n_nodes],
        between,
        stored: vec![between::Stored::There; n_nodes],
        sources: Vec::new(),
        asked: vec![false; n_nodes],
        again: Vec::new(),
        held: Vec::new(),
        halved: 0,
        uses,
        slopes: vec![None; n_nodes],
        needs_slope: vec![false; n_nodes],
        weights: Vec::new(),
        learned: Vec::new(),
        skipped: None,
        owners: BTreeMap::new(),
    };
    lowering.sources = (0..n_nodes).map(|node| lowering.source(node)).collect();
    lowering.weights();
    lowering.needs();
    lowering.lower()
}

impl Lowering<'_> {
    fn persistent(&mut self, len: usize) -> Buffer {
        self.specs.push(Spec { len, life: None });
        Buffer(self.specs.len() - 1)
    }

    /// A buffer that lives while operations use it.
    fn transient(&mut self, len: usize) -> Buffer {
        self.specs.push(Spec {
            len,
            life: Some((usize::MAX, 0)),
        });
        Buffer(self.specs.len() - 1)
    }

    fn of_batch(&mut self, per_sample: usize) -> Buffer {
        self.transient(per_sample * self.purpose.batch)
    }

    fn bytes_of_batch(&mut self, per_sample: usize) -> Buffer {
        self.transient(values_of(per_sample * self.purpose.batch))
    }

    fn use_at(&mut self, buffer: Buffer, at: usize) {
        if let Some((first, last)) = &mut self.specs[buffer.0].life {
            *first = (*first).min(at);
            *last = (*last).max(at);
        }
    }

    fn push(&mut self, node: usize, op: impl Op + 'static, uses: &[Option<Buffer>]) {
        let at = self.ops.len();
        for buffer in uses.iter().flatten() {
            self.use_at(*buffer, at);
            self.owners.entry(buffer.0).or_insert(node);
        }
        self.ops.push(Placed {
            op: Box::new(op),
            node,
            made: None,
            uses: uses.iter().flatten().copied().collect(),
        });
    }

    fn weights(&mut self) {
        let learning = self.purpose.learning.clone();
        for weight in &self.graph.weights {
            let len = weight.form.len();
            let buffer = self.persistent(len);
            self.weights.push(buffer);
        }
        for (i, weight) in self.graph.weights.iter().enumerate() {
            let learned = learning.as_ref().filter(|_| weight.learned).map(|learning| {
                let len = weight.form.len();
                let gradient = learning.keeps_gradients().then(|| self.persistent(len));
                let packing = Packing::new(learning.moments, weight.form);
                let states = (0..learning.rule.n_states())
                    .map(|_| self.persistent(packing.room(len)))
                    .collect();
                Learned {
                    weight: self.weights[i],
                    gradient,
                    states,
                    packing,
                    number: i as u32,
                    rule: learning.rule,
                    row: self.graph.sparse_row(i),
                }
            });
            self.learned.push(learned);
        }
    }

    /// Which nodes anything that learns depends on.
    fn needs(&mut self) {
        let Some(learning) = &self.purpose.learning else {
            return;
        };
        self.needs_slope[0] = learning.to_sample;
        for (i, node) in self.graph.nodes.iter().enumerate() {
            let learns = weights_of(&node.kind)
                .into_iter()
                .any(|weight| self.learned[weight].is_some());
            self.needs_slope[i] |= learns || node.inputs.iter().any(|&input| self.needs_slope[input]);
        }
    }

    fn lower(mut self) -> Lowered {
        let graph = self.graph;
        let last = graph.nodes.len() - 1;
        for node in 0..graph.nodes.len() {
            self.forward(node);
            self.put_away_after(node);
        }
        let n_forward = self.ops.len();
        self.held = self.made.iter().copied().enumerate().collect();
        let outputs = graph.nodes[last].shape.len();
        let n_targets = match &self.purpose.learning {
            Some(learning) => learning.loss.n_targets(outputs),
            None => 0,
        };
        let targets = self.of_batch(n_targets);
        let losses = self.persistent(self.purpose.batch);
        let (input, output) = (self.made[0], self.made[last]);
        // The sample and the targets are there before the first operation, the outputs until somebody has read them.
        for buffer in [input, targets] {
            self.use_at(buffer, 0);
        }
        self.use_at(output, n_forward + 1);
        if let Some(learning) = &self.purpose.learning {
            let slope = self.needs_slope[last].then(|| self.of_batch(outputs));
            self.slopes[last] = slope.map(|buffer| Slope {
                buffer,
                shared: false,
                half: false,
            });
            let losses_op = loss::Losses {
                loss: learning.loss.clone(),
                outputs,
                made: output,
                targets,
                losses,
                slope,
            };
            self.push(last, losses_op, &[Some(output), Some(targets), slope]);
            for node in (0..graph.nodes.len()).rev() {
                if let Some(slope) = self.slope_of(node).filter(|_| self.needs_slope[node]) {
                    self.backward(node, slope);
                }
            }
        }
        let input_slope = self.slope_of(0).map(|slope| slope.buffer);
        let n_back = self.ops.len();
        self.update();
        if let Some(buffer) = input_slope {
            let end = self.ops.len();
            self.use_at(buffer, end);
        }
        let scratch_len = self.scratch_len.next_multiple_of(16);
        let scratch = self.persistent(scratch_len * self.purpose.threads);
        Lowered {
            asked: (0..self.asked.len()).filter(|&node| self.asked[node]).collect(),
            again: self.again,
            halved: self.halved,
            held: self.held,
            specs: self.specs,
            ops: self.ops,
            n_forward,
            n_back,
            input,
            output,
            targets,
            losses,
            scratch,
            scratch_len,
            gradients: self
                .learned
                .iter()
                .map(|learned| learned.as_ref().and_then(|learned| learned.gradient))
                .collect(),
            states: self
                .learned
                .iter()
                .map(|learned| {
                    learned
                        .as_ref()
                        .map_or(Vec::new(), |learned| learned.states.clone())
                })
                .collect(),
            packed: self
                .learned
                .iter()
                .map(|learned| {
                    learned
                        .as_ref()
                        .is_some_and(|learned| learned.packing != Packing::F32)
                })
                .collect(),
            skipped: self.skipped,
            weights: self.weights,
            input_slope,
            owners: self.owners,
        }
    }

    fn update(&mut self) {
        let Some(learning) = &self.purpose.learning else {
            return;
        };
        if !learning.keeps_gradients() {
            return;
        }
        let (clip, scales) = (learning.clip, learning.scales());
        let mut parts = Vec::new();
        for (learned, weight) in self.learned.iter().zip(&self.graph.weights) {
            let Some(learned) = learned else { continue };
            let len = weight.form.len();
            // Whole rows, and whole units of packed moments.
            let whole = learned.row.unwrap_or(learned.packing.unit());
            let part = (update::PART / whole).max(1) * whole;
            for start in (0..len).step_by(part) {
                parts.push((learned.clone(), start..(start + part).min(len)));
            }
        }
        let sums = self.transient(parts.len());
        self.skipped = scales.then(|| self.persistent(1));
        let op = update::Update {
            parts,
            clip,
            sums,
            skipped: self.skipped,
        };
        self.push(0, op, &[Some(sums)]);
    }

    fn scratch(&mut self, len: usize) {
        self.scratch_len = self.scratch_len.max(len);
    }

    fn images(&self, node: usize) -> ([usize; 3], [usize; 3]) {
        let this = &self.graph.nodes[node];
        let image = |node: usize| self.graph.nodes[node].shape.image().unwrap_or([1, 1, 1]);
        (image(this.inputs[0]), image(node))
    }

    fn conv_extent(&self, node: usize, window: &Window, groups: usize) -> conv::Extent {
        let (input, output) = self.images(node);
        conv::Extent::new(input, output, window, groups)
    }

    fn depthwise_extent(&self, node: usize, window: &Window) -> depthwise::Extent {
        let (input, output) = self.images(node);
        let [rows, cols] = axes(window, input, output);
        depthwise::Extent {
            input,
            output,
            rows,
            cols,
        }
    }

    fn pool_extent(&self, node: usize, window: &Window) -> pool::Extent {
        let (input, output) = self.images(node);
        let [rows, cols] = axes(window, input, output);
        pool::Extent {
            input,
            output,
            rows,
            cols,
        }
    }

    fn sparse_extent(&self, node: usize) -> sparse::Extent {
        match self.graph.nodes[node].kind {
            NodeKind::Sparse {
                dense,
                pairs,
                width,
                places,
                ..
            } => sparse::Extent {
                dense,
                pairs,
                places,
                width,
            },
            _ => unreachable!("a node of sparse columns"),
        }
    }

    fn norm_extent(&self, node: usize) -> batch_norm::Extent {
        let this = &self.graph.nodes[node];
        let (epsilon, activation) = match &this.kind {
            NodeKind::Norm {
                epsilon, activation, ..
            } => (*epsilon, *activation),
            _ => (0.0, None),
        };
        batch_norm::Extent {
            places: this.shape.places(),
            channels: this.shape.channels(),
            epsilon,
            activation,
        }
    }
}

fn axes(window: &Window, input: [usize; 3], output: [usize; 3]) -> [Axis; 2] {
    [0, 1].map(|i| Axis {
        n: output[i],
        source: input[i],
        step: window.stride[i],
        offset: -(window.before[i] as isize),
        taps: window.kernel[i],
        dilation: window.dilation[i],
    })
}

/// A convolution of single places is a dense layer over them.
fn pointwise_conv(window: &Window, extent: &conv::Extent) -> Option<dense::Extent> {
    let single = window.kernel == [1, 1] && window.stride == [1, 1] && window.before == [0, 0];
    (single && extent.groups == 1).then(|| dense::Extent {
        inputs: extent.input[2],
        outputs: extent.output[2],
        places: extent.output[0] * extent.output[1],
    })
}

fn weights_of(kind: &NodeKind) -> Vec<usize> {
    match kind {
        NodeKind::Dense { weight, bias, .. }
        | NodeKind::Conv { weight, bias, .. }
        | NodeKind::Depthwise { weight, bias, .. } => [Some(*weight), *bias].into_iter().flatten().collect(),
        NodeKind::Norm { scale, shift, .. } => vec![*scale, *shift],
        NodeKind::Embedding { weight, .. } | NodeKind::Sparse { weight, .. } => vec![*weight],
        _ => Vec::new(),
    }
}
