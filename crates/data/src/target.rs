//! The column to predict: a number, or one of two values.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::chunk::{Chunk, Read};
use crate::number::{Number, parse_number};
use crate::profile::ColumnProfile;

/// What is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    Regression,
    Binary,
    Multiclass,
}

/// How the target becomes a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// As it stands; mean and deviation of the sample serve the model for scaling.
    Number { mean: f64, deviation: f64 },
    /// 0 for `negative`, 1 for `positive`.
    Binary { negative: Label, positive: Label },
    /// The index among the values, which are in order.
    Classes { labels: Vec<Label> },
}

/// Most values that a target may have and be one of classes.
pub const MOST_CLASSES: usize = 1000;

/// One of the values of a target of classes, compared as a number where it is one (`1`, `1.0`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Label {
    pub text: String,
    number: Option<f64>,
}

impl Label {
    pub fn new(text: &str) -> Label {
        let number = match parse_number(text.as_bytes()) {
            // No negative zero: it is equal to zero and would not be found.
            Number::Value(value) => Some(value + 0.0),
            _ => None,
        };
        Label {
            text: text.to_string(),
            number,
        }
    }

    /// Whether both stand for one value: the same number (`1`, `1.0`), or the same text.
    pub(crate) fn is_same(&self, other: &Label) -> bool {
        self.text == other.text || (self.number.is_some() && self.number == other.number)
    }

    fn compare(&self, other: &Label) -> Ordering {
        match (self.number, other.number) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            _ => self.text.cmp(&other.text),
        }
    }
}

/// What a cell of the target column holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TargetValue {
    Value(f64),
    Missing,
    /// Neither a number to predict nor one of the values.
    Other,
}

impl Target {
    pub fn task(&self) -> Task {
        match self {
            Target::Number { .. } => Task::Regression,
            Target::Binary { .. } => Task::Binary,
            Target::Classes { .. } => Task::Multiclass,
        }
    }

    /// The values of a target of classes, in order; empty for a number.
    pub fn labels(&self) -> Vec<&Label> {
        match self {
            Target::Number { .. } => Vec::new(),
            Target::Binary { negative, positive } => vec![negative, positive],
            Target::Classes { labels } => labels.iter().collect(),
        }
    }

    /// Classes by their values: numbers in their order, then texts in theirs.
    pub(crate) fn classes(values: &[String]) -> Target {
        let mut labels: Vec<Label> = values.iter().map(|value| Label::new(value)).collect();
        if labels.iter().any(|label| label.number.is_none()) {
            labels.iter_mut().for_each(|label| label.number = None);
        }
        labels.sort_by(Label::compare);
        match <[Label; 2]>::try_from(labels) {
            Ok([negative, positive]) => Target::Binary { negative, positive },
            Err(labels) => Target::Classes { labels },
        }
    }

    pub(crate) fn number(profile: &ColumnProfile) -> Target {
        let deviation = profile.variance().sqrt();
        let deviation = if deviation > 0.0 && deviation.is_finite() {
            deviation
        } else {
            1.0
        };
        Target::Number {
            mean: profile.moments.mean,
            deviation,
        }
    }

    /// How the column is read: as numbers where all its values are.
    pub(crate) fn read_as(&self) -> Read {
        let numbers = self.labels().iter().all(|label| label.number.is_some());
        if numbers { Read::Number } else { Read::Text }
    }

    /// The value of a row of a chunk in which the target is `column`.
    #[inline]
    pub(crate) fn value(&self, chunk: &Chunk, column: usize, row: usize) -> TargetValue {
        match chunk.columns[column].read {
            Read::Text => match chunk.text(column, row) {
                None => TargetValue::Missing,
                Some(text) => self.index(|label| label.text.as_bytes().cmp(text)),
            },
            Read::Number | Read::Boolean | Read::Time(_) => {
                let number = chunk.numbers(column)[row];
                if number.is_nan() {
                    return TargetValue::Missing;
                }
                if let Target::Number { .. } = self {
                    return TargetValue::Value(number);
                }
                self.index(|label| label.number.unwrap_or(f64::NAN).total_cmp(&(number + 0.0)))
            }
        }
    }

    #[inline]
    fn index(&self, compare: impl Fn(&Label) -> Ordering) -> TargetValue {
        let found = match self {
            Target::Number { .. } => None,
            Target::Binary { negative, positive } => {
                let found = |label: &Label| compare(label) == Ordering::Equal;
                if found(negative) {
                    Some(0)
                } else {
                    found(positive).then_some(1)
                }
            }
            Target::Classes { labels } => labels.binary_search_by(compare).ok(),
        };
        found.map_or(TargetValue::Other, |index| TargetValue::Value(index as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_their_order() {
        let check = |values: &[&str], expected: &[&str]| {
            let values: Vec<String> = values.iter().map(|value| value.to_string()).collect();
            let target = Target::classes(&values);
            let texts: Vec<&str> = target.labels().iter().map(|label| label.text.as_str()).collect();
            assert_eq!(texts, expected);
        };
        check(&["1", "0"], &["0", "1"]);
        check(&["10", "9"], &["9", "10"]);
        check(&["yes", "no"], &["no", "yes"]);
        check(&["10", "9", "-1"], &["-1", "9", "10"]);
        check(&["b", "c", "a"], &["a", "b", "c"]);
    }
}
