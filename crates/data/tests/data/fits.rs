//! Encoders are fitted on what a table holds: not on threads, nor on the format that it is written in.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use tidegate_data::encode::{Encoder, Encoders};
use tidegate_data::{
    EncodingPlan, Error, FeatureOptions, FitOptions, Holdout, PassOptions, Purpose, Source, SourceOptions,
    Table, TableOptions,
};
use tidegate_memory::Ledger;

use crate::help::{ROOMY, gzip, zstd};

struct Row {
    number: Option<f64>,
    whole: i64,
    few: String,
    many: String,
    truth: bool,
    text: String,
    y: f64,
}

fn mixed(i: usize, k: usize) -> usize {
    let x = (i * 31 + k + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x >> 33) % 1_000_003
}

fn row(i: usize) -> Row {
    let words = ["tide", "gate", "sea", "wall", "lock", "weir", "salt", "mud"];
    let word = |k: usize| words[mixed(i, 10 + k) % words.len()];
    let number = mixed(i, 1) as f64 / 64.0;
    let few = words[mixed(i, 2) % 5].to_string();
    let signal = number / 4000.0 + few.len() as f64;
    Row {
        number: (!mixed(i, 3).is_multiple_of(9)).then_some(number),
        whole: (mixed(i, 4) % 1000) as i64 - 500,
        few,
        many: format!("c{}", mixed(i, 5) % 300),
        truth: mixed(i, 6).is_multiple_of(3),
        text: format!("{} {} {} {} {i}", word(1), word(2), word(3), word(4)),
        y: signal + (mixed(i, 7) % 100) as f64 / 100.0,
    }
}

/// The same table in every format that holds it.
fn copies(folder: &Path, n_rows: usize) -> Vec<PathBuf> {
    let rows: Vec<Row> = (0..n_rows).map(row).collect();
    let (mut csv, mut json) = (
        String::from("number,whole,few,many,truth,text,y\n"),
        String::new(),
    );
    for row in &rows {
        let number = row.number.map(|number| number.to_string());
        let written = number.clone().unwrap_or_default();
        let Row {
            whole,
            few,
            many,
            truth,
            text,
            y,
            ..
        } = row;
        writeln!(csv, "{written},{whole},{few},{many},{truth},{text},{y}").unwrap();
        let number = number.unwrap_or("null".into());
        writeln!(
            json,
            "{{\"number\": {number}, \"whole\": {whole}, \"few\": \"{few}\", \"many\": \"{many}\", \
             \"truth\": {truth}, \"text\": \"{text}\", \"y\": {y}}}"
        )
        .unwrap();
    }
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.join(name), bytes).unwrap();
        folder.join(name)
    };
    let paths = vec![
        write("t.csv", csv.as_bytes()),
        write("t.csv.gz", &gzip(csv.as_bytes())),
        write("t.csv.zst", &zstd(csv.as_bytes())),
        write("t.jsonl", json.as_bytes()),
        write("t.jsonl.gz", &gzip(json.as_bytes())),
        folder.join("t.parquet"),
    ];
    write_parquet(&paths[5], &rows);
    paths
}

fn write_parquet(path: &Path, rows: &[Row]) {
    let texts = |text: fn(&Row) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(text)))
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "number",
            Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.number))),
        ),
        (
            "whole",
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.whole))),
        ),
        ("few", texts(|row| &row.few)),
        ("many", texts(|row| &row.many)),
        (
            "truth",
            Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.truth)))),
        ),
        ("text", texts(|row| &row.text)),
        (
            "y",
            Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.y))),
        ),
    ];
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn fit(path: &Path, purpose: Purpose, threads: usize, holdout: f64) -> (Table, EncodingPlan) {
    let ledger = Ledger::new(ROOMY);
    let source = Source::open(&[path.into()], &SourceOptions::default(), &["y"], &ledger).unwrap();
    let mut table = Table::open(source, "y", &TableOptions::default(), &ledger).unwrap();
    let options = FitOptions {
        threads,
        holdout: Holdout::new(holdout, 3),
        seed: 3,
        bytes: 8 << 20,
    };
    // Some sources keep what they know of their file.
    let held = ledger.used();
    let plan = table.fit_encoders(purpose, &options, &ledger).unwrap();
    assert_eq!(
        ledger.used() - held,
        table.encoder_bytes(),
        "only the encoders are kept"
    );
    (table, plan)
}

/// Every value of every row as bits, places of sparse ones included.
fn values(table: &Table, threads: usize, holdout: f64) -> Vec<Vec<u32>> {
    let (ledger, mut rows) = (Ledger::new(ROOMY), Vec::new());
    let options = PassOptions {
        threads,
        holdout: Holdout::new(holdout, 3),
        start: None,
    };
    let pass = table.pass(
        &options,
        &ledger,
        |_| (),
        |batch, (), _| {
            for row in batch.rows() {
                let dense = row.dense.iter().chain(row.values).map(|value| value.to_bits());
                let target = row.target.to_bits();
                let target = [target as u32, (target >> 32) as u32, u32::from(row.held_out)];
                rows.push(dense.chain(row.places.iter().copied()).chain(target).collect());
            }
            Ok::<_, Error>(ControlFlow::Continue(()))
        },
    );
    pass.unwrap();
    assert_eq!(ledger.used(), 0, "a pass gives everything back");
    rows
}

fn kinds(encoders: &Encoders) -> Vec<(&str, &str)> {
    let kind = |encoder: &Encoder| encoder.kind();
    let features = encoders.features.iter();
    features
        .map(|feature| (feature.name.as_str(), kind(&feature.encoder)))
        .collect()
}

#[test]
fn threads_change_no_bit_of_a_fit() {
    let folder = tempfile::tempdir().unwrap();
    for path in copies(folder.path(), 40_000) {
        for purpose in [Purpose::Linear, Purpose::Trees] {
            let (table, plan) = fit(&path, purpose, 1, 0.2);
            let rows = values(&table, 1, 0.2);
            for threads in [2, 3] {
                let (other, other_plan) = fit(&path, purpose, threads, 0.2);
                assert_eq!(
                    other.encoders,
                    table.encoders,
                    "{}, {threads} threads",
                    path.display()
                );
                assert_eq!(other_plan, plan, "{}, {threads} threads", path.display());
                assert!(
                    values(&other, threads, 0.2) == rows,
                    "{}, {threads} threads",
                    path.display()
                );
            }
        }
    }
}

/// Compressed, a file has the same lines, so the same rows are held out and in the same folds.
#[test]
fn compression_changes_no_bit_of_a_fit() {
    let folder = tempfile::tempdir().unwrap();
    let paths = copies(folder.path(), 40_000);
    for purpose in [Purpose::Linear, Purpose::Trees] {
        for same in [&paths[..3], &paths[3..5]] {
            let (table, plan) = fit(&same[0], purpose, 2, 0.2);
            let rows = values(&table, 2, 0.2);
            for path in &same[1..] {
                let (other, other_plan) = fit(path, purpose, 2, 0.2);
                assert_eq!(other.encoders, table.encoders, "{}", path.display());
                assert_eq!(other_plan.cuts, plan.cuts, "{}", path.display());
                assert!(values(&other, 2, 0.2) == rows, "{}", path.display());
            }
        }
    }
}

/// A table of one piece in every format: with no rows held out, all of them are added up in the same order. What is
/// encoded out of fold is left aside, for folds follow the lines of a file, and a header is one.
#[test]
fn formats_change_no_bit_of_a_fit() {
    let folder = tempfile::tempdir().unwrap();
    let paths = copies(folder.path(), 1_200);
    for purpose in [Purpose::Linear, Purpose::Trees] {
        let (table, plan) = fit(&paths[0], purpose, 2, 0.0);
        let expected: &[(&str, &str)] = match purpose {
            Purpose::Linear => &[
                ("number", "number"),
                ("whole", "number"),
                ("few", "dummy"),
                ("many", "hash"),
                ("truth", "number"),
                ("text", "tokens"),
            ],
            Purpose::Trees => &[
                ("number", "as it is"),
                ("whole", "as it is"),
                ("few", "ordinal"),
                ("many", "impact"),
                ("truth", "as it is"),
            ],
        };
        assert_eq!(kinds(&table.encoders), expected);
        let predicted = |path: &Path| {
            let ledger = Ledger::new(ROOMY);
            let source = Source::open(&[path.into()], &SourceOptions::default(), &["y"], &ledger).unwrap();
            let table = Table::open_for(source, &table.encoders, &TableOptions::default()).unwrap();
            values(&table, 2, 0.0)
        };
        let rows = predicted(&paths[0]);
        for path in &paths[1..] {
            let (other, other_plan) = fit(path, purpose, 2, 0.0);
            assert_eq!(other.encoders, table.encoders, "{}, {purpose:?}", path.display());
            assert_eq!(other_plan.cuts, plan.cuts, "{}, {purpose:?}", path.display());
            assert!(predicted(path) == rows, "{}, {purpose:?}", path.display());
        }
    }
}

/// Held out rows take no part in a fit: whatever their targets are, the encoders are the same.
#[test]
fn encoders_do_not_know_the_targets_of_held_out_rows() {
    let folder = tempfile::tempdir().unwrap();
    let holdout = Holdout::new(0.3, 3);
    let text = |spoiled: bool| {
        let mut text = String::from("many,few,y\n");
        for i in 0..5_000 {
            let row = row(i);
            let y = match spoiled && holdout.contains(i as u64 + 2) {
                true => 1e6 - row.y,
                false => row.y,
            };
            writeln!(text, "{},{},{y}", row.many, row.few).unwrap();
        }
        text
    };
    let [honest, spoiled] = [false, true].map(|spoiled| {
        let path = folder.path().join(format!("{spoiled}.csv"));
        std::fs::write(&path, text(spoiled)).unwrap();
        path
    });
    for purpose in [Purpose::Linear, Purpose::Trees] {
        assert_eq!(
            fit(&honest, purpose, 2, 0.3).0.encoders,
            fit(&spoiled, purpose, 2, 0.3).0.encoders
        );
    }
}

/// Step by step the widest hashed column gets half of its places, and what was said about one stands.
#[test]
fn hashed_columns_are_narrowed_down_to_a_floor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let mut text = String::from("wide,narrow,said,y\n");
    for i in 0..6_000 {
        let (wide, narrow) = (mixed(i, 1) % 3_000, mixed(i, 2) % 400);
        writeln!(text, "w{wide},n{narrow},s{wide},{}", i % 2).unwrap();
    }
    std::fs::write(&path, text).unwrap();
    let ledger = Ledger::new(ROOMY);
    let source = Source::open(&[path], &SourceOptions::default(), &["y"], &ledger).unwrap();
    let bits = FeatureOptions {
        bits: Some(14),
        ..FeatureOptions::default()
    };
    let options = TableOptions {
        features: [("said".to_string(), bits)].into(),
        ..TableOptions::default()
    };
    let mut table = Table::open(source, "y", &options, &ledger).unwrap();
    let options = FitOptions {
        threads: 1,
        holdout: Holdout::new(0.0, 3),
        seed: 3,
        bytes: 8 << 20,
    };
    let mut plan = table.fit_encoders(Purpose::Linear, &options, &ledger).unwrap();
    let mut steps = Vec::new();
    let mut before = table.encoders.width();
    while let Some(narrowed) = table.narrow(&mut plan) {
        let now = table.encoders.width();
        assert_eq!(now.sparse, before.sparse - (1 << narrowed.bits));
        assert_eq!((plan.width, now.dense), (now, before.dense));
        before = now;
        steps.push((narrowed.column, narrowed.bits));
    }
    let expected = [
        ("wide", 12),
        ("wide", 11),
        ("wide", 10),
        ("wide", 9),
        ("narrow", 9),
        ("wide", 8),
        ("narrow", 8),
    ];
    let expected: Vec<(String, u8)> = expected
        .iter()
        .map(|(name, bits)| (name.to_string(), *bits))
        .collect();
    assert_eq!(steps, expected);
    let line = |name: &str| plan.columns.iter().find(|line| line.name == name).unwrap();
    assert_eq!(line("wide").width.sparse, 256);
    assert!(
        line("wide")
            .why
            .ends_with("hashed into 2^8 places, fewer than usual to fit the memory")
    );
    assert_eq!(line("said").width.sparse, 1 << 14);
}
