//! Exit statuses in the words of whoever tells them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_watch::why::explain_exit;

fuzz_target!(|text: &str| {
    if let Some((_, Some(said))) = explain_exit(text) {
        assert_eq!(said.number, 0);
    }
});
