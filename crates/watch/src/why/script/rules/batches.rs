//! How many rows a step takes at once.

use std::collections::HashSet;

use super::loops::{forward_statements, goes_over, method_calls};
use super::pieces::free_name;
use super::{Draft, FindingKind, MOST, Saving};
use crate::why::script::change::{Change, Edit, header};
use crate::why::script::held::Held;
use crate::why::script::names::Bound;
use crate::why::script::origin::{Reading, integer, keyword, keyword_argument, method, positional, string};
use crate::why::script::tree::Node;

pub(super) fn find<'s>(reading: &Reading<'s>) -> Vec<Draft<'s>> {
    let mut drafts: Vec<Draft> = Vec::new();
    // One constant for several loaders is one finding.
    let mut seen: HashSet<u32> = HashSet::new();
    let mut is_for_torch = false;
    let loops = reading
        .script
        .all("for_statement")
        .filter(|node| goes_over(*node).and_then(|over| reading.held(over)) == Some(Held::Loader));
    let loops: Vec<Node> = loops.take(MOST).collect();
    let steps: Vec<Node> = loops
        .iter()
        .flat_map(|node| forward_statements(reading, *node))
        .collect();
    for call in reading.script.all("call") {
        if drafts.len() >= MOST {
            break;
        }
        let Some((library, value)) = batch_size(reading, call) else {
            continue;
        };
        let Some(literal) = literal(reading, value) else {
            continue;
        };
        is_for_torch |= library == Library::Torch;
        if seen.insert(literal.id()) {
            let steps = if library == Library::Torch {
                steps.as_slice()
            } else {
                &[]
            };
            drafts.extend(halved(reading, library, call, literal, steps));
        }
    }
    if is_for_torch {
        drafts.extend(loops.iter().filter_map(|node| accumulated(reading, *node)));
    }
    drafts
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Library {
    Torch,
    Keras,
    /// The trainer of Hugging Face, which accumulates by itself.
    Trainer,
    /// Something else that takes batches, or the option of a command line.
    Other,
}

/// The batch size that a call is given.
fn batch_size<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<(Library, Node<'s>)> {
    let called = reading.called(call);
    let called = called.as_deref().unwrap_or_default();
    let last = called.rsplit('.').next().unwrap_or_default();
    if called == "torch.utils.data.DataLoader" {
        let size = keyword(call, "batch_size").or_else(|| positional(call).get(1).copied())?;
        return Some((Library::Torch, size));
    }
    if called.starts_with("transformers.") && last.ends_with("TrainingArguments") {
        return Some((Library::Trainer, keyword(call, "per_device_train_batch_size")?));
    }
    let (object, name) = method(call)?;
    let held = reading.held(object);
    match name {
        "fit" | "predict" | "evaluate" if held == Some(Held::KerasModel) => {
            Some((Library::Keras, keyword(call, "batch_size")?))
        }
        "flow" | "flow_from_directory" | "flow_from_dataframe" | "image_dataset_from_directory"
            if reading.uses_keras() =>
        {
            Some((Library::Keras, keyword(call, "batch_size")?))
        }
        "batch" if called.starts_with("tensorflow.data.") => {
            Some((Library::Keras, *positional(call).first()?))
        }
        "encode" if called.starts_with("sentence_transformers.") => {
            Some((Library::Other, keyword(call, "batch_size")?))
        }
        "add_argument" => {
            let option = positional(call).iter().find_map(|name| string(*name))?;
            let is_size = matches!(option.trim_start_matches('-'), "batch-size" | "batch_size");
            Some((Library::Other, keyword(call, "default").filter(|_| is_size)?))
        }
        _ => None,
    }
}

/// Where the number of a batch size is written.
fn literal<'s>(reading: &Reading<'s>, value: Node<'s>) -> Option<Node<'s>> {
    let literal = match value.kind() {
        "integer" => value,
        "identifier" => match reading.names.bound(value.text(), value)? {
            Bound::Value(constant) if constant.kind() == "integer" => *constant,
            Bound::Parameter(_) => parameter_default(value)?,
            _ => return None,
        },
        _ => return None,
    };
    (integer(literal)? >= 2).then_some(literal)
}

/// The default of the parameter that a name is.
fn parameter_default(name: Node<'_>) -> Option<Node<'_>> {
    let parameters = name.function()?.field("parameters")?;
    let parameter = parameters.children().find(|parameter| {
        parameter.is(&["default_parameter", "typed_default_parameter"])
            && parameter
                .field("name")
                .is_some_and(|own| own.text() == name.text())
    })?;
    parameter.field("value").filter(|value| value.kind() == "integer")
}

/// The half of a batch size; `steps` are the statements whose memory goes with it.
fn halved<'s>(
    reading: &Reading<'s>,
    library: Library,
    call: Node<'s>,
    literal: Node<'s>,
    steps: &[Node<'s>],
) -> Option<Draft<'s>> {
    let size = integer(literal)?;
    let half = size / 2;
    let mut edits = vec![Edit::replace(literal, half.to_string())];
    if library == Library::Trainer && call.contains(literal) {
        let steps =
            keyword_argument(call, "gradient_accumulation_steps").and_then(|steps| steps.field("value"));
        match steps.map(|steps| (steps, integer(steps))) {
            Some((steps, Some(number))) => edits.push(Edit::replace(steps, (number * 2).to_string())),
            Some(_) => return None,
            None => edits.push(Edit::add_argument(call, "gradient_accumulation_steps=2")?),
        }
    }
    let lines = match literal.statement().kind() {
        "function_definition" | "decorated_definition" => (literal.line(), literal.end_line()),
        _ => header(literal),
    };
    let same = match library {
        Library::Torch => "With two batches for each step of the optimizer it trains the same.",
        Library::Keras => {
            "An optimizer of Keras 3 trains the same with `gradient_accumulation_steps=2`; in prediction it changes \
             nothing but the speed."
        }
        Library::Trainer => "With twice the `gradient_accumulation_steps` it trains the same.",
        Library::Other => {
            "Half as many rows at a time; for training, accumulate the gradients of two batches."
        }
    };
    // An option of the command line can be given there as well.
    let option = positional(call)
        .iter()
        .find_map(|name| string(*name))
        .filter(|name| name.starts_with("--"));
    let command = option
        .filter(|_| library == Library::Other)
        .map(|option| format!("{option} {half}"));
    let grows_at = steps.iter().copied().chain([call.statement()]).collect();
    Some(Draft {
        kind: FindingKind::BatchSize,
        at: literal,
        change: Change::edit_lines(reading.script, lines, edits),
        title: format!("Halve the batches: {half} rows instead of {size}"),
        why: format!("What a step needs, activations above all, grows with the rows of a batch. {same}"),
        saving: Saving::PartOfGrowth(0.5),
        grows_at,
        command,
    })
}

/// A training loop that takes a step of the optimizer for each batch.
fn accumulated<'s>(reading: &Reading<'s>, node: Node<'s>) -> Option<Draft<'s>> {
    let body = node.field("body")?;
    let is_direct = |call: Node<'s>| call.parent().and_then(Node::parent) == Some(body);
    let only = |found: Vec<(Node<'s>, Node<'s>)>| match found.as_slice() {
        [(call, object)] if is_direct(*call) => Some((*call, *object)),
        _ => None,
    };
    let (backward, loss) = only(method_calls(body, "backward").collect())?;
    let is_optimizer = |object: Node<'s>| {
        let origin = reading.origin(object);
        origin.is_some_and(|origin| origin.starts_with("torch.optim.") && !origin.contains("lr_scheduler"))
            || object.text().to_lowercase().contains("opt")
    };
    let steps = method_calls(body, "step").filter(|(_, object)| is_optimizer(*object));
    let (step, optimizer) = only(steps.collect())?;
    if !positional(step).is_empty() || step.id() < backward.id() {
        return None;
    }
    let (count, mut edits) = counted(node)?;
    edits.push(Edit::replace(loss, format!("({} / 2)", loss.text())));
    let script = node.script();
    let indent = &script.source()[script.line_start(step.line())..step.start()];
    if !indent.trim().is_empty() {
        return None;
    }
    let (inner, zero) = (
        format!("{indent}{}", script.indent()),
        format!("{}.zero_grad()", optimizer.text()),
    );
    let every_second = format!(
        "if ({count} + 1) % 2 == 0:\n{inner}{}\n{inner}{zero}",
        step.text()
    );
    edits.push(Edit::replace(step, every_second));
    let zeroed: Vec<Node> = method_calls(body, "zero_grad")
        .filter(|(call, _)| is_direct(*call))
        .map(|(call, _)| call.statement())
        .collect();
    edits.extend(zeroed.iter().map(|statement| Edit::take_out(*statement)));
    let last = zeroed
        .iter()
        .map(|node| node.end_line())
        .chain([step.end_line()])
        .max()?;
    Some(Draft {
        kind: FindingKind::NoAccumulation,
        at: step,
        change: Change::edit_lines(script, (node.line(), last), edits),
        title: "Take a step for two half batches".into(),
        why: "Together with batches of half the size this trains the same: gradients add up until the optimizer takes \
              them, and only half the activations are held at a time."
            .into(),
        saving: Saving::Unknown,
        grows_at: Vec::new(),
        command: None,
    })
}

/// The name that counts the turns of a loop, and the edits that bring one in.
fn counted<'s>(node: Node<'s>) -> Option<(String, Vec<Edit>)> {
    let (left, right) = (node.field("left")?, node.field("right")?);
    let is_counted = right
        .field("function")
        .is_some_and(|function| function.text() == "enumerate")
        && positional(right).len() == 1;
    if is_counted {
        return Some((left.child(0)?.text().to_string(), Vec::new()));
    }
    let count = free_name(node, &["step", "batch_number", "turn"]);
    let items = match left.kind() {
        "pattern_list" => format!("({})", left.text()),
        _ => left.text().to_string(),
    };
    let edits = vec![
        Edit::replace(left, format!("{count}, {items}")),
        Edit::replace(right, format!("enumerate({})", right.text())),
    ];
    Some((count.to_string(), edits))
}
