//! Rows of a table as samples: the same values whatever became of the pack, those held out apart.

use std::ops::ControlFlow;

use tidegate_data::arrays::{ArraySource, FeedOptions, Keep, Order, Part, RowSamples, RowShape, RowsOptions};
use tidegate_data::batch::{PlainRow, Width};
use tidegate_data::{Batch, Error, Holdout, PackKey, Table};
use tidegate_memory::Ledger;

use crate::damage::{DAMAGES, damage};
use crate::help::{ROOMY, Scratch, holdout, options, pass_options};

fn rows_options(scratch: &Scratch, holdout: Holdout) -> RowsOptions {
    let pack = |name: &str| options(scratch.store(), PackKey::of(&[name.as_bytes()]), 100);
    RowsOptions {
        training: pack("training"),
        held_out: pack("held out"),
        holdout,
        threads: 2,
    }
}

fn encode(scratch: &Scratch, table: &Table, ledger: &Ledger) -> RowSamples {
    let mut progress = |_, _| ControlFlow::Continue(());
    let samples = RowSamples::of(table, &rows_options(scratch, holdout()), ledger, &mut progress);
    samples.unwrap().unwrap()
}

/// Samples and their labels, one after another, in their order.
fn all(source: &ArraySource, ledger: &Ledger) -> Vec<(Vec<f32>, f32)> {
    let feed = FeedOptions {
        batch: 37,
        order: Order::InPlace,
        start: 0,
        part: Part::All,
        prefetch: 1 << 20,
        threads: 1,
    };
    let mut found = Vec::new();
    source
        .feed(&feed, ledger, |batch| {
            let mut values = vec![0.0; batch.n_samples() * source.sample_len()];
            batch.write_inputs(&mut values);
            let rows = values.chunks_exact(source.sample_len()).zip(batch.targets());
            found.extend(rows.map(|(row, label)| (row.to_vec(), *label)));
            Ok::<_, Error>(ControlFlow::Continue(()))
        })
        .unwrap();
    found
}

/// What a pass over the table gives, written as samples.
fn expected(table: &Table, shape: &RowShape, held_out: bool, ledger: &Ledger) -> Vec<(Vec<f32>, f32)> {
    let mut rows = Vec::new();
    table
        .pass(
            &pass_options(2, None),
            ledger,
            |_| (),
            |batch, (), _| {
                for row in batch.rows().filter(|row| row.held_out == held_out) {
                    let mut values = vec![0.0; shape.len()];
                    shape.write(&row, &mut values);
                    rows.push((values, row.target as f32));
                }
                Ok::<_, Error>(ControlFlow::Continue(()))
            },
        )
        .unwrap();
    rows
}

#[test]
fn samples_are_the_rows_of_a_pass_and_those_held_out_stand_apart() {
    let (scratch, ledger) = (Scratch::mixed(9_000), Ledger::new(ROOMY));
    let table = scratch.table();
    let mut samples = encode(&scratch, &table, &ledger);
    // A city and a note, categories both.
    assert_eq!(samples.shape.pairs, 2);
    let counts = samples.counts.take().unwrap();
    let held_out = samples.held_out.take().unwrap();
    assert_eq!(
        counts.rows - counts.held_out,
        samples.training.n_samples(),
        "{counts:?}"
    );
    assert!(all(&samples.training, &ledger) == expected(&table, &samples.shape, false, &ledger));
    assert!(all(&held_out, &ledger) == expected(&table, &samples.shape, true, &ledger));
    let labels = all(&samples.training, &ledger);
    let ones = labels.iter().filter(|(_, label)| *label == 1.0).count() as u64;
    assert_eq!(
        samples.training.class_counts(Part::All),
        [samples.training.n_samples() - ones, ones]
    );
    let mean = samples.training.target_means(Part::All)[0];
    assert!((mean - ones as f64 / labels.len() as f64).abs() < 1e-12);
    // In memory they are the same, and they are found again.
    let keep = Keep {
        memory: u64::MAX,
        ..Keep::default()
    };
    samples.training.keep(&keep, &ledger).unwrap();
    assert!(samples.training.is_in_memory());
    assert!(all(&samples.training, &ledger) == labels);
    let again = encode(&scratch, &table, &ledger);
    assert!(again.counts.is_none());
    assert_eq!(again.shape, samples.shape);
    assert_eq!(
        again.training.fingerprint().unwrap(),
        samples.training.fingerprint().unwrap()
    );
}

#[test]
fn texts_have_room_for_the_longest() {
    let mut text = String::from("a,note,y\n");
    for i in 0..2_000 {
        let words: Vec<String> = (0..3 + i % 9)
            .map(|word| format!("w{}", i * 31 * (word + 1) % 997))
            .collect();
        text += &format!("{},we have seen {} of {i},{}\n", i % 10, words.join(" "), i % 2);
    }
    let (scratch, ledger) = (Scratch::of(&text, 2_000), Ledger::new(ROOMY));
    let table = scratch.table();
    let samples = encode(&scratch, &table, &ledger);
    // Eleven words of their own and five others.
    assert_eq!(samples.shape.pairs, 16);
    assert!(all(&samples.training, &ledger) == expected(&table, &samples.shape, false, &ledger));
}

#[test]
fn a_pack_that_is_damaged_anywhere_is_built_again() {
    let (scratch, ledger) = (Scratch::mixed(3_000), Ledger::new(ROOMY));
    let table = scratch.table();
    let whole = all(&encode(&scratch, &table, &ledger).training, &ledger);
    let folder = scratch.store().folder(PackKey::of(&[b"training"]));
    for file in ["data.arrow", "index", "manifest.json"] {
        for how in DAMAGES {
            damage(&folder.join(file), how);
            let samples = encode(&scratch, &table, &ledger);
            assert!(all(&samples.training, &ledger) == whole, "{file} {how}");
        }
    }
}

#[test]
fn ended_on_the_way_it_leaves_nothing_and_nothing_held_out_needs_no_pack() {
    let (scratch, ledger) = (Scratch::numbers(5_000), Ledger::new(ROOMY));
    let table = scratch.table();
    let used = ledger.used();
    let mut stop = |_, _| ControlFlow::Break(());
    let ended = RowSamples::of(&table, &rows_options(&scratch, holdout()), &ledger, &mut stop);
    assert!(ended.unwrap().is_none());
    assert_eq!(ledger.used(), used);
    assert_eq!(scratch.store().list().unwrap(), []);
    let mut go_on = |_, _| ControlFlow::Continue(());
    let none = rows_options(&scratch, Holdout::new(0.0, 7));
    let samples = RowSamples::of(&table, &none, &ledger, &mut go_on)
        .unwrap()
        .unwrap();
    assert!(samples.held_out.is_none());
    assert_eq!((samples.training.n_samples(), samples.shape.pairs), (5_000, 0));
    assert_eq!(scratch.store().list().unwrap().len(), 1);
}

#[test]
fn of_more_sparse_values_than_there_is_room_for_the_largest_are_taken() {
    let row = PlainRow {
        dense: vec![1.5],
        sparse: vec![(9, 0.1), (3, -0.7), (4, 0.2), (8, 0.5)],
        ..PlainRow::default()
    };
    let width = Width { dense: 1, sparse: 10 };
    let holder = Ledger::new(1 << 20).holder("batches");
    let batch = Batch::from_rows(width, &[row], &holder).unwrap();
    let written = |pairs: usize| {
        let shape = RowShape {
            dense: 1,
            places: 10,
            pairs,
        };
        let mut into = vec![0.0; shape.len()];
        shape.write(&batch.row(0), &mut into);
        into
    };
    assert_eq!(
        written(5),
        [1.5, 9.0, 0.1, 3.0, -0.7, 4.0, 0.2, 8.0, 0.5, 0.0, 0.0]
    );
    assert_eq!(written(2), [1.5, 3.0, -0.7, 8.0, 0.5]);
}
