//! From what a person names to the parts of a source: files by their contents, folders and patterns by name.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tidegate_memory::Ledger;

use super::arrow::ArrowPart;
use super::parquet::ParquetPart;
use super::{Part, Source};
use crate::csv::DialectOptions;
use crate::csv::part::CsvPart;
use crate::{Error, Input, Result};

/// How to read what was named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceOptions {
    pub dialect: DialectOptions,
    /// Words for missing values beside the usual ones.
    pub missing: Vec<String>,
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
        let mut parts: Vec<Box<dyn Part>> = Vec::new();
        for path in list(paths)? {
            parts.push(open_file(Input::open(&path)?, options, names, ledger)?);
        }
        if let Some((first, others)) = parts.split_first() {
            for other in others {
                check_drift(first.as_ref(), other.as_ref())?;
            }
        }
        Ok(Source { parts })
    }
}

/// Opens one file by what its first bytes say it is.
fn open_file(
    input: Input,
    options: &SourceOptions,
    names: &[&str],
    ledger: &Ledger,
) -> Result<Box<dyn Part>> {
    match &input.magic()? {
        [b'P', b'A', b'R', b'1' | b'E', ..] => return Ok(Box::new(ParquetPart::open(input, ledger)?)),
        b"ARROW1\0\0" | [0xff, 0xff, 0xff, 0xff, ..] => return Ok(Box::new(ArrowPart::open(input, ledger)?)),
        _ => {}
    }
    let part = CsvPart::open(input, &options.dialect, names, &options.missing, ledger)?;
    Ok(Box::new(part))
}

/// The files that were named, folders and patterns resolved, each in the order of its names.
fn list(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        files.push(path.clone());
    }
    Ok(files)
}

/// Refuses files whose columns differ: epochs over different columns would not be one table.
fn check_drift(first: &dyn Part, other: &dyn Part) -> Result<()> {
    let names = |part: &dyn Part| -> Vec<String> {
        part.columns().iter().map(|column| column.name.clone()).collect()
    };
    let (a, b) = (names(first), names(other));
    if a == b {
        return Ok(());
    }
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these
            .iter()
            .filter(|name| !those.contains(name))
            .cloned()
            .collect()
    };
    Err(Error::Drift {
        first: first.path().into(),
        other: other.path().into(),
        missing: only(&a, &b),
        extra: only(&b, &a),
    })
}
