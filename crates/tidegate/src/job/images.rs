//! The part of a job that says what to make of images.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tidegate_data::images::{BadFileRule, Resize};

/// `[images]`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImagesPart {
    /// What the network sees: `150`, or `[height, width]`. Found by the images where it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<ImageSize>,
    /// 1 for gray, 3 for colours; by the images where it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<usize>,
    #[serde(skip_serializing_if = "is_usual")]
    pub resize: Resize,
    #[serde(skip_serializing_if = "is_usual")]
    pub bad_files: BadFileRule,
    /// As many samples of each class as of any other in every epoch.
    #[serde(skip_serializing_if = "is_usual")]
    pub balanced: bool,
    /// Of a table that lists images, the column of their paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
}

impl ImagesPart {
    pub fn is_usual(&self) -> bool {
        is_usual(self)
    }
}

fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A side, or height and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number of pixels, or [height, width]")]
pub enum ImageSize {
    Square(usize),
    Sides([usize; 2]),
}

impl ImageSize {
    /// Height and width.
    pub fn sides(self) -> (usize, usize) {
        match self {
            ImageSize::Square(side) => (side, side),
            ImageSize::Sides([height, width]) => (height, width),
        }
    }
}

impl FromStr for ImageSize {
    type Err = String;

    /// `150`, or `150x200`: height, then width.
    fn from_str(text: &str) -> Result<ImageSize, String> {
        let number = |text: &str| text.trim().parse().ok();
        let size = match text.split_once(['x', 'X', '×']) {
            None => number(text).map(ImageSize::Square),
            Some((height, width)) => number(height)
                .zip(number(width))
                .map(|(height, width)| ImageSize::Sides([height, width])),
        };
        size.ok_or_else(|| "give a side such as 150, or height and width such as 150x200".into())
    }
}

impl fmt::Display for ImageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (height, width) = self.sides();
        write!(f, "{height}x{width}")
    }
}
