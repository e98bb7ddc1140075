//! From a table with roles to a table with encoders: one fit, one choice per column, all of it written down.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use tidegate_memory::{Ledger, thousands};

use crate::choose::{Candidate, Chosen, Planned, Purpose};
use crate::encode::{Encoder, Feature, Number, NumberOptions, TextOptions, Tokens, Weigh, Width};
use crate::features::{Encoding, Order, TokenWeight};
use crate::fit::{FOLDS, FitOptions, Fitted, Progress, Wish};
use crate::pack::Layout;
use crate::role::Role;
use crate::sketch::Quantiles;
use crate::table::TableColumn;
use crate::target::{Target, Task};
use crate::{Batch, Error, FeatureOptions, Result, RowCounts, Table};

/// A dense value as trees see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreeColumn {
    pub name: String,
    /// Where it may be cut.
    pub cuts: Vec<f32>,
    /// Of codes of categories, which are split into groups instead: how many there are.
    pub categories: Option<usize>,
}

/// What a table becomes, before it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EncodingPlan {
    pub purpose: Purpose,
    /// All columns but the target.
    pub columns: Vec<Planned>,
    /// Rows with a target, exactly, or a guess where the encoders were fitted on a sample.
    pub rows: Option<u64>,
    /// The encoders were fitted on all training rows.
    pub complete: bool,
    /// Training rows of each class, of a target of classes; empty where they were not counted.
    pub classes: Vec<u64>,
    /// What became of all rows, where the encoders were fitted on them.
    pub counts: Option<RowCounts>,
    pub width: Width,
    pub bytes_per_row: f64,
    /// For trees: every dense value, in order.
    pub cuts: Vec<TreeColumn>,
}

impl EncodingPlan {
    /// `shape: 8,500,000 rows × 21 columns → 8,500,000 × 412 (dense 96, sparse 316), 1.9 GB packed`
    pub fn shape(&self) -> String {
        let rows = match (self.rows, self.complete) {
            (Some(rows), true) => thousands(rows),
            (Some(rows), false) => format!("about {}", thousands(rounded(rows))),
            (None, _) => "unknown".into(),
        };
        let packed = self.rows.map_or(String::new(), |rows| {
            let bytes = (rows as f64 * self.bytes_per_row) as u64;
            format!(", {} packed", tidegate_memory::format_bytes(bytes))
        });
        format!(
            "shape: {rows} rows × {} columns → {rows} × {} (dense {}, sparse {}){packed}",
            thousands(self.columns.len() as u64),
            thousands(self.width.total() as u64),
            thousands(self.width.dense as u64),
            thousands(self.width.sparse as u64),
        )
    }
}

/// A guess to three digits: more would be made up.
fn rounded(n: u64) -> u64 {
    let step = 10_u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(2));
    (n + step / 2) / step * step
}

impl Table {
    /// Whether numbers are all there is to encode, and a sample tells enough to scale them: then a linear model
    /// needs no fit, for the scale of a column changes how fast it learns and not what.
    pub fn is_numeric(&self) -> bool {
        let plain = |column: &TableColumn| {
            let role = column.judged.role;
            let said = self.features.contains_key(&column.name);
            !role.is_used() || (role == Role::Numeric && !said)
        };
        self.encoders.target.task() != Task::Multiclass && self.columns.iter().all(plain)
    }

    /// Fits and chooses the encoders of all columns, from beginning to end.
    pub fn fit_encoders(
        &mut self,
        purpose: Purpose,
        options: &FitOptions,
        ledger: &Ledger,
    ) -> Result<EncodingPlan> {
        let fitted = self.fit_encoders_with(purpose, options, ledger, &mut |_, _| ControlFlow::Continue(()));
        fitted.map(|plan| plan.expect("nobody ends it"))
    }

    /// Fits and chooses the encoders of all columns. The fit streams the table once, unless a sample does; `None` when
    /// `progress` ended it.
    pub fn fit_encoders_with(
        &mut self,
        purpose: Purpose,
        options: &FitOptions,
        ledger: &Ledger,
        progress: &mut Progress,
    ) -> Result<Option<EncodingPlan>> {
        if purpose == Purpose::Linear && self.is_numeric() {
            return Ok(Some(self.scale_by_sample(purpose)));
        }
        let none = FeatureOptions::default();
        let used: Vec<&TableColumn> = self
            .columns
            .iter()
            .filter(|column| column.judged.role.is_used())
            .collect();
        let said = |column: &TableColumn| self.features.get(&column.name).unwrap_or(&none);
        let wishes: Vec<Wish> = used
            .iter()
            .map(|column| wish(self, column, said(column), purpose))
            .collect();
        let Some(mut fitted) = self.fit(&wishes, options, ledger, progress)? else {
            return Ok(None);
        };
        let rows = fitted.training_rows();
        let fits = std::mem::take(&mut fitted.columns);
        let mut chosen: Vec<Chosen> = Vec::with_capacity(used.len());
        for (column, fit) in used.iter().zip(fits) {
            let candidate = Candidate {
                name: &column.name,
                role: column.judged.role,
                read: column.judged.read,
                why: &column.judged.why,
                options: said(column),
                fit,
            };
            // The table of each column goes as soon as its encoder is made.
            chosen.push(candidate.choose(purpose, rows));
        }
        self.fold_seed = options.seed;
        self.pieces = Some(fitted.pieces);
        self.finish(purpose, chosen, fitted).map(Some)
    }

    /// Binds what was chosen and writes it down.
    fn finish(&mut self, purpose: Purpose, chosen: Vec<Chosen>, mut fitted: Fitted) -> Result<EncodingPlan> {
        let mut planned: Vec<Planned> = Vec::new();
        let (mut features, mut folds, mut cuts) = (Vec::new(), Vec::new(), Vec::new());
        for chosen in chosen {
            if let Some(feature) = chosen.feature {
                let categories = chosen.categories;
                cuts.extend(chosen.cuts.into_iter().enumerate().map(|(i, cuts)| TreeColumn {
                    name: feature.encoder.name(&feature.name, i),
                    cuts,
                    categories,
                }));
                features.push(feature);
                folds.push(chosen.folds);
            }
            planned.push(chosen.planned);
        }
        if features.is_empty() {
            return Err(Error::NoFeatures {
                path: self.source.path().into(),
                target: self.encoders.target_column.clone(),
                left_out: planned.iter().map(|column| column.name.clone()).collect(),
            });
        }
        let sparse = |feature: &&Feature| feature.encoder.width().sparse > 0;
        if purpose == Purpose::Trees && features.iter().any(|feature| sparse(&feature)) {
            let wide: Vec<&Feature> = features.iter().filter(sparse).collect();
            let places: usize = wide.iter().map(|feature| feature.encoder.width().sparse).sum();
            return Err(Error::SparseForTrees {
                columns: wide.iter().map(|feature| feature.name.clone()).collect(),
                places: places as u64,
                dense_bytes: fitted.counts.rows * places as u64,
            });
        }
        if let Target::Number { mean, deviation } = &mut self.encoders.target {
            (*mean, *deviation) = (fitted.target.mean, fitted.target.deviation());
            if !(*deviation > 0.0 && deviation.is_finite()) {
                *deviation = 1.0;
            }
        }
        let lines = self.all_columns(planned);
        self.bind(features, folds);
        let width = self.encoders.width();
        let held: u64 = self.encoders.bytes()
            + self
                .folds
                .iter()
                .flatten()
                .map(|folds| folds.bytes() as u64)
                .sum::<u64>();
        if let Some(grant) = &mut fitted.grant {
            grant.try_resize(held)?;
        }
        self.held = fitted.grant.take();
        Ok(EncodingPlan {
            purpose,
            columns: lines,
            rows: Some(fitted.counts.rows),
            complete: true,
            classes: fitted.classes,
            counts: Some(std::mem::take(&mut fitted.counts)),
            width,
            bytes_per_row: packed_bytes(purpose, width, self.encoders.sparse_values()),
            cuts,
        })
    }

    /// The lines of all columns in the order of the table, those that were never fitted among them.
    fn all_columns(&self, planned: Vec<Planned>) -> Vec<Planned> {
        let line = |column: &TableColumn| {
            let fitted = planned.iter().find(|planned| planned.name == column.name);
            fitted.cloned().unwrap_or_else(|| Planned {
                name: column.name.clone(),
                role: column.judged.role,
                distinct: None,
                missing_share: column.missing_share,
                encoding: "left out".into(),
                width: Width::default(),
                bytes_per_row: 0.0,
                why: column.judged.why.clone(),
                missed_bytes: None,
            })
        };
        self.columns.iter().map(line).collect()
    }

    /// Scales numbers by what the sample shows.
    fn scale_by_sample(&mut self, purpose: Purpose) -> EncodingPlan {
        let looks = self
            .profile
            .as_ref()
            .map(|profile| profile.columns.as_slice())
            .unwrap_or_default();
        let (mut features, mut planned) = (Vec::new(), Vec::new());
        for column in self.columns.iter().filter(|column| column.judged.role.is_used()) {
            let Some(look) = looks.iter().find(|look| look.name == column.name) else {
                continue;
            };
            let number = Number::fit(
                &NumberOptions::default(),
                &look.moments,
                &Quantiles::default(),
                look.missing,
            );
            let encoder = Encoder::Number(number);
            planned.push(Planned {
                name: column.name.clone(),
                role: column.judged.role,
                distinct: look.n_distinct().map(|n| n as f64),
                missing_share: column.missing_share,
                encoding: encoder.kind().into(),
                width: encoder.width(),
                bytes_per_row: Batch::values_bytes(encoder.width(), 0.0),
                why: "scaled by a sample".into(),
                missed_bytes: None,
            });
            features.push(Feature {
                name: column.name.clone(),
                role: column.judged.role,
                read: column.judged.read,
                encoder,
                sparse_values: 0.0,
            });
        }
        let columns = self.all_columns(planned);
        let folds = features.iter().map(|_| None).collect();
        self.bind(features, folds);
        EncodingPlan {
            purpose,
            bytes_per_row: packed_bytes(purpose, self.encoders.width(), 0.0),
            columns,
            rows: self.source.rows_guess(),
            complete: false,
            classes: Vec::new(),
            counts: None,
            width: self.encoders.width(),
            cuts: Vec::new(),
        }
    }

    /// How the tokens of a text become columns.
    pub(crate) fn text_options(&self, column: &TableColumn) -> TextOptions {
        let none = FeatureOptions::default();
        let options = self.features.get(&column.name).unwrap_or(&none);
        let document = column.words >= DOCUMENT_WORDS;
        let weigh = match options.weight {
            Some(TokenWeight::Tf) => Weigh::Count,
            Some(TokenWeight::TfIdf) => Weigh::Rarity,
            None if document => Weigh::Rarity,
            None => Weigh::Count,
        };
        let tokens = match options.characters {
            Some([shortest, longest]) => Tokens::Characters { shortest, longest },
            None => Tokens::Words {
                longest: options.words.unwrap_or(1),
            },
        };
        let defaults = TextOptions::default();
        TextOptions {
            bits: options.bits.unwrap_or(defaults.bits),
            tokens,
            weigh,
            unit_length: weigh == Weigh::Rarity,
            ..defaults
        }
    }
}

/// Texts of so many words are documents: what is rare in them tells more, and their length nothing.
const DOCUMENT_WORDS: f64 = 20.0;

/// What a row takes in a pack.
fn packed_bytes(purpose: Purpose, width: Width, sparse_values: f64) -> f64 {
    let layout = match purpose {
        Purpose::Linear => Layout::Rows {
            dense: width.dense,
            sparse: width.sparse,
        },
        Purpose::Trees => Layout::Bins {
            features: width.dense,
        },
    };
    layout.row_bytes(sparse_values)
}

/// What the fit is to keep of a column.
fn wish(table: &Table, column: &TableColumn, options: &FeatureOptions, purpose: Purpose) -> Wish {
    match column.judged.role {
        Role::Time => Wish::Times,
        Role::Text => Wish::Texts {
            options: table.text_options(column),
            used: purpose == Purpose::Linear || options.encode.is_some(),
        },
        Role::Category => {
            let folds = match (options.encode, options.order) {
                (Some(Encoding::Impact), _) => Some(options.folds.unwrap_or(FOLDS)),
                (None, _) if purpose == Purpose::Trees => Some(options.folds.unwrap_or(FOLDS)),
                (Some(Encoding::Ordinal), Some(Order::Target)) => Some(1),
                _ => None,
            };
            // A linear model only needs to know whether they are few.
            let few = column.few || (options.encode.is_none() && purpose == Purpose::Linear);
            Wish::Categories { folds, few }
        }
        _ => Wish::Numbers {
            quantiles: purpose == Purpose::Trees || options.needs_quantiles(),
        },
    }
}
