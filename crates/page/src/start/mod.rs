//! A training from the page: choose data, say what is to be predicted, see the plan for a budget, start.
//!
//! What is asked for stands in the address until it is started, so that every step can be gone back to and needs no script.
//! Looking, planning and starting are done by the program.

mod act;
mod asked;
mod files;
mod form;
mod planned;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use maud::Markup;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::html::Page;
use crate::query::Query;
use crate::site::Site;
use asked::Asked;
use form::Shown;
use planned::{Answer, Looked, No, Planned};

/// A look at a sample is a matter of a moment; a plan may read all of the data once.
const LOOK: Duration = Duration::from_secs(60);
const PLAN: Duration = Duration::from_secs(900);

pub(crate) fn pages() -> Router<Arc<Site>> {
    Router::new()
        .route("/start", get(page).post(act::start_by_form))
        .route("/start/plan", get(plan_alone))
        .route("/runs/{id}/stop", post(act::stop_by_form))
        .route("/runs/{id}/resume", post(act::resume_by_form))
}

pub(crate) fn api() -> Router<Arc<Site>> {
    Router::new()
        .route("/api/files", get(files_as_json))
        .route("/api/plan", post(plan_as_json))
        .route("/api/runs", post(act::start_by_json))
        .route("/api/runs/{id}/stop", post(act::stop_by_json))
        .route("/api/runs/{id}/resume", post(act::resume_by_json))
}

/// Without data, the folders to choose them from; with them, what can be said of a training on them.
async fn page(State(site): State<Arc<Site>>, uri: Uri) -> Result<Response> {
    let mut query = Query::of(&uri);
    if query.get("data").is_none() {
        return choose(&site, &query).await;
    }
    let wants_plan = query.get("plan").is_some() || query.get("least").is_some();
    if let Some(least) = query.get("least") {
        query = Query::parse(query.with("memory", least).as_bytes());
    }
    let asked = Asked::of(&query)?;
    let shown = filled(&site, asked, wants_plan, None).await?;
    Ok(form::page(&shown).into_response())
}

/// A folder to choose from; the path of a file is one that is chosen.
async fn choose(site: &Arc<Site>, query: &Query) -> Result<Response> {
    let roots = site.options.roots.clone();
    let asked = match (query.get("path"), roots.as_slice()) {
        (Some(path), _) => path.to_string(),
        (None, [root]) => root.display().to_string(),
        (None, _) => return Ok(form::roots_page(&roots).into_response()),
    };
    let options = site.options.clone();
    let found = site
        .read(move |_| match files::allowed(&options, &asked)?.is_dir() {
            true => files::folder(&options, &asked).map(Some),
            false => Ok(None),
        })
        .await?;
    Ok(match found {
        Some(folder) => form::folder_page(&roots, &folder).into_response(),
        None => {
            let data = query.get("path").unwrap_or_default();
            let to = format!("/start?{}", Query::default().with("data", data));
            (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response()
        }
    })
}

/// The form as it is filled in, with what is known of the data, and the plan where it is wanted.
async fn filled(site: &Arc<Site>, asked: Asked, wants_plan: bool, problem: Option<No>) -> Result<Shown> {
    let options = site.options.clone();
    let (data, machine) = {
        let asked = asked.clone();
        site.read(move |_| Ok((asked.data(&options)?, form::Machine::now())))
            .await?
    };
    let (looked, unreadable) = match look(site, &data).await? {
        Answer::Yes(looked) => (*looked, None),
        Answer::No(no) => (Looked::default(), Some(no)),
    };
    let is_ready = looked.kind != "table" || asked.target.is_some();
    let plan = match wants_plan && is_ready && problem.is_none() && unreadable.is_none() {
        true => Some(answer(site, &asked).await),
        false => None,
    };
    Ok(Shown {
        asked,
        data,
        looked,
        plan,
        problem: problem.or(unreadable),
        machine,
    })
}

async fn look(site: &Site, data: &Path) -> Result<Answer<Looked>> {
    let words = Asked::default().words("plan", &["--look"], data, &site.options.roots)?;
    Answer::of(site.ask(&words, LOOK).await?)
}

/// What the program plans, as it says it.
async fn plan(site: &Arc<Site>, asked: &Asked) -> Result<Value> {
    let (asked, options) = (asked.clone(), site.options.clone());
    let words = site
        .read(move |_| asked.words("plan", &[], &asked.data(&options)?, &options.roots))
        .await?;
    site.ask(&words, PLAN).await
}

/// The plan, or why there is none, in any case something to show.
async fn answer(site: &Arc<Site>, asked: &Asked) -> Answer<Planned> {
    let answer = match plan(site, asked).await {
        Ok(value) => Answer::of(value),
        Err(error) => Err(error),
    };
    answer.unwrap_or_else(|error| Answer::No(No::of(&error)))
}

/// The plan without the page around it, for a script that asks again and again.
async fn plan_alone(State(site): State<Arc<Site>>, uri: Uri) -> Response {
    let answer = match Asked::of(&Query::of(&uri)) {
        Ok(asked) => answer(&site, &asked).await,
        Err(error) => Answer::No(No::of(&error)),
    };
    fragment(form::plan(&answer))
}

/// A piece of a page.
fn fragment(markup: Markup) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (kind, markup.into_string()).into_response()
}

async fn files_as_json(State(site): State<Arc<Site>>, uri: Uri) -> Result<Json<Value>> {
    let Some(path) = Query::of(&uri).get("path").map(String::from) else {
        return Ok(Json(json!({ "roots": site.options.roots })));
    };
    let options = site.options.clone();
    let folder = site.read(move |_| files::folder(&options, &path)).await?;
    Ok(Json(serde_json::to_value(folder).map_err(|_| Error::Bug)?))
}

/// A no is an answer, too: with status 422, and the least budget that would do.
async fn plan_as_json(State(site): State<Arc<Site>>, headers: HeaderMap, body: Bytes) -> Result<Response> {
    let asked = Asked::of_json(act::json_body(&headers, &body)?)?;
    let value = plan(&site, &asked).await?;
    let status = match value.get("error") {
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
        None => StatusCode::OK,
    };
    Ok((status, Json(value)).into_response())
}

impl No {
    fn of(error: &Error) -> No {
        No {
            error: error.to_string(),
            hint: error.hint(),
            least: None,
        }
    }
}

impl IntoResponse for Shown {
    fn into_response(self) -> Response {
        let page: Page = form::page(&self);
        (StatusCode::UNPROCESSABLE_ENTITY, page).into_response()
    }
}
