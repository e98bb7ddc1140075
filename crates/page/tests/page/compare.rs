//! Runs beside each other: what differs, and what is no comparison.

use tidegate_runs::{Status, Store};

use crate::run::{learn, put, record};
use crate::site::Home;

fn two(home: &Home) -> (String, String) {
    let ids = ["first", "second"].map(|name| {
        let run = home.over(name, Status::Done);
        record(home, &run, 50);
        learn(home, &run, 4);
        let seed = if name == "first" { 7 } else { 8 };
        put(
            home,
            &run,
            "job.toml",
            format!("memory = \"64MB\"\n[train]\nseed = {seed}\nepochs = 4\n"),
        );
        run.id
    });
    ids.into()
}

#[tokio::test]
async fn two_runs_are_shown_beside_each_other() {
    let home = Home::new();
    let (first, second) = two(&home);
    let page = home
        .get(&format!("/compare?run={first}&run={second}"))
        .await
        .is(200)
        .text();
    for part in [
        "2 runs compared",
        "data-chart=\"compare-memory\"",
        "class=\"c1 curve\"",
        "class=\"c2 curve\"",
        "data-name=\"training_loss\"",
        "<code>train.seed</code>",
        "<code>7</code>",
        "<code>8</code>",
        "Show what is the same, too (2)",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("train.epochs"), "{page}");
    let page = home
        .get(&format!("/compare?run={first}&run={second}&all=1"))
        .await
        .is(200)
        .text();
    assert!(
        page.contains("train.epochs") && page.contains("Show what differs alone"),
        "{page}"
    );
}

#[tokio::test]
async fn a_comparison_is_told_in_columns() {
    let home = Home::new();
    let (first, second) = two(&home);
    let told = home
        .get(&format!("/api/compare?run={first}&run={second}"))
        .await
        .is(200)
        .json();
    assert_eq!(
        (&told["runs"][0]["id"], &told["runs"][1]["id"]),
        (&first.clone().into(), &second.clone().into())
    );
    let seed = told["job"]
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["key"] == "train.seed")
        .unwrap();
    assert_eq!(
        *seed,
        serde_json::json!({"key": "train.seed", "values": ["7", "8"], "differs": true})
    );
    assert_eq!(told["memory"][1]["run"], second);
    assert_eq!(
        told["memory"][1]["time_ms"].as_array().unwrap().len(),
        told["memory"][1]["bytes"].as_array().unwrap().len()
    );
    let loss = &told["metrics"][0];
    assert_eq!(
        (&loss["name"], loss["curves"].as_array().unwrap().len()),
        (&"training_loss".into(), 2)
    );
    assert_eq!(loss["curves"][1]["run"], second);
    let state = told["facts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|fact| fact["name"] == "State")
        .unwrap();
    assert_eq!(
        *state,
        serde_json::json!({"name": "State", "values": ["done", "done"], "differs": false})
    );
}

#[tokio::test]
async fn what_is_no_comparison_is_refused_with_a_word() {
    let home = Home::with_all_states();
    let all: Vec<String> = (0..9)
        .map(|i| format!("run={}", home.run(&format!("n{i}")).id))
        .collect();
    for (query, status, what) in [
        (String::new(), 400, "no run was chosen"),
        ("run=done".into(), 400, "one run alone"),
        ("run=done&run=done&run=".into(), 400, "one run alone"),
        (all.join("&"), 400, "9 runs are too many"),
        ("run=done&run=absent".into(), 404, "absent"),
        ("run=done&run=%3Cscript%3E".into(), 404, "script"),
        (
            format!("run=done&run={}", home.store.find("done").unwrap().id),
            400,
            "named already",
        ),
    ] {
        let page = home.get(&format!("/compare?{query}")).await.is(status);
        page.explains(what);
        assert!(!page.text().contains("<script>"), "{}", page.text());
        let answer = home.get(&format!("/api/compare?{query}")).await.is(status);
        answer.explains(what);
    }
    assert_eq!(
        home.get(&format!("/compare?{}", all[..8].join("&")))
            .await
            .is(200)
            .status,
        200
    );
}

#[tokio::test]
async fn runs_of_every_state_and_of_none_of_the_files_compare() {
    let home = Home::with_all_states();
    let page = home
        .get("/compare?run=starting&run=running&run=done&run=failed&run=stopped")
        .await
        .is(200)
        .text();
    assert!(page.contains("Nothing was recorded of them."), "{page}");
    assert!(page.contains("failed went over the line"), "{page}");
    let store: &Store = &home.store;
    for name in ["done", "failed"] {
        let run = store.find(name).unwrap();
        put(&home, &run, "flight.bin", "damaged");
        put(&home, &run, "job.toml", b"\xff\x00 = [[[\n");
    }
    home.get("/compare?run=done&run=failed").await.is(200);
}
