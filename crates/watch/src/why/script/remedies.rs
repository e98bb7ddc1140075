//! What was found in the code, held against where memory grew.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tidegate_memory::format_bytes;
use tidegate_runs::Frame;

use super::notebook::{Notebook, cell_of};
use super::sources::absolute;
use super::{Finding, FindingKind, findings, is_notebook};
use crate::why::remedies::general_remedies;
use crate::why::{Case, Cause, Growth, Remedy};

/// Less than this part of all growth is noise.
const LEAST_SHARE: f64 = 0.05;

/// A line that no rule knows is worth a look from here on.
const UNKNOWN_SHARE: f64 = 0.1;

/// Hints beyond that many only bury the first ones.
const MOST_HINTS: usize = 8;

/// What to change, the most effective first: places where memory was seen to grow, by the bytes they would save; then
/// what helps against this cause in general; then hints, places that take memory by their look alone.
pub fn remedies(case: &Case, cause: Cause, growth: &[Growth], sources: &[(PathBuf, String)]) -> Vec<Remedy> {
    let sources: Vec<Source> = sources
        .iter()
        .map(|(file, text)| Source::of(&case.facts.folder, file, text))
        .collect();
    let places = placed(case, growth, &sources);
    let mut explained: HashSet<usize> = HashSet::new();
    let mut measured: Vec<(u64, Remedy)> = Vec::new();
    let mut hints: Vec<(usize, Remedy)> = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        for finding in &source.findings {
            let Some(rank) = rank(finding, cause) else {
                continue;
            };
            let here: Vec<&Place> = places
                .iter()
                .filter(|place| place.source == Some(number) && is_at(finding, place))
                .collect();
            let share: f64 = here.iter().map(|place| place.growth.share).sum();
            let bytes: u64 = here.iter().map(|place| place.growth.bytes).sum();
            // What grew on the host says nothing about a device.
            let counts = cause != Cause::DeviceMemory && share >= LEAST_SHARE;
            let mut remedy = of_finding(case, source, finding);
            if counts {
                explained.extend(here.iter().map(|place| place.index));
                remedy.measured = true;
                remedy.saves = finding.saving.of(bytes);
                measured.push((remedy.saves.unwrap_or(0), remedy));
            } else {
                hints.push((rank, remedy));
            }
        }
    }
    let unexplained = places.iter().filter(|place| !explained.contains(&place.index));
    let is_import = |place: &Place| {
        let code = place.growth.code.as_deref().unwrap_or_default();
        let mut frames = std::iter::once(&place.growth.place).chain(&place.growth.within);
        code.starts_with("import ")
            || code.starts_with("from ")
            || frames.any(|frame| frame.file.starts_with("<frozen importlib"))
    };
    // Nobody changes a library for it.
    let is_library =
        |place: &Place| place.source.is_none() && place.cell.is_none() && in_library(place.frame);
    let unexplained = unexplained
        .filter(|place| place.growth.share >= UNKNOWN_SHARE && is_about_memory(cause))
        .filter(|place| !is_import(place) && !is_library(place));
    let unexplained: Vec<Remedy> = unexplained.map(|place| of_place(place, &sources)).collect();
    let (counted, general): (Vec<Remedy>, Vec<Remedy>) = general_remedies(case, cause)
        .into_iter()
        .partition(|remedy| remedy.measured);
    measured.extend(
        counted
            .into_iter()
            .map(|remedy| (remedy.saves.unwrap_or(0), remedy)),
    );
    measured.sort_by_key(|(saves, _)| std::cmp::Reverse(*saves));
    hints.sort_by_key(|(rank, _)| *rank);
    // Where nobody knows what it was, its look alone is no reason to change a script.
    let most_hints = if cause == Cause::Unknown { 0 } else { MOST_HINTS };
    let measured = measured.into_iter().map(|(_, remedy)| remedy);
    let hints = hints.into_iter().map(|(_, remedy)| remedy).take(most_hints);
    measured.chain(unexplained).chain(general).chain(hints).collect()
}

/// A file of the user's code, and what was found in it.
struct Source<'a> {
    path: PathBuf,
    text: &'a str,
    notebook: Option<Notebook>,
    findings: Vec<Finding>,
}

impl<'a> Source<'a> {
    fn of(folder: &Path, file: &Path, text: &'a str) -> Source<'a> {
        let notebook = if is_notebook(file) {
            Notebook::parse(text)
        } else {
            None
        };
        Source {
            path: absolute(folder, file),
            text,
            notebook,
            findings: findings(text, file),
        }
    }

    /// A line of the script, or of a cell.
    fn line(&self, cell: Option<u32>, line: u32) -> Option<&str> {
        let text = match (&self.notebook, cell) {
            (Some(notebook), Some(cell)) => notebook.cells.get(cell.checked_sub(1)? as usize)?,
            (Some(_), None) => return None,
            (None, _) => self.text,
        };
        let line = text.lines().nth(line.checked_sub(1)? as usize)?;
        (!line.trim().is_empty()).then_some(line)
    }
}

/// Where memory grew, in the user's own code.
struct Place<'a> {
    index: usize,
    growth: &'a Growth,
    frame: &'a Frame,
    /// Its file among the sources, if it is one of them.
    source: Option<usize>,
    cell: Option<u32>,
}

fn placed<'a>(case: &Case, growth: &'a [Growth], sources: &[Source<'_>]) -> Vec<Place<'a>> {
    let place = |(index, growth): (usize, &'a Growth)| {
        // Where a library grew, it is the innermost line of the user's that called it.
        let frames = std::iter::once(&growth.place).chain(growth.within.iter().rev());
        let known = frames
            .filter_map(|frame| Some((frame, source_of(case, frame, growth.cell, sources)?)))
            .next();
        let (frame, found) = match known {
            Some((frame, found)) => (frame, Some(found)),
            None => (&growth.place, None),
        };
        Place {
            index,
            growth,
            frame,
            source: found.map(|(source, _)| source),
            cell: found.and_then(|(_, cell)| cell),
        }
    };
    growth.iter().enumerate().map(place).collect()
}

/// The source that a frame is in, and the cell of it.
fn source_of(
    case: &Case,
    frame: &Frame,
    cell: Option<u32>,
    sources: &[Source<'_>],
) -> Option<(usize, Option<u32>)> {
    let path = absolute(&case.facts.folder, Path::new(&frame.file));
    let numbered = || sources.iter().enumerate();
    if let Some((number, _)) = numbered().find(|(_, source)| source.path == path) {
        return Some((number, cell));
    }
    numbered().find_map(|(number, source)| {
        let own = cell_of(source.notebook.as_ref()?, &frame.file)?;
        Some((number, Some(own)))
    })
}

/// Whether growth was seen at what was found: its statement, or a line whose growth is its doing.
fn is_at(finding: &Finding, place: &Place<'_>) -> bool {
    let line = place.frame.line;
    let is_own = finding.cell == place.cell && (finding.line..=finding.end_line).contains(&line);
    let is_other = finding
        .grows_at
        .iter()
        .any(|lines| lines.cell == place.cell && (lines.first..=lines.last).contains(&line));
    is_own || is_other
}

fn is_about_memory(cause: Cause) -> bool {
    (cause.is_memory() && cause != Cause::DeviceMemory) || cause == Cause::Unknown
}

/// How much a finding matters for a cause, the least first; `None` where it does not.
fn rank(finding: &Finding, cause: Cause) -> Option<usize> {
    use FindingKind as Kind;
    let matters: &[Kind] = match cause {
        Cause::DeviceMemory => &[
            Kind::LossKept,
            Kind::NoInferenceMode,
            Kind::BatchSize,
            Kind::NoAccumulation,
            Kind::GrowingCollection,
            Kind::RetainedGraph,
            Kind::ConcatInLoop,
            Kind::ModelInLoop,
            Kind::WholeObject,
            Kind::DoublePrecision,
            Kind::UnboundedCache,
        ],
        Cause::SharedMemory => &[
            Kind::LoaderCopies,
            Kind::BatchSize,
            Kind::JobCopies,
            Kind::PoolCopies,
        ],
        Cause::OpenFiles => &[Kind::OpenFilesInLoop],
        Cause::Processes => &[Kind::ThreadsInLoop, Kind::JobCopies, Kind::PoolCopies],
        Cause::StackOverflow | Cause::SegmentationFault => &[Kind::RecursionLimit],
        Cause::ChildOom => &[Kind::LoaderCopies, Kind::JobCopies, Kind::PoolCopies],
        _ => &[],
    };
    if let Some(rank) = matters.iter().position(|kind| *kind == finding.kind) {
        let is_of_device = || {
            ["torch", "double", "tf.", "cuda"]
                .iter()
                .any(|word| finding.before.contains(word))
        };
        let needs_device = matches!(
            finding.kind,
            Kind::WholeObject | Kind::DoublePrecision | Kind::ConcatInLoop
        );
        return (cause != Cause::DeviceMemory || !needs_device || is_of_device()).then_some(rank);
    }
    let other = [Kind::RecursionLimit, Kind::OpenFilesInLoop, Kind::ThreadsInLoop];
    let is_host = is_about_memory(cause) && cause != Cause::SharedMemory;
    let place = BY_WEIGHT.iter().position(|kind| *kind == finding.kind)?;
    (is_host && !other.contains(&finding.kind)).then_some(matters.len() + place)
}

/// What takes the most where it is found, first.
const BY_WEIGHT: [FindingKind; 31] = [
    FindingKind::LossKept,
    FindingKind::ChunksJoined,
    FindingKind::WholeTable,
    FindingKind::AllImages,
    FindingKind::DenseMatrix,
    FindingKind::DenseDummies,
    FindingKind::WholeDataset,
    FindingKind::LoaderCopies,
    FindingKind::ConcatInLoop,
    FindingKind::GrowingCollection,
    FindingKind::UnusedColumns,
    FindingKind::UnboundedCache,
    FindingKind::PredictInLoop,
    FindingKind::ModelInLoop,
    FindingKind::OpenFigures,
    FindingKind::Join,
    FindingKind::WholeArray,
    FindingKind::WholeObject,
    FindingKind::JobCopies,
    FindingKind::PoolCopies,
    FindingKind::CopyInLoop,
    FindingKind::ObjectColumn,
    FindingKind::NoInferenceMode,
    FindingKind::RetainedGraph,
    FindingKind::WholeText,
    FindingKind::BatchSize,
    FindingKind::NoAccumulation,
    FindingKind::DoublePrecision,
    FindingKind::OpenFilesInLoop,
    FindingKind::ThreadsInLoop,
    FindingKind::RecursionLimit,
];

fn of_finding(case: &Case, source: &Source<'_>, finding: &Finding) -> Remedy {
    let function = finding.function.as_deref();
    Remedy {
        title: finding.title.clone(),
        place: Some(frame(source, finding.line, finding.cell, function)),
        before: Some(finding.before.clone()),
        after: Some(finding.after.clone()),
        command: finding.command.as_ref().map(|command| command_for(case, command)),
        saves: None,
        measured: false,
        why: finding.why.clone(),
    }
}

/// A place as a stack names it; of a notebook with its cell.
fn frame(source: &Source<'_>, line: u32, cell: Option<u32>, function: Option<&str>) -> Frame {
    let function = match (cell, function) {
        (None, function) => function.unwrap_or("<module>").to_string(),
        (Some(cell), None) => format!("cell {cell}"),
        (Some(cell), Some(function)) => format!("{function}, cell {cell}"),
    };
    Frame {
        file: source.path.display().to_string(),
        line,
        function,
    }
}

/// A command with what is known of this run: the line to train within, or the option that its own command takes.
fn command_for(case: &Case, command: &str) -> String {
    if !command.starts_with("--") {
        return match case.facts.limit {
            Some(limit) => format!("{command} --memory {}", format_bytes(limit).replace(' ', "")),
            None => command.to_string(),
        };
    }
    let (option, value) = command.split_once(' ').unwrap_or((command, ""));
    let mut words: Vec<String> = case.facts.command.clone();
    let given = words
        .iter()
        .position(|word| word == option || word.starts_with(&format!("{option}=")));
    match given {
        Some(place) if words[place] == option && place + 1 < words.len() => {
            words[place + 1] = value.to_string()
        }
        Some(place) => words[place] = format!("{option}={value}"),
        None => words.extend([option.to_string(), value.to_string()]),
    }
    words.join(" ")
}

fn in_library(frame: &Frame) -> bool {
    ["site-packages/", "dist-packages/", "/lib/python", "/lib64/python"]
        .iter()
        .any(|part| frame.file.contains(part))
        || frame.file.starts_with("<frozen")
}

/// A line that no rule knows, and at which memory grew all the same.
fn of_place(place: &Place<'_>, sources: &[Source<'_>]) -> Remedy {
    let grew = format_bytes(place.growth.bytes);
    let source = place.source.and_then(|source| sources.get(source));
    let frame = match source {
        Some(source) => {
            let function = Some(place.frame.function.as_str()).filter(|name| !name.starts_with('<'));
            frame(source, place.frame.line, place.cell, function)
        }
        None => place.frame.clone(),
    };
    let file = frame.file.rsplit('/').next().unwrap_or_default();
    let at = match place.cell {
        Some(cell) => format!("{file}, cell {cell}, line {}", frame.line),
        None => format!("{file}, line {}", frame.line),
    };
    Remedy {
        title: format!("Look at {at}: memory grew there by {grew}"),
        before: source
            .and_then(|source| source.line(place.cell, frame.line))
            .map(str::to_string),
        place: Some(frame),
        after: None,
        command: None,
        saves: None,
        measured: true,
        why: format!(
            "{:.0}% of the growth that was seen happened while this line ran, and it is none of the usual mistakes. What \
             it makes and keeps can be made in smaller pieces, of a smaller type, or let go (`del`) before the next step.",
            place.growth.share * 100.0
        ),
    }
}
