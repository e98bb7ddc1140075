//! Reading the kernel's log.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_watch::why::{KernelLog, kernel_events};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let log = KernelLog {
        lines: text.lines().map(Into::into).collect(),
        ..KernelLog::default()
    };
    for event in kernel_events(&log) {
        assert!(event.line < log.lines.len());
        event.cause();
    }
});
