//! What is asked of the API: every path so that it answers everything that it can.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Asking, operations};
use crate::http::ask;

/// A training that is asked to end saves first.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn ask_all(asking: &mut Asking) {
    of_all_runs(asking);
    of_one_run(asking);
    of_its_log(asking);
    of_the_machine(asking);
    of_a_training(asking);
    for_another_host(asking);
}

fn of_all_runs(asking: &mut Asking) {
    asking.get("/api/openapi.json", &[], "", 200);
    asking.get("/api/events", &[], "", 200);
    let list = asking.get("/api/runs", &[], "sort=metric&limit=3", 200).json();
    assert_eq!(list["runs"].as_array().map(Vec::len), Some(3));
    assert_eq!(list["total"], json!(6));
    asking.get("/api/runs", &[], "sort=colour", 400);

    let [trees, line, dead] = ["trees", "line", "dead"].map(|name| asking.scene.id(name).to_string());
    let compared = asking.get(
        "/api/compare",
        &[],
        &format!("run={trees}&run={line}&run={dead}"),
        200,
    );
    assert_eq!(compared.json()["runs"].as_array().map(Vec::len), Some(3));
    asking.get("/api/compare", &[], &format!("run={trees}"), 400);
    asking.get("/api/compare", &[], &format!("run={trees}&run=nobody"), 404);
}

fn of_one_run(asking: &mut Asking) {
    let [trees, shapes, dead] = ["trees", "shapes", "dead"].map(|name| asking.scene.id(name).to_string());
    let paths = [
        "",
        "/events",
        "/memory",
        "/processes",
        "/holders",
        "/metrics",
        "/why",
        "/explained",
    ];
    for path in paths {
        let route = format!("/api/runs/{{id}}{path}");
        asking.get(&route, &[("id", &trees)], "", 200);
        asking.get(&route, &[("id", "nobody")], "", 404);
    }
    for name in ["memory", "processes", "holders", "metrics"] {
        let route = format!("/api/runs/{{id}}/{name}");
        for id in [&trees, &shapes, &dead] {
            asking.get(&route, &[("id", id)], "points=20", 200);
        }
        asking.get(&route, &[("id", &trees)], "points=many", 400);
    }
    asking.get("/api/runs/{id}", &[("id", &dead)], "", 200);
    let why = asking.get("/api/runs/{id}/why", &[("id", &dead)], "", 200).json();
    assert!(
        why["evidence"].as_array().is_some_and(|all| !all.is_empty()),
        "{why}"
    );
    asking.get("/api/runs/{id}/explained", &[("id", &shapes)], "", 200);
    let numbers = asking.scene.id("numbers").to_string();
    let explained = asking
        .get("/api/runs/{id}/explained", &[("id", &numbers)], "", 200)
        .json();
    assert!(explained["residuals"].is_object(), "{explained}");
    // What never learned has nothing to explain.
    asking.get("/api/runs/{id}/explained", &[("id", &dead)], "", 422);

    for name in ["job", "encoding", "environment"] {
        let route = format!("/api/runs/{{id}}/{name}");
        asking.get(&route, &[("id", &trees)], "", 200);
        asking.get(&route, &[("id", "nobody")], "", 404);
    }
    for sheet in ["samples", "mistakes"] {
        let route = format!("/api/runs/{{id}}/{sheet}");
        asking.get(&route, &[("id", &shapes)], "", 404);
        let made = ask(
            asking.scene.address,
            "POST",
            &format!("/runs/{shapes}/{sheet}"),
            &[],
            Some(""),
        );
        assert_eq!(made.status, 303, "{}", made.text());
        asking.get(&route, &[("id", &shapes)], "", 200);
    }
}

fn of_its_log(asking: &mut Asking) {
    let wrong = asking.scene.id("wrong").to_string();
    let route = "/api/runs/{id}/log";
    for place in [
        "",
        "at=start",
        "at=end",
        "at=error",
        "at=death",
        "offset=2000",
        "time=0",
        "after=1000",
        "before=1000",
    ] {
        let window = asking.get(route, &[("id", &wrong)], place, 200).json();
        assert!(
            window["lines"].as_array().is_some_and(|lines| !lines.is_empty()),
            "{place}: {window}"
        );
    }
    asking.get(route, &[("id", &wrong)], "at=nowhere", 400);
    asking.get(route, &[("id", "nobody")], "", 404);
    let route = "/api/runs/{id}/log/search";
    let hits = asking
        .get(route, &[("id", &wrong)], "find=step+39&limit=4", 200)
        .json();
    assert_eq!(hits["lines"].as_array().map(Vec::len), Some(4), "{hits}");
    let errors = asking.get(route, &[("id", &wrong)], "errors=1", 200).json();
    assert!(errors["lines"].to_string().contains("ValueError"), "{errors}");
    asking.get(route, &[("id", &wrong)], "", 400);
    asking.get(route, &[("id", "nobody")], "find=step", 404);
}

fn of_the_machine(asking: &mut Asking) {
    asking.get("/api/machine", &[], "", 200);
    let work = asking.scene.work().display().to_string();
    asking.get("/api/files", &[], "", 200);
    let folder = asking.get("/api/files", &[], &format!("path={work}"), 200).json();
    assert!(folder["files"].to_string().contains("flights.csv"), "{folder}");
    asking.get("/api/files", &[], "path=/etc", 403);
    asking.get("/api/files", &[], &format!("path={work}/nowhere"), 404);
}

/// One is planned, started, stopped, taken up and killed.
fn of_a_training(asking: &mut Asking) {
    let work = asking.scene.work();
    let data = work.join("wide.csv").display().to_string();
    let asked = json!({"data": data, "target": "y", "model": "linear", "memory": "128MB", "epochs": 20_000});
    let with = |name: &str, value: Value| {
        let mut other = asked.clone();
        other[name] = value;
        Some(other)
    };
    for (route, good) in [("/api/plan", 200), ("/api/runs", 201)] {
        let answer = asking.post(route, &[], Some(asked.clone()), good).json();
        if good == 201 {
            stopped_and_resumed(asking, answer["run"]["id"].as_str().unwrap());
        }
        asking.post(route, &[], None, 400);
        asking.post(route, &[], with("colour", json!("red")), 400);
        asking.post(route, &[], with("data", json!("/etc/passwd")), 403);
        asking.post(route, &[], with("data", json!(work.join("nowhere.csv"))), 404);
        let refused = asking.post(route, &[], with("memory", json!("4MB")), 422).json();
        assert!(refused["least"].is_u64(), "{refused}");
        asking.post(route, &[], with("target", json!("nothing")), 422);
    }
}

fn stopped_and_resumed(asking: &mut Asking, id: &str) {
    let (stop, resume) = ("/api/runs/{id}/stop", "/api/runs/{id}/resume");
    // Whoever lives has not come to an end that could be explained.
    asking.get("/api/runs/{id}/why", &[("id", id)], "", 400);
    asking.get("/api/runs/{id}/explained", &[("id", id)], "", 400);
    until("there is a checkpoint", || {
        asking
            .scene
            .home()
            .join("runs")
            .join(id)
            .join("checkpoint")
            .is_dir()
    });
    asking.post(stop, &[("id", id)], Some(json!({"colour": "red"})), 400);
    asking.post(stop, &[("id", "nobody")], None, 404);
    asking.post(stop, &[("id", id)], None, 202);
    until("it is stopped", || status(asking, id) == "stopped");
    asking.post(stop, &[("id", id)], None, 422);

    asking.post(resume, &[("id", id)], Some(json!({"memory": "much"})), 400);
    asking.post(resume, &[("id", "nobody")], None, 404);
    let trees = asking.scene.id("trees").to_string();
    asking.post(resume, &[("id", &trees)], None, 422);
    let resumed = asking
        .post(resume, &[("id", id)], Some(json!({"memory": "100MB"})), 201)
        .json();
    let next = resumed["run"]["id"].as_str().unwrap();
    asking.post(stop, &[("id", next)], Some(json!({"kill": true})), 202);
    until("it is killed", || {
        ["stopped", "failed"].contains(&status(asking, next).as_str())
    });
}

fn status(asking: &Asking, id: &str) -> String {
    let answer = ask(asking.scene.address, "GET", &format!("/api/runs/{id}"), &[], None);
    answer.json()["run"]["status"].as_str().unwrap().into()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A name of the outside is refused everywhere.
fn for_another_host(asking: &mut Asking) {
    let all: Vec<(String, String)> = operations(&asking.file)
        .into_iter()
        .map(|(method, path, _)| (method, path))
        .collect();
    for (method, route) in all {
        let path = route.replace("{id}", asking.scene.id("dead"));
        let host = [("Host", "evil.example")];
        let answer = ask(asking.scene.address, &method.to_uppercase(), &path, &host, None);
        asking.hold(&method, &route, &path, &answer, 403);
    }
}
