//! Lists, tables and arrays that grow from turn to turn of a loop.

use super::graphs::goes_back;
use super::loops::{
    assigns, calls, function_or_script, goes_over, is_bounded, is_for_one_batch, is_within, mentions,
    method_calls, methods_of, places_of,
};
use super::pieces::{Item, Pieces, free_name, in_pieces, spelled_or_imported};
use super::{Draft, FindingKind, MOST, Saving};
use crate::why::script::change::{Change, Edit, text_with};
use crate::why::script::held::Held;
use crate::why::script::names::Bound;
use crate::why::script::origin::{Reading, keyword_argument, method, positional};
use crate::why::script::tree::Node;

pub(super) fn find<'s>(reading: &Reading<'s>) -> Vec<Draft<'s>> {
    let appended = reading
        .script
        .all("call")
        .filter_map(|call| appended(reading, call))
        .take(MOST);
    let stored = reading
        .script
        .all("assignment")
        .filter_map(|node| stored(reading, node))
        .take(MOST);
    let copied = reading
        .script
        .all("assignment")
        .filter_map(|node| copied(reading, node))
        .take(MOST);
    let joined = reading
        .script
        .all("call")
        .filter_map(|call| joined(reading, call))
        .take(MOST);
    let extended = reading
        .script
        .all("augmented_assignment")
        .filter_map(|node| extended(reading, node))
        .take(MOST);
    let growing = appended.chain(extended).chain(stored);
    growing.chain(copied).chain(joined).collect()
}

/// The loop from turn to turn of which a collection grows: one that does not begin it anew.
fn growing_loop<'s>(reading: &Reading<'s>, at: Node<'s>, collection: Node<'s>) -> Option<Node<'s>> {
    let around = at.repeated_by().filter(|_| !is_for_one_batch(at))?;
    let name = collection.text();
    let is_begun = assigns(around, name);
    let is_emptied = methods_of(around, name)
        .any(|(_, method)| matches!(method, "pop" | "popleft" | "popitem" | "clear" | "remove"));
    let is_cut = around.all("delete_statement").any(|node| mentions(node, name));
    (!is_begun && !is_emptied && !is_cut && !is_bounded(reading, around)).then_some(around)
}

/// `parts.append(frame)`, `parts.extend(array)`
fn appended<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let (list, name) = method(call)?;
    let value = *positional(call).first()?;
    matches!(name, "append" | "extend").then(|| added(reading, call, list, value))?
}

/// `parts += [frame]`
fn extended<'s>(reading: &Reading<'s>, node: Node<'s>) -> Option<Draft<'s>> {
    let (list, more) = (node.field("left")?, node.field("right")?);
    let is_sum =
        node.field("operator")?.text() == "+=" && more.kind() == "list" && more.children().count() == 1;
    is_sum.then(|| added(reading, node, list, more.child(0)?))?
}

/// A value that is put into a list.
fn added<'s>(reading: &Reading<'s>, at: Node<'s>, list: Node<'s>, value: Node<'s>) -> Option<Draft<'s>> {
    let is_list = reading
        .origin(list)
        .is_none_or(|origin| &*origin == "builtins.list()");
    if !is_list || !list.is(&["identifier", "attribute"]) {
        return None;
    }
    growing_loop(reading, at, list)?;
    let held = reading.held(value)?;
    let statement = at.statement();
    let file = list.text().rsplit('.').next()?;
    if statement.kind() != "expression_statement"
        || is_small(reading, value)
        || is_joined_chunk(reading, at, list)
    {
        return None;
    }
    let is_needed = match held {
        Held::Tensor => !is_from_steps(reading, at, list),
        Held::Batch => value.kind() == "binary_operator" || goes_back(reading, function_or_script(at), list),
        _ => false,
    };
    if is_needed {
        return None;
    }
    let change = instead(reading, statement, value, held, file)?;
    Some(growing(at, change, list.text(), held))
}

/// `features[key] = array`
fn stored<'s>(reading: &Reading<'s>, node: Node<'s>) -> Option<Draft<'s>> {
    let (target, value) = (node.field("left")?, node.field("right")?);
    let (dictionary, key) = (target.field("value")?, target.field("subscript")?);
    if target.kind() != "subscript"
        || reading.held(dictionary) != Some(Held::Dict)
        || key.kind() != "identifier"
    {
        return None;
    }
    growing_loop(reading, node, dictionary)?;
    let held = reading.held(value)?;
    let statement = node.statement();
    let file = format!("f\"{}-{{{}}}", dictionary.text().rsplit('.').next()?, key.text());
    let change = match held {
        Held::Array if !is_small(reading, value) => {
            let (save, imports) = spelled_or_imported(reading, "numpy.save", "import numpy as np");
            let text = format!("{save}({file}.npy\", {})", value.text());
            Change::edit(statement, statement, vec![Edit::replace(node, text)]).led_by(&imports)
        }
        Held::Frame if reading.names.imports("pandas") => {
            let text = format!("{}.to_parquet({file}.parquet\")", value.text());
            Change::edit(statement, statement, vec![Edit::replace(node, text)])
        }
        Held::Tensor if is_from_steps(reading, node, dictionary) => detached(reading, statement, value)?,
        _ => return None,
    };
    Some(growing(node, change, dictionary.text(), held))
}

fn growing<'s>(at: Node<'s>, change: Change, collection: &str, held: Held) -> Draft<'s> {
    let (title, why) = match held {
        Held::Tensor => (
            format!("Keep the values in `{collection}`, not their graphs"),
            format!(
                "Each tensor in `{collection}` holds the graph that made it, and its place on the device; `.detach().cpu()` \
                 leaves only the values."
            ),
        ),
        _ => (
            format!("Write what is collected in `{collection}` to a file"),
            format!("`{collection}` grows with every turn of the loop, and nothing is ever taken out of it."),
        ),
    };
    Draft {
        kind: FindingKind::GrowingCollection,
        at,
        change,
        title,
        why,
        saving: Saving::AllButPiece,
        grows_at: Vec::new(),
        command: None,
    }
}

/// Whether tensors are collected from step to step, and not to make one of them: then their graphs are needed.
fn is_from_steps<'s>(reading: &Reading<'s>, at: Node<'s>, collection: Node<'s>) -> bool {
    let steps = at.loops().any(|around| {
        let over = goes_over(around).and_then(|over| reading.held(over));
        matches!(over, Some(Held::Loader | Held::Dataset))
            || method_calls(around, "backward").next().is_some()
            // One tensor is not made of turns whose number nobody knows.
            || around.kind() == "while_statement"
    });
    steps && !goes_back(reading, function_or_script(at), collection)
}

/// The statement that lets go of a value instead of keeping it.
fn instead<'s>(
    reading: &Reading<'s>,
    statement: Node<'s>,
    value: Node<'s>,
    held: Held,
    file: &str,
) -> Option<Change> {
    let text = value.text();
    match held {
        Held::Frame if reading.names.imports("pandas") => {
            let line = format!("{text}.to_csv(\"{file}.csv\", mode=\"a\", header=False, index=False)");
            Change::statements(statement, statement, &[(0, line)])
        }
        Held::Array => {
            let (save, imports) = spelled_or_imported(reading, "numpy.save", "import numpy as np");
            to_open_file(statement, &format!("{file}.npy"), &imports, &|open| {
                format!("{save}({open}, {text})")
            })
        }
        Held::Batch => {
            let (dump, imports) = spelled_or_imported(reading, "pickle.dump", "import pickle");
            to_open_file(statement, &format!("{file}.pkl"), &imports, &|open| {
                format!("{dump}({text}, {open})")
            })
        }
        Held::Tensor => detached(reading, statement, value),
        _ => None,
    }
}

/// `with open(…, "ab") as file:` and what is written to it.
fn to_open_file(
    statement: Node<'_>,
    name: &str,
    imports: &[String],
    write: &dyn Fn(&str) -> String,
) -> Option<Change> {
    let open = free_name(statement, &["file", "output_file", "kept_file"]);
    let lines = [
        (0, format!("with open(\"{name}\", \"ab\") as {open}:")),
        (1, write(open)),
    ];
    Some(Change::statements(statement, statement, &lines)?.led_by(imports))
}

/// A tensor without its graph, on the host.
fn detached<'s>(reading: &Reading<'s>, statement: Node<'s>, value: Node<'s>) -> Option<Change> {
    let is_free = calls(value).any(|call| {
        method(call).is_some_and(|(_, name)| matches!(name, "detach" | "cpu" | "numpy" | "item" | "tolist"))
    });
    let is_simple = value.is(&["identifier", "call", "attribute", "subscript"]);
    if is_free || !is_simple || is_freed(reading, value) {
        return None;
    }
    let copied = match reading.names.imports("torch") {
        true => ".detach().cpu()",
        false => ".numpy()",
    };
    Some(Change::edit(
        statement,
        statement,
        vec![Edit::insert(value.end(), copied)],
    ))
}

/// Whether the value was freed of its graph before, or never had one on a device.
fn is_freed<'s>(reading: &Reading<'s>, value: Node<'s>) -> bool {
    let origin = reading.origin(value);
    let origin = origin.as_deref().unwrap_or_default();
    let made_free = [".detach()", ".cpu()", ".numpy()"]
        .iter()
        .any(|step| origin.contains(step));
    made_free
        || origin.starts_with("torch.")
            && is_within(reading, value, &["torch.no_grad", "torch.inference_mode"])
}

/// `np.array([a, b])` is as small as it is written, and `np.random.rand()` is one number.
fn is_small<'s>(reading: &Reading<'s>, value: Node<'s>) -> bool {
    let made = match reading.names.bound(value.text(), value) {
        Some(Bound::Value(made)) if value.kind() == "identifier" => *made,
        _ => value,
    };
    let is_drawn = reading
        .called(made)
        .is_some_and(|called| called.starts_with("numpy.random."));
    match positional(made).first() {
        Some(first) => made.kind() == "call" && first.is(&["list", "tuple"]) && !is_drawn,
        None => is_drawn && keyword_argument(made, "size").is_none(),
    }
}

/// A chunk of a reader that is put into a list and joined later: there is a finding for that.
fn is_joined_chunk<'s>(reading: &Reading<'s>, call: Node<'s>, list: Node<'s>) -> bool {
    let Some(around) = call.repeated_by() else {
        return false;
    };
    let over = goes_over(around).filter(|_| around.kind() == "for_statement");
    over.and_then(|over| reading.held(over)) == Some(Held::Pieces)
        && reading.calls_of("pandas.concat").iter().any(|join| {
            positional(*join)
                .first()
                .is_some_and(|joined| joined.text() == list.text())
        })
}

/// Functions that put pieces together, and whether they take them in a list.
const JOINERS: [(&str, bool); 9] = [
    ("pandas.concat", true),
    ("polars.concat", true),
    ("numpy.concatenate", true),
    ("numpy.vstack", true),
    ("numpy.hstack", true),
    ("numpy.dstack", true),
    ("numpy.append", false),
    ("torch.cat", true),
    ("torch.concat", true),
];

/// `table = pd.concat([table, part])` in a loop.
fn copied<'s>(reading: &Reading<'s>, node: Node<'s>) -> Option<Draft<'s>> {
    let (target, call) = (
        node.field("left")?,
        node.field("right").filter(|call| call.kind() == "call")?,
    );
    let name = target.text();
    let called = reading.called(call);
    let joiner = JOINERS
        .iter()
        .find(|(function, _)| called.as_deref() == Some(function));
    let (added, after): (Vec<Node>, String) = match joiner {
        Some((_, true)) => {
            let list = positional(call)
                .first()
                .copied()
                .filter(|list| list.is(&["list", "tuple"]))?;
            let parts: Vec<Node> = list.children().collect();
            let (own, added): (Vec<Node>, Vec<Node>) =
                parts.into_iter().partition(|part| part.text() == name);
            // What is put in front would come out in another order.
            if own.len() != 1 || list.child(0) != own.first().copied() || added.is_empty() {
                return None;
            }
            (added, text_with(call, vec![Edit::replace(list, PARTS)]))
        }
        Some((_, false)) => {
            let added = *positional(call).get(1)?;
            if positional(call).first()?.text() != name || keyword_argument(call, "axis").is_some() {
                return None;
            }
            (vec![added], text_with(call, vec![Edit::replace(added, PARTS)]))
        }
        None => of_method(reading, call, name)?,
    };
    let around = growing_target(node, target)?;
    let statement = node.statement();
    let parts = format!("{}_parts", name.rsplit('.').next()?);
    let parts = free_name(statement, &[&parts, "parts", "collected"]).to_string();
    let begin = match joiner {
        Some((_, true)) => format!("{parts} = [{name}]"),
        _ => format!("{parts} = []"),
    };
    let added: Vec<&str> = added.into_iter().map(Node::text).collect();
    let add = match added.as_slice() {
        [one] => format!("{parts}.append({one})"),
        several => format!("{parts}.extend([{}])", several.join(", ")),
    };
    let end = format!("{name} = {}", after.replace(PARTS, &parts));
    let is_alone = around.line() < statement.line();
    let change = Change::edit(around, around, vec![Edit::replace(node, add)]);
    is_alone.then(|| Draft {
        kind: FindingKind::ConcatInLoop,
        at: node,
        change: change.led_by(&[begin]).followed_by(&[end]),
        title: format!("Put `{name}` together once, after the loop"),
        why: format!(
            "Every turn makes a new `{name}` and copies the old one into it: while it does both are in memory, and the \
             time grows with the square of the turns."
        ),
        saving: Saving::PartOfGrowth(0.5),
        grows_at: Vec::new(),
        command: None,
    })
}

/// Stands for the name of the list until there is one.
const PARTS: &str = "\u{1}";

/// `table.append(row)` of pandas before 2.0.
fn of_method<'s>(reading: &Reading<'s>, call: Node<'s>, name: &str) -> Option<(Vec<Node<'s>>, String)> {
    let (object, method) = method(call)?;
    let added = *positional(call).first()?;
    if method != "append" || object.text() != name || !reading.names.imports("pandas") {
        return None;
    }
    let (concat, frame) = (
        reading.names.spelled("pandas.concat")?,
        reading.names.spelled("pandas.DataFrame")?,
    );
    let parts = match reading.held(added) {
        Some(Held::Frame) => format!("*{PARTS}"),
        _ => format!("{frame}({PARTS})"),
    };
    let ignore = keyword_argument(call, "ignore_index").map(|argument| format!(", {}", argument.text()));
    Some((
        vec![added],
        format!("{concat}([{name}, {parts}]{})", ignore.unwrap_or_default()),
    ))
}

/// The loop in which a name is only ever added to.
fn growing_target<'s>(node: Node<'s>, target: Node<'s>) -> Option<Node<'s>> {
    let around = node.repeated_by()?;
    let name = target.text();
    let mut elsewhere = places_of(around, name).filter(|place| !node.contains(*place));
    (target.is(&["identifier", "attribute"]) && elsewhere.next().is_none()).then_some(around)
}

/// `pd.concat(chunks)` of all that a reader gave.
fn joined<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    if !reading.calls(call, &["pandas.concat"]) {
        return None;
    }
    let parts = *positional(call).first()?;
    let change = match parts.kind() {
        "list_comprehension" | "generator_expression" => {
            let (body, clause) = (parts.field("body")?, parts.child(1)?);
            let over = clause.field("right").filter(|_| parts.children().count() == 2)?;
            let is_all =
                clause.field("left")?.text() == body.text() && reading.held(over) == Some(Held::Pieces);
            is_all.then(|| over_reader(reading, call, over))??
        }
        _ if reading.held(parts) == Some(Held::Pieces) => over_reader(reading, call, parts)?,
        "identifier" => over_list(reading, call, parts)?,
        _ => return None,
    };
    Some(Draft {
        kind: FindingKind::ChunksJoined,
        at: call,
        change,
        title: "Work on each chunk and let it go".into(),
        why: "Read in chunks and put together again, the whole table is in memory after all, and for a moment twice."
            .into(),
        saving: Saving::AllButPiece,
        grows_at: Vec::new(),
        command: None,
    })
}

fn over_reader<'s>(reading: &Reading<'s>, call: Node<'s>, reader: Node<'s>) -> Option<Change> {
    let pieces = Pieces {
        imports: Vec::new(),
        iterable: reader.text().to_string(),
        item: Item::Alike,
        size: "one chunk",
    };
    in_pieces(reading, call, &pieces)
}

/// A loop over a reader that only collects, and the join after it.
fn over_list<'s>(reading: &Reading<'s>, call: Node<'s>, list: Node<'s>) -> Option<Change> {
    let statement = call.statement();
    let collecting = methods_of(reading.script.root(), list.text()).find_map(|(append, method)| {
        let node = append
            .repeated_by()
            .filter(|node| node.kind() == "for_statement" && method == "append")?;
        let over = goes_over(node)?;
        let chunk = node.field("left").filter(|left| left.kind() == "identifier")?;
        let is_changed = assigns(node, chunk.text());
        let is_all = positional(append).first()?.text() == chunk.text() && !is_changed;
        let follows = node.parent() == statement.parent() && node.id() < statement.id();
        (reading.held(over) == Some(Held::Pieces) && is_all && follows).then_some((node, append, chunk))
    });
    let (around, append, chunk) = collecting?;
    let name = super::pieces::assigned_name(call)?;
    let here = format!(
        "...  # what is done with {name} goes in here, with {} in its place",
        chunk.text()
    );
    let edits = vec![Edit::replace(append.statement(), here), Edit::take_out(statement)];
    (append.statement().kind() == "expression_statement").then(|| Change::edit(around, statement, edits))
}
