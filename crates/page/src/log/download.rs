//! The whole log as a file, in pieces of fixed size.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use tokio::task::spawn_blocking;

use crate::error::{Error, Result};
use crate::site::Site;

const PIECE: u64 = 128 << 10;

/// As much as there is when it is asked for; what comes later is left for later.
pub(super) async fn download(State(site): State<Arc<Site>>, Path(id): Path<String>) -> Result<Response> {
    let (id, file, length) = site
        .read(move |store| {
            let run = store.get(&id)?;
            let path = store.run_dir(&run.id).log();
            let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
            match opened {
                Ok((length, file)) => Ok((run.id, file, length)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::NotFound {
                    what: format!("run {} has no log", run.label()),
                    hint: "it printed nothing, or has not begun".into(),
                }),
                Err(source) => Err(Error::Io {
                    action: "read",
                    path,
                    source,
                }),
            }
        })
        .await?;
    let pieces = unfold((file, length), |(mut file, left)| async move {
        if left == 0 {
            return None;
        }
        let read = spawn_blocking(move || {
            let mut piece = vec![0; left.min(PIECE) as usize];
            let n = file.read(&mut piece)?;
            piece.truncate(n);
            Ok((file, piece))
        });
        match read.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok((_, piece)) if piece.is_empty() => None,
            Ok((file, piece)) => {
                let left = left - piece.len() as u64;
                Some((Ok(Bytes::from(piece)), (file, left)))
            }
            // What was promised cannot be sent: the connection ends, and the browser says so.
            Err(error) => Some((Err(error), (File::open("/dev/null").ok()?, 0))),
        }
    });
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_string()),
        (header::CONTENT_LENGTH, length.to_string()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"tidegate-{id}.txt\""),
        ),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}
