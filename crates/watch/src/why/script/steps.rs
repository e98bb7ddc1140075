//! What the sources say of a line that grew: whether a loop runs it step by step, and what those steps keep.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tidegate_runs::Frame;

use super::finding::{Finding, FindingKind};
use super::origin::{method, positional};
use super::sources::absolute;
use super::tree::{Node, Script};
use super::{in_script, is_notebook};

/// The scripts of a run, asked for what stands at a place of a stack.
#[derive(Debug, Default)]
pub struct Scripts {
    /// Where the command ran: files of stacks may be below it.
    folder: PathBuf,
    read: HashMap<PathBuf, Read>,
}

#[derive(Debug)]
struct Read {
    script: Script,
    findings: Vec<Finding>,
}

/// What a place of a stack has to do with steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::why) struct Step {
    /// A loop runs it again and again, within its own function.
    pub(in crate::why) repeated: bool,
    /// One of these loops keeps something from turn to turn.
    pub(in crate::why) loop_keeps: bool,
    /// Its function keeps something each time it is called.
    pub(in crate::why) function_keeps: bool,
    /// It reads something whole, in one call.
    pub(in crate::why) loads: bool,
}

impl Scripts {
    pub fn parse(folder: &Path, sources: &[(PathBuf, String)]) -> Scripts {
        let scripts = sources.iter().filter(|(file, _)| !is_notebook(file));
        let read = scripts.filter_map(|(file, source)| {
            let read = Read {
                script: Script::parse(source)?,
                findings: in_script(source),
            };
            Some((file.clone(), read))
        });
        Scripts {
            folder: folder.to_path_buf(),
            read: read.collect(),
        }
    }

    fn at(&self, frame: &Frame) -> Option<(&Read, Node<'_>)> {
        let read = self.read.get(&absolute(&self.folder, Path::new(&frame.file)))?;
        Some((read, statement_at(&read.script, frame.line)?))
    }

    /// `None` where the source is not known.
    pub(in crate::why) fn step(&self, frame: &Frame) -> Option<Step> {
        let (read, statement) = self.at(frame)?;
        let function = statement.function();
        let is_cached = |function: Node<'_>| {
            let lines = function.line()..=function.end_line();
            read.findings.iter().any(|finding| {
                finding.kind == FindingKind::UnboundedCache
                    && finding.grows_at.iter().any(|grows| lines.contains(&grows.first))
            })
        };
        Some(Step {
            repeated: statement.repeated_by().is_some(),
            loop_keeps: statement.loops().any(|around| turns_keep(around)),
            function_keeps: function.is_some_and(|function| keeps(function) || is_cached(function)),
            loads: read.findings.iter().any(|finding| {
                is_load(finding.kind) && (finding.line..=finding.end_line).contains(&frame.line)
            }),
        })
    }

    /// Whether a line does nothing but wait: `time.sleep(1)`, `await asyncio.sleep(1)`, `thread.join()`.
    pub(in crate::why) fn waits(&self, frame: &Frame) -> bool {
        const WAITS: [&str; 6] = ["acquire", "join", "poll", "select", "sleep", "wait"];
        let statement = self.at(frame).map(|(_, statement)| statement);
        let Some(mut node) = statement.filter(|node| node.kind() == "expression_statement") else {
            return false;
        };
        while let Some(inner) = node
            .child(0)
            .filter(|_| node.is(&["expression_statement", "await"]))
        {
            node = inner;
        }
        let is_bare = |call: Node<'_>| !positional(call).into_iter().any(|value| value.kind() == "call");
        node.kind() == "call" && called(node).is_some_and(|name| WAITS.contains(&name)) && is_bare(node)
    }

    /// Where the innermost loop around a place keeps what it makes, if that is one line and not the place itself.
    pub(in crate::why) fn kept_beside(&self, frame: &Frame) -> Option<Frame> {
        let (_, statement) = self.at(frame)?;
        let around = statement.repeated_by()?;
        let kept: Vec<(Node<'_>, bool)> = own_nodes(around).filter_map(kept_by).collect();
        let makes: Vec<u32> = lines_of(kept.iter().filter(|(_, makes)| *makes));
        let line = match (&makes[..], &lines_of(kept.iter())[..]) {
            (&[line], _) | (&[], &[line]) => line,
            _ => return None,
        };
        (!(statement.line()..=statement.end_line()).contains(&line)).then(|| Frame {
            line,
            ..frame.clone()
        })
    }
}

/// One call that ends with all of something in memory, however long it takes.
fn is_load(kind: FindingKind) -> bool {
    matches!(
        kind,
        FindingKind::WholeTable
            | FindingKind::WholeArray
            | FindingKind::WholeText
            | FindingKind::WholeObject
            | FindingKind::WholeDataset
            | FindingKind::AllImages
    )
}

/// The innermost statement that a line belongs to.
fn statement_at(script: &Script, line: u32) -> Option<Node<'_>> {
    let is_statement = |node: &Node<'_>| {
        node.parent()
            .is_some_and(|parent| parent.is(&["block", "module"]))
    };
    let holds = |node: &Node<'_>| node.line() <= line && line <= node.end_line();
    script
        .nodes()
        .filter(|node| is_statement(node) && holds(node))
        .last()
}

/// What is inside a loop or a function and runs with it: not the functions that are only defined there.
fn own_nodes(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let own = match node.kind() {
        "function_definition" => Some(node),
        _ => node.function(),
    };
    node.within().filter(move |inner| inner.function() == own)
}

fn keeps(node: Node<'_>) -> bool {
    own_nodes(node).any(|node| kept_by(node).is_some())
}

/// Whether a turn of a loop keeps something, itself or in a function of the same script that it calls.
fn turns_keep(around: Node<'_>) -> bool {
    let script = around.script();
    let is_called = |function: &Node<'_>| {
        let name = function.field("name").map_or("", Node::text);
        // `Session(…)` runs `Session.__init__`.
        let name = match name {
            "__init__" => class_of(*function).and_then(|class| class.field("name")),
            _ => function.field("name"),
        };
        let name = name.map_or("", Node::text);
        around.all("call").any(|call| called(call) == Some(name))
    };
    keeps(around)
        || script
            .all("function_definition")
            .any(|function| is_called(&function) && keeps(function))
}

fn class_of(function: Node<'_>) -> Option<Node<'_>> {
    function
        .ancestors()
        .find(|node| node.kind() == "class_definition")
}

/// The last name of what is called: `append` of `self.parts.append(…)`.
fn called(call: Node<'_>) -> Option<&str> {
    let function = call.field("function")?;
    match function.kind() {
        "attribute" => function.field("attribute").map(Node::text),
        _ => Some(function.text()),
    }
}

/// A node that puts something where it stays, and whether that something is made there, too.
fn kept_by(node: Node<'_>) -> Option<(Node<'_>, bool)> {
    const METHODS: [&str; 10] = [
        "add",
        "append",
        "appendleft",
        "extend",
        "extendleft",
        "insert",
        "put",
        "put_nowait",
        "setdefault",
        "update",
    ];
    const JOINS: [&str; 7] = [
        "append",
        "cat",
        "concat",
        "concatenate",
        "hstack",
        "stack",
        "vstack",
    ];
    let makes = |value: Node<'_>| {
        value.within().any(|node| {
            node.is(&["call", "binary_operator", "list", "dictionary", "set"])
                || node.kind().ends_with("comprehension")
        })
    };
    match node.kind() {
        "call" if method(node).is_some_and(|(_, name)| METHODS.contains(&name)) => {
            Some((node, positional(node).into_iter().any(makes)))
        }
        "augmented_assignment" => {
            let right = node.field("right")?;
            (!right.is(&["integer", "float"])).then(|| (node, makes(right)))
        }
        "assignment" => {
            let (left, right) = (node.field("left")?, node.field("right")?);
            let goes_on = left.is(&["identifier", "attribute"])
                && right
                    .within()
                    .any(|inner| inner.kind() == left.kind() && inner.text() == left.text())
                && (right.kind() == "binary_operator"
                    || right.kind() == "call" && called(right).is_some_and(|name| JOINS.contains(&name)));
            (left.kind() == "subscript" || goes_on).then(|| (node, makes(right)))
        }
        _ => None,
    }
}

/// The lines of these, each once.
fn lines_of<'k, 's: 'k>(kept: impl Iterator<Item = &'k (Node<'s>, bool)>) -> Vec<u32> {
    let mut lines: Vec<u32> = kept.map(|(node, _)| node.statement().line()).collect();
    lines.dedup();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scripts(source: &str) -> Scripts {
        Scripts::parse(Path::new("/job"), &[("/job/train.py".into(), source.into())])
    }

    fn at(line: u32) -> Frame {
        Frame {
            file: "train.py".into(),
            line,
            function: "<module>".into(),
        }
    }

    /// The marked lines (`#`), each as `repeated loop function loads`, as far as they are so.
    fn check(source: &str, expected: &[&str]) {
        let scripts = scripts(source);
        let marked = source.lines().zip(1..).filter(|(text, _)| text.ends_with('#'));
        let told: Vec<String> = marked
            .map(|(_, line)| {
                let step = scripts.step(&at(line)).expect("a known source");
                let words = [
                    (step.repeated, "repeated"),
                    (step.loop_keeps, "loop"),
                    (step.function_keeps, "function"),
                    (step.loads, "loads"),
                ];
                let words = words.iter().filter(|(is_so, _)| *is_so).map(|(_, word)| *word);
                words.collect::<Vec<_>>().join(" ")
            })
            .collect();
        assert_eq!(told, expected, "{source}");
    }

    #[test]
    fn steps_and_what_they_keep_are_found() {
        check(
            "kept = []\nfor step in range(9):\n    kept.append(make())  #\n",
            &["repeated loop"],
        );
        check(
            "for step in range(9):\n    values = make()  #\n    step += 1\n",
            &["repeated"],
        );
        check("rows = [make() for _ in range(9)]  #\n", &[""]);
        check(
            "import pandas as pd\nfor name in names:\n    table = pd.read_csv(name)  #\n    parts.append(table)\n",
            &["repeated loop loads"],
        );
        check(
            "class Session:\n    def __init__(self):\n        self.rows = make()  #\n        living.append(self)\n\
             for n in range(9):\n    s = Session()  #\n",
            &["function", "repeated loop"],
        );
        check(
            "from functools import lru_cache\n@lru_cache(maxsize=None)\ndef features(row):\n    return make(row)  #\n\
             @lru_cache(maxsize=9)\ndef bounded(row):\n    return make(row)  #\n",
            &["function", ""],
        );
        check(
            "for epoch in range(9):\n    def later():\n        kept.append(1)\n    work()  #\n",
            &["repeated"],
        );
        check(
            "while True:\n    for x in y:\n        z = x  #\n    kept[x] = z\n",
            &["repeated loop"],
        );
    }

    #[test]
    fn unknown_sources_say_nothing() {
        let scripts = scripts("for step in range(9):\n    kept.append(step)\n");
        assert_eq!(scripts.step(&at(99)), None);
        let elsewhere = Frame {
            file: "other.py".into(),
            ..at(2)
        };
        assert_eq!(scripts.step(&elsewhere), None);
    }

    #[test]
    fn lines_that_only_wait_are_known() {
        let waits = |line: &str| scripts(line).waits(&at(1));
        for line in [
            "time.sleep(0.1)",
            "sleep(rate * 2)",
            "await asyncio.sleep(1)",
            "thread.join()",
        ] {
            assert!(waits(line), "{line}");
        }
        for line in [
            "kept.append(time.sleep(1))",
            "time.sleep(load())",
            "text = ','.join(words)",
            "x = 1",
        ] {
            assert!(!waits(line), "{line}");
        }
    }

    #[test]
    fn what_a_sleeping_loop_keeps_is_found() {
        let beside = |source: &str, line| scripts(source).kept_beside(&at(line)).map(|frame| frame.line);
        let head = "import time\nwhile True:\n    time.sleep(1)\n";
        assert_eq!(
            beside(&format!("{head}    data.append(bytearray(9))\n"), 3),
            Some(4)
        );
        // Of two that keep, the one that makes something.
        let two = format!("{head}    seen.append(step)\n    data += [load()]\n");
        assert_eq!(beside(&two, 3), Some(5));
        // Either.
        let either = format!("{head}    a.append(load())\n    b.append(load())\n");
        assert_eq!(beside(&either, 3), None);
        assert_eq!(beside(&format!("{head}    print(1)\n"), 3), None);
        assert_eq!(beside("data.append(bytearray(9))\ntime.sleep(1)\n", 2), None);
    }
}
