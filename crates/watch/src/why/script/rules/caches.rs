//! Caches that keep everything they were ever asked.

use super::loops::{decorators, mentions, methods_of, places_of};
use super::{Draft, FindingKind, MOST, Saving};
use crate::why::script::change::{Change, Edit};
use crate::why::script::held::Held;
use crate::why::script::names::Bound;
use crate::why::script::origin::{Reading, keyword_argument, positional};
use crate::why::script::tree::Node;

/// As many results as `functools.lru_cache` keeps by default.
const ENTRIES: u32 = 128;

pub(super) fn find<'s>(reading: &Reading<'s>) -> Vec<Draft<'s>> {
    let functions = reading.script.all("function_definition");
    let decorated = functions
        .flat_map(|function| decorated(reading, function))
        .take(MOST);
    let stored = reading
        .script
        .all("assignment")
        .filter_map(|node| stored(reading, node))
        .take(MOST);
    decorated.chain(stored).collect()
}

fn draft<'s>(at: Node<'s>, change: Change, why: String) -> Draft<'s> {
    Draft {
        kind: FindingKind::UnboundedCache,
        at,
        change,
        title: format!("Give the cache a bound: {ENTRIES} entries"),
        why,
        saving: Saving::AllButPiece,
        grows_at: Vec::new(),
        command: None,
    }
}

/// `@cache`, `@lru_cache(maxsize=None)` on a function that is called with ever other arguments.
fn decorated<'s>(reading: &Reading<'s>, function: Node<'s>) -> Vec<Draft<'s>> {
    let mut parameters = function.field("parameters").into_iter().flat_map(Node::children);
    // Without parameters there is one result to keep.
    if !parameters.any(|parameter| !matches!(parameter.text(), "self" | "cls")) {
        return Vec::new();
    }
    let name = function.field("name").map_or("", Node::text);
    decorators(function)
        .filter_map(|decorator| {
            let change = bounded(reading, decorator)?;
            let why = format!("`{name}` keeps every result for every argument it was ever called with.");
            let mut draft = draft(decorator, change, why);
            draft.grows_at = function
                .field("body")
                .into_iter()
                .flat_map(Node::children)
                .collect();
            Some(draft)
        })
        .collect()
}

fn bounded<'s>(reading: &Reading<'s>, decorator: Node<'s>) -> Option<Change> {
    let lines = (decorator.line(), decorator.end_line());
    let edit = |edit: Edit| Change::edit_lines(reading.script, lines, vec![edit]);
    if reading.origin(decorator).as_deref() == Some("functools.cache") {
        let (cache, imports) = super::pieces::spelled_or_imported(
            reading,
            "functools.lru_cache",
            "from functools import lru_cache",
        );
        let change = edit(Edit::replace(decorator, format!("{cache}(maxsize={ENTRIES})")));
        return Some(change.led_by(&imports));
    }
    if !reading.calls(decorator, &["functools.lru_cache"]) {
        return None;
    }
    let size = keyword_argument(decorator, "maxsize").and_then(|argument| argument.field("value"));
    let size = size.or_else(|| positional(decorator).first().copied());
    let size = size.filter(|size| size.kind() == "none")?;
    Some(edit(Edit::replace(size, ENTRIES.to_string())))
}

/// `CACHE[key] = value` in a function that asks `if key in CACHE`.
fn stored<'s>(reading: &Reading<'s>, node: Node<'s>) -> Option<Draft<'s>> {
    let target = node.field("left").filter(|left| left.kind() == "subscript")?;
    let cache = target.field("value")?;
    let function = node.function()?;
    let name = cache.text();
    let outlives = match cache.kind() {
        "identifier" => cache.scope() != reading.script.root() && is_global_dict(reading, cache),
        "attribute" => cache.field("object")?.text() == "self" && reading.held(cache) == Some(Held::Dict),
        _ => false,
    };
    let is_asked = places_of(function, name).any(|place| {
        let around = place.parent();
        let is_looked_for = around
            .is_some_and(|around| around.kind() == "comparison_operator" && around.text().contains(" in "));
        is_looked_for
            || around
                .and_then(|around| around.field("attribute"))
                .is_some_and(|name| name.text() == "get")
    });
    let is_emptied = methods_of(reading.script.root(), name)
        .any(|(_, method)| matches!(method, "pop" | "popitem" | "clear"));
    let is_cut = reading
        .script
        .all("delete_statement")
        .any(|inner| mentions(inner, name));
    let statement = node.statement();
    if statement.child(0) != Some(node) {
        return None;
    }
    if !outlives || !is_asked || is_emptied || is_cut || !is_computed(reading, node.field("right")?) {
        return None;
    }
    let indent = reading.script.indent();
    let change = Change::edit(statement, statement, Vec::new()).followed_by(&[
        format!("if len({name}) > {ENTRIES}:"),
        format!("{indent}{name}.pop(next(iter({name})))"),
    ]);
    Some(draft(
        node,
        change,
        format!("`{name}` keeps all that was ever put into it; the oldest entries can be made again."),
    ))
}

/// Whether a value was worth keeping: something that a call made, and not a number that counts.
fn is_computed<'s>(reading: &Reading<'s>, value: Node<'s>) -> bool {
    let made = match reading.names.bound(value.text(), value) {
        Some(Bound::Value(made)) if value.kind() == "identifier" => *made,
        _ => value,
    };
    let is_counted = reading
        .called(made)
        .is_some_and(|called| called.starts_with("builtins."));
    reading.held(made).is_some_and(Held::is_large) || (made.kind() == "call" && !is_counted)
}

/// A dictionary that the module makes and a function fills.
fn is_global_dict<'s>(reading: &Reading<'s>, cache: Node<'s>) -> bool {
    let assigned = reading.script.named(cache.text()).filter(|node| {
        node.role() == "left" && node.parent().is_some_and(|parent| parent.kind() == "assignment")
    });
    let (own, global): (Vec<Node>, Vec<Node>) = assigned.partition(|node| node.function().is_some());
    let is_own = own.iter().any(|node| node.function() == cache.function());
    let mut made = global
        .iter()
        .filter_map(|node| reading.held(node.parent()?.field("right")?));
    !is_own && made.any(|held| held == Held::Dict)
}
