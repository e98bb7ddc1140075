//! How a sample stands in its frame: what is drawn of its geometry.

use super::draw::{Draws, SampleKey, Stream};
use super::rectangle::fitting_aspect;
use super::{Augment, OneOrTwo};

/// Sizes of samples, stored and as the network sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Height and width.
    pub stored: (usize, usize),
    pub output: (usize, usize),
    pub channels: usize,
}

impl Sizes {
    /// Top and left of the centre that is taken where nothing is cropped at random.
    pub(super) fn centre(&self) -> (usize, usize) {
        let (stored, output) = (self.stored, self.output);
        ((stored.0 - output.0) / 2, (stored.1 - output.1) / 2)
    }
}

/// What is done to one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pose {
    pub flip_x: bool,
    pub flip_y: bool,
    /// Rotation and shear, in degrees.
    pub rotation: f64,
    pub shear: f64,
    /// Shares of width and of height; factors of both.
    pub shift: [f64; 2],
    pub zoom: [f64; 2],
    pub crop: Option<Crop>,
}

/// A piece of the stored sample, in shares of its height and width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Crop {
    pub top: f64,
    pub left: f64,
    pub height: f64,
    pub width: f64,
}

impl Pose {
    /// As it stands.
    pub(super) const STILL: Pose = Pose {
        flip_x: false,
        flip_y: false,
        rotation: 0.0,
        shear: 0.0,
        shift: [0.0, 0.0],
        zoom: [1.0, 1.0],
        crop: None,
    };

    pub(super) fn draw(augment: &Augment, key: SampleKey) -> Pose {
        let either_way = |draws: &mut Draws, most: f64| draws.between(-most, most);
        let mut pose = Pose {
            flip_x: augment.horizontal_flip && key.draws(Stream::HorizontalFlip).with_probability(0.5),
            flip_y: augment.vertical_flip && key.draws(Stream::VerticalFlip).with_probability(0.5),
            ..Pose::STILL
        };
        if let Some(most) = augment.rotation {
            pose.rotation = either_way(&mut key.draws(Stream::Rotation), most);
        }
        if let Some(shift) = augment.shift {
            let mut draws = key.draws(Stream::Shift);
            pose.shift = shift.each().map(|most| either_way(&mut draws, most));
        }
        if let Some(most) = augment.shear {
            pose.shear = either_way(&mut key.draws(Stream::Shear), most);
        }
        if let Some([low, high]) = augment.zoom.map(OneOrTwo::around_one) {
            let mut draws = key.draws(Stream::Zoom);
            pose.zoom = [draws.between(low, high), draws.between(low, high)];
        }
        let crop = augment.crop.map(OneOrTwo::up_to_one);
        pose.crop = crop.map(|areas| Crop::draw(areas, &mut key.draws(Stream::Crop)));
        pose
    }

    /// Whether every pixel of the result is one of the stored sample: it is copied then.
    pub(super) fn is_straight(&self) -> bool {
        let flips_alone = Pose {
            flip_x: self.flip_x,
            flip_y: self.flip_y,
            ..Pose::STILL
        };
        *self == flips_alone
    }
}

impl Crop {
    /// How wide a piece may be for its height, compared with the whole: an oblong sample has oblong pieces.
    const ASPECT: [f64; 2] = [3.0 / 4.0, 4.0 / 3.0];

    fn draw([low, high]: [f64; 2], draws: &mut Draws) -> Crop {
        let area = draws.between(low, high);
        let aspect = fitting_aspect(area, 1.0, Crop::ASPECT, draws);
        let (height, width) = ((area / aspect).sqrt().min(1.0), (area * aspect).sqrt().min(1.0));
        Crop {
            top: draws.between(0.0, 1.0 - height),
            left: draws.between(0.0, 1.0 - width),
            height,
            width,
        }
    }
}
