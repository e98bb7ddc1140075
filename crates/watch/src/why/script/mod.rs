//! Remedies from the code: a Python script is parsed, never run, and the places in it that take memory are found.
//!
//! A script becomes a flat tree (`tree.rs`); its names are resolved through imports and aliases (`names.rs`), and the
//! origin of a value is followed to the call that made it (`origin.rs`, `held.rs`), so that only the library's own
//! function counts. The rules (`rules/`) find what takes memory and write the lines that would take less (`change.rs`).
//! What was found is then held against where memory grew (`remedies.rs`): only there it is more than a hint. What a loop
//! does to memory step by step (`steps.rs`) tells a leak from one long load.

mod cells;
mod change;
mod finding;
mod held;
mod names;
mod notebook;
mod origin;
mod remedies;
mod rules;
mod sources;
mod steps;
mod trains;
mod tree;

use std::path::Path;

pub use cells::in_its_source;
pub use finding::{Finding, FindingKind, Lines, Saving};
pub use notebook::{Notebook, cell_of};
pub use remedies::remedies;
pub use sources::{read_sources, sources};
pub use steps::Scripts;
pub(super) use steps::Step;

use origin::Reading;
use tree::Script;

/// What takes memory in a script, or in a notebook if that is what the file is called; in the order of the text. A file
/// that cannot be read as Python has no findings.
pub fn findings(source: &str, file: &Path) -> Vec<Finding> {
    match is_notebook(file) {
        true => Notebook::parse(source).map_or(Vec::new(), |notebook| in_cells(&notebook)),
        false => in_script(source),
    }
}

fn is_notebook(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "ipynb")
}

fn in_script(source: &str) -> Vec<Finding> {
    let Some(script) = Script::parse(source) else {
        return Vec::new();
    };
    let reading = Reading::of(&script);
    rules::find(&reading)
        .into_iter()
        .map(change::Draft::finding)
        .collect()
}

/// Broken cells beyond that many are not looked at: each takes a reading of its own.
const MOST_BROKEN: usize = 20;

/// Cells see the names of each other, so they are read as one script. A cell that is broken comes last in a reading of
/// its own, where it cannot take the others with it.
fn in_cells(notebook: &Notebook) -> Vec<Finding> {
    let cells = (1..).zip(&notebook.cells);
    let cells: Vec<(u32, String)> = cells
        .filter_map(|(number, cell)| Some((number, notebook::python_of(cell)?)))
        .collect();
    let is_broken = |cell: &str| Script::parse(cell).is_none_or(|script| script.is_broken());
    let (broken, whole): (Vec<_>, Vec<_>) = cells.iter().partition(|(_, cell)| is_broken(cell));
    let mut findings = Joined::of(&whole).findings();
    for cell in broken.into_iter().take(MOST_BROKEN) {
        let mut before: Vec<_> = whole
            .iter()
            .copied()
            .filter(|(number, _)| *number < cell.0)
            .collect();
        before.push(cell);
        let found = Joined::of(&before).findings();
        findings.extend(found.into_iter().filter(|finding| finding.cell == Some(cell.0)));
    }
    findings.sort_by_key(|finding| (finding.cell, finding.line));
    findings
}

/// Cells one below the other.
struct Joined {
    source: String,
    /// The number of each cell and the lines that it has in the source.
    places: Vec<(u32, u32, u32)>,
}

impl Joined {
    fn of(cells: &[&(u32, String)]) -> Joined {
        let mut source = String::new();
        let mut places = Vec::new();
        let mut first = 1;
        for (number, cell) in cells {
            let lines = cell.split('\n').count() as u32;
            places.push((*number, first, first + lines - 1));
            first += lines;
            source.push_str(cell);
            source.push('\n');
        }
        Joined { source, places }
    }

    fn findings(&self) -> Vec<Finding> {
        let found = in_script(&self.source).into_iter();
        found.filter_map(|finding| self.in_its_cell(finding)).collect()
    }

    /// The cell of a line, and the line in it.
    fn place(&self, line: u32) -> Option<(u32, u32)> {
        let next = self.places.partition_point(|(_, first, _)| *first <= line);
        let (cell, first, _) = self.places.get(next.checked_sub(1)?)?;
        Some((*cell, line - first + 1))
    }

    /// A finding with its lines counted in its cell; none where the change would reach over several.
    fn in_its_cell(&self, mut finding: Finding) -> Option<Finding> {
        let (cell, line) = self.place(finding.line)?;
        finding.change = self.lines(&finding.change)?;
        finding.grows_at = finding
            .grows_at
            .iter()
            .filter_map(|lines| self.lines(lines))
            .collect();
        finding.end_line = line + (finding.end_line - finding.line);
        finding.line = line;
        finding.cell = Some(cell);
        Some(finding)
    }

    fn lines(&self, lines: &Lines) -> Option<Lines> {
        let (first, last) = (self.place(lines.first)?, self.place(lines.last)?);
        (first.0 == last.0).then_some(Lines {
            cell: Some(first.0),
            first: first.1,
            last: last.1,
        })
    }
}
