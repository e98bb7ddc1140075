//! Packs are plain Arrow files: other readers find the same values.

use std::fs::File;
use std::process::Command;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_ipc::reader::FileReader;
use tidegate_memory::Ledger;

use crate::help::{Block, ROOMY, Scratch, pass, pass_options, write_bins};

#[test]
fn the_arrow_crate_reads_rows() {
    let scratch = Scratch::mixed(60_000);
    let ledger = Ledger::new(ROOMY);
    let expected = pass(&scratch.packed(&ledger), &pass_options(2, None), &ledger).unwrap();
    let file = File::open(scratch.pack().join("data.arrow")).unwrap();
    let reader = FileReader::try_new(file, None).unwrap();
    assert_eq!(reader.num_batches(), expected.batches.len());
    for (batch, expected) in reader.zip(&expected.batches) {
        let batch = batch.unwrap();
        let mut rows: Vec<u64> = Vec::new();
        let column = |name: &str| batch.column_by_name(name).unwrap();
        let line = column("line").as_primitive::<UInt64Type>();
        let target = column("target").as_primitive::<Float64Type>();
        let held_out = column("held_out").as_primitive::<UInt8Type>();
        for i in 0..batch.num_rows() {
            rows.extend([line.value(i), target.value(i).to_bits(), held_out.value(i).into()]);
            let dense = column("dense").as_fixed_size_list().value(i);
            let (places, values) = (
                column("places").as_list::<i32>().value(i),
                column("values").as_list::<i32>().value(i),
            );
            let floats = |values: &dyn arrow_array::Array| -> Vec<u64> {
                values
                    .as_primitive::<Float32Type>()
                    .values()
                    .iter()
                    .map(|value| value.to_bits().into())
                    .collect()
            };
            rows.extend(floats(&dense));
            rows.extend(
                places
                    .as_primitive::<UInt32Type>()
                    .values()
                    .iter()
                    .map(|place| u64::from(*place)),
            );
            rows.extend(floats(&values));
        }
        assert!(rows == expected.rows);
    }
}

#[test]
fn the_arrow_crate_reads_bins() {
    let scratch = Scratch::numbers(2);
    write_bins(
        &scratch.options(),
        3,
        &[100, 0, 65_536],
        &Ledger::new(ROOMY).holder("pack"),
    );
    let file = File::open(scratch.pack().join("data.arrow")).unwrap();
    let mut first = 0;
    for (batch, n_rows) in FileReader::try_new(file, None).unwrap().zip([100, 0, 65_536]) {
        let batch = batch.unwrap();
        let block = Block::new(first, n_rows, 3);
        let bins = batch
            .column(0)
            .as_fixed_size_list()
            .values()
            .as_primitive::<UInt8Type>();
        assert_eq!(bins.values()[..], block.bins);
        assert_eq!(
            batch.column(1).as_primitive::<Float32Type>().values()[..],
            block.target
        );
        assert_eq!(
            batch.column(2).as_primitive::<UInt8Type>().values()[..],
            block.held_out
        );
        first += n_rows;
    }
}

/// Reads every batch, checks it in full, and prints rows, lines, places and targets in sum.
const SCRIPT: &str = "
import sys, pyarrow as pa, pyarrow.ipc
for opened in (pa.ipc.open_file(sys.argv[1]), pa.ipc.open_stream(open(sys.argv[1], 'rb').read()[8:])):
    table = opened.read_all()
    table.validate(full=True)
    total = lambda name: sum(sum(v) if isinstance(v, list) else v for v in table[name].to_pylist())
    print(table.num_rows, total('line'), total('places'), total('target'), total('held_out'))
";

#[test]
fn pyarrow_reads_rows() {
    let Some(python) = ["python3", "python"].into_iter().find(|python| {
        let found = Command::new(python).args(["-c", "import pyarrow"]).output();
        found.is_ok_and(|output| output.status.success())
    }) else {
        eprintln!("skipped: there is no Python with pyarrow here");
        return;
    };
    let scratch = Scratch::mixed(5_000);
    let ledger = Ledger::new(ROOMY);
    let table = scratch.packed(&ledger);
    pass(&table, &pass_options(2, None), &ledger).unwrap();
    let mut sums = (0, 0, 0, 0.0, 0);
    let summed = table.pass(
        &pass_options(2, None),
        &ledger,
        |_| (),
        |batch, (), _| {
            for row in batch.rows() {
                sums.0 += 1;
                sums.1 += row.line;
                sums.2 += row.places.iter().map(|place| u64::from(*place)).sum::<u64>();
                sums.3 += row.target;
                sums.4 += u64::from(row.held_out);
            }
            Ok::<_, tidegate_data::Error>(std::ops::ControlFlow::Continue(()))
        },
    );
    assert_eq!(summed.unwrap().rows, sums.0);
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(scratch.pack().join("data.arrow"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = format!("{} {} {} {:.1} {}\n", sums.0, sums.1, sums.2, sums.3, sums.4);
    assert_eq!(
        said,
        expected.repeat(2),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
