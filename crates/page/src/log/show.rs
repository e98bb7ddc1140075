//! The page of a log: a window of it, the ways to other places, what a search has found.

use maud::{Markup, html};
use tidegate_memory::{counted, format_bytes};
use tidegate_runs::{LogLine, Run};

use super::rows::{clock, dressed, list};
use super::{Place, Search, Window};
use crate::html::{Page, Place as PagePlace, badge};
use crate::query::Query;

/// Letters of a hit that are shown in the list.
const HIT: usize = 200;
/// Of these, before the words.
const BEFORE: usize = 40;

/// A page as it is asked for.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) run: Run,
    pub(super) window: Window,
    /// The place that was asked for by name.
    pub(super) place: Option<Place>,
    /// The words that are looked for, from a byte on, and what was found.
    pub(super) find: Option<String>,
    pub(super) from: u64,
    pub(super) found: Option<Search>,
}

impl Shown {
    /// A link to another place in this log, which keeps what is looked for.
    fn link(&self, place: &str, value: &str) -> String {
        let mut query = Query::default().with(place, value);
        if let Some(find) = &self.find {
            query = Query::parse(query.as_bytes()).with("find", find);
            query = Query::parse(query.as_bytes()).with("from", &self.from.to_string());
        }
        format!("?{query}")
    }
}

pub(super) fn page(shown: &Shown) -> Page {
    let run = &shown.run;
    let body = html! {
        div.head {
            h1 { "Log of " a href={ "/runs/" (run.id) } { (run.label()) } }
            span #state { (badge(run.status)) }
        }
        @if shown.window.length == 0 { (nothing(run)) } @else {
            div.log data-base={ "/runs/" (run.id) "/log" } data-find=[&shown.find] {
                div.ways { (places(shown)) (search_form(shown)) }
                @if let Some(note) = note(shown) { (note) }
                div.sheet {
                    section #log.box tabindex="0" aria-label="Lines of the log" {
                        (list(run, &shown.window, shown.find.as_deref()))
                        span #end {}
                    }
                    (hits(shown))
                }
                (foot(shown))
            }
        }
    };
    Page {
        title: format!("Log of {}", run.label()),
        place: PagePlace::Runs,
        scripts: &["log.js"],
        events: None,
        body,
    }
}

fn nothing(run: &Run) -> Markup {
    html! {
        section.card.empty {
            h2 { "Nothing was printed" }
            @if run.status.is_over() { p { "The run wrote nothing to its output, and nothing to its errors." } }
            @else { p { "Nothing yet. " a href={ "/runs/" (run.id) "/log" } { "Look again" } } }
        }
    }
}

/// The ways to other places. The script takes them over by `data-jump`.
fn places(shown: &Shown) -> Markup {
    let window = &shown.window;
    let way = |jump: &str, link: String, name: &str, is_there: bool| {
        html! { @if is_there { a.button href=(link) data-jump=(jump) { (name) } } @else { span.button.off aria-disabled="true" { (name) } } }
    };
    let at = |place: &str, anchor: &str| format!("{}#{anchor}", shown.link("at", place));
    let next_error = window
        .here
        .filter(|_| matches!(shown.place, Some(Place::Error(_))));
    html! {
        nav.places aria-label="Places in the log" {
            (way("start", at("start", "log"), "Start", true))
            (way("earlier", shown.link("before", &window.start.to_string()) + "#end", "Earlier", window.start > 0))
            (way("later", shown.link("after", &window.end.to_string()) + "#log", "Later", window.end < window.length))
            (way("end", at("end", "end"), "End", true))
            (way("error", at("error", "here"), "First error", true))
            @if let Some(here) = next_error {
                (way("next-error", format!("?at=error&from={}#here", here + 1), "Next error", true))
            }
            @if window.death.is_some() { (way("death", at("death", "here"), "Moment of death", true)) }
        }
    }
}

fn search_form(shown: &Shown) -> Markup {
    html! {
        form #search.search role="search" action={ "/runs/" (shown.run.id) "/log" } method="get" {
            label { span.hidden { "Find in the log" } input #find type="search" name="find" placeholder="Find" value=(shown.find.as_deref().unwrap_or_default()) autocomplete="off" spellcheck="false"; }
            button type="submit" { "Find" }
            button #previous.scripted type="button" aria-label="Hit before" title="p" { "↑" }
            button #next.scripted type="button" aria-label="Next hit" title="n" { "↓" }
        }
    }
}

/// What became of the search for an error that found none.
fn note(shown: &Shown) -> Option<Markup> {
    let window = &shown.window;
    if !matches!(shown.place, Some(Place::Error(_))) || window.here.is_some() {
        return None;
    }
    Some(match window.next {
        Some(next) => html! {
            p.note role="status" { "Nothing looks like an error in the first " (format_bytes(next)) " of " (format_bytes(window.length)) ". "
                a #go-on href={ "?at=error&from=" (next) "#here" } data-from=(next) { "Look on" } }
        },
        None => html! { p.note role="status" { "Nothing looks like an error from there on." } },
    })
}

/// The hits so far, and the way on; empty until something is looked for.
fn hits(shown: &Shown) -> Markup {
    html! {
        section #hits.hits aria-label="Hits" hidden[shown.found.is_none()] {
            @if let (Some(found), Some(find)) = (&shown.found, &shown.find) {
                p #found role="status" { (how_many(found)) }
                (hit_list(found, find, shown.from))
                @if let Some(next) = found.hits.next {
                    p #more { a.button href={ "?" (Query::parse(Query::default().with("find", find).as_bytes()).with("from", &next.to_string())) } { "Look on" } }
                }
            } @else {
                p #found role="status" {}
                ol #hit-list.hit-list {}
            }
            p.scripted { button #cancel type="button" hidden { "Stop" } }
        }
    }
}

fn how_many(found: &Search) -> String {
    let hits = counted(found.hits.lines.len() as u64, "line");
    match found.hits.next {
        Some(_) => format!(
            "{hits} in {} of {}",
            format_bytes(found.hits.searched_to),
            format_bytes(found.length)
        ),
        None => hits,
    }
}

/// The lines that were found, each a way to its place.
pub(super) fn hit_list(found: &Search, find: &str, from: u64) -> Markup {
    let link = |line: &LogLine| {
        let query = Query::default().with("find", find);
        let query = Query::parse(query.as_bytes()).with("from", &from.to_string());
        let offset = line.offset.to_string();
        format!("?{}#here", Query::parse(query.as_bytes()).with("offset", &offset))
    };
    html! {
        ol #hit-list.hit-list data-next=[found.hits.next] data-searched=(found.hits.searched_to) data-length=(found.length) {
            @for line in &found.hits.lines {
                li { a href=(link(line)) data-offset=(line.offset) {
                    span.when data-ms=[line.time_ms] { (clock(line.time_ms)) }
                    span.said { (dressed(&around(&crate::ansi::plain(&line.text), find), Some(find))) }
                } }
            }
        }
    }
}

/// The part of a line that its hit is in.
fn around(text: &str, find: &str) -> String {
    let at = text
        .to_ascii_lowercase()
        .find(&find.to_ascii_lowercase())
        .unwrap_or(0);
    let before = text[..at]
        .char_indices()
        .rev()
        .nth(BEFORE)
        .map_or(0, |(at, _)| at);
    let part: String = text[before..].chars().take(HIT).collect();
    match before {
        0 => part,
        _ => format!("…{part}"),
    }
}

fn foot(shown: &Shown) -> Markup {
    let window = &shown.window;
    let share = window.start as f64 / window.length.max(1) as f64 * 100.0;
    html! {
        div.foot {
            p.about { span #where { (format_bytes(window.start)) " of " (format_bytes(window.length)) ", " (format!("{share:.0}%")) }
                span.zone { " · times are UTC" } }
            div.buttons {
                @if !shown.run.status.is_over() { label.scripted { input #follow type="checkbox"; " Follow" } }
                label.scripted { input #wrap type="checkbox" checked; " Wrap lines" }
                a href={ "/runs/" (shown.run.id) "/log.txt" } download { "Download" }
            }
        }
        p.about.scripted.keys { kbd { "/" } " find " kbd { "n" } " " kbd { "p" } " hits " kbd { "g" } " " kbd { "G" } " start, end " kbd { "e" } " next error" }
    }
}
