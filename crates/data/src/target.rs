//! The column to predict: a number, or one of two values.

use serde::{Deserialize, Serialize};

use crate::csv::rows::unquote;
use crate::number::{Number, is_missing, parse_number};
use crate::profile::ColumnProfile;

/// What is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    Regression,
    Binary,
}

/// How the target becomes a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// As it stands; mean and deviation of the sample serve the model for scaling.
    Number { mean: f64, deviation: f64 },
    /// 0 for `negative`, 1 for `positive`.
    Binary { negative: Label, positive: Label },
}

/// One of the two values of a binary target, compared as a number where it is one (`1`, `1.0`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Label {
    pub text: String,
    number: Option<f64>,
}

impl Label {
    pub fn new(text: &str) -> Label {
        let number = match parse_number(text.as_bytes()) {
            Number::Value(value) => Some(value),
            _ => None,
        };
        Label {
            text: text.to_string(),
            number,
        }
    }

    /// Whether the label stands for this field: the same number, or the same text.
    pub(crate) fn matches(&self, field: &[u8]) -> bool {
        if self.text.as_bytes() == field {
            return true;
        }
        match (self.number, parse_number(field)) {
            (Some(number), Number::Value(value)) => number == value,
            _ => self.text.as_bytes() == field.trim_ascii() || self.text == unquote(field, Some(b'"')),
        }
    }
}

/// What a field of the target column holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TargetValue {
    Value(f64),
    Missing,
    NotANumber,
    ThirdValue,
}

impl Target {
    pub fn task(&self) -> Task {
        match self {
            Target::Number { .. } => Task::Regression,
            Target::Binary { .. } => Task::Binary,
        }
    }

    /// A binary target with the smaller (or alphabetically first) value as the negative one.
    pub(crate) fn binary(a: &str, b: &str) -> Target {
        let (a, b) = (Label::new(a), Label::new(b));
        let in_order = match (a.number, b.number) {
            (Some(x), Some(y)) => x <= y,
            _ => a.text <= b.text,
        };
        let (negative, positive) = if in_order { (a, b) } else { (b, a) };
        Target::Binary { negative, positive }
    }

    pub(crate) fn number(profile: &ColumnProfile) -> Target {
        let deviation = profile.variance().sqrt();
        let deviation = if deviation > 0.0 && deviation.is_finite() {
            deviation
        } else {
            1.0
        };
        Target::Number {
            mean: profile.mean,
            deviation,
        }
    }

    #[inline]
    pub fn read(&self, field: &[u8]) -> TargetValue {
        match self {
            Target::Number { .. } => match parse_number(field) {
                Number::Value(value) => TargetValue::Value(value),
                Number::Missing => TargetValue::Missing,
                Number::Infinite | Number::Text => TargetValue::NotANumber,
            },
            Target::Binary { negative, positive } => {
                if negative.matches(field) {
                    TargetValue::Value(0.0)
                } else if positive.matches(field) {
                    TargetValue::Value(1.0)
                } else if is_missing(field) {
                    TargetValue::Missing
                } else {
                    TargetValue::ThirdValue
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_values_in_their_order() {
        let check = |a: &str, b: &str, negative: &str, positive: &str| {
            let Target::Binary {
                negative: n,
                positive: p,
            } = Target::binary(a, b)
            else {
                panic!()
            };
            assert_eq!((n.text.as_str(), p.text.as_str()), (negative, positive));
        };
        check("1", "0", "0", "1");
        check("10", "9", "9", "10");
        check("yes", "no", "no", "yes");
        check("True", "False", "False", "True");
    }

    #[test]
    fn labels_are_read_as_people_write_them() {
        let target = Target::binary("0", "1");
        assert_eq!(target.read(b"1.0"), TargetValue::Value(1.0));
        assert_eq!(target.read(b" 0"), TargetValue::Value(0.0));
        assert_eq!(target.read(b"NA"), TargetValue::Missing);
        assert_eq!(target.read(b"2"), TargetValue::ThirdValue);
        let target = Target::binary("say \"no\"", "yes");
        assert_eq!(target.read(b"say \"\"no\"\""), TargetValue::Value(0.0));
        assert_eq!(target.read(b" yes "), TargetValue::Value(1.0));
    }
}
