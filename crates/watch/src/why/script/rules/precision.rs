//! Numbers of eight bytes where four would do.

use super::images::is_list_of_images;
use super::{Draft, FindingKind, MOST, Saving};
use crate::why::script::change::{Change, Edit, header};
use crate::why::script::origin::{
    Reading, argument, has_hidden_arguments, integer, keyword, method, positional, string,
};
use crate::why::script::tree::Node;

pub(super) fn find<'s>(reading: &Reading<'s>) -> Vec<Draft<'s>> {
    let calls = reading
        .script
        .all("call")
        .filter(|call| !has_hidden_arguments(*call));
    // One finding for a statement, however many arrays it makes.
    let mut found: Vec<(Node<'s>, Vec<Edit>)> = Vec::new();
    for call in calls {
        let edits = of_call(reading, call);
        let number = found.len();
        match found.last_mut() {
            _ if edits.is_empty() => {}
            Some((first, all)) if header(*first) == header(call) => all.extend(edits),
            _ if number >= MOST => break,
            _ => found.push((call, edits)),
        }
    }
    found
        .into_iter()
        .map(|(call, edits)| draft(reading, call, edits))
        .collect()
}

fn draft<'s>(reading: &Reading<'s>, call: Node<'s>, edits: Vec<Edit>) -> Draft<'s> {
    Draft {
        kind: FindingKind::DoublePrecision,
        at: call,
        change: Change::edit_lines(reading.script, header(call), edits),
        title: "Use float32 instead of float64".into(),
        why: "Each number takes 8 bytes where 4 are enough for nearly all learning; networks compute in float32 anyway."
            .into(),
        saving: Saving::PartOfGrowth(0.5),
        grows_at: Vec::new(),
        command: None,
    }
}

/// An array with fewer elements is too small to matter.
const FEW_ELEMENTS: i64 = 1_000_000;

/// Functions of NumPy that make doubles unless told otherwise, and the place of their `dtype`.
const MAKERS: [(&str, usize); 6] = [
    ("numpy.zeros", 1),
    ("numpy.ones", 1),
    ("numpy.empty", 1),
    ("numpy.full", 2),
    ("numpy.eye", 3),
    ("numpy.identity", 1),
];

/// Drawing doubles, and the method of a generator that draws floats as well.
const DRAWERS: [(&str, &str); 5] = [
    ("numpy.random.rand", "random"),
    ("numpy.random.randn", "standard_normal"),
    ("numpy.random.random", "random"),
    ("numpy.random.random_sample", "random"),
    ("numpy.random.standard_normal", "standard_normal"),
];

fn of_call<'s>(reading: &Reading<'s>, call: Node<'s>) -> Vec<Edit> {
    let called = reading.called(call);
    let called = called.as_deref().unwrap_or_default();
    let edit = made(reading, call, called)
        .or_else(|| drawn(reading, call, called))
        .or_else(|| converted(reading, call))
        .or_else(|| divided_images(reading, call));
    match edit {
        Some(edit) => vec![edit],
        None => doubles_among_arguments(reading, call, called),
    }
}

/// How the script writes NumPy's float32.
fn float32(reading: &Reading<'_>) -> String {
    reading
        .names
        .spelled("numpy.float32")
        .unwrap_or_else(|| "\"float32\"".into())
}

/// `np.zeros(shape)`
fn made<'s>(reading: &Reading<'s>, call: Node<'s>, called: &str) -> Option<Edit> {
    let (_, place) = MAKERS.iter().find(|(name, _)| *name == called)?;
    if argument(call, *place, "dtype").is_some() || is_converted(call) {
        return None;
    }
    let shape = *positional(call).first()?;
    let fill = argument(call, 1, "fill_value").filter(|_| called == "numpy.full");
    let is_whole = fill.is_some_and(|fill| fill.is(&["integer", "true", "false", "string", "none"]));
    if is_whole || number_of_elements(shape).is_some_and(|number| number < FEW_ELEMENTS) {
        return None;
    }
    Edit::add_argument(call, &format!("dtype={}", float32(reading)))
}

/// The elements of a shape that is written out.
fn number_of_elements(shape: Node<'_>) -> Option<i64> {
    match shape.kind() {
        "tuple" | "list" => shape
            .children()
            .map(integer)
            .try_fold(1_i64, |product, side| product.checked_mul(side?)),
        _ => integer(shape),
    }
}

/// Whether the result is turned into something else right away.
fn is_converted(call: Node<'_>) -> bool {
    let outer = call.ancestors().nth(1).and_then(method);
    outer.is_some_and(|(object, name)| object == call && name == "astype")
}

/// `np.random.rand(rows, columns)`
fn drawn<'s>(reading: &Reading<'s>, call: Node<'s>, called: &str) -> Option<Edit> {
    if is_converted(call) {
        return None;
    }
    let sides = positional(call);
    let size = keyword(call, "size");
    let generator = called.strip_prefix("numpy.random.default_rng().");
    if let Some(name) = generator.filter(|name| matches!(*name, "random" | "standard_normal")) {
        let shape = size.or_else(|| sides.first().copied())?;
        let is_told = keyword(call, "dtype").is_some() || (name == "random" && sides.len() > 1);
        let is_small = number_of_elements(shape).is_some_and(|number| number < FEW_ELEMENTS);
        return match is_told || is_small {
            true => None,
            false => Edit::add_argument(call, &format!("dtype={}", float32(reading))),
        };
    }
    let (name, drawer) = DRAWERS.iter().find(|(name, _)| *name == called)?;
    let shape = match (*name, sides.as_slice(), size) {
        ("numpy.random.rand" | "numpy.random.randn", [], _) | (_, [], None) => return None,
        ("numpy.random.rand" | "numpy.random.randn", sides, _) => {
            let elements = sides.iter().map(|side| integer(*side));
            let elements = elements
                .collect::<Option<Vec<i64>>>()
                .map(|sides| sides.iter().product::<i64>());
            if elements.is_some_and(|number| number < FEW_ELEMENTS) {
                return None;
            }
            let sides: Vec<&str> = sides.iter().map(|side| side.text()).collect();
            match sides.len() {
                1 => sides[0].to_string(),
                _ => format!("({})", sides.join(", ")),
            }
        }
        (_, sides, size) => {
            let shape = size.or_else(|| sides.first().copied())?;
            if number_of_elements(shape).is_some_and(|number| number < FEW_ELEMENTS) {
                return None;
            }
            shape.text().to_string()
        }
    };
    // A seed for all of NumPy does not reach a generator of its own.
    let is_seeded = !reading.calls_of("numpy.random.seed").is_empty();
    let generator = reading.names.spelled("numpy.random.default_rng");
    match (is_seeded, generator) {
        (false, Some(generator)) => {
            let drawn = format!("{generator}().{drawer}({shape}, dtype={})", float32(reading));
            Some(Edit::replace(call, drawn))
        }
        _ => Some(Edit::insert(call.end(), format!(".astype({})", float32(reading)))),
    }
}

/// `x.astype(float)`, `x.double()`
fn converted<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Edit> {
    let (_, name) = method(call)?;
    let arrays = reading.names.imports("numpy") || reading.names.imports("pandas");
    match name {
        "astype" if arrays => single(reading, argument(call, 0, "dtype")?),
        "double"
            if reading.names.imports("torch")
                && positional(call).is_empty()
                && !reading.defines("double") =>
        {
            let name = call.field("function")?.field("attribute")?;
            Some(Edit::replace(name, "float"))
        }
        _ => None,
    }
}

/// The name of a type of doubles, as single ones.
fn single<'s>(reading: &Reading<'s>, dtype: Node<'s>) -> Option<Edit> {
    if let Some(name) = string(dtype) {
        let is_double = matches!(name, "float64" | "double" | "float" | "f8" | "<f8");
        return is_double.then(|| Edit::replace(dtype, "\"float32\""));
    }
    match reading.origin(dtype)?.as_ref() {
        "numpy.float64" | "numpy.double" | "numpy.float_" | "builtins.float" => {
            Some(Edit::replace(dtype, float32(reading)))
        }
        "torch.float64" | "torch.double" => {
            Some(Edit::replace(dtype, reading.names.spelled("torch.float32")?))
        }
        "tensorflow.float64" => Some(Edit::replace(dtype, reading.names.spelled("tensorflow.float32")?)),
        _ => None,
    }
}

/// `np.array(x, dtype=np.float64)`, `tensor.to(torch.float64)`, `tf.cast(x, tf.float64)`
fn doubles_among_arguments<'s>(reading: &Reading<'s>, call: Node<'s>, called: &str) -> Vec<Edit> {
    let takes_names = ["numpy.", "pandas."]
        .iter()
        .any(|library| called.starts_with(library));
    let mut values = positional(call);
    values.extend(keyword(call, "dtype"));
    let is_floatx = called == "keras.backend.set_floatx";
    let of_framework = |value: &Node<'s>| {
        let origin = reading.origin(*value);
        origin.is_some_and(|origin| origin.starts_with("torch.") || origin.starts_with("tensorflow."))
    };
    let is_keyword = |value: &Node<'s>| {
        value
            .parent()
            .is_some_and(|parent| parent.kind() == "keyword_argument")
    };
    values
        .into_iter()
        .filter(|value| of_framework(value) || is_floatx || (takes_names && is_keyword(value)))
        // A comparison asks for the type, and sets none.
        .filter(|value| value.is(&["attribute", "identifier", "string"]))
        .filter_map(|value| single(reading, value))
        .collect()
}

/// `np.array(images) / 255`
fn divided_images<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Edit> {
    if !reading.calls(call, &["numpy.array", "numpy.asarray"]) || argument(call, 1, "dtype").is_some() {
        return None;
    }
    let parent = call
        .parent()
        .filter(|parent| parent.kind() == "binary_operator")?;
    let operator = parent.field("operator")?.text();
    let list = *positional(call).first()?;
    let is_divided = operator == "/" && call.role() == "left";
    if !is_divided || list.kind() != "identifier" || !is_list_of_images(reading, list) {
        return None;
    }
    Edit::add_argument(call, &format!("dtype={}", float32(reading)))
}
