//! Files and datasets that are read whole: arrays, texts, objects, loaders.

use super::pieces::{Item, Pieces, assigned_name, free_name, in_pieces, spelled_or_imported};
use super::{Draft, FindingKind, MOST, Saving};
use crate::why::script::change::{Change, Edit, header, text_with};
use crate::why::script::held::Held;
use crate::why::script::names::Bound;
use crate::why::script::origin::{
    Reading, argument, has_hidden_arguments, keyword, keyword_argument, method, positional, string,
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
    let called = reading.called(call);
    match called.as_deref().unwrap_or_default() {
        "numpy.load" => mapped_array(reading, call),
        "numpy.loadtxt" | "numpy.genfromtxt" => text_array(reading, call),
        "json.load" => json(reading, call),
        "pickle.load" | "dill.load" | "cloudpickle.load" => pickle(reading, call),
        "joblib.load" => joblib(call),
        "torch.load" => torch(reading, call),
        "builtins.list" | "builtins.tuple" => listed(reading, call),
        other if other.ends_with("to_pandas") => mapped_frame(reading, call),
        other if other.rsplit('.').next() == Some("load_all") => load_all(reading, call),
        _ => text(reading, call),
    }
}

/// Files that are small whatever is done to them.
const SMALL_FILES: [&str; 22] = [
    "script",
    "template",
    "prompt",
    "query",
    "sql",
    "html",
    "config",
    "setting",
    "param",
    "option",
    "secret",
    "credential",
    "token",
    "meta",
    "version",
    "readme",
    "requirement",
    "license",
    "schema",
    "vocab",
    "label",
    "class",
];

/// Objects that have to be whole to be of use.
const MODEL_NAMES: [&str; 13] = [
    "model",
    "clf",
    "classifier",
    "regressor",
    "scaler",
    "encoder",
    "vectorizer",
    "pipeline",
    "tokenizer",
    "pca",
    "weight",
    "checkpoint",
    "estimator",
];

/// Whether the file that is read, or the name it is given, tells that it is one of these.
fn is_about(statement: Node<'_>, file: Option<Node<'_>>, words: &[&str]) -> bool {
    let assigned = statement
        .child(0)
        .and_then(|inner| inner.field("left"))
        .map_or("", Node::text);
    let file = file.map_or("", Node::text);
    let told = format!("{} {}", assigned.to_lowercase(), file.to_lowercase());
    words.iter().any(|word| told.contains(word))
}

fn draft<'s>(kind: FindingKind, at: Node<'s>, change: Change, title: &str, why: &str) -> Draft<'s> {
    Draft {
        kind,
        at,
        change,
        title: title.into(),
        why: why.into(),
        saving: Saving::AllButPiece,
        grows_at: Vec::new(),
        command: None,
    }
}

/// One statement, with an argument more in a call.
fn with_argument<'s>(call: Node<'s>, argument: &str) -> Option<Change> {
    let statement = call.statement();
    let lines = header(call);
    let edit = Edit::add_argument(call, argument)?;
    Some(Change::edit_lines(statement.script(), lines, vec![edit]))
}

fn mapped_array<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let file = argument(call, 0, "file")?;
    let is_archive = string(file).is_some_and(|path| path.ends_with(".npz"))
        || call
            .parent()
            .is_some_and(|parent| parent.is(&["subscript", "as_pattern", "with_item"]))
        || assigned_name(call).is_some_and(|name| is_used_as_archive(call, name));
    let is_pickled = keyword(call, "allow_pickle").is_some_and(|value| value.kind() == "true");
    let is_open = reading.held(file) == Some(Held::File);
    if keyword(call, "mmap_mode").is_some()
        || positional(call).len() > 1
        || is_archive
        || is_pickled
        || is_open
    {
        return None;
    }
    Some(draft(
        FindingKind::WholeArray,
        call,
        with_argument(call, "mmap_mode=\"r\"")?,
        "Map the array instead of reading it",
        "With `mmap_mode` only the parts that are used are in memory, and the kernel takes them back when it needs to.",
    ))
}

/// Whether arrays are taken out of it by name.
fn is_used_as_archive(call: Node<'_>, name: &str) -> bool {
    call.script().named(name).any(|used| {
        let parent = used.parent();
        let index = parent.and_then(|parent| parent.field("subscript"));
        index.is_some_and(|index| index.kind() == "string")
            || parent
                .and_then(|parent| parent.field("attribute"))
                .is_some_and(|name| name.text() == "files")
    })
}

fn text_array<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let bounded = ["max_rows", "names", "skip_footer", "converters"];
    if bounded.iter().any(|option| keyword(call, option).is_some()) {
        return None;
    }
    let file = argument(call, 0, "fname").filter(|file| is_path(reading, *file))?;
    let name = assigned_name(call)?;
    let statement = call.statement();
    let lines = free_name(statement, &["lines", "rows", "text_lines"]);
    let mut edits = vec![Edit::replace(file, lines)];
    let skipped = keyword_argument(call, "skiprows").or_else(|| keyword_argument(call, "skip_header"));
    let skipped = skipped.filter(|skipped| skipped.field("value").is_some_and(|number| number.text() != "0"));
    if let Some(skipped) = skipped {
        edits.push(Edit::take_argument(call, skipped)?);
    }
    let dimensions = if keyword(call, "ndmin").is_none() {
        ", ndmin=2"
    } else {
        ""
    };
    let last = call.field("arguments")?.children().last()?;
    let more = format!(", max_rows=100_000{dimensions}");
    edits.push(match Some(last) == skipped {
        // The argument that goes takes all up to its end with it.
        true => Edit::insert(last.end(), more),
        false => Edit::add_argument(call, more.trim_start_matches(", "))?,
    });
    let piece = text_with(call, edits);
    let mut new = vec![(0, format!("with open({}) as {lines}:", file.text()))];
    if let Some(number) = skipped.and_then(|skipped| skipped.field("value")) {
        new.push((1, format!("for _ in range({}):", number.text())));
        new.push((2, format!("next({lines})")));
    }
    new.push((1, format!("while ({name} := {piece}).size:")));
    new.push((
        2,
        format!("...  # the lines that use {name} go in here and see 100,000 rows at a time"),
    ));
    Some(draft(
        FindingKind::WholeArray,
        call,
        Change::statements(statement, statement, &new)?,
        "Read the numbers in pieces",
        "A text of numbers takes several times its size while it is parsed, and then 8 bytes for each of them. Called \
         again on an open file with `max_rows` it goes on where it stopped. Saved once with `np.save`, the array can be \
         mapped: `np.load(…, mmap_mode=\"r\")`.",
    ))
}

/// Names of files that somebody has opened already.
const OPEN_FILES: [&str; 9] = ["f", "fh", "fp", "fd", "file", "fin", "handle", "stream", "buffer"];

/// Whether `open` would take it.
fn is_path<'s>(reading: &Reading<'s>, file: Node<'s>) -> bool {
    let name = file.text().to_lowercase();
    match file.kind() {
        "string" | "concatenated_string" | "binary_operator" => true,
        "identifier" | "attribute" | "subscript" => {
            reading.held(file) != Some(Held::File) && !OPEN_FILES.contains(&name.as_str())
        }
        "call" => reading.calls(file, &["os.path.join", "pathlib.Path", "builtins.str"]),
        _ => false,
    }
}

/// The call of `open` that a file comes from.
fn opened<'s>(reading: &Reading<'s>, file: Node<'s>) -> Option<Node<'s>> {
    if file.kind() == "call" {
        return (reading.held(file) == Some(Held::File)).then_some(file);
    }
    match reading.names.bound(file.text(), file)? {
        Bound::Opened(call) | Bound::Value(call) if reading.held(*call) == Some(Held::File) => Some(*call),
        _ => None,
    }
}

fn json<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let file = *positional(call).first()?;
    let path = opened(reading, file).and_then(|open| positional(open).first().copied());
    let statement = call.statement();
    if statement.kind() != "expression_statement" || is_about(statement, path, &SMALL_FILES) {
        return None;
    }
    assigned_name(call)?;
    let (items, imports) = spelled_or_imported(reading, "ijson.items", "import ijson");
    let pieces = Pieces {
        imports,
        iterable: format!("{items}({}, \"item\")", file.text()),
        item: Item::Other {
            name: free_name(statement, &["record", "item", "entry"]),
        },
        size: "",
    };
    Some(draft(
        FindingKind::WholeObject,
        call,
        in_pieces(reading, call, &pieces)?,
        "Read the JSON one object at a time",
        "JSON as Python objects takes many times the size of the file. ijson goes through a list without holding it; a \
         file with one object on each line needs only `json.loads(line)`.",
    ))
}

/// The literal path with another ending, or the expression as it stands.
fn with_ending(path: Node<'_>, ending: &str) -> String {
    let text = path.text();
    match (string(path), text.rfind('.')) {
        (Some(plain), Some(dot)) if plain.contains('.') => {
            let quote = text.chars().last().unwrap_or('"');
            format!("{}{ending}{quote}", &text[..dot])
        }
        _ => text.to_string(),
    }
}

fn pickle<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let open = opened(reading, *positional(call).first()?)?;
    let path = *positional(open).first()?;
    let statement = call.statement();
    if statement.kind() != "expression_statement" || is_about(statement, Some(path), &MODEL_NAMES) {
        return None;
    }
    let (load, imports) = spelled_or_imported(reading, "numpy.load", "import numpy as np");
    // A `with` that opened the file for nothing else goes with it.
    let around = statement.parent().filter(|block| block.children().count() == 1);
    let around = around.and_then(Node::parent).filter(|around| {
        around.kind() == "with_statement" && around.contains(open) && open.statement() == *around
    });
    // One of several objects in a file gets a file of its own.
    let file = match (around, assigned_name(call)) {
        (None, Some(name)) if file_is_shared(open, call) => format!("\"{name}.npy\""),
        _ => with_ending(path, ".npy"),
    };
    let mapped = format!("{load}({file}, mmap_mode=\"r\")");
    let mut lines: Vec<(usize, String)> = imports.into_iter().map(|line| (0, line)).collect();
    lines.push((0, text_with(statement, vec![Edit::replace(call, mapped)])));
    let place = around.unwrap_or(statement);
    Some(draft(
        FindingKind::WholeObject,
        call,
        Change::statements(place, place, &lines)?,
        "Keep the data in a form that can be mapped",
        "A pickle is read whole, and while it is read parts of it are there twice. An array that was saved once with \
         `np.save` is mapped: only what is used is in memory. Tables belong into Parquet, which is read by columns.",
    ))
}

/// Whether the file that a call reads was opened by another statement, for others too.
fn file_is_shared(open: Node<'_>, call: Node<'_>) -> bool {
    open.statement() != call.statement()
}

fn joblib<'s>(call: Node<'s>) -> Option<Draft<'s>> {
    let file = argument(call, 0, "filename")?;
    if keyword(call, "mmap_mode").is_some() || is_about(call.statement(), Some(file), &MODEL_NAMES) {
        return None;
    }
    Some(draft(
        FindingKind::WholeObject,
        call,
        with_argument(call, "mmap_mode=\"r\"")?,
        "Map the arrays instead of reading them",
        "With `mmap_mode` the arrays of an uncompressed file stay there, and only what is used is in memory.",
    ))
}

fn torch<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let file = argument(call, 0, "f")?;
    if keyword(call, "map_location").is_some()
        || keyword(call, "mmap").is_some()
        || positional(call).len() > 1
    {
        return None;
    }
    let is_path =
        !matches!(reading.held(file), Some(Held::File)) && !file.text().to_lowercase().contains("buffer");
    let arguments = match is_path {
        true => "map_location=\"cpu\", mmap=True",
        false => "map_location=\"cpu\"",
    };
    Some(draft(
        FindingKind::WholeObject,
        call,
        with_argument(call, arguments)?,
        "Map the checkpoint instead of reading it",
        "Without `map_location` every tensor goes back to the device that it was saved from, beside the model that is \
         there already. With `mmap=True` what is not used stays in the file.",
    ))
}

fn listed<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let arguments = positional(call);
    let [inner] = arguments.as_slice() else {
        return None;
    };
    let is_own_generator = || {
        inner.field("function").is_some_and(|function| {
            matches!(reading.names.bound(function.text(), function),
                Some(Bound::Definition(definition)) if reading.is_generator(*definition))
        })
    };
    // What is shown or picked from is not kept.
    let is_kept = call
        .parent()
        .is_some_and(|parent| !parent.is(&["subscript", "expression_statement"]));
    if !is_kept {
        return None;
    }
    let what = match reading.held(*inner)? {
        Held::Loader => "the loader",
        Held::Dataset | Held::MappedDataset => "the dataset",
        Held::Pieces => "the reader",
        Held::Generator if is_own_generator() => "the generator",
        _ => return None,
    };
    let (first, last) = header(call);
    Some(draft(
        FindingKind::WholeDataset,
        call,
        Change::edit_lines(
            reading.script,
            (first, last),
            vec![Edit::replace(call, inner.text())],
        ),
        &format!("Go over {what} instead of a list of it"),
        "A list holds everything that would otherwise be made one after the other and forgotten.",
    ))
}

fn mapped_frame<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let (object, _) = method(call)?;
    if reading.held(object) != Some(Held::MappedDataset) || keyword(call, "batched").is_some() {
        return None;
    }
    let edit = Edit::add_argument(call, "batched=True, batch_size=10_000")?;
    let pieces = Pieces {
        imports: Vec::new(),
        iterable: text_with(call, vec![edit]),
        item: Item::Alike,
        size: "10,000 rows",
    };
    Some(draft(
        FindingKind::WholeDataset,
        call,
        in_pieces(reading, call, &pieces)?,
        "Take the dataset in batches",
        "The dataset is mapped from disk and takes hardly any memory; `to_pandas` copies all of it at once, words as \
         Python objects.",
    ))
}

/// `load_all(paths)` of whoever wrote it: one path at a time.
fn load_all<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let called = reading.called(call)?;
    let arguments = positional(call);
    let [many] = arguments.as_slice() else {
        return None;
    };
    let function = call.field("function")?;
    // YAML's `load_all` is a generator, and a list of one is one at a time.
    if called.starts_with("yaml.") || many.kind() == "list" || function.kind() != "identifier" {
        return None;
    }
    let statement = call.statement();
    assigned_name(call)?;
    let (item, path) = (
        free_name(statement, &["item", "loaded"]),
        free_name(statement, &["path", "source", "one"]),
    );
    let one = text_with(call, vec![Edit::replace(*many, format!("[{path}]"))]);
    let lazily = format!("({item} for {path} in {} for {item} in {one})", many.text());
    Some(draft(
        FindingKind::WholeDataset,
        call,
        Change::edit(statement, statement, vec![Edit::replace(call, lazily)]),
        "Load one at a time",
        "Everything is loaded before anything is used. A generator loads the next one when it is asked for.",
    ))
}

/// `file.read()`, `file.readlines()`.
fn text<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let (file, name) = method(call)?;
    if !matches!(name, "read" | "readlines") || !positional(call).is_empty() {
        return None;
    }
    let open = opened(reading, file)?;
    let path = positional(open).first().copied();
    if is_about(call.statement(), path, &SMALL_FILES) {
        return None;
    }
    let is_binary = argument(open, 1, "mode")
        .and_then(string)
        .is_some_and(|mode| mode.contains('b'));
    let change = match (is_binary, name) {
        (true, "read") => mapped_text(reading, call, file)?,
        (true, _) => return None,
        (false, _) => by_lines(call, file, open)?,
    };
    Some(draft(
        FindingKind::WholeText,
        call,
        change,
        if is_binary {
            "Map the file instead of reading it"
        } else {
            "Read the text line by line"
        },
        match is_binary {
            true => "What is mapped is read when it is looked at, and given back when memory is short.",
            false => {
                "An open file gives one line after the other; a list of all lines takes about twice the file."
            }
        },
    ))
}

fn mapped_text<'s>(reading: &Reading<'s>, call: Node<'s>, file: Node<'s>) -> Option<Change> {
    let statement = call.statement();
    if file.kind() != "identifier" || assigned_name(call).is_none() {
        return None;
    }
    let (map, imports) = spelled_or_imported(reading, "mmap.mmap", "import mmap");
    let (access, _) = spelled_or_imported(reading, "mmap.ACCESS_READ", "import mmap");
    let mapped = format!("{map}({}.fileno(), 0, access={access})", file.text());
    let change = Change::edit(statement, statement, vec![Edit::replace(call, mapped)]);
    Some(change.led_by(&imports))
}

fn by_lines<'s>(call: Node<'s>, file: Node<'s>, open: Node<'s>) -> Option<Change> {
    let statement = call.statement();
    // `.read().splitlines()` and `.read().split("\n")` mean the lines too.
    let split = call.parent().and_then(Node::parent).filter(|outer| {
        let is_split =
            method(*outer).is_some_and(|(object, name)| object == call && name.starts_with("split"));
        outer.kind() == "call" && is_split
    });
    let whole = split.unwrap_or(call);
    if whole.role() == "right" && whole.parent()?.is(&["for_statement", "for_in_clause"]) {
        let lines = header(whole);
        return Some(Change::edit_lines(
            call.script(),
            lines,
            vec![Edit::replace(whole, file.text())],
        ));
    }
    assigned_name(whole)?;
    let (lines, line) = (
        free_name(statement, &["lines", "file", "text_lines"]),
        free_name(statement, &["line", "text_line"]),
    );
    let go_on = || "...  # what is done with the text goes in here, one line at a time".to_string();
    let new = match file.kind() {
        "identifier" => vec![(0, format!("for {line} in {}:", file.text())), (1, go_on())],
        _ => vec![
            (0, format!("with {} as {lines}:", open.text())),
            (1, format!("for {line} in {lines}:")),
            (2, go_on()),
        ],
    };
    Change::statements(statement, statement, &new)
}
