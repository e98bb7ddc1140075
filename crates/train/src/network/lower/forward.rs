//! The way forward: one operation for each node, or one for two where they go together.

use super::super::arena::Buffer;
use super::super::graph::NodeKind;
use super::super::layer::{Activation, Over, PoolKind};
use super::super::ops::{batch_norm, conv, dense, depthwise, embedding, norm, pointwise, pool, sparse};
use super::between::{Between, Stored};
use super::{Lowering, pointwise_conv};

/// Values of an image that the way back of a fused pool may hold for every thread.
const MOST_SPREAD: usize = 1 << 20;

impl Lowering<'_> {
    /// A buffer for what the activation is given, where its slope asks for that.
    fn kept_for(&mut self, node: usize, activation: Option<Activation>) -> Option<Buffer> {
        let asks = activation.is_some_and(|activation| !activation.slope_from_result());
        let kept =
            (asks && self.needs_slope[node]).then(|| self.of_batch(self.graph.nodes[node].shape.len()));
        self.kept[node] = kept;
        kept
    }

    pub(super) fn forward(&mut self, node: usize) {
        let graph = self.graph;
        let this = &graph.nodes[node];
        let len = this.shape.len();
        if let NodeKind::Reshape = this.kind {
            self.makes(node, self.made[this.inputs[0]]);
            return;
        }
        if let Some(pooled) = self.pooled_before(node) {
            // The convolution before has done it, and made what this node makes.
            self.makes(node, self.made[this.inputs[0]]);
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
        let over = self.over_input(node);
        let y = over.unwrap_or_else(|| self.of_batch(y_len));
        self.makes(node, y);
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
                    chosen: self.bytes_of_batch(y_len),
                });
                self.pooled[node] = pooled;
                if pooled.is_none()
                    && let Some(extent) = pointwise_conv(window, &extent)
                {
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
                // Made again, it need not wait until what it is given is there in full.
                let (x, half) = match self.waits_as(this.inputs[0]) {
                    Some(half) if extent.reads_halves(pooled.as_ref()) => (half, Some(self.precision())),
                    _ => (x, None),
                };
                self.scratch(conv::Forward::scratch(&extent, pooled.as_ref(), half));
                let kept = match pooled {
                    Some(_) => None,
                    None => self.kept_for(node, *activation),
                };
                let turned = extent
                    .tiled_weights(pooled.as_ref())
                    .map(|len| self.transient(len));
                let op = conv::Forward {
                    extent,
                    x,
                    half,
                    weight,
                    bias,
                    y,
                    activation: *activation,
                    kept,
                    pooled,
                    turned,
                };
                let chosen = pooled.map(|pooled| pooled.chosen);
                self.push(node, op, &[Some(x), Some(y), kept, chosen, turned]);
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
                let chosen = back.then(|| self.bytes_of_batch(len));
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
                let chosen = back.then(|| self.of_batch(len));
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
            NodeKind::Embedding {
                width,
                tokens,
                weight,
            } => {
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
            NodeKind::Sparse { weight, .. } => {
                let op = sparse::Forward {
                    extent: self.sparse_extent(node),
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

    /// Where a batch norm writes over what it is given: that is not kept as it is, and nobody else asks for it before the
    /// way back.
    fn over_input(&mut self, node: usize) -> Option<Buffer> {
        let this = &self.graph.nodes[node];
        let norms = matches!(
            this.kind,
            NodeKind::Norm {
                over: Over::Batch,
                ..
            }
        );
        let source = *this.inputs.first().filter(|_| norms)?;
        let source = self.sources[source];
        if source == 0 || !self.is_last_use(node, source) {
            return None;
        }
        // Made again, it is told what it was given: the way back asks for that next, unless it waits in half precision or is
        // made once more.
        let made_again = self.told[node].is_some();
        match self.stored[source] {
            Stored::Half { .. } | Stored::Gone if made_again => {}
            Stored::There if !made_again && self.between[source] != Between::Stays => self.put_away(source),
            _ => return None,
        }
        Some(self.made[source])
    }

    /// Notes where the values of a node are.
    fn makes(&mut self, node: usize, made: Buffer) {
        match self.made.get_mut(node) {
            Some(before) => *before = made,
            None => self.made.push(made),
        }
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
            false => self.of_batch(len),
        };
        self.makes(node, y);
        if y == self.made[a] {
            self.stored[a] = Stored::Gone;
        }
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
                // Made again, it has the mean and deviation that it had.
                let again = self.told[node];
                let told = again.unwrap_or_else(|| self.transient(2 * extent.channels));
                let partial = self.transient(2 * batch_norm::PARTS * extent.channels);
                self.told[node] = Some(told);
                let op = batch_norm::Forward {
                    again: again.is_some(),
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
                let told = match self.told[node] {
                    Some(told) => told,
                    None => self.of_batch(within.told_len()),
                };
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

    /// The size and output of a max-pool that the convolution `node` can do at once.
    pub(super) fn can_pool(&self, node: usize) -> Option<([usize; 2], [usize; 2])> {
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
