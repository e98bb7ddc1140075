//! Opening any file as a table, fitting its encoders and reading it in a small budget.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use tidegate_data::{
    BadRows, Error, FitOptions, Holdout, PassOptions, Purpose, Source, SourceOptions, Table, TableOptions,
};
use tidegate_memory::Ledger;

fuzz_target!(|bytes: &[u8]| {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let ledger = Ledger::new(16 << 20);
    for purpose in [Purpose::Linear, Purpose::Trees] {
        let _ = read(file.path().into(), purpose, &ledger);
        assert_eq!(ledger.used(), 0);
    }
});

fn read(path: std::path::PathBuf, purpose: Purpose, ledger: &Ledger) -> Result<(), Error> {
    let options = TableOptions {
        bad_rows: BadRows::Skip,
        ..TableOptions::default()
    };
    let source = Source::open(&[path], &SourceOptions::default(), &["y"], ledger)?;
    let mut table = Table::open(source, "y", &options, ledger)?;
    let holdout = Holdout::new(0.1, 0);
    let fit = FitOptions {
        threads: 1,
        holdout,
        seed: 0,
        bytes: 1 << 20,
    };
    table.fit_encoders(purpose, &fit, ledger)?;
    let pass = PassOptions {
        threads: 1,
        holdout,
        start: None,
    };
    table.pass(
        &pass,
        ledger,
        |_| (),
        |_, (), _| Ok::<_, Error>(ControlFlow::Continue(())),
    )?;
    Ok(())
}
