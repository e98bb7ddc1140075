//! Where a value comes from, written as the calls that made it: `pandas.read_csv().dropna()`.
//!
//! A call adds `()`, an item or a part adds `[]`, and what belongs to the script itself begins with a dot, so that it is
//! never taken for a library's.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::held::Held;
use super::names::{Bound, Names, canonical};
use super::tree::{Node, Script};

/// A script that was read: its tree, its names, and where its values come from.
pub(super) struct Reading<'s> {
    pub(super) script: &'s Script,
    pub(super) names: Names<'s>,
    known: RefCell<HashMap<u32, Option<Rc<str>>>>,
    /// What values are, as far as somebody asked.
    pub(super) values: RefCell<HashMap<u32, Option<Held>>>,
    /// Every call by what it calls, once somebody asked.
    calls: OnceCell<HashMap<Rc<str>, Vec<Node<'s>>>>,
    /// What each function returns last, and which ones yield.
    returns: HashMap<u32, Node<'s>>,
    generators: HashSet<u32>,
    /// The names of all functions.
    functions: HashSet<&'s str>,
}

/// Names that lead to names: further than this no person could follow either, and circles end.
const DEEPEST: u32 = 40;

/// Longer origins match no rule, and a script that calls on and on would make them longer and longer.
const LONGEST: usize = 160;

/// The functions of Python itself that the rules know.
const BUILTINS: [&str; 17] = [
    "dict",
    "enumerate",
    "filter",
    "float",
    "int",
    "iter",
    "len",
    "list",
    "map",
    "object",
    "open",
    "range",
    "set",
    "sorted",
    "str",
    "tuple",
    "zip",
];

impl<'s> Reading<'s> {
    pub(super) fn of(script: &'s Script) -> Reading<'s> {
        let in_function = |node: Node<'s>| Some((node.function()?.id(), node));
        let returns = script.all("return_statement").filter_map(in_function);
        let yields = script.all("yield").filter_map(in_function);
        Reading {
            script,
            names: Names::of(script),
            known: RefCell::default(),
            values: RefCell::default(),
            calls: OnceCell::new(),
            returns: returns
                .filter_map(|(function, node)| Some((function, node.child(0)?)))
                .collect(),
            functions: script
                .all("function_definition")
                .filter_map(|function| Some(function.field("name")?.text()))
                .collect(),
            generators: yields.map(|(function, _)| function).collect(),
        }
    }

    pub(super) fn is_generator(&self, definition: Node<'s>) -> bool {
        self.generators.contains(&definition.id())
    }

    /// Where the value of an expression comes from, as far as the script tells.
    pub(super) fn origin(&self, node: Node<'s>) -> Option<Rc<str>> {
        self.origin_within(node, 0)
    }

    /// What a call calls.
    pub(super) fn called(&self, call: Node<'s>) -> Option<Rc<str>> {
        match call.kind() {
            "call" => self.origin(call.field("function")?),
            _ => None,
        }
    }

    /// Every call of a function, wherever it is.
    pub(super) fn calls_of(&self, function: &str) -> &[Node<'s>] {
        let calls = self.calls.get_or_init(|| {
            let mut calls: HashMap<Rc<str>, Vec<Node<'s>>> = HashMap::new();
            for call in self.script.all("call") {
                if let Some(called) = self.called(call) {
                    calls.entry(called).or_default().push(call);
                }
            }
            calls
        });
        calls.get(function).map_or(&[], Vec::as_slice)
    }

    /// Whether the script has a function or a method of this name.
    pub(super) fn defines(&self, name: &str) -> bool {
        self.functions.contains(name)
    }

    /// Whether a call calls one of these.
    pub(super) fn calls(&self, call: Node<'s>, functions: &[&str]) -> bool {
        self.called(call)
            .is_some_and(|called| functions.contains(&&*called))
    }

    fn origin_within(&self, node: Node<'s>, depth: u32) -> Option<Rc<str>> {
        if depth > DEEPEST {
            return None;
        }
        if let Some(known) = self.known.borrow().get(&node.id()) {
            return known.clone();
        }
        // Whoever comes here again on the way is in a circle.
        self.known.borrow_mut().insert(node.id(), None);
        let origin = self
            .find(node, depth + 1)
            .filter(|origin| origin.len() <= LONGEST);
        let origin = origin.map(Rc::from);
        self.known.borrow_mut().insert(node.id(), origin.clone());
        origin
    }

    fn find(&self, node: Node<'s>, depth: u32) -> Option<String> {
        let of = |node: Node<'s>| self.origin_within(node, depth).map(|origin| origin.to_string());
        match node.kind() {
            "identifier" => self.of_name(node, depth),
            "attribute" => {
                let (object, name) = (node.field("object")?, node.field("attribute")?);
                if object.text() == "self" {
                    let class = node.ancestors().find(|node| node.kind() == "class_definition")?;
                    return of(*self.names.attribute(class, name.text()).last()?);
                }
                Some(canonical(&format!("{}.{}", of(object)?, name.text())))
            }
            "call" => self.of_call(node, depth),
            "subscript" => Some(format!("{}[]", of(node.field("value")?)?)),
            "parenthesized_expression" | "await" | "conditional_expression" | "type" => of(node.child(0)?),
            "binary_operator" | "boolean_operator" => {
                // In `1 - x` it is `x` that tells.
                let left = of(node.field("left")?);
                let right = || of(node.field("right")?);
                left.clone()
                    .filter(|left| !left.starts_with("builtins."))
                    .or_else(right)
                    .or(left)
            }
            "unary_operator" => of(node.field("argument")?),
            "named_expression" => of(node.field("value")?),
            "list" | "list_comprehension" => Some("builtins.list()".into()),
            "dictionary" | "dictionary_comprehension" => Some("builtins.dict()".into()),
            "set" | "set_comprehension" => Some("builtins.set()".into()),
            "string" | "concatenated_string" => Some("builtins.str()".into()),
            "integer" => Some("builtins.int()".into()),
            "float" => Some("builtins.float()".into()),
            "generator_expression" => Some(".generator".into()),
            _ => None,
        }
    }

    fn of_name(&self, node: Node<'s>, depth: u32) -> Option<String> {
        let of = |node: Node<'s>| self.origin_within(node, depth);
        match self.names.bound(node.text(), node) {
            Some(Bound::Import(path)) => Some(path.clone()),
            Some(Bound::Value(value) | Bound::Opened(value)) => Some(of(*value)?.to_string()),
            Some(Bound::Part(value, _)) => Some(format!("{}[]", of(*value)?)),
            Some(Bound::Item(value)) => Some(format!("{}[]", of(*value)?)),
            // A value of the type that the annotation names.
            Some(Bound::Parameter(annotation)) => Some(format!("{}()", of((*annotation)?)?)),
            Some(Bound::Definition(_)) => Some(format!(".{}", node.text())),
            Some(Bound::Other) => None,
            None if BUILTINS.contains(&node.text()) => Some(format!("builtins.{}", node.text())),
            None => Some(canonical(&format!(
                "{}.{}",
                self.names.stars.last()?,
                node.text()
            ))),
        }
    }

    fn of_call(&self, call: Node<'s>, depth: u32) -> Option<String> {
        let function = call.field("function")?;
        if function.kind() == "identifier"
            && let Some(Bound::Definition(definition)) = self.names.bound(function.text(), function)
            && definition.kind() == "function_definition"
        {
            return match self.is_generator(*definition) {
                true => Some(".generator".into()),
                false => {
                    let returned = self.returns.get(&definition.id())?;
                    Some(self.origin_within(*returned, depth)?.to_string())
                }
            };
        }
        let called = self.origin_within(function, depth)?;
        let in_pieces = called.starts_with("pandas.read_")
            && (keyword(call, "chunksize").is_some() || keyword(call, "iterator").is_some());
        Some(format!("{called}{}", if in_pieces { "(pieces)" } else { "()" }))
    }
}

/// The value of a call's keyword argument; `None` literals are as good as not given.
pub(super) fn keyword<'s>(call: Node<'s>, name: &str) -> Option<Node<'s>> {
    keyword_argument(call, name)?
        .field("value")
        .filter(|value| value.kind() != "none")
}

/// A call's keyword argument as a whole.
pub(super) fn keyword_argument<'s>(call: Node<'s>, name: &str) -> Option<Node<'s>> {
    call.field("arguments")?.children().find(|argument| {
        argument.kind() == "keyword_argument" && argument.field("name").map_or("", Node::text) == name
    })
}

/// The arguments of a call that have no name. A generator that stands for the whole list is the first.
pub(super) fn positional(call: Node<'_>) -> Vec<Node<'_>> {
    match call.field("arguments") {
        Some(list) if list.kind() == "generator_expression" => vec![list],
        Some(list) => list
            .children()
            .filter(|argument| argument.kind() != "keyword_argument")
            .collect(),
        None => Vec::new(),
    }
}

/// Whether a call hands on arguments that cannot be seen: `f(*args, **options)`.
pub(super) fn has_hidden_arguments(call: Node<'_>) -> bool {
    let arguments = call.field("arguments");
    arguments.is_some_and(|list| {
        list.children()
            .any(|argument| argument.is(&["list_splat", "dictionary_splat"]))
    })
}

/// The argument at a place, or under its name.
pub(super) fn argument<'s>(call: Node<'s>, place: usize, name: &str) -> Option<Node<'s>> {
    keyword(call, name).or_else(|| positional(call).get(place).copied())
}

/// The object and the name of a method call: `a.b` of `a.b()`.
pub(super) fn method(call: Node<'_>) -> Option<(Node<'_>, &str)> {
    let function = call.field("function").filter(|node| node.kind() == "attribute")?;
    Some((function.field("object")?, function.field("attribute")?.text()))
}

/// What a string literal says, if it says it without computing.
pub(super) fn string(node: Node<'_>) -> Option<&str> {
    let plain = node.kind() == "string" && !node.children().any(|part| part.kind() == "interpolation");
    let mut content = node.children().filter(|part| part.kind() == "string_content");
    match (plain, content.next()) {
        (true, Some(content)) if content.children().next().is_none() => Some(content.text()),
        (true, None) => Some(""),
        _ => None,
    }
}

/// What an integer literal says: `1_000`, `-1`.
pub(super) fn integer(node: Node<'_>) -> Option<i64> {
    match node.kind() {
        "integer" => node.text().replace('_', "").parse().ok(),
        "unary_operator" if node.text().starts_with('-') => {
            integer(node.field("argument")?).map(|value| -value)
        }
        _ => None,
    }
}

/// The nodes of a function's own body, without the functions and classes inside it.
pub(super) fn own_nodes<'s>(definition: Node<'s>) -> impl Iterator<Item = Node<'s>> {
    definition
        .field("body")
        .into_iter()
        .flat_map(Node::within)
        .filter(move |node| node.function() == Some(definition))
}
