//! Sheets, scripts and the icon: what they are taken for, kept for, and what else is there.

use axum::http::Method;

use crate::site::Home;

#[tokio::test]
async fn assets_have_their_types_and_are_asked_for_again() {
    let home = Home::new();
    for (name, kind) in [
        ("tidegate.css", "text/css; charset=utf-8"),
        ("run.css", "text/css; charset=utf-8"),
        ("log.css", "text/css; charset=utf-8"),
        ("start.css", "text/css; charset=utf-8"),
        ("uplot.css", "text/css; charset=utf-8"),
        ("tidegate.js", "text/javascript; charset=utf-8"),
        ("charts.js", "text/javascript; charset=utf-8"),
        ("log.js", "text/javascript; charset=utf-8"),
        ("start.js", "text/javascript; charset=utf-8"),
        ("uplot.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ] {
        let path = format!("/assets/{name}");
        let asset = home.get(&path).await.is(200);
        assert_eq!(asset.header("content-type"), Some(kind), "{name}");
        assert_eq!(asset.header("cache-control"), Some("no-cache"), "{name}");
        assert_eq!(asset.header("x-content-type-options"), Some("nosniff"), "{name}");
        let tag = asset.header("etag").expect("a tag").to_string();
        let seen = [("if-none-match", tag.as_str())];
        let again = home.ask(Method::GET, &path, &seen, "").await.is(304);
        assert!(again.body.is_empty(), "{name}");
        assert_eq!(again.header("etag"), Some(tag.as_str()), "{name}");
        let older = [("if-none-match", "\"another\"")];
        let fresh = home.ask(Method::GET, &path, &older, "").await.is(200);
        assert_eq!(fresh.body, asset.body, "{name}");
    }
}

#[tokio::test]
async fn nothing_is_loaded_from_elsewhere() {
    let home = Home::with_all_states();
    let page = home.get("/").await.text();
    let addresses = page
        .split(['"', ' ', '<', '>', '='])
        .filter(|word| word.contains("//"));
    // The name of a language, which nobody loads.
    let loaded: Vec<&str> = addresses
        .filter(|word| *word != "http://www.w3.org/2000/svg")
        .collect();
    assert_eq!(loaded, Vec::<&str>::new());
    for name in ["tidegate.css", "run.css", "log.css", "start.css", "uplot.css"] {
        let sheet = home.get(&format!("/assets/{name}")).await.text();
        for elsewhere in ["@import", "http://", "https://", "url(//"] {
            assert!(!sheet.contains(elsewhere), "{name}: {elsewhere}");
        }
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_on_a_page() {
    let home = Home::new();
    for path in [
        "/assets/nothing.js",
        "/assets/..%2fCargo.toml",
        "/assets/",
        "/nowhere",
        "/runs/",
        "/api",
        "//etc/passwd",
    ] {
        home.get(path).await.is(404).explains("there is no such page");
    }
    let told = home.get("/api/nowhere").await.is(404);
    assert_eq!(told.header("content-type"), Some("application/json"));
    told.explains("the API has no such path");
}
