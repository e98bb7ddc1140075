//! What several targets do with their bytes.

use std::ops::ControlFlow;

use tidegate_data::chunk::{Read, Wanted};
use tidegate_data::source::Reading;
use tidegate_data::{BadRows, Position, Source, SourceOptions};
use tidegate_memory::Ledger;

/// Reads a file of this name and these bytes as any other, in a small budget: all columns as texts, then as numbers.
/// Whatever comes of it, every grant returns.
pub fn read_source(name: &str, bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let ledger = Ledger::new(16 << 20);
    if let Ok(source) = Source::open(&[path], &SourceOptions::default(), &[], &ledger) {
        for read in [Read::Text, Read::Number] {
            let wanted = source.columns().iter().map(|column| Wanted {
                name: column.name.clone(),
                read,
            });
            let reading = Reading {
                wanted: wanted.collect(),
                missing: Vec::new(),
                bad_rows: BadRows::Skip,
            };
            let _ = source.profile(&reading, &ledger);
            let _ = source.scan(&reading, Position::default(), &ledger, |chunk, _| {
                assert_eq!(chunk.columns.len(), reading.wanted.len());
                ControlFlow::Continue(())
            });
        }
    }
    assert_eq!(ledger.used(), 0);
}
