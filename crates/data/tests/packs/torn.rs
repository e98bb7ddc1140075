//! Packs that are cut off or changed: found out, dropped, built again; never a wrong value, never an abort.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tidegate_data::pack::Part;
use tidegate_data::{BinsPack, Error, PackProblem};
use tidegate_memory::Ledger;

use crate::help::{Block, ROOMY, Scratch, key, pass, pass_options, write_bins};

const FILES: [&str; 3] = ["data.arrow", "index", "manifest.json"];

/// After `damage`, passes give the same as before; the pack was dropped unless nothing of it was touched that counts,
/// and is there again.
fn check_survived(n_rows: usize, damage: impl Fn(&Path)) -> usize {
    let scratch = Scratch::mixed(n_rows);
    let ledger = Ledger::new(ROOMY);
    let expected = {
        let table = scratch.packed(&ledger);
        pass(&table, &pass_options(2, None), &ledger).unwrap()
    };
    damage(&scratch.pack());
    let table = scratch.packed(&ledger);
    let pack = table.pack.as_ref().unwrap();
    let mut problems = Vec::new();
    for _ in 0..3 {
        assert!(pass(&table, &pass_options(2, None), &ledger).unwrap() == expected);
        problems.extend(pack.take_problems());
    }
    assert!(pack.is_ready(), "{problems:?}");
    assert!(
        problems
            .iter()
            .all(|problem| matches!(problem, PackProblem::Damaged { .. }))
    );
    drop(table);
    let table = scratch.packed(&ledger);
    assert!(table.pack.as_ref().unwrap().is_ready());
    assert!(pass(&table, &pass_options(1, None), &ledger).unwrap() == expected);
    assert_eq!(table.pack.as_ref().unwrap().take_problems().len(), 0);
    problems.len()
}

#[test]
fn files_cut_off_anywhere() {
    for file in FILES {
        for share in [0.0, 0.001, 0.3, 0.5, 0.999] {
            let problems = check_survived(300, |pack| {
                let bytes = fs::read(pack.join(file)).unwrap();
                fs::write(pack.join(file), &bytes[..(bytes.len() as f64 * share) as usize]).unwrap();
            });
            assert_eq!(problems, 1, "{file} at {share}");
        }
        assert_eq!(
            check_survived(300, |pack| fs::remove_file(pack.join(file)).unwrap()),
            1
        );
    }
}

#[test]
fn files_of_bins_cut_off_at_every_length() {
    let scratch = Scratch::numbers(2);
    let holder = Ledger::new(ROOMY).holder("pack");
    write_bins(&scratch.options(), 3, &[40, 50], &holder);
    let whole = FILES.map(|file| fs::read(scratch.pack().join(file)).unwrap());
    for (cut, step) in [(0, 64), (1, 1), (2, 1)] {
        for length in (0..whole[cut].len()).step_by(step) {
            fs::create_dir_all(scratch.pack()).unwrap();
            for (file, bytes) in FILES.iter().zip(&whole) {
                let bytes = if *file == FILES[cut] {
                    &bytes[..length]
                } else {
                    bytes
                };
                fs::write(scratch.pack().join(file), bytes).unwrap();
            }
            let opened = BinsPack::open(&scratch.store(), key(), 3, &holder);
            assert!(
                matches!(opened, Err(PackProblem::Damaged { .. })),
                "{} at {length}",
                FILES[cut]
            );
            assert!(!scratch.pack().exists());
        }
    }
}

/// The file keeps its length and loses what a disk never got.
#[test]
fn zeros_instead_of_data_at_every_page() {
    let pages = 8;
    for page in 0..pages {
        check_survived(2_000, |pack| {
            let path = pack.join("data.arrow");
            let mut bytes = fs::read(&path).unwrap();
            let step = bytes.len() / pages;
            bytes[page * step..(page + 1) * step].fill(0);
            fs::write(path, bytes).unwrap();
        });
    }
}

/// Damage behind the first batches: what was read before it is not read again.
#[test]
fn a_pass_goes_on_from_the_source_where_the_pack_is_damaged() {
    for share in [0.1, 0.6, 0.95] {
        let problems = check_survived(90_000, |pack| {
            let path = pack.join("data.arrow");
            let mut bytes = fs::read(&path).unwrap();
            let at = (bytes.len() as f64 * share) as usize;
            bytes[at] ^= 0x10;
            fs::write(path, bytes).unwrap();
        });
        assert_eq!(problems, 1, "{share}");
    }
}

#[test]
fn a_pack_damaged_between_two_epochs() {
    let scratch = Scratch::mixed(90_000);
    let ledger = Ledger::new(ROOMY);
    let table = scratch.packed(&ledger);
    let expected = pass(&table, &pass_options(2, None), &ledger).unwrap();
    let data = fs::File::options()
        .write(true)
        .open(scratch.pack().join("data.arrow"))
        .unwrap();
    let bytes = data.metadata().unwrap().len();
    data.set_len(bytes / 2).unwrap();
    for problems in [1, 0, 0] {
        assert!(pass(&table, &pass_options(2, None), &ledger).unwrap() == expected);
        assert_eq!(table.pack.as_ref().unwrap().take_problems().len(), problems);
    }
    assert!(table.pack.as_ref().unwrap().is_ready());
}

/// Resuming at a place whose message cannot be read any more.
#[test]
fn a_damaged_place_to_resume_at() {
    let scratch = Scratch::mixed(90_000);
    let ledger = Ledger::new(ROOMY);
    let table = scratch.packed(&ledger);
    let expected = pass(&table, &pass_options(2, None), &ledger).unwrap();
    let path = scratch.pack().join("data.arrow");
    let mut bytes = fs::read(&path).unwrap();
    let start = bytes.len() / 8;
    bytes[..start].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let rest = pass(
        &table,
        &pass_options(2, Some(expected.batches[0].position)),
        &ledger,
    )
    .unwrap();
    assert!(rest.batches == expected.batches[1..]);
    assert_eq!(table.pack.as_ref().unwrap().take_problems().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_byte_changed(file in 0usize..3, at in 0.0f64..1.0, flip in 1u8..=255) {
        check_survived(200, |pack| {
            let path = pack.join(FILES[file]);
            let mut bytes = fs::read(&path).unwrap();
            let at = (bytes.len() as f64 * at) as usize;
            bytes[at] ^= flip;
            fs::write(path, bytes).unwrap();
        });
    }

    #[test]
    fn any_byte_of_bins_changed(file in 0usize..3, at in 0.0f64..1.0, flip in 1u8..=255) {
        let scratch = Scratch::numbers(2);
        let holder = Ledger::new(ROOMY).holder("pack");
        write_bins(&scratch.options(), 3, &[40, 50, 60], &holder);
        let path = scratch.pack().join(FILES[file]);
        let mut bytes = fs::read(&path).unwrap();
        let at = (bytes.len() as f64 * at) as usize;
        bytes[at] ^= flip;
        fs::write(path, bytes).unwrap();
        let pack = match BinsPack::open(&scratch.store(), key(), 3, &holder) {
            Ok(pack) => pack.unwrap(),
            Err(problem) => {
                prop_assert!(matches!(problem, PackProblem::Damaged { .. }), "{}", problem);
                prop_assert!(!scratch.pack().exists());
                return Ok(());
            }
        };
        let mut first = 0;
        for (block, n_rows) in [40, 50, 60].into_iter().enumerate() {
            let mut read = Block::empty(n_rows, 3);
            match read.read(&pack, block, Part::Whole) {
                Ok(()) => prop_assert_eq!(read, Block::new(first, n_rows, 3)),
                Err(Error::PackDamaged { batch, .. }) => {
                    prop_assert_eq!(batch, block as u64);
                    prop_assert!(!scratch.pack().exists());
                }
                Err(error) => panic!("{error}"),
            }
            first += n_rows;
        }
    }
}
