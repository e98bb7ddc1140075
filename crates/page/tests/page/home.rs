//! A page over a home of its own, asked without a socket.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::Value;
use tempfile::TempDir;
use tidegate_page::{Options, Site, app};
use tidegate_runs::{LogWriter, NewRun, Outcome, Run, Status, Store, Stream};
use tower::ServiceExt;

/// What every request of this machine says.
const HOST: &str = "localhost:8433";

/// A home with its page, a folder that data may come from, and a program that answers what the test says.
pub(crate) struct Home {
    folder: TempDir,
    pub(crate) site: Arc<Site>,
    pub(crate) store: Store,
}

impl Home {
    pub(crate) fn new() -> Home {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().canonicalize().unwrap().join(name);
        fs::create_dir(path("data")).unwrap();
        let options = Options {
            home: path("home"),
            program: path("program"),
            roots: vec![path("data")],
            token: None,
        };
        let site = Site::open(options).unwrap();
        let store = Store::open(&path("home")).unwrap();
        let home = Home { folder, site, store };
        home.says("{}", 0);
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        path.to_str().unwrap().into()
    }

    /// From now on the program answers so, whatever it is asked.
    pub(crate) fn says(&self, answer: &str, exit_code: i32) {
        self.answers(&[("", answer, exit_code)]);
    }

    /// The same by what stands among its words; the first that fits counts.
    pub(crate) fn answers(&self, answers: &[(&str, &str, i32)]) {
        let mut script = format!(
            "#!/bin/sh\n{{ for word in \"$@\"; do printf '%s\\0' \"$word\"; done; printf '\\n'; }} >> '{}'\ncase \" $* \" in\n",
            self.path("asked").display()
        );
        for (i, (word, answer, exit_code)) in answers.iter().enumerate() {
            self.write(&format!("answer-{i}"), answer);
            let answer = self.path(&format!("answer-{i}"));
            let pattern = if word.is_empty() {
                "*".into()
            } else {
                format!("*' {word} '*")
            };
            script += &format!("{pattern}) cat '{}'; exit {exit_code};;\n", answer.display());
        }
        script += "esac\n";
        let program = PathBuf::from(self.write("program", script));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// What the program was asked since the last time, each question as its words behind `--home HOME`.
    pub(crate) fn asked(&self) -> Vec<Vec<String>> {
        let path = self.path("asked");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(&path);
        let words = |line: &str| {
            line.split('\0')
                .skip(2)
                .filter(|word| !word.is_empty())
                .map(String::from)
                .collect()
        };
        text.lines().map(words).collect()
    }

    /// A run that is about to start.
    pub(crate) fn run(&self, name: &str) -> Run {
        let new = NewRun {
            kind: "train".into(),
            name: Some(name.into()),
            budget_bytes: Some(64_000_000),
            ..NewRun::default()
        };
        self.store.create(&new).unwrap()
    }

    /// A run that is over.
    pub(crate) fn over(&self, name: &str, status: Status) -> Run {
        let run = self.run(name);
        let outcome = Outcome {
            error: (status == Status::Failed).then(|| "it <b>failed</b>".into()),
            ..Outcome::new(status)
        };
        self.store.finish(&run.id, &outcome).unwrap();
        self.store.get(&run.id).unwrap()
    }

    /// Lines for the log of a run, written now.
    pub(crate) fn log<'l>(&self, run: &Run, lines: impl IntoIterator<Item = (Stream, &'l [u8])>) {
        let mut log = LogWriter::open(&self.store.run_dir(&run.id).log()).unwrap();
        for (stream, line) in lines {
            log.line(stream, line).unwrap();
        }
        log.flush().unwrap();
        // A last line that was written just now is whole.
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(Request::get(path)).await
    }

    pub(crate) async fn form(&self, path: &str, body: &str) -> Answer {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.send(request, body).await
    }

    pub(crate) async fn json(&self, path: &str, body: &str) -> Answer {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        self.send(request, body).await
    }

    pub(crate) async fn ask(&self, request: axum::http::request::Builder) -> Answer {
        self.send(request, "").await
    }

    pub(crate) async fn send(&self, request: axum::http::request::Builder, body: &str) -> Answer {
        let has_host = request
            .headers_ref()
            .is_some_and(|headers| headers.contains_key(header::HOST));
        let request = if has_host {
            request
        } else {
            request.header(header::HOST, HOST)
        };
        let request = request.body(Body::from(body.to_string())).unwrap();
        let response = app(self.site.clone()).oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body,
        }
    }
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("an answer is text")
    }

    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: impl header::AsHeaderName) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The body of an answer that should be good.
    #[track_caller]
    pub(crate) fn ok(&self) -> &str {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text());
        self.text()
    }

    /// Whether all of these stand in the body.
    #[track_caller]
    pub(crate) fn has(&self, texts: &[&str]) {
        for text in texts {
            assert!(self.text().contains(text), "{text:?} is not in {}", self.text());
        }
    }

    /// Whether none of these stand in the body.
    #[track_caller]
    pub(crate) fn has_not(&self, texts: &[&str]) {
        for text in texts {
            assert!(!self.text().contains(text), "{text:?} is in {}", self.text());
        }
    }
}
