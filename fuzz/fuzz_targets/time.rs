//! Reading a date or time in every order of its parts, and finding the order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_data::encode::TimeFormat;

fuzz_target!(|text: &[u8]| {
    for format in [
        TimeFormat::YearFirst,
        TimeFormat::DayFirst,
        TimeFormat::MonthFirst,
    ] {
        if let Some(seconds) = format.parse(text) {
            assert!(seconds.is_finite(), "{seconds}");
        }
    }
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    if let Some(guess) = TimeFormat::detect(lines.iter().copied()) {
        let read = lines.iter().filter(|line| guess.format.parse(line).is_some());
        assert_eq!(read.count(), guess.read);
    }
});
