//! Disks that are too small, get full, or may not be written: training goes on without a pack.

use std::fs;

use tidegate_data::{BinsWriter, PackProblem, PackStore};
use tidegate_memory::Ledger;

use crate::help::{Block, ROOMY, Scratch, holdout, key, options, pass, pass_options};
use crate::small_disk::SmallDisk;

#[test]
fn a_pack_larger_than_the_disk_is_not_begun() {
    let scratch = Scratch::numbers(2);
    let holder = Ledger::new(ROOMY).holder("pack");
    let far_too_large = options(scratch.store(), key(), 1 << 50);
    let problem = BinsWriter::create(&far_too_large, 1_000, &holder).err().unwrap();
    let said = problem.to_string();
    assert!(matches!(problem, PackProblem::NoSpace { .. }), "{said}");
    assert!(
        said.starts_with("no pack: it needs ") && said.ends_with(" free"),
        "{said}"
    );
    assert_eq!(fs::read_dir(scratch.store().path()).unwrap().count(), 0);
}

#[test]
fn a_disk_that_gets_full_is_survived() {
    let scratch = Scratch::mixed(90_000);
    let Some(disk) = SmallDisk::mount(scratch.folder.path(), 96) else {
        return;
    };
    let store = PackStore::at(disk.0.join("packs"));
    let ledger = Ledger::new(ROOMY);
    let expected = pass(&scratch.table(), &pass_options(2, None), &ledger).unwrap();
    let mut table = scratch.table();
    table.use_pack(options(store.clone(), key(), 90_000), holdout(), &ledger);
    // The disk has room when the pass begins; somebody else takes it while the pack is written.
    let mut batches = 0;
    let counts = table.pass(
        &pass_options(2, None),
        &ledger,
        |_| (),
        |_, (), _| {
            if batches == 0 {
                let taken = fs::write(disk.0.join("ballast"), vec![1; 96 << 20]);
                assert!(taken.is_err(), "the disk is full");
            }
            batches += 1;
            Ok::<_, tidegate_data::Error>(std::ops::ControlFlow::Continue(()))
        },
    );
    assert_eq!(
        (counts.unwrap(), batches),
        (expected.counts.clone(), expected.batches.len())
    );
    let pack = table.pack.as_ref().unwrap();
    let problems = pack.take_problems();
    assert!(matches!(problems[..], [PackProblem::Full { .. }]), "{problems:?}");
    assert_eq!(
        fs::read_dir(store.path()).unwrap().count(),
        0,
        "the half pack is gone"
    );
    assert!(pass(&table, &pass_options(2, None), &ledger).unwrap() == expected);
    assert!(!pack.is_ready());
    assert_eq!(pack.take_problems().len(), 0, "it is not tried again");
    assert_eq!(ledger.used(), 0);
}

#[test]
fn a_writer_of_bins_tells_when_the_disk_is_full() {
    let scratch = Scratch::numbers(2);
    let Some(disk) = SmallDisk::mount(scratch.folder.path(), 68) else {
        return;
    };
    let store = PackStore::at(disk.0.join("packs"));
    let holder = Ledger::new(ROOMY).holder("pack");
    let mut writer = BinsWriter::create(&options(store.clone(), key(), 1_000), 64, &holder).unwrap();
    let block = Block::new(0, 65_536, 64);
    let mut pushed = Ok(());
    for _ in 0..40 {
        pushed = pushed.and_then(|()| writer.push_block(&block.bins, &block.target, &block.held_out));
    }
    let problem = pushed.unwrap_err();
    assert!(
        matches!(problem, PackProblem::Full { written } if written > 60 << 20),
        "{problem}"
    );
    drop(writer);
    assert_eq!(fs::read_dir(store.path()).unwrap().count(), 0);
}

/// What is written there is memory, too, and the kernel would count it.
#[test]
fn a_pack_in_memory_has_to_fit_the_budget() {
    let scratch = Scratch::numbers(2);
    let Some(disk) = SmallDisk::mount(scratch.folder.path(), 200) else {
        return;
    };
    let store = PackStore::at(disk.0.join("packs"));
    let pack = options(store.clone(), key(), 1_000_000);
    let create = |budget: u64| BinsWriter::create(&pack, 35, &Ledger::new(budget).holder("pack"));
    let problem = create(40 << 20).err().unwrap();
    assert!(
        matches!(
            problem,
            PackProblem::InMemory {
                needed: 42_000_000,
                ..
            }
        ),
        "{problem}"
    );
    assert!(problem.to_string().contains("by --home"), "{problem}");
    assert_eq!(fs::read_dir(store.path()).unwrap().count(), 0);
    assert!(create(64 << 20).is_ok());
}

/// File systems in memory cannot read past the page cache: the ordinary way has to do.
#[test]
fn a_disk_that_cannot_read_uncached() {
    let scratch = Scratch::mixed(60_000);
    let Some(disk) = SmallDisk::mount(scratch.folder.path(), 128) else {
        return;
    };
    let ledger = Ledger::new(ROOMY);
    let expected = pass(&scratch.table(), &pass_options(2, None), &ledger).unwrap();
    let mut table = scratch.table();
    let store = PackStore::at(disk.0.join("packs"));
    table.use_pack(options(store, key(), 60_000), holdout(), &ledger);
    for ready in [false, true, true] {
        assert_eq!(table.pack.as_ref().unwrap().is_ready(), ready);
        assert!(pass(&table, &pass_options(2, None), &ledger).unwrap() == expected);
    }
    drop(table);
}

#[test]
fn a_store_that_is_no_folder() {
    let scratch = Scratch::mixed(500);
    fs::write(scratch.store().path(), "a file").unwrap();
    let ledger = Ledger::new(ROOMY);
    let table = scratch.packed(&ledger);
    let expected = pass(&scratch.table(), &pass_options(2, None), &ledger).unwrap();
    assert!(pass(&table, &pass_options(2, None), &ledger).unwrap() == expected);
    let problems = table.pack.as_ref().unwrap().take_problems();
    assert!(
        matches!(problems[..], [PackProblem::Unwritable { .. }]),
        "{problems:?}"
    );
}
