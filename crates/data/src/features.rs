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

impl FeatureOptions {
    /// Whether what was asked can only be fitted by ranks.
    pub(crate) fn needs_quantiles(&self) -> bool {
        self.scale == Some(ScaleKind::Quantile) || self.impute == Some(Impute::By(Middle::Median))
    }
}

impl Encoding {
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
