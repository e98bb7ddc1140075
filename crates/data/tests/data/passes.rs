//! A pass: in order, from any place, stopped at will, in granted memory only.

use std::fmt::Write;
use std::ops::ControlFlow;

use tidegate_data::{Error, Holdout, PassOptions, TableOptions};
use tidegate_memory::Ledger;

use crate::help::{BLOCK, ROOMY, Scratch, counting, gzip, options, read, without, zstd};

#[test]
fn a_pass_can_start_at_any_place_between_blocks() {
    let text = counting(250_000);
    assert!(text.len() > 3 * BLOCK);
    for bytes in [
        text.clone().into_bytes(),
        gzip(text.as_bytes()),
        zstd(text.as_bytes()),
    ] {
        let scratch = Scratch::new(bytes);
        let table = scratch.open("y", &TableOptions::default()).unwrap();
        let whole = read(&table, &options(2, None), ROOMY).unwrap();
        assert_eq!(whole.rows.len(), 250_000);
        assert!(whole.places.len() >= 4, "{:?}", whole.places);
        for (place, rows_before) in &whole.places {
            for threads in [1, 3] {
                let rest = read(&table, &options(threads, Some(*place)), ROOMY).unwrap();
                assert!(rest.rows == whole.rows[*rows_before..], "{place:?}");
            }
        }
    }
}

#[test]
fn rows_come_as_they_stand_in_the_file_for_any_number_of_threads() {
    let scratch = Scratch::new(counting(150_000));
    let table = scratch.open("y", &TableOptions::default()).unwrap();
    for threads in [0, 1, 2, 5, 16] {
        let found = read(&table, &options(threads, None), ROOMY).unwrap();
        assert_eq!(found.counts.rows, 150_000);
        for (i, row) in found.rows.iter().enumerate() {
            assert_eq!((row.line, row.target), (i as u64 + 2, i as f64 + 0.5));
            assert_eq!(row.values[1], Some((i % 7) as f64));
        }
    }
}

#[test]
fn who_is_held_out_depends_on_the_line_alone() {
    let scratch = Scratch::new(counting(100_000));
    let other = Scratch::new(counting(100_000).replace(".5\n", ".25\r\n"));
    for (share, seed) in [(0.0, 1), (0.1, 1), (0.1, 2), (1.0, 3)] {
        let holdout = Holdout::new(share, seed);
        for scratch in [&scratch, &other] {
            let table = scratch.open("y", &TableOptions::default()).unwrap();
            for threads in [1, 4] {
                let options = PassOptions {
                    threads,
                    holdout,
                    start: None,
                };
                let found = read(&table, &options, ROOMY).unwrap();
                assert!(
                    found
                        .rows
                        .iter()
                        .all(|row| row.held_out == holdout.contains(row.line))
                );
                let held = found.rows.iter().filter(|row| row.held_out).count() as u64;
                assert_eq!(held, found.counts.held_out);
            }
        }
    }
}

#[test]
fn a_pass_that_is_stopped_or_fails_gives_everything_back() {
    let scratch = Scratch::new(counting(400_000));
    let table = scratch.open("y", &TableOptions::default()).unwrap();
    for threads in [1, 2, 8] {
        for fails in [false, true] {
            for after in [1, 3] {
                let ledger = Ledger::new(ROOMY);
                let mut blocks = 0;
                let ended = table.pass(
                    &options(threads, None),
                    &ledger,
                    |_| (),
                    |_, (), _| {
                        blocks += 1;
                        match blocks < after {
                            true => Ok(ControlFlow::Continue(())),
                            false if fails => Err(Error::Changed { path: scratch.path() }),
                            false => Ok(ControlFlow::Break(())),
                        }
                    },
                );
                assert_eq!((ended.is_err(), blocks), (fails, after));
                assert_eq!(ledger.used(), 0);
            }
        }
    }
}

#[test]
fn two_slots_are_enough() {
    let scratch = Scratch::new(counting(250_000));
    let table = scratch.open("y", &TableOptions::default()).unwrap();
    let roomy = read(&table, &options(4, None), ROOMY).unwrap();
    let needs = table.pass_needs(4);
    let tight = read(
        &table,
        &options(4, None),
        2 * needs.slot_bytes + needs.reader_bytes + 4096,
    )
    .unwrap();
    assert!(tight.rows == roomy.rows);
}

#[test]
fn memory_that_is_taken_away_takes_slots_and_leaves_the_rows_as_they_are() {
    let scratch = Scratch::new(counting(400_000));
    let table = scratch.open("y", &TableOptions::default()).unwrap();
    let whole = read(&table, &options(1, None), ROOMY).unwrap();
    for threads in [1, 2, 4] {
        let needs = table.pass_needs(threads);
        // By half of what is used, again and again, until there is nothing left to let go.
        let ledger = Ledger::new(ROOMY);
        let (mut rows, mut used, mut spare) = (0, Vec::new(), Vec::new());
        let mut seen = 0;
        table
            .pass(
                &options(threads, None),
                &ledger,
                |_| (),
                |batch, (), position| {
                    for (row, expected) in batch.rows().zip(&whole.rows[rows..]) {
                        assert_eq!((row.line, row.target), (expected.line, expected.target));
                    }
                    rows += batch.n_rows();
                    assert!(whole.places.contains(&(position, rows)));
                    used.push(ledger.used());
                    spare.push(ledger.spare_bytes());
                    seen += 1;
                    if seen % 5 == 0 {
                        ledger.lower(ledger.used() / 2);
                    }
                    Ok::<_, Error>(ControlFlow::Continue(()))
                },
            )
            .unwrap();
        assert_eq!(rows, 400_000);
        // Until all is read: on a busy machine that may be so by the second batch.
        let mut both = spare.iter().zip(&used);
        assert!(
            both.any(|(&spare, &used)| 0 < spare && spare < used),
            "{spare:?} of {used:?}"
        );
        assert_eq!(spare.last(), Some(&0), "one slot stays");
        let two = 2 * needs.slot_bytes + needs.reader_bytes;
        assert!(used.last() < Some(&two), "{two} of {used:?}");
        assert_eq!((ledger.used(), ledger.spare_bytes()), (0, 0));
    }
}

/// Rows of 3 MB between small ones: blocks grow for them, and other slots make room.
fn with_large_rows() -> String {
    let mut text = String::from("a,t,y\n");
    for i in 0..60_000 {
        let long = if i % 20_000 == 10_000 { 3 * BLOCK } else { 3 };
        writeln!(text, "{},\"{}\n\",{i}.5", i % 10, ",".repeat(long)).unwrap();
    }
    text
}

#[test]
fn rows_larger_than_a_block() {
    let scratch = Scratch::new(with_large_rows());
    let table = scratch.open("y", &without(&["t"])).unwrap();
    for budget in [18 << 20, ROOMY] {
        for threads in [1, 4] {
            let found = read(&table, &options(threads, None), budget).unwrap();
            assert_eq!(found.rows.len(), 60_000);
            for (i, row) in found.rows.iter().enumerate() {
                assert_eq!((row.line, row.target), (2 * i as u64 + 2, i as f64 + 0.5));
            }
        }
    }
}

/// The budget runs out behind the large row, while its block is being encoded.
#[test]
fn rows_that_do_not_fit_are_never_left_out_in_silence() {
    let scratch = Scratch::new(with_large_rows());
    let table = scratch.open("y", &without(&["t"])).unwrap();
    for budget in [3 << 20, 4 << 20, 5 << 20, 6 << 20] {
        match read(&table, &options(2, None), budget) {
            Err(Error::RowTooLarge { line, .. }) => assert_eq!(line, 20_002, "{budget}"),
            Err(Error::Memory { .. }) => {}
            Ok(read) if read.rows.len() == 60_000 => {}
            other => panic!("{budget}: {:?}", other.map(|read| read.counts)),
        }
    }
}

#[test]
fn a_file_that_changed_is_refused() {
    let scratch = Scratch::new(counting(100));
    let table = scratch.open("y", &TableOptions::default()).unwrap();
    std::fs::write(scratch.path(), counting(101)).unwrap();
    let found = read(&table, &options(1, None), ROOMY);
    assert!(matches!(found, Err(Error::Changed { .. })), "{found:?}");
}

/// Rows over one block and over two: what is carried over can be larger than a buffer that is used again.
#[test]
fn rows_of_several_blocks_are_carried_over() {
    for bytes in [BLOCK * 3 / 2, BLOCK * 21 / 10, BLOCK * 5 / 2] {
        let mut text = String::from("a,y,t\n");
        for row in 0..12 {
            text.push_str(&format!("{row},{},{}\n", row % 2, "x".repeat(bytes)));
        }
        let scratch = Scratch::new(text);
        let table = scratch.open("y", &without(&["t"])).unwrap();
        for threads in [1, 4] {
            let found = read(&table, &options(threads, None), ROOMY).unwrap();
            assert_eq!(found.counts.rows, 12, "{bytes} bytes a row, {threads} threads");
        }
    }
}
