//! What can go wrong with a request, what to do about it, and the status it stands for.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Runs(#[from] tidegate_runs::Error),
    /// What was asked for is not there.
    #[error("{what}")]
    NotFound { what: String, hint: String },
    /// The request makes no sense.
    #[error("{what}")]
    Request { what: String, hint: String },
    /// The path is right and the way to ask is not.
    #[error("{method} is not how this is asked for")]
    Method { method: Method },
    /// Whoever asks may not.
    #[error("{what}")]
    Refused { what: String, hint: String },
    /// The program was asked and said no, in its own words.
    #[error("{message}")]
    Asked { message: String, hint: Option<String> },
    #[error("{}: it cannot be {action}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{address} cannot be listened on")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("a request was not answered: a bug in the page")]
    Bug,
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Runs(error) => error.hint(),
            Error::NotFound { hint, .. } | Error::Request { hint, .. } | Error::Refused { hint, .. } => {
                Some(hint.clone())
            }
            Error::Method { .. } => {
                Some("read it with GET, change it with POST: /api/openapi.json says what is there".into())
            }
            Error::Asked { hint, .. } => hint.clone(),
            Error::Io { .. } => None,
            Error::Listen { .. } => Some("give another one with --port".into()),
            Error::Bug => Some("please report it".into()),
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Error::Runs(tidegate_runs::Error::NotFound { .. } | tidegate_runs::Error::NotRecorded { .. })
            | Error::NotFound { .. } => StatusCode::NOT_FOUND,
            Error::Runs(tidegate_runs::Error::Ambiguous { .. }) | Error::Request { .. } => {
                StatusCode::BAD_REQUEST
            }
            Error::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Error::Refused { .. } => StatusCode::FORBIDDEN,
            Error::Asked { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Error::Runs(_) | Error::Io { .. } | Error::Listen { .. } | Error::Bug => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }
}

/// What is told of an error: the body of an API's answer, and what a page is made of.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Problem {
    pub(crate) error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

/// JSON, with the problem beside it for those who make a page of it.
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let error = match std::error::Error::source(&self) {
            Some(source) => format!("{self}: {source}"),
            None => self.to_string(),
        };
        let problem = Problem {
            error,
            hint: self.hint(),
        };
        let mut response = (self.status(), Json(problem.clone())).into_response();
        response.extensions_mut().insert(problem);
        response
    }
}
