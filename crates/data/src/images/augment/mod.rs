//! Augmentation: every epoch sees each image a little otherwise.
//!
//! A stored sample is bytes, height × width × channels, one channel or three. On its way to the network it is changed
//! as the job's `[augment]` says:
//!
//! 1. **Geometry.** Flip, rotation, shift, shear, zoom and crop are one affine map from pixels of the result to places
//!    in the stored sample, which is read there once, between its four nearest pixels.
//! 2. **Colour.** Brightness, contrast, saturation and hue are one matrix for each pixel.
//! 3. **Erasing.** A rectangle is painted over.
//! 4. **Mixing.** Two samples of a batch and their labels are blended, or one gets a piece of the other. This is done by
//!    whoever writes the batch, as [`Mixing`] says.
//!
//! # What the draws depend on
//!
//! On seed, epoch and the number of the sample, and on nothing else: not on threads, batches or the order of samples.
//! Each option draws from a stream of its own, so another option more or less leaves the others' draws as they were.
//! All that is drawn is computed with operations that IEEE 754 fixes to the last bit, and pixels with integers: the same
//! bytes come out on every machine, with vectors or without.
//!
//! # Sizes
//!
//! Stored samples have the size that the network sees. With `crop` they are kept 8/7 of it in each direction, as 256
//! is to 224, so that detail is left where a piece is enlarged; see [`Augment::stored_size`]. Samples to judge by are
//! never augmented: of them the centre is taken.
//!
//! # What it takes
//!
//! For 150 × 150 × 3 bytes on one core of a Sapphire Rapids: 3 µs for a flip, 54 µs for rotation, shear, zoom and flip
//! together (105 µs with `fill = "reflect"`, 190 µs without AVX2), and 12 µs more for all of the colours.

mod affine;
mod arithmetic;
mod colour;
mod draw;
mod erase;
mod fault;
mod flip;
mod mix;
mod pose;
mod rectangle;
mod sampler;
mod vectors;
mod warp;
mod words;

#[cfg(test)]
mod tests;

pub use draw::BatchKey;
pub(crate) use draw::SampleKey;
pub use fault::AugmentFault;
pub use mix::Mixing;
pub use rectangle::Rectangle;
pub(crate) use sampler::Sampler;
pub use sampler::{MOST_BYTES, MOST_SIDE};

use serde::{Deserialize, Serialize};

use super::form::stored_size;

/// `[augment]` of a job: how training samples are changed. Nothing is, unless it is asked for.
///
/// ```toml
/// [augment]
/// horizontal_flip = true
/// rotation = 20            # degrees, either way
/// zoom = [0.8, 1.2]
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Augment {
    /// Half of the samples are turned left to right, or upside down.
    #[serde(skip_serializing_if = "is_false")]
    pub horizontal_flip: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub vertical_flip: bool,
    /// At most so many degrees, either way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation: Option<f64>,
    /// At most this share of width and height, either way; two numbers are of x and of y.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<OneOrTwo>,
    /// At most so many degrees, either way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shear: Option<f64>,
    /// Enlarged by 1 − z … 1 + z, or by low … high; width and height apart, as in Keras. Over 1 is larger, while Keras
    /// counts the other way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zoom: Option<OneOrTwo>,
    /// What shows where the sample does not reach.
    #[serde(skip_serializing_if = "Fill::is_usual")]
    pub fill: Fill,
    /// A piece of low … high (1, if only one number is given) of the area, 3/4 … 4/3 as wide as the whole for its
    /// height, is scaled to the full size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crop: Option<OneOrTwo>,
    /// A factor of 1 − b … 1 + b, or low … high. So are contrast, around the mean gray of the sample, and saturation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brightness: Option<OneOrTwo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contrast: Option<OneOrTwo>,
    /// Has no effect on gray samples, nor has hue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saturation: Option<OneOrTwo>,
    /// At most this share of the colour circle, either way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hue: Option<f64>,
    /// How probable it is that a rectangle is painted over with the sample's mean colour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erase: Option<f64>,
    /// Samples are blended by λ of Beta(α, α); this is α.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixup: Option<f64>,
    /// A rectangle of 1 − λ of the area is another sample's, λ of Beta(α, α). With mixup, half of the batches get each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cutmix: Option<f64>,
}

/// What shows where a sample does not reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    /// The pixel at the border, on and on.
    #[default]
    Nearest,
    /// The sample as in a mirror at its border: `c b a | a b c | c b a`.
    Reflect,
    /// The sample again and again: `a b c | a b c | a b c`.
    Wrap,
    /// Black.
    Constant,
}

impl Fill {
    fn is_usual(&self) -> bool {
        *self == Fill::default()
    }

    fn word(self) -> &'static str {
        match self {
            Fill::Nearest => "nearest",
            Fill::Reflect => "reflect",
            Fill::Wrap => "wrap",
            Fill::Constant => "constant",
        }
    }
}

/// A number, or two.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number, or a list of two")]
pub enum OneOrTwo {
    One(f64),
    Two([f64; 2]),
}

impl OneOrTwo {
    /// 1 − x and 1 + x, or the two.
    fn around_one(self) -> [f64; 2] {
        match self {
            OneOrTwo::One(x) => [1.0 - x, 1.0 + x],
            OneOrTwo::Two(range) => range,
        }
    }

    /// The same twice, or the two.
    fn each(self) -> [f64; 2] {
        match self {
            OneOrTwo::One(x) => [x, x],
            OneOrTwo::Two(each) => each,
        }
    }

    /// From x to 1, or the two.
    fn up_to_one(self) -> [f64; 2] {
        match self {
            OneOrTwo::One(x) => [x, 1.0],
            OneOrTwo::Two(range) => range,
        }
    }
}

/// Narrow enough that no place in a sample of [`MOST_SIDE`] outgrows its integer.
const ZOOM: [f64; 2] = [0.05, 20.0];
/// So wide that a product of three factors still has bits for its fraction.
const FACTOR: [f64; 2] = [0.0, 5.0];
/// Below, nearly every λ is 0 or 1; above, nearly every one is a half.
const ALPHA: [f64; 2] = [0.01, 100.0];
/// A piece of less than a hundredth is a blot.
const CROP: [f64; 2] = [0.01, 1.0];

impl Augment {
    /// Whether samples and labels stay as they are.
    pub fn is_nothing(&self) -> bool {
        self.parts().is_empty()
    }

    /// Whether labels are mixed, too: each sample then has shares of two.
    pub fn mixes(&self) -> bool {
        self.mixup.is_some() || self.cutmix.is_some()
    }

    /// Height and width of stored samples, for those of the samples that the network sees.
    ///
    /// ```
    /// use tidegate_data::images::Augment;
    /// let crop = Augment::parse("crop=0.5").unwrap();
    /// assert_eq!(crop.stored_size(224, 150), (256, 172));
    /// assert_eq!(Augment::default().stored_size(224, 150), (224, 150));
    /// ```
    pub fn stored_size(&self, height: usize, width: usize) -> (usize, usize) {
        stored_size(height, width, self.crop.is_some())
    }

    /// Refuses what no sample could make right.
    pub fn check(&self) -> Result<(), AugmentFault> {
        let degrees = "give 0 to 180 degrees";
        one("rotation", self.rotation, [0.0, 180.0], degrees)?;
        let share = "give a share of the side, 0 to 1; or two, of x and of y";
        two("shift", self.shift, OneOrTwo::each, [0.0, 1.0], share)?;
        one("shear", self.shear, [0.0, 89.0], "give 0 to 89 degrees")?;
        let zoom = "give 0 to 0.95; or the lowest and the highest factor, from 0.05 to 20";
        range("zoom", self.zoom, OneOrTwo::around_one, ZOOM, zoom)?;
        let crop = "give the smallest share of the area, from 0.01 to 1; or the smallest and the largest";
        range("crop", self.crop, OneOrTwo::up_to_one, CROP, crop)?;
        let factor = "give 0 to 1; or the lowest and the highest factor, from 0 to 5";
        for (name, factors) in [
            ("brightness", self.brightness),
            ("contrast", self.contrast),
            ("saturation", self.saturation),
        ] {
            range(name, factors, OneOrTwo::around_one, FACTOR, factor)?;
        }
        let circle = "give a share of the colour circle, 0 to 0.5";
        one("hue", self.hue, [0.0, 0.5], circle)?;
        one("erase", self.erase, [0.0, 1.0], "give a probability, 0 to 1")?;
        one("mixup", self.mixup, ALPHA, "give 0.01 to 100; 0.2 is usual")?;
        one("cutmix", self.cutmix, ALPHA, "give 0.01 to 100; 1 is usual")
    }
}

/// Refuses a number out of bounds, and what is none.
fn one(name: &'static str, x: Option<f64>, [least, most]: [f64; 2], hint: &str) -> Result<(), AugmentFault> {
    match x {
        Some(x) if !(least..=most).contains(&x) => Err(AugmentFault::out_of_range(name, &x, hint)),
        _ => Ok(()),
    }
}

/// Refuses two of which one is out of bounds.
fn two(
    name: &'static str,
    numbers: Option<OneOrTwo>,
    meaning: fn(OneOrTwo) -> [f64; 2],
    [least, most]: [f64; 2],
    hint: &str,
) -> Result<(), AugmentFault> {
    match numbers {
        Some(numbers) if !meaning(numbers).iter().all(|x| (least..=most).contains(x)) => {
            Err(AugmentFault::out_of_range(name, &numbers, hint))
        }
        _ => Ok(()),
    }
}

/// Refuses a range out of bounds, and one that is the wrong way round.
fn range(
    name: &'static str,
    numbers: Option<OneOrTwo>,
    meaning: fn(OneOrTwo) -> [f64; 2],
    bounds: [f64; 2],
    hint: &str,
) -> Result<(), AugmentFault> {
    two(name, numbers, meaning, bounds, hint)?;
    match numbers {
        // One negative number is the range around one, the wrong way round.
        Some(numbers @ OneOrTwo::One(_)) if meaning(numbers)[0] > meaning(numbers)[1] => {
            Err(AugmentFault::out_of_range(name, &numbers, hint))
        }
        Some(numbers @ OneOrTwo::Two([low, high])) if low > high => Err(AugmentFault::WrongWayRound {
            option: name,
            value: numbers.to_string(),
        }),
        _ => Ok(()),
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}
