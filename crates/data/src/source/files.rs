//! From what a person names to the parts of a source: files by their contents, folders and patterns by name.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_memory::{Grant, Ledger};

use super::arrow::ArrowPart;
use super::head::{Format, Head};
use super::listing::list;
use super::parquet::ParquetPart;
use super::postgres::{PostgresPart, is_address};
use super::sqlite::SqlitePart;
use super::{Part, Source, is_looked_at, json, zip};
use crate::csv::DialectOptions;
use crate::csv::part::{CsvPart, CsvShape};
use crate::{Below, Error, Input, Profile, Result};

/// How to read what was named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceOptions {
    pub dialect: DialectOptions,
    /// Words for missing values beside the usual ones.
    pub missing: Vec<String>,
    /// What to ask a database for.
    #[serde(default)]
    pub query: Option<String>,
    /// Where files may be.
    #[serde(default, skip_serializing_if = "Below::is_anywhere")]
    pub below: Below,
}

impl Source {
    /// Opens files, folders and patterns as one source. `names` are columns that the user spoke of: a first row
    /// that holds one of them is a header.
    pub fn open(
        paths: &[PathBuf],
        options: &SourceOptions,
        names: &[&str],
        ledger: &Ledger,
    ) -> Result<Source> {
        let mut opening = Opening {
            options,
            names,
            ledger,
            parts: Vec::new(),
            asked: false,
            csv: None,
            without_rows: None,
            json: Vec::new(),
            head: Head::new(&ledger.holder("sample"))?,
            listed: ledger.holder("files").try_grant(0)?,
        };
        let (addresses, paths): (Vec<&PathBuf>, Vec<_>) = paths.iter().partition(|path| is_address(path));
        for address in addresses {
            // A server reads files of its own, and is in no folder.
            options.below.check(address)?;
            opening.open_postgres(address)?;
        }
        let named = paths.into_iter().map(|path| {
            options.below.check(path)?;
            list(path, &mut opening.listed)
        });
        let named = named.collect::<Result<Vec<_>>>()?;
        let n_files = named.iter().map(|listed| listed.files.len()).sum();
        let mut i = 0;
        for listed in named {
            let mut format = None;
            for path in &listed.files {
                options.below.check(path)?;
                let input = match Input::open(path) {
                    // Writers leave such files where a share of the work had no rows.
                    Err(Error::Empty { .. }) if listed.found && listed.files.len() > 1 => continue,
                    opened => opened?,
                };
                let together = listed.found.then_some(&mut format);
                opening.open_file(input, is_looked_at(i, n_files), together)?;
                i += 1;
            }
            if let (None, Some(path)) = (format, listed.files.first().filter(|_| listed.found)) {
                return Err(Error::Empty { path: path.clone() });
            }
        }
        opening.finish()
    }
}

/// A source whose files are being opened one after another. Of thousands, a few are looked at; the others are
/// opened by their first row.
struct Opening<'o> {
    options: &'o SourceOptions,
    names: &'o [&'o str],
    ledger: &'o Ledger,
    parts: Vec<Box<dyn Part>>,
    /// There is a database that the query is for.
    asked: bool,
    /// What all CSV files have in common, by the first of them.
    csv: Option<CsvShape>,
    /// What is wrong with the first file if it stays the only one.
    without_rows: Option<Error>,
    /// Files of JSON lines and their places among the parts: what their columns are is known with the last one.
    json: Vec<(usize, Input, Option<Profile>)>,
    head: Head,
    /// Room for the names.
    listed: Grant,
}

/// The first file of a folder and its format.
type First = Option<(PathBuf, Format)>;

impl Opening<'_> {
    /// Opens one file by what its first bytes say it is. Files that belong `together` have one format.
    fn open_file(&mut self, input: Input, look: bool, together: Option<&mut First>) -> Result<()> {
        self.head.read(&input)?;
        let format = Format::of(&input, &self.head);
        if let Some(first) = together {
            check_format(first, input.path(), format)?;
        }
        match format {
            Format::Csv => self.open_csv(input, look),
            Format::JsonLines => self.open_json(input, look),
            Format::Sqlite | Format::Zip | Format::Parquet | Format::Arrow if input.is_member() => {
                Err(Error::Member {
                    path: input.path().into(),
                    what: format!("is {}", format.name()),
                })
            }
            Format::Sqlite => self.open_sqlite(input),
            Format::Parquet => {
                let part = ParquetPart::open(input, self.ledger)?;
                self.push(part)
            }
            Format::Arrow => {
                let part = ArrowPart::open(input, self.ledger)?;
                self.push(part)
            }
            Format::Zip => self.open_zip(&input),
        }
    }

    fn open_csv(&mut self, input: Input, look: bool) -> Result<()> {
        let Some(shape) = self.csv.clone() else {
            let part = match self.look_at(input, &self.options.dialect) {
                // Other files may have rows.
                Err(error @ Error::HeaderOnly { .. }) => {
                    self.without_rows.get_or_insert(error);
                    return Ok(());
                }
                part => part?,
            };
            self.csv = Some(part.shape().clone());
            return self.push(part);
        };
        let (padded, end) = self.head.padded();
        let by_first_row = shape.open_like(&input, padded, end, self.head.all);
        let part = match by_first_row {
            Some(part) if !look => part,
            by_first_row => match (
                self.look_at(input.clone(), &shape.dialect_options()),
                by_first_row,
            ) {
                // One of several files may have no rows.
                (Err(Error::HeaderOnly { .. }), Some(part)) => part,
                (Ok(part), _) if check_drift(self.parts[0].as_ref(), &part).is_ok() => part,
                (Err(error), Some(_)) => return Err(error),
                // It may be written in another dialect than the first.
                (_, _) => self.look_at(input, &self.options.dialect)?,
            },
        };
        self.push(part)
    }

    fn look_at(&self, input: Input, dialect: &DialectOptions) -> Result<CsvPart> {
        CsvPart::open(input, dialect, self.names, &self.options.missing, self.ledger)
    }

    fn open_json(&mut self, input: Input, look: bool) -> Result<()> {
        let look = look || self.json.is_empty();
        let profile = look.then(|| json::look(&input, &self.options.missing, self.ledger));
        self.json
            .push((self.parts.len() + self.json.len(), input, profile.transpose()?));
        Ok(())
    }

    fn open_sqlite(&mut self, input: Input) -> Result<()> {
        self.asked = true;
        let part = SqlitePart::open(input, self.options.query.as_deref())?;
        self.push(part)
    }

    fn open_postgres(&mut self, address: &Path) -> Result<()> {
        self.asked = true;
        let part = PostgresPart::open(address, self.options.query.as_deref())?;
        self.push(part)
    }

    fn open_zip(&mut self, archive: &Input) -> Result<()> {
        let members = zip::members(archive, &self.ledger.holder("sample"), &mut self.listed)?;
        let (n_members, mut format) = (members.len(), None);
        for (i, member) in members.into_iter().enumerate() {
            self.open_file(member, is_looked_at(i, n_members), Some(&mut format))?;
        }
        Ok(())
    }

    fn push(&mut self, part: impl Part + 'static) -> Result<()> {
        if let Some(first) = self.parts.first() {
            check_drift(first.as_ref(), &part)?;
        }
        self.parts.push(Box::new(part));
        Ok(())
    }

    fn finish(mut self) -> Result<Source> {
        match self.without_rows.take() {
            Some(error) if self.parts.is_empty() && self.json.is_empty() => return Err(error),
            _ => {}
        }
        let alone = self.parts.is_empty();
        let places: Vec<usize> = self.json.iter().map(|(place, ..)| *place).collect();
        let files = self.json.into_iter().map(|(_, input, profile)| (input, profile));
        for (place, part) in places.into_iter().zip(json::parts(files.collect())) {
            if !alone {
                check_drift(self.parts[0].as_ref(), &part)?;
            }
            self.parts.insert(place, Box::new(part));
        }
        if let (Some(_), false) = (&self.options.query, self.asked) {
            return Err(Error::NothingToAsk {
                path: self.parts[0].path().into(),
            });
        }
        Ok(Source { parts: self.parts })
    }
}

fn check_format(first: &mut First, path: &Path, format: Format) -> Result<()> {
    match first {
        Some((first, first_format)) if *first_format != format => Err(Error::MixedFormats {
            first: first.clone(),
            first_format: first_format.name(),
            other: path.into(),
            other_format: format.name(),
        }),
        Some(_) => Ok(()),
        None => {
            *first = Some((path.into(), format));
            Ok(())
        }
    }
}

/// Refuses files whose columns differ: epochs over different columns would not be one table. Their order may
/// differ, for columns are found by name.
fn check_drift(first: &dyn Part, other: &dyn Part) -> Result<()> {
    let names = |part: &dyn Part| -> Vec<String> {
        part.columns().iter().map(|column| column.name.clone()).collect()
    };
    let same = |(a, b): (&super::SourceColumn, &super::SourceColumn)| a.name == b.name;
    if first.columns().len() == other.columns().len() && first.columns().iter().zip(other.columns()).all(same)
    {
        return Ok(());
    }
    let (a, b) = (names(first), names(other));
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        let those: std::collections::HashSet<&String> = those.iter().collect();
        these
            .iter()
            .filter(|name| !those.contains(name))
            .cloned()
            .collect()
    };
    let (missing, extra) = (only(&a, &b), only(&b, &a));
    if missing.is_empty() && extra.is_empty() {
        return Ok(());
    }
    Err(Error::Drift {
        first: first.path().into(),
        other: other.path().into(),
        missing,
        extra,
    })
}
