//! What runs out beside memory: figures, open files, threads, the stack.

use super::loops::{calls, is_bounded, mentions, method_calls};
use super::pieces::{free_name, spelled_or_imported};
use super::{Draft, FindingKind, MOST, Saving};
use crate::why::script::change::{Change, Edit, deeper, header};
use crate::why::script::held::Held;
use crate::why::script::origin::{Reading, integer, keyword, method, positional};
use crate::why::script::tree::Node;

pub(super) fn find<'s>(reading: &Reading<'s>) -> Vec<Draft<'s>> {
    let calls = reading.script.all("call");
    calls
        .filter_map(|call| {
            let called = reading.called(call);
            match called.as_deref().unwrap_or_default() {
                "matplotlib.pyplot.figure" | "matplotlib.pyplot.subplots" => figure(reading, call),
                "sys.setrecursionlimit" => recursion(reading, call),
                "threading.Thread" | "multiprocessing.Process" => thread(reading, call),
                _ if reading.held(call) == Some(Held::File) => file(reading, call),
                _ => None,
            }
        })
        .take(MOST)
        .collect()
}

/// A longer piece of code is not shown to have a line put at its end.
const LONGEST: u32 = 20;

/// A figure for each turn of a loop.
fn figure<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let around = call.repeated_by()?;
    let is_closed = calls(around).any(|call| {
        let name = call
            .field("function")
            .map_or("", Node::text)
            .rsplit('.')
            .next()
            .unwrap_or_default();
        matches!(name, "close" | "clf") || (matches!(name, "clear") && call.text().starts_with("fig"))
    });
    // What is shown after the loop must not be closed in it.
    let is_shown = !reading.calls_of("matplotlib.pyplot.show").is_empty();
    if is_closed || is_shown || keyword(call, "num").is_some() {
        return None;
    }
    let statement = call.statement();
    let last = statement.following().last().unwrap_or(statement);
    let close = reading.names.spelled("matplotlib.pyplot.close")?;
    let target = statement.child(0).and_then(|inner| inner.field("left"));
    let figure = target.and_then(|target| match target.kind() {
        "identifier" if !reading.calls(call, &["matplotlib.pyplot.subplots"]) => Some(target),
        "pattern_list" | "tuple_pattern" => target.child(0).filter(|figure| figure.text() != "_"),
        _ => None,
    });
    let is_simple = last.is(&[
        "expression_statement",
        "if_statement",
        "for_statement",
        "with_statement",
    ]);
    let change = match last.end_line() - statement.line() < LONGEST && is_simple {
        true => {
            let close = format!("{close}({})", figure.map_or("", Node::text));
            Change::edit(statement, last, Vec::new()).followed_by(&[close])
        }
        false => Change::edit_lines(
            reading.script,
            header(call),
            vec![Edit::add_argument(call, "num=1, clear=True")?],
        ),
    };
    Some(Draft {
        kind: FindingKind::OpenFigures,
        at: call,
        change,
        title: "Close each figure".into(),
        why: "pyplot keeps every figure until it is closed, with all that was drawn into it.".into(),
        saving: Saving::AllButPiece,
        grows_at: Vec::new(),
        command: None,
    })
}

/// Deeper than this no stack of 8 MiB goes: a call of Python takes some 500 bytes of it at the least.
const DEEPEST: i64 = 15_000;

fn recursion<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let limit = *positional(call).first()?;
    if depth(limit)? <= DEEPEST {
        return None;
    }
    Some(Draft {
        kind: FindingKind::RecursionLimit,
        at: call,
        change: Change::edit_lines(reading.script, header(call), vec![Edit::replace(limit, "10_000")]),
        title: "Let Python stop before the stack is full".into(),
        why: "Python's limit is what turns endless recursion into an error that can be read. Beyond what the stack holds \
              the process dies of a segmentation fault instead; a loop with a list of its own has no such limit."
            .into(),
        saving: Saving::Nothing,
        grows_at: Vec::new(),
        command: None,
    })
}

/// What a number is that is written as one, as a power or as a float.
fn depth(node: Node<'_>) -> Option<i64> {
    let text: String = node.text().split_whitespace().collect();
    match text.split_once("**") {
        Some((base, power)) => {
            let (base, power) = (
                base.parse::<i64>().ok()?,
                power.split('-').next()?.parse::<u32>().ok()?,
            );
            Some(base.saturating_pow(power))
        }
        None => integer(node).or_else(|| {
            let float = text.trim_start_matches("int(").trim_end_matches(')');
            float.parse::<f64>().ok().map(|value| value as i64)
        }),
    }
}

/// `open` in a loop, and nobody closes it.
fn file<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    // Only the call that opens, not what is done with it.
    let is_open = call
        .field("function")
        .is_some_and(|function| function.text().ends_with("open"));
    let is_comprehended = call.ancestors().find(|node| {
        node.is(&[
            "list_comprehension",
            "dictionary_comprehension",
            "set_comprehension",
        ])
    });
    let body = is_comprehended.and_then(|comprehension| comprehension.field("body"));
    let is_listed = body.is_some_and(|body| body == call || body.field("value") == Some(call));
    if !is_open || (call.repeated_by().is_none() && !is_listed) {
        return None;
    }
    let change = match is_listed || is_collected(call) {
        true => {
            let path = *positional(call).first()?;
            Change::edit_lines(
                reading.script,
                header(call),
                vec![Edit::replace(call, path.text())],
            )
        }
        false => with_open(call)?,
    };
    Some(Draft {
        kind: FindingKind::OpenFilesInLoop,
        at: call,
        change,
        title: "Close each file".into(),
        why: "Files that stay open count against the limit of the process, often 1,024, and each has its buffer. `with` \
              closes one when its block ends; a collection holds the names and opens one when it is its turn."
            .into(),
        saving: Saving::Unknown,
        grows_at: Vec::new(),
        command: None,
    })
}

/// Whether an open file is put into a list or a dictionary.
fn is_collected(call: Node<'_>) -> bool {
    let outer = call.ancestors().nth(1);
    let appended = outer
        .and_then(method)
        .is_some_and(|(_, name)| matches!(name, "append" | "add"));
    let stored = call.parent().is_some_and(|parent| {
        parent.kind() == "assignment"
            && parent
                .field("left")
                .is_some_and(|left| left.kind() == "subscript")
    });
    appended || stored
}

/// `file = open(…)` and what uses it, as a `with`.
fn with_open<'s>(call: Node<'s>) -> Option<Change> {
    let name = super::pieces::assigned_name(call)?;
    let statement = call.statement();
    let around = call.repeated_by()?;
    let is_closed = method_calls(around, "close").any(|(_, object)| object.text() == name);
    let last = statement
        .following()
        .filter(|next| mentions(*next, name))
        .last()?;
    let first = statement.following().next()?;
    let script = call.script();
    let indent = &script.source()[script.line_start(statement.line())..statement.start()];
    if is_closed || !indent.trim().is_empty() || first.line() == statement.line() {
        return None;
    }
    let mut edits = vec![Edit::replace(
        statement,
        format!("with {} as {name}:", call.text()),
    )];
    edits.extend(deeper(first, last));
    Some(Change::edit(statement, last, edits))
}

/// `Thread(target=work, args=(item,)).start()` for each item of a loop.
fn thread<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let around = call
        .repeated_by()
        .filter(|around| around.kind() == "for_statement")?;
    let target = keyword(call, "target")?;
    let arguments = keyword(call, "args").filter(|arguments| arguments.is(&["tuple", "list"]));
    let given = keyword(call, "args").is_some() && arguments.is_none() || keyword(call, "kwargs").is_some();
    if given || is_bounded(reading, around) {
        return None;
    }
    let is_process = reading.calls(call, &["multiprocessing.Process"]);
    let executor = if is_process {
        "ProcessPoolExecutor"
    } else {
        "ThreadPoolExecutor"
    };
    let path = format!("concurrent.futures.{executor}");
    let import = format!("from concurrent.futures import {executor}");
    let (executor, imports) = spelled_or_imported(reading, &path, &import);
    let pool = free_name(call, &["pool", "executor", "worker_pool"]);
    let arguments = arguments
        .into_iter()
        .flat_map(Node::children)
        .map(|argument| format!(", {}", argument.text()));
    let submit = format!(
        "{pool}.submit({}{})",
        target.text(),
        arguments.collect::<String>()
    );
    let statement = call.statement();
    let mut edits = vec![Edit::replace(statement, submit)];
    let name = super::pieces::assigned_name(call);
    let inner = method(statement.child(0)?).filter(|(object, name)| *object == call && *name == "start");
    // Whatever else is done with the thread would have to go as well.
    match name {
        Some(name) => {
            let others: Vec<Node> = statement
                .following()
                .filter(|next| mentions(*next, name))
                .collect();
            let is_known = |next: &Node<'s>| {
                let only = next.child(0).and_then(method);
                only.is_some_and(|(object, called)| {
                    (object.text() == name && called == "start")
                        || called == "append"
                        || (called == "setDaemon")
                })
            };
            if !others.iter().all(is_known) {
                return None;
            }
            edits.extend(others.iter().map(|next| Edit::take_out(*next)));
        }
        None => {
            inner?;
        }
    }
    let above = [(0, format!("with {executor}(max_workers=8) as {pool}:"))];
    Some(Draft {
        kind: FindingKind::ThreadsInLoop,
        at: call,
        change: Change::nested(around, around, &above, edits)?.led_by(&imports),
        title: "Let a few workers take turns".into(),
        why: match is_process {
            true => "A process for each turn of the loop, all at once, each with its own interpreter and its own memory.",
            false => "A thread for each turn of the loop, all at once, each with its own stack.",
        }
        .into(),
        saving: Saving::Unknown,
        grows_at: Vec::new(),
        command: None,
    })
}
