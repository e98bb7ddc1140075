//! Weights follow their gradients once all of them are there: needed where gradients are cut to a norm, summed over several
//! batches, or scaled, so that a step is skipped as a whole if any of them is no finite number.

use super::super::arena::Buffer;
use super::super::kernels::elementwise::sum_of_squares;
use super::super::step::{Learned, Op, Step};

pub(crate) struct Update {
    /// Parts of all tensors: which, and where.
    pub parts: Vec<(Learned, std::ops::Range<usize>)>,
    /// The norm beyond which all gradients are made smaller together.
    pub clip: Option<f32>,
    /// One sum for each part.
    pub sums: Buffer,
    /// Where it is said whether a step was skipped, if gradients are scaled.
    pub skipped: Option<Buffer>,
}

/// Values in a part.
pub(crate) const PART: usize = 1 << 14;

impl Op for Update {
    fn run(&self, step: &Step<'_>) {
        // SAFETY: gradients are only read here.
        let gradient = |(learned, range): &(Learned, std::ops::Range<usize>)| unsafe {
            let kept = learned
                .gradient
                .map(|gradient| step.span(gradient).part(range.clone()).read());
            kept.unwrap_or_default()
        };
        let norm = || {
            let sums = step.span(self.sums);
            step.crew.run(self.parts.len(), |part, _| {
                let sum = sum_of_squares(gradient(&self.parts[part]));
                // SAFETY: one value for each task.
                unsafe { sums.part(part..part + 1).write()[0] = sum };
            });
            // SAFETY: nothing else runs.
            let sums = unsafe { sums.part(0..self.parts.len()).read() };
            let sum: f64 = sums.iter().map(|sum| f64::from(*sum)).sum();
            sum.sqrt() / f64::from(step.scale)
        };
        let norm = (self.clip.is_some() || self.skipped.is_some()).then(norm);
        if let Some(skipped) = self.skipped {
            let skips = norm.is_some_and(|norm| !norm.is_finite());
            // SAFETY: nothing else runs.
            unsafe { step.span(skipped).write()[0] = f32::from(skips) };
            if skips {
                return;
            }
        }
        let least = |clip: f32, norm: f64| (f64::from(clip) / (norm + 1e-6)).min(1.0) as f32;
        let factor = self.clip.zip(norm).map_or(1.0, |(clip, norm)| least(clip, norm)) / step.scale;
        step.crew.run(self.parts.len(), |task, _| {
            let part = &self.parts[task];
            // SAFETY: the parts are of one task each.
            unsafe { part.0.apply(step, part.1.clone(), gradient(part), factor) };
        });
    }
}
