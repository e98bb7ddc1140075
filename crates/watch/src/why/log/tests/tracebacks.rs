//! Tracebacks in all the forms that logs have them in.

use super::super::{last_of, tracebacks};
use super::*;
use crate::why::Cause;

#[test]
fn a_plain_one() {
    let text = "\
loading
Traceback (most recent call last):
  File \"/home/ada/train.py\", line 12, in <module>
    main()
  File \"/home/ada/train.py\", line 8, in main
    x = np.ones(10**9)
        ^^^^^^^^^^^^^^
  File \"/usr/lib/python3.11/site-packages/numpy/core/numeric.py\", line 205, in ones
    a = empty(shape, dtype, order)
numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape (1000000000,) and data type float64";
    let found = last_of(tracebacks(&log(text))).expect("there is one");
    assert_eq!(found.exception, "numpy._core._exceptions._ArrayMemoryError");
    assert!(found.message.starts_with("Unable to allocate 7.45 GiB"));
    assert_eq!(found.frames.len(), 3);
    assert_eq!(found.frames[0], frame("/home/ada/train.py", 12, "<module>"));
    assert_eq!(found.place(), Some(&frame("/home/ada/train.py", 8, "main")));
    assert_eq!((found.lines.clone(), found.number), (2..=10, 10));
    let said = said(&log(text));
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].place, Some(frame("/home/ada/train.py", 8, "main")));
}

/// Text, and for each part of the chain: exception, message, number of frames, worker.
type Row = (
    &'static str,
    &'static [(&'static str, &'static str, usize, Option<&'static str>)],
);

const FORMS: &[Row] = &[
    // The progress bar had no line end.
    (
        " 45%|████▌     | 45/100 [00:01<00:01, 41.00it/s]Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'x'",
        &[("KeyError", "'x'", 1, None)],
    ),
    (
        "\u{1b}[0m 10%\r 20%\rTraceback (most recent call last):\n  File \u{1b}[35m\"a.py\"\u{1b}[0m, line \u{1b}[35m1\u{1b}[0m, in \u{1b}[35mf\u{1b}[0m\n\u{1b}[1;35mValueError\u{1b}[0m: \u{1b}[35mno\u{1b}[0m",
        &[("ValueError", "no", 1, None)],
    ),
    (
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nKeyError: 1\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a.py\", line 3, in h\n    i()\nValueError: two",
        &[("ValueError", "two", 1, None), ("KeyError", "1", 1, None)],
    ),
    (
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nOSError: [Errno 28] No space left on device\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"a.py\", line 3, in h\nRuntimeError: saving failed\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a.py\", line 9, in i\nSystemError: last",
        &[
            ("SystemError", "last", 1, None),
            ("RuntimeError", "saving failed", 1, None),
            ("OSError", "[Errno 28] No space left on device", 1, None),
        ],
    ),
    (
        "Traceback (most recent call last):\n  File \"train.py\", line 20, in <module>\n    for x in loader:\n  File \"/usr/lib/python3/site-packages/torch/_utils.py\", line 694, in reraise\n    raise exception\nRuntimeError: Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n  File \"/usr/lib/python3/site-packages/torch/utils/data/_utils/worker.py\", line 308, in _worker_loop\n    data = fetcher.fetch(index)\n  File \"train.py\", line 7, in __getitem__\n    raise RuntimeError(\"bad row\")\nRuntimeError: bad row",
        &[
            (
                "RuntimeError",
                "Caught RuntimeError in DataLoader worker process 0.",
                2,
                None,
            ),
            ("RuntimeError", "bad row", 2, Some("DataLoader worker process 0")),
        ],
    ),
    // PyTorch until 1.2.
    (
        "Traceback (most recent call last):\n  File \"main.py\", line 136, in train\nRuntimeError: Traceback (most recent call last):\n  File \"dataloader.py\", line 57, in _worker_loop\n  File \"dataloader.py\", line 138, in default_collate\nRuntimeError: unable to write to file </torch_76_3625483894>",
        &[
            ("RuntimeError", "Traceback (most recent call last):", 1, None),
            (
                "RuntimeError",
                "unable to write to file </torch_76_3625483894>",
                2,
                Some("DataLoader worker"),
            ),
        ],
    ),
    (
        "Traceback (most recent call last):\n  File \"spawn.py\", line 1, in start\ntorch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 0 terminated with the following error:\nTraceback (most recent call last):\n  File \"train.py\", line 5, in run\n    model.cuda()\nIndexError: list index out of range",
        &[
            ("torch.multiprocessing.spawn.ProcessRaisedException", "", 1, None),
            ("IndexError", "list index out of range", 1, Some("process 0")),
        ],
    ),
    (
        "multiprocessing.pool.RemoteTraceback: \n\"\"\"\nTraceback (most recent call last):\n  File \"a.py\", line 1, in work\nValueError: inner\n\"\"\"\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"a.py\", line 9, in <module>\nValueError: inner",
        &[
            ("ValueError", "inner", 1, None),
            ("ValueError", "inner", 1, Some("pool worker")),
        ],
    ),
    (
        "Process SpawnProcess-1:\nTraceback (most recent call last):\n  File \"a.py\", line 1, in work\nTypeError: no",
        &[("TypeError", "no", 1, Some("SpawnProcess-1"))],
    ),
    (
        "Exception in thread Thread-3 (feed):\nTraceback (most recent call last):\n  File \"a.py\", line 1, in feed\nTypeError: no",
        &[("TypeError", "no", 1, Some("Thread-3 (feed)"))],
    ),
    (
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    ray.get(ref)\nray.exceptions.RayTaskError(ValueError): ray::train() (pid=77, ip=10.0.0.1)\n  File \"b.py\", line 4, in train\nValueError: x",
        &[
            (
                "ray.exceptions.RayTaskError(ValueError)",
                "ray::train() (pid=77, ip=10.0.0.1)",
                1,
                None,
            ),
            ("ValueError", "x", 1, Some("ray::train() (pid=77, ip=10.0.0.1)")),
        ],
    ),
    // Ranks speak at the same time, each on lines of its own.
    (
        "[rank0]: Traceback (most recent call last):\n[rank1]: Traceback (most recent call last):\n[rank0]:   File \"a.py\", line 1, in f\n[rank1]:   File \"a.py\", line 2, in g\n[rank0]:     h()\n[rank0]: RuntimeError: CUDA error: device-side assert triggered\n[rank0]: CUDA kernel errors might be asynchronously reported at some other API call.\n",
        &[(
            "RuntimeError",
            "CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported at some other API call.",
            1,
            Some("rank 0"),
        )],
    ),
    (
        "2021-01-07T09:23:33.9919960Z Traceback (most recent call last):\n2021-01-07T09:23:33.9921864Z   File \"a.py\", line 1, in f\n2021-01-07T09:23:34.0000001Z KeyError: 1",
        &[("KeyError", "1", 1, None)],
    ),
    (
        "2022-04-03 18:44:26,615 CRITICAL | Traceback (most recent call last):\n  File \"a.py\", line 605, in f\n    g()\nKeyError: 1",
        &[("KeyError", "1", 1, None)],
    ),
    (
        "    Traceback (most recent call last):\n      File \"a.py\", line 1, in f\n        g()\n    KeyError: 1",
        &[("KeyError", "1", 1, None)],
    ),
    (
        "  + Exception Group Traceback (most recent call last):\n  |   File \"a.py\", line 9, in main\n  |     raise x\n  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n    |   File \"a.py\", line 3, in task\n    |     raise ValueError(1)\n    | ValueError: 1\n    +---------------- 2 ----------------\n    | KeyError: 2\n    +------------------------------------",
        &[
            (
                "ExceptionGroup",
                "unhandled errors in a TaskGroup (2 sub-exceptions)",
                1,
                None,
            ),
            ("ValueError", "1", 1, None),
        ],
    ),
    (
        "  File \"train.py\", line 3\n    print(\"a\"\n         ^\nSyntaxError: '(' was never closed",
        &[("SyntaxError", "'(' was never closed", 1, None)],
    ),
    (
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    import b\n  File \"/home/ada/b.py\", line 3\n    x = = 1\n        ^\nSyntaxError: invalid syntax",
        &[("SyntaxError", "invalid syntax", 2, None)],
    ),
    (
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    f()\n  [Previous line repeated 995 more times]\nRecursionError: maximum recursion depth exceeded",
        &[("RecursionError", "maximum recursion depth exceeded", 1, None)],
    ),
    (
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    model.load_state_dict(x)\nRuntimeError: Error(s) in loading state_dict for ResNet:\n\tsize mismatch for fc.weight: copying a param with shape torch.Size([1000, 512]) from checkpoint, the shape in current model is torch.Size([10, 512]).",
        &[(
            "RuntimeError",
            "Error(s) in loading state_dict for ResNet:\nsize mismatch for fc.weight: copying a param with shape torch.Size([1000, 512]) from checkpoint, the shape in current model is torch.Size([10, 512]).",
            1,
            None,
        )],
    ),
    (
        "---------------------------------------------------------------------------\nMemoryError                               Traceback (most recent call last)\nCell In[3], line 2\n      1 import numpy as np\n----> 2 a = np.ones(10**12)\n\nFile /usr/lib/python3/site-packages/numpy/core/numeric.py:205, in ones(shape, dtype)\n    203     pass\n--> 205 a = empty(shape)\n\nMemoryError: Unable to allocate 7.28 TiB for an array with shape (1000000000000,) and data type float64",
        &[(
            "MemoryError",
            "Unable to allocate 7.28 TiB for an array with shape (1000000000000,) and data type float64",
            2,
            None,
        )],
    ),
    (
        "╭───────────────────── Traceback (most recent call last) ──────────────────────╮\n│ /home/ada/train.py:12 in main                                                │\n│                                                                              │\n│ ❱ 12 model.fit(x, y)                                                         │\n╰──────────────────────────────────────────────────────────────────────────────╯\nOutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        &[(
            "OutOfMemoryError",
            "CUDA out of memory. Tried to allocate 2.00 GiB.",
            1,
            None,
        )],
    ),
    (
        "Epoch 0: |    | 4540/? [07:57<00:00,  9.51it/s]Fatal Python error: Segmentation fault                  \n\nThread 0x00007f57168aa700 (most recent call first):\n  <no Python frame>\n\nCurrent thread 0x00007f5741fff700 (most recent call first):\n  File \"/usr/lib/python3.10/threading.py\", line 324 in wait\n  File \"train.py\", line 60 in run\n\nExtension modules: numpy.core._multiarray_umath (total: 1)",
        &[("Segmentation fault", "", 2, None)],
    ),
    (
        "thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds: the len is 3 but the index is 99\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
        &[(
            "panic",
            "index out of bounds: the len is 3 but the index is 99",
            1,
            None,
        )],
    ),
    (
        "thread 'loader' panicked at 'called `Option::unwrap()` on a `None` value', src/load.rs:10:7\nstack backtrace:\n   0: rust_begin_unwind\n             at /rustc/90c54/library/std/src/panicking.rs:584:5\n   1: app::load\n             at ./src/load.rs:10:7",
        &[(
            "panic",
            "called `Option::unwrap()` on a `None` value",
            3,
            Some("thread loader"),
        )],
    ),
    (
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
        &[("std::bad_alloc", "std::bad_alloc", 0, None)],
    ),
    (
        "malloc(): corrupted top size",
        &[("glibc", "malloc(): corrupted top size", 0, None)],
    ),
    (
        "=================================================================\n==29495==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602 at pc 0x4f\nREAD of size 4 at 0x602 thread T0\n    #0 0x4f1 in load /src/a.cpp:12:3\n    #1 0x4f2 in main /src/a.cpp:20:1\n\nfreed by thread T0 here:",
        &[(
            "AddressSanitizer",
            "heap-buffer-overflow on address 0x602 at pc 0x4f",
            2,
            None,
        )],
    ),
    (
        "Exception in thread \"main\" java.lang.RuntimeException: job failed\n\tat a.B.run(B.java:12)\n\tat a.B.main(B.java:3)\nCaused by: java.lang.OutOfMemoryError: Java heap space\n\tat a.C.load(C.java:9)\n\t... 2 more",
        &[
            ("java.lang.RuntimeException", "job failed", 2, None),
            ("java.lang.OutOfMemoryError", "Java heap space", 1, None),
        ],
    ),
];

/// The text of the one that holds some words.
fn form(words: &str) -> &'static str {
    FORMS
        .iter()
        .find(|row| row.0.contains(words))
        .expect("one holds them")
        .0
}

#[test]
fn all_forms() {
    for (text, parts) in FORMS {
        let found = tracebacks(&log(text));
        assert_eq!(found.len(), 1, "{text}\n{found:#?}");
        let chain: Vec<_> = found[0]
            .chain()
            .map(|part| {
                let lines = part.lines.clone();
                assert!(lines.contains(&part.number), "{text}\n{part:?}");
                (
                    part.exception.as_str(),
                    part.message.as_str(),
                    part.frames.len(),
                    part.worker.as_deref(),
                )
            })
            .collect();
        assert_eq!(chain, *parts, "{text}");
    }
}

#[test]
fn frames_are_the_outermost_first() {
    let crash = tracebacks(&log(form("Fatal Python")));
    assert_eq!(crash[0].frames[0], frame("train.py", 60, "run"));
    let panic = tracebacks(&log(form("'loader'")));
    assert_eq!(panic[0].frames[0].function, "app::load");
    let notebook = tracebacks(&log(form("Cell In")));
    assert_eq!(notebook[0].place(), Some(&frame("Cell In[3]", 2, "")));
    let java = tracebacks(&log(form("a.B.run")));
    assert_eq!(java[0].frames[0], frame("B.java", 3, "a.B.main"));
}

#[test]
fn the_one_that_counts() {
    let first = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: first\n";
    let second = "Traceback (most recent call last):\n  File \"a.py\", line 2, in g\nKeyError: 'second'\n";
    let launcher = "Traceback (most recent call last):\n  File \"torchrun\", line 8, in <module>\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n";
    let ignored = "Exception ignored in: <function x.__del__ at 0x7f>\nTraceback (most recent call last):\n  File \"a.py\", line 9, in __del__\nAssertionError: can only test a child process\n";
    let output = "epoch 1 step 5 loss 0.3\n".repeat(25);
    for (text, expected) in [
        (format!("{first}{second}"), Some("KeyError")),
        (format!("{first}{output}"), None),
        (format!("{first}{output}{second}"), Some("KeyError")),
        (format!("{second}{launcher}"), Some("KeyError")),
        (
            launcher.to_string(),
            Some("torch.distributed.elastic.multiprocessing.errors.ChildFailedError"),
        ),
        (format!("{first}{ignored}"), Some("ValueError")),
        (
            "Traceback (most recent call last):\n  File \"a.py\", line 1, in f".to_string(),
            None,
        ),
        (String::new(), None),
    ] {
        let found = last_of(tracebacks(&log(&text))).map(|traceback| traceback.exception);
        assert_eq!(found.as_deref(), expected, "{text}");
    }
}

#[test]
fn other_output_between_the_lines() {
    let mut lines = log(
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nEpoch: 5\n    g()\nstep: 6\nKeyError: 1",
    );
    for line in &mut lines {
        if line.text.starts_with("Epoch") || line.text.starts_with("step") {
            line.stream = Stream::Out;
        }
    }
    let found = last_of(tracebacks(&lines)).expect("there is one");
    assert_eq!((found.exception.as_str(), found.frames.len()), ("KeyError", 1));
}

#[test]
fn exceptions_are_known_by_their_names() {
    use Cause::*;
    let at = |frame: &str, exception: &str| {
        format!("Traceback (most recent call last):\n  File {frame}\n    x()\n{exception}")
    };
    let own = "\"a.py\", line 1, in f";
    for (text, cause) in [
        (at(own, "MemoryError"), MemoryError),
        (at(own, "KeyboardInterrupt"), Stopped),
        (at(own, "ZeroDivisionError: division by zero"), Failed),
        (
            at(
                own,
                "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
            ),
            TypeError,
        ),
        (at(own, "IndexError: list index out of range"), IndexError),
        (at(own, "ray.exceptions.OutOfMemoryError"), OomDaemon),
        (
            at(
                "\"/usr/lib/python3.7/multiprocessing/synchronize.py\", line 162, in __init__",
                "OSError: [Errno 28] No space left on device",
            ),
            SharedMemory,
        ),
        (
            at(
                "\"/usr/lib/python3.7/multiprocessing/popen_fork.py\", line 70, in _launch",
                "BlockingIOError: [Errno 11] Resource temporarily unavailable",
            ),
            Processes,
        ),
        (
            at(
                "\"/usr/lib/python3.7/site-packages/h5py/files.py\", line 70, in make_fid",
                "BlockingIOError: [Errno 11] Unable to lock file, errno = 11, error message = 'Resource temporarily unavailable'",
            ),
            Failed,
        ),
        (
            at(own, "OSError: [Errno 5] Input/output error: '/data/x'"),
            Hardware,
        ),
        (
            at(own, "OSError: [Errno 30] Read-only file system: '/x'"),
            Permission,
        ),
        (
            at(
                own,
                "subprocess.CalledProcessError: Command '['x']' returned non-zero exit status 139.",
            ),
            SegmentationFault,
        ),
        (at(own, "__main__.Stop: enough"), Failed),
        (
            at(
                own,
                "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
            ),
            Failed,
        ),
    ] {
        let found = said(&log(&text));
        assert_eq!(
            found.iter().map(|said| said.cause).collect::<Vec<_>>(),
            [cause],
            "{text}\n{found:#?}"
        );
    }
}

#[test]
fn what_an_exception_arose_from_counts_where_it_says_more() {
    for (text, causes) in [
        (form("saving failed"), vec![Cause::DiskFull, Cause::Failed]),
        // Only the worker's own exception, with its place.
        (form("bad row"), vec![Cause::Failed]),
        (form("unable to write"), vec![Cause::SharedMemory]),
        (form("-- Process 0"), vec![Cause::IndexError]),
        (form("TaskGroup"), vec![Cause::Failed]),
        (form("a.B.run"), vec![Cause::Failed, Cause::BadAlloc]),
    ] {
        let found = said(&log(text));
        assert_eq!(
            found.iter().map(|said| said.cause).collect::<Vec<_>>(),
            causes,
            "{text}\n{found:#?}"
        );
    }
    let found = said(&log(form("bad row")));
    assert_eq!(found[0].place, Some(frame("train.py", 7, "__getitem__")));
}
