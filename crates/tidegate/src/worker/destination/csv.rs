//! Predictions as CSV.

use std::borrow::Cow;
use std::io::{self, Write};

use tidegate_memory::Grant;
use tidegate_train::{Prediction, Result};

use super::{Columns, Destination};

pub(in crate::worker) struct CsvOutput {
    out: Destination,
    columns: Columns,
    _grant: Grant,
}

impl CsvOutput {
    pub(super) fn new(out: Destination, columns: Columns, grant: Grant) -> Result<CsvOutput> {
        let names = columns.names();
        let header: Vec<Cow<str>> = names.iter().map(|name| quoted(name)).collect();
        let header = header.join(",");
        // Once for all rows rather than for each.
        let quote_all = |texts: Vec<String>| texts.iter().map(|text| quoted(text).into_owned()).collect();
        let columns = Columns {
            files: columns.files.map(quote_all),
            labels: quote_all(columns.labels),
            ..columns
        };
        let mut csv = CsvOutput {
            out,
            columns,
            _grant: grant,
        };
        let written = writeln!(csv.out, "{header}");
        written.map_err(|source| csv.out.failed(source))?;
        Ok(csv)
    }

    pub(super) fn write(&mut self, prediction: &Prediction) -> Result<()> {
        self.row(prediction).map_err(|source| self.out.failed(source))
    }

    fn row(&mut self, prediction: &Prediction) -> io::Result<()> {
        let (out, columns) = (&mut self.out, &self.columns);
        if let Some(files) = &columns.files {
            write!(out, "{},", files[prediction.part])?;
        }
        let Prediction { line, score, .. } = prediction;
        match (columns.named, prediction.name) {
            (true, name) => write!(out, "{}", quoted(name.unwrap_or_default()))?,
            (false, _) => write!(out, "{line}")?,
        }
        match columns.labels.get(prediction.class) {
            _ if !columns.several.is_empty() => {}
            Some(label) => write!(out, ",{label},{score}")?,
            None => write!(out, ",{score}")?,
        }
        if columns.n_scores() > 1 || !columns.several.is_empty() {
            for score in prediction.scores {
                write!(out, ",{score}")?;
            }
        }
        out.write_all(b"\n")
    }

    pub(super) fn finish(self) -> Result<()> {
        self.out.finish()
    }
}

/// A text as a CSV field.
fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}
