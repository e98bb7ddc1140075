//! The list of runs: sorted, filtered, in pages; as a page and as JSON.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use maud::{Markup, html};
use serde::Serialize;
use tidegate_memory::{counted, duration, figure, off};
use tidegate_runs::{FlightRecord, Run, RunsQuery, SortBy, Status, metric_name, now_ms};

use crate::error::Result;
use crate::html::{Page, Place, badge, moment, size};
use crate::query::Query;
use crate::run::state::{last_look, live_sentence};
use crate::site::Site;

const SHOWN: usize = 50;
const MOST: usize = 500;

/// What the list is asked for: `q`, `status`, `kind`, `sort`, `order`, `page`, `limit`.
fn asked(query: &Query) -> Result<RunsQuery> {
    let known: Vec<&str> = Status::ALL.iter().map(|status| status.as_str()).collect();
    let status = |text: &str| Status::ALL.into_iter().find(|status| status.as_str() == text);
    let sorts: Vec<&str> = SortBy::ALL.iter().map(|sort| sort.as_str()).collect();
    let order = |text: &str| ["up", "down"].into_iter().find(|known| *known == text);
    let limit = query.number("limit")?.unwrap_or(SHOWN).clamp(1, MOST);
    let page = query.number("page")?.unwrap_or(1usize).max(1);
    Ok(RunsQuery {
        text: query.get("q").map(Into::into),
        status: query.word("status", status, &known.join(", "))?,
        kind: query.get("kind").map(Into::into),
        sort: query
            .word("sort", SortBy::parse, &sorts.join(", "))?
            .unwrap_or(SortBy::Created),
        ascending: query.word("order", order, "up, down")? == Some("up"),
        limit,
        offset: (page - 1).saturating_mul(limit),
    })
}

/// A page of the list.
#[derive(Debug, Serialize)]
pub(crate) struct List {
    runs: Vec<Run>,
    total: u64,
    page: usize,
    limit: usize,
}

pub(crate) async fn list(State(site): State<Arc<Site>>, uri: Uri) -> Result<Json<List>> {
    let asked = asked(&Query::of(&uri))?;
    let (limit, page) = (asked.limit, asked.offset / asked.limit + 1);
    let found = site.read(move |store| Ok(store.page(&asked)?)).await?;
    Ok(Json(List {
        runs: found.runs,
        total: found.total,
        page,
        limit,
    }))
}

pub(crate) async fn page(State(site): State<Arc<Site>>, uri: Uri) -> Result<Page> {
    let query = Query::of(&uri);
    let asked = asked(&query)?;
    let (of, looks, counts) = {
        let asked = asked.clone();
        site.read(move |store| {
            let of = store.page(&asked)?;
            let look = |run: &Run| match run.status.is_over() {
                true => None,
                false => last_look(store, &run.id),
            };
            let looks: Vec<_> = of.runs.iter().map(look).collect();
            Ok((of, looks, store.counts()?))
        })
        .await?
    };
    let body = html! {
        div.head {
            h1 { "Runs" }
            (filters(&query, &asked, &counts))
        }
        div #list data-live { @if of.runs.is_empty() { (none(counts.iter().map(|(_, n)| n).sum())) } @else {
            form #compare action="/compare" method="get" {
                div.wide tabindex="0" role="region" aria-label="Runs" {
                    table.runs {
                        caption.hidden { "Runs, " (asked.sort.as_str()) }
                        thead { tr {
                            th scope="col" { span.hidden { "Choose to compare" } }
                            @for column in COLUMNS { (heading(&query, &asked, column)) }
                        } }
                        tbody #runs { @for (run, last) in of.runs.iter().zip(&looks) { (row(run, last.as_ref())) } }
                    }
                }
                div.foot {
                    button type="submit" { "Compare the chosen" }
                    (pages(&query, asked.offset / asked.limit + 1, of.total.div_ceil(asked.limit as u64), of.total))
                }
            }
        } }
    };
    site.close_orphans(&of.runs);
    Ok(Page {
        title: "Runs".into(),
        place: Place::Runs,
        scripts: &[],
        events: Some("/api/events".into()),
        body,
    })
}

/// The columns, and what they are sorted by.
const COLUMNS: [(&str, SortBy, &str); 8] = [
    ("Run", SortBy::Name, ""),
    ("State", SortBy::Status, ""),
    ("Model", SortBy::Model, ""),
    ("Started", SortBy::Created, ""),
    ("Took", SortBy::Duration, "number"),
    ("Peak", SortBy::Share, "peak"),
    ("Plan off", SortBy::PlanError, "number"),
    ("Score", SortBy::Metric, "number"),
];

fn heading(query: &Query, asked: &RunsQuery, (name, sort, class): (&str, SortBy, &str)) -> Markup {
    let sorted = asked.sort == sort;
    let up = sorted && !asked.ascending;
    let order = if up { "up" } else { "down" };
    let link = Query::parse(query.without("page").as_bytes()).with("sort", sort.as_str());
    let link = Query::parse(link.as_bytes()).with("order", order);
    let aria = match (sorted, asked.ascending) {
        (false, _) => None,
        (true, true) => Some("ascending"),
        (true, false) => Some("descending"),
    };
    html! {
        th scope="col" class=(class) aria-sort=[aria] {
            a href={ "/?" (link) } { (name) @if sorted { span.arrow aria-hidden="true" { @if asked.ascending { " ↑" } @else { " ↓" } } } }
        }
    }
}

fn filters(query: &Query, asked: &RunsQuery, counts: &[(Status, u64)]) -> Markup {
    html! {
        form.filters role="search" action="/" method="get" {
            @for name in ["sort", "order"] {
                @if let Some(value) = query.get(name) { input type="hidden" name=(name) value=(value); }
            }
            label { span.hidden { "Find" }
                input type="search" name="q" placeholder="Name, data, verdict …" value=(query.get("q").unwrap_or_default()); }
            label { span.hidden { "State" }
                select name="status" {
                    option value="" { "every state" }
                    @for (status, n) in counts {
                        option value=(status.as_str()) selected[asked.status == Some(*status)] { (status.as_str()) " (" (n) ")" }
                    }
                }
            }
            button type="submit" { "Filter" }
        }
    }
}

/// One run, as a row of the table; one that is not over says how it stands.
fn row(run: &Run, last: Option<&FlightRecord>) -> Markup {
    let now = now_ms();
    html! {
        tr id={ "run-" (run.id) } {
            td { input type="checkbox" name="run" value=(run.id) aria-label={ "Compare " (run.label()) }; }
            th scope="row" {
                a href={ "/runs/" (run.id) } { (run.label()) }
                div.about { (run.data.as_deref().unwrap_or_else(|| run.command.first().map_or("", String::as_str))) }
            }
            td { (badge(run.status)) }
            td { (run.model.as_deref().unwrap_or(&run.kind)) }
            td { (moment(run.created_ms)) }
            td.number { @match run.duration_ms(now) {
                Some(ms) => { (duration(ms as f64 / 1e3)) }
                None => { span.unavailable { "–" } }
            } }
            td.peak { (peak(run)) }
            td.number { @match run.plan_error() {
                error @ Some(_) => { (off(error)) }
                None => { span.unavailable { "–" } }
            } }
            td.number { @match (&run.metric_name, run.metric_value) {
                (Some(name), Some(value)) => { (figure(value)) div.about { (metric_name(name)) } }
                _ => { span.unavailable { "–" } }
            } }
        }
        @if !run.status.is_over() {
            tr.why { td {} td colspan="8" data-sentence=(run.id) { (live_sentence(run, last, now)) } }
        } @else if let Some(why) = run.verdict.as_ref().map(|verdict| &verdict.sentence).or(run.error.as_ref()) {
            @if run.status == Status::Failed {
                tr.why { td {} td colspan="8" { (why) } }
            }
        }
    }
}

/// The peak against the line.
fn peak(run: &Run) -> Markup {
    html! {
        @match (run.peak_bytes, run.budget_bytes) {
            (Some(peak), Some(line)) => {
                meter min="0" max=(line) high=(line / 10 * 9) value=(peak.min(line)) title={ (peak * 100 / line.max(1)) "% of the line" } {}
                " " (size(Some(peak)))
            }
            (Some(peak), None) => { (size(Some(peak))) }
            (None, _) => { span.unavailable { "–" } }
        }
    }
}

/// Where no run is to be seen.
fn none(all: u64) -> Markup {
    html! {
        section.card.empty {
            @if all == 0 {
                h2 { "No run yet" }
                p { "Train within a line of memory, or watch any command:" }
                pre { code { "tidegate train DATA --target COLUMN --memory 2GB\ntidegate run -- python train.py" } }
                p { a href="/start" { "Start a training here" } }
            } @else {
                h2 { "None of " (counted(all, "run")) " is like that" }
                p { a href="/" { "Show all" } }
            }
        }
    }
}

fn pages(query: &Query, page: usize, pages: u64, total: u64) -> Markup {
    let link = |page: usize| format!("/?{}", query.with("page", &page.to_string()));
    html! {
        nav.pages aria-label="Pages of runs" {
            span { (counted(total, "run")) }
            @if page > 1 { a rel="prev" href=(link(page - 1)) { "← newer" } }
            @if pages > 1 { span { "page " (page) " of " (pages) } }
            @if (page as u64) < pages { a rel="next" href=(link(page + 1)) { "older →" } }
        }
    }
}
