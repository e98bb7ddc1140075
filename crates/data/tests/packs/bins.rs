//! Packs of bins: what was pushed comes back, from any thread, in any order.

use tidegate_data::pack::Part;
use tidegate_data::{BinsPack, Error};
use tidegate_memory::Ledger;

use crate::help::{Block, Scratch, key, options, write_bins};

#[test]
fn blocks_come_back_as_they_were_pushed() {
    for n_features in [1, 3, 64] {
        for blocks in [
            vec![],
            vec![1],
            vec![0, 5, 0],
            vec![1_000, 65_536, 77],
            vec![63, 64, 65, 1, 2],
        ] {
            let scratch = Scratch::numbers(2);
            let ledger = Ledger::new(64 << 20);
            let holder = ledger.holder("pack");
            write_bins(&scratch.options(), n_features, &blocks, &holder);
            let pack = BinsPack::open(&scratch.store(), key(), n_features, &holder)
                .unwrap()
                .unwrap();
            let n_rows: usize = blocks.iter().sum();
            assert_eq!(
                (pack.n_blocks(), pack.total_rows()),
                (blocks.len(), n_rows as u64)
            );
            let mut first = 0;
            for (i, &n_rows) in blocks.iter().enumerate() {
                assert_eq!(pack.n_rows(i), n_rows);
                let mut read = Block::empty(n_rows, n_features);
                read.read(&pack, i, Part::Whole).unwrap();
                assert!(
                    read == Block::new(first, n_rows, n_features),
                    "block {i} of {blocks:?}"
                );
                first += n_rows;
            }
            drop(pack);
            assert_eq!(ledger.used(), 0);
        }
    }
}

#[test]
fn several_threads_read_at_once() {
    let scratch = Scratch::numbers(2);
    let holder = Ledger::new(64 << 20).holder("pack");
    let (n_features, n_rows) = (8, 4_096);
    write_bins(&scratch.options(), n_features, &[n_rows; 40], &holder);
    let pack = BinsPack::open(&scratch.store(), key(), n_features, &holder)
        .unwrap()
        .unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let pack = &pack;
            scope.spawn(move || {
                let mut read = Block::empty(n_rows, n_features);
                for turn in 0..pack.n_blocks() {
                    let block = (turn * 7 + thread * 11) % pack.n_blocks();
                    read.read(pack, block, Part::Whole).unwrap();
                    assert!(read == Block::new(block * n_rows, n_rows, n_features));
                }
            });
        }
    });
}

#[test]
fn each_part_is_read_alone() {
    let scratch = Scratch::numbers(2);
    let holder = Ledger::new(64 << 20).holder("pack");
    let (n_features, n_rows) = (3, 500);
    write_bins(&scratch.options(), n_features, &[n_rows; 2], &holder);
    let open = || {
        BinsPack::open(&scratch.store(), key(), n_features, &holder)
            .unwrap()
            .unwrap()
    };
    let pack = open();
    let read = |block: usize, part: Part, into: &mut Block| into.read(&pack, block, part);
    // Not read before: whatever is asked for, all of it is read.
    let mut first = Block::empty(n_rows, n_features);
    read(0, Part::Bins, &mut first).unwrap();
    assert!(first == Block::new(0, n_rows, n_features));
    // Read before: the bins, and nothing else.
    let mut again = Block::empty(n_rows, n_features);
    read(0, Part::Bins, &mut again).unwrap();
    let untouched =
        again.target.iter().all(|y| y.is_nan()) && again.held_out.iter().all(|mark| *mark == 0xee);
    assert!(again.bins == first.bins && untouched);
    let mut labels = Block::empty(n_rows, n_features);
    read(0, Part::Labels, &mut labels).unwrap();
    assert!(labels.target == first.target && labels.held_out == first.held_out);
    assert!(labels.bins == Block::empty(n_rows, n_features).bins);
}

/// Each part is checked without the other.
#[test]
fn damage_is_found_in_the_part_that_has_it() {
    let (n_features, n_rows) = (3, 500);
    let bins_bytes = n_rows * n_features;
    for (at, damaged, whole) in [
        (700, Part::Bins, Part::Labels),
        (bins_bytes + 2 * n_rows, Part::Labels, Part::Bins),
    ] {
        let scratch = Scratch::numbers(2);
        let holder = Ledger::new(64 << 20).holder("pack");
        write_bins(&scratch.options(), n_features, &[n_rows], &holder);
        let pack = BinsPack::open(&scratch.store(), key(), n_features, &holder)
            .unwrap()
            .unwrap();
        let mut block = Block::empty(n_rows, n_features);
        block.read(&pack, 0, Part::Whole).unwrap();
        let data = scratch.pack().join("data.arrow");
        let mut bytes = std::fs::read(&data).unwrap();
        let body = bytes
            .windows(bins_bytes)
            .position(|window| window == block.bins)
            .unwrap();
        bytes[body + at] ^= 1;
        std::fs::write(&data, bytes).unwrap();
        block.read(&pack, 0, whole).unwrap();
        let error = block.read(&pack, 0, damaged).unwrap_err();
        assert!(matches!(error, Error::PackDamaged { batch: 0, .. }), "{error}");
        assert!(!scratch.pack().exists(), "the next run builds it again");
    }
}

#[test]
fn a_pack_of_another_width_is_not_used() {
    let scratch = Scratch::numbers(2);
    let holder = Ledger::new(64 << 20).holder("pack");
    write_bins(&scratch.options(), 4, &[100], &holder);
    let problem = BinsPack::open(&scratch.store(), key(), 5, &holder).unwrap_err();
    assert!(problem.to_string().contains("bins of 4 features"), "{problem}");
    assert!(
        BinsPack::open(&scratch.store(), key(), 5, &holder)
            .unwrap()
            .is_none()
    );
}

#[test]
fn an_index_that_does_not_fit_the_budget_is_refused() {
    let scratch = Scratch::numbers(2);
    let holder = Ledger::new(64 << 20).holder("pack");
    write_bins(&options(scratch.store(), key(), 0), 1, &[1; 500], &holder);
    let tight = Ledger::new(1_000);
    let problem = BinsPack::open(&scratch.store(), key(), 1, &tight.holder("pack")).unwrap_err();
    assert_eq!(problem.to_string(), "no pack: the budget has no room for it");
    assert!(
        BinsPack::open(&scratch.store(), key(), 1, &holder)
            .unwrap()
            .is_some(),
        "it stays"
    );
}
