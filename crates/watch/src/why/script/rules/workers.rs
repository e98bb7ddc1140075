//! Processes that work side by side, each with a copy.

use super::loops::calls;
use super::pieces::spelled_or_imported;
use super::{Draft, FindingKind, MOST, Saving};
use crate::why::script::change::{Change, Edit, header};
use crate::why::script::held::Held;
use crate::why::script::names::Bound;
use crate::why::script::origin::{
    Reading, has_hidden_arguments, integer, keyword, keyword_argument, method, positional, string,
};
use crate::why::script::tree::Node;

pub(super) fn find<'s>(reading: &Reading<'s>) -> Vec<Draft<'s>> {
    let calls = reading
        .script
        .all("call")
        .filter(|call| !has_hidden_arguments(*call));
    calls
        .filter_map(|call| of_call(reading, call))
        .take(MOST)
        .collect()
}

fn of_call<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let called = reading.called(call)?;
    match &*called {
        "torch.utils.data.DataLoader" => loader(reading, call),
        "multiprocessing.Pool" | "concurrent.futures.ProcessPoolExecutor" => pool(reading, call),
        "joblib.Parallel" => jobs(reading, call),
        name if name.starts_with("sklearn.model_selection.") => jobs(reading, call),
        _ => None,
    }
}

/// The number that a value is, where it is written out.
fn number<'s>(reading: &Reading<'s>, value: Node<'s>) -> Option<i64> {
    match value.kind() {
        "identifier" => match reading.names.bound(value.text(), value)? {
            Bound::Value(constant) => integer(*constant),
            _ => None,
        },
        _ => integer(value),
    }
}

/// `DataLoader(dataset, num_workers=8)` over a dataset that holds Python objects.
fn loader<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let workers = number(reading, keyword(call, "num_workers")?).filter(|workers| *workers >= 1)?;
    let dataset = keyword(call, "dataset").or_else(|| positional(call).first().copied())?;
    let class = class_of(reading, dataset)?;
    let mut held: Vec<Node> = reading.names.attributes_of(class).collect();
    held.sort_by_key(|value| value.id());
    let (value, (edits, imports)) = held
        .into_iter()
        .find_map(|value| Some((value, as_array(reading, value)?)))?;
    let getter = class.within().find(|node| {
        node.kind() == "function_definition"
            && node
                .field("name")
                .is_some_and(|name| name.text() == "__getitem__")
    });
    let in_getter = getter
        .and_then(|getter| getter.field("body"))
        .into_iter()
        .flat_map(Node::children);
    let target = value
        .parent()
        .and_then(|parent| parent.field("left"))
        .map_or("", Node::text);
    Some(Draft {
        kind: FindingKind::LoaderCopies,
        at: value,
        change: Change::edit_lines(reading.script, header(value), edits).led_by(&imports),
        title: "Hold the samples in an array, not in Python objects".into(),
        why: format!(
            "The {workers} workers of the loader on line {} share `{target}` only until they look at it: Python counts \
             who uses each object inside the object, so each worker gets a copy of its own. An array has one counter \
             for all.",
            call.line()
        ),
        saving: Saving::PerWorker(u32::try_from(workers).ok()),
        grows_at: in_getter.collect(),
        command: None,
    })
}

/// The class of the script that a dataset is of.
fn class_of<'s>(reading: &Reading<'s>, dataset: Node<'s>) -> Option<Node<'s>> {
    let origin = reading.origin(dataset)?;
    let name = origin.strip_prefix('.')?.strip_suffix("()")?;
    match reading.names.bound(name, reading.script.root())? {
        Bound::Definition(class) if class.kind() == "class_definition" => Some(*class),
        _ => None,
    }
}

/// How to hold as an array what is held as Python objects, with the import that it takes.
fn as_array<'s>(reading: &Reading<'s>, value: Node<'s>) -> Option<(Vec<Edit>, Vec<String>)> {
    if let Some((object, "tolist" | "to_list")) = method(value) {
        let array = match reading.held(object) {
            Some(Held::Frame) => format!("{}.to_numpy()", object.text()),
            _ => object.text().to_string(),
        };
        return Some((vec![Edit::replace(value, array)], Vec::new()));
    }
    let is_list = value.kind() == "list_comprehension"
        || (value.kind() == "list" && value.children().next().is_some())
        || reading.calls(value, &["builtins.list", "builtins.sorted"]);
    let is_lines = method(value).is_some_and(|(object, name)| {
        name == "readlines"
            || (name.starts_with("split") && method(object).is_some_and(|(_, name)| name == "read"))
    });
    if !is_list && !is_lines {
        return None;
    }
    let (array, imports) = spelled_or_imported(reading, "numpy.array", "import numpy as np");
    let (start, end) = (
        Edit::insert(value.start(), format!("{array}(")),
        Edit::insert(value.end(), ")"),
    );
    Some((vec![start, end], imports))
}

/// `n_jobs=-1` where jobs are processes.
fn jobs<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let argument = keyword_argument(call, "n_jobs")?;
    let value = argument.field("value")?;
    let jobs = number(reading, value).filter(|jobs| *jobs < 0 || *jobs > FEW_WORKERS)?;
    let shares = keyword(call, "prefer")
        .or_else(|| keyword(call, "backend"))
        .and_then(string);
    let is_shared =
        shares.is_some_and(|kind| kind.starts_with("thread")) || keyword(call, "require").is_some();
    if is_shared {
        return None;
    }
    Some(Draft {
        kind: FindingKind::JobCopies,
        at: call,
        change: Change::edit_lines(
            reading.script,
            header(call),
            vec![Edit::replace(value, FEW_WORKERS.to_string())],
        ),
        title: "Let fewer processes work side by side".into(),
        why: match jobs < 0 {
            true => "`n_jobs=-1` starts a process for each core, each with its own copy of the data it works on and of \
                     what it makes."
                .into(),
            false => format!("Each of the {jobs} processes has its own copy of the data it works on."),
        },
        saving: Saving::PerWorker(u32::try_from(jobs).ok()),
        grows_at: Vec::new(),
        command: None,
    })
}

/// With so many processes nobody runs out because of the others.
const FEW_WORKERS: i64 = 2;

/// A pool in a script that holds much in global names.
fn pool<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let size = keyword_argument(call, "processes")
        .or_else(|| keyword_argument(call, "max_workers"))
        .and_then(|argument| argument.field("value"))
        .or_else(|| positional(call).first().copied());
    let workers = match size {
        Some(size) => number(reading, size),
        None => None,
    };
    if workers.is_some_and(|workers| workers <= FEW_WORKERS) {
        return None;
    }
    let name = global_data(reading)?;
    let edit = match size {
        Some(size) => Edit::replace(size, FEW_WORKERS.to_string()),
        None => match call.field("arguments")?.child(0) {
            Some(first) => Edit::insert(first.start(), format!("{FEW_WORKERS}, ")),
            None => Edit::add_argument(call, &FEW_WORKERS.to_string())?,
        },
    };
    Some(Draft {
        kind: FindingKind::PoolCopies,
        at: call,
        change: Change::edit_lines(reading.script, header(call), vec![edit]),
        title: "Let fewer processes work side by side".into(),
        why: format!(
            "Every process of the pool has `{name}`: a copy from the start where processes are spawned, and one page after \
             the other as it is used where they are forked."
        ),
        saving: Saving::PerWorker(workers.and_then(|workers| u32::try_from(workers).ok())),
        grows_at: Vec::new(),
        command: None,
    })
}

/// A global name for a table, an array or a list of them that functions of the script use.
fn global_data<'s>(reading: &Reading<'s>) -> Option<&'s str> {
    let assignments = reading
        .script
        .all("assignment")
        .filter(|node| node.scope() == reading.script.root());
    let large = assignments.filter_map(|node| {
        let (name, value) = (node.field("left")?, node.field("right")?);
        let is_large = reading.held(value).is_some_and(Held::is_large) || reads_objects(reading, value);
        (name.kind() == "identifier" && is_large).then_some(name)
    });
    let large: Vec<Node> = large.collect();
    let used = |name: &Node<'s>| {
        reading
            .script
            .named(name.text())
            .any(|node| node.role() != "attribute" && node.function().is_some())
    };
    large.into_iter().find(used).map(Node::text)
}

fn reads_objects<'s>(reading: &Reading<'s>, value: Node<'s>) -> bool {
    calls(value).any(|call| reading.calls(call, &["pickle.load", "json.load", "joblib.load"]))
}
