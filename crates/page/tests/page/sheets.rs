//! Contact sheets: made when they are asked for, kept, and served as what they are.

use serde_json::json;
use tidegate_runs::{Run, Status};

use crate::run::put;
use crate::site::Home;

/// The first bytes of a picture of 640 by 480 points.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x02\0\0\0";

fn with_images(home: &Home, status: Status) -> Run {
    let run = home.over(status.as_str(), status);
    put(
        home,
        &run,
        "job.toml",
        format!("[data]\npath = \"{}\"\n", home.root().display()),
    );
    put(home, &run, "model/network.json", r#"{"images": {"width": 32}}"#);
    put(home, &run, "picture", PNG);
    run
}

/// A program that writes the picture to where it is told, and says what is on it.
fn paints(home: &Home, run: &Run) {
    let picture = home.store.run_dir(&run.id).path().join("picture");
    let about = json!({"images": 2, "versions": 1, "files": ["/data/a<b>.png", "/data/c.png"], "sheet": {"images": 1, "versions": 1, "files": ["/data/wrong.png"]}});
    home.answers(&format!(
        "for word in \"$@\"; do [ \"$last\" = --output ] && cp '{}' \"$word\"; last=\"$word\"; done\ncat <<'END'\n{about}\nEND",
        picture.display()
    ));
}

#[tokio::test]
async fn a_sheet_is_made_when_it_is_asked_for() {
    let home = Home::new();
    let run = with_images(&home, Status::Done);
    paints(&home, &run);
    let path = format!("/runs/{}", run.id);
    let page = home.get(&path).await.is(200).text();
    assert!(
        page.contains("Show samples") && page.contains("Show the mistakes"),
        "{page}"
    );
    home.get(&format!("{path}/samples.png"))
        .await
        .is(404)
        .explains("was not made");
    home.get(&format!("/api{path}/samples"))
        .await
        .is(404)
        .explains("was not made");
    assert!(
        home.said().iter().all(|said| !said.contains("preview")),
        "reading makes nothing"
    );
    for sheet in ["samples", "mistakes"] {
        let answer = home.post(&format!("{path}/{sheet}"), "").await.is(303);
        assert_eq!(answer.header("location"), Some(format!("{path}#images").as_str()));
        let picture = home.get(&format!("{path}/{sheet}.png")).await.is(200);
        assert_eq!(picture.header("content-type"), Some("image/png"));
        assert_eq!(picture.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(picture.body, PNG);
    }
    let said = home.said();
    let dir = home.store.run_dir(&run.id);
    let asked = [
        format!(
            "preview --json {} --output {}",
            dir.job().display(),
            dir.samples().display()
        ),
        format!("explain --json {} --output {}", run.id, dir.mistakes().display()),
    ];
    for words in asked {
        assert_eq!(
            said.iter().filter(|said| said.ends_with(&words)).count(),
            1,
            "{words}: {said:?}"
        );
    }
    let page = home.get(&path).await.is(200).text();
    for part in [
        "width=\"640\" height=\"480\"",
        "alt=\"What the network sees, 2 images\"",
        "/data/a&lt;b&gt;.png",
        "/data/wrong.png",
        "loading=\"lazy\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("Show samples"), "{page}");
}

#[tokio::test]
async fn images_that_are_gone_are_said_to_be() {
    let home = Home::new();
    let run = with_images(&home, Status::Done);
    home.answers("echo 'error: /data: no such folder' >&2; exit 2");
    let site = home.site();
    let ask = |method: &str, path: String| {
        let request = axum::http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", crate::site::HOST);
        tower::ServiceExt::oneshot(
            tidegate_page::app(site.clone()),
            request.body(axum::body::Body::empty()).unwrap(),
        )
    };
    let answer = ask("POST", format!("/runs/{}/samples", run.id)).await.unwrap();
    assert_eq!(answer.status(), 303);
    let page = ask("GET", format!("/runs/{}", run.id)).await.unwrap().into_body();
    let page = http_body_util::BodyExt::collect(page).await.unwrap().to_bytes();
    let page = String::from_utf8(page.to_vec()).unwrap();
    assert!(
        page.contains("It could not be made: /data: no such folder."),
        "{page}"
    );
    assert!(page.contains("Show samples"), "{page}");
}

#[tokio::test]
async fn a_table_has_no_sheets_and_nothing_is_made_for_strangers() {
    let home = Home::new();
    let table = home.over("table", Status::Done);
    put(&home, &table, "job.toml", "[data]\npath = \"flights.csv\"\n");
    let page = home.get(&format!("/runs/{}", table.id)).await.is(200).text();
    assert!(!page.contains("Show samples"), "{page}");
    let run = with_images(&home, Status::Stopped);
    let elsewhere = [("origin", "https://evil.example")];
    let path = format!("/runs/{}/samples", run.id);
    home.ask(axum::http::Method::POST, &path, &elsewhere, "")
        .await
        .is(403);
    assert!(
        home.said().iter().all(|said| !said.contains("preview")),
        "{:?}",
        home.said()
    );
    home.post("/runs/absent/samples", "")
        .await
        .is(404)
        .explains("no run is called");
}
