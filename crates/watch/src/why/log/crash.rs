//! What is printed by programs that end without a Python exception: crashes, panics, `std::terminate`, sanitizers, Java.

use tidegate_runs::Frame;

use super::python::frame;
use super::traceback::{Page, Role, Traceback};

/// Lines that a dump may take up.
const LONGEST: usize = 2000;

pub(super) fn crash(page: &mut Page<'_>, at: usize) -> Option<(Traceback, usize)> {
    fatal_python(page, at)
        .or_else(|| panic(page, at))
        .or_else(|| terminate(page, at))
        .or_else(|| c_library(page, at))
        .or_else(|| sanitizer(page, at))
        .or_else(|| java(page, at))
}

/// A crash whose parts are known; `end` is the last line of it.
fn crashed(page: &Page<'_>, at: usize, end: usize, exception: &str, message: &str) -> Traceback {
    Traceback {
        exception: exception.into(),
        message: message.trim().into(),
        frames: Vec::new(),
        lines: page.lines[at].number..=page.lines[end].number,
        number: page.lines[at].number,
        chained: None,
        worker: None,
        handled: false,
    }
}

/// ```text
/// Fatal Python error: Segmentation fault
///
/// Current thread 0x00007f57168aa700 (most recent call first):
///   File "/home/ada/train.py", line 12 in load
/// ```
///
/// Of several threads the current one counts, or the last where the crash was in none of Python's.
fn fatal_python(page: &mut Page<'_>, at: usize) -> Option<(Traceback, usize)> {
    const WORDS: &str = "Fatal Python error: ";
    let text = page.lines[at].text.as_ref();
    let message = &text[text.find(WORDS)? + WORDS.len()..];
    let message = message.trim();
    let mut end = at;
    let mut threads: Vec<(bool, Vec<Frame>)> = Vec::new();
    for (line_at, line) in page.lines.iter().enumerate().skip(at + 1).take(LONGEST) {
        let text = line.text.trim();
        if text.ends_with("(most recent call first):") {
            threads.push((text.starts_with("Current thread"), Vec::new()));
        } else if let Some(frame) = frame(text) {
            threads.last_mut()?.1.push(frame);
        } else if !(text.is_empty()
            || text.starts_with("Python runtime state")
            || text.starts_with("<no Python frame>")
            || text.starts_with("Garbage-collecting")
            || text == "...")
        {
            break;
        }
        if !text.is_empty() {
            end = line_at;
        }
    }
    page.roles[at] = Role::Exception;
    page.roles[at + 1..=end].fill(Role::Trace);
    let mut traceback = crashed(page, at, end, message, "");
    let current = threads.iter().position(|(current, _)| *current);
    let current = current.unwrap_or(threads.len().saturating_sub(1));
    traceback.frames = threads
        .into_iter()
        .nth(current)
        .map(|(_, frames)| frames)
        .unwrap_or_default();
    traceback.frames.reverse();
    Some((traceback, end + 1))
}

/// `thread 'main' panicked at src/main.rs:1:2:` and the message on the next line; before Rust 1.73
/// `thread 'main' panicked at 'message', src/main.rs:1:2`.
fn panic(page: &mut Page<'_>, at: usize) -> Option<(Traceback, usize)> {
    let text = page.lines[at].text.as_ref();
    let start = text.find("thread '")?;
    let (name, rest) = text[start + 8..].split_once('\'')?;
    let (_, place) = rest
        .split_once("panicked at ")
        .filter(|(between, _)| between.len() < 24)?;
    let (message, place, mut end) = match place
        .strip_prefix('\'')
        .and_then(|place| place.rsplit_once("', "))
    {
        Some((message, place)) => (message.to_string(), place, at),
        None => {
            let next = page.lines.get(at + 1).map(|line| line.text.trim().to_string());
            let end = at + usize::from(next.is_some());
            (next.unwrap_or_default(), place.trim_end_matches(':'), end)
        }
    };
    let said = end;
    let mut frames = Vec::new();
    for (line_at, line) in page.lines.iter().enumerate().skip(end + 1).take(LONGEST) {
        let text = line.text.trim();
        if let Some((number, function)) = text.split_once(": ")
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            frames.push(Frame {
                file: String::new(),
                line: 0,
                function: function.into(),
            });
        } else if let Some(frame) = text.strip_prefix("at ").and_then(source) {
            if let Some(last) = frames.last_mut() {
                (last.file, last.line) = (frame.file, frame.line);
            }
        } else if text != "stack backtrace:" && !text.starts_with("note: ") {
            break;
        }
        end = line_at;
    }
    frames.reverse();
    frames.extend(source(place));
    page.roles[at + 1..=end].fill(Role::Trace);
    // The message is read for what it says, too.
    page.roles[at..=said].fill(Role::Exception);
    let mut traceback = crashed(page, at, end, "panic", &message);
    traceback.worker = Some(name)
        .filter(|name| *name != "main")
        .map(|name| format!("thread {name}"));
    traceback.frames = frames;
    Some((traceback, end + 1))
}

/// `src/main.rs:1:2`.
fn source(text: &str) -> Option<Frame> {
    let mut parts = text.trim().rsplitn(3, ':');
    let (last, middle) = (parts.next()?, parts.next()?);
    let (file, line) = match (parts.next(), middle.parse()) {
        (Some(file), Ok(line)) => (file.to_string(), line),
        (rest, _) => {
            let file = rest
                .map(|rest| format!("{rest}:{middle}"))
                .unwrap_or_else(|| middle.into());
            (file, last.parse().ok()?)
        }
    };
    Some(Frame {
        file,
        line,
        function: String::new(),
    })
}

/// `terminate called after throwing an instance of 'std::bad_alloc'` and `  what():  std::bad_alloc` on the next line.
fn terminate(page: &mut Page<'_>, at: usize) -> Option<(Traceback, usize)> {
    let text = page.lines[at].text.as_ref();
    let (exception, mut message) =
        if let Some((_, rest)) = text.split_once("terminate called after throwing an instance of '") {
            (rest.rsplit_once('\'').map_or(rest, |(name, _)| name), "")
        } else if let Some((_, rest)) = text.split_once("terminating due to uncaught exception of type ") {
            rest.split_once(": ").unwrap_or((rest, ""))
        } else if text.contains("terminate called without an active exception") {
            ("std::terminate", "terminate called without an active exception")
        } else {
            return None;
        };
    let mut end = at;
    for line_at in (at + 1..page.lines.len()).take(3) {
        if let Some(what) = page.lines[line_at].text.trim_start().strip_prefix("what():") {
            message = what;
            end = line_at;
            break;
        }
    }
    let traceback = crashed(page, at, end, exception, message);
    page.roles[at] = Role::Exception;
    Some((traceback, end + 1))
}

/// What glibc's allocator says of a heap that is not as it left it.
fn c_library(page: &mut Page<'_>, at: usize) -> Option<(Traceback, usize)> {
    const WORDS: [&str; 22] = [
        "free(): invalid pointer",
        "free(): invalid size",
        "free(): invalid next size",
        "free(): corrupted unsorted chunks",
        "free(): double free detected in tcache 2",
        "free(): unaligned chunk detected in tcache 2",
        "double free or corruption",
        "malloc(): corrupted ",
        "malloc(): invalid ",
        "malloc(): memory corruption",
        "malloc(): mismatching ",
        "malloc(): unaligned ",
        "malloc(): unsorted double linked list corrupted",
        "malloc_consolidate(): ",
        "munmap_chunk(): invalid pointer",
        "realloc(): invalid ",
        "corrupted size vs. prev_size",
        "corrupted double-linked list",
        "tcache_thread_shutdown(): ",
        "*** stack smashing detected ***",
        "*** buffer overflow detected ***",
        "*** Error in `",
    ];
    let text = page.lines[at].text.trim();
    // A progress bar may stand before it, nothing after it.
    let message = WORDS.iter().find_map(|words| {
        let at = text.find(words)?;
        let label = text[..at].trim_end();
        (label.is_empty() || label.ends_with([']', ':', '|'])).then_some(&text[at..])
    })?;
    if message.len() > 160 {
        return None;
    }
    let traceback = crashed(page, at, at, "glibc", message);
    page.roles[at] = Role::Exception;
    Some((traceback, at + 1))
}

/// `==29495==ERROR: AddressSanitizer: heap-use-after-free on address …`, and frames: `    #0 0x7f in f /src/a.cpp:12:3`.
fn sanitizer(page: &mut Page<'_>, at: usize) -> Option<(Traceback, usize)> {
    let text = page.lines[at].text.as_ref();
    let start = ["ERROR: ", "WARNING: "]
        .iter()
        .find_map(|level| Some(text.find(level)? + level.len()))?;
    let (name, message) = text[start..].split_once(": ")?;
    if ![
        "AddressSanitizer",
        "MemorySanitizer",
        "ThreadSanitizer",
        "UndefinedBehaviorSanitizer",
    ]
    .contains(&name)
    {
        return None;
    }
    let message = message.to_string();
    let name = name.to_string();
    let mut end = at;
    let mut frames = Vec::new();
    for (line_at, line) in page.lines.iter().enumerate().skip(at + 1).take(LONGEST) {
        let text = line.text.trim_start();
        if let Some((_, rest)) = text.strip_prefix('#').and_then(|rest| rest.split_once(" in ")) {
            let (function, place) = rest.rsplit_once(' ').unwrap_or((rest, ""));
            let place = source(place.trim_matches(['(', ')'])).unwrap_or(Frame {
                file: place.trim_matches(['(', ')']).into(),
                line: 0,
                function: String::new(),
            });
            frames.push(Frame {
                function: function.into(),
                ..place
            });
        } else if !frames.is_empty() || line_at > at + 4 {
            break;
        }
        end = line_at;
    }
    frames.reverse();
    page.roles[at] = Role::Exception;
    page.roles[at + 1..=end].fill(Role::Trace);
    let mut traceback = crashed(page, at, end, &name, &message);
    traceback.frames = frames;
    Some((traceback, end + 1))
}

/// `Exception in thread "main" java.lang.OutOfMemoryError: Java heap space`, `at a.b.C.f(C.java:12)`, `Caused by: …`.
fn java(page: &mut Page<'_>, at: usize) -> Option<(Traceback, usize)> {
    let text = page.lines[at].text.as_ref();
    let (worker, rest) = text.split_once("Exception in thread \"")?.1.split_once("\" ")?;
    let (exception, message) = rest.split_once(": ").unwrap_or((rest, ""));
    if !exception.contains('.') || exception.contains(' ') {
        return None;
    }
    let mut traceback = crashed(page, at, at, exception, message);
    traceback.worker = Some(worker)
        .filter(|worker| *worker != "main")
        .map(|worker| format!("thread {worker}"));
    let mut cause: Option<Traceback> = None;
    let mut causes = vec![at];
    let mut end = at;
    for (line_at, line) in page.lines.iter().enumerate().skip(at + 1).take(LONGEST) {
        let text = line.text.trim_start();
        if let Some(call) = text
            .strip_prefix("at ")
            .filter(|_| line.text.starts_with([' ', '\t']))
        {
            let current = cause.as_mut().unwrap_or(&mut traceback);
            current.frames.extend(java_frame(call));
        } else if let Some(rest) = text.strip_prefix("Caused by: ") {
            let (exception, message) = rest.split_once(": ").unwrap_or((rest, ""));
            cause = Some(crashed(page, line_at, line_at, exception, message));
            causes.push(line_at);
        } else if !text.starts_with("... ") {
            break;
        }
        end = line_at;
    }
    page.roles[at..=end].fill(Role::Trace);
    for line_at in causes {
        page.roles[line_at] = Role::Exception;
    }
    traceback.frames.reverse();
    // Only the last cause counts: the others are on the way to it.
    traceback.chained = cause.map(|mut cause| {
        cause.frames.reverse();
        Box::new(cause)
    });
    traceback.lines = page.lines[at].number..=page.lines[end].number;
    Some((traceback, end + 1))
}

/// `a.b.C.f(C.java:12)`.
fn java_frame(text: &str) -> Option<Frame> {
    let (function, place) = text.trim_end().strip_suffix(')')?.split_once('(')?;
    let (file, line) = place.split_once(':').unwrap_or((place, "0"));
    Some(Frame {
        file: file.into(),
        line: line.parse().unwrap_or(0),
        function: function.into(),
    })
}
