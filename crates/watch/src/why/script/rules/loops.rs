//! What the rules ask about loops, contexts and calls.

use crate::why::script::held::Held;
use crate::why::script::names::{Bound, without_progress};
use crate::why::script::origin::{Reading, integer, method, positional};
use crate::why::script::tree::Node;

/// All calls inside a node.
pub(super) fn calls(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    node.all("call")
}

/// All calls of methods with a name, and their objects.
pub(super) fn method_calls<'s>(
    node: Node<'s>,
    name: &str,
) -> impl Iterator<Item = (Node<'s>, Node<'s>)> + use<'s> {
    let names = node.named(name).filter(|name| name.role() == "attribute");
    names.filter_map(move |name| {
        let function = name.parent()?;
        let call = function.parent().filter(|_| function.role() == "function")?;
        Some((call, function.field("object")?))
    })
}

/// Whether anything inside a node has this text as a name or an expression.
pub(super) fn mentions(node: Node<'_>, text: &str) -> bool {
    places_of(node, text).next().is_some()
}

/// Where a name like `total` or `self.total` stands inside a node.
pub(super) fn places_of<'s>(node: Node<'s>, text: &str) -> impl Iterator<Item = Node<'s>> {
    let last = text.rsplit('.').next().unwrap_or(text);
    node.named(last).filter_map(move |name| {
        let whole = match name.role() {
            "attribute" => name.parent()?,
            _ => name,
        };
        (whole.text() == text).then_some(whole)
    })
}

/// Whether a loop or a function gives a name a value.
pub(super) fn assigns(node: Node<'_>, text: &str) -> bool {
    let mut places = places_of(node, text);
    places.any(|place| {
        place.role() == "left" && place.parent().is_some_and(|parent| parent.kind() == "assignment")
    })
}

/// What a `for` goes over, seen through `enumerate` and bars of progress.
pub(super) fn goes_over(for_loop: Node<'_>) -> Option<Node<'_>> {
    let right = without_progress(for_loop.field("right")?);
    let is_enumerate = right
        .field("function")
        .is_some_and(|function| function.text() == "enumerate");
    match is_enumerate {
        true => positional(right).first().copied().map(without_progress),
        false => Some(right),
    }
}

/// The outermost loop around a node within its function.
pub(super) fn outermost_loop(node: Node<'_>) -> Option<Node<'_>> {
    node.loops().last()
}

/// The function that a node is in, or the whole script.
pub(super) fn function_or_script(node: Node<'_>) -> Node<'_> {
    node.function().unwrap_or_else(|| node.script().root())
}

/// A step that is written over more statements is not followed to its end.
const MOST_STATEMENTS: usize = 50;

/// The statements of a loop that run a network: their memory is that of the step.
pub(super) fn forward_statements<'s>(reading: &Reading<'s>, around: Node<'s>) -> Vec<Node<'s>> {
    let mut statements: Vec<Node> = Vec::new();
    for call in calls(around) {
        if statements.len() == MOST_STATEMENTS {
            break;
        }
        let function = call.field("function");
        let is_forward = function.and_then(|function| reading.held(function)) == Some(Held::TorchModel)
            || matches!(reading.held(call), Some(Held::Loss | Held::Tensor))
            || method(call).is_some_and(|(_, name)| name == "backward");
        let statement = call.statement();
        if is_forward
            && around.contains(statement)
            && statement != around
            && statements.last() != Some(&statement)
        {
            statements.push(statement);
        }
    }
    statements
}

/// Whether a node stands inside `with` one of these.
pub(super) fn is_within<'s>(reading: &Reading<'s>, node: Node<'s>, contexts: &[&str]) -> bool {
    let is_one = |expression: Node<'s>| {
        let call = expression.within().find(|inner| inner.kind() == "call");
        let called = call
            .and_then(|call| reading.called(call))
            .or_else(|| reading.origin(expression));
        called.is_some_and(|called| contexts.contains(&&*called))
    };
    node.ancestors().any(|around| match around.kind() {
        "with_statement" => around
            .children()
            .filter(|child| child.kind() == "with_clause")
            .flat_map(Node::children)
            .any(is_one),
        "function_definition" => decorators(around).any(is_one),
        _ => false,
    })
}

/// The decorators of a function, each as its expression.
pub(super) fn decorators(definition: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let decorated = definition
        .parent()
        .filter(|parent| parent.kind() == "decorated_definition");
    decorated
        .into_iter()
        .flat_map(Node::children)
        .filter(|child| child.kind() == "decorator")
        .filter_map(|decorator| decorator.child(0))
}

/// All calls of methods of what has this name: `name.method()`.
pub(super) fn methods_of<'s>(around: Node<'s>, name: &str) -> impl Iterator<Item = (Node<'s>, &'s str)> {
    places_of(around, name).filter_map(|object| {
        let call = object.ancestors().nth(1).filter(|call| call.kind() == "call")?;
        let (of, called) = method(call)?;
        (of == object).then_some((call, called))
    })
}

/// Whether a name gets another value on each turn of a loop: assigned in it, or taken from what it goes over.
pub(super) fn is_bound_in(around: Node<'_>, name: &str) -> bool {
    places_of(around, name).any(|place| {
        let patterns = ["pattern_list", "tuple_pattern", "list_pattern"];
        let mut target = place;
        while let Some(pattern) = target.parent().filter(|parent| parent.is(&patterns)) {
            target = pattern;
        }
        let binds = ["assignment", "for_statement", "for_in_clause"];
        target.role() == "left" && target.parent().is_some_and(|parent| parent.is(&binds))
    })
}

/// Whether a function makes a batch or a sample, or runs one through a network, and no more.
pub(super) fn is_for_one_batch(node: Node<'_>) -> bool {
    let name = node.function().and_then(|function| function.field("name"));
    name.is_some_and(|name| {
        let name = name.text();
        let words = ["batch", "collat", "transform"];
        words.iter().any(|word| name.contains(word)) || matches!(name, "__getitem__" | "__call__" | "forward")
    })
}

/// So few turns add up to nothing.
const FEW_TURNS: usize = 64;

/// Words in the names of numbers that somebody chose to be small.
const CHOSEN_NUMBERS: [&str; 6] = ["worker", "thread", "process", "cpu", "gpu", "fold"];

/// Whether a loop turns only a few times, as far as the script tells.
pub(super) fn is_bounded<'s>(reading: &Reading<'s>, around: Node<'s>) -> bool {
    let Some(over) = goes_over(around).filter(|_| around.kind() == "for_statement") else {
        return false;
    };
    let meant = match reading.names.bound(over.text(), over) {
        Some(Bound::Value(value)) if over.kind() == "identifier" => *value,
        _ => over,
    };
    if meant.is(&["list", "tuple", "set"]) {
        return meant.children().count() <= FEW_TURNS;
    }
    let last = match positional(over).last() {
        Some(last) if reading.calls(over, &["builtins.range"]) => *last,
        _ => return false,
    };
    let number = match reading.names.bound(last.text(), last) {
        Some(Bound::Value(value)) if last.kind() == "identifier" => integer(*value),
        _ => integer(last),
    };
    let name = last.text().to_lowercase();
    number.is_some_and(|number| number <= FEW_TURNS as i64)
        || CHOSEN_NUMBERS.iter().any(|word| name.contains(word))
}
