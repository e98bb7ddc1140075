//! Reading a number: what the standard library reads, Tidegate reads as the same bits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_data::{Number, parse_number};

fuzz_target!(|field: &[u8]| {
    let found = parse_number(field);
    if let Some(value) = std::str::from_utf8(field)
        .ok()
        .and_then(|text| text.parse::<f64>().ok())
        && value.is_finite()
    {
        assert!(
            matches!(found, Number::Value(v) if v.to_bits() == value.to_bits()),
            "{found:?}"
        );
    }
});
