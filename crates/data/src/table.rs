//! A table bound to its choices: which columns feed the model, how they are encoded, what is predicted.

use std::ops::ControlFlow;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tidegate_memory::Ledger;

use crate::csv::{Dialect, DialectOptions};
use crate::encode::Scale;
use crate::pass::PassOptions;
use crate::profile::{ColumnProfile, Profile, profile};
use crate::target::{Label, Target, Task};
use crate::{Error, Fault, Holdout, Input, Result};

/// What to do with rows that cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BadRows {
    #[default]
    Fail,
    Skip,
}

/// How to read a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TableOptions {
    pub dialect: DialectOptions,
    pub bad_rows: BadRows,
    /// Words for missing values beside the usual ones.
    pub missing: Vec<String>,
    /// What to predict; `None` decides by the target's values.
    pub task: Option<Task>,
}

/// A column that feeds the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Feature {
    pub name: String,
    pub scale: Scale,
}

/// Everything fitted on the training table that another table needs to be encoded the same way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Encoders {
    pub features: Vec<Feature>,
    pub target_column: String,
    pub target: Target,
    /// The user's own words for missing values.
    #[serde(default)]
    pub missing: Vec<String>,
}

impl Encoders {
    /// The number of values a row has after encoding.
    pub fn width(&self) -> usize {
        self.features.iter().map(|feature| feature.scale.width()).sum()
    }

    /// A name for each encoded value, in order.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::with_capacity(self.width());
        for feature in &self.features {
            names.push(feature.name.clone());
            if feature.scale.flag_missing {
                names.push(format!("{} is missing", feature.name));
            }
        }
        names
    }
}

/// A file and the way its rows become batches.
#[derive(Debug, Clone)]
pub struct Table {
    pub input: Input,
    pub dialect: Dialect,
    pub columns: Vec<String>,
    pub encoders: Encoders,
    pub bad_rows: BadRows,
    pub missing: Vec<String>,
    /// Columns that hold text and are left out.
    pub ignored: Vec<String>,
    /// Where each feature stands in the file, and the target if the file has it.
    pub(crate) feature_columns: Vec<usize>,
    pub(crate) target_column: Option<usize>,
    /// A guess at the number of rows, from the sample.
    pub rows_guess: Option<u64>,
    /// Bytes of text per row in the sample.
    pub row_text_bytes: f64,
}

impl Table {
    /// Looks at a file for training: finds the target, chooses the numeric columns, fits their scales on
    /// the sample.
    pub fn open(path: &Path, target: &str, options: &TableOptions, ledger: &Ledger) -> Result<Table> {
        let input = Input::open(path)?;
        let holder = ledger.holder("sample");
        let profile = profile(
            &input,
            &options.dialect,
            &[target],
            &options.missing,
            &holder,
            ledger.budget(),
        )?;
        let target_column = find_column(&input, &profile.columns, target)?;
        let features: Vec<usize> = (0..profile.columns.len())
            .filter(|&i| i != target_column && profile.columns[i].is_numeric())
            .collect();
        let ignored: Vec<String> = (0..profile.columns.len())
            .filter(|&i| i != target_column && !profile.columns[i].is_numeric())
            .map(|i| profile.columns[i].name.clone())
            .collect();
        if features.is_empty() {
            let path = input.path().into();
            return Err(Error::NoFeatures {
                path,
                target: target.into(),
                text_columns: ignored,
            });
        }
        let feature = |i: &usize| {
            let column = &profile.columns[*i];
            let scale = Scale::from_moments(column.mean, column.variance(), column.missing > 0);
            Feature {
                name: column.name.clone(),
                scale,
            }
        };
        let encoders = Encoders {
            features: features.iter().map(feature).collect(),
            target_column: target.to_string(),
            target: Target::number(&profile.columns[target_column]),
            missing: options.missing.clone(),
        };
        let mut table = Table::bound(input, &profile, encoders, features, Some(target_column), options);
        table.ignored = ignored;
        let chosen = table.choose_target(&profile.columns[target_column], options, ledger)?;
        table.encoders.target = chosen;
        Ok(table)
    }

    /// Looks at a file for prediction: its columns are found by name, the target need not be there.
    pub fn open_for(
        path: &Path,
        encoders: &Encoders,
        options: &TableOptions,
        ledger: &Ledger,
    ) -> Result<Table> {
        let mut options = options.clone();
        options.missing.extend(encoders.missing.iter().cloned());
        let input = Input::open(path)?;
        let holder = ledger.holder("sample");
        let names: Vec<&str> = encoders
            .features
            .iter()
            .map(|feature| feature.name.as_str())
            .collect();
        let profile = profile(
            &input,
            &options.dialect,
            &names,
            &options.missing,
            &holder,
            ledger.budget(),
        )?;
        let columns = names
            .iter()
            .map(|name| find_column(&input, &profile.columns, name));
        let columns = columns.collect::<Result<Vec<usize>>>()?;
        Ok(Table::bound(
            input,
            &profile,
            encoders.clone(),
            columns,
            None,
            &options,
        ))
    }

    fn bound(
        input: Input,
        profile: &Profile,
        encoders: Encoders,
        feature_columns: Vec<usize>,
        target_column: Option<usize>,
        options: &TableOptions,
    ) -> Table {
        let row_text_bytes = profile.bytes as f64 / profile.rows.max(1) as f64;
        let plain = input.compression() == crate::Compression::Plain;
        let rows_guess = (plain && profile.rows > 0).then(|| (input.bytes() as f64 / row_text_bytes) as u64);
        Table {
            input,
            dialect: profile.dialect.clone(),
            columns: profile.columns.iter().map(|column| column.name.clone()).collect(),
            encoders,
            bad_rows: options.bad_rows,
            missing: options.missing.clone(),
            ignored: Vec::new(),
            feature_columns,
            target_column,
            rows_guess,
            row_text_bytes,
        }
    }

    /// Decides between a number and one of two values, by the sample and, where that shows a single value,
    /// by the file.
    fn choose_target(
        &self,
        sample: &ColumnProfile,
        options: &TableOptions,
        ledger: &Ledger,
    ) -> Result<Target> {
        let path = || self.input.path().to_path_buf();
        let column = sample.name.clone();
        let mut values = sample.distinct.clone();
        if values.len() < 2 {
            values = self.scan_target(values, ledger)?;
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
        let number = Target::number(sample);
        let mostly_numbers = sample.numbers > sample.text * 9;
        match options.task {
            Some(Task::Binary) if values.len() > 2 => Err(Error::TargetNotBinary {
                path: path(),
                column,
                values,
            }),
            Some(Task::Binary) => Ok(Target::binary(&values[0], &values[1])),
            None if values.len() == 2 => Ok(Target::binary(&values[0], &values[1])),
            None if sample.text > 0 && !mostly_numbers => Err(Error::TargetText {
                path: path(),
                column,
                values,
            }),
            None | Some(Task::Regression) => match &sample.first_text {
                Some((line, value)) if self.bad_rows == BadRows::Fail => Err(Error::BadRow {
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
                _ => Ok(number),
            },
        }
    }

    /// Reads on until the target has shown two values.
    fn scan_target(&self, mut values: Vec<String>, ledger: &Ledger) -> Result<Vec<String>> {
        let options = PassOptions {
            threads: 1,
            holdout: Holdout::new(0.0, 0),
            start: None,
        };
        self.target_values(&options, ledger, |seen| {
            for value in seen {
                if values.len() < 2
                    && !values
                        .iter()
                        .any(|known| Label::new(known).matches(value.as_bytes()))
                {
                    values.push(value);
                }
            }
            if values.len() < 2 {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        Ok(values)
    }
}

fn find_column(input: &Input, columns: &[ColumnProfile], name: &str) -> Result<usize> {
    columns
        .iter()
        .position(|column| column.name == name)
        .ok_or_else(|| Error::UnknownColumn {
            path: input.path().into(),
            name: name.into(),
            columns: columns.iter().map(|column| column.name.clone()).collect(),
        })
}
