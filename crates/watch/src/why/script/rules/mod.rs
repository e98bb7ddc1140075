//! What takes memory in scripts: one file for each kind of thing that does.

use super::change::Draft;
use super::finding::{FindingKind, Saving};
use super::origin::Reading;

mod batches;
mod caches;
mod collections;
mod dense;
mod files;
mod frames;
mod graphs;
mod images;
mod limits;
mod loops;
mod models;
mod pieces;
mod precision;
mod tables;
mod workers;

/// A rule: everything of its kind in a script.
type Rule = for<'s> fn(&Reading<'s>) -> Vec<Draft<'s>>;

/// Nobody reads more of one kind.
const MOST: usize = 100;

const RULES: [Rule; 13] = [
    tables::find,
    files::find,
    images::find,
    dense::find,
    batches::find,
    precision::find,
    graphs::find,
    models::find,
    workers::find,
    collections::find,
    caches::find,
    frames::find,
    limits::find,
];

/// All that any rule finds, in the order of the text.
pub(super) fn find<'s>(reading: &Reading<'s>) -> Vec<Draft<'s>> {
    let mut drafts: Vec<Draft> = RULES.iter().flat_map(|rule| rule(reading)).collect();
    // In broken code an edit can miss the lines that it was meant for.
    drafts.retain(|draft| draft.change.changes_something());
    drafts.sort_by_key(|draft| (draft.at.start(), draft.kind));
    drafts
}
