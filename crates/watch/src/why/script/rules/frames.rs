//! Tables that are copied, joined to more rows than they had, or hold words one by one.

use super::loops::is_bound_in;
use super::pieces::assigned_name;
use super::{Draft, FindingKind, MOST, Saving};
use crate::why::script::change::{Change, Edit, header, text_with};
use crate::why::script::held::Held;
use crate::why::script::origin::{Reading, has_hidden_arguments, keyword, method, positional, string};
use crate::why::script::tree::Node;

pub(super) fn find<'s>(reading: &Reading<'s>) -> Vec<Draft<'s>> {
    let calls = reading
        .script
        .all("call")
        .filter(|call| !has_hidden_arguments(*call));
    calls
        .filter_map(|call| {
            copied(reading, call)
                .or_else(|| joined(reading, call))
                .or_else(|| words(reading, call))
        })
        .take(MOST)
        .collect()
}

/// `part = table.copy()` in a loop.
fn copied<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let (frame, name) = method(call)?;
    let is_plain = name == "copy" && call.field("arguments")?.children().next().is_none();
    let around = call.repeated_by()?;
    if !is_plain || reading.held(frame) != Some(Held::Frame) || !frame.is(&["identifier", "attribute"]) {
        return None;
    }
    // A part that the loop itself makes is small.
    let is_own = assigned_name(call) == Some(frame.text());
    if is_bound_in(around, frame.text()) && !is_own {
        return None;
    }
    Some(Draft {
        kind: FindingKind::CopyInLoop,
        at: call,
        change: Change::edit_lines(
            reading.script,
            header(call),
            vec![Edit::add_argument(call, "deep=False")?],
        ),
        title: format!("Copy only what is changed of `{}`", frame.text()),
        why: "Each turn copies the whole table. A shallow copy shares its columns; with pandas 3, or with \
              `pd.options.mode.copy_on_write = True`, a column is copied when it is changed."
            .into(),
        saving: Saving::PartOfGrowth(0.5),
        grows_at: Vec::new(),
        command: None,
    })
}

/// What says how two tables belong together.
const KEYS: [&str; 7] = [
    "on",
    "left_on",
    "right_on",
    "left_index",
    "right_index",
    "validate",
    "how",
];

/// `left.merge(right)` by whatever columns have the same name.
fn joined<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let left = match method(call) {
        _ if reading.calls(call, &["pandas.merge"]) => *positional(call).first()?,
        Some((frame, "merge")) if reading.held(frame) == Some(Held::Frame) => frame,
        _ => return None,
    };
    let is_cross = keyword(call, "how").and_then(string) == Some("cross");
    let has_keys = KEYS.iter().any(|key| keyword(call, key).is_some()) || positional(call).len() > 2;
    let statement = call.statement();
    let (change, title, why) = match (is_cross, has_keys) {
        (true, _) if left.is(&["identifier", "attribute"]) => {
            let part = format!("{}.iloc[start:start + 1_000]", left.text());
            let name = assigned_name(call)?;
            let lines = [
                (0, format!("for start in range(0, len({}), 1_000):", left.text())),
                (1, text_with(statement, vec![Edit::replace(left, part)])),
                (
                    1,
                    format!("...  # the lines that use {name} go in here and see 1,000 rows at a time"),
                ),
            ];
            (
                Change::statements(statement, statement, &lines)?,
                "Take the cross product piece by piece",
                "Every row of one table stands beside every row of the other: the rows multiply.",
            )
        }
        (false, false) => (
            Change::edit_lines(
                reading.script,
                header(call),
                vec![Edit::add_argument(call, "validate=\"many_to_one\"")?],
            ),
            "Say how the rows belong together",
            "Without `on` all columns with the same name are the key, and keys that stand several times on both sides \
             multiply the rows. With `validate` pandas says so instead of making them.",
        ),
        _ => return None,
    };
    Some(Draft {
        kind: FindingKind::Join,
        at: call,
        change,
        title: title.into(),
        why: why.into(),
        saving: if is_cross {
            Saving::AllButPiece
        } else {
            Saving::Unknown
        },
        grows_at: Vec::new(),
        command: None,
    })
}

/// `dtype=str`, `.astype(str)`
fn words<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let is_text = |dtype: &Node<'s>| match string(*dtype) {
        Some(name) => matches!(name, "str" | "object" | "O"),
        None => {
            let origin = reading.origin(*dtype);
            matches!(
                origin.as_deref(),
                Some("builtins.str" | "builtins.object" | "numpy.object_")
            )
        }
    };
    let reads = [
        "pandas.read_csv",
        "pandas.read_table",
        "pandas.read_fwf",
        "pandas.DataFrame",
        "pandas.Series",
    ];
    let dtype = match method(call) {
        _ if reading.calls(call, &reads) => keyword(call, "dtype"),
        Some((frame, "astype")) if reading.held(frame) == Some(Held::Frame) && is_kept(call) => {
            keyword(call, "dtype").or_else(|| positional(call).first().copied())
        }
        _ => None,
    };
    let dtype = dtype.filter(is_text)?;
    Some(Draft {
        kind: FindingKind::ObjectColumn,
        at: call,
        change: Change::edit_lines(reading.script, header(call), vec![Edit::replace(dtype, "\"category\"")]),
        title: "Hold words that repeat as categories".into(),
        why: "Each word is a Python object of some 60 bytes and a pointer to it. As a category each different word is \
              there once, and a row takes one to four bytes."
            .into(),
        saving: Saving::PartOfGrowth(0.5),
        grows_at: Vec::new(),
        command: None,
    })
}

/// Whether the result is stored as it is, and not only used on the way to something else.
fn is_kept(call: Node<'_>) -> bool {
    call.role() == "right" && call.parent().is_some_and(|parent| parent.kind() == "assignment")
}
