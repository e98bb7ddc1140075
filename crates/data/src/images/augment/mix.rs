//! Mixing: samples of a batch are blended with others of it, and so are their labels.
//!
//! Mixup (Zhang and others, 2018) blends whole samples, `λ · own + (1 − λ) · other`. Cutmix (Yun and others, 2019) puts a
//! rectangle of the other into each. λ is drawn once for a batch, and the partner of a sample is always as far away, as
//! in torchvision.

use super::Augment;
use super::draw::{BatchKey, Draws, Stream};
use super::rectangle::Rectangle;

/// How the samples of one batch are mixed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mixing {
    pub n_samples: usize,
    /// How far on in the batch the partner of each sample is.
    pub distance: usize,
    /// The share of its label that each sample keeps; the rest is its partner's.
    pub share: f32,
    /// What each sample gets of its partner. Without, they are blended by the share.
    pub cut: Option<Rectangle>,
}

impl Augment {
    /// How a batch of so many samples, of this height and width, is mixed; none where it is not. A sample alone has
    /// no partner.
    pub fn mixing(&self, key: BatchKey, n_samples: usize, size: (usize, usize)) -> Option<Mixing> {
        if n_samples < 2 || !self.mixes() {
            return None;
        }
        let distance = 1 + key.draws(Stream::Partner).below(n_samples - 1);
        let mixing = |share, cut| Mixing {
            n_samples,
            distance,
            share,
            cut,
        };
        match (self.mixup, self.cutmix) {
            (mixup, Some(alpha))
                if mixup.is_none() || key.draws(Stream::MixupOrCutmix).with_probability(0.5) =>
            {
                let (cut, share) = draw_cut(alpha, size, &mut key.draws(Stream::Cutmix));
                Some(mixing(share, Some(cut)))
            }
            (mixup, _) => mixup.map(|alpha| mixing(key.draws(Stream::Mixup).beta(alpha) as f32, None)),
        }
    }
}

impl Mixing {
    /// The index in the batch of what the sample at `index` is mixed with.
    pub fn partner(&self, index: usize) -> usize {
        (index + self.distance) % self.n_samples
    }

    /// Writes a sample mixed with its partner: both as bytes or as numbers, their channels last, and so wide.
    pub fn write<T: Copy + Into<f32>>(
        &self,
        [own, partner]: [&[T]; 2],
        (width, channels): (usize, usize),
        into: &mut [f32],
    ) {
        let Some(cut) = self.cut else {
            for ((into, own), partner) in into.iter_mut().zip(own).zip(partner) {
                let (own, partner): (f32, f32) = ((*own).into(), (*partner).into());
                // What is the same in both stays exactly so.
                *into = partner + self.share * (own - partner);
            }
            return;
        };
        for (into, own) in into.iter_mut().zip(own) {
            *into = (*own).into();
        }
        let row = width * channels;
        let columns = cut.left * channels..(cut.left + cut.width) * channels;
        let rows = into.chunks_exact_mut(row).zip(partner.chunks_exact(row));
        for (into, partner) in rows.skip(cut.top).take(cut.height) {
            for (into, partner) in into[columns.clone()].iter_mut().zip(&partner[columns.clone()]) {
                *into = (*partner).into();
            }
        }
    }
}

/// A rectangle with its centre anywhere, so that some of it may be outside; and the share of the area that is left.
fn draw_cut(alpha: f64, (height, width): (usize, usize), draws: &mut Draws) -> (Rectangle, f32) {
    let half = 0.5 * (1.0 - draws.beta(alpha)).sqrt();
    let mut side = |whole: usize| {
        let centre = draws.below(whole);
        let reach = (half * whole as f64) as usize;
        let start = centre.saturating_sub(reach);
        (start, (centre + reach).min(whole) - start)
    };
    let ((top, cut_height), (left, cut_width)) = (side(height), side(width));
    let cut = Rectangle {
        top,
        left,
        height: cut_height,
        width: cut_width,
    };
    let taken = (cut_height * cut_width) as f64 / (height * width) as f64;
    (cut, (1.0 - taken) as f32)
}
