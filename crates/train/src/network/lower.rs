//! A graph becomes operations: forward, back, and what weights do with their gradients; with the life of every buffer.

use super::arena::{Buffer, Spec};
use super::graph::{Graph, NodeKind};
use super::kernels::correlate::Axis;
use super::layer::{Activation, Over, PoolKind};
use super::loss::Loss;
use super::ops::{conv, dense, depthwise, embedding, loss, norm, pointwise, pool, update};
use super::rule::Rule;
use super::shape::Window;
use super::step::{Learned, Op};

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
    pub input_slope: Option<Buffer>,
}

pub(crate) struct Placed {
    pub op: Box<dyn Op>,
    /// The node that it belongs to.
    pub node: usize,
    /// What a node makes, where this operation makes it.
    pub made: Option<(Buffer, usize)>,
}

/// A slope and whether others read it, too.
#[derive(Debug, Clone, Copy)]
struct Slope {
    buffer: Buffer,
    shared: bool,
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
    uses: Vec<usize>,
    slopes: Vec<Option<Slope>>,
    needs_slope: Vec<bool>,
    weights: Vec<Buffer>,
    learned: Vec<Option<Learned>>,
}

pub(crate) fn lower(graph: &Graph, purpose: &Purpose) -> Lowered {
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
        uses,
        slopes: vec![None; n_nodes],
        needs_slope: vec![false; n_nodes],
        weights: Vec::new(),
        learned: Vec::new(),
    };
    lowering.weights();
    lowering.needs();
    lowering.lower()
}

impl Lowering<'_> {
    fn persistent(&mut self, name: String, len: usize) -> Buffer {
        self.specs.push(Spec {
            name,
            len,
            life: None,
        });
        Buffer(self.specs.len() - 1)
    }

    /// A buffer that lives while operations use it.
    fn transient(&mut self, name: &str, len: usize) -> Buffer {
        self.specs.push(Spec {
            name: name.into(),
            len,
            life: Some((usize::MAX, 0)),
        });
        Buffer(self.specs.len() - 1)
    }

    fn of_batch(&mut self, name: &str, per_sample: usize) -> Buffer {
        self.transient(name, per_sample * self.purpose.batch)
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
        }
        self.ops.push(Placed {
            op: Box::new(op),
            node,
            made: None,
        });
    }

    fn weights(&mut self) {
        let learning = self.purpose.learning.clone();
        for weight in &self.graph.weights {
            let len = weight.form.len();
            let buffer = self.persistent(weight.name.clone(), len);
            self.weights.push(buffer);
        }
        for (i, weight) in self.graph.weights.iter().enumerate() {
            let learned = learning.as_ref().filter(|_| weight.learned).map(|learning| {
                let len = weight.form.len();
                let keeps = learning.clip.is_some() || learning.accumulates;
                let gradient =
                    keeps.then(|| self.persistent(format!("gradient of {}", weight.name), len));
                let states = (0..learning.rule.n_states())
                    .map(|_| self.persistent(format!("state of {}", weight.name), len))
                    .collect();
                Learned {
                    weight: self.weights[i],
                    gradient,
                    states,
                    rule: learning.rule,
                }
            });
            self.learned.push(learned);
        }
    }

    /// Which nodes anything that learns depends on.
    fn needs(&mut self) {
        let Some(learning) = &self.purpose.learning else { return };
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
        }
        let n_forward = self.ops.len();
        let outputs = graph.nodes[last].shape.len();
        let n_targets = match &self.purpose.learning {
            Some(learning) => learning.loss.n_targets(outputs),
            None => 0,
        };
        let targets = self.of_batch("targets", n_targets);
        let losses = self.persistent("losses".into(), self.purpose.batch);
        let output = self.made[last];
        // The sample and the targets are there before the first operation, the outputs until somebody has read them.
        for buffer in [self.made[0], targets] {
            self.use_at(buffer, 0);
        }
        self.use_at(output, n_forward);
        if let Some(learning) = &self.purpose.learning {
            let slope = self.needs_slope[last].then(|| self.of_batch("slope of outputs", outputs));
            self.slopes[last] = slope.map(|buffer| Slope {
                buffer,
                shared: false,
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
                if let Some(slope) = self.slopes[node].filter(|_| self.needs_slope[node]) {
                    self.backward(node, slope);
                }
            }
        }
        let n_back = self.ops.len();
        self.update();
        let input_slope = self.slopes[0].map(|slope| slope.buffer);
        if let Some(buffer) = input_slope {
            let end = self.ops.len();
            self.use_at(buffer, end);
        }
        let scratch_len = self.scratch_len.next_multiple_of(16);
        let scratch = self.persistent("scratch of threads".into(), scratch_len * self.purpose.threads);
        Lowered {
            specs: self.specs,
            ops: self.ops,
            n_forward,
            n_back,
            input: self.made[0],
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
                .map(|learned| learned.as_ref().map_or(Vec::new(), |learned| learned.states.clone()))
                .collect(),
            weights: self.weights,
            input_slope,
        }
    }

    fn update(&mut self) {
        let Some(learning) = &self.purpose.learning else { return };
        if learning.clip.is_none() && !learning.accumulates {
            return;
        }
        let mut parts = Vec::new();
        for (learned, weight) in self.learned.iter().zip(&self.graph.weights) {
            let Some(learned) = learned else { continue };
            let len = weight.form.len();
            for start in (0..len).step_by(update::PART) {
                parts.push((learned.clone(), start..(start + update::PART).min(len)));
            }
        }
        let clip = learning.clip;
        let sums = self.transient("norms of gradients", parts.len());
        self.push(0, update::Update { parts, clip, sums }, &[Some(sums)]);
    }

    fn scratch(&mut self, len: usize) {
        self.scratch_len = self.scratch_len.max(len);
    }

    /// A buffer for what the activation is given, where its slope asks for that.
    fn kept_for(&mut self, node: usize, activation: Option<Activation>) -> Option<Buffer> {
        let asks = activation.is_some_and(|activation| !activation.slope_from_result());
        let kept = (asks && self.needs_slope[node])
            .then(|| self.of_batch("before activation", self.graph.nodes[node].shape.len()));
        self.kept[node] = kept;
        kept
    }

    fn forward(&mut self, node: usize) {
        let graph = self.graph;
        let this = &graph.nodes[node];
        let len = this.shape.len();
        if let NodeKind::Reshape = this.kind {
            let same = self.made[this.inputs[0]];
            self.made.push(same);
            return;
        }
        if let Some(pooled) = self.pooled_before(node) {
            // The convolution before has done it, and made what this node makes.
            let made = self.made[this.inputs[0]];
            self.made.push(made);
            self.pooled[node] = Some(pooled);
            return;
        }
        let x = this.inputs.first().map(|&input| self.made[input]);
        let from = this.inputs.first().map(|&input| &graph.nodes[input].shape);
        if let NodeKind::Add { activation } = this.kind {
            self.forward_add(node, activation);
            return;
        }
        let fused = self.can_pool(node);
        let y_len = fused.map_or(len, |(_, [rows, columns])| {
            rows * columns * graph.nodes[node + 1].shape.channels()
        });
        let y = self.of_batch(&this.name, y_len);
        self.made.push(y);
        let (Some(x), Some(from)) = (x, from) else { return };
        match &this.kind {
            NodeKind::Dense {
                inputs,
                outputs,
                weight,
                bias,
                activation,
            } => {
                let extent = dense::Extent {
                    inputs: *inputs,
                    outputs: *outputs,
                    places: this.shape.places(),
                };
                let kept = self.kept_for(node, *activation);
                let op = dense::Forward {
                    extent,
                    x,
                    weight: self.weights[*weight],
                    bias: bias.map(|bias| self.weights[bias]),
                    y,
                    activation: *activation,
                    kept,
                };
                self.push(node, op, &[Some(x), Some(y), kept]);
            }
            NodeKind::Conv {
                window,
                groups,
                weight,
                bias,
                activation,
            } => {
                let extent = self.conv_extent(node, window, *groups);
                let (weight, bias) = (self.weights[*weight], bias.map(|bias| self.weights[bias]));
                let pooled = fused.map(|(size, out)| conv::Pooled {
                    size,
                    out,
                    chosen: self.of_batch("chosen", conv::Pooled::chosen_len(y_len)),
                });
                self.pooled[node] = pooled;
                if pooled.is_none()
                    && let Some(places) = pointwise_conv(window, *groups)
                {
                    let extent = dense::Extent {
                        inputs: extent.input[2],
                        outputs: extent.output[2],
                        places: places * extent.output[0] * extent.output[1],
                    };
                    let kept = self.kept_for(node, *activation);
                    let op = dense::Forward {
                        extent,
                        x,
                        weight,
                        bias,
                        y,
                        activation: *activation,
                        kept,
                    };
                    self.push(node, op, &[Some(x), Some(y), kept]);
                    return self.mark(node, y, len);
                }
                self.scratch(conv::Forward::scratch(&extent, pooled.as_ref()));
                let kept = match pooled {
                    Some(_) => None,
                    None => self.kept_for(node, *activation),
                };
                let op = conv::Forward {
                    extent,
                    x,
                    weight,
                    bias,
                    y,
                    activation: *activation,
                    kept,
                    pooled,
                };
                self.push(node, op, &[Some(x), Some(y), kept, pooled.map(|pooled| pooled.chosen)]);
            }
            NodeKind::Depthwise {
                window,
                weight,
                bias,
                activation,
            } => {
                let kept = self.kept_for(node, *activation);
                let op = depthwise::Forward {
                    extent: self.depthwise_extent(node, window),
                    x,
                    weight: self.weights[*weight],
                    bias: bias.map(|bias| self.weights[bias]),
                    y,
                    activation: *activation,
                    kept,
                };
                self.push(node, op, &[Some(x), Some(y), kept]);
            }
            NodeKind::Pool { kind, window } => {
                let back = *kind == PoolKind::Max && self.needs_slope[node];
                let chosen = back.then(|| self.of_batch("chosen", len));
                self.told[node] = chosen;
                let op = pool::Forward {
                    kind: *kind,
                    extent: self.pool_extent(node, window),
                    x,
                    y,
                    chosen,
                };
                self.push(node, op, &[Some(x), Some(y), chosen]);
            }
            NodeKind::GlobalPool(kind) => {
                let back = *kind == PoolKind::Max && self.needs_slope[node];
                let chosen = back.then(|| self.of_batch("chosen", len));
                self.told[node] = chosen;
                let op = pool::Global {
                    kind: *kind,
                    places: from.places(),
                    channels: from.channels(),
                    x,
                    y,
                    chosen,
                };
                self.push(node, op, &[Some(x), Some(y), chosen]);
            }
            NodeKind::Dropout(share) => {
                let op = pointwise::Dropout {
                    len,
                    share: *share,
                    key: node as u32,
                    from: x,
                    into: y,
                    add: false,
                };
                self.push(node, op, &[Some(x), Some(y)]);
            }
            NodeKind::Activation(activation) => {
                let op = pointwise::Activate {
                    len,
                    x,
                    y,
                    activation: *activation,
                };
                self.push(node, op, &[Some(x), Some(y)]);
            }
            NodeKind::Norm { .. } => self.forward_norm(node, x, y),
            NodeKind::Embedding { width, tokens, weight } => {
                let op = embedding::Forward {
                    extent: embedding::Extent {
                        places: from.len(),
                        tokens: *tokens,
                        width: *width,
                    },
                    x,
                    weight: self.weights[*weight],
                    y,
                };
                self.push(node, op, &[Some(x), Some(y)]);
            }
            NodeKind::Input | NodeKind::Reshape | NodeKind::Add { .. } => {}
        }
        self.mark(node, y, y_len);
    }

    /// Notes that the last operation makes what the node makes.
    fn mark(&mut self, node: usize, made: Buffer, len: usize) {
        if let Some(op) = self.ops.last_mut().filter(|op| op.node == node) {
            op.made = Some((made, len));
        }
    }

    fn forward_add(&mut self, node: usize, activation: Option<Activation>) {
        let this = &self.graph.nodes[node];
        let [a, b] = [this.inputs[0], this.inputs[1]];
        let len = this.shape.len();
        let kept = self.kept_for(node, activation);
        // The sum takes the place of a branch that nobody asks for any more.
        let free = |input: usize| {
            let alone = self.uses[input] == 1 && input != 0;
            alone
                && match &self.graph.nodes[input].kind {
                    NodeKind::Norm { .. } => true,
                    NodeKind::Conv { activation, .. } | NodeKind::Depthwise { activation, .. } => {
                        activation.is_none() && self.pooled[input].is_none()
                    }
                    _ => false,
                }
        };
        let y = match kept.is_none() && free(a) && a != b {
            true => self.made[a],
            false => self.of_batch(&this.name, len),
        };
        self.made.push(y);
        let op = pointwise::Add {
            len,
            a: self.made[a],
            b: self.made[b],
            y,
            activation,
            kept,
        };
        let uses = [Some(self.made[a]), Some(self.made[b]), Some(y), kept];
        self.push(node, op, &uses);
        self.mark(node, y, len);
    }

    fn forward_norm(&mut self, node: usize, x: Buffer, y: Buffer) {
        let NodeKind::Norm {
            over,
            groups,
            momentum,
            scale,
            shift,
            running,
            ..
        } = self.graph.nodes[node].kind
        else {
            return;
        };
        let extent = self.norm_extent(node);
        let (scale_buffer, shift_buffer) = (self.weights[scale], self.weights[shift]);
        match (over, running) {
            (Over::Batch, Some((mean, variance))) => {
                let told = self.transient("mean and deviation", 2 * extent.channels);
                let partial = self.transient("sums of parts", 2 * norm::PARTS * extent.channels);
                self.told[node] = Some(told);
                let op = norm::Batch {
                    extent,
                    x,
                    y,
                    scale: scale_buffer,
                    shift: shift_buffer,
                    running: (self.weights[mean], self.weights[variance]),
                    momentum,
                    frozen: !self.graph.weights[scale].learned,
                    told,
                    partial,
                    batch: self.purpose.batch,
                };
                self.push(node, op, &[Some(x), Some(y), Some(told), Some(partial)]);
            }
            _ => {
                let within = norm::Within {
                    extent,
                    groups: (over == Over::Group).then_some(groups),
                };
                let told = self.of_batch("means and deviations", within.told_len());
                self.told[node] = Some(told);
                let op = norm::Forward {
                    within,
                    x,
                    y,
                    scale: scale_buffer,
                    shift: shift_buffer,
                    told,
                };
                self.push(node, op, &[Some(x), Some(y), Some(told)]);
            }
        }
    }

    /// Where the slope of an input goes, and whether it is added to what is there; `None` if nobody asks.
    fn slope_into(&mut self, node: usize, i: usize, slope: Buffer) -> Option<(Buffer, bool)> {
        let input = self.graph.nodes[node].inputs[i];
        if !self.needs_slope[input] {
            return None;
        }
        let len = self.graph.nodes[input].shape.len();
        match self.slopes[input] {
            Some(known) if known.buffer != slope => Some((known.buffer, true)),
            Some(known) => {
                // What is read must not be what is written.
                let own = self.of_batch("slope", len);
                let copy = pointwise::Copy {
                    len,
                    from: known.buffer,
                    into: own,
                    add: false,
                };
                self.push(node, copy, &[Some(known.buffer), Some(own)]);
                self.slopes[input] = Some(Slope {
                    buffer: own,
                    shared: false,
                });
                Some((own, true))
            }
            None => {
                let buffer = self.of_batch("slope", len);
                self.slopes[input] = Some(Slope {
                    buffer,
                    shared: false,
                });
                Some((buffer, false))
            }
        }
    }

    /// The slope before the activation.
    fn undo(&mut self, node: usize, activation: Option<Activation>, slope: Slope) -> Buffer {
        let Some(activation) = activation else { return slope.buffer };
        let len = self.graph.nodes[node].shape.len();
        let told = self.kept[node].unwrap_or(self.made[node]);
        let into = slope.shared.then(|| (self.of_batch("slope", len), false));
        let op = pointwise::ActivateBack {
            len,
            told,
            slope: slope.buffer,
            into,
            activation,
        };
        self.push(node, op, &[Some(told), Some(slope.buffer), into.map(|(into, _)| into)]);
        into.map_or(slope.buffer, |(into, _)| into)
    }

    fn learned_of(&self, weight: Option<usize>) -> Option<Learned> {
        weight.and_then(|weight| self.learned[weight].clone())
    }

    fn backward(&mut self, node: usize, slope: Slope) {
        let graph = self.graph;
        let this = &graph.nodes[node];
        let batch = self.purpose.batch;
        if let NodeKind::Input = this.kind {
            return;
        }
        let input = this.inputs[0];
        let x = self.made[input];
        match &this.kind {
            NodeKind::Input => {}
            NodeKind::Reshape => self.pass_on(node, 0, slope),
            NodeKind::Add { activation } => {
                let undone = self.undo(node, *activation, slope);
                let shared = Slope {
                    buffer: undone,
                    shared: true,
                };
                self.pass_on(node, 0, shared);
                self.pass_on(node, 1, shared);
            }
            NodeKind::Dense {
                inputs,
                outputs,
                weight,
                bias,
                activation,
            } => {
                let undone = self.undo(node, *activation, slope);
                let extent = dense::Extent {
                    inputs: *inputs,
                    outputs: *outputs,
                    places: this.shape.places(),
                };
                self.backward_dense(node, extent, (*weight, *bias), x, undone);
            }
            NodeKind::Conv {
                window,
                groups,
                weight,
                bias,
                activation,
            } => {
                let extent = self.conv_extent(node, window, *groups);
                let pooled = self.pooled[node];
                if pooled.is_none()
                    && let Some(places) = pointwise_conv(window, *groups)
                {
                    let undone = self.undo(node, *activation, slope);
                    let extent = dense::Extent {
                        inputs: extent.input[2],
                        outputs: extent.output[2],
                        places: places * extent.output[0] * extent.output[1],
                    };
                    return self.backward_dense(node, extent, (*weight, *bias), x, undone);
                }
                let undone = match pooled {
                    None => self.undo(node, *activation, slope),
                    Some(_) => self.own(node, slope),
                };
                let x_slope = self.slope_into(node, 0, undone);
                let (learned, bias) = (self.learned_of(Some(*weight)), self.learned_of(*bias));
                let turned = x_slope
                    .is_some()
                    .then(|| self.transient("weights turned", extent.weights()));
                let sums = extent.sums_parts() && (learned.is_some() || bias.is_some());
                let partial = sums.then(|| self.transient("sums of parts", extent.partial_len(batch)));
                self.scratch(conv::Backward::scratch(&extent, pooled.is_some(), x_slope.is_some()));
                let y = self.made[node];
                let op = conv::Backward {
                    extent,
                    x,
                    weight: self.weights[*weight],
                    slope: undone,
                    pooled: pooled.map(|pooled| (pooled, y, *activation)),
                    x_slope,
                    turned,
                    partial,
                    learned,
                    bias,
                    batch,
                };
                let uses = [
                    Some(x),
                    Some(undone),
                    x_slope.map(|(buffer, _)| buffer),
                    turned,
                    partial,
                    pooled.map(|pooled| pooled.chosen),
                    pooled.map(|_| y),
                ];
                self.push(node, op, &uses);
            }
            NodeKind::Depthwise {
                window,
                weight,
                bias,
                activation,
            } => {
                let undone = self.undo(node, *activation, slope);
                let x_slope = self.slope_into(node, 0, undone);
                let extent = self.depthwise_extent(node, window);
                let (learned, bias) = (self.learned_of(Some(*weight)), self.learned_of(*bias));
                let sums = learned.is_some() || bias.is_some();
                let partial = sums.then(|| self.transient("sums of parts", extent.partial_len(batch)));
                let op = depthwise::Backward {
                    extent,
                    x,
                    weight: self.weights[*weight],
                    slope: undone,
                    x_slope,
                    partial,
                    learned,
                    bias,
                    batch,
                };
                let uses = [Some(x), Some(undone), x_slope.map(|(buffer, _)| buffer), partial];
                self.push(node, op, &uses);
            }
            NodeKind::Pool { .. } if self.pooled[node].is_some() => {
                // The convolution before takes the slope as it is.
                self.slopes[input] = Some(slope);
            }
            NodeKind::Pool { kind, window } => {
                let Some((x_slope, add)) = self.slope_into(node, 0, slope.buffer) else { return };
                let chosen = self.told[node];
                let op = pool::Backward {
                    kind: *kind,
                    extent: self.pool_extent(node, window),
                    slope: slope.buffer,
                    chosen,
                    x_slope,
                    add,
                };
                self.push(node, op, &[Some(slope.buffer), Some(x_slope), chosen]);
            }
            NodeKind::GlobalPool(_) => {
                let Some((x_slope, add)) = self.slope_into(node, 0, slope.buffer) else { return };
                let from = &graph.nodes[input].shape;
                let chosen = self.told[node];
                let op = pool::GlobalBack {
                    places: from.places(),
                    channels: from.channels(),
                    slope: slope.buffer,
                    chosen,
                    x_slope,
                    add,
                };
                self.push(node, op, &[Some(slope.buffer), Some(x_slope), chosen]);
            }
            NodeKind::Dropout(share) => {
                let Some((x_slope, add)) = self.slope_into(node, 0, slope.buffer) else { return };
                let op = pointwise::Dropout {
                    len: this.shape.len(),
                    share: *share,
                    key: node as u32,
                    from: slope.buffer,
                    into: x_slope,
                    add,
                };
                self.push(node, op, &[Some(slope.buffer), Some(x_slope)]);
            }
            NodeKind::Activation(activation) => {
                let slope = self.own(node, slope);
                let Some(into) = self.slope_into(node, 0, slope) else { return };
                let told = if activation.slope_from_result() { self.made[node] } else { x };
                let op = pointwise::ActivateBack {
                    len: this.shape.len(),
                    told,
                    slope,
                    into: Some(into),
                    activation: *activation,
                };
                self.push(node, op, &[Some(told), Some(slope), Some(into.0)]);
            }
            NodeKind::Norm { .. } => self.backward_norm(node, x, slope.buffer),
            NodeKind::Embedding { width, tokens, weight } => {
                let Some(learned) = self.learned_of(Some(*weight)) else { return };
                let sums = self.transient("gradient of an embedding", tokens * width);
                let op = embedding::Backward {
                    extent: embedding::Extent {
                        places: graph.nodes[input].shape.len(),
                        tokens: *tokens,
                        width: *width,
                    },
                    x,
                    slope: slope.buffer,
                    sums,
                    learned,
                };
                self.push(node, op, &[Some(x), Some(slope.buffer), Some(sums)]);
            }
        }
    }

    /// A slope that nobody else reads.
    fn own(&mut self, node: usize, slope: Slope) -> Buffer {
        if !slope.shared {
            return slope.buffer;
        }
        let len = self.specs[slope.buffer.0].len / self.purpose.batch;
        let own = self.of_batch("slope", len);
        let copy = pointwise::Copy {
            len,
            from: slope.buffer,
            into: own,
            add: false,
        };
        self.push(node, copy, &[Some(slope.buffer), Some(own)]);
        own
    }

    /// The slope of an input is that of the node.
    fn pass_on(&mut self, node: usize, i: usize, slope: Slope) {
        let input = self.graph.nodes[node].inputs[i];
        if !self.needs_slope[input] {
            return;
        }
        match self.slopes[input] {
            None => self.slopes[input] = Some(slope),
            Some(_) => {
                let len = self.graph.nodes[input].shape.len();
                let Some((into, _)) = self.slope_into(node, i, slope.buffer) else { return };
                let copy = pointwise::Copy {
                    len,
                    from: slope.buffer,
                    into,
                    add: true,
                };
                self.push(node, copy, &[Some(slope.buffer), Some(into)]);
            }
        }
    }

    fn backward_dense(
        &mut self,
        node: usize,
        extent: dense::Extent,
        (weight, bias): (usize, Option<usize>),
        x: Buffer,
        slope: Buffer,
    ) {
        // The input's slope comes first: it asks for the weights as they were.
        if let Some((x_slope, add)) = self.slope_into(node, 0, slope) {
            self.scratch(dense::ToInput::scratch(extent));
            let op = dense::ToInput {
                extent,
                weight: self.weights[weight],
                slope,
                x_slope,
                add,
            };
            self.push(node, op, &[Some(slope), Some(x_slope)]);
        }
        let (learned, bias) = (self.learned_of(Some(weight)), self.learned_of(bias));
        if learned.is_none() && bias.is_none() {
            return;
        }
        self.scratch(dense::ToWeights::scratch(extent));
        let parts = dense::ToWeights::parts(extent).filter(|_| learned.is_some());
        let partial = parts.map(|parts| {
            let len = parts * extent.inputs * extent.outputs;
            (self.transient("sums of parts", len), parts)
        });
        let op = dense::ToWeights {
            extent,
            x,
            slope,
            weight: learned,
            bias,
            partial,
        };
        self.push(node, op, &[Some(x), Some(slope), partial.map(|(partial, _)| partial)]);
    }

    fn backward_norm(&mut self, node: usize, x: Buffer, slope: Buffer) {
        let NodeKind::Norm {
            over,
            groups,
            scale,
            shift,
            ..
        } = self.graph.nodes[node].kind
        else {
            return;
        };
        let extent = self.norm_extent(node);
        let batch = self.purpose.batch;
        let x_slope = self.slope_into(node, 0, slope);
        let (learned_scale, learned_shift) = (self.learned_of(Some(scale)), self.learned_of(Some(shift)));
        let partial = self.transient("sums of parts", 2 * norm::PARTS * extent.channels);
        let Some(told) = self.told[node] else { return };
        let uses = [
            Some(x),
            Some(slope),
            Some(told),
            Some(partial),
            x_slope.map(|(buffer, _)| buffer),
        ];
        let frozen = !self.graph.weights[scale].learned;
        let (scale, shift) = (self.weights[scale], self.weights[shift]);
        match over {
            Over::Batch => {
                let op = norm::BatchBack {
                    extent,
                    x,
                    slope,
                    scale,
                    shift,
                    frozen,
                    told,
                    partial,
                    x_slope,
                    learned_scale,
                    learned_shift,
                    batch,
                };
                self.push(node, op, &uses);
            }
            _ => {
                let op = norm::Backward {
                    within: norm::Within {
                        extent,
                        groups: (over == Over::Group).then_some(groups),
                    },
                    x,
                    slope,
                    scale,
                    shift,
                    told,
                    partial,
                    x_slope,
                    learned_scale,
                    learned_shift,
                    batch,
                };
                self.push(node, op, &uses);
            }
        }
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

    fn norm_extent(&self, node: usize) -> norm::Extent {
        let this = &self.graph.nodes[node];
        let (epsilon, activation) = match &this.kind {
            NodeKind::Norm {
                epsilon, activation, ..
            } => (*epsilon, *activation),
            _ => (0.0, None),
        };
        norm::Extent {
            places: this.shape.places(),
            channels: this.shape.channels(),
            epsilon,
            activation,
        }
    }

    /// The size and output of a max-pool that the convolution `node` can do at once.
    fn can_pool(&self, node: usize) -> Option<([usize; 2], [usize; 2])> {
        let this = &self.graph.nodes[node];
        let NodeKind::Conv {
            window: over,
            groups,
            activation,
            ..
        } = &this.kind
        else {
            return None;
        };
        let next = self.graph.nodes.get(node + 1)?;
        let NodeKind::Pool {
            kind: PoolKind::Max,
            window,
        } = &next.kind
        else {
            return None;
        };
        let extent = self.conv_extent(node, over, *groups);
        let grows = activation.is_none_or(Activation::slope_from_result);
        let fits = next.inputs == [node]
            && self.uses[node] == 1
            && window.kernel == window.stride
            && window.before == [0, 0]
            && window.kernel[0] * window.kernel[1] < 256
            && grows
            && extent.is_direct()
            && extent.sums_parts()
            && extent.y_len() <= MOST_SPREAD;
        let [rows, columns, _] = next.shape.image()?;
        // A window that reaches beyond the border is not one that only drops what is left over.
        let [from_rows, from_columns, _] = this.shape.image()?;
        let inside = rows * window.kernel[0] <= from_rows && columns * window.kernel[1] <= from_columns;
        (fits && inside).then_some((window.kernel, [rows, columns]))
    }

    /// The pool that the convolution before has done already.
    fn pooled_before(&self, node: usize) -> Option<conv::Pooled> {
        let this = &self.graph.nodes[node];
        match this.kind {
            NodeKind::Pool { .. } if this.inputs == [node.wrapping_sub(1)] => self.pooled[node - 1],
            _ => None,
        }
    }
}

/// Values of an image that the way back of a fused pool may hold for every thread.
const MOST_SPREAD: usize = 1 << 20;

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
fn pointwise_conv(window: &Window, groups: usize) -> Option<usize> {
    let single = window.kernel == [1, 1] && window.stride == [1, 1] && window.before == [0, 0];
    (single && groups == 1).then_some(1)
}

fn weights_of(kind: &NodeKind) -> Vec<usize> {
    match kind {
        NodeKind::Dense { weight, bias, .. }
        | NodeKind::Conv { weight, bias, .. }
        | NodeKind::Depthwise { weight, bias, .. } => [Some(*weight), *bias].into_iter().flatten().collect(),
        NodeKind::Norm { scale, shift, .. } => vec![*scale, *shift],
        NodeKind::Embedding { weight, .. } => vec![*weight],
        _ => Vec::new(),
    }
}
