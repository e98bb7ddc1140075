//! Opening any file as a table and reading it in a small budget.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use tidegate_data::{BadRows, Error, Holdout, PassOptions, Table, TableOptions};
use tidegate_memory::Ledger;

fuzz_target!(|bytes: &[u8]| {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let ledger = Ledger::new(16 << 20);
    let options = TableOptions {
        bad_rows: BadRows::Skip,
        ..TableOptions::default()
    };
    if let Ok(table) = Table::open(file.path(), "y", &options, &ledger) {
        let pass = PassOptions {
            threads: 1,
            holdout: Holdout::new(0.1, 0),
            start: None,
        };
        let _ = table.pass(
            &pass,
            &ledger,
            |_| (),
            |_, (), _| Ok::<_, Error>(ControlFlow::Continue(())),
        );
    }
    assert_eq!(ledger.used(), 0);
});
