//! Erasing: a rectangle is painted over with the mean colour, so that no single part of a sample decides.

use super::colour::means;
use super::draw::{Draws, SampleKey, Stream};
use super::rectangle::{Rectangle, fitting_aspect};

/// Shares of the area that are erased, and width over height.
const AREA: [f64; 2] = [0.02, 0.33];
const ASPECT: [f64; 2] = [0.3, 3.3];

impl Rectangle {
    /// What is erased of a sample of this height and width; nothing, if so it is drawn.
    pub(super) fn to_erase(probability: f64, size: (usize, usize), key: SampleKey) -> Option<Rectangle> {
        let mut draws = key.draws(Stream::Erase);
        draws
            .with_probability(probability)
            .then(|| Rectangle::anywhere(size, &mut draws))
    }

    fn anywhere((height, width): (usize, usize), draws: &mut Draws) -> Rectangle {
        let (whole_height, whole_width) = (height as f64, width as f64);
        let share = draws.between(AREA[0], AREA[1]);
        let aspect = fitting_aspect(share, whole_width / whole_height, ASPECT, draws);
        let area = share * whole_height * whole_width;
        let pixels = |side: f64, most: usize| (side.round() as usize).clamp(1, most);
        let erased_height = pixels((area / aspect).sqrt(), height);
        let erased_width = pixels((area * aspect).sqrt(), width);
        Rectangle {
            top: draws.below(height - erased_height + 1),
            left: draws.below(width - erased_width + 1),
            height: erased_height,
            width: erased_width,
        }
    }

    /// Paints over these pixels of a sample that is so wide.
    pub(super) fn erase<const CHANNELS: usize>(&self, width: usize, sample: &mut [u8]) {
        let colour = means::<CHANNELS>(sample).map(|mean| mean.round() as u8);
        let rows = sample.chunks_exact_mut(width * CHANNELS);
        for row in rows.skip(self.top).take(self.height) {
            let (pixels, _) = row[self.left * CHANNELS..].as_chunks_mut::<CHANNELS>();
            pixels[..self.width].fill(colour);
        }
    }
}
