//! Makes of a stored sample the one that the network sees.

use super::affine::Map;
use super::colour::Tint;
use super::draw::SampleKey;
use super::pose::{Pose, Sizes};
use super::rectangle::Rectangle;
use super::warp::{Spots, Warp};
use super::{Augment, flip, vectors};

/// The longest side of a sample, and the most bytes: places are added up and found in integers that hold these.
pub const MOST_SIDE: usize = u16::MAX as usize;
pub const MOST_BYTES: usize = 1 << 30;

/// What one thread needs to augment samples, one after the other.
#[derive(Debug)]
pub(crate) struct Sampler {
    augment: Augment,
    sizes: Sizes,
    spots: Spots,
    vectors: bool,
}

impl Sampler {
    /// For samples of these heights and widths, and of one channel or three. The options are checked already; none is
    /// stored smaller than it is put out, or larger than [`MOST_SIDE`] and [`MOST_BYTES`].
    pub(crate) fn new(
        augment: &Augment,
        stored: (usize, usize),
        output: (usize, usize),
        channels: usize,
    ) -> Sampler {
        assert!(channels == 1 || channels == 3, "{channels} channels");
        assert!(
            output.0 >= 1 && output.0 <= stored.0 && output.1 >= 1 && output.1 <= stored.1,
            "{output:?} of {stored:?}"
        );
        assert!(
            stored.0.max(stored.1) <= MOST_SIDE && stored.0 * stored.1 * channels <= MOST_BYTES,
            "{stored:?} is too large"
        );
        Sampler {
            augment: augment.clone(),
            sizes: Sizes {
                stored,
                output,
                channels,
            },
            spots: Spots::new(output.1),
            vectors: vectors::are_present(),
        }
    }

    /// What it holds for samples that are put out so wide.
    pub(crate) fn bytes_needed(output_width: usize) -> u64 {
        size_of::<Sampler>() as u64 + output_width as u64 * Spots::BYTES
    }

    /// The same without vectors.
    #[cfg(test)]
    pub(super) fn plainly(mut self) -> Sampler {
        self.vectors = false;
        self
    }

    /// Writes a sample as this key draws it.
    pub(crate) fn apply(&mut self, key: SampleKey, stored: &[u8], into: &mut [u8]) {
        let pose = Pose::draw(&self.augment, key);
        self.pose(&pose, stored, into);
        Tint::draw(&self.augment, key).apply(self.sizes.channels, self.vectors, into);
        let (probability, size) = (self.augment.erase.unwrap_or(0.0), self.sizes.output);
        if let Some(rectangle) = Rectangle::to_erase(probability, size, key) {
            match self.sizes.channels {
                1 => rectangle.erase::<1>(size.1, into),
                _ => rectangle.erase::<3>(size.1, into),
            }
        }
    }

    /// Writes the centre of a sample as it stands, to judge by.
    pub(crate) fn centre(&self, stored: &[u8], into: &mut [u8]) {
        self.hold_to_sizes(stored, into);
        flip::copy(&self.sizes, &Pose::STILL, self.vectors, stored, into);
    }

    /// Writes a sample in this pose.
    pub(super) fn pose(&mut self, pose: &Pose, stored: &[u8], into: &mut [u8]) {
        self.hold_to_sizes(stored, into);
        if pose.is_straight() {
            return flip::copy(&self.sizes, pose, self.vectors, stored, into);
        }
        let warp = Warp {
            sizes: self.sizes,
            map: Map::new(pose, &self.sizes),
            fill: self.augment.fill,
            vectors: self.vectors,
        };
        warp.write(&mut self.spots, stored, into);
    }

    fn hold_to_sizes(&self, stored: &[u8], into: &[u8]) {
        let bytes = |(height, width): (usize, usize)| height * width * self.sizes.channels;
        assert_eq!(stored.len(), bytes(self.sizes.stored), "a stored sample");
        assert_eq!(into.len(), bytes(self.sizes.output), "room for a sample");
    }
}
