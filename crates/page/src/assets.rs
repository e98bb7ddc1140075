//! What the page is dressed in and moved by, inside the program.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::extract::Path;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use crate::error::Error;

struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Each in a file of its own. uPlot draws curves (MIT, its licence beside it).
const ASSETS: [Asset; 11] = [
    Asset {
        name: "tidegate.css",
        kind: CSS,
        bytes: include_bytes!("../assets/tidegate.css"),
    },
    Asset {
        name: "run.css",
        kind: CSS,
        bytes: include_bytes!("../assets/run.css"),
    },
    Asset {
        name: "log.css",
        kind: CSS,
        bytes: include_bytes!("../assets/log.css"),
    },
    Asset {
        name: "start.css",
        kind: CSS,
        bytes: include_bytes!("../assets/start.css"),
    },
    Asset {
        name: "uplot.css",
        kind: CSS,
        bytes: include_bytes!("../assets/uplot/uPlot.min.css"),
    },
    Asset {
        name: "tidegate.js",
        kind: SCRIPT,
        bytes: include_bytes!("../assets/tidegate.js"),
    },
    Asset {
        name: "charts.js",
        kind: SCRIPT,
        bytes: include_bytes!("../assets/charts.js"),
    },
    Asset {
        name: "log.js",
        kind: SCRIPT,
        bytes: include_bytes!("../assets/log.js"),
    },
    Asset {
        name: "start.js",
        kind: SCRIPT,
        bytes: include_bytes!("../assets/start.js"),
    },
    Asset {
        name: "uplot.js",
        kind: SCRIPT,
        bytes: include_bytes!("../assets/uplot/uPlot.iife.min.js"),
    },
    Asset {
        name: "icon.svg",
        kind: "image/svg+xml",
        bytes: include_bytes!("../assets/icon.svg"),
    },
];

/// A browser keeps them, and asks whether they are still the same.
pub(crate) async fn asset(Path(name): Path<String>, uri: Uri, headers: HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return nothing(uri).await;
    };
    let mut hasher = DefaultHasher::new();
    asset.bytes.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let is_known = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|seen| *seen == tag);
    let cached = [(header::ETAG, tag.as_str()), (header::CACHE_CONTROL, "no-cache")];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, cached).into_response(),
        false => (cached, [(header::CONTENT_TYPE, asset.kind)], asset.bytes).into_response(),
    }
}

/// What programs can ask, in words that they read.
pub(crate) async fn description() -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, include_bytes!("../assets/openapi.json")).into_response()
}

/// Where there is nothing.
pub(crate) async fn nothing(uri: Uri) -> Response {
    let (what, hint) = match is_for_programs(&uri) {
        true => (
            "the API has no such path",
            "/api/openapi.json describes those that there are",
        ),
        false => ("there is no such page", "the runs are at /"),
    };
    let error = Error::NotFound {
        what: what.into(),
        hint: hint.into(),
    };
    told(error, &uri).await
}

/// Where there is something that is asked for in another way.
pub(crate) async fn not_so(method: Method, uri: Uri) -> Response {
    told(Error::Method { method }, &uri).await
}

/// A problem as JSON or as a page, by who asks.
pub(crate) async fn told(error: Error, uri: &Uri) -> Response {
    let answer = error.into_response();
    match is_for_programs(uri) {
        true => answer,
        false => crate::html::explain_errors(answer).await,
    }
}

fn is_for_programs(uri: &Uri) -> bool {
    uri.path().starts_with("/api/")
}
