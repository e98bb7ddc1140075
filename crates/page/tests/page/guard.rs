//! Who may ask: hosts, origins, tokens; and what every answer tells the browser.

use axum::http::Method;

use crate::site::{HOST, Home};

const TOKEN: &str = "correct-horse";

/// What the browser is told, whatever is answered.
fn is_told(answer: &crate::site::Answer, what: &str) {
    let policy = answer.header("content-security-policy").unwrap_or_default();
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(part), "{what}: {part} in {policy:?}");
    }
    assert!(!policy.contains("unsafe"), "{what}: {policy}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{what}: {name}");
    }
    assert!(answer.header("cache-control").is_some(), "{what}");
}

#[tokio::test]
async fn only_this_machine_may_ask_where_there_is_no_token() {
    let home = Home::with_all_states();
    for host in [
        HOST,
        "127.0.0.1",
        "localhost",
        "localhost:8433",
        "[::1]:8433",
        "[::1]",
    ] {
        home.ask(Method::GET, "/", &[("host", host)], "").await.is(200);
    }
    // A name of the outside that leads to this machine, and what looks like it.
    for host in [
        "evil.example",
        "evil.example:8433",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8433",
        "localhost:8433.evil.example",
        "evil.example:localhost",
        "127.0.0.1:8433@evil.example",
        "192.168.0.7:8433",
        "0.0.0.0",
        "",
    ] {
        for path in ["/", "/api/runs", "/api/events", "/assets/tidegate.js", "/nowhere"] {
            let refused = home.ask(Method::GET, path, &[("host", host)], "").await.is(403);
            assert!(!refused.text().contains("flights.csv"), "{host} {path}");
            is_told(&refused, host);
        }
    }
    let refused = home
        .ask(Method::GET, "/api/runs", &[("host", "evil.example")], "")
        .await;
    refused.explains("for the machine that it runs on");
}

#[tokio::test]
async fn an_address_with_its_host_in_it_is_judged_like_one_without() {
    let home = Home::new();
    // As asked through a proxy; the header is what counts where there is one.
    home.ask(
        Method::GET,
        "http://evil.example/",
        &[("host", "evil.example")],
        "",
    )
    .await
    .is(403);
    home.ask(Method::GET, "http://evil.example/", &[("host", HOST)], "")
        .await
        .is(200);
}

#[tokio::test]
async fn another_origin_changes_nothing() {
    let home = Home::with_all_states();
    home.answers("echo '{}'");
    let same = [("origin", "http://127.0.0.1:8433")];
    for headers in [
        &[("origin", "http://evil.example")][..],
        &[("origin", "null")],
        &[("origin", "")],
        &[("origin", "http://127.0.0.1:8434")],
        &[("origin", "http://localhost:8433")],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "cross-site"), same[0]],
        &[
            ("sec-fetch-site", "same-origin"),
            ("origin", "http://evil.example"),
        ],
    ] {
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            for path in [
                "/",
                "/start",
                "/api/start",
                "/runs/last/stop",
                "/api/runs/last/stop",
            ] {
                let refused = home.ask(method.clone(), path, headers, "path=x&memory=1GB").await;
                refused.is(403).explains("another site asked for this");
            }
        }
    }
    assert_eq!(
        home.said(),
        Vec::<String>::new(),
        "the program was asked for another site"
    );
    let newest = home.store.list(&Default::default()).unwrap();
    assert_eq!(newest.len(), 5, "{newest:?}");
}

#[tokio::test]
async fn another_site_may_lead_here_and_load_nothing() {
    let home = Home::with_all_states();
    home.answers("echo '{}'");
    // A page may be opened from anywhere: a link in a message.
    let link = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    home.ask(Method::GET, "/", &link, "").await.is(200);
    // Of its own pages a browser loads what they name.
    let own = [("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")];
    home.ask(Method::GET, "/api/runs", &own, "").await.is(200);
    for site in ["cross-site", "same-site"] {
        for (mode, dest) in [("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe")] {
            let behind = [
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ];
            for path in ["/", "/runs/last", "/start/plan?data=x", "/machine", "/api/events"] {
                let refused = home.ask(Method::GET, path, &behind, "").await;
                refused.is(403).explains("another site asked for this");
            }
        }
    }
    assert_eq!(home.said(), Vec::<String>::new());
}

#[tokio::test]
async fn every_number_of_this_machine_is_its_own() {
    let home = Home::new();
    for (host, status) in [
        ("127.0.0.2:8433", 200),
        ("[::1]", 200),
        ("localhost", 200),
        ("128.0.0.1", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:8433", 403),
    ] {
        home.ask(Method::GET, "/", &[("host", host)], "").await.is(status);
    }
}

#[tokio::test]
async fn an_address_that_is_no_text_is_explained() {
    let home = Home::new();
    for path in ["/runs/%ff", "/api/runs/%C3%28", "/assets/%80"] {
        home.get(path).await.is(404).explains("the address is no text");
    }
    // A percent sign that stands for nothing is one.
    home.get("/runs/%zz").await.is(404).explains("no run is called");
}

#[tokio::test]
async fn a_token_is_asked_for_and_remembered() {
    let home = Home::with_token(TOKEN);
    home.over("secret", tidegate_runs::Status::Done);
    let outside = ("host", "box.example:8433");
    let refused = home.ask(Method::GET, "/", &[outside], "").await.is(403);
    refused.explains("this page asks for its token");
    assert!(!refused.text().contains("secret"));

    let sent = home
        .ask(
            Method::GET,
            &format!("/?q=a+b&token={TOKEN}&page=1"),
            &[outside],
            "",
        )
        .await
        .is(303);
    assert_eq!(sent.header("location"), Some("/?q=a+b&page=1"));
    let cookie = sent.header("set-cookie").unwrap().to_string();
    for part in [
        "HttpOnly",
        "SameSite=Strict",
        "Path=/",
        &format!("tidegate_token_8433={TOKEN};"),
    ] {
        assert!(cookie.contains(part), "{part}: {cookie}");
    }
    is_told(&sent, "a redirect");
    let kept = cookie.split(';').next().unwrap();
    let kept = format!("other=1; {kept}; last=2");
    let page = home
        .ask(Method::GET, "/", &[outside, ("cookie", &kept)], "")
        .await
        .is(200);
    assert_eq!(page.names(), ["secret"]);

    let bearer = format!("Bearer {TOKEN}");
    home.ask(
        Method::GET,
        "/api/runs",
        &[outside, ("authorization", &bearer)],
        "",
    )
    .await
    .is(200);
    // One that is right is enough: a browser may keep the cookie of an earlier token.
    let old = [
        ("cookie", "tidegate_token_8433=wrong"),
        ("authorization", &bearer),
    ];
    home.ask(Method::GET, "/api/runs", &old, "").await.is(200);
}

#[tokio::test]
async fn a_wrong_token_opens_nothing() {
    let home = Home::with_token(TOKEN);
    home.over("secret", tidegate_runs::Status::Done);
    for wrong in [
        "",
        "correct-hors",
        "correct-horse1",
        "CORRECT-HORSE",
        "correct%2Dhorsf",
    ] {
        for path in ["/", "/api/runs", "/api/events", "/assets/tidegate.js"] {
            let by_address = home.get(&format!("{path}?token={wrong}")).await.is(403);
            assert!(by_address.header("set-cookie").is_none());
            assert!(!by_address.text().contains("secret"));
            is_told(&by_address, wrong);
            let by_cookie = format!("tidegate_token={wrong}");
            home.ask(Method::GET, path, &[("cookie", &by_cookie)], "")
                .await
                .is(403);
            for bearer in [
                format!("Bearer {wrong}"),
                format!("bearer {TOKEN}"),
                format!("Basic {TOKEN}"),
            ] {
                home.ask(Method::GET, path, &[("authorization", &bearer)], "")
                    .await
                    .is(403);
            }
        }
    }
    // By its address a token comes in; it changes nothing on the way.
    home.answers("echo '{}'");
    home.post(&format!("/start?token={TOKEN}"), "path=x")
        .await
        .is(403);
    home.post(&format!("/api/start?token={TOKEN}"), "path=x")
        .await
        .is(403);
    assert_eq!(home.said(), Vec::<String>::new());
}

#[tokio::test]
async fn a_token_is_no_way_to_another_site() {
    let home = Home::with_token(TOKEN);
    for path in ["//evil.example/", "/%2f/evil.example", "/\\evil.example"] {
        let sent = home.get(&format!("{path}?token={TOKEN}")).await.is(303);
        let to = sent.header("location").unwrap();
        assert!(
            to.starts_with('/') && !to.starts_with("//") && !to.starts_with("/\\"),
            "{path} leads to {to}"
        );
    }
}

#[tokio::test]
async fn every_answer_tells_the_browser_what_it_may_do() {
    let home = Home::with_all_states();
    for (path, status) in [
        ("/", 200),
        ("/api/runs", 200),
        ("/assets/tidegate.css", 200),
        ("/nowhere", 404),
        ("/api/nowhere", 404),
        ("/runs/nobody", 404),
        ("/api/runs/nobody/events", 404),
        ("/?page=x", 400),
        ("/api/runs?page=x", 400),
    ] {
        is_told(&home.get(path).await.is(status), path);
    }
    for (path, kept) in [("/", "no-store"), ("/api/runs", "no-store")] {
        assert_eq!(home.get(path).await.header("cache-control"), Some(kept));
    }
    let answer = home.ask(Method::HEAD, "/", &[], "").await.is(200);
    assert!(answer.body.is_empty());
    is_told(&answer, "HEAD");
    for path in ["/", "/api/runs"] {
        let answer = home.ask(Method::DELETE, path, &[], "").await.is(405);
        is_told(&answer, "DELETE");
        answer.explains("DELETE is not how this is asked for");
    }
}
