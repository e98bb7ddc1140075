//! What moves: the streams of events, read as a browser reads them.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use futures_util::StreamExt;
use serde_json::Value;
use tidegate_page::app;
use tidegate_runs::{FlightHeader, FlightRecord, FlightWriter, Metric, Outcome, Status};
use tokio::time::timeout;
use tower::ServiceExt;

use crate::site::{HOST, Home};

/// Far more than the second that a look takes.
const PATIENCE: Duration = Duration::from_secs(20);

struct Stream {
    body: BodyDataStream,
    read: String,
}

impl Stream {
    async fn open(home: &Home, path: &str) -> Stream {
        let request = Request::builder().uri(path).header("host", HOST);
        let answer = app(home.site())
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        Stream {
            body: answer.into_body().into_data_stream(),
            read: String::new(),
        }
    }

    /// The next event that is told once, and what it tells; `None` at the end.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            let (name, told) = self.any().await?;
            if name != "sentence" {
                return Some((name, told));
            }
        }
    }

    /// The next sentence on how a run stands.
    async fn sentence(&mut self) -> (String, String) {
        loop {
            let (name, told) = self.any().await.expect("a sentence");
            if name == "sentence" {
                let text = |name: &str| told[name].as_str().unwrap().to_string();
                return (text("id"), text("text"));
            }
        }
    }

    async fn any(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let (event, rest) = (event.to_string(), rest.to_string());
                self.read = rest;
                let line = |word: &str| event.lines().find_map(|line| line.strip_prefix(word));
                // A word to keep the line open is no event.
                let Some(name) = line("event: ") else { continue };
                let told = serde_json::from_str(line("data: ").unwrap()).unwrap();
                return Some((name.into(), told));
            }
            let piece = timeout(PATIENCE, self.body.next())
                .await
                .expect("an event in time")?;
            self.read.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
    }
}

#[tokio::test]
async fn runs_that_come_and_change_are_told_to_all() {
    let home = Home::new();
    let old = home.over("old", Status::Done);
    let going = home.running("going");
    let mut stream = Stream::open(&home, "/api/events").await;

    // What was there is known; what comes is told.
    let new = home.run("new");
    let (name, told) = stream.next().await.unwrap();
    assert_eq!((name.as_str(), &told["id"]), ("run", &new.id.as_str().into()));
    assert_eq!(told["status"], "starting");

    // How those stand that are not over is told again and again.
    let mut told = [stream.sentence().await, stream.sentence().await];
    told.sort();
    let mut expected = [
        (&going.id, "Running for "),
        (&new.id, "Starting: its worker does not run yet."),
    ];
    expected.sort();
    for ((id, text), (expected, start)) in told.iter().zip(expected) {
        assert!(id == expected && text.starts_with(start), "{id}: {text}");
    }

    home.store
        .finish(&going.id, &Outcome::new(Status::Failed))
        .unwrap();
    let (name, told) = stream.next().await.unwrap();
    assert_eq!((name.as_str(), &told["id"]), ("run", &going.id.as_str().into()));
    assert_eq!(told["status"], "failed");
    assert_ne!(told["id"], old.id.as_str());
}

#[tokio::test]
async fn a_run_that_was_left_is_closed_by_the_program() {
    let home = Home::new();
    home.answers("echo '[]'");
    home.running("watched");
    let mut all = Stream::open(&home, "/api/events").await;
    all.sentence().await;
    home.get("/").await.is(200);
    assert_eq!(home.said(), Vec::<String>::new());

    let left = home.left("left");
    while home.said().is_empty() {
        all.sentence().await;
    }
    assert!(
        home.said()[0].ends_with("runs --json --limit 1"),
        "{:?}",
        home.said()
    );
    // Once, whatever comes of it.
    for _ in 0..6 {
        all.sentence().await;
    }
    assert_eq!(home.said().len(), 1);
    for path in ["/", &format!("/runs/{}", left.id)] {
        let before = home.said().len();
        home.get(path).await.is(200);
        timeout(PATIENCE, async {
            while home.said().len() == before {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
        .expect(path);
    }
}

#[tokio::test]
async fn values_from_before_are_not_told_again() {
    let home = Home::new();
    let run = home.running("long");
    let metric = |step| Metric {
        epoch: 1,
        step,
        name: "loss".into(),
        value: 0.5,
    };
    for step in 0..1_200 {
        home.store.metric(&run.id, &metric(step)).unwrap();
    }
    let mut stream = Stream::open(&home, &format!("/api/runs/{}/events", run.id)).await;
    home.store.metric(&run.id, &metric(1_200)).unwrap();
    let (name, told) = stream.next().await.unwrap();
    assert_eq!((name.as_str(), &told["step"]), ("metric", &1_200.into()));
}

#[tokio::test]
async fn a_run_is_told_step_by_step_until_it_is_over() {
    let home = Home::new();
    let run = home.running("going");
    let mut flight = FlightWriter::create(
        &home.store.run_dir(&run.id).flight(),
        &FlightHeader {
            run_id: run.id.clone(),
            start_ms: run.created_ms,
        },
    )
    .unwrap();
    let mut stream = Stream::open(&home, &format!("/api/runs/{}/events", run.id)).await;
    let metric = Metric {
        epoch: 1,
        step: 10,
        name: "loss".into(),
        value: 0.5,
    };
    home.store.metric(&run.id, &metric).unwrap();
    let (name, told) = stream.next().await.unwrap();
    assert_eq!(name, "metric");
    assert_eq!(told, serde_json::to_value(&metric).unwrap());

    let look = FlightRecord {
        time_ms: 1_000,
        resident: Some(50 << 20),
        ..FlightRecord::default()
    };
    flight.append(&look).unwrap();
    let (name, told) = stream.next().await.unwrap();
    assert_eq!(name, "memory");
    assert_eq!(
        (&told["time_ms"], &told["resident"]),
        (&1_000.into(), &(50 << 20).into())
    );
    // What was not measured is told as that.
    assert_eq!(told["swap"], Value::Null);
    let (id, text) = stream.sentence().await;
    assert_eq!(id, run.id);
    assert!(
        text.starts_with("Running for ") && text.contains("52.4 MB") && text.ends_with(" in use."),
        "{text}"
    );

    home.store
        .finish(&run.id, &Outcome::new(Status::Stopped))
        .unwrap();
    let (name, told) = stream.next().await.unwrap();
    assert_eq!((name.as_str(), &told["status"]), ("run", &"stopped".into()));
    let (name, told) = stream.next().await.unwrap();
    assert_eq!((name.as_str(), told), ("over", "stopped".into()));
    assert!(stream.next().await.is_none(), "nothing comes after the end");
}

#[tokio::test]
async fn a_run_that_was_over_is_said_to_be_over() {
    let home = Home::new();
    let run = home.over("old", Status::Done);
    let mut stream = Stream::open(&home, &format!("/api/runs/{}/events", run.id)).await;
    let mut names = Vec::new();
    while let Some((name, _)) = stream.next().await {
        names.push(name);
    }
    assert_eq!(names.last().map(String::as_str), Some("over"), "{names:?}");
    home.get("/api/runs/nobody/events")
        .await
        .is(404)
        .explains("no run is called \"nobody\"");
}
