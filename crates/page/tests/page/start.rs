//! Starting from the page: what may be chosen, what the program is asked, what is refused.

use std::fs;
use std::os::unix::fs::symlink;

use axum::http::{Request, StatusCode, header};
use tidegate_runs::Status;

use crate::home::Home;

const LOOKED: &str = r#"{"kind": "table", "rows": 1234567, "bytes": 5000000, "columns": [
    {"name": "origin <b>", "role": "category", "distinct": 5, "missing": 0.25, "examples": ["<i>JFK</i>", "LAX"], "why": ""},
    {"name": "delayed", "role": "numeric", "distinct": 2, "missing": 0.0, "examples": ["0", "1"], "why": ""}]}"#;
const PLANNED: &str = r#"{"holders": [["runtime", 3000000], ["rows <x>", 30000000]], "needs": 33000000,
    "interval": [31000000, 35000000], "budget": 64000000, "threads": 2, "disk_bytes": 0,
    "times": {"step": "tree", "epoch": "forest", "step_seconds": 0.075, "epoch_seconds": 7.5, "basis": "by 3 trees"},
    "changes": [{"knob": "rows", "to": "half stream from disk", "saves": 9000000, "slowdown": null, "alters": null}],
    "alternatives": [{"what": "one thread", "how": "--threads 1", "peak": 30000000, "slowdown": 1.81}],
    "encoding": {"columns": [{"name": "origin <b>", "role": "category", "encoding": "codes", "dense": 1, "sparse": 0, "why": "5 categories"}], "shape": "shape: 1,234 rows"},
    "notices": ["predicting \"delayed\": one of two values"], "warnings": ["few rows"],
    "containment": "cgroup v1", "seconds": 0.8}"#;
const TOO_SMALL: &str = r#"{"error": "this job needs 33 MB <and> the budget is 12 MB", "hint": "--memory 34MB is the least", "least": 33400001}"#;
const STARTED: &str = r#"{"run": {"id": "abcdefgh", "status": "running"}}"#;

/// Looks and plans are answered, and so is a start.
fn answering(home: &Home) {
    home.answers(&[
        ("--look", LOOKED, 0),
        ("plan", PLANNED, 0),
        ("train", STARTED, 0),
        ("resume", STARTED, 0),
        (
            "stop",
            r#"{"run": {"id": "abcdefgh", "status": "failed", "error": "killed"}}"#,
            0,
        ),
    ]);
}

#[tokio::test]
async fn folders_are_looked_into() {
    let home = Home::new();
    home.write("data/flights & more.csv", vec![b'x'; 2_500_000]);
    home.write("data/year/2024.parquet", "");
    home.write("data/notes.md", "");
    home.write("data/.hidden.csv", "");
    home.write("data/_SUCCESS", "");
    home.write("data/job.toml", "");
    home.write("data/cats/1.jpg", "");
    home.write("data/packed.csv.gz", "");
    let page = home.get("/start").await;
    page.ok();
    page.has(&[
        "flights &amp; more.csv",
        "2.5 MB",
        "packed.csv.gz",
        ">year<",
        ">cats<",
        "flights+%26+more.csv",
        "Use this whole folder",
    ]);
    page.has_not(&["notes.md", ".hidden", "_SUCCESS", "job.toml"]);
    let inside = home.path("data/cats").display().to_string();
    home.get(&format!("/start?path={inside}"))
        .await
        .has(&["1 picture", "up</a>"]);
    let told = home
        .get(&format!("/api/files?path={}", home.path("data").display()))
        .await
        .value();
    assert_eq!(told["folders"].as_array().unwrap().len(), 2);
    assert_eq!(told["files"][0]["bytes"], 2_500_000);
    let roots = home.get("/api/files").await.value();
    assert_eq!(roots["roots"][0], home.path("data").to_str().unwrap());
    // The path of a file is a choice.
    let chosen = home
        .get(&format!(
            "/start?path={}/year/2024.parquet",
            home.path("data").display()
        ))
        .await;
    assert_eq!(chosen.status, StatusCode::SEE_OTHER);
    assert!(chosen.header(header::LOCATION).starts_with("/start?data=%2F"));
}

#[tokio::test]
async fn nothing_outside_of_the_roots_is_shown_or_trained_on() {
    let home = Home::new();
    answering(&home);
    let secret = home.write("secret/passwords.csv", "a,b\n");
    home.write("data/inside.csv", "");
    home.write("data/.git/config.csv", "");
    home.write("data/job.toml", "");
    home.write("data/links/x.csv", "");
    symlink(&secret, home.path("data/link.csv")).unwrap();
    symlink(home.path("secret"), home.path("data/linked")).unwrap();
    symlink(&secret, home.path("data/links/y.csv")).unwrap();
    let root = home.path("data").display().to_string();
    // What is outside says nothing of whether it is there.
    for (path, status) in [
        (secret.clone(), StatusCode::FORBIDDEN),
        ("/etc/passwd".into(), StatusCode::FORBIDDEN),
        ("/no/such/file".into(), StatusCode::FORBIDDEN),
        ("etc".into(), StatusCode::FORBIDDEN),
        (format!("{root}/../secret/passwords.csv"), StatusCode::FORBIDDEN),
        (format!("{root}/x/../../secret"), StatusCode::FORBIDDEN),
        (format!("{root}-more"), StatusCode::FORBIDDEN),
        (format!("{root}/link.csv"), StatusCode::FORBIDDEN),
        (format!("{root}/linked/passwords.csv"), StatusCode::FORBIDDEN),
        (format!("{root}/.git"), StatusCode::FORBIDDEN),
        (format!("{root}/.git/config.csv"), StatusCode::FORBIDDEN),
        (format!("{root}/nothing"), StatusCode::NOT_FOUND),
        (format!("{root}/nul%00.csv"), StatusCode::NOT_FOUND),
        ("postgres://host/db".into(), StatusCode::FORBIDDEN),
        (format!("{root}/*.csv"), StatusCode::NOT_FOUND),
    ] {
        for page in ["/start?path=", "/start?data=", "/api/files?path="] {
            let answer = home.get(&format!("{page}{path}")).await;
            assert_eq!(answer.status, status, "{page}{path}: {}", answer.text());
        }
        let plan = home.get(&format!("/start/plan?data={path}&target=y")).await;
        plan.has(&["verdict bad"]);
        let body = format!("data={path}&target=y");
        assert_eq!(home.form("/start", &body).await.status, status, "{path}");
        let body = serde_json::json!({"data": path.replace("%00", "\0"), "target": "y"}).to_string();
        assert_eq!(home.json("/api/runs", &body).await.status, status, "{path}");
        assert_eq!(home.json("/api/plan", &body).await.status, status, "{path}");
    }
    // A job file could name others.
    let answer = home
        .form("/start", &format!("data={root}/job.toml&target=y"))
        .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    let list = home.get("/start").await;
    list.has(&["inside.csv"]);
    list.has_not(&["link.csv", "linked", "passwords"]);
    assert_eq!(home.asked(), Vec::<Vec<String>>::new());
}

/// What a folder links to, what a table names and what the labels are in is known to who reads them: the program, which is
/// told the roots each time. The page itself does not walk through what may be millions of files.
#[tokio::test]
async fn the_program_is_kept_below_the_roots() {
    let mut home = Home::new();
    let secret = home.write("secret/labels.npy", "");
    home.write("data/deep/in/x.csv", "");
    symlink(home.path("secret"), home.path("data/deep/in/linked")).unwrap();
    home.write("more/y.csv", "");
    let mut options = home.site.options.clone();
    options.roots.push(home.path("more"));
    home.site = tidegate_page::Site::open(options).unwrap();
    answering(&home);
    let roots = ["data", "more"].map(|name| format!("--below={}", home.path(name).display()));
    let data = home.path("data/deep").display().to_string();
    home.get(&format!("/start?data={data}&target={secret}&plan=1"))
        .await
        .ok();
    home.get(&format!("/start/plan?data={data}&target={secret}"))
        .await
        .ok();
    home.form("/start", &format!("data={data}&target={secret}")).await;
    let body = serde_json::json!({"data": data, "target": secret}).to_string();
    home.json("/api/plan", &body).await.ok();
    home.json("/api/runs", &body).await;
    let asked = home.asked();
    let verbs: Vec<&str> = asked.iter().map(|words| words[0].as_str()).collect();
    assert_eq!(verbs, ["plan", "plan", "plan", "train", "plan", "train"]);
    for words in asked {
        let below: Vec<&String> = words.iter().filter(|word| word.starts_with("--below")).collect();
        assert_eq!(below, roots.iter().collect::<Vec<_>>(), "{words:?}");
    }
}

/// How the program is told where data may be.
fn below(home: &Home) -> String {
    format!("--below={}", home.path("data").display())
}

#[tokio::test]
async fn the_home_of_the_runs_is_no_data() {
    let mut home = Home::new();
    let mut options = home.site.options.clone();
    options.roots = vec![home.path("")];
    home.site = tidegate_page::Site::open(options).unwrap();
    home.get("/start").await.has_not(&[">home<"]);
    let runs = home.path("home/runs.db").display().to_string();
    assert_eq!(
        home.get(&format!("/start?data={runs}")).await.status,
        StatusCode::FORBIDDEN
    );
}

#[tokio::test]
async fn columns_are_shown_to_choose_from() {
    let home = Home::new();
    answering(&home);
    let data = home.write("data/flights.csv", "x");
    let page = home.get(&format!("/start?data={data}")).await;
    page.ok();
    page.has(&[
        "about 1,234,567 rows",
        "origin &lt;b&gt;",
        "&lt;i&gt;JFK&lt;/i&gt;",
        "25.0%",
        "type=\"radio\" name=\"target\"",
        "value=\"delayed\"",
        "Boosted trees",
        "Choose the column to predict",
        "memory-slider",
    ]);
    page.has_not(&["<i>JFK", "ResNet", " style="]);
    let below = below(&home);
    assert_eq!(
        home.asked(),
        [["plan", "--json", "--look", &below, "--", data.as_str()].map(String::from)]
    );
}

#[tokio::test]
async fn a_plan_is_shown_with_what_it_takes_and_changes() {
    let home = Home::new();
    answering(&home);
    let data = home.write("data/flights.csv", "x");
    let page = home
        .get(&format!(
            "/start?data={data}&target=delayed&model=boost&memory=64MB&name=a&epochs=3&plan=1"
        ))
        .await;
    page.ok();
    page.has(&[
        "It fits: 33 MB of 64 MB",
        "between 31 MB and 35 MB",
        "rows &lt;x&gt;",
        "75 ms a tree, 7.5 s a forest",
        "nothing more than is there",
        "half stream from disk",
        "1.81×",
        "codes",
        "few rows",
        "predicting &quot;delayed&quot;",
        "value=\"64MB\"",
        "value=\"delayed\" required checked",
        "<svg class=\"memory-bar\"",
    ]);
    let asked = home.asked();
    let below = below(&home);
    let words = [
        "plan",
        "--json",
        &below,
        "--target=delayed",
        "--model=boost",
        "--name=a",
        "--memory=64MB",
        "--epochs=3",
        "--",
        &data,
    ];
    assert_eq!(asked[1], words.map(String::from));
    // Alone, for a script.
    let alone = home.get(&format!("/start/plan?data={data}&target=delayed")).await;
    alone.ok();
    alone.has(&["It fits"]);
    alone.has_not(&["<html", "<h1"]);
}

#[tokio::test]
async fn a_budget_that_is_too_small_names_one_that_would_do() {
    let home = Home::new();
    let data = home.write("data/flights.csv", "x");
    home.answers(&[
        ("--look", LOOKED, 0),
        ("plan", TOO_SMALL, 2),
        ("train", TOO_SMALL, 2),
    ]);
    let fields = format!("data={data}&target=delayed&memory=12MB");
    let page = home.get(&format!("/start?{fields}&plan=1")).await;
    page.ok();
    page.has(&[
        "It does not fit",
        "33 MB &lt;and&gt;",
        "name=\"least\" value=\"34MB\"",
        "the least that would do",
    ]);
    // One click on it, and the plan is for that.
    home.asked();
    home.get(&format!("/start?{fields}&least=34MB"))
        .await
        .has(&["value=\"34MB\""]);
    assert!(home.asked()[1].contains(&"--memory=34MB".to_string()));
    // Refused at the start, the form is there again as it was.
    let started = home.form("/start", &fields).await;
    assert_eq!(started.status, StatusCode::UNPROCESSABLE_ENTITY);
    started.has(&[
        "It does not fit",
        "value=\"12MB\"",
        "value=\"delayed\" required checked",
    ]);
    let told = home
        .json(
            "/api/plan",
            &serde_json::json!({"data": data, "target": "y", "memory": "12MB"}).to_string(),
        )
        .await;
    assert_eq!(told.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(told.value()["least"], 33_400_001);
}

#[tokio::test]
async fn a_start_goes_to_the_run() {
    let home = Home::new();
    answering(&home);
    let data = home.write("data/flights.csv", "x");
    let started = home
        .form(
            "/start",
            &format!("data={data}&target=delayed&memory=64MB&trees=5&name=+a+"),
        )
        .await;
    assert_eq!(
        (started.status, started.header(header::LOCATION)),
        (StatusCode::SEE_OTHER, "/runs/abcdefgh")
    );
    let below = below(&home);
    let words = [
        "train",
        "--json",
        "--detach",
        &below,
        "--target=delayed",
        "--name=a",
        "--memory=64MB",
        "--trees=5",
        "--",
        &data,
    ];
    assert_eq!(home.asked(), [words.map(String::from)]);
    let body = serde_json::json!({"data": data, "target": "delayed"}).to_string();
    let started = home.json("/api/runs", &body).await;
    assert_eq!(started.status, StatusCode::CREATED);
    assert_eq!(started.value()["run"]["id"], "abcdefgh");
}

#[tokio::test]
async fn words_are_never_taken_for_options() {
    let home = Home::new();
    answering(&home);
    let data = home.write("data/--memory=99TB", "x");
    let body = serde_json::json!({"data": data, "target": "--detach", "name": "-x --kill", "memory": "2GB"})
        .to_string();
    home.json("/api/runs", &body).await;
    let asked = home.asked();
    let below = below(&home);
    let words = [
        "train",
        "--json",
        "--detach",
        &below,
        "--target=--detach",
        "--name=-x --kill",
        "--memory=2GB",
        "--",
        &data,
    ];
    assert_eq!(asked, [words.map(String::from)]);
}

#[tokio::test]
async fn what_makes_no_sense_is_said_on_the_form() {
    let home = Home::new();
    answering(&home);
    let data = home.write("data/flights.csv", "x");
    for (fields, what) in [
        ("memory=lots", "is not an amount of memory"),
        ("model=magic", "model is one of"),
    ] {
        let answer = home
            .form("/start", &format!("data={data}&target=delayed&{fields}"))
            .await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{fields}");
        answer.has(&[what, "value=\"delayed\" required checked"]);
    }
    for body in ["target=y".to_string(), format!("data={data}&epochs=many")] {
        let answer = home.form("/start", &body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{body}");
        answer.has(&["<h1>", "class=\"hint\""]);
    }
    for body in ["", "{", "[]", r#"{"data": 5}"#, r#"{"unknown": 1}"#] {
        for path in ["/api/plan", "/api/runs"] {
            let answer = home.json(path, body).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path} {body}");
            answer.has(&["\"hint\""]);
        }
    }
    assert!(
        home.asked()
            .iter()
            .all(|words| words.contains(&"--look".to_string()))
    );
}

#[tokio::test]
async fn a_run_is_stopped_and_killed_only_when_that_is_said() {
    let home = Home::new();
    answering(&home);
    let run = home.run("long");
    let stop = format!("/runs/{}/stop", run.id);
    let page = format!("/runs/{}", run.id);
    home.get(&page).await.has(&[">Stop</button>"]);
    for (body, words) in [
        ("", Some(&["stop", "--json", "--", &run.id][..])),
        // Whoever is impatient loses nothing.
        ("", None),
        ("kill=yes", Some(&["stop", "--json", "--kill", "--", &run.id])),
    ] {
        let stopped = home.form(&stop, body).await;
        assert_eq!(stopped.status, StatusCode::SEE_OTHER);
        assert_eq!(stopped.header(header::LOCATION), page);
        let words = words.map(|words| words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(home.asked(), Vec::from_iter(words), "{body}");
        home.get(&page).await.has(&["Asked to end", ">Kill it</button>"]);
    }
    let other = home.run("other");
    let killed = home
        .json(&format!("/api/runs/{}/stop", other.id), r#"{"kill": true}"#)
        .await;
    assert_eq!(killed.status, StatusCode::ACCEPTED);
    assert_eq!(home.asked()[0][2], "--kill");
    home.says(
        r#"{"error": "run x is done", "hint": "only a run that is under way can be stopped"}"#,
        2,
    );
    let third = home.run("third");
    let refused = home.form(&format!("/runs/{}/stop", third.id), "").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    refused.has(&["run x is done", "under way"]);
    // What was refused was not asked.
    home.get(&format!("/runs/{}", third.id))
        .await
        .has(&[">Stop</button>"]);
}

#[tokio::test]
async fn a_run_is_taken_up_again() {
    let home = Home::new();
    answering(&home);
    let run = home.over("stopped", Status::Stopped);
    let resumed = home
        .form(&format!("/runs/{}/resume", run.id), "memory=+2GB+")
        .await;
    assert_eq!(
        (resumed.status, resumed.header(header::LOCATION)),
        (StatusCode::SEE_OTHER, "/runs/abcdefgh")
    );
    assert_eq!(
        home.asked()[0][1..],
        ["--json", "--detach", "--memory=2GB", "--", &run.id]
    );
    let resumed = home.json(&format!("/api/runs/{}/resume", run.id), "").await;
    assert_eq!(resumed.status, StatusCode::CREATED);
    let refused = home
        .form(&format!("/runs/{}/resume", run.id), "memory=none")
        .await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    for path in [
        "/runs/nobody/stop",
        "/runs/nobody/resume",
        "/api/runs/nobody/stop",
        "/api/runs/-x/resume",
    ] {
        assert_eq!(home.form(path, "").await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn no_other_site_can_change_anything() {
    let home = Home::new();
    answering(&home);
    let data = home.write("data/flights.csv", "x");
    let run = home.run("mine");
    let form = format!("data={data}&target=y");
    let json = serde_json::json!({"data": data, "target": "y"}).to_string();
    let id = &run.id;
    for (path, body) in [
        ("/start".to_string(), form.clone()),
        (format!("/runs/{id}/stop"), String::new()),
        (format!("/runs/{id}/resume"), String::new()),
        ("/machine/disk".into(), String::new()),
        ("/api/runs".into(), json.clone()),
        ("/api/plan".into(), json.clone()),
        (format!("/api/runs/{id}/stop"), String::new()),
        (format!("/api/runs/{id}/resume"), String::new()),
    ] {
        for (name, value) in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("origin", "http://localhost:9999"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("host", "evil.example"),
        ] {
            let request = Request::post(&path)
                .header(name, value)
                .header(header::CONTENT_TYPE, "application/json");
            let answer = home.send(request, &body).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path} {name} {value}");
        }
    }
    // JSON that does not say so may be a form of another site.
    for path in ["/api/runs", "/api/plan"] {
        assert_eq!(home.form(path, &json).await.status, StatusCode::BAD_REQUEST);
    }
    assert_eq!(home.asked(), Vec::<Vec<String>>::new());
    assert!(fs::read_dir(home.path("home/runs")).unwrap().count() == 1);
    // The page itself can.
    let request = Request::post("/start")
        .header("origin", "http://localhost:8433")
        .header("sec-fetch-site", "same-origin");
    assert_eq!(home.send(request, &form).await.status, StatusCode::SEE_OTHER);
}
