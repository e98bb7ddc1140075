//! Growth as a person knows its place: the line of code, and of a notebook the cell instead of its kernel's name for it.

use std::path::{Path, PathBuf};

use super::is_notebook;
use super::notebook::{Notebook, cell_of};
use super::sources::absolute;
use crate::why::{Case, Growth};

/// The same growth, with its code, and in cells of notebooks where those are among the sources.
pub fn in_its_source(case: &Case, growth: Vec<Growth>, sources: &[(PathBuf, String)]) -> Vec<Growth> {
    let notebooks: Vec<(&PathBuf, Notebook)> = sources
        .iter()
        .filter(|(file, _)| is_notebook(file))
        .filter_map(|(file, text)| Some((file, Notebook::parse(text)?)))
        .collect();
    let placed = |mut growth: Growth| {
        let place = &growth.place;
        let in_cell = notebooks.iter().find_map(|(file, notebook)| {
            let cell = cell_of(notebook, &place.file)?;
            Some((*file, cell, notebook.cells.get(cell as usize - 1)?))
        });
        growth.code = match &in_cell {
            Some((_, _, text)) => line_of(text, place.line),
            None => {
                let path = absolute(&case.facts.folder, Path::new(&place.file));
                let source = sources.iter().find(|(file, _)| *file == path);
                source.and_then(|(_, text)| line_of(text, place.line))
            }
        };
        if let Some((file, cell, _)) = in_cell {
            growth.place.file = file.display().to_string();
            growth.cell = Some(cell);
        }
        growth
    };
    growth.into_iter().map(placed).collect()
}

fn line_of(text: &str, line: u32) -> Option<String> {
    let line = text.lines().nth(line.checked_sub(1)? as usize)?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}
