//! Rewriting a few lines of a script: edits inside them, or other statements in their place.

use super::finding::{Finding, FindingKind, Lines, Saving};
use super::tree::{Node, Script};

/// Whole lines of a script, and what would stand in their place.
#[derive(Debug, Clone)]
pub(super) struct Change {
    lines: (u32, u32),
    before: String,
    after: String,
}

/// Other text for a piece of the source.
#[derive(Debug, Clone)]
pub(super) struct Edit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) text: String,
}

impl Edit {
    pub(super) fn replace(node: Node<'_>, text: impl Into<String>) -> Edit {
        Edit {
            start: node.start(),
            end: node.end(),
            text: text.into(),
        }
    }

    pub(super) fn insert(at: usize, text: impl Into<String>) -> Edit {
        Edit {
            start: at,
            end: at,
            text: text.into(),
        }
    }

    /// Takes out a statement with the line that it stands on.
    pub(super) fn take_out(statement: Node<'_>) -> Edit {
        let script = statement.script();
        let (start, end) = (
            script.line_start(statement.line()),
            script.line_start(statement.end_line() + 1),
        );
        let is_alone = script.source()[start..statement.start()].trim().is_empty();
        match is_alone {
            true => Edit {
                start,
                end,
                text: String::new(),
            },
            false => Edit::replace(statement, "pass"),
        }
    }

    /// Adds `name=value` to a call. What is written over several lines goes on in the line of its last argument.
    pub(super) fn add_argument(call: Node<'_>, argument: &str) -> Option<Edit> {
        let list = call
            .field("arguments")
            .filter(|list| list.kind() == "argument_list")?;
        Some(match list.children().last() {
            Some(last) => Edit::insert(last.end(), format!(", {argument}")),
            None => Edit::insert(list.start() + 1, argument),
        })
    }

    /// Takes an argument out of a call, with its comma.
    pub(super) fn take_argument(call: Node<'_>, argument: Node<'_>) -> Option<Edit> {
        let arguments: Vec<Node> = call.field("arguments")?.children().collect();
        let place = arguments.iter().position(|other| *other == argument)?;
        let (start, end) = match (place.checked_sub(1), arguments.get(place + 1)) {
            (_, Some(next)) => (argument.start(), next.start()),
            (Some(last), None) => (arguments[last].end(), argument.end()),
            (None, None) => (argument.start(), argument.end()),
        };
        Some(Edit {
            start,
            end,
            text: String::new(),
        })
    }
}

/// A new line: how deep below the statement it takes the place of, and its text.
pub(super) type Line = (usize, String);

impl Change {
    /// Edits inside the lines of one statement, or from one to another.
    pub(super) fn edit(first: Node<'_>, last: Node<'_>, edits: Vec<Edit>) -> Change {
        Change::edit_lines(
            first.script(),
            (first.line(), last.end_line().max(first.line())),
            edits,
        )
    }

    /// Edits inside some lines.
    pub(super) fn edit_lines(script: &Script, lines: (u32, u32), edits: Vec<Edit>) -> Change {
        let (start, end) = (script.line_start(lines.0), script.line_end(lines.1));
        Change {
            lines,
            before: script.source()[start..end].to_string(),
            after: edited(script, start, end, edits)
                .trim_end_matches('\n')
                .to_string(),
        }
    }

    /// Other statements in the place of one, or of all from one to another. `None` where others share its lines.
    pub(super) fn statements(first: Node<'_>, last: Node<'_>, new: &[Line]) -> Option<Change> {
        let script = first.script();
        let lines = (first.line(), last.end_line().max(first.line()));
        let (start, end) = (script.line_start(lines.0), script.line_end(lines.1));
        let ahead = &script.source()[start..first.start()];
        let behind = script.source()[last.end().min(end)..end].trim();
        if !(behind.is_empty() || behind.starts_with('#')) {
            return None;
        }
        let indent = &ahead[..ahead.len() - ahead.trim_start().len()];
        let is_only = first
            .parent()
            .is_some_and(|block| block.kind() == "block" && block.children().count() == 1);
        // `if ready: df = …` has to be opened up before a block can stand there.
        let (head, base) = match ahead.trim() {
            "" => (None, indent.to_string()),
            head if head.ends_with(':') && is_only => (
                Some(format!("{indent}{head}")),
                format!("{indent}{}", script.indent()),
            ),
            _ => return None,
        };
        let mut rendered: Vec<String> = new.iter().map(|line| render(script, &base, line)).collect();
        if let (Some(line), false) = (rendered.first_mut(), behind.is_empty()) {
            *line = format!("{line}  {behind}");
        }
        Some(Change {
            lines,
            before: script.source()[start..end].to_string(),
            after: head.into_iter().chain(rendered).collect::<Vec<_>>().join("\n"),
        })
    }

    /// Whole lines, from one statement to another, put one level deeper below new lines, with edits inside them.
    pub(super) fn nested(
        first: Node<'_>,
        last: Node<'_>,
        above: &[Line],
        edits: Vec<Edit>,
    ) -> Option<Change> {
        let script = first.script();
        let lines = (first.line(), last.end_line());
        let (start, end) = (script.line_start(lines.0), script.line_end(lines.1));
        let indent = &script.source()[start..first.start()];
        if !indent.trim().is_empty() {
            return None;
        }
        let mut edits = edits;
        for _ in above {
            edits.extend(deeper(first, last));
        }
        let above = above.iter().map(|line| render(script, indent, line));
        let below = edited(script, start, end, edits);
        Some(Change {
            lines,
            before: script.source()[start..end].to_string(),
            after: above
                .chain([below.trim_end_matches('\n').to_string()])
                .collect::<Vec<_>>()
                .join("\n"),
        })
    }

    pub(super) fn changes_something(&self) -> bool {
        self.before != self.after
    }

    /// More lines ahead of what this change puts there, at the depth of the first.
    pub(super) fn led_by(mut self, above: &[String]) -> Change {
        let indent = &self.before[..self.before.len() - self.before.trim_start().len()];
        let above: String = above.iter().map(|line| format!("{indent}{line}\n")).collect();
        self.after.insert_str(0, &above);
        self
    }

    /// More lines after what this change puts there, at the depth of the first.
    pub(super) fn followed_by(mut self, below: &[String]) -> Change {
        let indent = &self.before[..self.before.len() - self.before.trim_start().len()];
        let below: String = below.iter().map(|line| format!("\n{indent}{line}")).collect();
        self.after.push_str(&below);
        self
    }
}

/// Puts the lines from one statement to another a level deeper, but for those that begin inside a string.
pub(super) fn deeper<'s>(first: Node<'s>, last: Node<'s>) -> impl Iterator<Item = Edit> {
    let script = first.script();
    let lines = (first.line()..=last.end_line()).filter(move |line| {
        let start = script.line_start(*line);
        !script.line_text(*line).trim().is_empty() && !is_inside_string(first, last, start)
    });
    lines.map(|line| Edit::insert(script.line_start(line), script.indent()))
}

/// The text of a node with edits inside it.
pub(super) fn text_with(node: Node<'_>, edits: Vec<Edit>) -> String {
    edited(node.script(), node.start(), node.end(), edits)
}

fn render(script: &Script, base: &str, (level, text): &Line) -> String {
    format!("{base}{}{text}", script.indent().repeat(*level))
}

/// A piece of the source with its edits; of two that overlap the first is made.
fn edited(script: &Script, start: usize, end: usize, mut edits: Vec<Edit>) -> String {
    // Nothing is put into what goes.
    let gone: Vec<(usize, usize)> = edits
        .iter()
        .filter(|edit| edit.text.is_empty())
        .map(|edit| (edit.start, edit.end))
        .collect();
    edits.retain(|edit| {
        let is_in = |(start, end): &(usize, usize)| *start <= edit.start && edit.start < *end;
        edit.text.is_empty() || edit.start != edit.end || !gone.iter().any(is_in)
    });
    edits.sort_by_key(|edit| (edit.start, edit.end));
    let mut text = String::new();
    let mut at = start;
    for edit in edits.iter().filter(|edit| edit.end <= end + 1) {
        if edit.start >= at {
            text.push_str(&script.source()[at..edit.start]);
            text.push_str(&edit.text);
            at = edit.end;
        }
    }
    if at < end {
        text.push_str(&script.source()[at..end]);
    }
    text
}

/// Whether a byte is in the middle of a string, where white space counts.
fn is_inside_string(first: Node<'_>, last: Node<'_>, byte: usize) -> bool {
    let script = first.script();
    let nodes = script
        .nodes()
        .skip(first.id() as usize)
        .take((last.after() - first.id()) as usize);
    nodes
        .filter(|node| node.kind() == "string")
        .any(|string| string.start() < byte && byte < string.end())
}

/// What a rule has found, before it is written down.
pub(super) struct Draft<'s> {
    pub(super) kind: FindingKind,
    /// The expression or statement that was found.
    pub(super) at: Node<'s>,
    pub(super) change: Change,
    pub(super) title: String,
    pub(super) why: String,
    pub(super) saving: Saving,
    /// Other statements whose growth is this one's doing.
    pub(super) grows_at: Vec<Node<'s>>,
    pub(super) command: Option<String>,
}

impl Draft<'_> {
    pub(super) fn finding(self) -> Finding {
        let statement = header(self.at);
        let function = self.at.function().and_then(|function| function.field("name"));
        let script = self.at.script();
        Finding {
            kind: self.kind,
            line: statement.0,
            end_line: statement.1,
            cell: None,
            function: function.map(|name| name.text().to_string()),
            text: script.line_text(self.at.line()).trim().to_string(),
            change: Lines {
                cell: None,
                first: self.change.lines.0,
                last: self.change.lines.1,
            },
            before: self.change.before,
            after: self.change.after,
            title: self.title,
            why: self.why,
            command: self.command,
            saving: self.saving,
            grows_at: self.grows_at.into_iter().map(lines).collect(),
        }
    }
}

fn lines(node: Node<'_>) -> Lines {
    let (first, last) = header(node);
    Lines {
        cell: None,
        first,
        last,
    }
}

/// The lines of the statement around a node; of one with a body, those before it.
pub(super) fn header(node: Node<'_>) -> (u32, u32) {
    let statement = node.statement();
    let body = statement.within().find(|inner| inner.kind() == "block");
    match body {
        Some(body) if !body.contains(node) => {
            let last = statement.within().take_while(|inner| *inner != body);
            let end = last.filter(|inner| *inner != statement).map(Node::end_line).max();
            (
                statement.line(),
                end.unwrap_or(statement.line())
                    .min(body.line().max(statement.line())),
            )
        }
        _ => (statement.line(), statement.end_line()),
    }
}
