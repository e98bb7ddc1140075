//! How much every source pixel counts for an output pixel, along one axis.

use std::ops::Range;

use super::refit;

/// Weights are whole numbers that add up to this.
pub(super) const ONE_BITS: u32 = 14;
const ONE: f64 = (1 << ONE_BITS) as f64;
/// The weights of an output pixel are padded with zeros to a multiple of this, so that columns are summed in fours.
pub(super) const PADDING: usize = 4;

/// The rows or the columns of a picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    /// Pixels of the source, and the part of them that becomes the output.
    pub source: usize,
    pub from: f64,
    pub length: f64,
    pub out: usize,
}

impl Axis {
    pub(super) fn reduces(&self) -> bool {
        self.length >= self.out as f64
    }

    pub(super) fn is_copy(&self) -> bool {
        self.from == 0.0 && self.out == self.source && self.length == self.source as f64
    }

    fn scale(&self) -> f64 {
        self.length / self.out as f64
    }

    /// How far the triangle reaches to either side.
    fn support(&self) -> f64 {
        self.scale().max(1.0)
    }

    /// Source pixels that count for an output pixel, at most: so many centres fit into the open triangle.
    fn most(&self) -> usize {
        ((2.0 * self.support()).ceil() as usize).clamp(1, self.source)
    }

    /// Room for the weights of an output pixel.
    pub(super) fn taps(&self) -> usize {
        self.most().next_multiple_of(PADDING)
    }

    /// The source pixels around the centre of an output pixel, and that centre.
    fn span(&self, out: usize) -> (Range<usize>, f64) {
        let centre = self.from + (out as f64 + 0.5) * self.scale();
        let source = self.source as f64;
        let first = (centre - self.support() + 0.5).floor().clamp(0.0, source - 1.0);
        let last = (centre + self.support() + 0.5).floor().clamp(first + 1.0, source);
        (first as usize..last as usize, centre)
    }

    /// All source pixels that count.
    pub(super) fn reach(&self) -> Range<usize> {
        if self.is_copy() {
            return 0..self.source;
        }
        self.span(0).0.start..self.span(self.out - 1).0.end
    }
}

#[derive(Debug, Default)]
pub(super) struct Weights {
    /// Of every output pixel: its first source pixel, and how many count.
    spans: Vec<(u32, u32)>,
    /// `taps` for every output pixel.
    values: Vec<i16>,
    pub taps: usize,
}

impl Weights {
    pub(super) fn bytes(axis: &Axis) -> u64 {
        let one = size_of::<(u32, u32)>() + axis.taps() * size_of::<i16>();
        axis.out as u64 * one as u64
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> u64 {
        let spans = self.spans.capacity() * size_of::<(u32, u32)>();
        (spans + self.values.capacity() * size_of::<i16>()) as u64
    }

    /// The first source pixel of an output pixel, and the weights from there on.
    #[inline(always)]
    pub(super) fn of(&self, out: usize) -> (usize, &[i16]) {
        let (start, n) = self.spans[out];
        (start as usize, &self.values[out * self.taps..][..n as usize])
    }

    /// The starts, and the weights of each with their padding.
    pub(super) fn padded(&self) -> (&[(u32, u32)], &[i16]) {
        (&self.spans, &self.values)
    }

    pub(super) fn fill(&mut self, axis: &Axis) {
        self.taps = axis.taps();
        refit(&mut self.spans, axis.out);
        refit(&mut self.values, axis.out * self.taps);
        self.values.fill(0);
        let last_slot = axis.most() - 1;
        for (out, (place, values)) in self
            .spans
            .iter_mut()
            .zip(self.values.chunks_exact_mut(self.taps))
            .enumerate()
        {
            let (span, centre) = axis.span(out);
            let weight = |pixel: usize| (1.0 - (pixel as f64 + 0.5 - centre).abs() / axis.support()).max(0.0);
            let total: f64 = span.clone().map(weight).sum();
            if total <= 0.0 {
                // The rectangle lies beside the picture: its border goes on for ever.
                *place = (span.start as u32, 1);
                values[0] = ONE as i16;
                continue;
            }
            // The running total is rounded, not each weight: so they add up to one exactly.
            let (mut running, mut given) = (0.0, 0);
            let (mut start, mut n) = (span.start, 0);
            for pixel in span {
                running += weight(pixel);
                let until = (running / total * ONE + 0.5).floor() as i32;
                if until == given {
                    continue;
                }
                if n == 0 {
                    start = pixel;
                }
                let slot = (pixel - start).min(last_slot);
                values[slot] += (until - given) as i16;
                n = slot + 1;
                given = until;
            }
            *place = (start as u32, n as u32);
        }
    }
}
