//! What every page has around it, and the pieces that several are made of.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use tidegate_memory::format_bytes;
use tidegate_runs::{Status, timestamp};

use crate::error::Problem;

/// Where a page belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Runs,
    Start,
    Machine,
    None,
}

/// A whole page, as it is answered.
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) place: Place,
    /// Scripts beside those of every page, by the names of their assets.
    pub(crate) scripts: &'static [&'static str],
    /// Where a script hears of what moves on it.
    pub(crate) events: Option<String>,
    pub(crate) body: Markup,
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let text = whole(&self).into_string();
        let kind = HeaderValue::from_static("text/html; charset=utf-8");
        ([(header::CONTENT_TYPE, kind)], text).into_response()
    }
}

/// What pages are dressed in, one sheet for each kind of them.
const SHEETS: [&str; 5] = ["uplot.css", "tidegate.css", "run.css", "log.css", "start.css"];

fn whole(page: &Page) -> Markup {
    let link = |place: Place, path: &str, name: &str| {
        html! { a href=(path) aria-current=[(page.place == place).then_some("page")] { (name) } }
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (page.title) " · Tidegate" }
                link rel="icon" href="/assets/icon.svg";
                @for sheet in SHEETS { link rel="stylesheet" href={ "/assets/" (sheet) }; }
                // What scripts put in the place of the server's is never seen to move.
                @for script in page.scripts { script src={ "/assets/" (script) } defer blocking="render" {} }
                script src="/assets/tidegate.js" defer blocking="render" {}
            }
            body {
                a.skip href="#main" { "Skip to the page" }
                header.top {
                    a.brand href="/" { (mark()) "Tidegate" }
                    nav aria-label="Pages" {
                        (link(Place::Runs, "/", "Runs"))
                        (link(Place::Start, "/start", "Start"))
                        (link(Place::Machine, "/machine", "Machine"))
                    }
                }
                main #main tabindex="-1" data-events=[&page.events] { (page.body) }
            }
        }
    }
}

/// A wave under its line.
fn mark() -> Markup {
    html! { (PreEscaped(include_str!("../assets/icon.svg"))) }
}

/// Answers that tell of a problem become pages, where pages were asked for.
pub(crate) async fn explain_errors(response: Response) -> Response {
    let Some(problem) = response.extensions().get::<Problem>().cloned() else {
        return response;
    };
    let title = match response.status() {
        StatusCode::NOT_FOUND => "Not here",
        StatusCode::FORBIDDEN => "Not allowed",
        status if status.is_server_error() => "Something went wrong",
        _ => "Not so",
    };
    let body = html! {
        section.card.problem {
            h1 { (problem.error) }
            @if let Some(hint) = &problem.hint { p.hint { (hint) } }
            p { a href="/" { "All runs" } }
        }
    };
    let page = Page {
        title: title.into(),
        place: Place::None,
        scripts: &[],
        events: None,
        body,
    };
    let (mut parts, _) = response.into_parts();
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    parts.headers.insert(header::CONTENT_TYPE, kind);
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(whole(&page).into_string()))
}

/// The state of a run as a badge: a colour, a shape, and its word.
pub(crate) fn badge(status: Status) -> Markup {
    html! { span class={ "badge " (status.as_str()) } { (status.as_str()) } }
}

/// Bytes as people read them; exactly, for those who point at them.
pub(crate) fn size(bytes: Option<u64>) -> Markup {
    match bytes {
        Some(bytes) => html! { span.number title={ (bytes) " bytes" } { (format_bytes(bytes)) } },
        None => html! { span.unavailable { "unavailable" } },
    }
}

/// A moment; a script makes it one of the reader's own clock.
pub(crate) fn moment(ms: i64) -> Markup {
    let text = timestamp(ms);
    let shown = text.get(..16).unwrap_or(&text).replace('T', " ");
    html! { time datetime=(text) { (shown) " UTC" } }
}
