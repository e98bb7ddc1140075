//! Binning a table into a pack: whole, or not at all.

use std::ops::ControlFlow;

use tidegate_data::pack::{BinsPack, BinsWriter, PackKey, PackOptions, PackStore};
use tidegate_data::{PassOptions, Purpose, Table, TableOptions};
use tidegate_memory::Ledger;
use tidegate_train::Error;
use tidegate_train::boost::{self, Blocks, FeatureBins, Objective, Options, Shape};

use crate::help::{Scratch, fit_options, source};
use crate::tables::{Kind, plain_rows};

const ROOMY: u64 = 1 << 30;

/// A table, its features and its shape, in blocks that are small enough for many of them.
fn ready(scratch: &Scratch) -> (Table, Vec<FeatureBins>, Shape) {
    let ledger = Ledger::new(ROOMY);
    let mut table = Table::open(source(&scratch.path()), "y", &TableOptions::default(), &ledger).unwrap();
    let encoding = table
        .fit_encoders(Purpose::Trees, &fit_options(), &ledger)
        .unwrap();
    let features: Vec<FeatureBins> = encoding
        .cuts
        .iter()
        .map(|column| FeatureBins::new(&column.name, column.cuts.clone()))
        .collect();
    let shape = Shape {
        n_bins: features.iter().map(FeatureBins::n_bins).sum(),
        block_rows: 4_096,
        ..Shape::new(encoding.rows.unwrap() as usize, features.len())
    };
    (table, features, shape)
}

fn pass() -> PassOptions {
    PassOptions {
        threads: 2,
        holdout: fit_options().holdout,
        start: None,
    }
}

/// Rows that came or went between the two readings.
#[test]
fn a_table_that_changed_since_the_fit_is_refused() {
    let scratch = Scratch::new("data.csv", plain_rows(Kind::Number, 20_000));
    let (table, features, shape) = ready(&scratch);
    for n_rows in [19_000, 19_999, 20_001, 30_000] {
        let ledger = Ledger::new(ROOMY);
        let shape = Shape { n_rows, ..shape };
        let plan = boost::plan(&shape, &Options::new(Objective::Squared), 1, ROOMY).unwrap();
        let go_on = |_, _| ControlFlow::Continue(());
        let found = boost::fill(&table, &features, &plan, None, &pass(), &ledger, go_on);
        let Err(Error::Data(tidegate_data::Error::Changed { path })) = found.map(|_| ()) else {
            panic!("{n_rows} rows were taken");
        };
        assert_eq!((path, ledger.used()), (scratch.path(), 0));
    }
}

#[test]
fn a_pack_that_was_broken_off_leaves_nothing() {
    let scratch = Scratch::new("data.csv", plain_rows(Kind::Number, 60_000));
    let ledger = Ledger::new(ROOMY);
    let (table, features, shape) = ready(&scratch);
    let options = Options::new(Objective::Squared);
    let whole = boost::plan(&shape, &options, 1, ROOMY).unwrap();
    // Less than all blocks, so that a pack is needed.
    let plan = boost::plan(&shape, &options, 1, whole.total() - whole.bytes(boost::ROWS) / 2).unwrap();
    assert!(!plan.rows_fit());

    let packs = scratch.beside("packs");
    let store = PackStore::at(&packs);
    let key = PackKey::of(&[b"table"]);
    let fill = |pieces: u64| {
        let pack = PackOptions {
            store: PackStore::at(&packs),
            key,
            description: "a table".into(),
            n_rows: shape.n_rows as u64,
        };
        let writer = BinsWriter::create(&pack, features.len(), &ledger.holder("pack")).unwrap();
        let mut heard = 0;
        let progress = |_, _| {
            heard += 1;
            match heard < pieces {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        boost::fill(&table, &features, &plan, Some(writer), &pass(), &ledger, progress).unwrap()
    };
    assert!(fill(1).is_none());
    let there = BinsPack::open(&store, key, features.len(), &ledger.holder("pack")).unwrap();
    assert!(there.is_none(), "half a pack stays");
    let (rows, counts) = fill(u64::MAX).unwrap();
    let n_rows: usize = (0..rows.n_blocks()).map(|block| rows.n_rows(block)).sum();
    assert_eq!((n_rows as u64, counts.rows), (60_000, 60_000));
    let there = BinsPack::open(&store, key, features.len(), &ledger.holder("pack")).unwrap();
    assert_eq!(there.unwrap().total_rows(), 60_000);
}
