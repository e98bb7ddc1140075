//! What was asked, where it ran, and how to run it again: the job file, the environment, seeds, versions, the command.

use std::path::Path;

use maud::{Markup, html};
use serde_json::Value;
use tidegate_memory::{Amount, counted, thousands};
use tidegate_runs::Run;

use super::files::Found;
use super::job::{keys, value};
use super::parts::{copy, copy_from, quoted};
use crate::html::{moment, size};

/// Values of the environment that are shown; the API has all.
const SHOWN: usize = 200;
/// Characters of one of them.
const LONGEST: usize = 400;

/// Who ran what, when, and what it took.
pub(super) fn facts(run: &Run, model_size: Option<&str>) -> Markup {
    let unavailable = || html! { span.unavailable { "unavailable" } };
    let text =
        |value: &Option<String>| html! { @match value { Some(text) => { (text) } None => (unavailable()) } };
    html! {
        section.card {
            h2 { "Facts" }
            dl.facts {
                dt { "Run" } dd { code { (run.id) } " " (copy(&run.id, "the id of the run")) }
                dt { "Created" } dd { (moment(run.created_ms)) }
                @if let Some(ms) = run.ended_ms { dt { "Ended" } dd { (moment(ms)) } }
                @if run.data.is_some() || run.kind == "train" {
                    dt { "Data" } dd { (text(&run.data)) @if let Some(bytes) = run.data_bytes { " (" (size(Some(bytes))) ")" } }
                }
                @if let Some(target) = &run.target { dt { "Target" } dd { (target) } }
                @if let Some(rows) = run.rows { dt { "Rows" } dd { (thousands(rows)) } }
                @if let Some(size) = model_size { dt { "Model" } dd { (size) " on disk" } }
                dt { "Line" } dd { @match run.budget_bytes { Some(_) => (size(run.budget_bytes)), None => "none" } @if let Some(bound) = &run.bound { span.about { "; the machine's bound: " (bound) } } }
                dt { "Held by" } dd { (text(&run.containment)) }
                dt { "Peak" } dd { (size(run.peak_bytes)) @if let Some(source) = &run.peak_source { span.about { " by " (source) } } }
                dt { "Resident peak" } dd { (size(run.resident_peak_bytes)) }
                dt { "OOM kills" } dd { @match run.oom_kills { Some(kills) => { (kills) } None => (unavailable()) } }
                @if let Some(code) = run.exit_code { dt { "Exit code" } dd { (code) } }
                @if let Some(signal) = run.signal { dt { "Signal" } dd { (signal) } }
                @if let Some(first) = &run.family {
                    dt { "Attempt" } dd { (run.attempt.unwrap_or(1)) " of a job that was begun as " a href={ "/runs/" (first) } { (first) } " · " a href={ "/compare?run=" (first) "&run=" (run.id) } { "compare them" } }
                }
            }
        }
    }
}

/// The command, and what does the same again.
pub(super) fn again(
    run: &Run,
    has_job: bool,
    job_path: &str,
    environment: &Found<Value>,
    home: &Path,
) -> Markup {
    let command = quoted(&run.command);
    let folder = environment.value().and_then(|value| value["folder"].as_str());
    let mut words: Vec<String> = vec!["tidegate".into()];
    // A home in the folder of the run is where it is looked for.
    if folder.is_none_or(|folder| Path::new(folder).join(".tidegate") != home) {
        words.extend(["--home".into(), home.display().to_string()]);
    }
    match run.kind.as_str() {
        "train" if has_job => words.extend(["train".into(), job_path.into()]),
        "run" => {
            words.push("run".into());
            if let Some(bytes) = run.budget_bytes {
                words.extend(["--memory".into(), Amount::Bytes(bytes).to_string()]);
            }
            if let Some(name) = &run.name {
                words.extend(["--name".into(), name.clone()]);
            }
            words.push("--".into());
            words.extend(run.command.iter().cloned());
        }
        _ => words.clear(),
    }
    let mut again = quoted(&words);
    // A job file says where its data are.
    if let Some(folder) = folder.filter(|_| run.kind == "run") {
        again = format!("cd {} && {again}", quoted(&[folder.into()]));
    }
    html! {
        section.card {
            h2 { "Run it again" }
            @if !words.is_empty() {
                div.change { pre #again-command { (again) } (copy_from("again-command", "the command to run it again")) }
                p.about { @if run.kind == "train" { "The job file below says all that was asked, what was inferred included: training it again gives the same model." } @else { "The same command, watched within the same line." } }
            }
            @if !command.is_empty() {
                h3 { "As it was typed" }
                div.change { pre #typed-command { (command) } (copy_from("typed-command", "the command as it was typed")) }
            }
        }
    }
}

/// The job file, whole.
pub(super) fn job(run: &Run, text: &Found<String>) -> Markup {
    let seeds = text.value().map(|text| keys(text)).unwrap_or_default();
    let seed = value(&seeds, "train.seed");
    html! {
        @match text {
            Found::No => {}
            Found::Damaged(why) => section.card { h2 { "The job" } p.problem-note { (why) } },
            Found::Yes(text) => section.card {
                div.head { h2 { "The job" } div.buttons { (copy_from("job-file", "the job file")) a.button href={ "/api/runs/" (run.id) "/job" } { "As a file" } } }
                @if let Some(seed) = seed { p.about { "Seed " code { (seed) } ". " (counted(text.lines().count() as u64, "line")) "." } }
                pre.long #job-file tabindex="0" { (text) }
            },
        }
    }
}

/// The machine and the versions, as they were.
pub(super) fn environment(found: &Found<Value>) -> Markup {
    html! {
        @match found {
            Found::No => {}
            Found::Damaged(why) => section.card { h2 { "Environment" } p.problem-note { (why) } },
            Found::Yes(value) => section.card {
                h2 { "Environment" }
                dl.facts { (entries(value)) }
            },
        }
    }
}

/// An object as names and values; an object inside of it as one folded away.
fn entries(value: &Value) -> Markup {
    let Value::Object(all) = value else {
        return html! { dt { "Value" } dd { (words(value)) } };
    };
    html! {
        @for (name, value) in all.iter().take(SHOWN) {
            dt { (name.replace('_', " ")) }
            dd {
                @match value {
                    Value::Object(inner) if inner.is_empty() => "none",
                    Value::Object(inner) => details { summary { (counted(inner.len() as u64, "value")) } dl.facts { (entries(value)) } },
                    value => (words(value)),
                }
            }
        }
    }
}

fn words(value: &Value) -> String {
    let text = match value {
        Value::Null => "unavailable".into(),
        Value::String(text) => text.clone(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.into(),
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), thousands),
        Value::Array(all) if all.is_empty() => "none".into(),
        Value::Array(all) => all.iter().take(SHOWN).map(words).collect::<Vec<_>>().join(" · "),
        Value::Object(_) => value.to_string(),
    };
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}
