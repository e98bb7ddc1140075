//! The plan against what was measured, holder by holder, and what was changed so that it fits.

use maud::{Markup, html};
use serde::Deserialize;
use tidegate_memory::{duration, format_bytes, off};
use tidegate_runs::{Part, Run};

use super::files::Found;
use super::parts::{capital, copy};
use crate::html::size;
use crate::plans::{Alternative, Change, Times};

/// Of the program itself the ledger knows only what was planned.
const RUNTIME: &str = "runtime";
/// Layers that are named.
const LAYERS: usize = 12;

/// As `plan.json` has it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Plan {
    needs: u64,
    interval: Option<(u64, u64)>,
    threads: Option<u64>,
    arena: Vec<(String, u64)>,
    layers: Vec<(String, u64)>,
    disk_bytes: Option<u64>,
    times: Option<Times>,
    changes: Vec<Change>,
    alternatives: Vec<Alternative>,
    note: Option<String>,
}

/// Nothing of a run without a plan: a foreign command.
pub(super) fn section(run: &Run, parts: &[Part], plan: &Found<Plan>) -> Markup {
    let some = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes > 0);
    let shown: Vec<&Part> = parts
        .iter()
        .filter(|part| some(part.planned_bytes) || some(part.held_bytes))
        .collect();
    if shown.is_empty() && run.needs_bytes.is_none() && *plan == Found::No {
        return html! {};
    }
    let largest = shown
        .iter()
        .flat_map(|part| [part.planned_bytes, part.held_bytes])
        .flatten()
        .max()
        .unwrap_or(1);
    html! {
        section.card {
            h2 { "The plan, and what was measured" }
            (summary(run, plan.value()))
            @if let Some(trouble) = plan.trouble() { p.problem-note { (trouble) } }
            @if !shown.is_empty() {
                div.wide tabindex="0" role="region" aria-label="The plan, holder by holder" {
                    table.plan {
                        thead { tr {
                            th scope="col" { "Held by" }
                            th.number scope="col" { "Planned" }
                            th.number scope="col" { "At the peak" }
                            th scope="col" { span.hidden { "As bars" } }
                        } }
                        tbody { @for part in &shown { (row(part, largest)) } }
                        tfoot { tr {
                            th scope="row" { "Together" }
                            td.number { (size(run.needs_bytes)) }
                            td.number { (size(run.peak_bytes)) }
                            td.about { @if let Some(source) = &run.peak_source { "by the kernel: " (source) } }
                        } }
                    }
                }
            }
            @if let Some(plan) = plan.value() { (details(plan)) }
        }
    }
}

fn row(part: &Part, largest: u64) -> Markup {
    let held = part.held_bytes.filter(|_| part.name != RUNTIME);
    let width = |bytes: Option<u64>| {
        let share = bytes.unwrap_or(0) as f64 / largest.max(1) as f64 * 100.0;
        format!("{:.1}%", share.clamp(0.0, 100.0))
    };
    let cell = |bytes: Option<u64>| html! { @match bytes { Some(_) => (size(bytes)), None => span.unavailable { "–" } } };
    html! {
        tr {
            th scope="row" { (part.name) }
            td.number { (cell(part.planned_bytes)) }
            td.number { (cell(held)) }
            td { svg.pair aria-hidden="true" {
                rect.planned width=(width(part.planned_bytes)) height="5" rx="2" {}
                rect.held y="6" width=(width(held)) height="5" rx="2" {}
            } }
        }
    }
}

/// `Planned 43.3 MB, between 41 MB and 45 MB; the peak was 42.1 MB: +2.9% off.`
fn summary(run: &Run, plan: Option<&Plan>) -> Markup {
    let Some(needs) = run.needs_bytes.or(plan.map(|plan| plan.needs)) else {
        return html! {};
    };
    let between = plan.and_then(|plan| plan.interval);
    html! {
        p {
            "Planned " strong { (format_bytes(needs)) }
            @if let Some((low, high)) = between { ", between " (format_bytes(low)) " and " (format_bytes(high)) }
            @if let Some(peak) = run.peak_bytes { "; the peak was " strong { (format_bytes(peak)) } }
            @if let Some(error) = run.plan_error() { ", so it was " strong { (off(Some(error))) } " off" }
            "."
        }
    }
}

fn details(plan: &Plan) -> Markup {
    let times = plan.times.as_ref();
    let each = |seconds: Option<f64>, unit: &str| {
        let article = if unit.starts_with(['a', 'e', 'i', 'o']) {
            "an"
        } else {
            "a"
        };
        seconds.map(|seconds| format!("{} {article} {unit}", brief(seconds)))
    };
    let told: Vec<String> = times
        .map(|times| {
            [
                each(times.step_seconds, &times.step),
                each(times.epoch_seconds, &times.epoch),
            ]
            .into_iter()
            .flatten()
            .collect()
        })
        .unwrap_or_default();
    html! {
        dl.facts {
            @if let Some(times) = times.filter(|_| !told.is_empty()) {
                dt { "Time" } dd { (told.join(", ")) span.about { ": " (times.basis) } }
            }
            @if let Some(threads) = plan.threads { dt { "Threads" } dd { (threads) } }
            @if let Some(bytes) = plan.disk_bytes.filter(|bytes| *bytes > 0) { dt { "Disk" } dd { (format_bytes(bytes)) " for packs" } }
            @if let Some(note) = &plan.note { dt { "Note" } dd { (note) } }
        }
        @if !plan.changes.is_empty() { (changes(&plan.changes)) }
        @if !plan.alternatives.is_empty() { (alternatives(&plan.alternatives)) }
        @if !plan.arena.is_empty() || !plan.layers.is_empty() {
            details { summary { "Inside the network" } div.beside { (list("Its arena", &plan.arena, usize::MAX)) (list("Activations by layer", &plan.layers, LAYERS)) } }
        }
    }
}

fn changes(all: &[Change]) -> Markup {
    html! {
        h3 { "Changed so that it fits" }
        div.wide tabindex="0" role="region" aria-label="Changed so that it fits" {
            table {
                thead { tr { th scope="col" { "What" } th scope="col" { "To" } th.number scope="col" { "Saves" } th.number scope="col" { "A step takes" } th scope="col" { "What does not stay the same" } } }
                tbody { @for one in all { tr {
                    th scope="row" { (one.knob) }
                    td { (one.to) }
                    td.number { (format_bytes(one.saves)) }
                    td.number { @match one.slowdown { Some(times) => (factor(times)), None => span.unavailable { "unavailable" } } }
                    td { (one.alters.as_deref().unwrap_or("nothing")) }
                } } }
            }
        }
    }
}

fn alternatives(all: &[Alternative]) -> Markup {
    html! {
        details { summary { "Other ways to train it (" (all.len()) ")" }
            div.wide tabindex="0" role="region" aria-label="Other ways to train it" {
                table {
                    thead { tr { th scope="col" { "What" } th scope="col" { "How" } th.number scope="col" { "Peak" } th.number scope="col" { "A step takes" } th scope="col" { "What does not stay the same" } } }
                    tbody { @for one in all { tr {
                        th scope="row" { (capital(&one.what)) }
                        td { code { (one.how) } " " (copy(&one.how, "the option")) }
                        td.number { (format_bytes(one.peak)) }
                        td.number { (factor(one.slowdown)) }
                        td { (one.alters.as_deref().unwrap_or("nothing")) }
                    } } }
                }
            }
        }
    }
}

/// The largest first; of equals, the first.
fn list(title: &str, all: &[(String, u64)], most: usize) -> Markup {
    let mut sorted: Vec<&(String, u64)> = all.iter().filter(|(_, bytes)| *bytes > 0).collect();
    sorted.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let (named, others) = sorted.split_at(sorted.len().min(most));
    html! {
        @if !sorted.is_empty() {
            table {
                caption { (title) }
                tbody {
                    @for (name, bytes) in named { tr { th scope="row" { (name) } td.number { (format_bytes(*bytes)) } } }
                    @if !others.is_empty() {
                        tr { th scope="row" { (others.len()) " others" } td.number { (format_bytes(others.iter().map(|(_, bytes)| bytes).sum())) } }
                    }
                }
            }
        }
    }
}

fn factor(slowdown: f64) -> String {
    format!("{slowdown:.2}× the time")
}

/// `75 ms`, `1.2 s`, `3:07`.
fn brief(seconds: f64) -> String {
    match seconds {
        s if s < 0.001 => format!("{:.2} ms", s * 1e3),
        s if s < 0.0995 => format!("{:.0} ms", s * 1e3),
        s => duration(s),
    }
}
