//! Several builders of one pack: each works aside, one wins, all use it.

use tidegate_data::pack::Part;
use tidegate_data::{BinsPack, BinsWriter};
use tidegate_memory::Ledger;

use crate::help::{Block, ROOMY, Scratch, key, pass, pass_options};

#[test]
fn builders_of_the_same_pack_do_not_meet() {
    let scratch = Scratch::mixed(90_000);
    let ledger = Ledger::new(4 * ROOMY);
    let expected = pass(&scratch.table(), &pass_options(1, None), &ledger).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let table = scratch.packed(&ledger);
                for _ in 0..2 {
                    assert!(pass(&table, &pass_options(1, None), &ledger).unwrap() == expected);
                }
                let pack = table.pack.as_ref().unwrap();
                assert!(pack.is_ready(), "{:?}", pack.take_problems());
            });
        }
    });
    let left = std::fs::read_dir(scratch.store().path()).unwrap().count();
    assert_eq!((left, ledger.used()), (1, 0));
}

#[test]
fn the_loser_uses_what_the_winner_wrote() {
    let scratch = Scratch::numbers(2);
    let holder = Ledger::new(ROOMY).holder("pack");
    let writer = || {
        let mut writer = BinsWriter::create(&scratch.options(), 2, &holder).unwrap();
        let block = Block::new(0, 100, 2);
        writer
            .push_block(&block.bins, &block.target, &block.held_out)
            .unwrap();
        writer
    };
    let (first, second, third) = (writer(), writer(), writer());
    let packs: Vec<BinsPack> = [first, second].map(|writer| writer.finish().unwrap()).into();
    drop(third);
    for pack in &packs {
        let mut read = Block::empty(100, 2);
        read.read(pack, 0, Part::Whole).unwrap();
        assert!(read == Block::new(0, 100, 2));
    }
    let left: Vec<_> = std::fs::read_dir(scratch.store().path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(left, [scratch.store().folder(key())]);
}
