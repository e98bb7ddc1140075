//! Zeros that are written out: dummies of many levels, sparse matrices made dense.

use super::{Draft, FindingKind, MOST, Saving};
use crate::why::script::change::{Change, Edit, header};
use crate::why::script::held::Held;
use crate::why::script::origin::{
    Reading, has_hidden_arguments, keyword_argument, method, positional, string,
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

/// How much of a matrix of dummies or words is not zero, at the most, where it hurts.
const FILLED: f64 = 0.1;

fn of_call<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let called = reading.called(call);
    let called = called.as_deref().unwrap_or_default();
    let (kind, edits, title, why) = match called {
        "pandas.get_dummies" => (
            FindingKind::DenseDummies,
            sparse_dummies(call)?,
            "Make the dummies sparse",
            "Each level of each column becomes a column of its own, as long as the table. Sparse columns hold only what \
             is not zero.",
        ),
        "sklearn.preprocessing.OneHotEncoder" => (
            FindingKind::DenseDummies,
            sparse_encoder(reading, call)?,
            "Let the encoder stay sparse",
            "Each level becomes a column. The encoder makes a sparse matrix unless it is told not to, and most models \
             take that.",
        ),
        "keras.utils.to_categorical" => (
            FindingKind::DenseDummies,
            vec![class_numbers(reading, call)?],
            "Give the loss the numbers of the classes",
            "A row of zeros and a one for each example takes as many numbers as there are classes. With \
             `loss=\"sparse_categorical_crossentropy\"` the number of the class is enough.",
        ),
        _ => (
            FindingKind::DenseMatrix,
            kept_sparse(reading, call)?,
            "Keep the matrix sparse",
            "Written out, the matrix takes rows × columns × 8 bytes, nearly all of them zeros. Most models of \
             scikit-learn take it as it is.",
        ),
    };
    Some(Draft {
        kind,
        at: call,
        change: Change::edit_lines(reading.script, header(call), edits),
        title: title.into(),
        why: why.into(),
        saving: Saving::PartOfGrowth(1.0 - FILLED),
        grows_at: Vec::new(),
        command: None,
    })
}

fn sparse_dummies(call: Node<'_>) -> Option<Vec<Edit>> {
    match keyword_argument(call, "sparse").and_then(|argument| argument.field("value")) {
        Some(value) if value.kind() == "false" => Some(vec![Edit::replace(value, "True")]),
        Some(_) => None,
        None => Some(vec![Edit::add_argument(call, "sparse=True")?]),
    }
}

fn sparse_encoder(reading: &Reading<'_>, call: Node<'_>) -> Option<Vec<Edit>> {
    // Frames are what was asked for, and those are dense.
    let wants_frames = ["set_output", "transform_output"];
    if wants_frames
        .iter()
        .any(|name| reading.script.named(name).next().is_some())
    {
        return None;
    }
    let dense = ["sparse_output", "sparse"]
        .iter()
        .filter_map(|name| keyword_argument(call, name))
        .find(|argument| {
            argument
                .field("value")
                .is_some_and(|value| value.kind() == "false")
        })?;
    Some(vec![Edit::take_argument(call, dense)?])
}

fn class_numbers<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Edit> {
    let classes = *positional(call)
        .first()
        .filter(|classes| classes.kind() != "list")?;
    // Only where a loss takes it: labels are also drawn, joined and averaged.
    let mut strings = reading.script.all("string").filter_map(string);
    let is_for_loss = strings.any(|text| text == "categorical_crossentropy")
        || reading.script.named("CategoricalCrossentropy").next().is_some();
    if !is_for_loss {
        return None;
    }
    let numbers = match reading.names.spelled("numpy.asarray") {
        Some(asarray) => format!("{asarray}({}, dtype=\"int32\")", classes.text()),
        None if classes.is(&["identifier", "attribute", "subscript", "call"]) => {
            format!("{}.astype(\"int32\")", classes.text())
        }
        None => return None,
    };
    Some(Edit::replace(call, numbers))
}

fn kept_sparse<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Vec<Edit>> {
    if reading.calls(call, &["numpy.asarray", "numpy.array"]) {
        let matrix = *positional(call).first()?;
        let is_sparse = reading.held(matrix) == Some(Held::Sparse) && matrix.is(&["identifier", "attribute"]);
        return is_sparse.then(|| vec![Edit::replace(call, matrix.text())]);
    }
    let (matrix, name) = method(call)?;
    if !matches!(name, "toarray" | "todense") || !positional(call).is_empty() {
        return None;
    }
    // Of something else, or only of a part.
    let origin = reading.origin(matrix);
    let is_sparse = reading.held(matrix) == Some(Held::Sparse);
    let is_kept = call.role() == "right" && call.parent().is_some_and(|parent| parent.kind() == "assignment");
    // What is only shown or compared is gone right away.
    let is_used = call
        .parent()
        .is_some_and(|parent| parent.is(&["assignment", "argument_list", "keyword_argument"]));
    let is_compared = call.statement().text().trim_start().starts_with("assert");
    if !is_used || is_compared {
        return None;
    }
    let can_be = origin.is_none() && is_kept && !reading.defines(name);
    if !(is_sparse || can_be) || matrix.kind() == "subscript" || is_piece(matrix) {
        return None;
    }
    if call
        .parent()
        .and_then(|parent| parent.field("left"))
        .is_some_and(|left| left.text() == matrix.text())
    {
        return Some(vec![Edit::replace(call, format!("{}.tocsr()", matrix.text()))]);
    }
    let outer = call
        .ancestors()
        .nth(1)
        .filter(|outer| outer.kind() == "call" && positional(*outer).first() == Some(&call));
    match outer {
        Some(outer) if reading.calls(outer, &["numpy.asarray", "numpy.array"]) => {
            Some(vec![Edit::replace(outer, matrix.text())])
        }
        Some(outer) if reading.calls(outer, &["pandas.DataFrame"]) => {
            let function = outer.field("function")?;
            let sparse = format!("{}.sparse.from_spmatrix", function.text());
            Some(vec![
                Edit::replace(function, sparse),
                Edit::replace(call, matrix.text()),
            ])
        }
        _ => Some(vec![Edit::replace(call, matrix.text())]),
    }
}

/// Names of what is only a part of a matrix.
fn is_piece(matrix: Node<'_>) -> bool {
    let name = matrix.text().to_lowercase();
    // Coefficients are as many as there are columns, not rows.
    if name.ends_with("coef_") {
        return true;
    }
    ["batch", "chunk", "row", "piece", "slice"]
        .iter()
        .any(|word| name.contains(word))
}
