//! The page as the real program serves it, on a socket: its API against what `openapi.json` says of it, and its stories in
//! a real browser.

mod api;
mod browser;
mod http;
mod questions;
mod routes;
mod scene;
mod schema;
