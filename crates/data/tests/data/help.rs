//! A file in a temporary folder, and its rows as a pass gives them.

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

use tempfile::TempDir;
use tidegate_data::encode::{Encoder, NumberScale};
use tidegate_data::{
    Error, FitOptions, Holdout, PassOptions, Position, Purpose, RowCounts, Source, SourceOptions, Table,
    TableOptions,
};
use tidegate_memory::Ledger;

pub(crate) const ROOMY: u64 = 64 << 20;
pub(crate) const BLOCK: usize = 1 << 20;

/// A file in a folder of its own.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new(bytes: impl AsRef<[u8]>) -> Scratch {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("table"), bytes).unwrap();
        Scratch(folder)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("table")
    }

    /// Looks at the file and fits the encoders of a linear model.
    pub(crate) fn open(&self, target: &str, options: &TableOptions) -> Result<Table, Error> {
        self.open_as(target, &SourceOptions::default(), options)
    }

    pub(crate) fn open_as(
        &self,
        target: &str,
        reading: &SourceOptions,
        options: &TableOptions,
    ) -> Result<Table, Error> {
        let ledger = Ledger::new(ROOMY);
        let table = Source::open(&[self.path()], reading, &[target], &ledger)
            .and_then(|source| Table::open(source, target, options, &ledger));
        assert_eq!(ledger.used(), 0, "looking at a file gives everything back");
        let mut table = table?;
        table.fit_encoders(Purpose::Linear, &fit_options(2), &ledger)?;
        assert_eq!(ledger.used(), table.encoder_bytes(), "only the encoders are kept");
        Ok(table)
    }

    /// Opens, fits and reads with so many threads; the first error on the way.
    pub(crate) fn read(&self, target: &str, options: &TableOptions, threads: usize) -> Result<Read, Error> {
        let ledger = Ledger::new(ROOMY);
        let source = Source::open(&[self.path()], &SourceOptions::default(), &[target], &ledger)?;
        let mut table = Table::open(source, target, options, &ledger)?;
        table.fit_encoders(Purpose::Linear, &fit_options(threads), &ledger)?;
        read(&table, &self::options(threads, None), ROOMY)
    }
}

pub(crate) fn fit_options(threads: usize) -> FitOptions {
    FitOptions {
        threads,
        holdout: Holdout::new(0.3, 7),
        seed: 7,
        bytes: 8 << 20,
    }
}

/// A table of numbers: the columns named are left out.
pub(crate) fn without(columns: &[&str]) -> TableOptions {
    TableOptions {
        ignore: columns.iter().map(|name| name.to_string()).collect(),
        ..TableOptions::default()
    }
}

/// A row with its values in their own units; `None` is missing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cells {
    pub line: u64,
    pub values: Vec<Option<f64>>,
    pub target: f64,
    pub held_out: bool,
}

#[derive(Debug)]
pub(crate) struct Read {
    pub rows: Vec<Cells>,
    pub counts: RowCounts,
    /// Places between blocks, with the rows before them.
    pub places: Vec<(Position, usize)>,
}

pub(crate) fn options(threads: usize, start: Option<Position>) -> PassOptions {
    PassOptions {
        threads,
        holdout: Holdout::new(0.3, 7),
        start,
    }
}

/// Reads a table through a ledger of its own; every grant has to come back.
pub(crate) fn read(table: &Table, options: &PassOptions, budget: u64) -> Result<Read, Error> {
    let ledger = Ledger::new(budget);
    let (mut rows, mut places) = (Vec::new(), Vec::new());
    let counts = table.pass(
        options,
        &ledger,
        |batch| batch.n_rows(),
        |batch, n_rows, position| {
            assert_eq!(
                n_rows,
                batch.n_rows(),
                "batch and what was made of it belong together"
            );
            rows.extend(batch.rows().map(|row| cells(table, row)));
            places.push((position, rows.len()));
            Ok::<_, Error>(ControlFlow::Continue(()))
        },
    );
    assert_eq!(ledger.used(), 0, "a pass gives everything back");
    assert!(ledger.peak() <= budget);
    Ok(Read {
        rows,
        counts: counts?,
        places,
    })
}

/// Undoes the scaling of numbers, and leaves out all else; values of up to six digits come back exactly when rounded to thousandths.
fn cells(table: &Table, row: tidegate_data::batch::Row) -> Cells {
    let mut at = 0;
    let mut values = Vec::new();
    for feature in &table.encoders.features {
        if let Encoder::Number(number) = &feature.encoder {
            let NumberScale::Standard { mean, deviation } = number.scale else {
                panic!("{:?}", number.scale)
            };
            let missing = number.flag_missing && row.dense[at + 1] == 1.0;
            let value = mean + deviation * f64::from(row.dense[at]);
            values.push((!missing).then_some((value * 1000.0).round() / 1000.0));
        }
        at += feature.encoder.width().dense;
    }
    Cells {
        line: row.line,
        values,
        target: row.target,
        held_out: row.held_out,
    }
}

/// Opens and reads with the usual options: the rows' values and targets.
pub(crate) fn all(text: impl AsRef<[u8]>, options: &TableOptions) -> Vec<(Vec<Option<f64>>, f64)> {
    let reading = SourceOptions {
        missing: options.missing.clone(),
        ..SourceOptions::default()
    };
    all_as(text, &reading, options)
}

pub(crate) fn all_as(
    text: impl AsRef<[u8]>,
    reading: &SourceOptions,
    options: &TableOptions,
) -> Vec<(Vec<Option<f64>>, f64)> {
    let scratch = Scratch::new(text);
    let table = scratch.open_as("y", reading, options).unwrap();
    let found = read(&table, &self::options(2, None), ROOMY).unwrap();
    found
        .rows
        .into_iter()
        .map(|row| (row.values, row.target))
        .collect()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// `n` rows `n - i,i mod 7,i.5` under a header: a column that rises with the rows would count them.
pub(crate) fn counting(n: usize) -> String {
    use std::fmt::Write;
    let mut text = String::from("a,b,y\n");
    (0..n).for_each(|i| writeln!(text, "{},{},{i}.5", n - i, i % 7).unwrap());
    text
}
