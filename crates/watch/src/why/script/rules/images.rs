//! Images of all files, held at once.

use super::loops::{calls, is_for_one_batch, methods_of, outermost_loop};
use super::pieces::{assigned_name, free_name};
use super::{Draft, FindingKind, MOST, Saving};
use crate::why::script::change::{Change, Edit};
use crate::why::script::held::Held;
use crate::why::script::names::Bound;
use crate::why::script::origin::{Reading, keyword, method, positional};
use crate::why::script::tree::Node;

const WHY: &str = "An image in memory is many times its file. A generator reads one when it is asked for; \
    `tf.data.Dataset.from_generator` and a `Dataset` of PyTorch with the reading in `__getitem__` do the same.";

pub(super) fn find<'s>(reading: &Reading<'s>) -> Vec<Draft<'s>> {
    let appended = reading
        .script
        .all("call")
        .filter_map(|call| appended(reading, call))
        .take(MOST);
    let listed = reading
        .script
        .all("list_comprehension")
        .filter_map(|list| listed(reading, list))
        .take(MOST);
    let copied = reading
        .script
        .all("call")
        .filter_map(|call| copied(reading, call))
        .take(MOST);
    appended.chain(listed).chain(copied).collect()
}

fn draft<'s>(at: Node<'s>, change: Change, title: &str, why: &str, saving: Saving) -> Draft<'s> {
    Draft {
        kind: FindingKind::AllImages,
        at,
        change,
        title: title.into(),
        why: why.into(),
        saving,
        grows_at: Vec::new(),
        command: None,
    }
}

/// `images.append(image)` in a loop over files.
fn appended<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let (list, name) = method(call)?;
    let image = *positional(call).first()?;
    if name != "append" || !is_image(reading, image) || is_for_one_batch(call) {
        return None;
    }
    let statement = call.statement();
    let whole = outermost_loop(call)?;
    let leaves = whole
        .within()
        .any(|node| node.is(&["return_statement", "yield", "await"]));
    if statement.kind() != "expression_statement" || leaves || list.kind() != "identifier" {
        return None;
    }
    let made = format!("read_{}", list.text());
    let name = free_name(statement, &[&made, "read_images", "image_reader"]).to_string();
    let above = [(0, format!("def {name}():"))];
    let edit = Edit::replace(statement, format!("yield {}", image.text()));
    let change = Change::nested(whole, whole, &above, vec![edit])?;
    let change = change.followed_by(&[format!("{} = {name}()", list.text())]);
    let mut draft = draft(
        call,
        change,
        "Read an image when it is needed",
        WHY,
        Saving::AllButPiece,
    );
    draft.grows_at = reading_statements(reading, whole);
    Some(draft)
}

/// The statements of a loop that read or change images.
fn reading_statements<'s>(reading: &Reading<'s>, around: Node<'s>) -> Vec<Node<'s>> {
    calls(around)
        .filter(|call| reading.held(*call) == Some(Held::Image))
        .map(Node::statement)
        .collect()
}

/// An image, or several of them with what belongs to them.
fn is_image<'s>(reading: &Reading<'s>, node: Node<'s>) -> bool {
    match node.kind() {
        "tuple" | "list" | "parenthesized_expression" => node.children().any(|part| is_image(reading, part)),
        _ => reading.held(node) == Some(Held::Image),
    }
}

/// `[cv2.imread(path) for path in paths]`
fn listed<'s>(reading: &Reading<'s>, list: Node<'s>) -> Option<Draft<'s>> {
    if !is_image(reading, list.field("body")?) || is_for_one_batch(list) {
        return None;
    }
    let array = list.ancestors().find(|node| node.kind() == "call");
    let array = array.filter(|call| is_array(reading, *call) && positional(*call).first() == Some(&list));
    let whole = array.unwrap_or(list);
    assigned_name(whole)?;
    let text = list.text();
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let statement = list.statement();
    let change = Change::edit(
        statement,
        statement,
        vec![Edit::replace(whole, format!("({inner})"))],
    );
    Some(draft(
        list,
        change,
        "Read an image when it is needed",
        WHY,
        Saving::AllButPiece,
    ))
}

fn is_array<'s>(reading: &Reading<'s>, call: Node<'s>) -> bool {
    reading.calls(call, &["numpy.array", "numpy.asarray", "numpy.stack"])
}

/// `np.array(images)`, with the list still there.
fn copied<'s>(reading: &Reading<'s>, call: Node<'s>) -> Option<Draft<'s>> {
    let list = *positional(call).first()?;
    if !is_array(reading, call) || list.kind() != "identifier" || !is_list_of_images(reading, list) {
        return None;
    }
    let statement = call.statement();
    let name = list.text();
    let gone = statement.following().take(3).any(|next| {
        let text = next.text();
        text == format!("{name}.clear()")
            || text == format!("del {name}")
            || next.kind() == "delete_statement" && super::loops::mentions(next, name)
    });
    if statement.kind() != "expression_statement" || gone {
        return None;
    }
    let change = Change::edit(statement, statement, Vec::new()).followed_by(&[format!("{name}.clear()")]);
    Some(draft(
        call,
        change,
        "Let the list of images go",
        "The array is a copy of all images, and the list keeps the first one.",
        Saving::PartOfGrowth(0.5),
    ))
}

/// Whether images are appended to a list anywhere, or it was made of them.
pub(super) fn is_list_of_images<'s>(reading: &Reading<'s>, list: Node<'s>) -> bool {
    let scope = list.scope();
    let appended = || {
        methods_of(reading.script.root(), list.text())
            .filter(|(call, method)| *method == "append" && call.scope() == scope)
            .any(|(call, _)| {
                positional(call)
                    .first()
                    .is_some_and(|image| is_image(reading, *image))
            })
    };
    match reading.names.bound(list.text(), list) {
        Some(Bound::Value(value)) if value.kind() == "list_comprehension" => {
            value.field("body").is_some_and(|body| is_image(reading, body))
        }
        Some(Bound::Value(value)) => {
            reading.origin(*value).as_deref() == Some("builtins.list()")
                && keyword(*value, "dtype").is_none()
                && appended()
        }
        _ => false,
    }
}
