//! What can be wrong with the options of augmentation.

use std::fmt::Display;

use super::words::{OPTIONS, STANDARD};
use crate::error::names::nearest;

/// What is said of augmentation and cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AugmentFault {
    #[error("augment: there is no {name:?}")]
    Unknown { name: String },
    #[error("augment: {option} has no value")]
    NoValue { option: &'static str, hint: String },
    #[error("augment: {option} = {value} is not {expected}")]
    NotThat {
        option: &'static str,
        value: String,
        expected: &'static str,
        hint: String,
    },
    #[error("augment: {option} = {value} is out of range")]
    OutOfRange {
        option: &'static str,
        value: String,
        hint: String,
    },
    #[error("augment: {option} = {value} is the wrong way round")]
    WrongWayRound { option: &'static str, value: String },
}

impl AugmentFault {
    pub(super) fn out_of_range(option: &'static str, value: &dyn Display, hint: &str) -> AugmentFault {
        AugmentFault::OutOfRange {
            option,
            value: value.to_string(),
            hint: hint.into(),
        }
    }

    /// What would do.
    pub fn hint(&self) -> String {
        match self {
            AugmentFault::Unknown { name } => {
                let known: Vec<String> = OPTIONS.into_iter().map(String::from).collect();
                match nearest(name, &known) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => format!("there are {STANDARD}, {}", OPTIONS.join(", ")),
                }
            }
            AugmentFault::NoValue { hint, .. }
            | AugmentFault::NotThat { hint, .. }
            | AugmentFault::OutOfRange { hint, .. } => hint.clone(),
            AugmentFault::WrongWayRound { .. } => "give the lower number first".into(),
        }
    }
}
