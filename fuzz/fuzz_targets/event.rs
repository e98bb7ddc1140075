//! Parsing a line of the worker's pipe; what was parsed can be written and parsed again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_watch::Event;

fuzz_target!(|line: &[u8]| {
    if let Ok(event) = Event::parse(line)
        && let Some(written) = event.to_line()
    {
        Event::parse(&written).expect("what was written is read");
    }
});
