//! What the page of a run shows, as JSON: plain shapes that stay.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use serde_json::Value;
use tidegate_runs::{Curve, Part, Run, RunDir, Span};

use super::files::{self, Found};
use super::graph::{Graph, View, graph};
use super::images;
use crate::answers::Question;
use crate::error::{Error, Result};
use crate::query::Query;
use crate::site::Site;

/// Points of a recording or a curve, unless it is said, and at the most.
const POINTS: usize = 1_200;
const MOST: usize = 5_000;
/// So long an answer is waited for that has to be worked out.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn api() -> Router<Arc<Site>> {
    Router::new()
        .route("/api/runs/{id}", get(whole))
        .route("/api/runs/{id}/memory", get(memory))
        .route("/api/runs/{id}/processes", get(processes))
        .route("/api/runs/{id}/holders", get(holders))
        .route("/api/runs/{id}/metrics", get(metrics))
        .route("/api/runs/{id}/why", get(why))
        .route("/api/runs/{id}/explained", get(explained))
        .route("/api/runs/{id}/samples", get(samples))
        .route("/api/runs/{id}/mistakes", get(mistakes))
        .route("/api/runs/{id}/job", get(job))
        .route("/api/runs/{id}/encoding", get(encoding))
        .route("/api/runs/{id}/environment", get(environment))
}

/// A run with all that is known of it in short.
#[derive(Debug, Serialize)]
struct Whole {
    run: Run,
    /// The plan as it was told; `null` where there is none.
    plan: Option<Value>,
    plan_error: Option<f64>,
    parts: Vec<Part>,
    /// How good its model is; `null` where there is none.
    report: Option<Value>,
    /// The names of its files and folders.
    files: Vec<String>,
    /// What is there and cannot be shown.
    damaged: Vec<String>,
}

async fn whole(State(site): State<Arc<Site>>, Path(id): Path<String>) -> Result<Json<Whole>> {
    let read = site.read(move |store| {
        let run = store.get(&id)?;
        let dir = store.run_dir(&run.id);
        let plan: Found<Value> = files::json(&dir.plan());
        let report: Found<Value> = files::json(&dir.model().join("report.json"));
        let damaged = [plan.trouble(), report.trouble()];
        Ok(Whole {
            parts: store.parts(&run.id)?,
            plan_error: run.plan_error(),
            damaged: damaged.into_iter().flatten().map(Into::into).collect(),
            plan: plan.value().cloned(),
            report: report.value().cloned(),
            files: names(&dir),
            run,
        })
    });
    Ok(Json(read.await?))
}

fn names(dir: &RunDir) -> Vec<String> {
    let entries = std::fs::read_dir(dir.path()).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// `from` and `to` in milliseconds since the start, and about how many `points`.
fn asked(uri: &Uri) -> Result<(Span, usize)> {
    let query = Query::of(uri);
    let span = Span {
        from_ms: query.number("from")?,
        to_ms: query.number("to")?,
    };
    if let (Some(from), Some(to)) = (span.from_ms, span.to_ms)
        && from > to
    {
        return Err(Error::Request {
            what: format!("from {from} to {to} is no time"),
            hint: "from and to are milliseconds since the start, the earlier first".into(),
        });
    }
    Ok((span, points(&query)?))
}

fn points(query: &Query) -> Result<usize> {
    Ok(query.number("points")?.unwrap_or(POINTS).clamp(8, MOST))
}

async fn of_view(site: Arc<Site>, id: String, uri: Uri, view: View) -> Result<Json<Graph>> {
    let (span, points) = asked(&uri)?;
    let read = site.read(move |store| graph(store, &store.get(&id)?, view, span, points));
    Ok(Json(read.await?))
}

async fn memory(State(site): State<Arc<Site>>, Path(id): Path<String>, uri: Uri) -> Result<Json<Graph>> {
    of_view(site, id, uri, View::Total).await
}

async fn processes(State(site): State<Arc<Site>>, Path(id): Path<String>, uri: Uri) -> Result<Json<Graph>> {
    of_view(site, id, uri, View::Processes).await
}

async fn holders(State(site): State<Arc<Site>>, Path(id): Path<String>, uri: Uri) -> Result<Json<Graph>> {
    of_view(site, id, uri, View::Holders).await
}

#[derive(Debug, Serialize)]
struct Metrics {
    curves: Vec<Curve>,
}

async fn metrics(State(site): State<Arc<Site>>, Path(id): Path<String>, uri: Uri) -> Result<Json<Metrics>> {
    let points = points(&Query::of(&uri))?;
    let read = site.read(move |store| {
        let run = store.get(&id)?;
        Ok(store.metric_curves(&run.id, points)?)
    });
    Ok(Json(Metrics { curves: read.await? }))
}

/// The run that is asked about, which has to be over.
async fn ended(site: &Arc<Site>, id: String) -> Result<Run> {
    let run = site.read(move |store| Ok(store.get(&id)?)).await?;
    match run.status.is_over() {
        true => Ok(run),
        false => Err(Error::Request {
            what: "this run is not over".into(),
            hint: "ask again when it is".into(),
        }),
    }
}

async fn why(State(site): State<Arc<Site>>, Path(id): Path<String>) -> Result<Json<Value>> {
    let run = ended(&site, id).await?;
    Ok(Json(super::waited(
        site.answer(&run.id, Question::Why, PATIENCE).await?,
    )?))
}

async fn explained(State(site): State<Arc<Site>>, Path(id): Path<String>) -> Result<Json<Value>> {
    let run = ended(&site, id).await?;
    let answer = site.answer(&run.id, Question::Explained, PATIENCE).await?;
    Ok(Json(super::waited(answer)?))
}

async fn samples(State(site): State<Arc<Site>>, Path(id): Path<String>) -> Result<Json<Value>> {
    Ok(Json(
        images::about(&site, id, images::Sheet::Samples, PATIENCE).await?,
    ))
}

async fn mistakes(State(site): State<Arc<Site>>, Path(id): Path<String>) -> Result<Json<Value>> {
    Ok(Json(
        images::about(&site, id, images::Sheet::Mistakes, PATIENCE).await?,
    ))
}

/// A file that is there, or a word on why it is not.
fn there<T>(found: Found<T>, what: &str) -> Result<T> {
    match found {
        Found::Yes(value) => Ok(value),
        Found::No => Err(Error::NotFound {
            what: format!("this run has no {what}"),
            hint: "only trainings have it, once they have come so far".into(),
        }),
        Found::Damaged(why) => Err(Error::NotFound {
            what: why,
            hint: "what is left of it stands in the folder of the run".into(),
        }),
    }
}

async fn job(State(site): State<Arc<Site>>, Path(id): Path<String>) -> Result<Response> {
    let read = site.read(move |store| {
        let run = store.get(&id)?;
        let found = files::text(&store.run_dir(&run.id).job());
        Ok((run, there(found, "job file")?))
    });
    let (run, text) = read.await?;
    // An id has letters and digits alone.
    let name = format!("attachment; filename=\"job-{}.toml\"", run.id);
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_string()),
        (header::CONTENT_DISPOSITION, name),
    ];
    Ok((headers, text).into_response())
}

async fn encoding(State(site): State<Arc<Site>>, Path(id): Path<String>) -> Result<Json<Value>> {
    let read = site.read(move |store| {
        let dir = store.run_dir(&store.get(&id)?.id);
        there(files::json(&dir.encoding()), "encoding table")
    });
    Ok(Json(read.await?))
}

async fn environment(State(site): State<Arc<Site>>, Path(id): Path<String>) -> Result<Json<Value>> {
    let read = site.read(move |store| {
        let dir = store.run_dir(&store.get(&id)?.id);
        there(files::json(&dir.environment()), "environment")
    });
    Ok(Json(read.await?))
}
