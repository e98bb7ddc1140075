//! What changes something: starting a training, stopping a run, taking one up again. Each is a form of the page and a
//! request of the API, and each is done by the program. That no other site has sent it, the guard has made sure of.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_runs::Run;

use super::asked::{Asked, check_memory};
use super::planned::No;
use super::{Answer, filled};
use crate::error::{Error, Result};
use crate::query::Query;
use crate::site::Site;

/// A training is under way within seconds, or as good as.
const START: Duration = Duration::from_secs(120);
const STOP: Duration = Duration::from_secs(30);

/// A run that the program tells of.
#[derive(Debug, Deserialize)]
struct Started {
    run: Named,
}

#[derive(Debug, Deserialize)]
struct Named {
    id: String,
}

/// Starts it, and shows the run; or the form again, as it was filled in.
pub(super) async fn start_by_form(State(site): State<Arc<Site>>, body: Bytes) -> Result<Response> {
    let asked = Asked::of(&Query::parse(&body))?;
    let started = match start(&site, &asked).await {
        Ok(value) => Answer::<Started>::of(value)?,
        Err(error @ (Error::Asked { .. } | Error::Request { .. })) => Answer::No(No::of(&error)),
        Err(error) => return Err(error),
    };
    match started {
        Answer::Yes(started) => Ok(to_run(&started.run.id)),
        Answer::No(no) => Ok(filled(&site, asked, false, Some(no)).await?.into_response()),
    }
}

pub(super) async fn start_by_json(
    State(site): State<Arc<Site>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response> {
    let asked: Asked = Asked::of_json(json_body(&headers, &body)?)?;
    Ok(answered(start(&site, &asked).await?, StatusCode::CREATED))
}

async fn start(site: &Arc<Site>, asked: &Asked) -> Result<Value> {
    let (asked, options) = (asked.clone(), site.options.clone());
    let words = site
        .read(move |_| asked.words("train", &["--detach"], &asked.data(&options)?, &options.roots))
        .await?;
    site.order(&words, START).await
}

/// How a run is stopped: `kill` does not wait for it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Stop {
    kill: bool,
}

pub(super) async fn stop_by_form(
    State(site): State<Arc<Site>>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Response> {
    let kill = Query::parse(&body).get("kill").is_some();
    let stopped = stop(&site, &id, kill).await?;
    refused(&stopped)?;
    Ok(to_run(&id))
}

pub(super) async fn stop_by_json(
    State(site): State<Arc<Site>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response> {
    let Stop { kill } = optional(&headers, &body)?;
    Ok(answered(stop(&site, &id, kill).await?, StatusCode::ACCEPTED))
}

/// Asks a run to end. A second request would kill it, so it is not passed on: whoever means that says so.
async fn stop(site: &Arc<Site>, id: &str, kill: bool) -> Result<Value> {
    let run = known(site, id).await?;
    if !kill && !run.status.is_over() && site.is_stopping(&run.id) {
        return Ok(json!({ "run": run }));
    }
    let mut words: Vec<OsString> = vec!["stop".into()];
    words.extend(kill.then(|| "--kill".into()));
    words.extend(["--".into(), (&run.id).into()]);
    let stopped = site.order(&words, STOP).await?;
    if stopped.get("error").is_none() {
        site.stops(&run.id);
    }
    Ok(stopped)
}

/// How a run is taken up: within another budget, if there is one.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Resume {
    memory: Option<String>,
}

pub(super) async fn resume_by_form(
    State(site): State<Arc<Site>>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Response> {
    let memory = Query::parse(&body).get("memory").map(String::from);
    let resumed = resume(&site, &id, Resume { memory }).await?;
    refused(&resumed)?;
    let started: Started = serde_json::from_value(resumed).map_err(|_| Error::Bug)?;
    Ok(to_run(&started.run.id))
}

pub(super) async fn resume_by_json(
    State(site): State<Arc<Site>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response> {
    let asked = optional(&headers, &body)?;
    Ok(answered(resume(&site, &id, asked).await?, StatusCode::CREATED))
}

/// What was started here goes on below the roots that it was started with: its job says so. A run of the command line
/// may have data anywhere, and goes on with them.
async fn resume(site: &Arc<Site>, id: &str, asked: Resume) -> Result<Value> {
    let run = known(site, id).await?;
    let mut words: Vec<OsString> = vec!["resume".into(), "--detach".into()];
    if let Some(memory) = asked
        .memory
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty())
    {
        words.push(format!("--memory={}", check_memory(memory)?).into());
    }
    words.extend(["--".into(), run.id.into()]);
    site.order(&words, START).await
}

/// A run that the store knows.
async fn known(site: &Arc<Site>, id: &str) -> Result<Run> {
    let id = id.to_string();
    site.read(move |store| Ok(store.get(&id)?)).await
}

fn to_run(id: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, format!("/runs/{id}"))]).into_response()
}

/// A no with reasons of its own becomes an error of the page.
fn refused(value: &Value) -> Result<()> {
    match value.get("error") {
        None => Ok(()),
        Some(_) => {
            let no: No = serde_json::from_value(value.clone()).map_err(|_| Error::Bug)?;
            Err(no.into())
        }
    }
}

fn answered(value: Value, status: StatusCode) -> Response {
    let status = match value.get("error") {
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
        None => status,
    };
    (status, Json(value)).into_response()
}

/// A body that says it is JSON: a form of another site cannot.
pub(super) fn json_body<'b>(headers: &HeaderMap, body: &'b [u8]) -> Result<&'b [u8]> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    match kind.is_some_and(|kind| kind.split(';').next().unwrap_or_default().trim() == "application/json") {
        true => Ok(body),
        false => Err(Error::Request {
            what: "the body is not said to be JSON".into(),
            hint: "send it with Content-Type: application/json".into(),
        }),
    }
}

fn optional<T: Default + for<'de> Deserialize<'de>>(headers: &HeaderMap, body: &[u8]) -> Result<T> {
    if body.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(json_body(headers, body)?).map_err(|error| Error::Request {
        what: format!("the body is not what is asked for: {error}"),
        hint: r#"{"kill": true} of a stop, {"memory": "2GB"} of a resume, or nothing"#.into(),
    })
}
