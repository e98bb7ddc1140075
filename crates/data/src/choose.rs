//! Choosing an encoding for every column, from the fit, before anything is encoded.
//!
//! Every choice is written down with its width, its bytes and its reason, so that a person can see what a table
//! becomes, and change it.

use serde::{Deserialize, Serialize};

use crate::chunk::Read;
use crate::encode::{
    Clip, Dummy, DummyOptions, Encoder, Feature, Flag, Frequency, Hashed, Impact, ImpactFolds, ImpactOptions,
    Number, NumberOptions, Ordinal, ScaleBy, Text, Time, TimeOptions, Width,
};
use crate::encode::{Impute as Fill, Measure, Order as CodeOrder};
use crate::features::{Encoding, FeatureOptions, Impute, Middle, Order, ScaleKind};
use crate::fit::{ColumnFit, Values};
use crate::{Batch, Role};

/// What the encoded rows are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// A linear model: numbers are scaled, categories become sparse columns.
    Linear,
    /// Trees: numbers stay as they are, every column becomes few dense ones.
    Trees,
}

/// A column with its choice, as the table of encodings shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    pub name: String,
    pub role: Role,
    /// About so many different values; unknown where the column was only sampled.
    pub distinct: Option<f64>,
    pub missing_share: f64,
    pub encoding: String,
    pub width: Width,
    pub bytes_per_row: f64,
    pub why: String,
    /// What telling all its categories apart would have taken more, where the budget has no room for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_bytes: Option<u64>,
}

/// Up to so many categories, a linear model gets a column for each. More are hashed: on 7.65 million rows with three
/// columns of 100,000 to 500,000 categories, one epoch came to a log loss of 0.562 with a weight for each, and to 0.573
/// with the target's mean in each.
const MOST_DUMMIES: usize = 256;
/// Up to so many categories, trees get a code for each and split them into groups; 256 bins, less those for missing and
/// for unseen ones.
const MOST_PLACES: usize = 250;
/// Up to so many columns of dummies that were asked for are written out for trees, a byte a row and column.
const MOST_WRITTEN_OUT: usize = 64;
/// A column of texts in which no two rows are alike names its rows.
const IDENTIFIER_SHARE: f64 = 0.95;

/// A column as it goes into the choice.
pub(crate) struct Candidate<'c> {
    pub name: &'c str,
    pub role: Role,
    pub read: Read,
    pub why: &'c str,
    pub options: &'c FeatureOptions,
    pub fit: ColumnFit,
}

/// A choice: the feature, unless the column is left out, and its line in the table.
pub(crate) struct Chosen {
    pub feature: Option<Feature>,
    pub folds: Option<ImpactFolds>,
    /// Where trees may cut the dense outputs.
    pub cuts: Vec<Vec<f32>>,
    /// Of codes that trees split into groups: how many there are.
    pub categories: Option<usize>,
    pub planned: Planned,
}

impl Candidate<'_> {
    /// The encoding of the column for this purpose.
    pub(crate) fn choose(mut self, purpose: Purpose, rows: u64) -> Chosen {
        let why = self.confirm(rows);
        let (encoder, folds, why) = match self.role.is_used() {
            true => self.encoder(purpose, why),
            false => (None, None, why),
        };
        let width = encoder.as_ref().map(Encoder::width).unwrap_or_default();
        let sparse_values = match (&encoder, &self.fit.values) {
            (Some(Encoder::Text(_)), Values::Texts { tokens, .. }) => *tokens as f64 / rows.max(1) as f64,
            (Some(_), _) if width.sparse > 0 => 1.0,
            _ => 0.0,
        };
        let cuts = match (&encoder, purpose) {
            (Some(encoder), Purpose::Trees) => encoder.cuts(&self.fit),
            _ => Vec::new(),
        };
        // Whoever asks for places in an order gets them.
        let categories = match (&encoder, purpose) {
            (Some(Encoder::Ordinal(ordinal)), Purpose::Trees) if self.options.encode.is_none() => {
                Some(ordinal.lookup.keys.len() + usize::from(self.fit.missing > 0))
            }
            _ => None,
        };
        let planned = Planned {
            name: self.name.into(),
            role: self.role,
            distinct: Some(self.distinct()),
            missing_share: self.fit.missing as f64 / rows.max(1) as f64,
            encoding: encoder.as_ref().map_or("left out", Encoder::kind).into(),
            width,
            bytes_per_row: match purpose {
                Purpose::Trees => width.dense as f64,
                Purpose::Linear => Batch::values_bytes(width, sparse_values),
            },
            why,
            missed_bytes: encoder.as_ref().and_then(|encoder| self.missed_bytes(encoder)),
        };
        let feature = encoder.map(|encoder| Feature {
            name: self.name.into(),
            role: self.role,
            read: self.read,
            encoder,
            sparse_values,
        });
        Chosen {
            feature,
            folds,
            cuts,
            categories,
            planned,
        }
    }

    fn missed_bytes(&self, encoder: &Encoder) -> Option<u64> {
        let Values::Categories(table) = &self.fit.values else {
            return None;
        };
        let by_category = matches!(encoder, Encoder::Impact(_))
            || (matches!(encoder, Encoder::Hash(_)) && self.distinct() <= self.most_dummies() as f64);
        let share = self.distinct() / table.len().max(1) as f64 - 1.0;
        (by_category && !table.is_exact()).then(|| (share.max(0.0) * table.bytes() as f64) as u64)
    }

    /// About so many different values, missing not among them.
    fn distinct(&self) -> f64 {
        match &self.fit.values {
            Values::Categories(table) if table.is_exact() => table.len() as f64,
            Values::Numbers { quantiles, .. } if quantiles.count > 0 && quantiles.is_exact() => {
                quantiles.weights().len() as f64
            }
            _ => {
                let seen = self.fit.distinct.estimate();
                // Missing values of a category have a hash of their own.
                let missing = matches!(self.fit.values, Values::Categories(_)) && self.fit.missing > 0;
                (seen - f64::from(u8::from(missing))).max(0.0).round()
            }
        }
    }

    /// Settles the role by all rows, where the sample could only guess; returns the reason for it.
    fn confirm(&mut self, rows: u64) -> String {
        if self.options.role.is_some() || self.options.encode.is_some() || !self.role.is_used() {
            return self.why.into();
        }
        let (distinct, values) = (self.distinct(), rows.saturating_sub(self.fit.missing));
        if values == 0 {
            self.role = Role::Constant;
            return "has no value".into();
        }
        if distinct <= 1.0 && self.fit.missing == 0 {
            self.role = Role::Constant;
            return "is the same in every row".into();
        }
        if self.role == Role::Category && values >= 100 && distinct >= IDENTIFIER_SHARE * values as f64 {
            self.role = Role::Identifier;
            return "hardly two rows have the same value".into();
        }
        self.why.into()
    }

    fn encoder(&self, purpose: Purpose, why: String) -> (Option<Encoder>, Option<ImpactFolds>, String) {
        let options = self.options;
        let said = |encoder| (Some(encoder), None, "as asked".to_string());
        match (options.encode, &self.fit.values) {
            (Some(Encoding::Ignore), _) => (None, None, "as asked".into()),
            (Some(Encoding::Flag), _) => said(Encoder::Flag(Flag::Present)),
            (Some(Encoding::Hash), _) => said(Encoder::Hash(self.hashed())),
            (Some(Encoding::Dummy), Values::Categories(table)) => {
                let dummy = Dummy::fit(table, &self.dummy_options());
                let n = dummy.width().sparse;
                if purpose == Purpose::Linear || n > MOST_WRITTEN_OUT {
                    return said(Encoder::Dummy(dummy));
                }
                let why = format!("as asked: written out, {n} dense columns, for trees take no sparse ones");
                (Some(Encoder::Dummy(dummy.written_out())), None, why)
            }
            (Some(Encoding::Ordinal), Values::Categories(table)) => {
                said(Encoder::Ordinal(Ordinal::fit(table, self.order())))
            }
            (Some(Encoding::Frequency), Values::Categories(table)) => {
                said(Encoder::Frequency(Frequency::fit(table, Measure::Share)))
            }
            (Some(Encoding::Impact), Values::Categories(_)) => self.impact("as asked".into()),
            (
                Some(Encoding::Tokens),
                Values::Texts {
                    documents, options, ..
                },
            ) => said(Encoder::Text(Text::fit(options, documents.as_ref()))),
            // One value or none: whether it is there is all there is to know.
            (None, Values::Categories(_)) if self.distinct() <= 1.0 => (
                Some(Encoder::Flag(Flag::Present)),
                None,
                "one value, and missing ones".into(),
            ),
            (_, Values::Categories(table)) => self.category(table, purpose),
            (_, Values::Texts { .. }) if purpose == Purpose::Trees => (
                None,
                None,
                "trees take no sparse columns; --model linear would use it".into(),
            ),
            (
                _,
                Values::Texts {
                    documents, options, ..
                },
            ) => {
                let why = format!("tokens hashed into 2^{} places", options.bits);
                (
                    Some(Encoder::Text(Text::fit(options, documents.as_ref()))),
                    None,
                    why,
                )
            }
            (_, Values::Times { times, .. }) => {
                let options = TimeOptions {
                    parts: options.parts.clone(),
                    cyclic: options.cyclic.unwrap_or(purpose == Purpose::Linear),
                    flag_missing: options.flag_missing,
                };
                (
                    Some(Encoder::Time(Time::fit(&options, times, self.fit.missing))),
                    None,
                    why,
                )
            }
            (_, Values::Numbers { moments, quantiles }) => {
                let asked = options.scale.is_some() || options.impute.is_some() || options.clip.is_some();
                let flagged = options.flag_missing == Some(true);
                let number = match purpose {
                    Purpose::Trees if !asked && !flagged => return (Some(Encoder::Keep), None, why),
                    // A flag beside the values, which stay as they are, the missing ones too.
                    Purpose::Trees if !asked => NumberOptions {
                        scale: ScaleBy::Keep,
                        impute: Fill::Leave,
                        ..self.number_options()
                    },
                    _ => self.number_options(),
                };
                let number = Number::fit(&number, moments, quantiles, self.fit.missing);
                (
                    Some(Encoder::Number(number)),
                    None,
                    if asked || flagged { "as asked".into() } else { why },
                )
            }
        }
    }

    fn category(
        &self,
        table: &crate::sketch::CategoryTable,
        purpose: Purpose,
    ) -> (Option<Encoder>, Option<ImpactFolds>, String) {
        let distinct = self.distinct();
        let shared = || {
            let groups = table.len();
            format!("{distinct:.0} categories share {groups} groups: more would not fit the encoders' memory")
        };
        // Whoever says how many dummies there may be gets so many, and one for all others.
        let capped = self.options.max.filter(|max| *max < table.len());
        match purpose {
            Purpose::Linear
                if table.is_exact() && (capped.is_some() || table.len() <= self.most_dummies()) =>
            {
                let dummy = Dummy::fit(table, &self.dummy_options());
                let why = match capped {
                    Some(max) => {
                        let n = table.len();
                        format!("as asked: a column for each of the {max} most frequent of {n} categories")
                    }
                    None => "few categories: a column for each".into(),
                };
                (Some(Encoder::Dummy(dummy)), None, why)
            }
            Purpose::Linear => {
                let (hashed, most) = (self.hashed(), self.most_dummies());
                let many = match table.is_exact() || distinct > most as f64 {
                    true => format!("over {most} categories"),
                    false => format!("{distinct:.0} categories do not fit the encoders' memory"),
                };
                let why = format!("{many}: hashed into 2^{} places", hashed.bits);
                (Some(Encoder::Hash(hashed)), None, why)
            }
            Purpose::Trees if table.is_exact() && table.len() <= MOST_PLACES => {
                let ordinal = Ordinal::fit(table, CodeOrder::Frequency);
                let why = "few categories: trees split them into groups".into();
                (Some(Encoder::Ordinal(ordinal)), None, why)
            }
            Purpose::Trees if table.is_exact() => self.impact(format!(
                "over {MOST_PLACES} categories: the target's mean in each, out of fold"
            )),
            Purpose::Trees => self.impact(shared()),
        }
    }

    fn impact(&self, why: String) -> (Option<Encoder>, Option<ImpactFolds>, String) {
        let Values::Categories(table) = &self.fit.values else {
            return (None, None, why);
        };
        let defaults = ImpactOptions::default();
        let options = ImpactOptions {
            smoothing: self.options.smoothing.unwrap_or(defaults.smoothing),
            folds: table.shape().folds,
        };
        let impact = Encoder::Impact(Impact::fit(table, &options));
        (Some(impact), Some(ImpactFolds::fit(table, &options)), why)
    }

    fn hashed(&self) -> Hashed {
        // Twice as many places as categories, up to the usual number.
        let enough = (2.0 * self.distinct().max(1.0)).log2().ceil() as u8;
        let bits = enough.clamp(8, Hashed::default().bits);
        Hashed {
            bits: self.options.bits.unwrap_or(bits),
            signed: true,
        }
    }

    fn order(&self) -> CodeOrder {
        match self.options.order {
            None | Some(Order::Frequency) => CodeOrder::Frequency,
            Some(Order::Name) => CodeOrder::Name,
            Some(Order::Target) => CodeOrder::Target,
        }
    }

    fn most_dummies(&self) -> usize {
        self.options.max.unwrap_or(MOST_DUMMIES)
    }

    fn dummy_options(&self) -> DummyOptions {
        let (options, defaults) = (self.options, DummyOptions::default());
        DummyOptions {
            max: self.most_dummies(),
            share: options.share.unwrap_or(defaults.share),
            least: options.least.unwrap_or(defaults.least),
            drop_one: options.drop_one.unwrap_or(defaults.drop_one),
            flag_missing: options.flag_missing.unwrap_or(defaults.flag_missing),
        }
    }

    fn number_options(&self) -> NumberOptions {
        let options = self.options;
        NumberOptions {
            scale: match options.scale {
                None | Some(ScaleKind::Standard) => ScaleBy::Standard,
                Some(ScaleKind::MinMax) => ScaleBy::MinMax,
                Some(ScaleKind::Quantile) => ScaleBy::Rank,
                Some(ScaleKind::Keep) => ScaleBy::Keep,
            },
            clip: options
                .clip
                .map_or(Clip::None, |[low, high]| Clip::Values(low, high)),
            impute: match options.impute {
                None | Some(Impute::By(Middle::Mean)) => Fill::Mean,
                Some(Impute::By(Middle::Median)) => Fill::Median,
                Some(Impute::Constant(value)) => Fill::Constant(value),
            },
            flag_missing: options.flag_missing,
        }
    }
}
