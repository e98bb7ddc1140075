//! How pictures of any size become samples of one size.

use serde::{Deserialize, Serialize};

use super::resize::Rectangle;

/// What is done with pictures of other proportions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resize {
    /// All of the picture, stretched.
    #[default]
    Stretch,
    /// All of the picture, with black bars beside it.
    Fit,
    /// The middle of the picture, as much of it as fills the sample.
    Crop,
}

/// What the network sees of a picture: height × width × channels bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageForm {
    pub height: usize,
    pub width: usize,
    /// 1 for gray, 3 for red, green and blue.
    pub channels: usize,
    #[serde(default)]
    pub resize: Resize,
    /// Kept larger by a seventh than the network sees it, and judged by its middle: where random pieces are learned from.
    #[serde(default)]
    pub margin: bool,
}

impl ImageForm {
    /// Height and width of stored samples.
    pub(crate) fn stored_size(&self) -> (usize, usize) {
        stored_size(self.height, self.width, self.margin)
    }
}

/// Height and width of stored samples, for those of the samples that the network sees: as 256 is to 224 with a margin.
pub(crate) fn stored_size(height: usize, width: usize, margin: bool) -> (usize, usize) {
    let larger = |side: usize| side.saturating_mul(8).div_ceil(7);
    match margin {
        true => (larger(height), larger(width)),
        false => (height, width),
    }
}

/// Which part of a picture goes where in a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Frame {
    /// The part of the picture, in its pixels.
    pub source: Rectangle,
    /// Where it goes, in whole pixels.
    pub x: usize,
    pub y: usize,
    pub width: usize,
    pub height: usize,
}

impl Resize {
    /// How a picture fills a sample of this size.
    pub(crate) fn frame(self, picture: (u32, u32), width: usize, height: usize) -> Frame {
        let (from_width, from_height) = (f64::from(picture.0), f64::from(picture.1));
        let (to_width, to_height) = (width as f64, height as f64);
        let mut frame = Frame {
            source: Rectangle::whole(picture.0, picture.1),
            x: 0,
            y: 0,
            width,
            height,
        };
        let (across, down) = (to_width / from_width, to_height / from_height);
        match self {
            Resize::Stretch => {}
            Resize::Fit => {
                let scale = across.min(down);
                frame.width = ((from_width * scale).round() as usize).clamp(1, width);
                frame.height = ((from_height * scale).round() as usize).clamp(1, height);
                frame.x = (width - frame.width) / 2;
                frame.y = (height - frame.height) / 2;
            }
            Resize::Crop => {
                let scale = across.max(down);
                frame.source.width = (to_width / scale).min(from_width);
                frame.source.height = (to_height / scale).min(from_height);
                frame.source.x = (from_width - frame.source.width) / 2.0;
                frame.source.y = (from_height - frame.source.height) / 2.0;
            }
        }
        frame
    }
}

/// Turns a small picture as its camera was held: `orientation` is EXIF's, 1 to 8. `from` is as wide and high as stored in
/// the file; a quarter turn swaps that in `into`.
pub(crate) fn turn(
    from: &[u8],
    (width, height): (usize, usize),
    channels: usize,
    orientation: u8,
    into: &mut [u8],
) {
    let place = |x: usize, y: usize| match orientation {
        2 => (width - 1 - x, y, width),
        3 => (width - 1 - x, height - 1 - y, width),
        4 => (x, height - 1 - y, width),
        5 => (y, x, height),
        6 => (height - 1 - y, x, height),
        7 => (height - 1 - y, width - 1 - x, height),
        8 => (y, width - 1 - x, height),
        _ => (x, y, width),
    };
    for (i, pixel) in from.chunks_exact(channels).enumerate() {
        let (x, y, row) = place(i % width, i / width);
        let at = (y * row + x) * channels;
        into[at..at + channels].copy_from_slice(pixel);
    }
}

/// Whether a quarter turn swaps width and height.
pub(crate) fn is_quarter_turn(orientation: u8) -> bool {
    (5..=8).contains(&orientation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_fill_samples_as_asked() {
        let frame = |resize: Resize, picture| resize.frame(picture, 100, 50);
        let stretched = frame(Resize::Stretch, (400, 400));
        assert_eq!((stretched.source.width, stretched.source.height), (400.0, 400.0));
        assert_eq!((stretched.width, stretched.height), (100, 50));
        let fitted = frame(Resize::Fit, (400, 400));
        assert_eq!((fitted.x, fitted.y, fitted.width, fitted.height), (25, 0, 50, 50));
        let cropped = frame(Resize::Crop, (400, 400));
        let source = cropped.source;
        assert_eq!(
            (source.x, source.y, source.width, source.height),
            (0.0, 100.0, 400.0, 200.0)
        );
        assert_eq!((cropped.width, cropped.height), (100, 50));
        // One pixel in a million still shows.
        assert_eq!(frame(Resize::Fit, (1, 1_000_000)).width, 1);
    }

    /// The letter F, as each orientation has it in the file, comes out upright.
    #[test]
    fn every_orientation_comes_out_upright() {
        let upright = ["###", "#..", "##.", "#..", "#.."];
        let stored = [
            &["###", "#..", "##.", "#..", "#.."][..],
            &["###", "..#", ".##", "..#", "..#"],
            &["..#", "..#", ".##", "..#", "###"],
            &["#..", "#..", "##.", "#..", "###"],
            &["#####", "#.#..", "#...."],
            &["#....", "#.#..", "#####"],
            &["....#", "..#.#", "#####"],
            &["#####", "..#.#", "....#"],
        ];
        for (orientation, stored) in (1..=8).zip(stored) {
            let from: Vec<u8> = stored.concat().bytes().collect();
            let mut into = vec![0; 15];
            turn(&from, (stored[0].len(), stored.len()), 1, orientation, &mut into);
            assert_eq!(
                String::from_utf8(into).unwrap(),
                upright.concat(),
                "{orientation}"
            );
        }
    }
}
