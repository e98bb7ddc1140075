//! The web page over the runs of a home: what runs, why it died, and what would have saved it.
//!
//! [`app`] is the whole of it, as routes that a test can ask without a socket; [`serve`] puts it on one. Pages are made on
//! the server and can be read without JavaScript; scripts only move what is there. All that is shown comes out of the run
//! store ([`tidegate_runs`]); what takes a reader of data or a judge is asked of the program itself with `--json`
//! ([`Options::program`]), which is also how trainings are planned, started and taken up. So this crate needs no other,
//! and what the page can do the command line can.
//!
//! Who may ask: only this machine, unless the page was given a token. See `guard`.

pub mod ansi;
mod answers;
mod ask;
mod assets;
mod chart;
mod compare;
mod error;
mod events;
mod guard;
mod html;
mod log;
mod machine;
mod orphans;
mod plans;
mod query;
mod run;
mod runs;
mod serve;
mod site;
mod start;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn_with_state, map_response};
use axum::routing::get;

pub use error::{Error, Result};
pub use serve::{Listening, listen, new_token, serve};
pub use site::{Options, Site};

/// Every route, behind the guard.
pub fn app(site: Arc<Site>) -> Router {
    let pages = Router::new()
        .route("/", get(runs::page))
        .merge(run::pages())
        .merge(compare::pages())
        .merge(log::pages())
        .merge(machine::pages())
        .merge(start::pages())
        .layer(map_response(html::explain_errors));
    let api = Router::new()
        .route("/api/openapi.json", get(assets::description))
        .route("/api/runs", get(runs::list))
        .route("/api/events", get(events::of_all))
        .route("/api/runs/{id}/events", get(events::of_one))
        .merge(run::api())
        .merge(compare::api())
        .merge(log::api())
        .merge(machine::api())
        .merge(start::api());
    pages
        .merge(api)
        .route("/assets/{name}", get(assets::asset))
        .fallback(assets::nothing)
        .method_not_allowed_fallback(assets::not_so)
        .layer(from_fn_with_state(site.clone(), guard::guard))
        .with_state(site)
}
