//! Walking the rows of any text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_data::csv::{Dialect, PADDING, RowSink, walk_rows};

struct Lines(u64);

impl RowSink for Lines {
    fn begin_row(&mut self, line: u64) {
        assert!(line > self.0, "lines go up");
        self.0 = line;
    }
    fn field(&mut self, _column: usize, _bytes: &[u8]) {}
    fn end_row(&mut self, fields: usize, _row: &[u8]) {
        assert!(fields > 0, "a row has a field");
    }
}

fuzz_target!(|text: &[u8]| {
    let padded = [text, &[0; PADDING]].concat();
    walk_rows(&padded, text.len(), 1, &Dialect::default(), &mut Lines(0));
});
