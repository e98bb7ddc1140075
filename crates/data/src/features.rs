//! What the user says about single columns: their role and their encoding, by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Role;
use crate::encode::TimePart;

/// `[features]` of a job: options by column name.
pub type Features = BTreeMap<String, FeatureOptions>;

/// What is said about one column; everything else is inferred.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeatureOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encode: Option<Encoding>,
    /// Dummy: at most so many categories, so many that they cover this share of the rows, and none with fewer
    /// rows than `least`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<u64>,
    /// Dummy: no column for the most frequent category.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_one: Option<bool>,
    /// Impact: folds, and the weight of the overall mean in rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folds: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothing: Option<f64>,
    /// Hash and text: 2^bits places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<u8>,
    /// Ordinal: what the codes follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// Numbers: how they are scaled, what replaces a missing one, the range they are clipped to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<ScaleKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impute: Option<Impute>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<[f64; 2]>,
    /// Whether a missing value has a column of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag_missing: Option<bool>,
    /// Times: which parts, and whether those that come round again are points on a circle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<TimePart>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cyclic: Option<bool>,
    /// Text: the most words that make one token, or the characters of one; the weight of tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub characters: Option<[u8; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<TokenWeight>,
}

/// An encoding by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    Number,
    Dummy,
    Impact,
    Hash,
    Ordinal,
    Frequency,
    /// Whether there is a value at all.
    Flag,
    Parts,
    Tokens,
    Ignore,
}

/// What is said about a column and cannot be, in the words of a job file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column:?} in [features]: {option} = {value} {fault}")]
pub struct WrongOption {
    pub column: String,
    pub option: &'static str,
    pub value: String,
    pub fault: String,
    /// What would do.
    pub hint: String,
}

/// Tokens of more characters than this are whole words.
const MOST_CHARACTERS: u8 = 32;

impl FeatureOptions {
    /// Refuses what no data could make right.
    ///
    /// ```
    /// use tidegate_data::FeatureOptions;
    /// let options = FeatureOptions { bits: Some(45), ..FeatureOptions::default() };
    /// let wrong = options.check("remarks").unwrap_err();
    /// assert_eq!(wrong.to_string(), "column \"remarks\" in [features]: bits = 45 is out of range");
    /// assert_eq!(wrong.hint, "give 1 to 31; 18 is usual");
    /// ```
    pub fn check(&self, column: &str) -> Result<(), WrongOption> {
        let wrong = |option, value: String, fault: String, hint: String| {
            Err(WrongOption {
                column: column.into(),
                option,
                value,
                fault,
                hint,
            })
        };
        let outside =
            |option, value: String, hint: &str| wrong(option, value, "is out of range".into(), hint.into());
        if let Some(bits) = self.bits.filter(|bits| !(1..=31).contains(bits)) {
            return outside("bits", bits.to_string(), "give 1 to 31; 18 is usual");
        }
        if let Some(folds) = self.folds.filter(|folds| !(2..=100).contains(folds)) {
            return outside("folds", folds.to_string(), "give 2 to 100; 5 is usual");
        }
        if self.words == Some(0) {
            return outside("words", "0".into(), "give 1 or more");
        }
        if let Some([a, b]) = self.characters
            && !(1 <= a && a <= b && b <= MOST_CHARACTERS)
        {
            let hint = format!("give the least and the most, from 1 to {MOST_CHARACTERS}, such as [3, 5]");
            return outside("characters", format!("[{a}, {b}]"), &hint);
        }
        if let Some([low, high]) = self.clip
            && !(low.is_finite() && high.is_finite() && low < high)
        {
            let hint = "give two numbers, the lower one first";
            return outside("clip", format!("[{low}, {high}]"), hint);
        }
        if let Some(Impute::Constant(value)) = self.impute
            && !value.is_finite()
        {
            return outside(
                "impute",
                value.to_string(),
                "give \"mean\", \"median\" or a finite number",
            );
        }
        if let Some(rows) = self.smoothing.filter(|rows| !(rows.is_finite() && *rows >= 0.0)) {
            return outside("smoothing", rows.to_string(), "give 0 or more; 10 is usual");
        }
        if let Some(share) = self.share.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
            return outside("share", share.to_string(), "give more than 0, at most 1");
        }
        if self.max == Some(0) {
            return outside("max", "0".into(), "give 1 or more; 256 is the default");
        }
        if self.parts.as_ref().is_some_and(Vec::is_empty) {
            return outside("parts", "[]".into(), "name one part or more, or leave it out");
        }
        if let (Some(role), Some(encode)) = (self.role, self.encode)
            && let Some(implied) = encode.other_role(role)
        {
            return wrong(
                "encode",
                format!("{:?}", encode.as_str()),
                format!("does not go with role = {:?}", role.as_str()),
                format!("leave the role out, or give role = {:?}", implied.as_str()),
            );
        }
        Ok(())
    }

    /// Whether what was asked can only be fitted by ranks.
    pub(crate) fn needs_quantiles(&self) -> bool {
        self.scale == Some(ScaleKind::Quantile) || self.impute == Some(Impute::By(Middle::Median))
    }
}

impl Encoding {
    pub fn as_str(self) -> &'static str {
        match self {
            Encoding::Number => "number",
            Encoding::Dummy => "dummy",
            Encoding::Impact => "impact",
            Encoding::Hash => "hash",
            Encoding::Ordinal => "ordinal",
            Encoding::Frequency => "frequency",
            Encoding::Flag => "flag",
            Encoding::Parts => "parts",
            Encoding::Tokens => "tokens",
            Encoding::Ignore => "ignore",
        }
    }

    /// The role that this encoding needs instead of the one that was given.
    fn other_role(self, given: Role) -> Option<Role> {
        let agrees = |implied: &Role| {
            // Truths are read as 0 and 1, and go where numbers go.
            *implied == given || (*implied == Role::Numeric && given == Role::Boolean)
        };
        self.implied_role(given).filter(|implied| !agrees(implied))
    }

    /// The role that a column must have for this encoding, where it is not the one it was judged to have.
    pub(crate) fn implied_role(self, judged: Role) -> Option<Role> {
        match self {
            Encoding::Dummy | Encoding::Impact | Encoding::Hash | Encoding::Ordinal | Encoding::Frequency => {
                Some(Role::Category)
            }
            Encoding::Number => Some(Role::Numeric),
            Encoding::Parts => Some(Role::Time),
            Encoding::Tokens => Some(Role::Text),
            // A flag can be made of any column that is read at all.
            Encoding::Flag if !judged.is_used() => Some(Role::Category),
            Encoding::Flag | Encoding::Ignore => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    Frequency,
    Name,
    Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScaleKind {
    Standard,
    MinMax,
    Quantile,
    Keep,
}

/// What stands in for a missing number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", untagged)]
pub enum Impute {
    By(Middle),
    Constant(f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Middle {
    Mean,
    Median,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenWeight {
    /// How often the token occurs.
    Tf,
    /// The same, less for tokens that many rows have.
    TfIdf,
}
