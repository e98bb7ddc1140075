//! Three million flights.

use std::ops::ControlFlow;
use std::path::Path;

use tidegate_data::Position;
use tidegate_data::chunk::Read;
use tidegate_data::source::Kind;
use tidegate_memory::Ledger;

use crate::files::{open, reading};

#[test]
fn three_million_flights_under_a_small_budget() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/flights_3m/flights-3m.parquet"
    );
    let path = Path::new(path);
    if !path.exists() {
        eprintln!("skipped: {} is not here", path.display());
        return;
    }
    let ledger = Ledger::new(8 << 20);
    let source = open(path, &ledger).unwrap();
    assert_eq!(source.n_rows(), Some(3_000_000));
    let kinds: Vec<Kind> = source.columns().iter().map(|column| column.kind).collect();
    assert_eq!(
        kinds,
        [Kind::Time, Kind::Number, Kind::Number, Kind::Text, Kind::Text]
    );
    let profile = source.profile(&reading(&[]), &ledger).unwrap();
    assert!(!profile.complete && profile.columns[3].n_distinct().is_some_and(|n| n > 100));
    let wanted = reading(&[
        ("date", Read::Number),
        ("delay", Read::Number),
        ("origin", Read::Text),
    ]);
    let (mut rows, mut delay, mut from_atlanta) = (0, 0.0, 0);
    source
        .scan(&wanted, Position::default(), &ledger, |chunk, _| {
            rows += chunk.n_rows();
            delay += chunk.numbers(1).iter().sum::<f64>();
            from_atlanta += (0..chunk.n_rows())
                .filter(|row| chunk.text(2, *row) == Some(b"ATL"))
                .count();
            ControlFlow::Continue(())
        })
        .unwrap();
    // pyarrow: t = read_table(path); sum(t['delay']), sum(equal(t['origin'], 'ATL'))
    assert_eq!((rows, delay, from_atlanta), (3_000_000, DELAY, ATLANTA));
    assert!(ledger.peak() <= 8 << 20);
}

const DELAY: f64 = 20_003_603.0;
const ATLANTA: usize = 124_711;
