//! The machine as a page; a script fetches it anew every few seconds.

use maud::{Markup, html};
use tidegate_memory::{Bound, Budget, Limit, Pressure, counted, format_bytes};

use super::{Doctor, Held, Process, Seen};
use crate::html::{Page, Place, badge, moment, size};

/// The share of time that tasks wait from which on it is worth a warning, in percent.
const MUCH: f64 = 10.0;

pub(super) fn page(seen: &Seen, doctor: &Doctor) -> Page {
    let body = html! {
        div.head { h1 { "Machine" } p #seen.about data-live { "as of " (moment(seen.time_ms)) } }
        div.machine data-again="2000" {
            section #budget.card data-live { (budget(seen, doctor)) }
            section #pressure.card data-live { h2 { "Pressure" } (pressures(seen)) }
            section #holders.card data-live { h2 { "Who holds memory now" } (memory_bar(seen)) (runs(&seen.runs)) (processes(seen)) }
            section #disk.card { h2 { "Disk" } (disk(doctor)) }
            @if let Some(budget) = &seen.budget { section #bounds.card data-live { h2 { "Every bound that was looked at" } (bounds(budget)) } }
        }
    };
    Page {
        title: "Machine".into(),
        place: Place::Machine,
        scripts: &["start.js"],
        events: None,
        body,
    }
}

fn budget(seen: &Seen, doctor: &Doctor) -> Markup {
    html! {
        h2 { "Budget" }
        @match &seen.budget {
            Some(budget) => {
                p.figure { (format_bytes(budget.whole())) " " span.about { "may be used by a job here" } }
                dl.facts {
                    dt { "Bound by" } dd { (budget.bound.name) }
                    dt { "By default" } dd { (size(Some(budget.bytes))) span.about { ", 80% of it" } }
                    dt { "The line" } dd { (line(doctor)) }
                    dt { "Cores" } dd { @match seen.cores { Some(cores) => { (cores) } None => { span.unavailable { "unavailable" } } } }
                    dt { "Swap" } dd { @match (seen.memory.swap_total, seen.memory.swap_free) {
                        (Some(0), _) => { "none" }
                        (total, free) => { (size(free)) " free of " (size(total)) }
                    } }
                }
            }
            None => { p.unavailable { "unavailable" @if let Some(why) = &seen.no_budget { ": " (why) } } }
        }
    }
}

fn line(doctor: &Doctor) -> Markup {
    html! { @match (doctor.enforced, &doctor.containment) {
        (Some(true), Some(how)) => { "enforced by the kernel, " (how) }
        (Some(false), Some(how)) => { "not enforced by the kernel, " (how) }
        _ => { span.unavailable { "unavailable" } }
    } }
}

/// All memory: what runs hold, what others do, what is left.
fn memory_bar(seen: &Seen) -> Markup {
    let (Some(total), Some(available)) = (seen.memory.total, seen.memory.available) else {
        return html! { p.unavailable { "unavailable" } };
    };
    let used = total.saturating_sub(available);
    let by_runs = seen
        .runs
        .iter()
        .filter_map(|run| run.now_bytes)
        .sum::<u64>()
        .min(used);
    let x = |bytes: u64| format!("{:.1}", bytes as f64 / total.max(1) as f64 * 1000.0);
    html! {
        svg.memory-bar viewBox="0 0 1000 44" preserveAspectRatio="none" role="img" aria-label={ (format_bytes(used)) " of " (format_bytes(total)) " are in use" } {
            rect.whole x="0" y="8" width="1000" height="28" {}
            rect.c1 x="0" y="8" width=(x(by_runs)) height="28" {}
            rect.c8 x=(x(by_runs)) y="8" width=(x(used - by_runs)) height="28" {}
        }
        ul.legend {
            li { span.key.c1 {} "runs " (size(Some(by_runs))) }
            li { span.key.c8 {} "others " (size(Some(used - by_runs))) }
            li { span.key.left {} "available " (size(Some(available))) " of " (size(Some(total))) }
        }
    }
}

fn runs(runs: &[Held]) -> Markup {
    html! {
        h3 { "Runs" }
        @if runs.is_empty() { p.about { "No run is under way. " a href="/start" { "Start a training" } } } @else {
            div.wide tabindex="0" role="region" aria-label="Runs that are under way" { table {
                thead { tr { th scope="col" { "Run" } th scope="col" { "State" } th scope="col" { "Now" } th.number scope="col" { "Budget" } th.number scope="col" { "Planned" } } }
                tbody { @for run in runs { tr {
                    th scope="row" { a href={ "/runs/" (run.id) } { (run.label) } }
                    td { (badge(run.status)) }
                    td.peak {
                        @if let (Some(now), Some(line)) = (run.now_bytes, run.budget_bytes) {
                            meter min="0" max=(line) high=(line / 10 * 9) value=(now.min(line)) title={ (now * 100 / line.max(1)) "% of the line" } {} " "
                        }
                        (size(run.now_bytes))
                    }
                    td.number { @match run.budget_bytes { Some(_) => (size(run.budget_bytes)), None => "none" } }
                    td.number { @match run.needs_bytes { Some(_) => (size(run.needs_bytes)), None => "none" } }
                } } }
            } }
        }
    }
}

fn processes(seen: &Seen) -> Markup {
    let label = |process: &Process| {
        let run = process.run.as_ref()?;
        let held = seen.runs.iter().find(|held| held.id == *run)?;
        Some((run.clone(), held.label.clone()))
    };
    html! {
        h3 { "Largest processes" }
        @if seen.processes.is_empty() { p.unavailable { "unavailable" } } @else {
            div.wide tabindex="0" role="region" aria-label="Largest processes" { table {
                thead { tr { th scope="col" { "Process" } th.number scope="col" { "PID" } th.number scope="col" { "Resident" } th scope="col" { "Of run" } } }
                tbody { @for process in &seen.processes { tr {
                    th scope="row" { (process.name) } td.number { (process.pid) } td.number { (size(Some(process.resident_bytes))) }
                    td { @if let Some((id, label)) = label(process) { a href={ "/runs/" (id) } { (label) } } }
                } } }
            } }
            p.about { "Of " (counted(seen.n_processes as u64, "process").replace("processs", "processes")) ". Memory that processes share is counted by each." }
        }
    }
}

fn pressures(seen: &Seen) -> Markup {
    let all = [
        ("Memory", &seen.memory_pressure),
        ("Disk", &seen.io_pressure),
        ("Processor", &seen.cpu_pressure),
    ];
    let share = |share: f64| html! { td.number class=[(share >= MUCH).then_some("much")] { (format!("{share:.1}%")) } };
    let row = |pressure: &Option<Pressure>| {
        html! { @match pressure {
            Some(pressure) => { (share(pressure.some_avg10)) (share(pressure.some_avg60)) (share(pressure.full_avg10)) }
            None => { td.unavailable colspan="3" { "unavailable" } }
        } }
    };
    html! {
        div.wide tabindex="0" role="region" aria-label="Pressure" { table {
            thead { tr { th scope="col" { "Waiting for" } th.number scope="col" { "some, 10 s" } th.number scope="col" { "some, 1 min" } th.number scope="col" { "all, 10 s" } } }
            tbody { @for (name, pressure) in all { tr { th scope="row" { (name) } (row(pressure)) } } }
        } }
        p.about { "The share of time in which some tasks, or all of them, could not go on." }
    }
}

fn disk(doctor: &Doctor) -> Markup {
    let speed = |speed: Option<f64>| html! { @match speed { Some(speed) => { (format_bytes(speed as u64)) "/s" } None => { span.unavailable { "unavailable" } } } };
    html! {
        dl.facts {
            dt { "Free" } dd { (size(doctor.free_bytes)) @if let Some(folder) = &doctor.folder { span.about { " in " (folder) } } }
            @if let Some(at) = doctor.disk_timed_ms {
                dt { "Writes" } dd { (speed(doctor.disk_write)) }
                dt { "Reads" } dd { (speed(doctor.disk_read)) span.about { ", timed " (moment(at)) } }
            }
        }
        form action="/machine/disk" method="post" { button type="submit" { @if doctor.disk_timed_ms.is_some() { "Time the disk again" } @else { "Time the disk" } } span.about { " writes and reads 64 MB" } }
    }
}

fn bounds(budget: &Budget) -> Markup {
    let is_tight = |bound: &Bound| *bound == budget.bound;
    html! {
        div.wide tabindex="0" role="region" aria-label="Bounds" { table {
            thead { tr { th scope="col" { "Bound" } th.number scope="col" { "Limit" } } }
            tbody { @for bound in &budget.bounds { tr class=[is_tight(bound).then_some("tight")] {
                th scope="row" { (bound.name) @if is_tight(bound) { span.about { " holds" } } }
                td.number { @match &bound.limit {
                    Limit::Bytes(bytes) => { (size(Some(*bytes))) }
                    Limit::Unlimited => { "unlimited" }
                    Limit::Unavailable(why) => { span.unavailable { "unavailable: " (why) } }
                } }
            } } }
        } }
    }
}
