//! The ways that go by tiles.

use super::super::super::arena::{Buffer, Span, bytes};
use super::super::super::kernels::winograd::{Start, Winograd};
use super::super::super::step::Step;
use super::Forward;

impl Forward {
    pub(super) fn run_tiles(&self, step: &Step<'_>, tiles: &Winograd, turned: Buffer) {
        let extent = &self.extent;
        let [x, weight, y, turned] = [self.x, self.weight, self.y, turned].map(|buffer| step.span(buffer));
        let made = self.kept.map_or(y, |kept| step.span(kept));
        // SAFETY: nothing else runs.
        unsafe { tiles.turn_weights(weight.read(), turned.write()) };
        let bias = self.bias.map(|bias| step.span(bias));
        let line = extent.forward.out_row;
        step.crew.run(step.rows * tiles.n_strips(), |task, thread| {
            let (sample, strip) = (task / tiles.n_strips(), task % tiles.n_strips());
            let rows = tiles.rows_of(strip);
            let scratch = step.scratch(thread);
            let room = scratch.part(0..tiles.scratch_len());
            // SAFETY: the scratch is of this thread, these rows of the output of this task; the rest is only read.
            unsafe {
                let start = match bias {
                    Some(bias) => Start::Bias(bias.read()),
                    None => Start::Zero,
                };
                let make = |out: Span| {
                    let source = x.piece(sample, extent.x_len()).read();
                    tiles.make(strip, source, turned.at(), room.write(), start, out.write());
                };
                let Some(pooled) = &self.pooled else {
                    let part = |span: Span| {
                        span.piece(sample, extent.y_len())
                            .part(rows.start * line..rows.end * line)
                    };
                    make(part(made));
                    return self.finish(part(made), part(y));
                };
                let first = tiles.scratch_len();
                let band = scratch.part(first..first + rows.len() * line);
                make(band);
                let (size, chosen) = (pooled.size[0], step.span(pooled.chosen));
                let kept = pooled.out[1] * extent.output[2];
                let first = rows.start / size;
                for row in first..(rows.end / size).min(pooled.out[0]) {
                    let at = (sample * pooled.out[0] + row) * kept;
                    let lines = band.piece(row - first, size * line);
                    self.pool(
                        pooled,
                        lines.read(),
                        y.part(at..at + kept),
                        &mut bytes(chosen)[at..at + kept],
                    );
                }
            }
        });
    }
}
