//! Categories in an order that depends on what they are alone: shared by the encoders that list them.

use std::cmp::Reverse;

use crate::sketch::{Category, CategoryTable};

/// By rows, the most first; ties by name, categories whose name was not kept last and by key.
pub(super) fn most_frequent_first(table: &CategoryTable) -> Vec<Category<'_>> {
    let mut categories: Vec<Category<'_>> = table.categories().collect();
    categories.sort_by_cached_key(|category| (Reverse(category.count()), by_name(category)));
    categories
}

/// A key that sorts by name.
pub(super) fn by_name<'t>(category: &Category<'t>) -> (bool, &'t [u8], u64) {
    (
        category.name.is_none(),
        category.name.unwrap_or_default(),
        category.key(),
    )
}

/// The name for people, the key where the name was not kept.
pub(super) fn display_name(category: &Category<'_>) -> String {
    match category.name {
        Some(name) => String::from_utf8_lossy(name).into_owned(),
        None => format!("#{:016x}", category.key()),
    }
}
