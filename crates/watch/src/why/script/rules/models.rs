//! Models that are made, or asked, again and again in a loop.

use super::loops::{calls, is_bound_in, mentions, method_calls};
use super::{Draft, FindingKind, MOST, Saving};
use crate::why::script::change::{Change, Edit, header};
use crate::why::script::held::Held;
use crate::why::script::origin::{Reading, method, positional};
use crate::why::script::tree::Node;

pub(super) fn find<'s>(reading: &Reading<'s>) -> Vec<Draft<'s>> {
    let asked = reading
        .script
        .all("call")
        .filter_map(|call| asked(reading, call))
        .take(MOST);
    let made = reading
        .script
        .all("assignment")
        .filter_map(|node| made(reading, node))
        .take(MOST);
    asked.chain(made).collect()
}

/// `model.predict(x)` for one thing after the other.
fn asked<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let (model, name) = method(call)?;
    if name != "predict" || reading.held(model) != Some(Held::KerasModel) {
        return None;
    }
    let input = *positional(call).first()?;
    let comprehension = call.ancestors().find(|node| {
        node.is(&[
            "list_comprehension",
            "generator_expression",
            "dictionary_comprehension",
            "set_comprehension",
        ])
    });
    let around = comprehension.or_else(|| call.repeated_by())?;
    // What does not change from turn to turn is predicted whole, and in batches.
    let mut names = input
        .within()
        .filter(|node| node.kind() == "identifier" && node.role() != "attribute");
    if !names.any(|name| is_bound_in(around, name.text())) {
        return None;
    }
    let direct = format!("{}({}, training=False).numpy()", model.text(), input.text());
    Some(Draft {
        kind: FindingKind::PredictInLoop,
        at: call,
        change: Change::edit_lines(reading.script, header(call), vec![Edit::replace(call, direct)]),
        title: "Call the model instead of predict".into(),
        why: "`predict` sets up a pipeline of data each time it is called, and in a loop what it leaves behind adds up. \
              Calling the model costs nothing of that; faster still is one `predict` for all rows after the loop."
            .into(),
        saving: Saving::AllButPiece,
        grows_at: Vec::new(),
        command: None,
    })
}

/// `model = build()` in a loop over folds or settings.
fn made<'s>(reading: &Reading<'s>, node: Node<'s>) -> Option<Draft<'s>> {
    let (name, value) = (node.field("left")?, node.field("right")?);
    let around = node.repeated_by()?;
    if name.kind() != "identifier" || value.kind() != "call" {
        return None;
    }
    match reading.held(value)? {
        Held::KerasModel => keras_model(reading, node, around),
        Held::TorchModel => torch_model(reading, node, name, around),
        _ => None,
    }
}

fn keras_model<'s>(reading: &Reading<'s>, node: Node<'s>, around: Node<'s>) -> Option<Draft<'s>> {
    let is_cleared = node.loops().any(|around| {
        calls(around).any(|call| {
            call.field("function")
                .is_some_and(|function| function.text().ends_with("clear_session"))
        })
    });
    let clear = reading.names.spelled("keras.backend.clear_session")?;
    if is_cleared || !around.contains(node) {
        return None;
    }
    let statement = node.statement();
    Some(Draft {
        kind: FindingKind::ModelInLoop,
        at: node,
        change: Change::edit(statement, statement, Vec::new()).led_by(&[format!("{clear}()")]),
        title: "Clear the session before each model".into(),
        why: "Keras keeps the state of every model that was made; a new one for each turn of a loop adds to it."
            .into(),
        saving: Saving::AllButPiece,
        grows_at: Vec::new(),
        command: None,
    })
}

fn torch_model<'s>(
    reading: &Reading<'s>,
    node: Node<'s>,
    name: Node<'s>,
    around: Node<'s>,
) -> Option<Draft<'s>> {
    // Only where it is trained: with its optimizer it holds several times its size.
    let optimizer = calls(around).find(|call| {
        reading
            .called(*call)
            .is_some_and(|called| called.starts_with("torch.optim.") && !called.contains("lr_scheduler"))
    })?;
    let is_moved = method_calls(node, "to")
        .chain(method_calls(node, "cuda"))
        .any(|(_, object)| object.text() == name.text());
    let is_kept = method_calls(around, "append").any(|(call, _)| mentions(call, name.text()));
    let is_deleted = around
        .all("delete_statement")
        .any(|inner| mentions(inner, name.text()));
    if is_moved || is_kept || is_deleted {
        return None;
    }
    let body = around.field("body")?;
    let last = body.children().last()?;
    let with_optimizer = match optimizer.parent().and_then(|parent| parent.field("left")) {
        Some(optimizer) if optimizer.kind() == "identifier" => {
            format!("del {}, {}", name.text(), optimizer.text())
        }
        _ => format!("del {}", name.text()),
    };
    let script = reading.script;
    let statement = body.children().next()?;
    let indent = &script.source()[script.line_start(statement.line())..statement.start()];
    if !indent.trim().is_empty() {
        return None;
    }
    let end = Edit::insert(
        script.line_end(last.end_line()),
        format!("\n{indent}{with_optimizer}"),
    );
    Some(Draft {
        kind: FindingKind::ModelInLoop,
        at: node,
        change: Change::edit_lines(script, (last.line(), last.end_line()), vec![end]),
        title: "Let each model go before the next is made".into(),
        why: "The model and the optimizer of a turn live until the next turn has made its own: two of each at a time."
            .into(),
        saving: Saving::PartOfGrowth(0.5),
        grows_at: Vec::new(),
        command: None,
    })
}
