//! The pages of a start: folders to choose from, and the form with its plan.

use std::path::{Path, PathBuf};

use maud::{Markup, html};
use tidegate_memory::{Host, counted, format_bytes, resolve, thousands};

use super::asked::{Asked, MODELS};
use super::files::Folder;
use super::planned::{self, Answer, Column, Looked, No, Planned, spoken};
use crate::html::{Page, Place, size};
use crate::query::Query;

/// Columns to choose the target from; of a wider table it is typed.
const CHOICES: usize = 400;
/// What a training takes at the least.
const LEAST: u64 = 12_000_000;

/// What this machine has for a training.
#[derive(Debug)]
pub(super) struct Machine {
    /// All that may be used, what is used where nothing is said, and what sets the bound; `None` is unavailable.
    budget: Option<(u64, u64, String)>,
}

impl Machine {
    pub(super) fn now() -> Machine {
        let budget = resolve(&Host::live(), None).ok();
        Machine {
            budget: budget.map(|budget| (budget.whole(), budget.bytes, budget.bound.name)),
        }
    }
}

/// A form as it stands.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) asked: Asked,
    pub(super) data: PathBuf,
    pub(super) looked: Looked,
    pub(super) plan: Option<Answer<Planned>>,
    /// What was wrong with the last attempt.
    pub(super) problem: Option<No>,
    pub(super) machine: Machine,
}

fn whole(title: &str, body: Markup) -> Page {
    Page {
        title: title.into(),
        place: Place::Start,
        scripts: &["start.js"],
        events: None,
        body,
    }
}

/// The steps, and which one this is.
fn steps(now: usize) -> Markup {
    let names = ["Data", "What to predict", "Memory and plan"];
    html! {
        ol.steps { @for (i, name) in names.iter().enumerate() {
            li aria-current=[(i == now).then_some("step")] class=[(i < now).then_some("past")] { (name) }
        } }
    }
}

pub(super) fn roots_page(roots: &[PathBuf]) -> Page {
    let body = html! {
        div.head { h1 { "Start a training" } (steps(0)) }
        section.card.choose {
            h2 { "Where are the data?" }
            ul.entries { @for root in roots { li { (entry(root, &root.display().to_string(), "folder")) } } }
        }
    };
    whole("Start a training", body)
}

pub(super) fn folder_page(roots: &[PathBuf], folder: &Folder) -> Page {
    let choosable = !folder.files.is_empty() || folder.pictures > 0 || !folder.folders.is_empty();
    let body = html! {
        div.head { h1 { "Start a training" } (steps(0)) }
        section.card.choose {
            h2 { "Which data?" }
            (way(roots, folder))
            @if folder.folders.is_empty() && folder.files.is_empty() && folder.pictures == 0 {
                p.about { "There are no data here: no table, no arrays, no images." }
            }
            ul.entries {
                @for inner in &folder.folders { li { (entry(inner, &name(inner), "folder")) } }
                @for file in &folder.files {
                    li {
                        a.entry.file href={ "/start?" (Query::default().with("data", &file.path.to_string_lossy())) } { (name(&file.path)) }
                        (size(Some(file.bytes)))
                    }
                }
            }
            @if folder.pictures > 0 { p.about { "and " (counted(folder.pictures as u64, "picture")) } }
            @if folder.more { p.about { "There is more here than is shown." } }
            @if choosable {
                p { a.button href={ "/start?" (Query::default().with("data", &folder.path.to_string_lossy())) } { "Use this whole folder" }
                    span.about { " as one table, as arrays, or as images whose folders are their classes" } }
            }
            form.path action="/start" method="get" {
                label { span { "or its path" } input type="text" name="path" value=(folder.path.display()) spellcheck="false" autocomplete="off"; }
                button type="submit" { "Go" }
            }
        }
    };
    whole("Start a training", body)
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

fn entry(path: &Path, name: &str, class: &str) -> Markup {
    html! { a class={ "entry " (class) } href={ "/start?" (Query::default().with("path", &path.to_string_lossy())) } { (name) } }
}

/// The folders from the root to this one.
fn way(roots: &[PathBuf], folder: &Folder) -> Markup {
    let below = folder.path.strip_prefix(&folder.root).unwrap_or(Path::new(""));
    let mut at = folder.root.clone();
    let mut steps = vec![(at.clone(), folder.root.display().to_string())];
    for part in below.components() {
        at.push(part);
        steps.push((at.clone(), part.as_os_str().to_string_lossy().into_owned()));
    }
    let last = steps.len() - 1;
    html! {
        nav.way aria-label="Folders" {
            @if roots.len() > 1 { a href="/start" { "all folders" } " / " }
            @for (i, (path, name)) in steps.iter().enumerate() {
                @if i > 0 { " / " }
                @if i == last { span aria-current="location" { (name) } } @else { (entry(path, name, "step")) }
            }
            @if let Some(parent) = folder.parent() { a.up href={ "/start?" (Query::default().with("path", &parent.to_string_lossy())) } { "up" } }
        }
    }
}

pub(super) fn page(shown: &Shown) -> Page {
    let now = match shown.looked.kind == "table" && shown.asked.target.is_none() {
        true => 1,
        false => 2,
    };
    let body = html! {
        div.head { h1 { "Start a training" } (steps(now)) }
        form #start.start action="/start" method="post" {
            input type="hidden" name="data" value=(shown.data.display());
            div.questions {
                (data(shown))
                @match shown.looked.kind.as_str() {
                    "table" => { (target(shown)) }
                    "arrays" => { (labels(shown)) }
                    _ => {}
                }
                (how(shown))
            }
            div.answers { (memory(shown)) (answer(shown)) }
        }
    };
    whole("Start a training", body)
}

fn data(shown: &Shown) -> Markup {
    let looked = &shown.looked;
    let folder = shown.data.parent().unwrap_or(&shown.data);
    let what = match looked.kind.as_str() {
        "table" => "A table",
        "arrays" => "Arrays",
        "images" => "Images",
        _ => "Unknown",
    };
    html! {
        section.card {
            h2 { "Data" }
            p.chosen { strong { (name(&shown.data)) } " " span.about { "in " (folder.display()) } }
            p.about { (what)
                @if let Some(rows) = looked.rows { ", about " (counted(rows, "row")) }
                @if !looked.columns.is_empty() { ", " (counted(looked.columns.len() as u64, "column")) }
                @if let Some(bytes) = looked.bytes { ", " (size(Some(bytes))) }
            }
            p { a href={ "/start?" (Query::default().with("path", &folder.to_string_lossy())) } { "Choose other data" } }
        }
    }
}

/// The columns to choose from, with what they seem to be.
fn target(shown: &Shown) -> Markup {
    let columns = &shown.looked.columns;
    let chosen = shown.asked.target.as_deref();
    html! {
        section.card {
            h2 #target-title { "What is to be predicted?" }
            @if columns.len() > CHOICES || columns.is_empty() {
                label.field { span { "The column" } input type="text" name="target" value=(chosen.unwrap_or_default()) required autocomplete="off" spellcheck="false"; }
            }
            @if !columns.is_empty() {
                div.wide.columns tabindex="0" role="region" aria-label="Columns" { table {
                    thead { tr {
                        @if columns.len() <= CHOICES { th scope="col" { span.hidden { "Predict" } } }
                        th scope="col" { "Column" } th scope="col" { "Role" } th.number scope="col" { "Values" } th.number scope="col" { "Missing" } th scope="col" { "Such as" }
                    } }
                    tbody { @for (i, column) in columns.iter().take(CHOICES).enumerate() {
                        (row(column, chosen, (columns.len() <= CHOICES).then(|| format!("target-{i}"))))
                    } }
                } }
                p.about { "Roles by a first look at a sample; the fit confirms them." }
            }
        }
    }
}

/// A column, with a mark to choose it by where it can be.
fn row(column: &Column, chosen: Option<&str>, mark: Option<String>) -> Markup {
    html! {
        tr {
            @if let Some(id) = &mark {
                td { input type="radio" name="target" id=(id) value=(column.name) required checked[chosen == Some(column.name.as_str())]; }
                th scope="row" { label for=(id) { (column.name) } }
            } @else {
                th scope="row" { (column.name) }
            }
            td { span class={ "role " (column.role) } title=[(!column.why.is_empty()).then_some(&column.why)] { (column.role) } }
            td.number { @match column.distinct { Some(n) => { (thousands(n)) } None => { "many" } } }
            td.number { @if column.missing > 0.0 { (format!("{:.1}%", column.missing * 100.0)) } }
            td.examples { @for (i, example) in column.examples.iter().enumerate() { @if i > 0 { ", " } code { (example) } } }
        }
    }
}

/// Of arrays, whose labels are found beside them or are named.
fn labels(shown: &Shown) -> Markup {
    html! {
        section.card {
            h2 { "What is to be predicted?" }
            label.field { span { "The array of labels, if it is not found beside the samples" }
                input type="text" name="target" value=(shown.asked.target.as_deref().unwrap_or_default()) autocomplete="off" spellcheck="false"; }
        }
    }
}

fn how(shown: &Shown) -> Markup {
    let asked = &shown.asked;
    let fits = |kind: &str| match shown.looked.kind.as_str() {
        "table" => matches!(kind, "auto" | "boost" | "linear" | "mlp"),
        "arrays" | "images" => !matches!(kind, "boost" | "linear"),
        _ => true,
    };
    let number = |number: Option<u32>| number.map_or_else(String::new, |number| number.to_string());
    html! {
        section.card {
            h2 { "Model" }
            div.fields {
                label.field { span { "Kind" } select name="model" {
                    @for (kind, about) in MODELS.iter().filter(|(kind, _)| fits(kind)) {
                        option value=(kind) selected[asked.model.as_deref() == Some(kind)] { (about) }
                    }
                } }
                label.field { span { "Name of the run" } input type="text" name="name" value=(asked.name.as_deref().unwrap_or_default()) placeholder="none" maxlength="64" pattern="[A-Za-z0-9._\\-]+" title="letters, digits, dots, dashes and underscores" autocomplete="off" spellcheck="false"; }
            }
            details open[asked.epochs.is_some() || asked.trees.is_some()] {
                summary { "More" }
                div.fields {
                    label.field { span { "Epochs at the most" } input type="number" name="epochs" min="1" value=(number(asked.epochs)) placeholder="by the kind"; }
                    @if shown.looked.kind == "table" {
                        label.field { span { "Trees at the most" } input type="number" name="trees" min="1" value=(number(asked.trees)) placeholder="100"; }
                    }
                }
            }
        }
    }
}

/// The budget: a size as one writes it, and a slider over those that make sense where there are scripts.
fn memory(shown: &Shown) -> Markup {
    let value = shown.asked.memory.as_deref().unwrap_or_default();
    html! {
        section.card {
            h2 { "Memory budget" }
            @match &shown.machine.budget {
                Some((whole, usual, bound)) => {
                    div.budget-choice {
                        label.field { span { "Budget" }
                            input #memory type="text" name="memory" value=(value) placeholder=(spoken(usual / 1_000_000 * 1_000_000)) autocomplete="off" spellcheck="false" aria-describedby="memory-about"; }
                        div.slider {
                            input #memory-slider type="range" min="0" max="1000" step="1" aria-label="Budget" data-least=(LEAST) data-whole=(whole) data-usual=(usual) disabled;
                            div.ends aria-hidden="true" { span { (format_bytes(LEAST)) } span { (format_bytes(*whole)) } }
                        }
                    }
                    p #memory-about .about { "Such as 2GB, 512MB or 80%. If nothing is said, it is " (format_bytes(*usual)) ", 80% of what may be used here. Bound by " (bound) "." }
                }
                None => {
                    label.field { span { "Budget" } input #memory type="text" name="memory" value=(value) required autocomplete="off"; }
                    p.about { "This machine does not tell what may be used: say how much, such as 2GB." }
                }
            }
        }
    }
}

/// The plan beside the questions, and what is done with it.
fn answer(shown: &Shown) -> Markup {
    html! {
        section.card.plan aria-labelledby="plan-title" {
            h2 #plan-title { "Plan" }
            div #plan aria-live="polite" {
                @if let Some(problem) = &shown.problem { (planned::refusal(problem)) }
                @match &shown.plan {
                    Some(answer) => { (plan(answer)) }
                    None if shown.problem.is_some() => {}
                    None if shown.looked.kind == "table" && shown.asked.target.is_none() => { p.about { "Choose the column to predict, and see what a training takes." } }
                    None => { p.about { "See what a training takes within this budget, before it is started." } }
                }
            }
            div.buttons {
                button type="submit" name="plan" value="1" formmethod="get" formaction="/start" { "Plan" }
                button.main type="submit" { "Start" }
            }
        }
    }
}

pub(super) fn plan(answer: &Answer<Planned>) -> Markup {
    match answer {
        Answer::Yes(plan) => planned::plan(plan),
        Answer::No(no) => planned::refusal(no),
    }
}
