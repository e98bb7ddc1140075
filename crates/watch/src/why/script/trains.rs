//! The Tidegate command that does what a script does with a table: reads it and fits a model on it.

use super::names::Bound;
use super::origin::{Reading, argument, keyword, method, positional, string};
use super::tree::Node;

/// Endings of files that Tidegate reads.
const ENDINGS: [&str; 16] = [
    ".csv",
    ".csv.gz",
    ".csv.zst",
    ".csv.zip",
    ".tsv",
    ".tsv.gz",
    ".txt",
    ".jsonl",
    ".jsonl.gz",
    ".ndjson",
    ".parquet",
    ".pq",
    ".feather",
    ".arrow",
    ".ipc",
    ".csv.zstd",
];

/// Libraries whose estimators learn from tables.
const LIBRARIES: [&str; 4] = ["sklearn.", "xgboost.", "lightgbm.", "catboost."];

/// Models after that many are not looked at.
const MOST_FITS: usize = 50;

/// `tidegate train FILE --target COLUMN`, where the script names both and fits a model on the table.
pub(super) fn command<'s>(reading: &Reading<'s>, read: Node<'s>) -> Option<String> {
    let file = argument(read, 0, "path").or_else(|| keyword(read, "filepath_or_buffer"))?;
    let file = string(file).filter(|path| ENDINGS.iter().any(|ending| path.ends_with(ending)))?;
    // Of the tables that other machines hold, only those in files of this one are read by name.
    if file.contains("://") {
        return None;
    }
    let fits = reading
        .script
        .named("fit")
        .filter_map(|name| name.ancestors().nth(1))
        .take(MOST_FITS);
    let target = fits
        .filter_map(|call| target_of_fit(reading, call, read))
        .next()?;
    Some(format!("tidegate train {} --target {}", word(file), word(target)))
}

/// The column that a model is fitted to, if it is one of this table.
fn target_of_fit<'s>(reading: &Reading<'s>, call: Node<'s>, read: Node<'s>) -> Option<&'s str> {
    let (object, name) = method(call)?;
    let made = reading.origin(object)?;
    if name != "fit" || !LIBRARIES.iter().any(|library| made.starts_with(library)) {
        return None;
    }
    column_of(reading, argument(call, 1, "y")?, read, 0)
}

/// The column of a table that a value is, seen through the usual steps on the way to a model.
fn column_of<'s>(reading: &Reading<'s>, value: Node<'s>, table: Node<'s>, depth: u32) -> Option<&'s str> {
    if depth > 12 {
        return None;
    }
    let go_on = |value: Node<'s>| column_of(reading, value, table, depth + 1);
    match value.kind() {
        "identifier" => match reading.names.bound(value.text(), value)? {
            Bound::Value(value) => go_on(*value),
            Bound::Part(split, place) => go_on(split_argument(reading, *split, *place)?),
            _ => None,
        },
        "subscript" => {
            let column = string(value.field("subscript")?)?;
            is_of_table(reading, value.field("value")?, table, depth + 1).then_some(column)
        }
        "attribute" => {
            let (object, name) = (value.field("object")?, value.field("attribute")?.text());
            match name {
                "values" | "T" => go_on(object),
                _ => is_of_table(reading, object, table, depth + 1).then_some(name),
            }
        }
        "call" => {
            let (object, name) = method(value)?;
            match name {
                "pop" => {
                    let column = string(*positional(value).first()?)?;
                    is_of_table(reading, object, table, depth + 1).then_some(column)
                }
                "to_numpy" | "astype" | "ravel" | "map" | "fillna" | "copy" | "replace" => go_on(object),
                _ => None,
            }
        }
        _ => None,
    }
}

/// What part of `train_test_split(X, y)` was made of which argument.
fn split_argument<'s>(reading: &Reading<'s>, split: Node<'s>, place: usize) -> Option<Node<'s>> {
    if !reading.calls(split, &["sklearn.model_selection.train_test_split"]) {
        return None;
    }
    positional(split).get(place / 2).copied()
}

/// Whether a frame was made of this table, by steps that leave its columns their names.
fn is_of_table<'s>(reading: &Reading<'s>, frame: Node<'s>, table: Node<'s>, depth: u32) -> bool {
    if frame == table {
        return true;
    }
    if depth > 12 {
        return false;
    }
    let go_on = |value: Node<'s>| is_of_table(reading, value, table, depth + 1);
    match frame.kind() {
        "identifier" => match reading.names.bound(frame.text(), frame) {
            Some(Bound::Value(value)) => go_on(*value),
            Some(Bound::Part(split, place)) => split_argument(reading, *split, *place).is_some_and(go_on),
            _ => false,
        },
        "call" => method(frame).is_some_and(|(object, _)| go_on(object)),
        "subscript" => frame.field("value").is_some_and(go_on),
        _ => false,
    }
}

/// As a shell takes it for one word.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/+@%".contains(c);
    match !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        true => text.to_string(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}
