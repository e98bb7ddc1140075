//! Reading a condition; what was read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_data::Condition;

fuzz_target!(|text: &str| {
    if let Ok(condition) = Condition::new(text) {
        assert!(
            !condition.columns().is_empty(),
            "a condition asks something of a column"
        );
        let again = Condition::new(condition.text()).expect("what was written is read");
        assert_eq!(again, condition);
    }
});
