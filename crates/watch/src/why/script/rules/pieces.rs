//! Statements that hold a whole table, as loops over pieces of it.

use crate::why::script::change::{Change, Edit, Line, text_with};
use crate::why::script::origin::Reading;
use crate::why::script::tree::Node;

/// What gives pieces in the place of the whole.
pub(super) struct Pieces {
    /// Imports that it takes.
    pub(super) imports: Vec<String>,
    /// What the loop goes over.
    pub(super) iterable: String,
    pub(super) item: Item,
    /// How much of it is seen at a time, where that is more than one: `100,000 rows`.
    pub(super) size: &'static str,
}

/// What the loop gives.
pub(super) enum Item {
    /// The same kind of thing as the whole, only smaller.
    Alike,
    /// Something that this method makes such a thing of.
    Made { name: &'static str, by: &'static str },
    /// Something else.
    Other { name: &'static str },
}

impl Pieces {
    /// The variable of the loop, and what stands for the whole inside it.
    fn names<'n>(&self, place: Node<'n>, whole: Option<&'n str>) -> (&'n str, Option<String>) {
        match self.item {
            Item::Alike => {
                let name = whole.unwrap_or_else(|| free_name(place, &["chunk", "piece", "part"]));
                (name, Some(name.to_string()))
            }
            Item::Made { name, by } => (name, Some(format!("{name}.{by}"))),
            Item::Other { name } => (name, None),
        }
    }

    fn import_lines(&self) -> Vec<Line> {
        self.imports.iter().map(|line| (0, line.clone())).collect()
    }

    fn go_on(&self, name: &str) -> String {
        match self.item {
            Item::Other { name: one } => {
                format!("...  # what is done with {name} goes in here, one {one} at a time")
            }
            _ => format!(
                "...  # the lines that use {name} go in here and see {} at a time",
                self.size
            ),
        }
    }
}

/// The statement around `whole` with a loop over pieces in its place, where there is a way to write it.
pub(super) fn in_pieces<'s>(reading: &Reading<'s>, whole: Node<'s>, pieces: &Pieces) -> Option<Change> {
    let statement = whole.statement();
    let mut around = whole
        .ancestors()
        .take_while(|node| *node != statement)
        .filter(|node| {
            node.is(&[
                "lambda",
                "list_comprehension",
                "generator_expression",
                "dictionary_comprehension",
            ])
        });
    match (statement.kind(), around.next(), around.next()) {
        ("expression_statement", None, _) => statement_loop(statement, whole, pieces),
        ("return_statement", None, _) => returned_pieces(statement, whole, pieces),
        ("for_statement", None, _) if statement.field("right")?.contains(whole) => {
            outer_loop(statement, whole, pieces)
        }
        ("expression_statement" | "return_statement", Some(comprehension), None) => {
            nested_loops(reading, comprehension, whole, pieces)
        }
        _ => None,
    }
}

/// `df = read(…)` → `for df in read(…, chunksize=…):`
fn statement_loop(statement: Node<'_>, whole: Node<'_>, pieces: &Pieces) -> Option<Change> {
    let name = assigned_name(whole);
    let (variable, value) = pieces.names(statement, name);
    let mut lines = pieces.import_lines();
    lines.push((0, format!("for {variable} in {}:", pieces.iterable)));
    match (&value, name) {
        (Some(value), name) if name != Some(value) => {
            lines.push((1, text_with(statement, vec![Edit::replace(whole, value)])));
        }
        (None, None) => return None,
        _ => {}
    }
    let target = statement.child(0).filter(|inner| inner.kind() == "assignment");
    if let Some(target) = target.and_then(|assignment| assignment.field("left")) {
        lines.push((1, pieces.go_on(target.text())));
    }
    Change::statements(statement, statement, &lines)
}

/// `return read(…)` gives pieces to whoever called.
fn returned_pieces(statement: Node<'_>, whole: Node<'_>, pieces: &Pieces) -> Option<Change> {
    let (variable, value) = pieces.names(statement, None);
    let of_piece = text_with(statement.child(0)?, vec![Edit::replace(whole, value?)]);
    let returned = match of_piece == variable {
        true => pieces.iterable.clone(),
        false => format!("({of_piece} for {variable} in {})", pieces.iterable),
    };
    let mut lines = pieces.import_lines();
    lines.push((0, format!("return {returned}")));
    Change::statements(statement, statement, &lines)
}

/// `for row in read(…).iterrows():` gets a loop around it.
fn outer_loop(statement: Node<'_>, whole: Node<'_>, pieces: &Pieces) -> Option<Change> {
    let (variable, value) = pieces.names(statement, None);
    let above = [(0, format!("for {variable} in {}:", pieces.iterable))];
    let change = Change::nested(statement, statement, &above, vec![Edit::replace(whole, value?)])?;
    Some(change.led_by(&pieces.imports))
}

/// `df = concat([read(path) for path in paths])` → a loop over the paths, and in it one over the pieces.
fn nested_loops<'s>(
    reading: &Reading<'s>,
    comprehension: Node<'s>,
    whole: Node<'s>,
    pieces: &Pieces,
) -> Option<Change> {
    let statement = whole.statement();
    let clause = only_clause(comprehension, whole)?;
    let (left, right) = (clause.field("left")?.text(), clause.field("right")?.text());
    let mut lines = pieces.import_lines();
    if statement.kind() == "return_statement" {
        let (variable, value) = pieces.names(statement, None);
        let clauses = format!("for {left} in {right} for {variable} in {}", pieces.iterable);
        lines.push((0, format!("return ({} {clauses})", value?)));
        return Change::statements(statement, statement, &lines);
    }
    let joined = comprehension.ancestors().find(|node| node.kind() == "call");
    let joined = joined.filter(|call| reading.calls(*call, &["pandas.concat", "polars.concat"]));
    let name = joined.and_then(assigned_name);
    let (variable, value) = pieces.names(statement, name);
    lines.push((0, format!("for {left} in {right}:")));
    lines.push((1, format!("for {variable} in {}:", pieces.iterable)));
    let value = value?;
    if value != variable {
        lines.push((2, format!("{} = {value}", name.unwrap_or("frame"))));
    }
    let used = if value == variable {
        variable
    } else {
        name.unwrap_or("frame")
    };
    lines.push((2, pieces.go_on(used)));
    Change::statements(statement, statement, &lines)
}

/// The only `for` of a comprehension that makes nothing but this for each.
fn only_clause<'s>(comprehension: Node<'s>, made: Node<'s>) -> Option<Node<'s>> {
    if comprehension.field("body") != Some(made) || comprehension.kind() == "dictionary_comprehension" {
        return None;
    }
    let mut clauses = comprehension.children().filter(|child| child.role() != "body");
    match (clauses.next(), clauses.next()) {
        (Some(clause), None) if clause.kind() == "for_in_clause" => Some(clause),
        _ => None,
    }
}

/// The name that a value is assigned to, if nothing else is done to it on the way.
pub(super) fn assigned_name(value: Node<'_>) -> Option<&str> {
    let assignment = value.parent().filter(|parent| parent.kind() == "assignment")?;
    let left = assignment
        .field("left")
        .filter(|left| left.kind() == "identifier")?;
    (value.role() == "right").then_some(left.text())
}

/// The first of some names that the script does not use.
pub(super) fn free_name<'n>(place: Node<'_>, names: &[&'n str]) -> &'n str {
    let is_used = |name: &str| {
        let mut used = place.script().named(name);
        used.any(|node| node.role() != "attribute")
    };
    let free = names.iter().find(|name| !is_used(name));
    free.or(names.last()).copied().unwrap_or("_")
}

/// A function under the name that the script has for it, or under the one that an import gives it.
pub(super) fn spelled_or_imported(reading: &Reading<'_>, path: &str, import: &str) -> (String, Vec<String>) {
    if let Some(name) = reading.names.spelled(path) {
        return (name, Vec::new());
    }
    let last = path.rsplit('.').next().unwrap_or(path);
    let name = match import.split_once(" as ") {
        Some((module, alias)) => {
            let rest = path.strip_prefix(module.trim_start_matches("import "));
            format!("{alias}{}", rest.unwrap_or(path))
        }
        None if import.starts_with("from ") => last.to_string(),
        None => path.to_string(),
    };
    (name, vec![import.to_string()])
}
