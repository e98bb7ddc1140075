//! The page as it is served: trainings that are started, stopped and taken up from a browser, by the real program.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_runs::{NewRun, ProcessRef, Store};

use crate::help::{Place, cgroups, wait_for, wait_until};
use crate::networks::bars;
use crate::tables::{Rows, binary};
use crate::training::{signal, wide};

/// Work takes its time on a machine that does other things, too.
const PATIENCE: Duration = Duration::from_secs(60);

/// A page that is served from a place.
struct Ui {
    child: Child,
    address: String,
}

impl Ui {
    fn serve(place: &Place) -> Ui {
        Ui::serve_below(place, ".")
    }

    fn serve_below(place: &Place, root: &str) -> Ui {
        let mut child = place
            .command(&format!("ui --port 0 --root {root}"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("http://")?.1.trim_end_matches('/').to_string()));
        Ui {
            child,
            address: address.expect("it says where it is"),
        }
    }

    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut stream = self.send(method, path, headers, body);
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.into(),
            body: body.into(),
        }
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}",
            self.address
        )
        .unwrap();
        stream
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "")
    }

    /// What a browser sends of a form.
    fn form(&self, path: &str, fields: &str) -> Answer {
        let headers = format!(
            "Content-Type: application/x-www-form-urlencoded\r\nOrigin: http://{}\r\nSec-Fetch-Site: same-origin\r\n",
            self.address
        );
        self.ask("POST", path, &headers, fields)
    }

    fn json(&self, path: &str, body: &Value) -> Answer {
        self.ask(
            "POST",
            path,
            "Content-Type: application/json\r\n",
            &body.to_string(),
        )
    }

    /// The state of a run, as the list tells it.
    fn status(&self, id: &str) -> String {
        let list = self.get("/api/runs").value();
        let runs = list["runs"].as_array().unwrap();
        let run = runs.iter().find(|run| run["id"] == id).unwrap();
        run["status"].as_str().unwrap().into()
    }

    fn wait(&self, id: &str, status: &str) {
        let what = format!("the run is {status}");
        wait_for(&what, PATIENCE, || self.status(id) == status);
    }

    /// Ends the page, and finds nothing left of what it started.
    fn end(mut self, place: &Place) {
        signal(self.child.id().cast_signed(), libc::SIGTERM);
        self.child.wait().unwrap();
        wait_until("no process is left", || place.processes().is_empty());
        assert!(cgroups_of(place).is_empty());
    }
}

fn cgroups_of(place: &Place) -> Vec<String> {
    let ours: Vec<String> = place
        .run_ids()
        .iter()
        .map(|id| format!("tidegate-{id}"))
        .collect();
    let is_ours = |name: &String| ours.iter().any(|ours| name.starts_with(ours));
    cgroups().into_iter().filter(is_ours).collect()
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn value(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The run that the browser is sent to.
    #[track_caller]
    fn run(&self) -> String {
        assert_eq!(self.status, 303, "{}", self.body);
        let to = self
            .head
            .lines()
            .find_map(|line| line.strip_prefix("location: /runs/"));
        to.unwrap_or_else(|| panic!("{}", self.head)).into()
    }
}

/// Fields for a training on a table of the place.
fn fields(place: &Place, more: &str) -> String {
    let data = fs::canonicalize(place.path("data.csv")).unwrap();
    format!("data={}&target=y&{more}", data.display())
}

/// A training that does not end by itself, with a checkpoint.
fn start_long(ui: &Ui, place: &Place) -> String {
    let id = ui
        .form("/start", &fields(place, "model=linear&memory=96MB&epochs=100000"))
        .run();
    wait_for("the first checkpoint", PATIENCE, || {
        place
            .home
            .join("runs")
            .join(&id)
            .join("checkpoint/state.json")
            .exists()
    });
    id
}

#[test]
fn a_training_is_planned_and_started_from_the_page() {
    let place = Place::with(binary());
    let ui = Ui::serve(&place);
    let data = fs::canonicalize(place.path("data.csv")).unwrap();
    assert!(ui.get("/start").body.contains("data.csv"));
    let look = ui.get(&format!("/start?data={}", data.display())).body;
    for column in ["a", "b", "c", "y"] {
        assert!(look.contains(&format!("value=\"{column}\"")), "{look}");
    }
    let plan = ui
        .get(&format!("/start?{}", fields(&place, "memory=64MB&plan=1")))
        .body;
    assert!(plan.contains("It fits") && plan.contains("of 64 MB"), "{plan}");
    // Nothing has been made yet.
    assert!(place.run_ids().is_empty());
    let id = ui.form("/start", &fields(&place, "memory=64MB&name=mine")).run();
    ui.wait(&id, "done");
    let shown = place.look("show mine");
    assert_eq!(shown["id"], id.as_str());
    assert_eq!(shown["budget_bytes"], 64_000_000);
    // The same by a program.
    let asked = json!({"data": data, "target": "y", "model": "linear", "memory": "64MB"});
    let started = ui.json("/api/runs", &asked);
    assert_eq!(started.status, 201, "{}", started.body);
    ui.wait(started.value()["run"]["id"].as_str().unwrap(), "done");
    ui.end(&place);
}

#[test]
fn what_is_wrong_is_said_at_once_with_what_would_do() {
    let place = Place::with(binary());
    let ui = Ui::serve(&place);
    let data = fs::canonicalize(place.path("data.csv")).unwrap();
    let small = ui.form("/start", &fields(&place, "memory=1MB&model=linear&name=small"));
    assert_eq!(small.status, 422);
    for part in [
        "It does not fit",
        "name=\"least\" value=\"12MB\"",
        "value=\"1MB\"",
        "value=\"small\"",
        "checked",
    ] {
        assert!(small.body.contains(part), "{part} is not in {}", small.body);
    }
    let told = ui.json(
        "/api/plan",
        &json!({"data": data, "target": "y", "memory": "1MB"}),
    );
    assert_eq!(
        (told.status, told.value()["least"].as_u64()),
        (422, Some(12_000_000))
    );
    let other = ui.json("/api/runs", &json!({"data": data, "target": "nothing"}));
    assert_eq!(other.status, 422);
    assert!(
        other.value()["error"]
            .as_str()
            .unwrap()
            .contains("no column \"nothing\""),
        "{other:?}"
    );
    place.write("broken.csv", "a,b\n1,2\n1,2,3\n");
    let broken = fs::canonicalize(place.path("broken.csv")).unwrap();
    let look = ui.get(&format!("/start?data={}", broken.display()));
    assert!(look.status == 200 && look.body.contains("Data"), "{}", look.body);
    let evil = ui.ask(
        "POST",
        "/start",
        "Origin: http://evil.example\r\nContent-Type: application/x-www-form-urlencoded\r\n",
        &fields(&place, "memory=64MB"),
    );
    assert_eq!(evil.status, 403);
    let names: Vec<Value> = place.look("runs").as_array().unwrap().clone();
    assert!(names.iter().all(|run| run["status"] == "failed"), "{names:?}");
    ui.end(&place);
}

#[test]
fn nothing_outside_of_the_roots_is_trained_on() {
    let place = Place::new();
    bars(&place, 90);
    fs::create_dir(place.path("in")).unwrap();
    fs::rename(place.path("x.npy"), place.path("in/x.npy")).unwrap();
    fs::rename(place.path("y.npy"), place.path("secret.npy")).unwrap();
    let ui = Ui::serve_below(&place, "in");
    let data = fs::canonicalize(place.path("in/x.npy")).unwrap();
    for target in ["secret.npy", "nothing.npy"] {
        let target = place.path(target);
        let asked = json!({"data": data, "target": target, "model": "mlp", "memory": "120MB"});
        for path in ["/api/plan", "/api/runs"] {
            let answer = ui.json(path, &asked);
            assert_eq!(answer.status, 422, "{path}: {}", answer.body);
            let told = format!("{}: lies outside of the folders", target.display());
            assert!(
                answer.value()["error"].as_str().unwrap().contains(&told),
                "{answer:?}"
            );
        }
        let form = format!("data={}&target={}&model=mlp", data.display(), target.display());
        let answer = ui.form("/start", &form);
        assert_eq!(answer.status, 422, "{}", answer.body);
        assert!(
            answer.body.contains("lies outside of the folders"),
            "{}",
            answer.body
        );
    }
    ui.end(&place);
}

#[test]
fn a_run_is_stopped_and_taken_up_again() {
    let place = Place::new();
    wide(&place);
    let ui = Ui::serve(&place);
    let id = start_long(&ui, &place);
    // The page is told of its memory, and the machine of it.
    let machine = ui.get("/api/machine").value();
    assert_eq!(machine["runs"][0]["id"], id.as_str());
    assert_eq!(ui.form(&format!("/runs/{id}/stop"), "").run(), id);
    ui.wait(&id, "stopped");
    let again = ui.form(&format!("/runs/{id}/stop"), "");
    assert_eq!(again.status, 422, "{}", again.body);
    assert!(again.body.contains("is stopped"), "{}", again.body);
    let resumed = ui.form(&format!("/runs/{id}/resume"), "memory=64MB").run();
    assert_ne!(resumed, id);
    ui.wait(&resumed, "running");
    assert_eq!(place.look(&format!("show {resumed}"))["budget_bytes"], 64_000_000);
    let killed = ui.json(&format!("/api/runs/{resumed}/stop"), &json!({"kill": true}));
    assert_eq!(killed.status, 202, "{}", killed.body);
    ui.wait(&resumed, "stopped");
    let done = ui.json("/api/runs/nobody/resume", &json!({}));
    assert_eq!(done.status, 404);
    ui.end(&place);
}

#[test]
fn a_training_outlives_the_page() {
    let place = Place::new();
    wide(&place);
    let mut ui = Ui::serve(&place);
    let id = start_long(&ui, &place);
    signal(ui.child.id().cast_signed(), libc::SIGKILL);
    ui.child.wait().unwrap();
    assert_eq!(place.look("show last")["status"], "running");
    assert_eq!(place.look("stop last")["run"]["id"], id.as_str());
    wait_for("it has saved", PATIENCE, || {
        place.look("show last")["status"] == "stopped"
    });
    wait_until("no process is left", || place.processes().is_empty());
    assert!(cgroups_of(&place).is_empty());
}

#[test]
fn a_plan_that_nobody_waits_for_ends() {
    let place = Place::with(Rows::binary(300_000).csv());
    let ui = Ui::serve(&place);
    let page = ui.child.id().cast_signed();
    let path = format!("/start/plan?{}", fields(&place, "memory=64MB&model=boost"));
    let stream = ui.send("GET", &path, "", "");
    wait_until("the program is asked", || place.processes().len() > 1);
    drop(stream);
    wait_until("it has ended", || place.processes() == [page]);
    ui.end(&place);
}

#[test]
fn a_training_goes_on_by_itself_where_that_is_asked_for() {
    let place = Place::with(binary());
    let started = place.look("train data.csv --target y --memory 64MB --name alone --detach");
    let id = started["run"]["id"].as_str().unwrap();
    assert_eq!(started["run"]["name"], "alone");
    wait_for("it is done", PATIENCE, || {
        place.look("show alone")["status"] == "done"
    });
    assert_eq!(place.look("show alone")["id"], id);
    let refused = place.run("train data.csv --target y --memory 1MB --detach");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("is the least that would do"),
        "{}",
        refused.stderr
    );
    let over = place.run("stop alone");
    assert_eq!(over.code, Some(2));
    assert!(over.stderr.contains("run alone is done"), "{}", over.stderr);
}

#[test]
fn a_foreign_command_is_killed_only_where_that_is_asked_for() {
    let place = Place::new();
    let script = "trap '' INT; echo ready; while :; do sleep 0.1; done";
    let child = place
        .command_of(["run", "--name", "stubborn", "--", "sh", "-c", script])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("it runs", PATIENCE, || {
        place.run_ids().len() == 1 && place.look("show stubborn")["status"] == "running"
    });
    assert_eq!(place.look("stop stubborn")["run"]["status"], "running");
    assert_eq!(place.look("show stubborn")["status"], "running");
    assert_eq!(place.look("stop stubborn --kill")["run"]["status"], "failed");
    place.finish(child);
}

/// A number that another process has by now is never signalled.
#[test]
fn nobody_else_is_stopped() {
    let place = Place::new();
    place.json("runs");
    let mut bystander = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = bystander.id().cast_signed();
    let store = Store::open(&place.home).unwrap();
    let boot_id = tidegate_watch::boot_id();
    for (name, start_time, boot_id) in [
        ("reused", 1, boot_id),
        ("elsewhere", 1, Some("another machine".into())),
    ] {
        let new = NewRun {
            kind: "train".into(),
            name: Some(name.into()),
            supervisor: Some(ProcessRef { pid, start_time }),
            boot_id,
            ..NewRun::default()
        };
        store.create(&new).unwrap();
        for how in ["", "--kill"] {
            let answer = place.run(&format!("stop {name} {how}"));
            assert_eq!(answer.code, Some(2), "{}", answer.stderr);
        }
    }
    assert!(bystander.try_wait().unwrap().is_none(), "it was stopped");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn those_who_say_nothing_keep_nobody_out() {
    let place = Place::with(binary());
    let ui = Ui::serve(&place);
    // More than are served at a time, and half of a request each.
    let silent: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(&ui.address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
            stream
        })
        .collect();
    assert_eq!(ui.get("/").status, 200);
    drop(silent);
    ui.end(&place);
}
