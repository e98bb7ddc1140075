//! What a column is for: told from a bounded sample, confirmed by the fit, overridable by name.

use serde::{Deserialize, Serialize};

use crate::chunk::Read;
use crate::encode::TimeFormat;
use crate::profile::ColumnProfile;
use crate::source::Kind;

/// What a column holds, as far as encoding it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Numeric,
    Boolean,
    /// A date or a date with a time of day.
    Time,
    Category,
    Text,
    /// Names its row and tells nothing about it: left out.
    Identifier,
    /// The same in every row: dropped.
    Constant,
    /// Left out because the user said so, or because it cannot be read.
    Ignored,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Numeric => "numeric",
            Role::Boolean => "boolean",
            Role::Time => "time",
            Role::Category => "category",
            Role::Text => "text",
            Role::Identifier => "identifier",
            Role::Constant => "constant",
            Role::Ignored => "ignored",
        }
    }

    /// How a column of this role is read that was judged to be read otherwise.
    pub(crate) fn read_as(self, judged: Read) -> Read {
        match (self, judged) {
            (Role::Numeric, _) => Read::Number,
            (Role::Boolean, _) => Read::Boolean,
            (Role::Time, Read::Time(format)) => Read::Time(format),
            (Role::Time, _) => Read::Time(TimeFormat::YearFirst),
            (Role::Category | Role::Text, _) => Read::Text,
            (Role::Identifier | Role::Constant | Role::Ignored, judged) => judged,
        }
    }

    /// Whether the column feeds the model.
    pub fn is_used(self) -> bool {
        !matches!(self, Role::Identifier | Role::Constant | Role::Ignored)
    }
}

/// A role and the reason for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    pub role: Role,
    pub read: Read,
    pub why: String,
}

/// Values in a sample before they are trusted to say that no two rows are alike.
const ENOUGH: u64 = 100;
/// A text has at least so many words on average, or so many bytes.
const TEXT_WORDS: f64 = 3.0;
const TEXT_BYTES: f64 = 50.0;

/// The role that the sample speaks for. `complete` says that it is all there is.
pub fn judge(column: &ColumnProfile, complete: bool) -> Judged {
    let judged = |role, read, why: String| Judged { role, read, why };
    let values = column.values();
    if column.kind == Kind::Unsupported {
        return judged(Role::Ignored, Read::Text, "holds lists or structures".into());
    }
    if values == 0 {
        let why = if complete {
            "has no value"
        } else {
            "has no value in the sample"
        };
        return judged(Role::Constant, Read::Text, why.into());
    }
    if complete && column.n_distinct() == Some(1) && column.missing == 0 {
        return judged(Role::Constant, Read::Text, "is the same in every row".into());
    }
    if let Some((format, why)) = time_format(column) {
        return judged(Role::Time, Read::Time(format), why);
    }
    if column.kind == Kind::Boolean || (column.booleans == values && column.text > 0) {
        return judged(Role::Boolean, Read::Boolean, "two truths".into());
    }
    if column.is_numeric() {
        return match row_number(column) {
            Some(why) => judged(Role::Identifier, Read::Number, why),
            None => judged(Role::Numeric, Read::Number, String::new()),
        };
    }
    let words = column.words as f64 / column.text.max(1) as f64;
    let bytes = column.text_bytes as f64 / column.text.max(1) as f64;
    let distinct = column.n_distinct().unwrap_or(values).min(values);
    let mostly_distinct = distinct * 2 > values && values >= 2;
    if (words >= TEXT_WORDS || bytes >= TEXT_BYTES) && mostly_distinct {
        return judged(
            Role::Text,
            Read::Text,
            format!("{words:.0} words a value, mostly different"),
        );
    }
    // Where there were too many to count, the fit tells.
    if complete && values >= ENOUGH && column.n_distinct() == Some(values) {
        return judged(
            Role::Identifier,
            Read::Text,
            "no two rows have the same value".into(),
        );
    }
    judged(Role::Category, Read::Text, String::new())
}

/// Dates: nearly all values are texts, and one format reads them.
fn time_format(column: &ColumnProfile) -> Option<(TimeFormat, String)> {
    if column.kind == Kind::Time {
        return Some((TimeFormat::YearFirst, String::new()));
    }
    if column.text * 20 < column.values() * 19 {
        return None;
    }
    let guess = TimeFormat::detect(column.maybe_dates.iter().map(String::as_bytes))?;
    let order = match guess.format {
        TimeFormat::YearFirst => "year first",
        TimeFormat::DayFirst => "day first",
        TimeFormat::MonthFirst => "month first",
    };
    let doubt = if guess.ambiguous {
        ", or the other way round"
    } else {
        ""
    };
    Some((guess.format, format!("dates, {order}{doubt}")))
}

/// Whole numbers that count the rows, or bear the name of an identifier and are all different.
fn row_number(column: &ColumnProfile) -> Option<String> {
    let all_whole = column.integers == column.numbers && column.text == 0 && column.missing == 0;
    if !all_whole || column.numbers < ENOUGH || !column.rising {
        return None;
    }
    let named = is_identifier_name(&column.name);
    let counting = column.successors * 10 >= (column.numbers - 1) * 9;
    match (counting, named) {
        (true, _) => Some("counts the rows".into()),
        (_, true) => Some("is named an identifier and rises with every row".into()),
        _ => None,
    }
}

fn is_identifier_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let names = [
        "id",
        "index",
        "idx",
        "row",
        "rownum",
        "row_number",
        "unnamed: 0",
        "key",
        "uuid",
        "guid",
    ];
    names.contains(&lower.as_str()) || lower.ends_with("_id") || name.ends_with("Id") || name.ends_with("ID")
}
