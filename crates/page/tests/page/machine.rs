//! The machine as it is shown and told.

use axum::http::{StatusCode, header};

use crate::home::Home;

const DOCTOR: &str =
    r#"{"containment": "cgroup v2 <here>", "enforced": true, "folder": "/home", "free_bytes": 5000000000}"#;
const TIMED: &str = r#"{"containment": "cgroup v2", "enforced": true, "folder": "/home", "free_bytes": 5000000000,
    "disk": {"write": 250000000.0, "read": 1500000000.0}}"#;

#[tokio::test]
async fn a_machine_tells_its_budget_and_who_holds_memory() {
    let home = Home::new();
    let run = home.run("under <way>".replace(['<', '>', ' '], "-").as_str());
    home.says(DOCTOR, 0);
    let page = home.get("/machine").await;
    page.ok();
    page.has(&[
        "may be used by a job here",
        "Bound by",
        "enforced by the kernel, cgroup v2 &lt;here&gt;",
        "Largest processes",
        "Every bound that was looked at",
        "Waiting for",
        &format!("href=\"/runs/{}\"", run.id),
        "Time the disk",
        "id=\"holders\"",
    ]);
    let told = home.get("/api/machine").await;
    assert_eq!(told.status, StatusCode::OK);
    let told = told.value();
    assert!(told["budget"]["bytes"].as_u64().unwrap() > 0, "{told}");
    assert!(
        told["processes"][0]["resident_bytes"].as_u64().unwrap() > 0,
        "{told}"
    );
    assert_eq!(told["runs"][0]["id"], run.id.as_str());
    // What was not measured is nothing, and no zero.
    assert!(
        told["runs"][0]["now_bytes"].is_null() && told["doctor"]["disk_write"].is_null(),
        "{told}"
    );
    assert_eq!(told["doctor"]["free_bytes"], 5_000_000_000_u64);
    // It was asked once for both, and wrote nothing.
    let asked = home.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0][..3], ["doctor", "--json", "--quick"]);
}

#[tokio::test]
async fn the_disk_is_timed_only_when_somebody_wants_it() {
    let home = Home::new();
    home.answers(&[("--quick", DOCTOR, 0), ("", TIMED, 0)]);
    home.get("/machine").await.has_not(&["Reads"]);
    let timed = home.form("/machine/disk", "").await;
    assert_eq!(
        (timed.status, timed.header(header::LOCATION)),
        (StatusCode::SEE_OTHER, "/machine#disk")
    );
    home.get("/machine")
        .await
        .has(&["250 MB/s", "1.5 GB/s", "Time the disk again"]);
    assert_eq!(home.asked().len(), 2);
}

#[tokio::test]
async fn without_the_program_the_page_is_still_there() {
    let home = Home::new();
    home.says("no JSON", 1);
    home.get("/machine")
        .await
        .has(&["may be used by a job here", "unavailable"]);
}
