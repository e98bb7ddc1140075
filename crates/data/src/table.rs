//! A table bound to its choices: which columns feed the model, how they are encoded, what is predicted.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use tidegate_memory::{Grant, Ledger};

use crate::chunk::Wanted;
use crate::encode::{Encoders, Feature, ImpactFolds, Tokens, Width};
use crate::filter::{Condition, Filter, SampleSize};
use crate::pack::TablePack;
use crate::pass::ReadAhead;
use crate::profile::{ColumnProfile, Profile};
use crate::role::{Judged, Role, judge};
use crate::source::{Reading, Source};
use crate::target::{Target, Task};
use crate::{Error, Features, Result};

/// What to do with rows that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BadRows {
    #[default]
    Fail,
    Skip,
}

/// How to use a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TableOptions {
    pub bad_rows: BadRows,
    /// Words for missing values beside the usual ones.
    pub missing: Vec<String>,
    /// What to predict; `None` decides by the target's values.
    pub task: Option<Task>,
    /// Only these columns, all of them if empty; and all but these.
    pub columns: Vec<String>,
    pub ignore: Vec<String>,
    /// What is said about single columns.
    pub features: Features,
    /// Only rows that meet a condition, and a sample of those.
    pub condition: Option<Condition>,
    pub sample: Option<SampleSize>,
    /// Decides which rows a sample has.
    pub seed: u64,
}

/// A column beside the target, with the role it was judged to have.
#[derive(Debug, Clone, PartialEq)]
pub struct TableColumn {
    pub name: String,
    pub judged: Judged,
    pub missing_share: f64,
    /// Words and bytes of a text on average.
    pub words: f64,
    pub text_bytes: f64,
    /// The sample shows all of its few values many times over.
    pub few: bool,
}

impl TableColumn {
    /// About so many tokens of a text.
    pub(crate) fn tokens(&self, tokens: Tokens) -> f64 {
        match tokens {
            Tokens::Words { longest } => self.words * f64::from(longest),
            // As if it were one long word.
            Tokens::Characters { shortest, longest } => {
                self.text_bytes * f64::from(longest.saturating_sub(shortest) + 1)
            }
        }
    }
}

/// A source and the way its rows become batches.
pub struct Table {
    pub source: Source,
    pub reading: Reading,
    pub encoders: Encoders,
    /// All columns but the target.
    pub columns: Vec<TableColumn>,
    pub features: Features,
    /// Which rows are used.
    pub filter: Filter,
    /// What a bounded look showed; not there for tables that are only predicted.
    pub profile: Option<Profile>,
    /// What training rows get instead, by feature, where an encoder must not show them their own target.
    pub(crate) folds: Vec<Option<ImpactFolds>>,
    /// Decides which fold a row is in.
    pub(crate) fold_seed: u64,
    /// Where each feature stands among the wanted columns if the source has it, and the target likewise.
    pub(crate) feature_columns: Vec<Option<usize>>,
    pub(crate) target_column: Option<usize>,
    /// In so many pieces the source comes, once it was read to its end.
    pub(crate) pieces: Option<u64>,
    /// How far passes read ahead.
    pub(crate) ahead: ReadAhead,
    /// The memory of the fitted encoders.
    pub(crate) held: Option<Grant>,
    /// Where passes find their batches, and put them the first time.
    pub pack: Option<TablePack>,
}

impl Table {
    /// Looks at a source for training: finds the target and what it is, and judges the role of every other
    /// column. Encoders come with [`Table::fit_encoders`].
    pub fn open(source: Source, target: &str, options: &TableOptions, ledger: &Ledger) -> Result<Table> {
        let reading = Reading {
            wanted: Vec::new(),
            missing: options.missing.clone(),
            bad_rows: options.bad_rows,
        };
        let named = [&options.columns, &options.ignore].into_iter().flatten();
        for name in named
            .chain(options.features.keys())
            .map(String::as_str)
            .chain([target])
        {
            find_column(&source, name)?;
        }
        for wanted in options.condition.iter().flat_map(Condition::columns) {
            find_column(&source, &wanted.name)?;
        }
        let mut profile = source.profile(&reading, ledger)?;
        let column = |name: &str| {
            let look = profile.columns.iter().find(|look| look.name == name)?;
            let rows = (look.values() + look.missing).max(1);
            Some(TableColumn {
                name: name.into(),
                judged: said_or_judged(look, options, profile.complete),
                missing_share: look.missing as f64 / rows as f64,
                words: look.words as f64 / look.text.max(1) as f64,
                text_bytes: look.text_bytes as f64 / look.text.max(1) as f64,
                few: look.n_distinct().is_some_and(|n| n * 10 <= look.values()),
            })
        };
        let names = source.columns().iter().map(|column| column.name.as_str());
        let columns: Vec<TableColumn> = names.filter(|name| *name != target).filter_map(column).collect();
        let mut table = Table {
            source,
            reading,
            encoders: Encoders {
                features: Vec::new(),
                target_column: target.to_string(),
                target: Target::Number {
                    mean: 0.0,
                    deviation: 1.0,
                },
                missing: options.missing.clone(),
            },
            columns,
            features: options.features.clone(),
            filter: Filter {
                condition: options.condition.clone(),
                sample: None,
            },
            profile: None,
            folds: Vec::new(),
            fold_seed: 0,
            feature_columns: Vec::new(),
            target_column: None,
            pieces: None,
            ahead: ReadAhead::default(),
            held: None,
            pack: None,
        };
        table.filter.sample = table.resolve_sample(options, ledger)?;
        table.encoders.target = table.choose_target(&profile, options.task, ledger)?;
        profile.columns.iter_mut().for_each(ColumnProfile::forget_values);
        table.profile = Some(profile);
        table.want_used_columns();
        if table.feature_columns.is_empty() {
            return Err(Error::NoFeatures {
                path: table.source.path().into(),
                target: target.into(),
                left_out: table.columns.iter().map(|column| column.name.clone()).collect(),
            });
        }
        Ok(table)
    }

    /// Binds a source for prediction: its columns are found by name, the target need not be there. A feature that
    /// the source lacks is missing in every row; lacking all of them it is another table.
    pub fn open_for(source: Source, encoders: &Encoders, options: &TableOptions) -> Result<Table> {
        let features = &encoders.features;
        let found: HashSet<&str> = source
            .columns()
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        if !features
            .iter()
            .any(|feature| found.contains(feature.name.as_str()))
        {
            return Err(Error::OtherTable {
                path: source.path().into(),
                expected: features.iter().map(|feature| feature.name.clone()).collect(),
                found: source
                    .columns()
                    .iter()
                    .map(|column| column.name.clone())
                    .collect(),
            });
        }
        let is_read =
            |feature: &&Feature| source.may_have_more_columns() || found.contains(feature.name.as_str());
        let mut n_read = 0;
        let place = |feature: &Feature| {
            is_read(&feature).then(|| {
                n_read += 1;
                n_read - 1
            })
        };
        let feature_columns = features.iter().map(place).collect();
        let mut missing = options.missing.clone();
        missing.extend(encoders.missing.iter().cloned());
        let wanted = |feature: &Feature| Wanted {
            name: feature.name.clone(),
            read: feature.read,
        };
        Ok(Table {
            reading: Reading {
                wanted: features.iter().filter(is_read).map(wanted).collect(),
                missing,
                bad_rows: options.bad_rows,
            },
            source,
            feature_columns,
            folds: encoders.features.iter().map(|_| None).collect(),
            encoders: encoders.clone(),
            columns: Vec::new(),
            features: Features::new(),
            filter: Filter::default(),
            profile: None,
            fold_seed: 0,
            target_column: None,
            pieces: None,
            ahead: ReadAhead::default(),
            held: None,
            pack: None,
        })
    }

    /// Features that the source lacks: in a table to predict, as far as its columns are known.
    pub fn lacking(&self) -> Vec<&str> {
        let columns = self.source.columns();
        let names = self.encoders.features.iter().map(|feature| feature.name.as_str());
        names
            .filter(|name| !columns.iter().any(|column| column.name == *name))
            .collect()
    }

    /// Columns of the source that are neither a feature nor the target.
    pub fn unused(&self) -> Vec<&str> {
        let used: HashSet<&str> = self
            .encoders
            .features
            .iter()
            .map(|feature| feature.name.as_str())
            .chain([self.encoders.target_column.as_str()])
            .collect();
        let names = self.source.columns().iter().map(|column| column.name.as_str());
        names.filter(|name| !used.contains(name)).collect()
    }

    /// Wants the columns whose role is used, and the target.
    fn want_used_columns(&mut self) {
        let used = self.columns.iter().filter(|column| column.judged.role.is_used());
        let mut wanted: Vec<Wanted> = used
            .map(|column| Wanted {
                name: column.name.clone(),
                read: column.judged.read,
            })
            .collect();
        self.feature_columns = (0..wanted.len()).map(Some).collect();
        self.target_column = Some(wanted.len());
        wanted.push(Wanted {
            name: self.encoders.target_column.clone(),
            read: self.encoders.target.read_as(),
        });
        self.filter.add_columns(&mut wanted);
        self.reading.wanted = wanted;
    }

    /// Binds the chosen features: only their columns are read from now on.
    pub(crate) fn bind(&mut self, features: Vec<Feature>, folds: Vec<Option<ImpactFolds>>) {
        for column in &mut self.columns {
            if !features.iter().any(|feature| feature.name == column.name) && column.judged.role.is_used() {
                column.judged.role = Role::Ignored;
            }
        }
        (self.encoders.features, self.folds) = (features, folds);
        self.want_used_columns();
    }

    /// What the fitted encoders hold, granted while the table lives.
    pub fn encoder_bytes(&self) -> u64 {
        self.held.as_ref().map_or(0, Grant::bytes)
    }

    /// Forgets what only training rows need, once they have all been encoded.
    pub fn release_folds(&mut self) {
        self.folds.iter_mut().for_each(|folds| *folds = None);
        let bytes = self.encoders.bytes();
        if let Some(held) = &mut self.held {
            held.shrink(held.bytes().saturating_sub(bytes));
        }
    }

    /// Columns that hold texts, of all that feed the model.
    pub fn count_roles(&self, role: Role) -> usize {
        self.columns
            .iter()
            .filter(|column| column.judged.role == role)
            .count()
    }

    pub fn width(&self) -> Width {
        self.encoders.width()
    }
}

/// The role that the user gave, or else the one that the sample speaks for.
fn said_or_judged(look: &crate::ColumnProfile, options: &TableOptions, complete: bool) -> Judged {
    let left_out = options.ignore.contains(&look.name)
        || (!options.columns.is_empty() && !options.columns.contains(&look.name));
    let judged = judge(look, complete);
    let said = options.features.get(&look.name);
    if left_out || said.and_then(|said| said.encode) == Some(crate::features::Encoding::Ignore) {
        return Judged {
            role: Role::Ignored,
            read: judged.read,
            why: "as asked".into(),
        };
    }
    let role = said.and_then(|said| {
        said.role
            .or_else(|| said.encode.and_then(|encode| encode.implied_role(judged.role)))
    });
    match role {
        Some(role) if role != judged.role => Judged {
            role,
            read: role.read_as(judged.read),
            why: "as asked".into(),
        },
        _ => judged,
    }
}

pub(crate) fn find_column(source: &Source, name: &str) -> Result<usize> {
    source
        .columns()
        .iter()
        .position(|column| column.name == name)
        .ok_or_else(|| Error::UnknownColumn {
            path: source.path().into(),
            name: name.into(),
            columns: source
                .columns()
                .iter()
                .map(|column| column.name.clone())
                .collect(),
        })
}
