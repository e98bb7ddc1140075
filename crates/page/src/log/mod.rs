//! The log of a run: a window of some hundred lines at a time, made on the server, whatever the file holds.
//!
//! A window is asked for by a place: the start, the end, a byte, a moment, the first error, the end of the run. Its rows come
//! as a page, as a piece of one for a script that scrolls on (`/lines`), and as JSON; the whole file can be downloaded. A
//! search goes on in pieces, each of which is over in a moment: its answer says where the next one begins.

mod download;
mod rows;
mod show;

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use maud::Markup;
use serde::Serialize;
use tidegate_runs::{
    Error as RunsError, LogHits, LogLine, Needle, Run, Status, log_after, log_at_time, log_before, log_search,
};

use crate::error::{Error, Result};
use crate::query::Query;
use crate::site::Site;

/// Lines of a window, if nothing else is said, and at the most.
const SHOWN: usize = 300;
const MOST: usize = 1000;
/// Bytes of the lines of a window: markup takes a multiple of them at the worst.
const MOST_TEXT: usize = 160 << 10;
/// Hits of a piece of a search, and the bytes that it goes through: a tenth of a second on one core. To tell what looks like
/// an error takes longer than to find a word.
const HITS: usize = 50;
const MOST_HITS: usize = 500;
const PIECE: u64 = 64 << 20;
const PIECE_OF_ERRORS: u64 = 64 << 20;

pub(crate) fn pages() -> Router<Arc<Site>> {
    Router::new()
        .route("/runs/{id}/log", get(page))
        .route("/runs/{id}/log/lines", get(lines))
        .route("/runs/{id}/log/hits", get(hits))
        .route("/runs/{id}/log.txt", get(download::download))
}

pub(crate) fn api() -> Router<Arc<Site>> {
    Router::new()
        .route("/api/runs/{id}/log", get(window_as_json))
        .route("/api/runs/{id}/log/search", get(search_as_json))
}

/// A place in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    End,
    /// The first error from a byte on.
    Error(u64),
    /// The last line before the run ended.
    Death,
    /// Around a line, by one of its bytes.
    Offset(u64),
    /// Around a moment, in milliseconds since 1970.
    Time(i64),
    /// The lines behind a window that was shown, and before it.
    After(u64),
    Before(u64),
}

impl Place {
    /// The place that is asked for, if one is.
    fn of(query: &Query) -> Result<Option<Place>> {
        let from = query.number("from")?.unwrap_or(0);
        let known = |text: &str| match text {
            "start" => Some(Place::Start),
            "end" => Some(Place::End),
            "error" => Some(Place::Error(from)),
            "death" => Some(Place::Death),
            _ => None,
        };
        let at = query.word("at", known, "start, end, error, death")?;
        let offset = query.number("offset")?.map(Place::Offset);
        let time = query.number("time")?.map(Place::Time);
        let after = query.number("after")?.map(Place::After);
        let before = query.number("before")?.map(Place::Before);
        Ok(at.or(offset).or(time).or(after).or(before))
    }

    /// Where somebody wants to be who says nothing: where the run died, or what it said last.
    fn usual(run: &Run) -> Place {
        match run.status {
            Status::Failed => Place::Death,
            _ => Place::End,
        }
    }
}

/// A window into a log.
#[derive(Debug, Clone, Default, Serialize)]
struct Window {
    lines: Vec<LogLine>,
    /// The next window begins at `end`, the one before ends at `start`.
    start: u64,
    end: u64,
    /// Of the whole file.
    length: u64,
    /// The line that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    here: Option<u64>,
    /// The last line before the end of a run that did not come to a good one.
    #[serde(skip_serializing_if = "Option::is_none")]
    death: Option<u64>,
    /// Where to go on looking for an error, of which there is none so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

impl Window {
    fn open(path: &FilePath, run: &Run, place: Place, n: usize) -> Result<Window> {
        let death = death(path, run)?;
        let mut window = match place {
            Place::Start => Window::after(path, 0, n, MOST_TEXT)?,
            Place::After(offset) => Window::after(path, offset, n, MOST_TEXT)?,
            Place::End => Window::before(path, u64::MAX, n, MOST_TEXT)?,
            Place::Before(offset) => Window::before(path, offset, n, MOST_TEXT)?,
            Place::Offset(offset) => {
                let line = log_before(path, offset.saturating_add(1), 1)?.end;
                Window::around(path, line, n)?
            }
            Place::Time(time) => {
                let line = log_at_time(path, time)?;
                // Behind the last line there is nothing to point at.
                let last = log_before(path, u64::MAX, 1)?;
                let line = line.min(last.start);
                Window::around(path, line, n)?
            }
            Place::Death => match death {
                Some(line) => Window::around(path, line, n)?,
                None => Window::before(path, u64::MAX, n, MOST_TEXT)?,
            },
            Place::Error(from) => {
                let hits = log_search(path, &Needle::Errors, from, 1, PIECE_OF_ERRORS)?;
                match hits.lines.first() {
                    Some(line) => Window::around(path, line.offset, n)?,
                    None => Window {
                        next: hits.next,
                        ..Window::after(path, hits.searched_to.min(from), 0, 0)?
                    },
                }
            }
        };
        window.death = death;
        Ok(window)
    }

    fn after(path: &FilePath, offset: u64, n: usize, most: usize) -> Result<Window> {
        let mut found = log_after(path, offset, n)?;
        let kept = fit(found.lines.iter(), most);
        let end = found.lines.get(kept).map_or(found.end, |line| line.offset);
        found.lines.truncate(kept);
        Ok(Window {
            lines: found.lines,
            start: found.start,
            end,
            length: found.length,
            ..Window::default()
        })
    }

    fn before(path: &FilePath, offset: u64, n: usize, most: usize) -> Result<Window> {
        let mut found = log_before(path, offset, n)?;
        let kept = fit(found.lines.iter().rev(), most);
        found.lines.drain(..found.lines.len() - kept);
        Ok(Window {
            start: found.lines.first().map_or(found.start, |line| line.offset),
            lines: found.lines,
            end: found.end,
            length: found.length,
            ..Window::default()
        })
    }

    /// A third of it before the line that begins here.
    fn around(path: &FilePath, line: u64, n: usize) -> Result<Window> {
        let before = Window::before(path, line, n / 3, MOST_TEXT / 3)?;
        let mut window = Window::after(path, line, n - n / 3, MOST_TEXT / 3 * 2)?;
        window.lines.splice(0..0, before.lines);
        Ok(Window {
            start: before.start,
            here: Some(line),
            ..window
        })
    }
}

/// As many lines as fit, and one in any case.
fn fit<'l>(lines: impl Iterator<Item = &'l LogLine>, most: usize) -> usize {
    let mut bytes = 0;
    let fitting = lines.take_while(|line| {
        let first = bytes == 0;
        bytes += line.text.len() + 1;
        first || bytes <= most
    });
    fitting.count()
}

/// The last line that came before a run ended, unless it ended well.
fn death(path: &FilePath, run: &Run) -> Result<Option<u64>> {
    let (Status::Failed | Status::Stopped, Some(ended)) = (run.status, run.ended_ms) else {
        return Ok(None);
    };
    let behind = log_at_time(path, ended.saturating_add(1))?;
    let last = log_before(path, behind, 1)?;
    Ok(last.lines.first().map(|line| line.offset))
}

/// A search for words, from a byte on.
#[derive(Debug, Clone, Serialize)]
struct Search {
    #[serde(flatten)]
    hits: LogHits,
    length: u64,
}

fn search(path: &FilePath, what: &Needle, from: u64, most_hits: usize) -> Result<Search> {
    let piece = match what {
        Needle::Errors => PIECE_OF_ERRORS,
        Needle::Text(_) => PIECE,
    };
    let hits = log_search(path, what, from, most_hits, piece)?;
    let length = log_after(path, u64::MAX, 0)?.length;
    Ok(Search { hits, length })
}

/// Of a run without a log there is nothing to show, and nothing wrong.
fn recorded<T: Default>(found: Result<T>) -> Result<T> {
    match found {
        Err(Error::Runs(RunsError::NotRecorded { .. })) => Ok(T::default()),
        found => found,
    }
}

async fn page(State(site): State<Arc<Site>>, Path(id): Path<String>, uri: Uri) -> Result<Response> {
    let query = Query::of(&uri);
    let find = query.get("find").map(String::from);
    let asked = Place::of(&query)?;
    let from = query.number("from")?.unwrap_or(0);
    if asked.is_none() && find.is_none() {
        // The address names the line, so that a browser without scripts goes there, too.
        let run = site.read(move |store| Ok(store.find(&id)?)).await?;
        let at = match Place::usual(&run) {
            Place::Death => "death#here",
            _ => "end#end",
        };
        let to = format!("/runs/{}/log?at={at}", run.id);
        return Ok((StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response());
    }
    let shown = site
        .read(move |store| {
            let run = store.find(&id)?;
            let path = store.run_dir(&run.id).log();
            let what = find.clone().map(Needle::Text);
            let found = what.map(|what| recorded(search(&path, &what, from, HITS).map(Some)));
            let found = found.transpose()?.flatten();
            let first = found.as_ref().and_then(|found| found.hits.lines.first());
            let place = asked.or(first.map(|line| Place::Offset(line.offset)));
            let window = Window::open(&path, &run, place.unwrap_or(Place::usual(&run)), SHOWN);
            Ok(show::Shown {
                window: recorded(window)?,
                find,
                from,
                found,
                run,
                place: asked,
            })
        })
        .await?;
    Ok(show::page(&shown).into_response())
}

/// Rows alone, for a script.
async fn lines(State(site): State<Arc<Site>>, Path(id): Path<String>, uri: Uri) -> Result<Response> {
    let query = Query::of(&uri);
    let find = query.get("find").map(String::from);
    let (place, limit) = (Place::of(&query)?, limit(&query)?);
    let rows = site
        .read(move |store| {
            let run = store.get(&id)?;
            let path = store.run_dir(&run.id).log();
            let window = Window::open(&path, &run, place.unwrap_or(Place::usual(&run)), limit);
            Ok(rows::list(&run, &recorded(window)?, find.as_deref()))
        })
        .await?;
    Ok(piece(rows))
}

/// Hits alone, for a script that goes on by itself.
async fn hits(State(site): State<Arc<Site>>, Path(id): Path<String>, uri: Uri) -> Result<Response> {
    let query = Query::of(&uri);
    let (find, from) = (
        query.get("find").unwrap_or_default().to_string(),
        query.number("from")?.unwrap_or(0),
    );
    let list = site
        .read(move |store| {
            let run = store.get(&id)?;
            let what = Needle::Text(find.clone());
            let found = search(&store.run_dir(&run.id).log(), &what, from, HITS)?;
            Ok(show::hit_list(&found, &find, from))
        })
        .await?;
    Ok(piece(list))
}

/// A piece of a page.
fn piece(markup: Markup) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (kind, markup.into_string()).into_response()
}

async fn window_as_json(
    State(site): State<Arc<Site>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<Window>> {
    let query = Query::of(&uri);
    let (place, limit) = (Place::of(&query)?, limit(&query)?);
    let window = site
        .read(move |store| {
            let run = store.get(&id)?;
            let path = store.run_dir(&run.id).log();
            recorded(Window::open(
                &path,
                &run,
                place.unwrap_or(Place::usual(&run)),
                limit,
            ))
        })
        .await?;
    Ok(Json(window))
}

async fn search_as_json(
    State(site): State<Arc<Site>>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<Search>> {
    let query = Query::of(&uri);
    let what = match (query.get("find"), query.get("errors")) {
        (Some(text), _) => Needle::Text(text.into()),
        (None, Some(_)) => Needle::Errors,
        (None, None) => {
            return Err(Error::Request {
                what: "there is nothing to look for".into(),
                hint: "say find=WORDS, or errors=1".into(),
            });
        }
    };
    let from = query.number("from")?.unwrap_or(0);
    let most = query.number("limit")?.unwrap_or(HITS).clamp(1, MOST_HITS);
    let found = site
        .read(move |store| {
            let run = store.get(&id)?;
            search(&store.run_dir(&run.id).log(), &what, from, most)
        })
        .await?;
    Ok(Json(found))
}

fn limit(query: &Query) -> Result<usize> {
    Ok(query.number("limit")?.unwrap_or(SHOWN).clamp(1, MOST))
}
