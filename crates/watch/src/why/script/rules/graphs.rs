//! Graphs of PyTorch that are built or kept though nobody goes back through them.

use super::loops::{calls, forward_statements, function_or_script, goes_over, is_within, method_calls};
use super::{Draft, FindingKind, MOST, Saving};
use crate::why::script::change::{Change, Edit, header};
use crate::why::script::held::Held;
use crate::why::script::names::Bound;
use crate::why::script::origin::{Reading, keyword_argument, method, own_nodes, positional};
use crate::why::script::tree::Node;

pub(super) fn find<'s>(reading: &Reading<'s>) -> Vec<Draft<'s>> {
    if !reading.names.imports("torch") {
        return Vec::new();
    }
    let added = reading
        .script
        .all("augmented_assignment")
        .filter_map(|node| added(reading, node))
        .take(MOST);
    let summed = reading
        .script
        .all("assignment")
        .filter_map(|node| summed(reading, node))
        .take(MOST);
    let appended = reading
        .script
        .all("call")
        .filter_map(|call| appended(reading, call))
        .take(MOST);
    let retained = reading
        .script
        .all("call")
        .filter_map(|call| retained(call))
        .take(MOST);
    let mut drafts: Vec<Draft> = added.chain(summed).chain(appended).chain(retained).collect();
    drafts.extend(evaluations(reading));
    drafts
}

/// Where no graph is built.
const WITHOUT_GRAPH: [&str; 6] = [
    "torch.no_grad",
    "torch.inference_mode",
    "torch.set_grad_enabled",
    "torch.autograd.no_grad",
    "torch.autograd.grad_mode.no_grad",
    "torch.autograd.inference_mode",
];

/// `total += loss`
fn added<'s>(reading: &Reading<'s>, node: Node<'s>) -> Option<Draft<'s>> {
    let (target, value) = (node.field("left")?, node.field("right")?);
    let is_sum = node.field("operator")?.text() == "+=";
    // `losses += [loss]`
    let value = match (value.kind(), value.child(0)) {
        ("list", Some(only)) => only,
        _ => value,
    };
    is_sum.then(|| kept(reading, node, target, value))?
}

/// `total = total + loss`
fn summed<'s>(reading: &Reading<'s>, node: Node<'s>) -> Option<Draft<'s>> {
    let (target, sum) = (node.field("left")?, node.field("right")?);
    let is_sum = sum.kind() == "binary_operator" && sum.field("operator")?.text() == "+";
    let (left, right) = (sum.field("left")?, sum.field("right")?);
    let value = match () {
        () if left.text() == target.text() => right,
        () if right.text() == target.text() => left,
        () => return None,
    };
    is_sum.then(|| kept(reading, node, target, value))?
}

/// `losses.append(loss)`
fn appended<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let (list, name) = method(call)?;
    let value = *positional(call).first()?;
    (name == "append").then(|| kept(reading, call, list, value))?
}

/// A loss that a loop adds to something that outlives its turns.
fn kept<'s>(reading: &Reading<'s>, at: Node<'s>, target: Node<'s>, value: Node<'s>) -> Option<Draft<'s>> {
    let within = at.loops().find(|around| {
        method_calls(*around, "backward").next().is_some()
            || goes_over(*around).and_then(|over| reading.held(over)) == Some(Held::Loader)
    })?;
    let function = function_or_script(at);
    let loss = loss_in(reading, within, value)?;
    // It may have been made without a graph, and only be added up here.
    let made = loss.within().find(|node| node.kind() == "identifier");
    let made = made.and_then(|name| match reading.names.bound(name.text(), name) {
        Some(Bound::Value(made)) => Some(*made),
        _ => None,
    });
    let is_free = [Some(at), made]
        .into_iter()
        .flatten()
        .any(|node| is_within(reading, node, &WITHOUT_GRAPH));
    if is_free || goes_back(reading, function, target) {
        return None;
    }
    let end = loss.end();
    let statement = at.statement();
    Some(Draft {
        kind: FindingKind::LossKept,
        at,
        change: Change::edit(statement, statement, vec![Edit::insert(end, ".item()")]),
        title: format!("Keep the number in `{}`, not the graph that made it", shown(loss)),
        why: format!(
            "`{}` holds every activation of its step. Kept in `{}`, the graphs of all steps stay in memory until the \
             loop is over; `.item()` is the plain number.",
            shown(loss),
            target.text()
        ),
        saving: Saving::AllButPiece,
        grows_at: forward_statements(reading, within),
        command: None,
    })
}

/// A short expression as it stands, a long one by its beginning.
fn shown(node: Node<'_>) -> String {
    match node.kind() {
        "call" => format!("{}(…)", node.field("function").map_or("", Node::text)),
        _ => node.text().to_string(),
    }
}

/// The loss in an expression that still has its graph.
fn loss_in<'s>(reading: &Reading<'s>, within: Node<'s>, value: Node<'s>) -> Option<Node<'s>> {
    match value.kind() {
        "parenthesized_expression" => loss_in(reading, within, value.child(0)?),
        "binary_operator" => {
            let (left, right) = (value.field("left")?, value.field("right")?);
            loss_in(reading, within, left).or_else(|| loss_in(reading, within, right))
        }
        "identifier" | "attribute" | "subscript" => {
            let goes_back = method_calls(within, "backward").any(|(_, object)| object.text() == value.text());
            let is_loss = goes_back || reading.held(value) == Some(Held::Loss);
            is_loss.then_some(value)
        }
        "call" => (reading.held(value) == Some(Held::Loss)).then_some(value),
        _ => None,
    }
}

/// Whether what was collected is gone back through later: then the graph is needed.
pub(super) fn goes_back<'s>(reading: &Reading<'s>, function: Node<'s>, target: Node<'s>) -> bool {
    let name = target.text();
    let is_joined = |object: Node<'s>| {
        object.kind() == "call"
            && calls(object).any(|call| positional(call).iter().any(|argument| argument.text() == name))
    };
    let backward = method_calls(function, "backward").map(|(_, object)| object);
    let mut backward = backward.take(MOST);
    backward.any(|object| {
        let value = match object.kind() {
            "identifier" => reading.names.bound(object.text(), object).cloned(),
            _ => None,
        };
        let made_of = match value {
            Some(Bound::Value(value)) => is_joined(value) || super::loops::mentions(value, name),
            _ => false,
        };
        object.text() == name || super::loops::mentions(object, name) || is_joined(object) || made_of
    })
}

/// `loss.backward(retain_graph=True)`
fn retained<'s>(call: Node<'s>) -> Option<Draft<'s>> {
    let (_, name) = method(call)?;
    let argument = keyword_argument(call, "retain_graph").filter(|_| name == "backward")?;
    let is_true = argument.field("value")?.kind() == "true";
    let again = call
        .statement()
        .following()
        .any(|next| method_calls(next, "backward").next().is_some());
    if !is_true || again || keyword_argument(call, "create_graph").is_some() {
        return None;
    }
    let statement = call.statement();
    Some(Draft {
        kind: FindingKind::RetainedGraph,
        at: call,
        change: Change::edit(statement, statement, vec![Edit::take_argument(call, argument)?]),
        title: "Let the graph go".into(),
        why: "Nothing goes back through this graph a second time; without `retain_graph` its activations are freed here. \
              If PyTorch then complains, something of the last step is used in the next one: detach it there."
            .into(),
        saving: Saving::PartOfGrowth(0.5),
        grows_at: Vec::new(),
        command: None,
    })
}

/// Words in the names of functions that only look at a model.
const LOOKING: [&str; 13] = [
    "eval",
    "evaluate",
    "evaluation",
    "val",
    "valid",
    "validate",
    "validation",
    "test",
    "testing",
    "predict",
    "prediction",
    "infer",
    "inference",
];

fn evaluations<'s>(reading: &Reading<'s>) -> Vec<Draft<'s>> {
    let is_off = reading.calls_of("torch.set_grad_enabled").iter().any(|call| {
        call.statement().child(0) == Some(*call)
            && positional(*call)
                .first()
                .is_some_and(|value| value.kind() == "false")
    });
    if is_off {
        return Vec::new();
    }
    let functions = reading
        .script
        .all("function_definition")
        .filter_map(|function| function_without(reading, function));
    let mut drafts: Vec<Draft> = functions.take(MOST).collect();
    let done: Vec<u32> = drafts
        .iter()
        .filter_map(|draft| draft.at.function())
        .map(Node::id)
        .collect();
    let evals = reading
        .script
        .all("call")
        .filter_map(|call| after_eval(reading, call));
    let others = evals.filter(|draft| {
        draft
            .at
            .function()
            .is_none_or(|function| !done.contains(&function.id()))
    });
    drafts.extend(others.take(MOST));
    drafts
}

/// Calls of networks that build a graph.
fn forwards<'s>(reading: &Reading<'s>, around: impl Iterator<Item = Node<'s>>) -> Vec<Node<'s>> {
    around
        .filter(|node| node.kind() == "call")
        .filter(|call| {
            call.field("function").and_then(|function| reading.held(function)) == Some(Held::TorchModel)
        })
        // `nn.Linear(1, 2)` makes a layer and runs nothing.
        .filter(|call| reading.held(*call) != Some(Held::TorchModel))
        .filter(|call| !is_within(reading, *call, &WITHOUT_GRAPH))
        .collect()
}

/// A function that evaluates, by its name and what it does.
fn function_without<'s>(reading: &Reading<'s>, function: Node<'s>) -> Option<Draft<'s>> {
    let name = function.field("name")?.text();
    let mut words = name.split('_').map(str::to_lowercase);
    let looks = words.any(|word| LOOKING.contains(&word.as_str()));
    // Lightning turns graphs off around its steps.
    if !looks || name.ends_with("_step") {
        return None;
    }
    let forwards = forwards(reading, own_nodes(function));
    let first = *forwards.first()?;
    let body = function.field("body")?;
    let evaluates = method_calls(body, "eval").next().is_some()
        || forwards.iter().any(|call| call.repeated_by().is_some());
    let trains =
        calls(body).any(|call| method(call).is_some_and(|(_, name)| matches!(name, "backward" | "step")));
    if !evaluates || trains || is_called_without(reading, function) {
        return None;
    }
    let no_grad = reading.names.spelled("torch.no_grad")?;
    let script = reading.script;
    let line = function.line();
    let indent = &script.source()[script.line_start(line)..function.start()];
    let decorator = Edit::insert(script.line_start(line), format!("{indent}@{no_grad}()\n"));
    let end = header(function).1.max(line);
    let mut draft = no_grad_draft(first, Change::edit_lines(script, (line, end), vec![decorator]));
    draft.grows_at = forwards.iter().map(|call| call.statement()).collect();
    Some(draft)
}

/// Whether a function is called where no graph is built.
fn is_called_without<'s>(reading: &Reading<'s>, function: Node<'s>) -> bool {
    let name = function.field("name").map_or("", Node::text);
    let calls = reading.script.named(name).filter_map(|called| {
        let function = match called.role() {
            "attribute" => called.parent()?,
            _ => called,
        };
        function
            .parent()
            .filter(|parent| parent.kind() == "call" && function.role() == "function")
    });
    calls
        .into_iter()
        .any(|call| is_within(reading, call, &WITHOUT_GRAPH))
}

/// What follows `model.eval()` in its block.
fn after_eval<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let (model, name) = method(call)?;
    let statement = call.statement();
    let is_alone = statement.child(0) == Some(call) || statement.child(0)?.field("right") == Some(call);
    let is_without = call
        .function()
        .is_some_and(|function| is_called_without(reading, function));
    if name != "eval" || reading.held(model) != Some(Held::TorchModel) || !is_alone || is_without {
        return None;
    }
    let until_train = statement
        .following()
        .take_while(|next| method_calls(*next, "train").next().is_none());
    let next = until_train
        .filter(|next| !next.is(&["function_definition", "class_definition", "decorated_definition"]))
        .find(|next| !forwards(reading, next.within()).is_empty())?;
    if method_calls(next, "backward").next().is_some() {
        return None;
    }
    let no_grad = reading.names.spelled("torch.no_grad")?;
    let forwards = forwards(reading, next.within());
    let change = Change::nested(next, next, &[(0, format!("with {no_grad}():"))], Vec::new())?;
    let mut draft = no_grad_draft(*forwards.first()?, change);
    draft.grows_at = forwards.iter().map(|call| call.statement()).collect();
    Some(draft)
}

fn no_grad_draft<'s>(at: Node<'s>, change: Change) -> Draft<'s> {
    Draft {
        kind: FindingKind::NoInferenceMode,
        at,
        change,
        title: "Evaluate without building graphs".into(),
        why: "`model.eval()` changes what dropout and normalisation do, no more: every layer still keeps what a backward \
              pass would need, and nobody goes back."
            .into(),
        saving: Saving::PartOfGrowth(0.5),
        grows_at: Vec::new(),
        command: None,
    }
}
