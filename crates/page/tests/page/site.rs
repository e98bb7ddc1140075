//! A home with runs in it, a page over it, and what it answers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use tempfile::TempDir;
use tidegate_memory::{Host, start_time};
use tidegate_page::{Options, Site, app};
use tidegate_runs::{Judgement, NewRun, Outcome, ProcessRef, Run, Started, Status, Store, Summary};
use tower::ServiceExt;

/// Where the page is asked, unless a test is about that.
pub(crate) const HOST: &str = "127.0.0.1:8433";

/// A home that goes with the test.
pub(crate) struct Home {
    pub(crate) folder: TempDir,
    pub(crate) store: Store,
    pub(crate) token: Option<String>,
}

impl Home {
    pub(crate) fn new() -> Home {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("home")).unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        let home = Home {
            folder,
            store,
            token: None,
        };
        home.answers("echo 'error: this program answers nothing' >&2; exit 2");
        home
    }

    pub(crate) fn with_token(token: &str) -> Home {
        let mut home = Home::new();
        home.token = Some(token.into());
        home
    }

    /// A folder of which trainings may be started.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("data").canonicalize().unwrap()
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("program")
    }

    /// What stands in for the program: a shell script. `said` tells what it was asked.
    pub(crate) fn answers(&self, script: &str) {
        let said = self.folder.path().join("said");
        let text = format!("#!/bin/sh\necho \"$*\" >> '{}'\n{script}\n", said.display());
        // Beside and renamed: one that runs cannot be written.
        let beside = self.folder.path().join("program.new");
        fs::write(&beside, text).unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(&beside, self.program()).unwrap();
    }

    /// What the program was asked, a line for each time.
    pub(crate) fn said(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join("said")).unwrap_or_default();
        text.lines().map(Into::into).collect()
    }

    pub(crate) fn site(&self) -> Arc<Site> {
        Site::open(Options {
            home: self.folder.path().join("home"),
            program: self.program(),
            roots: vec![self.root()],
            token: self.token.clone(),
        })
        .unwrap()
    }

    /// A run that has been made and not begun.
    pub(crate) fn run(&self, name: &str) -> Run {
        let named = |name: &str| NewRun {
            kind: "train".into(),
            name: Some(name.into()),
            model: Some("linear".into()),
            data: Some("flights.csv".into()),
            target: Some("delayed".into()),
            budget_bytes: Some(100 << 20),
            command: ["tidegate", "train", "flights.csv"].map(Into::into).into(),
            ..NewRun::default()
        };
        self.store.create(&named(name)).unwrap()
    }

    /// A run that this test watches over.
    pub(crate) fn running(&self, name: &str) -> Run {
        let pid = i32::try_from(std::process::id()).unwrap();
        let start_time = start_time(&Host::live(), pid).unwrap();
        self.watched_by(name, ProcessRef { pid, start_time })
    }

    /// A run that is said to be under way, and was left by whoever watched over it.
    pub(crate) fn left(&self, name: &str) -> Run {
        let nobody = ProcessRef {
            pid: 4_000_000,
            start_time: 1,
        };
        self.watched_by(name, nobody)
    }

    fn watched_by(&self, name: &str, supervisor: ProcessRef) -> Run {
        let run = self.run(name);
        let started = Started {
            supervisor,
            worker: supervisor,
            containment: "watched: a test".into(),
            cgroup: None,
            boot_id: None,
        };
        self.store.started(&run.id, &started).unwrap();
        self.store.get(&run.id).unwrap()
    }

    pub(crate) fn over(&self, name: &str, status: Status) -> Run {
        let run = self.running(name);
        let needs = Summary {
            needs_bytes: Some(80 << 20),
            ..Summary::default()
        };
        self.store.update(&run.id, &needs).unwrap();
        let outcome = Outcome {
            peak_bytes: Some(90 << 20),
            peak_source: Some("memory.peak".into()),
            metric_name: Some("rmse".into()),
            metric_value: (status == Status::Done).then_some(0.25),
            ..Outcome::new(status)
        };
        self.store.finish(&run.id, &outcome).unwrap();
        if status == Status::Failed {
            let judgement = Judgement {
                cause: "line".into(),
                grade: "proven".into(),
                sentence: format!("{name} went over the line"),
            };
            self.store.judge(&run.id, &judgement).unwrap();
        }
        self.store.get(&run.id).unwrap()
    }

    /// One of every state, called after it.
    pub(crate) fn with_all_states() -> Home {
        let home = Home::new();
        home.run("starting");
        home.running("running");
        for status in [Status::Done, Status::Failed, Status::Stopped] {
            home.over(status.as_str(), status);
        }
        home
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, form: &str) -> Answer {
        let kind = ("content-type", "application/x-www-form-urlencoded");
        self.ask(Method::POST, path, &[kind], form).await
    }

    /// Asks as a program of this machine does, unless the headers say otherwise.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", HOST);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_string())).unwrap();
        let answer = app(self.site()).oneshot(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes().to_vec(),
        }
    }
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Fails, with what was answered, where it was not this.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Answer {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The answer tells of a problem and of what to do, as JSON or as a page.
    #[track_caller]
    pub(crate) fn explains(&self, what: &str) {
        let kind = self.header("content-type").unwrap_or_default();
        match kind.starts_with("application/json") {
            true => {
                let problem = self.json();
                assert!(
                    problem["error"].as_str().unwrap().contains(what),
                    "{what}: {problem}"
                );
                assert!(problem["hint"].is_string(), "no hint: {problem}");
            }
            false => {
                let text = self.text();
                assert!(
                    text.contains(what) && text.contains("class=\"hint\""),
                    "{what}: {text}"
                );
            }
        }
    }

    /// The names of the runs in a table of a page, in its order.
    pub(crate) fn names(&self) -> Vec<String> {
        let text = self.text();
        let rows = text.split("<tr id=\"run-").skip(1);
        let link = |row: &str| {
            let link = row.split("<a href=\"/runs/").nth(1)?;
            Some(link.split('>').nth(1)?.split('<').next()?.to_string())
        };
        rows.filter_map(link).collect()
    }
}
