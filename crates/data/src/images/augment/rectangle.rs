//! Rectangles of pixels, and how they are drawn.

use super::draw::Draws;

/// Pixels that lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rectangle {
    pub top: usize,
    pub left: usize,
    pub height: usize,
    pub width: usize,
}

/// Width over height of a rectangle that has this share of a whole's area and lies within it; `whole` is that of the
/// whole. Others try at random until one fits, after which large areas are rarer than small ones. Here only those that
/// fit are drawn from, so that areas stay as they were drawn.
pub(super) fn fitting_aspect(area: f64, whole: f64, [low, high]: [f64; 2], draws: &mut Draws) -> f64 {
    let (narrowest, widest) = (area * whole, whole / area);
    draws.ratio_between(low.clamp(narrowest, widest), high.clamp(narrowest, widest))
}
