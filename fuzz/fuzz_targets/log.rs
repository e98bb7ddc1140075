//! What the log of any program says, and the verdict that is made of it. A line of output begins with `>`, the others are errors.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_runs::Stream;
use tidegate_watch::Exit;
use tidegate_watch::why::{Case, LogLine, judge, said, tracebacks};

fuzz_target!(|input: (u8, &[u8])| {
    let (code, bytes) = input;
    let text = String::from_utf8_lossy(bytes);
    let line = |(number, line): (u64, &str)| {
        let (stream, text) = match line.strip_prefix('>') {
            Some(text) => (Stream::Out, text),
            None => (Stream::Err, line),
        };
        LogLine {
            number,
            time_ms: None,
            stream,
            text: text.into(),
        }
    };
    let mut case = Case {
        log: (1..).zip(text.lines()).map(line).collect(),
        ..Case::default()
    };
    for said in said(&case.log) {
        assert!(case.log.iter().any(|line| line.number == said.number));
    }
    for traceback in tracebacks(&case.log) {
        assert!(traceback.lines.contains(&traceback.number));
    }
    case.facts.exit = Some(Exit::Code(code.into()));
    case.facts.streams_apart = true;
    judge(&case);
});
