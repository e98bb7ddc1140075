//! Python's tracebacks: plain, chained, of workers and in groups. How others draw them is in `drawn.rs`.

use tidegate_runs::{Frame, Stream};

use super::drawn;
use super::lines::Line;
use super::prefix::Prefix;
use super::traceback::{Page, Role, Traceback};

pub(super) const HEADER: &str = "Traceback (most recent call last)";
const CHAINED: [&str; 2] = [
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
];
/// Exceptions that a chain may hold; a log of nothing but chains must not exhaust the stack.
const LONGEST_CHAIN: usize = 12;
const DEEPEST: usize = 4;
/// Lines of others that may stand inside a traceback.
const MOST_FOREIGN: usize = 500;

/// The traceback that begins at a line, with all that it is chained to, and the line after it.
pub(super) fn traceback(page: &mut Page<'_>, at: usize) -> Option<(Traceback, usize)> {
    let lines = page.lines;
    let text = lines.get(at)?.text.as_ref();
    if !text.contains(HEADER) {
        return syntax_error(page, at);
    }
    let Some(mut parsed) = single(page, at, 0) else {
        return drawn::traceback(page, at);
    };
    let mut length = 1;
    while let Some(next) = chained(lines, &parsed).and_then(|at| single(page, at, 0)) {
        length += next.traceback.chain().count();
        let mut traceback = next.traceback;
        traceback.lines = *parsed.traceback.lines.start()..=*traceback.lines.end();
        let mut earlier = Some(Box::new(parsed.traceback));
        if length > LONGEST_CHAIN {
            earlier = None;
            length = traceback.chain().count();
        }
        *last_link(&mut traceback) = earlier;
        parsed = Parsed { traceback, ..next };
    }
    Some((parsed.traceback, parsed.next))
}

/// The end of a chain, where nothing follows yet.
fn last_link(traceback: &mut Traceback) -> &mut Option<Box<Traceback>> {
    let mut link = &mut traceback.chained;
    while let Some(ref mut next) = *link {
        link = &mut next.chained;
    }
    link
}

struct Parsed {
    traceback: Traceback,
    /// The line after it.
    next: usize,
    prefix: Prefix,
    stream: Stream,
}

/// Where the traceback begins that the text between them chains to this one.
fn chained(lines: &[Line<'_>], parsed: &Parsed) -> Option<usize> {
    let (mut at, mut rest) = following(lines, parsed.next, parsed.stream, &parsed.prefix)?;
    // The end of what another process printed: `"""`.
    if rest.trim() == "\"\"\"" {
        (at, rest) = following(lines, at + 1, parsed.stream, &parsed.prefix)?;
    }
    CHAINED.iter().find(|text| rest.contains(**text))?;
    let (at, rest) = following(lines, at + 1, parsed.stream, &parsed.prefix)?;
    rest.contains(HEADER).then_some(at)
}

/// The next line of the same speaker that is not blank.
fn following<'a>(
    lines: &'a [Line<'_>],
    from: usize,
    stream: Stream,
    prefix: &Prefix,
) -> Option<(usize, &'a str)> {
    let near = lines.iter().enumerate().skip(from).take(MOST_FOREIGN);
    near.filter(|(_, line)| line.stream == stream)
        .filter_map(|(at, line)| Some((at, prefix.strip(&line.text)?)))
        .find(|(_, rest)| !rest.trim().is_empty())
}

/// One traceback with a header, and what is nested in its message.
fn single(page: &mut Page<'_>, at: usize, depth: usize) -> Option<Parsed> {
    let lines = page.lines;
    let text = lines.get(at)?.text.as_ref();
    let header = text.find(HEADER)?;
    if text[header + HEADER.len()..].trim_end() != ":" {
        return None;
    }
    let prefix = Prefix::of(lines, at, &text[..header]);
    page.roles[at] = Role::Trace;
    let (worker, ignored) = introduced(lines, at, &prefix);
    let mut parsed = body(page, at, at + 1, prefix, depth)?;
    parsed.traceback.worker = worker.or(parsed.traceback.worker);
    parsed.traceback.handled = ignored;
    Some(parsed)
}

/// The frames from a line on, and the exception after them.
fn body(page: &mut Page<'_>, first: usize, from: usize, prefix: Prefix, depth: usize) -> Option<Parsed> {
    let lines = page.lines;
    let stream = lines[first].stream;
    let mut frames = Vec::new();
    let mut foreign = 0;
    let mut at = from;
    loop {
        let line = lines.get(at)?;
        let rest = match (line.stream == stream)
            .then(|| prefix.strip(&line.text))
            .flatten()
        {
            Some(rest) => rest,
            None if foreign < MOST_FOREIGN => {
                foreign += 1;
                at += 1;
                continue;
            }
            None => return None,
        };
        let trimmed = rest.trim_start();
        let indented = trimmed.len() < rest.len();
        if let Some(frame) = frame(trimmed) {
            frames.push(frame);
            page.roles[at] = Role::Trace;
        } else if trimmed.is_empty() {
            // Some loggers put blank lines between frames.
        } else if indented && !frames.is_empty() {
            page.roles[at] = Role::Trace;
        } else if let Some((exception, message)) = exception(trimmed) {
            page.roles[at] = Role::Exception;
            let traceback = Traceback {
                exception: exception.into(),
                message: message.into(),
                frames,
                lines: lines[first].number..=line.number,
                number: line.number,
                chained: None,
                worker: None,
                handled: false,
            };
            let parsed = Parsed {
                traceback,
                next: at + 1,
                prefix,
                stream,
            };
            return Some(nested(page, parsed, at, depth));
        } else if rest.contains(HEADER) || foreign >= MOST_FOREIGN {
            // Another one begins, this one was cut.
            return None;
        } else {
            foreign += 20;
        }
        at += 1;
    }
}

/// The rest of a message, which can hold the traceback of another process.
fn nested(page: &mut Page<'_>, mut parsed: Parsed, at: usize, depth: usize) -> Parsed {
    let inner = if depth >= DEEPEST {
        None
    } else if parsed
        .traceback
        .message
        .ends_with("Traceback (most recent call last):")
    {
        // As PyTorch had it until 1.2, of its data loaders.
        let mut inner = body(page, at, at + 1, Prefix::none(), depth + 1);
        if let Some(inner) = &mut inner {
            inner.traceback.worker = Some("DataLoader worker".into());
        }
        inner
    } else {
        read_message(page, &mut parsed);
        inside(page, &parsed, depth)
    };
    if let Some(inner) = inner {
        parsed.traceback.lines = *parsed.traceback.lines.start()..=*inner.traceback.lines.end();
        parsed.next = inner.next;
        parsed.traceback.chained = Some(Box::new(inner.traceback));
    }
    if parsed.prefix.is_group() {
        skip_group(page, &mut parsed);
    }
    parsed
}

/// Further lines of a message are indented, or belong to a speaker who is named on each line.
fn read_message(page: &mut Page<'_>, parsed: &mut Parsed) {
    const MOST: usize = 30;
    let lines = page.lines;
    let mut count = 0;
    while let Some(line) = lines.get(parsed.next).filter(|line| line.stream == parsed.stream) {
        let Some(rest) = parsed.prefix.strip(&line.text) else {
            return;
        };
        let goes_on =
            rest.starts_with([' ', '\t']) || (parsed.prefix.names_speaker() && !rest.starts_with('+'));
        let ends = rest.trim().is_empty()
            || frame(rest.trim_start()).is_some()
            || rest.contains(HEADER)
            || CHAINED.iter().any(|text| rest.contains(text))
            || rest.trim_start().starts_with("-- Process ")
            || rest.trim_start().starts_with("+-");
        if !goes_on || ends || count >= MOST {
            return;
        }
        page.roles[parsed.next] = Role::Exception;
        parsed.traceback.message.push('\n');
        parsed.traceback.message.push_str(rest.trim());
        parsed.traceback.lines = *parsed.traceback.lines.start()..=line.number;
        parsed.next += 1;
        count += 1;
    }
}

/// The traceback of a worker, of a remote task, or of the first member of a group.
fn inside(page: &mut Page<'_>, parsed: &Parsed, depth: usize) -> Option<Parsed> {
    let lines = page.lines;
    let message = parsed.traceback.message.as_str();
    let (at, rest) = following(lines, parsed.next, parsed.stream, &parsed.prefix)?;
    // RuntimeError: Caught ValueError in DataLoader worker process 0. / Original Traceback (most recent call last):
    if rest.trim_start().starts_with("Original Traceback") {
        let mut inner = single(page, at, depth + 1)?;
        inner.traceback.worker = message
            .split_once(" in ")
            .map(|(_, worker)| worker.lines().next().unwrap_or("").trim_end_matches('.').into());
        return Some(inner);
    }
    // torch.multiprocessing: -- Process 0 terminated with the following error:
    if let Some(worker) = rest.trim().strip_prefix("-- Process ") {
        let worker = worker.split(' ').next().unwrap_or("");
        let (at, _) = following(lines, at + 1, parsed.stream, &parsed.prefix)?;
        let mut inner = single(page, at, depth + 1)?;
        inner.traceback.worker = Some(format!("process {worker}"));
        return Some(inner);
    }
    // Ray: the frames of the task follow without a header.
    if at == parsed.next && rest.starts_with(' ') && frame(rest.trim_start()).is_some() {
        let mut inner = body(page, at, at, parsed.prefix.clone(), depth + 1)?;
        inner.traceback.worker = message.lines().next().map(Into::into);
        return Some(inner);
    }
    if parsed.prefix.is_group() && rest.trim_start().starts_with("+-+--") {
        let (at, rest) = following(lines, at + 1, parsed.stream, &parsed.prefix)?;
        if rest.contains(HEADER) {
            return single(page, at, depth + 1);
        }
        return body(page, at, at, parsed.prefix.clone(), depth + 1);
    }
    None
}

/// Past the other members of a group; their messages can still be read, their code cannot.
fn skip_group(page: &mut Page<'_>, parsed: &mut Parsed) {
    while let Some(line) = page
        .lines
        .get(parsed.next)
        .filter(|line| line.stream == parsed.stream)
    {
        if !line.text.trim_start().starts_with(['|', '+']) {
            return;
        }
        if let Some(rest) = parsed.prefix.strip(&line.text)
            && rest.starts_with("  ")
        {
            page.roles[parsed.next] = Role::Trace;
        }
        parsed.traceback.lines = *parsed.traceback.lines.start()..=line.number;
        parsed.next += 1;
    }
}

/// What the lines before a traceback say of it: whose it is, and whether it ended anything.
fn introduced(lines: &[Line<'_>], at: usize, prefix: &Prefix) -> (Option<String>, bool) {
    let mut worker = prefix.speaker();
    for line in lines[..at]
        .iter()
        .rev()
        .filter(|line| line.stream == lines[at].stream)
        .take(3)
    {
        let text = prefix.strip(&line.text).unwrap_or(&line.text).trim();
        if let Some(name) = text
            .strip_prefix("Process ")
            .and_then(|name| name.strip_suffix(':'))
        {
            worker = Some(name.into());
        } else if let Some(name) = text.strip_prefix("Exception in thread ") {
            worker = Some(name.trim_end_matches(':').into());
        } else if text.contains("RemoteTraceback:") {
            worker = Some("pool worker".into());
        } else if [
            "Exception ignored ",
            "Error in atexit",
            "--- Logging error ---",
            "Task exception was never retrieved",
        ]
        .iter()
        .any(|words| text.starts_with(words))
        {
            return (worker, true);
        } else if !text.is_empty() && text != "\"\"\"" && !text.starts_with("future: ") {
            break;
        }
    }
    (worker, false)
}

/// `File "/home/ada/train.py", line 12, in load`; of faulthandler without the second comma; of a `SyntaxError` without a
/// function.
pub(super) fn frame(text: &str) -> Option<Frame> {
    let (file, rest) = text.strip_prefix("File \"")?.split_once('"')?;
    let rest = rest.strip_prefix(", line ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let function = rest[digits..].trim_start_matches(',').trim();
    Some(Frame {
        file: file.into(),
        line: rest[..digits].parse().ok()?,
        function: function.strip_prefix("in ").unwrap_or("").trim().into(),
    })
}

/// `ValueError: message`, `KeyboardInterrupt`, `__main__.run.<locals>.Stop: now`, `ray.exceptions.RayTaskError(ValueError): …`.
pub(super) fn exception(text: &str) -> Option<(&str, &str)> {
    const ENDINGS: [&str; 12] = [
        "Error",
        "Exception",
        "Interrupt",
        "Exit",
        "Iteration",
        "Warning",
        "Timeout",
        "Group",
        "Empty",
        "Full",
        "Pruned",
        "Failure",
    ];
    let text = text.trim_end();
    let end = text
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '<' | '>')))
        .unwrap_or(text.len());
    let name = &text[..end];
    let plain = name.rsplit('.').next().unwrap_or(name);
    if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') || plain.is_empty() {
        return None;
    }
    let mut rest = &text[end..];
    if let Some((_, after)) = rest.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
        rest = after;
    }
    let message = match rest.strip_prefix(':') {
        None if rest.is_empty() && ENDINGS.iter().any(|ending| plain.ends_with(ending)) => "",
        None => return None,
        Some(message) if message.is_empty() || message.starts_with([' ', '\t']) => message.trim(),
        Some(_) => return None,
    };
    let upper = plain.trim_start_matches('_').starts_with(char::is_uppercase);
    (upper || name.contains('.') || plain.ends_with("error"))
        .then_some((&text[..text.len() - rest.len()], message))
}

/// A script that does not compile has no header:
///
/// ```text
///   File "train.py", line 3
///     print("a"
///          ^
/// SyntaxError: '(' was never closed
/// ```
fn syntax_error(page: &mut Page<'_>, at: usize) -> Option<(Traceback, usize)> {
    let lines = page.lines;
    let text = lines[at].text.as_ref();
    let first = frame(text.strip_prefix("  ")?)?;
    if !first.function.is_empty() {
        return None;
    }
    let end = (at + 1..lines.len().min(at + 6)).find(|at| {
        let name = exception(&lines[*at].text).map(|(name, _)| name);
        name.is_some_and(|name| ["SyntaxError", "IndentationError", "TabError"].contains(&name))
    })?;
    page.roles[at..end].fill(Role::Trace);
    let parsed = body(page, at, at, Prefix::none(), DEEPEST)?;
    Some((parsed.traceback, parsed.next))
}
