//! Whether a value is there at all.

use serde::{Deserialize, Serialize};

use super::Width;
use crate::sketch::hash::MISSING;

/// `x = 1` where there is a value and 0 where it is missing, or the other way round. Needs no fitting, and takes
/// columns of any kind.
///
/// ```
/// use tidegate_data::encode::Flag;
/// assert_eq!([2.5, f64::NAN].map(|x| Flag::Present.number(x)), [1.0, 0.0]);
/// assert_eq!(Flag::Missing.name("age", 0), "age=missing");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    #[default]
    Present,
    Missing,
}

impl Flag {
    #[inline]
    pub fn number(&self, x: f64) -> f32 {
        self.of(x.is_nan())
    }

    #[inline]
    pub fn category(&self, hash: u64) -> f32 {
        self.of(hash == MISSING)
    }

    #[inline]
    fn of(&self, missing: bool) -> f32 {
        f32::from(u8::from(missing == (*self == Flag::Missing)))
    }

    pub fn width(&self) -> Width {
        Width::dense(1)
    }

    pub fn name(&self, column: &str, _output: usize) -> String {
        match self {
            Flag::Present => format!("{column}=present"),
            Flag::Missing => format!("{column}=missing"),
        }
    }
}
