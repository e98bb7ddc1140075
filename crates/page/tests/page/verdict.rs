//! The verdict, and what a model relies on: read where they were kept, asked for once where they were not.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tidegate_page::{Site, app};
use tidegate_runs::{Run, Status, keep};
use tower::ServiceExt;

use crate::run::put;
use crate::site::{HOST, Home};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Asks one site again and again, which remembers what it is asking for.
async fn get(site: &Arc<Site>, path: &str) -> (u16, String) {
    let request = Request::get(path)
        .header("host", HOST)
        .body(Body::empty())
        .unwrap();
    let answer = app(site.clone()).oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn verdict(sentence: &str) -> Value {
    json!({
        "cause": "cgroup_oom", "grade": "proven", "sentence": sentence,
        "evidence": [
            {"standing": "observed", "text": "0 before, 1 after", "source": "memory.oom_control oom_kill"},
            {"standing": "observed", "text": "Killed, & done", "source": "log line 12"},
            {"standing": "unavailable", "text": "permission denied", "source": "the kernel's log"},
        ],
        "pattern": {"kind": "leak", "sentence": "memory grew by 15 MB a second", "rate": 15e6},
        "growth": [{"place": {"file": "train.py", "line": 12, "function": "load"}, "bytes": 240_000_000, "share": 0.8, "within": [], "code": "rows.append(x)"}],
        "remedies": [
            {"title": "read in pieces", "place": {"file": "train.py", "line": 12, "function": "load"}, "before": "pd.read_csv(p)", "after": "pd.read_csv(p, chunksize=1)", "saves": 200_000_000, "measured": true, "why": "It holds all."},
            {"title": "draw the line higher", "command": "--memory 2GB", "why": "It wants more."},
        ],
        "notes": ["swap was in use"],
    })
}

fn failed(home: &Home) -> Run {
    home.over("failed", Status::Failed)
}

#[tokio::test]
async fn a_verdict_that_was_kept_is_shown_whole() {
    let home = Home::new();
    let run = failed(&home);
    keep(
        &home.store.run_dir(&run.id).why(),
        VERSION,
        &verdict("the kernel killed it"),
    )
    .unwrap();
    let page = home.get(&format!("/runs/{}", run.id)).await.is(200).text();
    for part in [
        "class=\"grade proven\"",
        "The kernel killed it.",
        "Memory grew by 15 MB a second.",
        "0 before, 1 after",
        "memory.oom_control oom_kill",
        "/log?find=Killed%2C+%26+done",
        "What could not be looked at (1)",
        "rows.append(x)",
        "train.py:12 in load",
        "80%",
        "Read in pieces",
        "saves about 200 MB",
        "<del>- pd.read_csv(p)</del>",
        "<ins>+ pd.read_csv(p, chunksize=1)</ins>",
        "data-copy=\"pd.read_csv(p, chunksize=1)\"",
        "data-copy=\"--memory 2GB\"",
        "Note: swap was in use",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(home.said(), [""; 0]);
    let told = home
        .get(&format!("/api/runs/{}/why", run.id))
        .await
        .is(200)
        .json();
    assert_eq!(told, verdict("the kernel killed it"));
}

#[tokio::test]
async fn a_verdict_is_asked_for_once_and_kept() {
    let home = Home::new();
    let run = failed(&home);
    // What another version judged is judged again.
    keep(
        &home.store.run_dir(&run.id).why(),
        "0.0.0",
        &verdict("an old story"),
    )
    .unwrap();
    let answer = json!({"run": {}, "verdict": verdict("a new story")});
    home.answers(&format!("cat <<'END'\n{answer}\nEND"));
    let told = home
        .get(&format!("/api/runs/{}/why", run.id))
        .await
        .is(200)
        .json();
    assert_eq!(told["sentence"], "a new story");
    for _ in 0..2 {
        let page = home.get(&format!("/runs/{}", run.id)).await.is(200).text();
        assert!(
            page.contains("A new story.") && !page.contains("old story"),
            "{page}"
        );
    }
    let said = home.said();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].ends_with(&format!("why --json {}", run.id)), "{said:?}");
}

#[tokio::test]
async fn a_page_does_not_wait_long_and_nobody_asks_twice_at_once() {
    let home = Home::new();
    let run = failed(&home);
    let answer = json!({"verdict": verdict("worth waiting for")});
    home.answers(&format!("sleep 1; cat <<'END'\n{answer}\nEND"));
    let site = home.site();
    let path = format!("/runs/{}", run.id);
    for _ in 0..2 {
        let (status, page) = get(&site, &path).await;
        assert_eq!(status, 200);
        assert!(
            page.contains(&format!("data-ask=\"/api/runs/{}/why\"", run.id)),
            "{page}"
        );
        assert!(page.contains("Look again"), "{page}");
        // What the store knows is told meanwhile.
        assert!(page.contains("Failed went over the line."), "{page}");
    }
    let (status, told) = get(&site, &format!("/api{path}/why")).await;
    assert_eq!(status, 200, "{told}");
    let (_, page) = get(&site, &path).await;
    assert!(
        page.contains("Worth waiting for.") && !page.contains("data-ask"),
        "{page}"
    );
    assert_eq!(home.said().len(), 1);
}

#[tokio::test]
async fn a_program_that_cannot_say_is_no_reason_not_to_show_the_rest() {
    let home = Home::new();
    let run = failed(&home);
    put(&home, &run, "model/report.json", "{}");
    let site = home.site();
    for (script, what) in [
        ("echo 'error: <b>no' >&2; exit 1", "&lt;b&gt;no"),
        ("echo nonsense", "a bug in the page"),
        ("echo '{\"verdict\": 5}'", "makes no sense"),
    ] {
        home.answers(script);
        let site = home.site();
        let (status, page) = get(&site, &format!("/runs/{}", run.id)).await;
        assert_eq!(status, 200);
        assert!(
            page.contains(what) && page.contains("Failed went over the line."),
            "{what}: {page}"
        );
        let _ = std::fs::remove_file(home.store.run_dir(&run.id).why());
    }
    std::fs::remove_file(home.folder.path().join("program")).unwrap();
    let (status, page) = get(&site, &format!("/runs/{}", run.id)).await;
    assert_eq!(status, 200);
    assert!(page.contains("cannot be started"), "{page}");
}

#[tokio::test]
async fn a_question_without_an_answer_is_not_asked_again_at_once() {
    let home = Home::new();
    let run = failed(&home);
    let site = home.site();
    for _ in 0..3 {
        let (status, page) = get(&site, &format!("/runs/{}", run.id)).await;
        assert_eq!(status, 200);
        // A machine that is busy may not have started it yet.
        if page.contains("data-ask") {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }
    assert_eq!(home.said().len(), 1);
}

#[tokio::test]
async fn a_model_is_explained_with_all_that_is_known() {
    let home = Home::new();
    let run = home.over("model", Status::Done);
    put(&home, &run, "model/report.json", "{}");
    let explained = json!({
        "kind": "boost", "task": "binary", "target": "delayed", "classes": ["no", "yes"], "epochs": 100,
        "rows": {"used": 1000, "held_out": 100, "bad": 2},
        "metrics": [{"name": "auc", "value": 0.83, "baseline": 0.5, "higher_is_better": true}, {"name": "log_loss", "value": null, "baseline": 0.6, "higher_is_better": false}],
        "columns": (0..40).map(|i| json!({"column": format!("column {i}"), "encoding": "as it is", "width": 1, "importance": {"share": 0.02, "splits": i, "permutation": 0.1}})).collect::<Vec<_>>(),
        "confusion": [[50, 10], [4, 36]], "by_class": [{"class": "no", "rows": 60, "precision": 0.9, "recall": 0.8, "f1": 0.85}],
        "calibration": [{"predicted": 0.1, "observed": 0.12, "rows": 60}, {"predicted": 0.9, "observed": 0.85, "rows": 40}],
        "residuals": {"from": -2.0, "width": 1.0, "bins": [3, 9, 4], "below": 1, "above": 1, "mean": 0.1, "within": [[0.5, 0.4]], "largest": 7.5},
    });
    home.answers(&format!("cat <<'END'\n{explained}\nEND"));
    home.get(&format!("/api/runs/{}/explained", run.id)).await.is(200);
    let page = home.get(&format!("/runs/{}", run.id)).await.is(200).text();
    for part in [
        "Delayed, no or yes, by boosted trees: 100 rounds on 900 rows, judged on 100 held out; left out: 2 bad.",
        "compared better",
        "class=\"number right heat7\"",
        "class=\"number wrong heat2\"",
        "Calibration",
        "The probability of yes across",
        "Residuals",
        "2 rows with larger errors",
        "column 39",
        "and 25 more",
        "Shuffled",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(std::fs::metadata(home.store.run_dir(&run.id).explained()).is_ok());
}
