//! A Python script as a flat tree: parsed once, then walked up and down without recursion.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{ParseOptions, Parser};

/// Longer scripts are not looked at: no person writes them.
pub(super) const MOST_BYTES: usize = 1 << 20;

/// Broken input can make the parser try very many repairs. A script of 20,000 lines takes a tenth of this.
const MOST_TIME: Duration = Duration::from_secs(2);

/// What is nested deeper is left out: Python itself takes no more than a hundred levels.
const DEEPEST: usize = 400;

/// No node: the parent of the root.
const NONE: u32 = u32::MAX;

/// A parsed script. Lines end in `\n` only, whatever they ended in before, and are counted from 1.
#[derive(Debug)]
pub(super) struct Script {
    source: String,
    items: Vec<Item>,
    /// The nodes of each kind, and the identifiers of each name.
    kinds: HashMap<&'static str, Vec<u32>>,
    named: HashMap<Box<str>, Vec<u32>>,
    line_starts: Vec<u32>,
    /// One level of indentation as this script writes it.
    indent: String,
    /// The parser had to guess somewhere.
    broken: bool,
}

/// A node of the tree. They stand in the order of the text, each before what is inside it, so that the inside of a
/// node is a range.
#[derive(Debug)]
struct Item {
    kind: &'static str,
    field: &'static str,
    start: u32,
    end: u32,
    parent: u32,
    /// The first node after all that is inside this one.
    after: u32,
    /// The function, lambda, class, comprehension or module whose names this node sees.
    scope: u32,
}

/// A place in the tree of a script.
#[derive(Clone, Copy)]
pub(super) struct Node<'s> {
    script: &'s Script,
    id: u32,
}

impl Script {
    /// `None` where the parser gives up: too long, or too broken to be read in time.
    pub(super) fn parse(source: &str) -> Option<Script> {
        if source.len() > MOST_BYTES {
            return None;
        }
        let source = source.trim_start_matches('\u{feff}');
        let source = source.replace("\r\n", "\n").replace('\r', "\n");
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_python::LANGUAGE.into()).ok()?;
        let bytes = source.as_bytes();
        let start = Instant::now();
        let mut in_time = |_: &_| match start.elapsed() > MOST_TIME {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let tree = parser.parse_with_options(
            &mut |at, _| bytes.get(at..).unwrap_or_default(),
            None,
            Some(ParseOptions::new().progress_callback(&mut in_time)),
        )?;
        let line_ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let line_starts = std::iter::once(0).chain(line_ends.map(|(at, _)| at as u32 + 1));
        let items = flatten(&tree);
        let mut kinds: HashMap<&str, Vec<u32>> = HashMap::new();
        let mut named: HashMap<Box<str>, Vec<u32>> = HashMap::new();
        for (id, item) in (0..).zip(&items) {
            kinds.entry(item.kind).or_default().push(id);
            if item.kind == "identifier" {
                let name = source
                    .get(item.start as usize..item.end as usize)
                    .unwrap_or_default();
                match named.get_mut(name) {
                    Some(ids) => ids.push(id),
                    None => drop(named.insert(name.into(), vec![id])),
                }
            }
        }
        Some(Script {
            line_starts: line_starts.collect(),
            indent: indent_of(&source, &items),
            broken: tree.root_node().has_error(),
            items,
            kinds,
            named,
            source,
        })
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn indent(&self) -> &str {
        &self.indent
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    pub(super) fn root(&self) -> Node<'_> {
        self.node(0)
    }

    /// Every node, in the order of the text.
    pub(super) fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        (0..self.items.len() as u32).map(|id| self.node(id))
    }

    /// Every node of one kind.
    pub(super) fn all(&self, kind: &str) -> impl Iterator<Item = Node<'_>> {
        self.root().all(kind)
    }

    /// Every place where a name stands, be it a variable's, an attribute's or an argument's.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = Node<'_>> {
        self.root().named(name)
    }

    /// The line of a byte.
    pub(super) fn line_at(&self, byte: usize) -> u32 {
        self.line_starts.partition_point(|start| *start as usize <= byte) as u32
    }

    /// Where a line begins.
    pub(super) fn line_start(&self, line: u32) -> usize {
        let index = (line.max(1) - 1) as usize;
        self.line_starts
            .get(index)
            .map_or(self.source.len(), |start| *start as usize)
    }

    /// Where a line ends, its line end not counted.
    pub(super) fn line_end(&self, line: u32) -> usize {
        let next = self.line_start(line + 1);
        match self.source[..next].ends_with('\n') && next > self.line_start(line) {
            true => next - 1,
            false => next,
        }
    }

    pub(super) fn line_text(&self, line: u32) -> &str {
        &self.source[self.line_start(line)..self.line_end(line)]
    }

    fn node(&self, id: u32) -> Node<'_> {
        Node { script: self, id }
    }
}

/// How much deeper the first block stands than what it belongs to.
fn indent_of(source: &str, items: &[Item]) -> String {
    let ahead = |item: &Item| {
        let until = source.get(..item.start as usize)?;
        let line = until.rsplit('\n').next().unwrap_or_default();
        line.trim().is_empty().then_some(line)
    };
    let mut blocks = items.iter().filter(|item| item.kind == "block");
    let first = blocks.find_map(|block| {
        let deeper = ahead(block)?.strip_prefix(ahead(items.get(block.parent as usize)?)?)?;
        (!deeper.is_empty()).then_some(deeper)
    });
    first.unwrap_or("    ").to_string()
}

/// Comments and punctuation are left out; operators have a field and stay.
fn flatten(tree: &tree_sitter::Tree) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut cursor = tree.walk();
    // The nodes that the cursor is inside of.
    let mut path: Vec<u32> = Vec::new();
    loop {
        let node = cursor.node();
        let field = cursor.field_name().unwrap_or("");
        let kept =
            (node.is_named() || !field.is_empty()) && !matches!(node.kind(), "comment" | "line_continuation");
        if kept {
            let id = items.len() as u32;
            let parent = path.last().copied().unwrap_or(NONE);
            let scope = match items.get(parent as usize) {
                None => 0,
                Some(item) if opens_scope(item.kind) => parent,
                Some(item) => item.scope,
            };
            items.push(Item {
                kind: node.kind(),
                field,
                start: node.start_byte() as u32,
                end: node.end_byte() as u32,
                parent,
                after: id + 1,
                scope,
            });
            if path.len() < DEEPEST && cursor.goto_first_child() {
                path.push(id);
                continue;
            }
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return items;
            }
            if let Some(id) = path.pop() {
                items[id as usize].after = items.len() as u32;
            }
        }
    }
}

fn opens_scope(kind: &str) -> bool {
    matches!(
        kind,
        "module"
            | "function_definition"
            | "lambda"
            | "class_definition"
            | "list_comprehension"
            | "set_comprehension"
            | "dictionary_comprehension"
            | "generator_expression"
    )
}

impl<'s> Node<'s> {
    fn item(self) -> &'s Item {
        &self.script.items[self.id as usize]
    }

    pub(super) fn script(self) -> &'s Script {
        self.script
    }

    /// Its place in the order of the text.
    pub(super) fn id(self) -> u32 {
        self.id
    }

    /// The place after all that is inside it.
    pub(super) fn after(self) -> u32 {
        self.item().after
    }

    pub(super) fn kind(self) -> &'static str {
        self.item().kind
    }

    /// What it is to its parent: `left`, `function`, …
    pub(super) fn role(self) -> &'static str {
        self.item().field
    }

    pub(super) fn start(self) -> usize {
        self.item().start as usize
    }

    pub(super) fn end(self) -> usize {
        self.item().end as usize
    }

    pub(super) fn text(self) -> &'s str {
        self.script
            .source
            .get(self.start()..self.end())
            .unwrap_or_default()
    }

    pub(super) fn line(self) -> u32 {
        self.script.line_at(self.start())
    }

    pub(super) fn end_line(self) -> u32 {
        self.script.line_at(self.end().max(self.start() + 1) - 1)
    }

    pub(super) fn scope(self) -> Node<'s> {
        self.script.node(self.item().scope)
    }

    pub(super) fn parent(self) -> Option<Node<'s>> {
        let parent = self.item().parent;
        (parent != NONE).then(|| self.script.node(parent))
    }

    /// Its parent, the parent of that, and so on.
    pub(super) fn ancestors(self) -> impl Iterator<Item = Node<'s>> {
        std::iter::successors(self.parent(), |node| node.parent())
    }

    pub(super) fn children(self) -> impl Iterator<Item = Node<'s>> {
        let (script, after) = (self.script, self.after());
        let first = (self.id + 1 < after).then(|| script.node(self.id + 1));
        std::iter::successors(first, move |node| {
            (node.after() < after).then(|| script.node(node.after()))
        })
    }

    /// The children of its parent that come after it.
    pub(super) fn following(self) -> impl Iterator<Item = Node<'s>> {
        let script = self.script;
        let after = self.parent().map_or(0, Node::after);
        let next = move |node: &Node<'s>| (node.after() < after).then(|| script.node(node.after()));
        std::iter::successors(next(&self), next)
    }

    pub(super) fn child(self, index: usize) -> Option<Node<'s>> {
        self.children().nth(index)
    }

    /// The child that plays a role. In blocks none does, and they can be long.
    pub(super) fn field(self, role: &str) -> Option<Node<'s>> {
        match self.is(&["block", "module"]) {
            true => None,
            false => self.children().find(|child| child.role() == role),
        }
    }

    /// Itself and all that is inside it.
    pub(super) fn within(self) -> impl Iterator<Item = Node<'s>> {
        let script = self.script;
        (self.id..self.after()).map(move |id| script.node(id))
    }

    /// All of one kind among them, found without looking at the others.
    pub(super) fn all(self, kind: &str) -> impl Iterator<Item = Node<'s>> + use<'s> {
        self.of(self.script.kinds.get(kind))
    }

    /// All identifiers of this name among them.
    pub(super) fn named(self, name: &str) -> impl Iterator<Item = Node<'s>> + use<'s> {
        self.of(self.script.named.get(name))
    }

    fn of(self, ids: Option<&'s Vec<u32>>) -> impl Iterator<Item = Node<'s>> + use<'s> {
        let ids = ids.map_or(&[][..], Vec::as_slice);
        let start = ids.partition_point(|id| *id < self.id);
        let end = ids.partition_point(|id| *id < self.after());
        ids[start..end].iter().map(move |id| self.script.node(*id))
    }

    pub(super) fn contains(self, other: Node<'s>) -> bool {
        (self.id..self.after()).contains(&other.id)
    }

    pub(super) fn is(self, kinds: &[&str]) -> bool {
        kinds.contains(&self.kind())
    }

    /// The statement that it is a part of: the child of a block or of the module.
    pub(super) fn statement(self) -> Node<'s> {
        let mut node = self;
        while let Some(parent) = node.parent() {
            if parent.is(&["block", "module"]) {
                return node;
            }
            node = parent;
        }
        node
    }

    /// The function that it is inside of.
    pub(super) fn function(self) -> Option<Node<'s>> {
        self.ancestors().find(|node| node.kind() == "function_definition")
    }

    /// The innermost `for` or `while` that runs it again and again, within its own function.
    pub(super) fn repeated_by(self) -> Option<Node<'s>> {
        let mut inner = self;
        for node in self.ancestors() {
            match node.kind() {
                "for_statement" if inner.role() == "body" => return Some(node),
                "while_statement" if inner.role() != "alternative" => return Some(node),
                "function_definition" | "lambda" | "class_definition" => return None,
                _ => inner = node,
            }
        }
        None
    }

    /// All loops that run it again and again, the innermost first.
    pub(super) fn loops(self) -> impl Iterator<Item = Node<'s>> {
        std::iter::successors(self.repeated_by(), |node| node.repeated_by())
    }
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && std::ptr::eq(self.script, other.script)
    }
}

impl Eq for Node<'_> {}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.kind(), self.text())
    }
}
