//! What an operation is given: the buffers, the threads, and what is particular to this step.

use std::ops::Range;

use super::arena::{Arena, Buffer, Layout, Span};
use super::crew::Crew;
use super::moments::{BLOCK, Packing, Rounding};
use super::rule::{Change, Moment, Rule};

/// A piece of a program. It knows its buffers and their shapes; nothing is allocated while it runs.
pub(crate) trait Op: Send + Sync {
    fn run(&self, step: &Step<'_>);
}

/// The arena with the places of all buffers.
pub(crate) struct Memory {
    pub arena: Arena,
    pub layout: Layout,
    pub lens: Vec<usize>,
    /// A buffer that is cut into one piece for each thread.
    pub scratch: Buffer,
    pub scratch_len: usize,
}

impl Memory {
    pub(crate) fn span(&self, buffer: Buffer) -> Span {
        self.arena
            .span(self.layout.offsets[buffer.0], self.lens[buffer.0])
    }
}

pub(crate) struct Step<'a> {
    pub memory: &'a Memory,
    pub crew: &'a Crew,
    /// Samples in the batch, and in those before it that make up the step with it.
    pub rows: usize,
    pub before: usize,
    /// Whether this is for learning: values are left out, and batches are normed by their own mean.
    pub training: bool,
    /// What randomness is drawn from.
    pub seed: u64,
    /// Whether gradients start anew, rather than being added to those of the batches before.
    pub first: bool,
    /// How much a sample counts: one divided by the samples of all batches that make up the step.
    pub share: f32,
    /// What slopes are multiplied by beside that, and gradients are divided by before weights follow them.
    pub scale: f32,
    pub mix: Option<Mix>,
    pub moment: Moment,
}

/// How the samples of a batch were mixed with each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// How far on in the batch the partner of each sample is.
    pub distance: usize,
    /// What each sample keeps of itself.
    pub share: f32,
}

impl Step<'_> {
    pub(crate) fn span(&self, buffer: Buffer) -> Span {
        self.memory.span(buffer)
    }

    /// What belongs to a thread alone, for the time of a task.
    pub(crate) fn scratch(&self, thread: usize) -> Span {
        let memory = self.memory;
        self.span(memory.scratch).piece(thread, memory.scratch_len)
    }
}

/// A tensor that is learned: where its gradient goes.
#[derive(Debug, Clone)]
pub(crate) struct Learned {
    pub weight: Buffer,
    /// Where gradients are kept until all are there; without it the weight is changed at once.
    pub gradient: Option<Buffer>,
    pub states: Vec<Buffer>,
    pub packing: Packing,
    /// Which tensor it is.
    pub number: u32,
    pub rule: Rule,
    /// Rows of this width stay as they are where their gradient is zero throughout.
    pub row: Option<usize>,
}

impl Learned {
    /// Takes the gradient of a part of the tensor, which no other task has.
    ///
    /// # Safety
    ///
    /// No other task uses this part.
    pub(crate) unsafe fn take(&self, step: &Step<'_>, part: Range<usize>, gradient: &[f32]) {
        match self.gradient {
            Some(buffer) => {
                // SAFETY: the caller's.
                let kept = unsafe { step.span(buffer).part(part).write() };
                match step.first {
                    true => kept.copy_from_slice(gradient),
                    false => super::kernels::elementwise::add(kept, gradient),
                }
            }
            // SAFETY: the caller's.
            None => unsafe { self.apply(step, part, gradient, 1.0) },
        }
    }

    /// Changes a part of the weight by its gradient, times `factor`.
    ///
    /// # Safety
    ///
    /// No other task uses this part.
    pub(crate) unsafe fn apply(&self, step: &Step<'_>, part: Range<usize>, gradient: &[f32], factor: f32) {
        let change = self.rule.change(&step.moment, factor);
        match self.row {
            // SAFETY: the caller's.
            None => unsafe { self.apply_whole(step, part, gradient, change) },
            Some(row) => {
                for (i, gradient) in gradient.chunks_exact(row).enumerate() {
                    if gradient.iter().any(|value| *value != 0.0) {
                        let start = part.start + i * row;
                        // SAFETY: the caller's.
                        unsafe { self.apply_whole(step, start..start + row, gradient, change) };
                    }
                }
            }
        }
    }

    /// # Safety
    ///
    /// As for [`Learned::apply`].
    unsafe fn apply_whole(&self, step: &Step<'_>, part: Range<usize>, gradient: &[f32], change: Change) {
        if self.packing != Packing::F32 {
            // SAFETY: the caller's.
            return unsafe { self.apply_packed(step, part, gradient, change) };
        }
        // SAFETY: the caller's; weight and states are different buffers.
        let slice = |buffer: &Buffer| unsafe { step.span(*buffer).part(part.clone()).write() };
        let weight = slice(&self.weight);
        let mut states = self.states.iter().map(slice);
        let (first, second) = (states.next(), states.next());
        let states = (first.unwrap_or_default(), second.unwrap_or_default());
        change.apply(weight, gradient, states);
    }

    /// Unpacks the states a little at a time, and packs them again.
    ///
    /// # Safety
    ///
    /// As for [`Learned::apply`].
    unsafe fn apply_packed(&self, step: &Step<'_>, part: Range<usize>, gradient: &[f32], change: Change) {
        let mut unpacked = [[0.0; BLOCK]; 2];
        let mut at = part.start;
        while at < part.end {
            let piece = at..self.packing.end(at).min(part.end);
            let len = piece.len();
            let states = self.states.iter().enumerate();
            // SAFETY: the caller's; weight and states are different buffers.
            unsafe {
                for (k, state) in states.clone() {
                    let values = &mut unpacked[k][..len];
                    let signed = self.rule.is_signed(k);
                    self.packing
                        .load(step.span(*state), piece.clone(), signed, values);
                }
                let [first, second] = &mut unpacked;
                // A rule takes a second state for one that is asked of it.
                let second = &mut second[..if self.states.len() > 1 { len } else { 0 }];
                let weight = step.span(self.weight).part(piece.clone()).write();
                let gradient = &gradient[piece.start - part.start..piece.end - part.start];
                change.apply(weight, gradient, (&mut first[..len], second));
                for (k, state) in states {
                    let rounding = Rounding::new(self.rule.is_signed(k), (self.number, k), step.moment.step);
                    self.packing
                        .store(step.span(*state), piece.clone(), rounding, &unpacked[k][..len]);
                }
            }
            at = piece.end;
        }
    }
}
