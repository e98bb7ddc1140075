//! Nonsense never panics, and never takes long.

use proptest::prelude::*;
use tidegate_runs::Stream;

use super::super::{explain_exit, kernel_events, last_of, said, tracebacks};
use crate::why::{KernelLog, LogLine};

/// Pieces that the parsers look for, to be put together in the wrong way.
const PIECES: &[&str] = &[
    "Traceback (most recent call last):",
    "Original Traceback (most recent call last):",
    "  + Exception Group Traceback (most recent call last):",
    "MemoryError          Traceback (most recent call last)",
    "╭── Traceback (most recent call last) ──╮",
    "╰────╯",
    "  File \"a.py\", line 3, in f",
    "  File \"a.py\", line 99999999999999, in f",
    "  File \"a.py\", line 3",
    "    x = 1",
    "ValueError: x",
    "RuntimeError: Traceback (most recent call last):",
    "RuntimeError: Caught KeyError in DataLoader worker process 0.",
    "-- Process 0 terminated with the following error:",
    "multiprocessing.pool.RemoteTraceback: ",
    "\"\"\"",
    "  | ExceptionGroup: x (2 sub-exceptions)",
    "  +-+---------------- 1 ----------------",
    "    | KeyError: 1",
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
    "Fatal Python error: Segmentation fault",
    "Current thread 0x7f (most recent call first):",
    "thread 'main' panicked at src/main.rs:1:2:",
    "thread 'x' panicked at 'y', z:1:2",
    "stack backtrace:",
    "   0: f",
    "             at a.rs:1:2",
    "terminate called after throwing an instance of 'x'",
    "  what():  y",
    "==1==ERROR: AddressSanitizer: SEGV on x",
    "    #0 0x7f in f a.c:1:2",
    "Exception in thread \"main\" a.b: c",
    "\tat a.b(c.java:1)",
    "Caused by: a.b: c",
    "CUDA out of memory. Tried to allocate 2.00 GiB",
    " has a total capacity of  of which  is free",
    "Unable to allocate 9e99 GiB for an array with shape (",
    "OOM when allocating tensor with shape[99999999999,99999999999] and type float on /job:x device:GPU:0",
    "loss: nan",
    "loss 😀 is inf",
    "Killed",
    ": line 1: 99999999999999 Killed  x",
    "\r",
    "\u{1b}[31m",
    "[rank0]: ",
    "  | ",
    "😀",
    "",
];

const KERNEL: &[&str] = &[
    "6,1,2,-;",
    "[  1.5] ",
    "<6>[",
    "]",
    "Nov 16 05:00:00 h kernel: ",
    "oom-kill:constraint=CONSTRAINT_MEMCG,",
    ",oom_memcg=/a,task_memcg=/b,task=x,pid=7,uid=0",
    "Memory cgroup out of memory: Killed process 7 (x",
    ") total-vm:1kB, anon-rss:",
    "99999999999999999999kB",
    "Out of memory: Kill process 7 (x) score 1 or sacrifice child",
    "x[7]: segfault at ",
    "zz ip 0 sp ",
    " in l[",
    "EDAC MC0: ",
    "1 CE x",
    "NVRM: Xid (",
    "): 79, pid=",
    "I/O error, dev ",
    "INFO: task x:7 blocked for more than ",
    "systemd-oomd[1]: Killed ",
    " due to memory ",
    "systemd[1]: ",
    ": A process of this unit has been killed by the OOM killer.",
    "😀",
];

fn line(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(pieces).prop_map(str::to_string),
        1 => any::<String>(),
        1 => "[ -~]{0,20}",
    ];
    prop::collection::vec(piece, 0..4).prop_map(|parts| parts.concat())
}

fn lines() -> impl Strategy<Value = Vec<LogLine>> {
    prop::collection::vec(
        (line(PIECES), any::<bool>(), prop::option::of(any::<i64>())),
        0..40,
    )
    .prop_map(|lines| {
        (1..)
            .zip(lines)
            .map(|(number, (text, out, time_ms))| LogLine {
                number,
                time_ms,
                stream: if out { Stream::Out } else { Stream::Err },
                text,
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn logs_of_nonsense(mut lines in lines(), number: u64) {
        for said in said(&lines) {
            prop_assert!(lines.iter().any(|line| line.number == said.number));
        }
        for traceback in tracebacks(&lines) {
            prop_assert!(traceback.lines.contains(&traceback.number));
            prop_assert!(traceback.chain().count() <= 20);
        }
        last_of(tracebacks(&lines));
        // Numbers that are in no order are wrong, but no reason to fall over.
        for line in lines.iter_mut().step_by(3) {
            line.number = number;
        }
        said(&lines);
        tracebacks(&lines);
    }

    #[test]
    fn kernel_logs_of_nonsense(lines in prop::collection::vec(line(KERNEL), 0..20)) {
        let count = lines.len();
        let log = KernelLog { lines, ..KernelLog::default() };
        for event in kernel_events(&log) {
            prop_assert!(event.line < count);
            event.cause();
        }
    }

    #[test]
    fn exits_of_nonsense(text: String, number: i64) {
        explain_exit(&text);
        explain_exit(&number.to_string());
        explain_exit(&format!("{text}:{number}"));
        explain_exit(&format!("signal {number}"));
    }
}

#[test]
fn long_logs_take_no_long_time() {
    let chain = "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: x\n\nDuring handling of the above exception, another exception occurred:\n\n";
    for text in [
        "Traceback (most recent call last):\n",
        "  File \"a.py\", line 3, in f\n",
        "ValueError: x\n",
        "Fatal Python error: x\n",
        "CUDA out of memory. Tried to allocate 2.00 GiB\n",
        "2024-05-08 16:43:33,866 - trainer - INFO - epoch 1 step 100 loss 0.5 lr 0.001 throughput 1234.5 rows/s\n",
        chain,
    ] {
        let log = super::log(&text.repeat(40_000 / text.lines().count()));
        let start = std::time::Instant::now();
        said(&log);
        let took = start.elapsed();
        assert!(took.as_secs() < 20, "{text}: {took:?}");
    }
}
