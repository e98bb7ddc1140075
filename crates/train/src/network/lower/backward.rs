//! The way back: from the slope of what a node made to those of its inputs, and to its weights.

use super::super::arena::Buffer;
use super::super::graph::NodeKind;
use super::super::layer::{Activation, Over};
use super::super::ops::{batch_norm, conv, dense, depthwise, embedding, norm, pointwise, pool, sparse};
use super::super::step::Learned;
use super::between::Stored;
use super::{Lowering, Slope, pointwise_conv};

impl Lowering<'_> {
    /// Where the slope of an input goes, and whether it is added to what is there; `None` if nobody asks.
    fn slope_into(&mut self, node: usize, i: usize, slope: Buffer) -> Option<(Buffer, bool)> {
        let input = self.graph.nodes[node].inputs[i];
        if !self.needs_slope[input] {
            return None;
        }
        let len = self.graph.nodes[input].shape.len();
        match self.slope_of(input) {
            Some(known) if known.buffer != slope => Some((known.buffer, true)),
            Some(known) => {
                // What is read must not be what is written.
                let own = self.of_batch(len);
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
                    half: false,
                });
                Some((own, true))
            }
            None => {
                let buffer = self.of_batch(len);
                self.slopes[input] = Some(Slope {
                    buffer,
                    shared: false,
                    half: false,
                });
                Some((buffer, false))
            }
        }
    }

    /// Whether a node further up reads a slope, too.
    fn is_read_later(&self, node: usize, slope: Slope) -> bool {
        let mut later = self.slopes[..node].iter().flatten();
        slope.shared && later.any(|other| other.buffer == slope.buffer)
    }

    /// As [`Lowering::slope_into`]; in the place of the node's own slope, where nobody asks for that any more.
    fn slope_over(&mut self, node: usize, slope: Slope) -> Option<(Buffer, bool)> {
        let input = self.graph.nodes[node].inputs[0];
        let free = self.needs_slope[input] && self.slopes[input].is_none();
        if !free || self.is_read_later(node, slope) {
            return self.slope_into(node, 0, slope.buffer);
        }
        self.slopes[input] = Some(Slope {
            shared: false,
            ..slope
        });
        Some((slope.buffer, false))
    }

    /// As [`Lowering::slope_into`]; in the place of what the node was given, where nobody asks for that any more.
    fn slope_over_input(&mut self, node: usize, slope: Buffer) -> Option<(Buffer, bool)> {
        let input = self.graph.nodes[node].inputs[0];
        let free = self.needs_slope[input] && self.slopes[input].is_none();
        if !free || !self.is_only_given_on(input) {
            return self.slope_into(node, 0, slope);
        }
        let buffer = self.value(input);
        self.slopes[input] = Some(Slope {
            buffer,
            shared: false,
            half: false,
        });
        Some((buffer, false))
    }

    /// Whether the only node that takes what a node made is also the only one that asks for it on the way back.
    fn is_only_given_on(&self, node: usize) -> bool {
        let asks_for_its_own = match self.graph.nodes[node].kind {
            NodeKind::Dense { activation, .. }
            | NodeKind::Conv { activation, .. }
            | NodeKind::Depthwise { activation, .. } => activation.is_some(),
            NodeKind::Norm { .. } => false,
            _ => true,
        };
        self.uses[node] == 1 && self.sources[node] == node && !asks_for_its_own
    }

    /// Notes that what a node was given is gone, where the slope takes its place.
    fn is_written_over(&mut self, node: usize, x: Buffer, x_slope: Option<(Buffer, bool)>) {
        if x_slope.is_some_and(|(x_slope, _)| x_slope == x) {
            self.stored[self.graph.nodes[node].inputs[0]] = Stored::Gone;
        }
    }

    /// The pool that follows a batch norm alone: the norm takes the slope of what it made, and spreads that itself.
    fn pool_after(&self, node: usize) -> Option<usize> {
        let next = self.graph.nodes.get(node + 1)?;
        let norms = matches!(
            self.graph.nodes[node].kind,
            NodeKind::Norm {
                over: Over::Batch,
                ..
            }
        );
        let pools = matches!(next.kind, NodeKind::Pool { .. });
        (norms && pools && next.inputs == [node] && self.uses[node] == 1).then_some(node + 1)
    }

    fn spread(&mut self, pool: usize) -> Option<pool::Spread> {
        let NodeKind::Pool { window, .. } = &self.graph.nodes[pool].kind else {
            return None;
        };
        Some(pool::Spread {
            extent: self.pool_extent(pool, window),
            chosen: self.chosen(pool),
        })
    }

    /// The slope before the activation.
    fn undo(&mut self, node: usize, activation: Option<Activation>, slope: Slope) -> Buffer {
        let Some(activation) = activation else {
            return slope.buffer;
        };
        let len = self.graph.nodes[node].shape.len();
        let made = self.value(node);
        let told = self.kept[node].unwrap_or(made);
        let shared = self.is_read_later(node, slope);
        let into = shared.then(|| (self.of_batch(len), false));
        let op = pointwise::ActivateBack {
            len,
            told,
            slope: slope.buffer,
            into,
            activation,
        };
        self.push(
            node,
            op,
            &[Some(told), Some(slope.buffer), into.map(|(into, _)| into)],
        );
        into.map_or(slope.buffer, |(into, _)| into)
    }

    fn learned_of(&self, weight: Option<usize>) -> Option<Learned> {
        weight.and_then(|weight| self.learned[weight].clone())
    }

    /// What a node was given, where that is asked for.
    fn input_of(&mut self, node: usize, asks: bool) -> Buffer {
        let input = self.graph.nodes[node].inputs[0];
        match asks {
            true => self.value(input),
            false => self.made[input],
        }
    }

    /// Where a pool found its largest values, if it is one of those.
    fn chosen(&mut self, node: usize) -> Option<Buffer> {
        if self.told[node].is_some() && self.stored[node] == Stored::Gone {
            self.bring_back(node);
        }
        self.told[node]
    }

    pub(super) fn backward(&mut self, node: usize, slope: Slope) {
        let graph = self.graph;
        let this = &graph.nodes[node];
        let batch = self.purpose.batch;
        if let NodeKind::Input = this.kind {
            return;
        }
        let input = this.inputs[0];
        match &this.kind {
            NodeKind::Input => {}
            NodeKind::Reshape => self.pass_on(node, 0, slope),
            NodeKind::Add { activation } => {
                let undone = self.undo(node, *activation, slope);
                let shared = Slope {
                    buffer: undone,
                    shared: true,
                    half: false,
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
                self.backward_dense(node, extent, (*weight, *bias), undone);
            }
            NodeKind::Conv {
                window,
                groups,
                weight,
                bias,
                activation,
            } => {
                let extent = self.conv_extent(node, window, *groups);
                if self.pooled[node].is_some() {
                    self.value(node);
                }
                let pooled = self.pooled[node];
                if pooled.is_none()
                    && let Some(extent) = pointwise_conv(window, &extent)
                {
                    let undone = self.undo(node, *activation, slope);
                    return self.backward_dense(node, extent, (*weight, *bias), undone);
                }
                let undone = match pooled {
                    None => self.undo(node, *activation, slope),
                    Some(_) => self.own(node, slope),
                };
                let (learned, bias) = (self.learned_of(Some(*weight)), self.learned_of(*bias));
                let learns = learned.is_some() || bias.is_some();
                let x_slope = match learns {
                    true => self.slope_over_input(node, undone),
                    false => self.slope_into(node, 0, undone),
                };
                let turned = x_slope.is_some().then(|| self.transient(extent.weights()));
                let x = self.input_of(node, learns);
                self.is_written_over(node, x, x_slope);
                let sums = extent.sums_parts() && learns;
                let partial = sums.then(|| self.transient(extent.partial_len(batch)));
                self.scratch(conv::Backward::scratch(
                    &extent,
                    pooled.as_ref(),
                    x_slope.is_some(),
                ));
                let tiled = x_slope.and(extent.tiled_weights_back());
                let tiled = tiled.map(|len| self.transient(len));
                let y = self.made[node];
                let op = conv::Backward {
                    extent,
                    x,
                    weight: self.weights[*weight],
                    slope: undone,
                    pooled: pooled.map(|pooled| (pooled, y, *activation)),
                    x_slope,
                    turned,
                    tiled,
                    partial,
                    learned,
                    bias,
                    batch,
                };
                let uses = [
                    learns.then_some(x),
                    Some(undone),
                    x_slope.map(|(buffer, _)| buffer),
                    turned,
                    tiled,
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
                let learns = learned.is_some() || bias.is_some();
                let x = self.input_of(node, learns);
                let partial = learns.then(|| self.transient(extent.partial_len(batch)));
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
                let uses = [
                    learns.then_some(x),
                    Some(undone),
                    x_slope.map(|(buffer, _)| buffer),
                    partial,
                ];
                self.push(node, op, &uses);
            }
            NodeKind::Pool { .. } if self.pooled[node].is_some() => {
                // The convolution before takes the slope as it is.
                self.slopes[input] = Some(slope);
            }
            NodeKind::Pool { .. } if self.pool_after(input) == Some(node) => {
                // So does the norm before.
                self.slopes[input] = Some(slope);
            }
            NodeKind::Pool { window, .. } => {
                let Some((x_slope, add)) = self.slope_into(node, 0, slope.buffer) else {
                    return;
                };
                let chosen = self.chosen(node);
                let op = pool::Backward {
                    extent: self.pool_extent(node, window),
                    slope: slope.buffer,
                    chosen,
                    x_slope,
                    add,
                };
                self.push(node, op, &[Some(slope.buffer), Some(x_slope), chosen]);
            }
            NodeKind::GlobalPool(_) => {
                let Some((x_slope, add)) = self.slope_into(node, 0, slope.buffer) else {
                    return;
                };
                let from = &graph.nodes[input].shape;
                let chosen = self.chosen(node);
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
                let Some((x_slope, add)) = self.slope_into(node, 0, slope.buffer) else {
                    return;
                };
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
                let mine = Slope {
                    buffer: slope,
                    shared: false,
                    half: false,
                };
                let Some(into) = self.slope_over(node, mine) else {
                    return;
                };
                let into = Some(into).filter(|(into, _)| *into != slope);
                let told = match activation.slope_from_result() {
                    true => self.value(node),
                    false => self.value(input),
                };
                let op = pointwise::ActivateBack {
                    len: this.shape.len(),
                    told,
                    slope,
                    into,
                    activation: *activation,
                };
                let uses = [Some(told), Some(slope), into.map(|(into, _)| into)];
                self.push(node, op, &uses);
            }
            NodeKind::Norm { .. } => self.backward_norm(node, slope),
            NodeKind::Embedding {
                width,
                tokens,
                weight,
            } => {
                let Some(learned) = self.learned_of(Some(*weight)) else {
                    return;
                };
                let x = self.value(input);
                let sums = self.transient(tokens * width);
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
            NodeKind::Sparse { weight, .. } => {
                let Some(learned) = self.learned_of(Some(*weight)) else {
                    return;
                };
                let extent = self.sparse_extent(node);
                let x = self.value(input);
                let (heads, next) = (self.persistent(extent.places), self.of_batch(extent.pairs));
                self.scratch(extent.width);
                let op = sparse::Backward {
                    extent,
                    x,
                    slope: slope.buffer,
                    heads,
                    next,
                    learned,
                };
                self.push(node, op, &[Some(x), Some(slope.buffer), Some(next)]);
            }
        }
    }

    /// A slope that nobody else reads.
    fn own(&mut self, node: usize, slope: Slope) -> Buffer {
        if !self.is_read_later(node, slope) {
            return slope.buffer;
        }
        let len = self.specs[slope.buffer.0].len / self.purpose.batch;
        let own = self.of_batch(len);
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
            None => self.slopes[input] = Some(self.waiting(node, input, slope)),
            Some(_) => {
                let len = self.graph.nodes[input].shape.len();
                let Some((into, _)) = self.slope_into(node, i, slope.buffer) else {
                    return;
                };
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
        let x = self.input_of(node, true);
        self.scratch(dense::ToWeights::scratch(extent));
        let parts = dense::ToWeights::parts(extent).filter(|_| learned.is_some());
        let partial = parts.map(|parts| {
            let len = parts * extent.inputs * extent.outputs;
            (self.transient(len), parts)
        });
        let op = dense::ToWeights {
            extent,
            x,
            slope,
            weight: learned,
            bias,
            partial,
        };
        self.push(
            node,
            op,
            &[Some(x), Some(slope), partial.map(|(partial, _)| partial)],
        );
    }

    fn backward_norm(&mut self, node: usize, slope: Slope) {
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
        let pooled = self.pool_after(node).and_then(|pool| self.spread(pool));
        let x_slope = match pooled {
            None => self.slope_over(node, slope),
            Some(_) => {
                self.scratch(batch_norm::Backward::scratch(&extent));
                self.slope_over_input(node, slope.buffer)
            }
        };
        let slope = slope.buffer;
        let (learned_scale, learned_shift) = (self.learned_of(Some(scale)), self.learned_of(Some(shift)));
        let partial = self.transient(2 * batch_norm::PARTS * extent.channels);
        let x = self.input_of(node, true);
        self.is_written_over(node, x, x_slope);
        let Some(told) = self.told[node] else { return };
        let uses = [
            Some(x),
            Some(slope),
            Some(told),
            Some(partial),
            x_slope.map(|(buffer, _)| buffer),
            pooled.as_ref().and_then(|pooled| pooled.chosen),
        ];
        let frozen = !self.graph.weights[scale].learned;
        let (scale, shift) = (self.weights[scale], self.weights[shift]);
        match over {
            Over::Batch => {
                let op = batch_norm::Backward {
                    extent,
                    x,
                    slope,
                    pooled,
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
}
