//! Two to eight runs beside each other: their facts, their curves over each other, and what their jobs do not share.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::routing::get;
use axum::{Json, Router};
use maud::{Markup, html};
use serde::Serialize;
use tidegate_memory::{against, duration, figure, format_bytes, off, thousands};
use tidegate_runs::{Curve, Run, Span, Status, Store, metric_name, now_ms};

use crate::chart::{Chart, Layer, Scale, Shape, moment as clock};
use crate::error::{Error, Result};
use crate::html::{Page, Place, badge};
use crate::query::{Query, encoded};
use crate::run::graph::{Graph, Role, View, graph};
use crate::run::job::{self, Compared};
use crate::run::metrics;
use crate::site::Site;

/// Fewer are no comparison, and more cannot be told apart.
const FEWEST: usize = 2;
const MOST: usize = 8;
/// Points of each curve on the page, and for a script.
const DRAWN: usize = 200;
const TOLD: usize = 600;
/// Charts of figures.
const CHARTS: usize = 18;

pub(crate) fn pages() -> Router<Arc<Site>> {
    Router::new().route("/compare", get(page))
}

pub(crate) fn api() -> Router<Arc<Site>> {
    Router::new().route("/api/compare", get(told))
}

/// Runs beside each other; every list is in the order in which they were asked for.
#[derive(Debug, Serialize)]
struct Comparison {
    runs: Vec<Run>,
    facts: Vec<Fact>,
    memory: Vec<Memory>,
    metrics: Vec<Figure>,
    job: Vec<Compared>,
}

/// One thing that is known of all of them.
#[derive(Debug, Serialize)]
struct Fact {
    name: &'static str,
    /// As people read it; `null` is unavailable.
    values: Vec<Option<String>>,
    differs: bool,
}

/// The memory of one run.
#[derive(Debug, Serialize)]
struct Memory {
    run: String,
    time_ms: Vec<u64>,
    bytes: Vec<Option<u64>>,
}

/// One figure of all runs that told it.
#[derive(Debug, Serialize)]
struct Figure {
    name: String,
    curves: Vec<OfRun>,
}

#[derive(Debug, Serialize)]
struct OfRun {
    run: String,
    #[serde(flatten)]
    curve: Curve,
}

/// The runs that an address names, each once.
fn asked(query: &Query) -> Result<Vec<String>> {
    let mut ids: Vec<String> = Vec::new();
    for id in query.all("run").filter(|id| !id.is_empty()) {
        if ids.iter().all(|known| known != id) {
            ids.push(id.into());
        }
    }
    let hint = || format!("choose {FEWEST} to {MOST} runs in the list: /compare?run=ID&run=ID");
    match ids.len() {
        n if n < FEWEST => Err(Error::Request {
            what: match n {
                0 => "no run was chosen".into(),
                _ => "one run alone cannot be compared".into(),
            },
            hint: hint(),
        }),
        n if n > MOST => Err(Error::Request {
            what: format!("{n} runs are too many to be told apart"),
            hint: hint(),
        }),
        _ => Ok(ids),
    }
}

fn compare(store: &Store, ids: &[String], points: usize) -> Result<Comparison> {
    let mut runs: Vec<Run> = Vec::new();
    for id in ids {
        // Whoever types an address has names.
        let run = store.find(id)?;
        if runs.iter().any(|known| known.id == run.id) {
            return Err(Error::Request {
                what: format!("{id} is a run that was named already"),
                hint: "name each of them once".into(),
            });
        }
        runs.push(run);
    }
    let jobs: Vec<Option<String>> = runs
        .iter()
        .map(|run| crate::run::job_text(&store.run_dir(&run.id)))
        .collect();
    Ok(Comparison {
        facts: facts(&runs),
        memory: memories(store, &runs, points)?,
        metrics: figures(store, &runs, points)?,
        job: job::compare(&jobs),
        runs,
    })
}

fn memories(store: &Store, runs: &[Run], points: usize) -> Result<Vec<Memory>> {
    let of = |run: &Run| {
        let graph = match graph(store, run, View::Total, Span::default(), points) {
            // What is damaged of one is no reason not to compare the rest.
            Err(Error::NotFound { .. }) => Graph::default(),
            read => read?,
        };
        let total = graph.series.into_iter().find(|series| series.role == Role::Total);
        Ok(Memory {
            run: run.id.clone(),
            time_ms: graph.time_ms,
            bytes: total.map(|series| series.values).unwrap_or_default(),
        })
    };
    runs.iter().map(of).collect()
}

/// Figures that several runs told come first.
fn figures(store: &Store, runs: &[Run], points: usize) -> Result<Vec<Figure>> {
    let mut all: Vec<Figure> = Vec::new();
    for run in runs {
        for curve in store.metric_curves(&run.id, points)? {
            let of_run = |curve| OfRun {
                run: run.id.clone(),
                curve,
            };
            match all.iter_mut().find(|figure| figure.name == curve.name) {
                Some(figure) => figure.curves.push(of_run(curve)),
                None => all.push(Figure {
                    name: curve.name.clone(),
                    curves: vec![of_run(curve)],
                }),
            }
        }
    }
    all.sort_by_key(|figure| std::cmp::Reverse(figure.curves.len()));
    Ok(all)
}

type Tell = fn(&Run) -> Option<String>;

const FACTS: [(&str, Tell); 15] = [
    ("State", |run| Some(run.status.as_str().into())),
    ("Why it ended", |run| {
        let told = run.verdict.as_ref().map(|verdict| verdict.sentence.clone());
        told.or(run.error.clone())
            .filter(|_| run.status == Status::Failed)
    }),
    ("Score", |run| {
        let name = metric_name(run.metric_name.as_ref()?);
        Some(format!("{name} {}", figure(run.metric_value?)))
    }),
    ("Took", |run| {
        run.duration_ms(now_ms()).map(|ms| duration(ms as f64 / 1e3))
    }),
    ("Peak", |run| {
        run.peak_bytes.map(|_| against(run.peak_bytes, run.budget_bytes))
    }),
    ("Planned", |run| run.needs_bytes.map(format_bytes)),
    ("Plan off", |run| run.plan_error().map(|error| off(Some(error)))),
    ("Line", |run| run.budget_bytes.map(format_bytes)),
    ("Held by", |run| run.containment.clone()),
    ("Model", |run| {
        run.model.clone().or_else(|| Some(run.kind.clone()))
    }),
    ("Data", |run| run.data.clone()),
    ("Target", |run| run.target.clone()),
    ("Rows", |run| run.rows.map(thousands)),
    ("Command", |run| {
        // A job says the same, and better.
        let quoted = crate::run::parts::quoted(&run.command);
        Some(quoted).filter(|command| !command.is_empty() && run.kind != "train")
    }),
    ("OOM kills", |run| run.oom_kills.map(|kills| kills.to_string())),
];

fn facts(runs: &[Run]) -> Vec<Fact> {
    let fact = |(name, tell): (&'static str, Tell)| {
        let values: Vec<Option<String>> = runs.iter().map(tell).collect();
        Fact {
            name,
            differs: values.iter().any(|value| *value != values[0]),
            values,
        }
    };
    let told = FACTS.into_iter().map(fact);
    told.filter(|fact| fact.values.iter().any(Option::is_some))
        .collect()
}

async fn told(State(site): State<Arc<Site>>, uri: Uri) -> Result<Json<Comparison>> {
    let ids = asked(&Query::of(&uri))?;
    Ok(Json(site.read(move |store| compare(store, &ids, TOLD)).await?))
}

async fn page(State(site): State<Arc<Site>>, uri: Uri) -> Result<Page> {
    let query = Query::of(&uri);
    let all = query.get("all").is_some();
    let ids = asked(&query)?;
    let of = site.read(move |store| compare(store, &ids, DRAWN)).await?;
    let runs: Vec<String> = of
        .runs
        .iter()
        .map(|run| format!("run={}", encoded(&run.id)))
        .collect();
    let source = format!("/api/compare?{}", runs.join("&"));
    let body = html! {
        nav.crumbs aria-label="Where this is" { a href="/" { "Runs" } span aria-hidden="true" { " / " } span { "Compare" } }
        div.head { h1 { (of.runs.len()) " runs compared" } }
        section.card { h2 { "Facts" } (facts_table(&of)) }
        section.card {
            h2 { "Memory over time" }
            (memory_chart(&of, &source))
        }
        @if !of.metrics.is_empty() {
            section.card {
                h2 { "How they learned" }
                div.many { @for figure in of.metrics.iter().take(CHARTS) { (metric_chart(&of, figure, &source)) } }
                @if of.metrics.len() > CHARTS { p.hint { (of.metrics.len() - CHARTS) " more figures are told by " a href=(source) { "the API" } "." } }
            }
        }
        (job_table(&of, all, &runs.join("&")))
    };
    Ok(Page {
        title: "Compare".into(),
        place: Place::Runs,
        scripts: &["uplot.js", "charts.js"],
        events: None,
        body,
    })
}

/// A run above a column, with the colour of its curves.
fn heading(at: usize, run: &Run) -> Markup {
    html! { th scope="col" { span class={ "key c" (at + 1) } aria-hidden="true" {} a href={ "/runs/" (run.id) } { (run.label()) } } }
}

fn facts_table(of: &Comparison) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Facts" {
            table.compare {
                thead { tr { td { span.hidden { "Fact" } } @for (at, run) in of.runs.iter().enumerate() { (heading(at, run)) } } }
                tbody { @for fact in &of.facts {
                    tr.differs[fact.differs] {
                        th scope="row" { (fact.name) @if fact.differs { span.hidden { " (differs)" } } }
                        @for (run, value) in of.runs.iter().zip(&fact.values) {
                            td {
                                @if fact.name == "State" { (badge(run.status)) }
                                @else if let Some(value) = value { (value) }
                                @else { span.unavailable { "–" } }
                            }
                        }
                    }
                } }
            }
        }
    }
}

fn keys(of: &Comparison, shown: impl Fn(usize) -> Option<String>) -> Markup {
    html! {
        ul.keys { @for (at, run) in of.runs.iter().enumerate() {
            @if let Some(word) = shown(at) {
                li data-name=(run.id) { span class={ "key c" (at + 1) } aria-hidden="true" {} (run.label()) " " output { (word) } }
            }
        } }
    }
}

fn memory_chart(of: &Comparison, source: &str) -> Markup {
    let layers = of.memory.iter().enumerate().map(|(at, memory)| {
        let values = memory.bytes.iter().map(|value| value.map(|bytes| bytes as f64));
        Layer {
            class: format!("c{}", at + 1),
            shape: Shape::Line,
            points: memory.time_ms.iter().map(|ms| *ms as f64).zip(values).collect(),
            base: Vec::new(),
        }
    });
    let last = of.memory.iter().filter_map(|memory| memory.time_ms.last()).max();
    let most = |memory: &Memory| memory.bytes.iter().flatten().max().copied();
    let highest = of.memory.iter().filter_map(most).max();
    let (Some(last), Some(highest)) = (last, highest) else {
        return html! { p.hint { "Nothing was recorded of them." } };
    };
    let chart = Chart {
        across: Scale::times(0.0, *last as f64),
        up: Scale::bytes(highest),
        layers: layers.collect(),
        marks: Vec::new(),
    };
    let word = |at: usize| most(&of.memory[at]).map(|bytes| format!("up to {}", format_bytes(bytes)));
    html! {
        figure.chart.large data-chart="compare-memory" data-source=(source) {
            div.plot role="img" aria-label={ "Memory of " (of.runs.len()) " runs since their starts, over " (clock(*last as f64)) } { (chart.draw()) }
            figcaption { (keys(of, word)) }
        }
    }
}

fn metric_chart(of: &Comparison, figure: &Figure, source: &str) -> Markup {
    let curves: Vec<&Curve> = figure.curves.iter().map(|one| &one.curve).collect();
    let place = |run: &str| of.runs.iter().position(|known| known.id == run).unwrap_or(0);
    let classes: Vec<String> = figure
        .curves
        .iter()
        .map(|one| format!("c{}", place(&one.run) + 1))
        .collect();
    let unit = if metrics::counts_by_step(&curves) {
        "step"
    } else {
        "epoch"
    };
    let word = |at: usize| {
        let found = figure.curves.iter().find(|one| one.run == of.runs[at].id)?;
        Some(metrics::value(&figure.name, found.curve.points.last()?.value))
    };
    let title = metrics::title_of(&figure.name);
    html! {
        figure.chart.small data-chart="compare-metric" data-source=(source) data-name=(figure.name) data-unit=(unit) {
            figcaption { h3 { (title) } (keys(of, word)) }
            div.plot role="img" aria-label={ (title) " by " (unit) " of " (curves.len()) " runs" } { (metrics::draw(&curves, &classes).draw()) }
        }
    }
}

/// Only what differs, unless all was asked for.
fn job_table(of: &Comparison, all: bool, runs: &str) -> Markup {
    let shown: Vec<&Compared> = of.job.iter().filter(|one| all || one.differs).collect();
    let same = of.job.len() - of.job.iter().filter(|one| one.differs).count();
    html! {
        @if !of.job.is_empty() {
            section.card #jobs {
                div.head {
                    h2 { "Their jobs" }
                    @if all { a href={ "/compare?" (runs) "#jobs" } { "Show what differs alone" } }
                    @else if same > 0 { a href={ "/compare?" (runs) "&all=1#jobs" } { "Show what is the same, too (" (same) ")" } }
                }
                @if shown.is_empty() { p { "Their jobs are the same." } } @else {
                    div.wide tabindex="0" role="region" aria-label="Their jobs" {
                        table.compare {
                            thead { tr { td { span.hidden { "Key" } } @for (at, run) in of.runs.iter().enumerate() { (heading(at, run)) } } }
                            tbody { @for one in shown {
                                tr.differs[one.differs] {
                                    th scope="row" { code { (one.key) } @if one.differs { span.hidden { " (differs)" } } }
                                    @for value in &one.values { td { @match value { Some(value) => code { (value) }, None => span.unavailable { "not said" } } } }
                                }
                            } }
                        }
                    }
                }
            }
        }
    }
}
