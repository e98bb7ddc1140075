//! Who may ask, and what a browser may make of the answer.
//!
//! Without a token only this machine may ask: the request must name it (`Host`), so that no site of the outside can point a
//! name of its own at it and read along. With a token, every request must bring it: once as `?token=` of the address that
//! was printed, from then on as a cookie, or as `Authorization: Bearer`. Nothing that changes anything is taken from a page
//! of another origin, and what only reads is work too: another site may lead here, but not ask behind a reader's back.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::{Error, Result};
use crate::query::Query;
use crate::site::Site;

/// Cookies are of a host, whatever the port: the name tells two pages of one host apart.
const COOKIE: &str = "tidegate_token";

/// Nothing is loaded from elsewhere, nothing runs that is not ours, and nobody puts the page into theirs.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

pub(crate) async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let admitted =
        admit(&site, &request).and_then(|admitted| is_text(request.uri().path()).map(|()| admitted));
    let mut response = match admitted {
        Ok(Admitted::Yes) => next.run(request).await,
        Ok(Admitted::ByAddress(response)) => response,
        Err(error) => crate::assets::told(error, request.uri()).await,
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

enum Admitted {
    Yes,
    /// The token came with the address: it becomes a cookie, and the address loses it.
    ByAddress(Response),
}

fn admit(site: &Site, request: &Request) -> Result<Admitted> {
    let headers = request.headers();
    let host = host(request);
    match *request.method() {
        Method::GET | Method::HEAD => not_behind_the_back(headers)?,
        _ => same_origin(headers, host)?,
    }
    let Some(token) = &site.options.token else {
        return match host.is_some_and(is_this_machine) {
            true => Ok(Admitted::Yes),
            false => Err(Error::Refused {
                what: "this page is for the machine that it runs on".into(),
                hint: "open it by the address that tidegate ui printed, or serve it to others with --address"
                    .into(),
            }),
        };
    };
    let name = cookie_name(host);
    if [bearer(headers), cookie(headers, &name)]
        .into_iter()
        .flatten()
        .any(|given| same(given, token))
    {
        return Ok(Admitted::Yes);
    }
    let query = Query::of(request.uri());
    match query.get("token") {
        Some(given) if same(given, token) && request.method() == Method::GET => {
            Ok(Admitted::ByAddress(remember(request.uri(), &query, &name, token)))
        }
        _ => Err(Error::Refused {
            what: "this page asks for its token".into(),
            hint: "open the address that tidegate ui printed, with the token in it; programs send it as \
                   Authorization: Bearer TOKEN"
                .into(),
        }),
    }
}

/// Sends the browser to the same address without the token, which it will bring as a cookie.
fn remember(uri: &Uri, query: &Query, name: &str, token: &str) -> Response {
    let rest = query.without("token");
    // A path of two slashes would name another host; browsers take a backslash for one.
    let path = uri.path().trim_start_matches(['/', '\\']);
    let to = match rest.is_empty() {
        true => format!("/{path}"),
        false => format!("/{path}?{rest}"),
    };
    let cookie = format!("{name}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age=31536000");
    let headers = [(header::LOCATION, to), (header::SET_COOKIE, cookie)];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// What stands in a path becomes text everywhere.
fn is_text(path: &str) -> Result<()> {
    let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        match (byte, digit(ahead.next()), digit(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = ahead;
            }
            _ => bytes.push(byte),
        }
    }
    match std::str::from_utf8(&bytes) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::NotFound {
            what: "the address is no text".into(),
            hint: "the runs are at /".into(),
        }),
    }
}

/// A link of another site is followed, as a page of its own; what it would load or fetch from here is not.
fn not_behind_the_back(headers: &HeaderMap) -> Result<()> {
    let is = |name, word: &str| {
        headers
            .get(HeaderName::from_static(name))
            .is_some_and(|said| said == word)
    };
    let elsewhere = is("sec-fetch-site", "cross-site") || is("sec-fetch-site", "same-site");
    match elsewhere && !(is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document")) {
        false => Ok(()),
        true => Err(by_another_site()),
    }
}

/// A browser names the origin of whatever sends something; programs name none.
fn same_origin(headers: &HeaderMap, host: Option<&str>) -> Result<()> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let elsewhere = match (
        text(HeaderName::from_static("sec-fetch-site")),
        text(header::ORIGIN),
    ) {
        (Some(site), _) if site != "same-origin" && site != "none" => true,
        (_, Some(origin)) => origin.split_once("://").map(|(_, rest)| rest) != host,
        _ => false,
    };
    match elsewhere {
        false => Ok(()),
        true => Err(by_another_site()),
    }
}

fn by_another_site() -> Error {
    Error::Refused {
        what: "another site asked for this".into(),
        hint: "nothing was changed; use the page itself".into(),
    }
}

fn host(request: &Request) -> Option<&str> {
    match request.headers().get(header::HOST) {
        Some(host) => host.to_str().ok(),
        None => request.uri().authority().map(|authority| authority.as_str()),
    }
}

/// The name or number of a host, and the port.
fn parts(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (name, Some(port)),
        _ => (host, None),
    }
}

/// `localhost:8433`, `127.0.0.1`, `[::1]:8433`.
fn is_this_machine(host: &str) -> bool {
    let (name, _) = parts(host);
    let number = name.trim_start_matches('[').trim_end_matches(']').parse();
    name == "localhost" || number.is_ok_and(|address: IpAddr| address.is_loopback())
}

fn cookie_name(host: Option<&str>) -> String {
    match host.and_then(|host| parts(host).1) {
        Some(port) => format!("{COOKIE}_{port}"),
        None => COOKIE.into(),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .strip_prefix("Bearer ")
}

fn cookie<'h>(headers: &'h HeaderMap, wanted: &str) -> Option<&'h str> {
    let cookies = headers.get_all(header::COOKIE).iter();
    cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == wanted).then_some(value))
}

/// Takes as long whatever is wrong.
fn same(given: &str, token: &str) -> bool {
    let differs = given
        .bytes()
        .zip(token.bytes())
        .fold(0, |differs, (a, b)| differs | (a ^ b));
    given.len() == token.len() && differs == 0
}
