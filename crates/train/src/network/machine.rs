//! A program with its memory and threads: what takes samples and learns from them.

use super::arena::{Arena, Buffer, alive, lay_out, least_len};
use super::crew::Crew;
use super::fault::Fault;
use super::graph::{Graph, Misfit, NodeKind};
use super::layer::Layer;
use super::lower::{Learning, Lowered, Purpose, lower, lower_between};
use super::ops::pointwise::mix;
use super::rule::Moment;
use super::shape::Shape;
use super::step::{Memory, Mix, Step};
use super::tensor::Initial;

/// A network that was compiled for a purpose: every operation and the place of every buffer is known, and nothing is
/// allocated yet.
pub struct Program {
    pub(super) graph: Graph,
    pub(super) lowered: Lowered,
    layout: super::arena::Layout,
    pub(super) purpose: Purpose,
}

/// The part of the arena that holds what layers make.
const ACTIVATIONS: &str = "activations";
/// What stands for buffers that are aligned, and cannot all lie close to each other.
const BETWEEN: &str = "between buffers";

/// Another moment becomes the fullest so many times, at the most, until no more values are stored in half precision.
const MOST_ROUNDS: usize = 8;

/// What parts of the arena are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    pub name: &'static str,
    pub bytes: u64,
}

impl Share {
    /// What they are called.
    pub const NAMES: [&'static str; 5] = ["weights", "optimizer", "gradients", ACTIVATIONS, "scratch"];
}

impl Program {
    pub fn compile(
        layers: &[Layer],
        input: &Shape,
        outputs: usize,
        purpose: &Purpose,
    ) -> Result<Program, Misfit> {
        Ok(Program::of(Graph::new(layers, input, outputs)?, purpose))
    }

    /// The program of a graph. Values wait in half precision where that makes it smaller: what an operation uses is of full
    /// precision for its time, so it is of use only for what waits while the arena is at its fullest.
    pub(super) fn of(graph: Graph, purpose: &Purpose) -> Program {
        let half = |learning: &Learning| learning.precision.is_half();
        let rounds = match purpose.learning.as_ref().is_some_and(half) {
            true => MOST_ROUNDS,
            false => 0,
        };
        let asked = lower(&graph, purpose).asked;
        let lowered = |halves: &[usize]| used(lower_between(&graph, purpose, &asked, halves));
        let mut best = lowered(&[]);
        let mut halves = waiting_at_the_fullest(&graph, &best);
        for _ in 0..rounds {
            let next = lowered(&halves);
            let more = waiting_at_the_fullest(&graph, &next);
            if least_len(&next.specs) < least_len(&best.specs) {
                best = next;
            }
            if more.is_empty() {
                break;
            }
            halves.extend(more);
        }
        Program {
            layout: lay_out(&best.specs),
            graph,
            lowered: best,
            purpose: purpose.clone(),
        }
    }

    /// The bytes of the arena.
    pub fn bytes(&self) -> u64 {
        Arena::bytes(self.layout.len) as u64
    }

    /// What the arena is for, part by part; the parts make up all of it.
    pub fn shares(&self) -> Vec<Share> {
        let bytes = |buffers: &mut dyn Iterator<Item = &Buffer>| -> u64 {
            buffers
                .map(|buffer| 4 * self.lowered.specs[buffer.0].len as u64)
                .sum()
        };
        let weights = bytes(&mut self.lowered.weights.iter());
        let states = bytes(&mut self.lowered.states.iter().flatten());
        let gradients = bytes(&mut self.lowered.gradients.iter().flatten());
        let scratch = bytes(&mut [self.lowered.scratch].iter());
        let rest = self.bytes() - weights - states - gradients - scratch;
        let bytes = [weights, states, gradients, rest, scratch];
        let shares = Share::NAMES.into_iter().zip(bytes);
        let shares = shares.filter(|(_, bytes)| *bytes > 0);
        shares.map(|(name, bytes)| Share { name, bytes }).collect()
    }

    /// The activations by layer, at the moment when buffers take the most; what lies between buffers stands last. They make
    /// up that share of the arena.
    pub fn layers(&self) -> Vec<(String, u64)> {
        let specs = &self.lowered.specs;
        let alive = |at: usize| {
            let lives = move |life: (usize, usize)| life.0 <= at && at <= life.1;
            let all = specs.iter().enumerate();
            all.filter(move |(_, spec)| spec.len > 0 && spec.life.is_some_and(lives))
        };
        let bytes = |len: usize| 4 * len as u64;
        let taken = |at: &usize| alive(*at).map(|(_, spec)| bytes(spec.len)).sum::<u64>();
        let peak = (0..=self.lowered.ops.len()).max_by_key(taken).unwrap_or(0);
        let mut by_node = vec![0; self.graph.nodes.len()];
        for (buffer, spec) in alive(peak) {
            let node = match buffer == self.lowered.input.0 {
                true => 0,
                false => self.lowered.owners.get(&buffer).copied().unwrap_or(0),
            };
            by_node[node] += bytes(spec.len);
        }
        let share = self.shares().into_iter().find(|share| share.name == ACTIVATIONS);
        let between = share.map_or(0, |share| share.bytes) - by_node.iter().sum::<u64>();
        let name = |node: usize| match node {
            0 => "samples".to_string(),
            node => self.graph.nodes[node].name.clone(),
        };
        let layers = by_node
            .into_iter()
            .enumerate()
            .map(|(node, bytes)| (name(node), bytes));
        let between = (BETWEEN.to_string(), between);
        let all = layers.chain([between]);
        all.filter(|(_, bytes)| *bytes > 0).collect()
    }

    /// Holders with the one of the arena, by its name, taken apart into its shares.
    pub(super) fn in_shares(&self, holders: Vec<(String, u64)>, arena: &str) -> Vec<(String, u64)> {
        let share = |share: Share| (share.name.to_string(), share.bytes);
        let apart = |(name, bytes): (String, u64)| match name == arena {
            true => self.shares().into_iter().map(share).collect(),
            false => vec![(name, bytes)],
        };
        holders.into_iter().flat_map(apart).collect()
    }

    /// Weights that are learned, and those that are not.
    pub fn n_weights(&self) -> (usize, usize) {
        let count = |learned: bool| {
            let of = self
                .graph
                .weights
                .iter()
                .filter(|weight| weight.learned == learned);
            of.map(|weight| weight.form.len()).sum()
        };
        (count(true), count(false))
    }

    /// Makes the arena, with weights drawn from `seed`.
    pub fn build(self, seed: u64) -> std::io::Result<Machine> {
        let arena = Arena::new(self.layout.len)?;
        let Program {
            graph,
            lowered,
            layout,
            purpose,
        } = self;
        let memory = Memory {
            arena,
            layout,
            lens: lowered.specs.iter().map(|spec| spec.len).collect(),
            scratch: lowered.scratch,
            scratch_len: lowered.scratch_len,
        };
        let machine = Machine {
            crew: Crew::new(purpose.threads),
            graph,
            lowered,
            memory,
            purpose,
            poisons: false,
        };
        machine.start_weights(seed);
        Ok(machine)
    }
}

/// What no operation uses takes no room.
fn used(mut lowered: Lowered) -> Lowered {
    for spec in &mut lowered.specs {
        if let Some((first, last)) = spec.life.filter(|(first, last)| first > last) {
            (spec.len, spec.life) = (0, Some((last, first.min(last))));
        }
    }
    lowered
}

/// Nodes whose values are only kept for later by the operation at which most is alive.
fn waiting_at_the_fullest(graph: &Graph, lowered: &Lowered) -> Vec<usize> {
    let alive = alive(&lowered.specs);
    let alive = alive.iter().take(lowered.ops.len()).enumerate();
    let Some((fullest, _)) = alive.max_by_key(|(_, alive)| **alive) else {
        return Vec::new();
    };
    let op = &lowered.ops[fullest];
    // A norm writes over what it is given, once that is stored otherwise.
    let norms = matches!(graph.nodes[op.node].kind, NodeKind::Norm { .. });
    let over = norms && fullest < lowered.n_forward;
    let waits = |(node, held): &&(usize, Buffer)| {
        let life = lowered.specs[held.0].life;
        let lives = life.is_some_and(|(first, last)| first < fullest && fullest < last);
        lives && (over || !op.uses.contains(held)) && lowered.asked.contains(node)
    };
    let waiting = lowered.held.iter().filter(waits);
    waiting.map(|(node, _)| *node).collect()
}

/// A network that runs.
pub struct Machine {
    graph: Graph,
    lowered: Lowered,
    memory: Memory,
    crew: Crew,
    purpose: Purpose,
    poisons: bool,
}

/// How a batch is learned from.
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    pub rows: usize,
    /// Samples of the batches before it that make up the step with it.
    pub before: usize,
    /// How much a sample counts, see [`super::loss::Loss::weight`]: one divided by the weight of all samples of the step.
    pub share: f32,
    /// Whether it is the first and the last of the batches whose gradients are summed.
    pub first: bool,
    pub last: bool,
    /// What randomness is drawn from.
    pub seed: u64,
    /// What slopes are multiplied by on their way, with [`super::Precision::F16`].
    pub scale: f32,
    /// How samples were mixed with each other, if they were.
    pub mix: Option<Mix>,
    pub moment: Moment,
}

impl Machine {
    fn start_weights(&self, seed: u64) {
        for (i, (weight, buffer)) in self.graph.weights.iter().zip(&self.lowered.weights).enumerate() {
            // SAFETY: nothing runs.
            let values = unsafe { self.memory.span(*buffer).write() };
            let key = mix((seed ^ (seed >> 32)) as u32 ^ mix(i as u32 + 1));
            let draw = |j: usize, salt: u32| f64::from(mix(key ^ mix(j as u32) ^ salt)) / f64::from(u32::MAX);
            for (j, value) in values.iter_mut().enumerate() {
                *value = match weight.initial {
                    Initial::Constant(value) => value,
                    Initial::Uniform(bound) => (2.0 * draw(j, 0) - 1.0) as f32 * bound,
                    Initial::Normal(deviation) => {
                        let radius = (-2.0 * (1.0 - draw(j, 0)).max(1e-12).ln()).sqrt();
                        (radius * (std::f64::consts::TAU * draw(j, 0x5bd1_e995)).cos()) as f32 * deviation
                    }
                };
            }
        }
    }

    /// From now on buffers are filled with NaN when their life ends: what reads them later shows it.
    pub fn poison(&mut self) {
        self.poisons = true;
    }

    /// Where samples are put, one behind the other.
    pub fn inputs(&mut self) -> &mut [f32] {
        // SAFETY: nothing runs while it is borrowed.
        unsafe { self.memory.span(self.lowered.input).write() }
    }

    pub fn targets(&mut self) -> &mut [f32] {
        // SAFETY: nothing runs while it is borrowed.
        unsafe { self.memory.span(self.lowered.targets).write() }
    }

    /// What the last forward pass made of the samples.
    pub fn outputs(&self) -> &[f32] {
        // SAFETY: nothing runs while it is borrowed.
        unsafe { self.memory.span(self.lowered.output).read() }
    }

    /// The losses of the last batch, one for each sample.
    pub fn losses(&self) -> &[f32] {
        // SAFETY: nothing runs while it is borrowed.
        unsafe { self.memory.span(self.lowered.losses).read() }
    }

    pub fn batch(&self) -> usize {
        self.purpose.batch
    }

    fn step(&self, rows: usize, training: bool, batch: Option<&Batch>) -> Step<'_> {
        assert!(rows <= self.purpose.batch, "a batch is not larger than planned");
        let scale = match self.lowered.skipped {
            Some(_) => batch.map_or(1.0, |batch| batch.scale),
            None => 1.0,
        };
        Step {
            memory: &self.memory,
            crew: &self.crew,
            rows,
            before: batch.map_or(0, |batch| batch.before),
            training,
            seed: batch.map_or(0, |batch| batch.seed),
            first: batch.is_none_or(|batch| batch.first),
            share: batch.map_or(0.0, |batch| batch.share * scale),
            scale,
            mix: batch.and_then(|batch| batch.mix),
            moment: batch.map_or(Moment { rate: 0.0, step: 0 }, |batch| batch.moment),
        }
    }

    fn run(&self, ops: std::ops::Range<usize>, step: &Step<'_>) {
        for at in ops {
            self.lowered.ops[at].op.run(step);
            if self.poisons {
                self.poison_dead(at);
            }
        }
    }

    fn poison_dead(&self, at: usize) {
        for (i, spec) in self.lowered.specs.iter().enumerate() {
            if spec.life.is_some_and(|(_, last)| last == at) {
                // SAFETY: nothing runs. No other buffer that is in use lies here: their lives would meet.
                unsafe { self.memory.span(Buffer(i)).write().fill(f32::NAN) };
            }
        }
    }

    /// Makes outputs of so many samples.
    pub fn forward(&mut self, rows: usize) {
        let step = self.step(rows, false, None);
        self.run(0..self.lowered.n_forward, &step);
    }

    /// Makes outputs and losses of so many samples, and learns nothing.
    pub fn judge(&mut self, rows: usize) -> f64 {
        let step = self.step(rows, false, None);
        self.run(0..(self.lowered.n_forward + 1).min(self.lowered.ops.len()), &step);
        self.loss(rows)
    }

    fn loss(&self, rows: usize) -> f64 {
        self.losses()[..rows].iter().map(|loss| f64::from(*loss)).sum()
    }

    /// Learns from a batch, unless its loss is no finite number: then weights stay as they are. Returns the sum of the
    /// losses of its samples.
    pub fn learn(&mut self, batch: &Batch) -> f64 {
        let step = self.step(batch.rows, true, Some(batch));
        let back = (self.lowered.n_forward + 1).min(self.lowered.ops.len());
        self.run(0..back, &step);
        let loss = self.loss(batch.rows);
        if loss.is_finite() {
            self.run(back..self.lowered.n_back, &step);
            if batch.last {
                self.change_weights(batch);
            }
        }
        loss
    }

    /// Changes the weights by the gradients that are summed.
    pub fn change_weights(&mut self, batch: &Batch) {
        let step = self.step(batch.rows, true, Some(batch));
        self.run(self.lowered.n_back..self.lowered.ops.len(), &step);
    }

    /// Whether the last change of the weights was left out, because a gradient was no finite number once it was scaled.
    pub fn skipped(&self) -> bool {
        // SAFETY: nothing runs.
        let told = |buffer: Buffer| unsafe { self.memory.span(buffer).read()[0] != 0.0 };
        self.lowered.skipped.is_some_and(told)
    }

    /// Runs the batch forward once more and names what first is no finite number.
    pub fn find_fault(&mut self, batch: &Batch) -> Option<Fault> {
        let bad = |values: &[f32]| values.iter().position(|value| !value.is_finite());
        let rows = batch.rows;
        for (weight, buffer) in self.graph.weights.iter().zip(&self.lowered.weights) {
            // SAFETY: nothing runs.
            if bad(unsafe { self.memory.span(*buffer).read() }).is_some() {
                return Some(Fault::Weight {
                    name: weight.name.clone(),
                });
            }
        }
        let input = self.graph.nodes[0].shape.len();
        if let Some(at) = bad(&self.inputs()[..rows * input]) {
            return Some(Fault::Input { sample: at / input });
        }
        let step = self.step(rows, true, Some(batch));
        for at in 0..self.lowered.n_forward {
            let op = &self.lowered.ops[at];
            self.run(at..at + 1, &step);
            let Some((made, len)) = op.made else { continue };
            // SAFETY: nothing runs.
            if let Some(at) = bad(unsafe { &self.memory.span(made).read()[..rows * len] }) {
                return Some(Fault::Layer {
                    name: self.graph.nodes[op.node].name.clone(),
                    sample: at / len,
                });
            }
        }
        self.run(
            self.lowered.n_forward..(self.lowered.n_forward + 1).min(self.lowered.ops.len()),
            &step,
        );
        bad(&self.losses()[..rows]).map(|sample| Fault::Loss { sample })
    }

    /// Every tensor: its name, its shape as it is on disk, and whether it is learned.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, Vec<usize>, bool)> {
        let weights = self.graph.weights.iter();
        weights.map(|weight| (weight.name.as_str(), weight.form.shape(), weight.learned))
    }

    /// All that learning changes: weights, and what the optimizer keeps of each, as they lie in memory.
    pub(super) fn parts(&self) -> impl Iterator<Item = (String, &[f32])> {
        // SAFETY: nothing runs while they are borrowed.
        let values = |buffer: Buffer| unsafe { self.memory.span(buffer).read() };
        let of = move |i: usize| {
            let name = &self.graph.weights[i].name;
            let weight = (format!("weight/{name}"), values(self.lowered.weights[i]));
            let states = self.lowered.states[i].iter().enumerate();
            let states = states.map(move |(k, buffer)| (format!("state{k}/{name}"), values(*buffer)));
            std::iter::once(weight).chain(states)
        };
        (0..self.graph.weights.len()).flat_map(of)
    }

    /// Whether one of [`Machine::parts`] holds bits rather than numbers.
    pub(super) fn is_packed(&self, name: &str) -> bool {
        let state = name.strip_prefix("state").and_then(|name| name.split_once('/'));
        let weight = state.and_then(|(_, name)| self.weight(name));
        weight.is_some_and(|weight| self.lowered.packed[weight])
    }

    /// One of [`Machine::parts`], to be filled.
    pub(super) fn part_mut(&mut self, name: &str) -> Option<&mut [f32]> {
        let (kind, name) = name.split_once('/')?;
        let i = self.weight(name)?;
        let buffer = match kind {
            "weight" => self.lowered.weights[i],
            kind => *self.lowered.states[i].get(kind.strip_prefix("state")?.parse::<usize>().ok()?)?,
        };
        // SAFETY: nothing runs while it is borrowed.
        Some(unsafe { self.memory.span(buffer).write() })
    }

    /// Whether all weights are finite numbers.
    pub(super) fn is_finite(&self) -> bool {
        let mut weights = self.lowered.weights.iter();
        weights.all(|buffer| {
            // SAFETY: nothing runs.
            let values = unsafe { self.memory.span(*buffer).read() };
            values.iter().all(|value| value.is_finite())
        })
    }

    /// The value of a tensor that is `i`-th on disk.
    pub(super) fn value(&self, weight: usize, i: usize) -> f32 {
        let form = self.graph.weights[weight].form;
        // SAFETY: nothing runs.
        unsafe { self.memory.span(self.lowered.weights[weight]).read()[form.place(i)] }
    }

    fn weight(&self, name: &str) -> Option<usize> {
        self.graph.weights.iter().position(|weight| weight.name == name)
    }

    /// A tensor, in the order that it has on disk.
    pub fn tensor(&self, name: &str) -> Option<Vec<f32>> {
        let i = self.weight(name)?;
        Some(self.in_order(i, self.lowered.weights[i]))
    }

    /// The gradient of a tensor, where gradients are kept; as it is scaled.
    pub fn gradient(&self, name: &str) -> Option<Vec<f32>> {
        let i = self.weight(name)?;
        Some(self.in_order(i, self.lowered.gradients[i]?))
    }

    /// The slope by the samples, where it is asked for.
    pub fn input_slope(&self) -> Option<&[f32]> {
        // SAFETY: nothing runs while it is borrowed.
        self.lowered
            .input_slope
            .map(|buffer| unsafe { self.memory.span(buffer).read() })
    }

    fn in_order(&self, weight: usize, buffer: Buffer) -> Vec<f32> {
        let form = self.graph.weights[weight].form;
        // SAFETY: nothing runs.
        let values = unsafe { self.memory.span(buffer).read() };
        (0..values.len()).map(|i| values[form.place(i)]).collect()
    }

    /// Sets a tensor from values in the order that it has on disk; `false` if there is none of this name and length.
    pub fn set_tensor(&mut self, name: &str, values: impl ExactSizeIterator<Item = f32>) -> bool {
        let len = values.len();
        let Some(mut put) = self.putter(name, len) else {
            return false;
        };
        values.for_each(&mut put);
        true
    }

    /// Takes the values of a tensor one by one, in the order that it has on disk; `None` if there is none of this name and
    /// length.
    pub(super) fn putter(&mut self, name: &str, len: usize) -> Option<impl FnMut(f32) + '_> {
        let i = self.weight(name)?;
        let form = self.graph.weights[i].form;
        // SAFETY: nothing runs while it is borrowed.
        let into = unsafe { self.memory.span(self.lowered.weights[i]).write() };
        let mut at = 0;
        let put = move |value| {
            if at < len {
                into[form.place(at)] = value;
                at += 1;
            }
        };
        (form.len() == len).then_some(put)
    }
}
