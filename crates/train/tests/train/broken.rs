//! Values that are not what their column holds count as missing, and the user hears of them once.

use std::sync::atomic::AtomicBool;

use tidegate_memory::Ledger;
use tidegate_train::linear::{self, Outcome};
use tidegate_train::{BrokenValues, Event};

use crate::help::{ROOMY, Scratch, open, plan, usual};
use crate::tables::{self, Kind};

#[test]
fn broken_values_are_counted_and_told() {
    let mut text = tables::plain_rows(Kind::Number, 50_000);
    text.push_str("1,2,three,4,5,6\n1,2,four,4,5,6\n");
    let scratch = Scratch::new("table.csv", text);
    let table = open(&scratch.path(), "y");
    let (ledger, stop) = (Ledger::new(ROOMY), AtomicBool::new(false));
    let mut warnings = Vec::new();
    let mut sink = |event: Event| {
        if let Event::Warning { text, error: None } = event {
            warnings.push(text);
        }
    };
    let outcome = linear::train(
        &table,
        &usual(),
        &plan(&table, 2),
        &ledger,
        None,
        &stop,
        &mut sink,
    )
    .unwrap();
    let Outcome::Done(done) = outcome else {
        panic!("{outcome:?}")
    };
    let broken = BrokenValues {
        count: 2,
        first: "three".into(),
        line: 50_002,
    };
    assert_eq!(done.1.rows.broken.get("x2"), Some(&broken));
    assert_eq!(
        warnings,
        [
            r#"2 values of "x2" are not what the column holds and count as missing; the first is "three" on line 50002"#
        ]
    );
}
