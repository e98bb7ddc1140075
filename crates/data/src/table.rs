//! A table bound to its choices: which columns feed the model, how they are encoded, what is predicted.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use tidegate_memory::Ledger;

use crate::chunk::{Read, Wanted};
use crate::encode::{Encoder, Encoders, Feature, Scale};
use crate::profile::{ColumnProfile, Profile};
use crate::source::{Reading, Source};
use crate::target::{Label, MOST_CLASSES, Target, Task};
use crate::{Error, Fault, Result};

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
}

/// A source and the way its rows become batches.
pub struct Table {
    pub source: Source,
    pub reading: Reading,
    pub encoders: Encoders,
    /// Columns that are left out.
    pub ignored: Vec<String>,
    /// Where each feature stands among the wanted columns, and the target if the source has it.
    pub(crate) feature_columns: Vec<usize>,
    pub(crate) target_column: Option<usize>,
}

impl Table {
    /// Looks at a source for training: finds the target, chooses the numeric columns, fits their scales on
    /// the sample.
    pub fn open(source: Source, target: &str, options: &TableOptions, ledger: &Ledger) -> Result<Table> {
        let reading = Reading {
            wanted: Vec::new(),
            missing: options.missing.clone(),
            bad_rows: options.bad_rows,
        };
        let profile = source.profile(&reading, ledger)?;
        let target_column = find_column(&source, target)?;
        let others = || profile.columns.iter().filter(|column| column.name != target);
        let ignored: Vec<String> = others()
            .filter(|column| !column.is_numeric())
            .map(|column| column.name.clone())
            .collect();
        let feature = |column: &ColumnProfile| {
            let scale = Scale::from_moments(column.moments.mean, column.variance(), column.missing > 0);
            Feature {
                name: column.name.clone(),
                read: Read::Number,
                encoder: Encoder::Scale(scale),
            }
        };
        let features: Vec<Feature> = others()
            .filter(|column| column.is_numeric())
            .map(feature)
            .collect();
        if features.is_empty() {
            return Err(Error::NoFeatures {
                path: source.path().into(),
                target: target.into(),
                text_columns: ignored,
            });
        }
        let sample = &profile.columns[target_column];
        let encoders = Encoders {
            features,
            target_column: target.to_string(),
            target: Target::number(sample),
            missing: options.missing.clone(),
        };
        let mut table = Table::bound(source, reading, encoders, true);
        table.ignored = ignored;
        table.encoders.target = table.choose_target(&profile, sample, options, ledger)?;
        let read = table.encoders.target.read_as();
        if let Some(at) = table.target_column {
            table.reading.wanted[at].read = read;
        }
        Ok(table)
    }

    /// Binds a source for prediction: its columns are found by name, the target need not be there.
    pub fn open_for(source: Source, encoders: &Encoders, options: &TableOptions) -> Result<Table> {
        for feature in &encoders.features {
            find_column(&source, &feature.name)?;
        }
        let mut missing = options.missing.clone();
        missing.extend(encoders.missing.iter().cloned());
        let reading = Reading {
            wanted: Vec::new(),
            missing,
            bad_rows: options.bad_rows,
        };
        Ok(Table::bound(source, reading, encoders.clone(), false))
    }

    fn bound(source: Source, mut reading: Reading, encoders: Encoders, with_target: bool) -> Table {
        let wanted = |feature: &Feature| Wanted {
            name: feature.name.clone(),
            read: feature.read,
        };
        reading.wanted = encoders.features.iter().map(wanted).collect();
        let feature_columns = (0..reading.wanted.len()).collect();
        let target_column = with_target.then_some(reading.wanted.len());
        if with_target {
            reading.wanted.push(Wanted {
                name: encoders.target_column.clone(),
                read: encoders.target.read_as(),
            });
        }
        Table {
            source,
            reading,
            encoders,
            ignored: Vec::new(),
            feature_columns,
            target_column,
        }
    }

    /// Decides between a number and one of several values, by the sample and, where that does not show them
    /// all, by the source.
    fn choose_target(
        &self,
        profile: &Profile,
        sample: &ColumnProfile,
        options: &TableOptions,
        ledger: &Ledger,
    ) -> Result<Target> {
        let path = || self.source.path().to_path_buf();
        let column = sample.name.clone();
        let mut values = sample.distinct.clone();
        if values.len() < 2 && !profile.complete {
            values = self.scan_target(2, ledger)?;
        }
        match values.len() {
            0 => return Err(Error::TargetMissing { path: path(), column }),
            1 => {
                return Err(Error::TargetConstant {
                    path: path(),
                    column,
                    value: values.swap_remove(0),
                });
            }
            _ => {}
        }
        let classes = |values: Vec<String>| -> Result<Target> {
            let all = self.scan_target(MOST_CLASSES + 1, ledger)?;
            match all.len() > MOST_CLASSES {
                true => Err(Error::TargetText {
                    path: path(),
                    column: column.clone(),
                    values,
                }),
                false => Ok(Target::classes(&all)),
            }
        };
        let mostly_numbers = sample.numbers > sample.text * 9;
        match options.task {
            Some(Task::Binary) if values.len() > 2 => Err(Error::TargetNotBinary {
                path: path(),
                column,
                values,
            }),
            Some(Task::Binary) => Ok(Target::classes(&values)),
            Some(Task::Multiclass) => classes(values),
            None if values.len() == 2 => Ok(Target::classes(&values)),
            None if sample.text > 0 && !mostly_numbers => classes(values),
            None | Some(Task::Regression) => match &sample.first_text {
                Some((line, value)) if self.reading.bad_rows == BadRows::Fail => Err(Error::BadRow {
                    path: path(),
                    line: *line,
                    fault: Box::new(Fault::TargetNotANumber {
                        column,
                        value: value.clone(),
                    }),
                }),
                _ if sample.numbers == 0 => Err(Error::TargetText {
                    path: path(),
                    column,
                    values,
                }),
                _ => Ok(Target::number(sample)),
            },
        }
    }

    /// The distinct values of the target, up to so many.
    fn scan_target(&self, most: usize, ledger: &Ledger) -> Result<Vec<String>> {
        let mut reading = self.reading.clone();
        reading.wanted = vec![Wanted {
            name: self.encoders.target_column.clone(),
            read: Read::Text,
        }];
        let mut values: Vec<Label> = Vec::new();
        self.chunks(
            &reading,
            1,
            ledger,
            |_, chunk| {
                let mut seen: Vec<Label> = Vec::new();
                for row in 0..chunk.n_rows() {
                    let Some(text) = chunk.text(0, row) else { continue };
                    if seen.len() < most && !seen.iter().any(|label| label.text.as_bytes() == text) {
                        seen.push(Label::new(&String::from_utf8_lossy(text)));
                    }
                }
                Ok(seen)
            },
            |_, seen, _| {
                for label in seen {
                    if !values.iter().any(|known| known.is_same(&label)) {
                        values.push(label);
                    }
                }
                Ok(if values.len() < most {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                })
            },
        )?;
        Ok(values.into_iter().map(|label| label.text).collect())
    }
}

fn find_column(source: &Source, name: &str) -> Result<usize> {
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
