//! A table with every kind of column, and its passes as plain data to compare.

use std::fmt::Write;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

use tempfile::TempDir;
use tidegate_data::pack::Part;
use tidegate_data::{
    BadRows, BinsPack, BinsWriter, Error, FitOptions, Holdout, PackKey, PackOptions, PackStore, PassOptions,
    Position, Purpose, RowCounts, Source, SourceOptions, Table, TableOptions,
};
use tidegate_memory::{Holder, Ledger};

pub(crate) const ROOMY: u64 = 256 << 20;

/// A folder with a table and a store of packs.
pub(crate) struct Scratch {
    pub folder: TempDir,
    n_rows: usize,
}

impl Scratch {
    /// Numbers, categories and texts; some values missing or broken, some rows bad, some without a target.
    pub(crate) fn mixed(n_rows: usize) -> Scratch {
        let mut text = String::from("a,city,b,note,y\n");
        for i in 0..n_rows {
            let city = ["Oslo", "Rome", "Lima", "Bonn", ""][i * 7 % 5];
            let b = if i % 1_009 == 11 {
                "oops".into()
            } else {
                format!("{}.25", i % 77)
            };
            let note = ["good and quick", "slow", "late but good", "never again please"][i * 3 % 4];
            let y = if i % 101 == 5 {
                String::new()
            } else {
                format!("{}", (i * 31) % 2)
            };
            writeln!(text, "{},{city},{b},{note} {},{y}", i * 13 % 1_000, i % 50).unwrap();
            if i % 4_001 == 4_000 {
                text.push_str("one,two\n");
            }
        }
        Scratch::of(&text, n_rows)
    }

    /// Numbers only: rows without sparse values.
    pub(crate) fn numbers(n_rows: usize) -> Scratch {
        let mut text = String::from("a,b,y\n");
        (0..n_rows).for_each(|i| writeln!(text, "{i},{},{}.5", i % 7, i % 1_000).unwrap());
        Scratch::of(&text, n_rows)
    }

    pub(crate) fn of(text: &str, n_rows: usize) -> Scratch {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("table.csv"), text).unwrap();
        Scratch { folder, n_rows }
    }

    pub(crate) fn table(&self) -> Table {
        let ledger = Ledger::new(ROOMY);
        let paths = [self.folder.path().join("table.csv")];
        let source = Source::open(&paths, &SourceOptions::default(), &["y"], &ledger).unwrap();
        let options = TableOptions {
            bad_rows: BadRows::Skip,
            ..TableOptions::default()
        };
        let mut table = Table::open(source, "y", &options, &ledger).unwrap();
        let fit = FitOptions {
            threads: 2,
            holdout: holdout(),
            seed: 7,
            bytes: 8 << 20,
        };
        table.fit_encoders(Purpose::Linear, &fit, &ledger).unwrap();
        table
    }

    /// The table with its pack: to be written, or to be read if it is there.
    pub(crate) fn packed(&self, ledger: &Ledger) -> Table {
        let mut table = self.table();
        table.use_pack(self.options(), holdout(), ledger);
        table
    }

    pub(crate) fn store(&self) -> PackStore {
        PackStore::at(self.folder.path().join("packs"))
    }

    pub(crate) fn options(&self) -> PackOptions {
        options(self.store(), key(), self.n_rows as u64)
    }

    pub(crate) fn pack(&self) -> PathBuf {
        self.store().folder(key())
    }
}

pub(crate) fn key() -> PackKey {
    PackKey::of(&[b"table", b"encoders"])
}

pub(crate) fn options(store: PackStore, key: PackKey, n_rows: u64) -> PackOptions {
    PackOptions {
        store,
        key,
        description: "table.csv, 4 columns, target y".into(),
        n_rows,
    }
}

pub(crate) fn holdout() -> Holdout {
    Holdout::new(0.3, 7)
}

pub(crate) fn pass_options(threads: usize, start: Option<Position>) -> PassOptions {
    PassOptions {
        threads,
        holdout: holdout(),
        start,
    }
}

/// A batch as bits: equal only if every value is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub rows: Vec<u64>,
    pub counts: RowCounts,
    pub position: Position,
}

/// All that a pass gives.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Passed {
    pub batches: Vec<Seen>,
    pub counts: RowCounts,
}

pub(crate) fn pass(table: &Table, options: &PassOptions, ledger: &Ledger) -> Result<Passed, Error> {
    pass_with(table, options, ledger, |_| {})
}

/// The same, with something that happens behind every batch.
pub(crate) fn pass_with(
    table: &Table,
    options: &PassOptions,
    ledger: &Ledger,
    mut behind: impl FnMut(usize),
) -> Result<Passed, Error> {
    let mut batches = Vec::new();
    let used = ledger.used();
    let counts = table.pass(
        options,
        ledger,
        |batch| batch.n_rows(),
        |batch, n_rows, position| {
            assert_eq!(
                n_rows,
                batch.n_rows(),
                "batch and what was made of it belong together"
            );
            let mut rows = Vec::new();
            for row in batch.rows() {
                rows.extend([row.line, row.target.to_bits(), u64::from(row.held_out)]);
                rows.extend(row.dense.iter().map(|value| u64::from(value.to_bits())));
                rows.extend(row.places.iter().map(|place| u64::from(*place)));
                rows.extend(row.values.iter().map(|value| u64::from(value.to_bits())));
            }
            let counts = batch.counts.clone();
            batches.push(Seen {
                rows,
                counts,
                position,
            });
            behind(batches.len());
            Ok::<_, Error>(ControlFlow::Continue(()))
        },
    )?;
    if table.pack.is_none() {
        assert_eq!(ledger.used(), used, "a pass gives everything back");
    }
    Ok(Passed { batches, counts })
}

/// A block of bins, its values told by the numbers of its rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Block {
    pub bins: Vec<u8>,
    pub target: Vec<f32>,
    pub held_out: Vec<u8>,
}

impl Block {
    pub(crate) fn new(first: usize, n_rows: usize, n_features: usize) -> Block {
        let row = |i: usize| (first + i) as u64;
        Block {
            bins: (0..n_rows * n_features)
                .map(|i| ((row(i) * 2_654_435_761) >> 13) as u8)
                .collect(),
            target: (0..n_rows).map(|i| row(i) as f32 / 3.0).collect(),
            held_out: (0..n_rows).map(|i| u8::from(row(i) % 10 == 3)).collect(),
        }
    }

    /// Reads a block of a pack into its place.
    pub(crate) fn read(&mut self, pack: &BinsPack, block: usize, part: Part) -> Result<(), Error> {
        pack.read_block(block, part, &mut self.bins, &mut self.target, &mut self.held_out)
    }

    pub(crate) fn empty(n_rows: usize, n_features: usize) -> Block {
        Block {
            bins: vec![0xee; n_rows * n_features],
            target: vec![f32::NAN; n_rows],
            held_out: vec![0xee; n_rows],
        }
    }
}

/// A pack of bins in blocks of these rows.
pub(crate) fn write_bins(options: &PackOptions, n_features: usize, blocks: &[usize], holder: &Holder) {
    let mut writer = BinsWriter::create(options, n_features, holder).unwrap();
    let mut first = 0;
    for &n_rows in blocks {
        let block = Block::new(first, n_rows, n_features);
        writer
            .push_block(&block.bins, &block.target, &block.held_out)
            .unwrap();
        first += n_rows;
    }
    writer.finish().unwrap();
}
