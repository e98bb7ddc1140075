//! One affine map for all of geometry: where in the stored sample each pixel of the result is read.

use super::arithmetic::sine_and_cosine;
use super::pose::{Pose, Sizes};

/// Bits of a place's fraction while it is added up along rows and columns.
const PLACE_BITS: u32 = 32;
/// Bits of it that weigh pixels: an error of 1/512 of a pixel is half a level at the sharpest edge.
pub(super) const WEIGHT_BITS: u32 = 8;

/// Places in the stored sample, as a linear function of row and column of the result. They are counted in pixels of
/// 2^32, from the centre of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Map {
    first: Place,
    /// What a column further adds, and a row further.
    column: Place,
    row: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub x: i64,
    pub y: i64,
}

/// Places along a row of the result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub first: Place,
    pub step: Place,
}

impl Map {
    /// As the `apply_affine_transform` of Keras composes it, with points `(y, x)` counted from the centre:
    ///
    /// ```text
    ///   place = crop · rotation · shift · shear · 1/zoom · flip · pixel
    ///
    ///   rotation  cos θ  −sin θ      shear  1  −sin φ
    ///             sin θ   cos θ             0   cos φ
    /// ```
    ///
    /// Read from the right it says what is done with a pixel of the result; from the left, what is done with the
    /// sample: it is cropped to the output's size first, and flipped last.
    pub(super) fn new(pose: &Pose, sizes: &Sizes) -> Map {
        let (height, width) = (sizes.output.0 as f64, sizes.output.1 as f64);
        let window = Window::new(pose, sizes);
        let (sine, cosine) = sine_and_cosine(pose.rotation);
        let (shear_sine, shear_cosine) = sine_and_cosine(pose.shear);
        // What a step along an axis of the result comes to, without the crop.
        let turned = |y: f64, x: f64| (cosine * y - sine * x, sine * y + cosine * x);
        let step_y = if pose.flip_y { -1.0 } else { 1.0 } / pose.zoom[1];
        let step_x = if pose.flip_x { -1.0 } else { 1.0 } / pose.zoom[0];
        let row = turned(step_y, 0.0);
        let column = turned(-shear_sine * step_x, shear_cosine * step_x);
        let shift = turned(pose.shift[1] * height, pose.shift[0] * width);
        // From the centre back to the first pixel.
        let (up, left) = ((height - 1.0) / 2.0, (width - 1.0) / 2.0);
        let first_y = shift.0 - up * row.0 - left * column.0;
        let first_x = shift.1 - up * row.1 - left * column.1;
        Map {
            first: Place::new(
                window.centre.0 + window.scale.0 * first_y,
                window.centre.1 + window.scale.1 * first_x,
            ),
            column: Place::new(window.scale.0 * column.0, window.scale.1 * column.1),
            row: Place::new(window.scale.0 * row.0, window.scale.1 * row.1),
        }
    }

    /// The places of this row, ready to be cut to weights: half of the last bit that is kept is added.
    pub(super) fn line(&self, row: usize) -> Line {
        const HALF: i64 = 1 << (PLACE_BITS - WEIGHT_BITS - 1);
        let row = row as i64;
        Line {
            first: Place {
                x: self.first.x + row * self.row.x + HALF,
                y: self.first.y + row * self.row.y + HALF,
            },
            step: self.column,
        }
    }
}

impl Place {
    fn new(y: f64, x: f64) -> Place {
        let fixed = |x: f64| (x * (1u64 << PLACE_BITS) as f64).round() as i64;
        Place {
            x: fixed(x),
            y: fixed(y),
        }
    }
}

impl Line {
    pub(super) fn at(&self, column: usize) -> Place {
        Place {
            x: self.first.x + column as i64 * self.step.x,
            y: self.first.y + column as i64 * self.step.y,
        }
    }

    /// The columns, of so many, whose places have pixels on all sides in a sample of this size.
    pub(super) fn interior(&self, columns: usize, (height, width): (usize, usize)) -> std::ops::Range<usize> {
        let x = inside(self.first.x, self.step.x, width);
        let y = inside(self.first.y, self.step.y, height);
        let start = x.start.max(y.start).clamp(0, columns as i64);
        let end = x.end.min(y.end).clamp(start, columns as i64);
        start as usize..end as usize
    }
}

/// A place's pixels, and 256ths of a pixel.
#[inline(always)]
pub(super) fn weighed(place: i64) -> i32 {
    (place >> (PLACE_BITS - WEIGHT_BITS)) as i32
}

/// For which numbers of steps the place is from the first pixel of `n` to the last.
fn inside(first: i64, step: i64, n: usize) -> std::ops::Range<i64> {
    let end = (((n as i64 - 1) << WEIGHT_BITS) + 1) << (PLACE_BITS - WEIGHT_BITS);
    // The least whole number that is not below a quotient.
    let up = |a: i64, b: i64| -(-a).div_euclid(b);
    match step {
        0 if (0..end).contains(&first) => 0..i64::MAX,
        0 => 0..0,
        1.. => up(-first, step)..up(end - first, step),
        _ => (first - end).div_euclid(-step) + 1..first.div_euclid(-step) + 1,
    }
}

/// The part of the stored sample that makes the whole result, as points `(y, x)`.
struct Window {
    centre: (f64, f64),
    scale: (f64, f64),
}

impl Window {
    fn new(pose: &Pose, sizes: &Sizes) -> Window {
        let output = (sizes.output.0 as f64, sizes.output.1 as f64);
        let Some(crop) = pose.crop else {
            let (top, left) = sizes.centre();
            return Window {
                centre: (
                    top as f64 + (output.0 - 1.0) / 2.0,
                    left as f64 + (output.1 - 1.0) / 2.0,
                ),
                scale: (1.0, 1.0),
            };
        };
        let (height, width) = (sizes.stored.0 as f64, sizes.stored.1 as f64);
        Window {
            // The border is half a pixel before the centre of the first.
            centre: (
                (crop.top + crop.height / 2.0) * height - 0.5,
                (crop.left + crop.width / 2.0) * width - 0.5,
            ),
            scale: (crop.height * height / output.0, crop.width * width / output.1),
        }
    }
}
