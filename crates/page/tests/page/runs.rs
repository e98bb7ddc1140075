//! The list of runs: its orders, filters and pages, as a page and as JSON; and what people may have called things.

use tidegate_runs::{NewRun, Status};

use crate::site::Home;

#[tokio::test]
async fn an_empty_home_says_how_to_begin() {
    let page = Home::new().get("/").await.is(200);
    for word in ["No run yet", "tidegate train DATA", "href=\"/start\""] {
        assert!(page.text().contains(word), "{word}: {}", page.text());
    }
    let list = Home::new().get("/api/runs").await.is(200).json();
    assert_eq!(
        list,
        serde_json::json!({"runs": [], "total": 0, "page": 1, "limit": 50})
    );
}

#[tokio::test]
async fn runs_are_shown_newest_first_with_their_state_and_why_they_failed() {
    let home = Home::with_all_states();
    let page = home.get("/").await.is(200);
    assert_eq!(page.names(), ["stopped", "failed", "done", "running", "starting"]);
    let text = page.text();
    for status in Status::ALL {
        assert!(text.contains(&format!("badge {status}\">{status}")), "{status}");
    }
    assert!(text.contains("failed went over the line"), "{text}");
    // What was not measured is not shown as nothing.
    assert!(text.contains("class=\"unavailable\""));
    assert!(!text.contains(">0 B<"), "{text}");
}

#[tokio::test]
async fn the_list_is_sorted_filtered_and_paged() {
    let home = Home::with_all_states();
    let check = async |query: &str, expected: &[&str]| {
        assert_eq!(
            home.get(&format!("/?{query}")).await.is(200).names(),
            expected,
            "{query}"
        );
        let list = home.get(&format!("/api/runs?{query}")).await.is(200).json();
        let named = list["runs"].as_array().unwrap().iter();
        let named: Vec<&str> = named.map(|run| run["name"].as_str().unwrap()).collect();
        assert_eq!(named, expected, "{query}");
    };
    let newest_first = ["stopped", "failed", "done", "running", "starting"];
    check("sort=created&order=down", &newest_first).await;
    check(
        "sort=created&order=up",
        &["starting", "running", "done", "failed", "stopped"],
    )
    .await;
    check(
        "sort=name&order=up",
        &["done", "failed", "running", "starting", "stopped"],
    )
    .await;
    check(
        "sort=metric",
        &["done", "stopped", "failed", "running", "starting"],
    )
    .await;
    check("status=failed", &["failed"]).await;
    check("q=went+over", &["failed"]).await;
    check("q=FLIGHTS&status=done", &["done"]).await;
    check("q=nowhere", &[]).await;
    check("kind=train&limit=2", &["stopped", "failed"]).await;
    check("limit=2&page=2", &["done", "running"]).await;
    check("limit=2&page=3", &["starting"]).await;
    check("limit=2&page=99", &[]).await;
    // Every page of the list would be too much for one answer.
    check("limit=100000", &newest_first).await;
    let list = home.get("/api/runs?limit=100000").await.json();
    assert_eq!((&list["limit"], &list["total"]), (&500.into(), &5.into()));
}

#[tokio::test]
async fn columns_sort_by_a_click_and_pages_keep_what_was_asked() {
    let home = Home::with_all_states();
    let text = home
        .get("/?q=flights&sort=name&order=up&limit=2&page=2")
        .await
        .is(200)
        .text();
    for part in [
        "aria-sort=\"ascending\"",
        // The other way round, from the first page on.
        "/?q=flights&amp;limit=2&amp;sort=name&amp;order=down",
        "/?q=flights&amp;sort=name&amp;order=up&amp;limit=2&amp;page=3",
        "/?q=flights&amp;sort=name&amp;order=up&amp;limit=2&amp;page=1",
        "page 2 of 3",
        "<option value=\"failed\">failed (1)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn nonsense_is_refused_with_a_hint() {
    let home = Home::with_all_states();
    for (query, what) in [
        ("sort=colour", "sort is \"colour\""),
        ("order=sideways", "order is \"sideways\""),
        ("status=dead", "status is \"dead\""),
        ("page=first", "page is \"first\""),
        ("page=-1", "page is \"-1\""),
        ("limit=1e9", "limit is \"1e9\""),
        (
            "limit=99999999999999999999999",
            "limit is \"99999999999999999999999\"",
        ),
    ] {
        home.get(&format!("/api/runs?{query}"))
            .await
            .is(400)
            .explains(what);
        // Quotes are escaped on a page.
        let escaped = what.replace('"', "&quot;");
        home.get(&format!("/?{query}")).await.is(400).explains(&escaped);
    }
    // A word that searches is never nonsense, and the last page that can be named is empty.
    for query in [
        "q=%25%27%22%3Bdrop+table+runs",
        "q=%ff%fe",
        "page=18446744073709551615&limit=500",
        "limit=0",
        "page=0",
        "status=&sort=",
    ] {
        home.get(&format!("/?{query}")).await.is(200);
        home.get(&format!("/api/runs?{query}")).await.is(200);
    }
}

#[tokio::test]
async fn names_and_values_from_outside_are_text() {
    let home = Home::new();
    let hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u{202e}\0";
    let new = NewRun {
        kind: hostile.into(),
        name: None,
        model: Some(hostile.into()),
        data: Some(hostile.into()),
        command: vec![hostile.into()],
        ..NewRun::default()
    };
    let run = home.store.create(&new).unwrap();
    let outcome = tidegate_runs::Outcome {
        error: Some(hostile.into()),
        metric_name: Some(hostile.into()),
        metric_value: Some(f64::INFINITY),
        ..tidegate_runs::Outcome::new(Status::Failed)
    };
    home.store.finish(&run.id, &outcome).unwrap();
    let query = "/?q=%3Cscript%3E%22%27%3E&sort=%3Cb%3E";
    for page in [home.get("/").await.is(200), home.get(query).await.is(400)] {
        let text = page.text();
        for unwanted in ["<script>", "<img", "onerror=\"", "'><b>"] {
            assert!(!text.contains(unwanted), "{unwanted}: {text}");
        }
    }
    assert!(
        home.get("/")
            .await
            .text()
            .contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;")
    );
    // As JSON they are what they are, and nobody takes JSON for a page.
    let list = home.get("/api/runs").await.is(200);
    assert_eq!(list.json()["runs"][0]["model"], hostile);
    assert_eq!(list.header("content-type"), Some("application/json"));
    assert_eq!(list.header("x-content-type-options"), Some("nosniff"));
}
