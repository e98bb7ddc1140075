//! One run: how it stands, why it ended, what its memory and its figures did, and what came of it; as a page and as JSON.

mod about;
mod api;
mod files;
pub(crate) mod graph;
mod images;
pub(crate) mod job;
pub(crate) mod memory;
pub(crate) mod metrics;
mod model;
pub(crate) mod parts;
mod plan;
pub(crate) mod state;
mod verdict;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidegate_runs::{Curve, FlightRecord, Part, Run, RunDir, Span, Status, Store, now_ms};

use crate::answers::Question;
use crate::error::{Error, Result};
use crate::html::{Page, Place, badge, moment};
use crate::query::Query;
use crate::site::Site;
use files::Found;
use graph::{Graph, View};
use images::Sheet;

/// So long a page waits for what the program has to be asked; a script asks on.
const PATIENCE: Duration = Duration::from_millis(120);

pub(crate) fn pages() -> Router<Arc<Site>> {
    Router::new()
        .route("/runs/{id}", get(page))
        .route("/runs/{id}/samples", post(images::make_samples))
        .route("/runs/{id}/mistakes", post(images::make_mistakes))
        .route("/runs/{id}/samples.png", get(images::samples))
        .route("/runs/{id}/mistakes.png", get(images::mistakes))
}

pub(crate) use api::api;

/// Everything of a run that stands in the store and beside it.
struct Seen {
    run: Run,
    home: PathBuf,
    job_path: String,
    parts: Vec<Part>,
    plan: Found<plan::Plan>,
    curves: Vec<Curve>,
    graph: Result<Graph>,
    last: Option<FlightRecord>,
    job: Found<String>,
    encoding: Found<model::Encoding>,
    environment: Found<Value>,
    has_checkpoint: bool,
    model_size: Option<String>,
    sheets: Vec<images::Seen>,
    /// It was asked to end.
    is_stopping: bool,
}

fn see(store: &Store, run: Run, view: View) -> Result<Seen> {
    let dir = store.run_dir(&run.id);
    let job = files::text(&dir.job());
    let has_model = files::is_filled(&dir.model());
    let with_images = job.value().is_some_and(|job| images::are_there(job, &dir));
    let sheets = Sheet::ALL.into_iter().filter(|sheet| match sheet {
        Sheet::Samples => with_images,
        Sheet::Mistakes => with_images && has_model && run.status.is_over(),
    });
    Ok(Seen {
        home: store.home().into(),
        job_path: dir.job().display().to_string(),
        parts: store.parts(&run.id)?,
        plan: files::json(&dir.plan()),
        curves: store.metric_curves(&run.id, metrics::POINTS)?,
        graph: graph::graph(store, &run, view, Span::default(), memory::POINTS),
        last: state::last_look(store, &run.id),
        encoding: files::json(&dir.encoding()),
        environment: files::json(&dir.environment()),
        has_checkpoint: files::is_filled(&dir.checkpoint()),
        model_size: model::size_of(&dir.model()),
        sheets: sheets.map(|sheet| images::look(&dir, sheet)).collect(),
        is_stopping: false,
        job,
        run,
    })
}

/// The job file of a run, where it can be shown.
pub(crate) fn job_text(dir: &RunDir) -> Option<String> {
    files::text(&dir.job()).value().cloned()
}

async fn page(State(site): State<Arc<Site>>, Path(id): Path<String>, uri: Uri) -> Result<Response> {
    let query = Query::of(&uri);
    let known: Vec<&str> = View::ALL.iter().map(|view| view.as_str()).collect();
    let view = query
        .word("memory", View::parse, &known.join(", "))?
        .unwrap_or(View::Total);
    let asked = id.clone();
    let (run, has_model) = site
        .read(move |store| {
            let run = store.find(&asked)?;
            let has_model = files::is_filled(&store.run_dir(&run.id).model());
            Ok((run, has_model))
        })
        .await?;
    if run.id != id {
        // A name, `last`, a beginning: the run may be another one tomorrow.
        return Ok(Redirect::temporary(&format!("/runs/{}", run.id)).into_response());
    }
    let over = run.status.is_over();
    let with_verdict = over && (run.status != Status::Done || run.kind != "train");
    // The program works while the files are read.
    let read = run.clone();
    let (seen, why, explained) = tokio::join!(
        site.read(move |store| see(store, read, view)),
        Answer::of_if(with_verdict, &site, &run.id, Question::Why),
        Answer::of_if(over && has_model, &site, &run.id, Question::Explained),
    );
    let mut seen = seen?;
    seen.is_stopping = site.is_stopping(&run.id);
    site.close_orphans([&run]);
    for sheet in &mut seen.sheets {
        site.complete(&run.id, sheet).await?;
    }
    let page = Page {
        title: run.label().into(),
        place: Place::Runs,
        scripts: &["uplot.js", "charts.js"],
        events: (!over).then(|| format!("/api/runs/{}/events", run.id)),
        body: body(&seen, view, &why, &explained),
    };
    Ok(page.into_response())
}

/// What became of asking the program.
struct Answer<T> {
    value: Option<T>,
    /// It is still to come.
    asking: bool,
    trouble: Option<String>,
}

impl<T> Default for Answer<T> {
    fn default() -> Answer<T> {
        Answer {
            value: None,
            asking: false,
            trouble: None,
        }
    }
}

impl<T: DeserializeOwned> Answer<T> {
    async fn of_if(asks: bool, site: &Arc<Site>, id: &str, question: Question) -> Answer<T> {
        match asks {
            true => Answer::of(site, id, question).await,
            false => Answer::default(),
        }
    }

    async fn of(site: &Arc<Site>, id: &str, question: Question) -> Answer<T> {
        let (value, trouble) = match site.answer(id, question, PATIENCE).await {
            Ok(None) => {
                return Answer {
                    asking: true,
                    ..Answer::default()
                };
            }
            Ok(Some(value)) => match T::deserialize(&*value) {
                Ok(value) => (Some(value), None),
                Err(error) => (None, Some(format!("the answer makes no sense: {error}"))),
            },
            Err(error) => (None, Some(error.to_string())),
        };
        Answer {
            value,
            asking: false,
            trouble,
        }
    }
}

/// What is still to come is said as that, with when to ask again.
fn waited(answer: Option<Arc<Value>>) -> Result<Value> {
    match answer {
        Some(value) => Ok(Arc::unwrap_or_clone(value)),
        None => Err(Error::Asked {
            message: "it is still being worked out".into(),
            hint: Some("ask again".into()),
        }),
    }
}

/// A part of the page that may come, and move, while the run lives.
struct Section {
    id: &'static str,
    name: &'static str,
    body: Markup,
    /// A refreshed page brings it anew; what a script draws on moves by itself.
    live: bool,
}

fn body(
    seen: &Seen,
    view: View,
    why: &Answer<verdict::Verdict>,
    explained: &Answer<model::Explained>,
) -> Markup {
    let run = &seen.run;
    let over = run.status.is_over();
    let told = run.status != Status::Done || why.value.as_ref().is_some_and(verdict::is_worth_telling);
    let verdict = match over && told {
        true => verdict::section(run, why.value.as_ref(), why.asking, why.trouble.as_deref()),
        false => html! {},
    };
    let (model, trouble) = (explained.value.as_ref(), explained.trouble.as_deref());
    let live = |id, name, body| Section {
        id,
        name,
        body,
        live: true,
    };
    let still = |id, name, body| Section {
        live: false,
        ..live(id, name, body)
    };
    let sections = [
        live(
            "verdict",
            if run.status == Status::Done {
                "What was seen"
            } else {
                "Why it ended"
            },
            verdict,
        ),
        still("memory", "Memory", memory::section(run, view, &seen.graph)),
        still("figures", "Learning", metrics::section(run, &seen.curves)),
        live("plan", "Plan", plan::section(run, &seen.parts, &seen.plan)),
        live("columns", "Columns", model::encoding(&seen.encoding)),
        live(
            "model",
            "Model",
            model::section(run, model, explained.asking, trouble),
        ),
        still("images", "Images", images::section(run, &seen.sheets)),
        live("facts", "Facts", about::facts(run, seen.model_size.as_deref())),
        still(
            "again",
            "Run it again",
            about::again(
                run,
                seen.job.value().is_some(),
                &seen.job_path,
                &seen.environment,
                &seen.home,
            ),
        ),
        still("job", "Job", about::job(run, &seen.job)),
        still(
            "environment",
            "Environment",
            about::environment(&seen.environment),
        ),
    ];
    let there = sections.iter().filter(|section| !section.body.0.is_empty());
    html! {
        div #state { (head(seen)) }
        div #contents data-live { nav.contents aria-label="On this page" {
            @for section in there { a href={ "#" (section.id) } { (section.name) } }
        } }
        @for section in &sections { div id=(section.id) data-live[section.live] { (section.body) } }
        div #figures-now data-live hidden { (metrics::now(&seen.curves)) }
    }
}

/// The state in one sentence, who and when, and what can be done about it.
fn head(seen: &Seen) -> Markup {
    let run = &seen.run;
    let about: Vec<&str> = [run.model.as_deref().unwrap_or(&run.kind)]
        .into_iter()
        .chain(run.data.as_deref())
        .collect();
    html! {
        nav.crumbs aria-label="Where this is" { a href="/" { "Runs" } span aria-hidden="true" { " / " } span { (run.label()) } }
        div.head.of-run {
            div {
                h1 #title data-live { (run.label()) " " (badge(run.status)) }
                p.sentence #sentence data-live data-sentence=(run.id) { (state::sentence(run, seen.last.as_ref(), seen.has_checkpoint, now_ms())) }
                p.about {
                    (about.join(" on ")) @if let Some(target) = &run.target { ", target " (target) }
                    " · " (moment(run.started_ms.unwrap_or(run.created_ms)))
                    @if run.name.is_some() { " · " code { (run.id) } }
                }
            }
            div.buttons #actions data-live {
                a.button.main[run.status != Status::Failed] href={ "/runs/" (run.id) "/log" } { @if run.status.is_over() { "Read the logs" } @else { "Follow the log" } }
                @if !run.status.is_over() && seen.is_stopping {
                    span.about { "Asked to end: it saves what it has." }
                    form method="post" action={ "/runs/" (run.id) "/stop" } { button.danger type="submit" name="kill" value="yes" { "Kill it" } }
                } @else if !run.status.is_over() {
                    form method="post" action={ "/runs/" (run.id) "/stop" } { button type="submit" { "Stop" } }
                } @else if run.status != Status::Done && seen.has_checkpoint {
                    form method="post" action={ "/runs/" (run.id) "/resume" } { button type="submit" { "Resume" } }
                }
            }
        }
    }
}
