//! The page of a run: of every state, with everything beside it and with nothing, and whatever strangers wrote into it.

use std::fs;

use serde_json::json;
use tidegate_runs::{
    FlightHeader, FlightRecord, FlightWriter, Judgement, Metric, NewRun, Outcome, ProcessRecord, ProcessRef,
    RecordWriter, Run, Started, Status, Summary,
};

use crate::site::Home;

pub(crate) const START_MS: i64 = 1_794_773_730_000;

/// A recording of so many looks, ten a second, that rises to its line.
pub(crate) fn record(home: &Home, run: &Run, looks: u64) {
    let header = FlightHeader {
        run_id: run.id.clone(),
        start_ms: START_MS,
    };
    let dir = home.store.run_dir(&run.id);
    let mut flight = FlightWriter::create(&dir.flight(), &header).unwrap();
    let mut processes = RecordWriter::<ProcessRecord>::create(&dir.processes(), &header).unwrap();
    for look in 0..looks {
        let used = (look + 1) * 100_000_000 / looks;
        let record = FlightRecord {
            time_ms: look * 100,
            resident: Some(used),
            proportional: Some(used),
            anonymous: (look % 10 == 0).then_some(used / 2),
            file: (look % 10 == 0).then_some(used / 4),
            shared: None,
            ledger_used: Some(used / 2),
            budget: Some(100_000_000),
            epoch: 1 + (look * 3 / looks) as u32,
            step: look,
            ..FlightRecord::default()
        };
        flight.append(&record).unwrap();
        // Processes are looked at less often in the long run.
        let looked_at = look % (looks / 1_000).clamp(1, 10) == 0;
        for (pid, name) in [(77, "python3"), (78, "worker <1>")]
            .into_iter()
            .filter(|_| looked_at)
        {
            let process = ProcessRecord {
                time_ms: look * 100,
                pid,
                start_time: 5,
                name: name.into(),
                state: 'R',
                resident: Some(used / 2),
                proportional: Some(used / 2),
                ..ProcessRecord::default()
            };
            processes.append(&process).unwrap();
        }
    }
}

pub(crate) fn learn(home: &Home, run: &Run, epochs: u32) {
    for epoch in 1..=epochs {
        for (name, value) in [
            ("training_loss", 1.0 / f64::from(epoch)),
            ("held_out_loss", 1.1 / f64::from(epoch)),
            ("auc", 0.9 - 0.3 / f64::from(epoch)),
            ("learning_rate", 0.001),
            ("stall", 0.25),
        ] {
            let metric = Metric {
                epoch,
                step: 0,
                name: name.into(),
                value,
            };
            home.store.metric(&run.id, &metric).unwrap();
        }
    }
}

/// Writes a file of a run.
pub(crate) fn put(home: &Home, run: &Run, name: &str, contents: impl AsRef<[u8]>) {
    let path = home.store.run_dir(&run.id).path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

#[tokio::test]
async fn every_state_has_its_sentence_and_its_buttons() {
    let home = Home::with_all_states();
    let check = async |name: &str, words: &[&str], none: &[&str]| {
        let id = home.store.find(name).unwrap().id;
        let page = home.get(&format!("/runs/{id}")).await.is(200).text();
        for word in words {
            assert!(page.contains(word), "{name}: {word}: {page}");
        }
        for word in none {
            assert!(!page.contains(word), "{name}: {word}: {page}");
        }
    };
    let events = "data-events=\"/api/runs/";
    check(
        "starting",
        &["Starting: its worker does not run yet.", events, "/stop\""],
        &["/resume\""],
    )
    .await;
    check(
        "running",
        &["Running for ", events, "/stop\"", "Follow the log"],
        &["/resume\""],
    )
    .await;
    check(
        "done",
        &["Done: RMSE 0.2500 in ", "peak 94.4 MB of 105 MB"],
        &[events, "/stop\"", "/resume\"", "Why it ended"],
    )
    .await;
    check(
        "failed",
        &[
            "Stopped at its line of 105 MB after ",
            "Why it ended",
            "Read the logs",
            "/log?at=death",
            "/log?at=error",
        ],
        &[events, "/stop\"", "/resume\""],
    )
    .await;
    check(
        "stopped",
        &["Stopped on request after "],
        &[events, "/stop\"", "/resume\"", "a checkpoint is there"],
    )
    .await;
    let stopped = home.store.find("stopped").unwrap();
    put(&home, &stopped, "checkpoint/cursor.json", "{}");
    check(
        "stopped",
        &["/resume\"", "a checkpoint is there to go on from"],
        &[],
    )
    .await;
}

#[tokio::test]
async fn what_is_not_known_is_not_shown_as_nothing() {
    let home = Home::new();
    let run = home.run("bare");
    home.store.finish(&run.id, &Outcome::new(Status::Failed)).unwrap();
    let page = home.get(&format!("/runs/{}", run.id)).await.is(200).text();
    assert!(page.contains("Nothing was recorded."), "{page}");
    assert!(
        page.contains("<span class=\"unavailable\">unavailable</span>"),
        "{page}"
    );
    assert!(!page.contains(">0 B<") && !page.contains("NaN"), "{page}");
}

#[tokio::test]
async fn a_run_is_found_by_what_people_call_it() {
    let home = Home::with_all_states();
    let id = home.store.find("done").unwrap().id;
    for name in ["done", &id[..5]] {
        let answer = home.get(&format!("/runs/{name}")).await.is(307);
        assert_eq!(answer.header("location"), Some(format!("/runs/{id}").as_str()));
    }
    assert_eq!(home.get("/runs/last").await.status, 307);
}

#[tokio::test]
async fn what_is_no_run_is_said_to_be_none() {
    let home = Home::with_all_states();
    fs::write(home.folder.path().join("home/secret"), "a deep secret").unwrap();
    for name in [
        "absent",
        "..",
        "%2e%2e",
        "..%2f..%2fsecret",
        "%2fetc%2fpasswd",
        "%00",
        "%27%20OR%201=1--",
        "%3Cscript%3E",
        "%ff",
        "runs.db",
        "%25",
        "*",
        "_",
    ] {
        for path in [
            format!("/runs/{name}"),
            format!("/runs/{name}/samples.png"),
            format!("/api/runs/{name}"),
            format!("/api/runs/{name}/memory"),
            format!("/api/runs/{name}/job"),
            format!("/api/runs/{name}/why"),
        ] {
            let answer = home.get(&path).await;
            assert!(
                [400, 404].contains(&answer.status.as_u16()),
                "{path}: {}",
                answer.status
            );
            let is_page = answer
                .header("content-type")
                .is_some_and(|kind| kind.starts_with("text/html"));
            let text = answer.text();
            assert!(!text.contains("a deep secret"), "{path}: {text}");
            assert!(!is_page || !text.contains("<script>"), "{path}: {text}");
        }
    }
}

/// What somebody might write who means ill.
const EVIL: &str = "<script>alert('x')</script>\"onmouseover=\"y";

#[tokio::test]
async fn whatever_strangers_wrote_is_text() {
    let home = Home::new();
    let evil = || Some(EVIL.to_string());
    let run = home
        .store
        .create(&NewRun {
            kind: EVIL.into(),
            model: evil(),
            data: evil(),
            target: evil(),
            bound: evil(),
            budget_bytes: Some(1_000_000),
            command: vec![EVIL.into(), "--x".into()],
            ..NewRun::default()
        })
        .unwrap();
    let nobody = ProcessRef {
        pid: 4_000_000,
        start_time: 1,
    };
    let started = Started {
        supervisor: nobody,
        worker: nobody,
        containment: EVIL.into(),
        cgroup: None,
        boot_id: None,
    };
    home.store.started(&run.id, &started).unwrap();
    home.store.planned(&run.id, &[(EVIL.into(), 5_000_000)]).unwrap();
    home.store
        .update(
            &run.id,
            &Summary {
                needs_bytes: Some(5_000_000),
                ..Summary::default()
            },
        )
        .unwrap();
    let metric = Metric {
        epoch: 1,
        step: 0,
        name: EVIL.into(),
        value: 1.0,
    };
    home.store.metric(&run.id, &metric).unwrap();
    let outcome = Outcome {
        error: evil(),
        hint: evil(),
        peak_bytes: Some(1),
        peak_source: evil(),
        ..Outcome::new(Status::Failed)
    };
    home.store.finish(&run.id, &outcome).unwrap();
    let judgement = Judgement {
        cause: EVIL.into(),
        grade: EVIL.into(),
        sentence: EVIL.into(),
    };
    home.store.judge(&run.id, &judgement).unwrap();
    record(&home, &run, 20);
    put(
        &home,
        &run,
        "job.toml",
        format!("[data]\npath = '{EVIL}'\n[{EVIL}]\n{EVIL} = {EVIL}\n"),
    );
    let change = json!({"knob": EVIL, "to": EVIL, "saves": 1, "alters": EVIL});
    let plan = json!({
        "needs": 5_000_000, "note": EVIL, "changes": [change], "arena": [[EVIL, 5]], "layers": [[EVIL, 5]],
        "alternatives": [{"what": EVIL, "how": EVIL, "peak": 1, "slowdown": 1.0}],
        "times": {"step": EVIL, "epoch": EVIL, "step_seconds": 1.0, "basis": EVIL},
    });
    put(&home, &run, "plan.json", plan.to_string());
    let column = json!({"name": EVIL, "role": EVIL, "encoding": EVIL, "dense": 1, "why": EVIL});
    put(
        &home,
        &run,
        "encoding.json",
        json!({"shape": EVIL, "columns": [column]}).to_string(),
    );
    let environment = json!({EVIL: EVIL, "inner": {EVIL: [EVIL, EVIL]}});
    put(&home, &run, "environment.json", environment.to_string());
    put(
        &home,
        &run,
        "model/network.json",
        json!({"images": {}}).to_string(),
    );
    let place = json!({"file": EVIL, "line": 3, "function": EVIL});
    let verdict = json!({
        "cause": EVIL, "grade": EVIL, "sentence": EVIL, "notes": [EVIL], "pattern": {"sentence": EVIL},
        "evidence": [
            {"standing": "observed", "text": EVIL, "source": "log line 3"}, {"standing": EVIL, "text": EVIL, "source": EVIL},
        ],
        "growth": [{"place": place, "bytes": 1, "share": 0.5, "within": [place], "code": EVIL}],
        "remedies": [{"title": EVIL, "place": place, "before": EVIL, "after": EVIL, "command": EVIL, "why": EVIL}],
    });
    tidegate_runs::keep(
        &home.store.run_dir(&run.id).why(),
        env!("CARGO_PKG_VERSION"),
        &verdict,
    )
    .unwrap();
    let explained = json!({
        "kind": EVIL, "task": EVIL, "target": EVIL, "classes": [EVIL, "b"], "confusion": [[1, 2], [3, 4]],
        "metrics": [{"name": EVIL, "value": 1.0}],
        "columns": [{"column": EVIL, "encoding": EVIL, "width": 2, "importance": {"share": 1.0}}],
        "by_class": [{"class": EVIL, "rows": 1}],
    });
    tidegate_runs::keep(
        &home.store.run_dir(&run.id).explained(),
        env!("CARGO_PKG_VERSION"),
        &explained,
    )
    .unwrap();
    for path in [
        "",
        "?memory=processes",
        "?memory=holders",
        "/samples.png",
        "/mistakes.png",
    ] {
        let page = home.get(&format!("/runs/{}{path}", run.id)).await.text();
        for raw in ["<script>alert", "\"onmouseover", "worker <1>"] {
            assert!(!page.contains(raw), "{path}: {page}");
        }
    }
    let page = home.get(&format!("/runs/{}", run.id)).await.is(200).text();
    assert!(page.matches("&lt;script&gt;alert").count() > 40, "{page}");
    // Style and script of the page itself alone: nothing inline that a policy would have to allow.
    assert!(
        !page.contains(" style=") && !page.contains("javascript:"),
        "{page}"
    );
    assert_eq!(
        page.matches("<script").count(),
        page.matches("<script src=\"/assets/").count(),
        "{page}"
    );
}

#[tokio::test]
async fn what_is_damaged_is_said_to_be_and_the_rest_is_shown() {
    let home = Home::new();
    let run = home.over("damaged", Status::Failed);
    for name in [
        "plan.json",
        "encoding.json",
        "environment.json",
        "model/report.json",
    ] {
        put(&home, &run, name, b"{\"needs\": \xff");
    }
    for name in [
        "why.json",
        "explained.json",
        "flight.bin",
        "processes.bin",
        "holders.jsonl",
    ] {
        put(&home, &run, name, b"\x00\xff what is this");
    }
    put(&home, &run, "job.toml", b"= \xff\xfe [\n\x00");
    for view in ["total", "processes", "holders"] {
        let page = home
            .get(&format!("/runs/{}?memory={view}", run.id))
            .await
            .is(200)
            .text();
        for name in ["plan.json", "encoding.json", "environment.json"] {
            assert!(page.contains(&format!("{name} is damaged")), "{name}: {page}");
        }
        assert!(page.contains("Damaged went over the line."), "{page}");
        assert!(
            page.contains("is not a flight record") || view == "holders",
            "{page}"
        );
    }
    let told = home.get(&format!("/api/runs/{}", run.id)).await.is(200).json();
    assert_eq!(told["damaged"].as_array().unwrap().len(), 2, "{told}");
    assert!(told["plan"].is_null() && told["report"].is_null(), "{told}");
    for part in ["memory", "processes", "holders", "encoding", "environment"] {
        home.get(&format!("/api/runs/{}/{part}", run.id))
            .await
            .is(404)
            .explains("");
    }
}

#[tokio::test]
async fn memory_is_drawn_with_its_line_its_epochs_and_its_end() {
    let home = Home::new();
    let run = home.over("drawn", Status::Failed);
    record(&home, &run, 100);
    let page = home.get(&format!("/runs/{}", run.id)).await.is(200).text();
    for part in [
        "class=\"area c1\"",
        "class=\"area c2\"",
        "class=\"total curve\"",
        "class=\"line limit\"",
        "class=\"mark epoch\"",
        "class=\"mark death\"",
        "epoch 2 at 3.4 s",
        "it ended here",
        "aria-label=\"Memory over 9.9 s: 100 MB of 105 MB at the most\"",
        "100 samples",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let page = home
        .get(&format!("/runs/{}?memory=processes", run.id))
        .await
        .is(200)
        .text();
    assert!(
        page.contains("python3 77") && page.contains("worker &lt;1&gt; 78"),
        "{page}"
    );
    assert!(page.contains("aria-current=\"true\">By process"), "{page}");
    home.get(&format!("/runs/{}?memory=sideways", run.id))
        .await
        .is(400)
        .explains("memory is");
}

#[tokio::test]
async fn figures_are_drawn_together_that_belong_together() {
    let home = Home::new();
    let run = home.over("learned", Status::Done);
    learn(&home, &run, 5);
    let page = home.get(&format!("/runs/{}", run.id)).await.is(200).text();
    assert_eq!(page.matches("data-chart=\"metrics\"").count(), 4, "{page}");
    for part in [
        "data-names=\"[&quot;training_loss&quot;,&quot;held_out_loss&quot;]\"",
        "Learning rate",
        "Waiting for data",
        "<output>25%</output>",
        "training loss 0.2000, held out loss 0.2200",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[tokio::test]
async fn the_plan_stands_beside_what_was_measured() {
    let home = Home::new();
    let run = home.run("planned");
    let parts = [
        ("runtime".to_string(), 3_000_000),
        ("rows".to_string(), 9_000_000),
    ];
    home.store.planned(&run.id, &parts).unwrap();
    home.store
        .held(
            &run.id,
            &[("runtime".into(), 3_000_000), ("rows".into(), 8_000_000)],
        )
        .unwrap();
    let plan = json!({
        "needs": 12_000_000, "interval": [11_000_000, 13_000_000],
        "changes": [{"knob": "micro-batch", "to": "8 samples", "saves": 60_000_000, "slowdown": 1.08}],
        "alternatives": [{"what": "recompute", "how": "--recompute 3", "peak": 9_000_000, "slowdown": 1.21, "alters": null}],
    });
    put(&home, &run, "plan.json", plan.to_string());
    home.store
        .update(
            &run.id,
            &Summary {
                needs_bytes: Some(12_000_000),
                ..Summary::default()
            },
        )
        .unwrap();
    let page = home.get(&format!("/runs/{}", run.id)).await.is(200).text();
    for part in [
        "between 11 MB and 13 MB",
        "micro-batch",
        "1.08× the time",
        "--recompute 3",
        "title=\"8000000 bytes\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // Nobody measured the program apart from the rest.
    assert_eq!(page.matches("title=\"3000000 bytes\"").count(), 1, "{page}");
}

#[tokio::test]
async fn it_says_how_to_run_it_again() {
    let home = Home::new();
    let run = home
        .store
        .create(&NewRun {
            kind: "run".into(),
            name: Some("again".into()),
            budget_bytes: Some(1_500_000_000),
            command: ["python", "-c", "print('$HOME')"].map(Into::into).into(),
            ..NewRun::default()
        })
        .unwrap();
    let path = home.folder.path().join("home");
    let again = r"run --memory 1.5GB --name again -- python -c 'print('\''$HOME'\'')'";
    let again = format!("tidegate --home {} {again}", path.display());
    // From where it was started, if that is known.
    for (environment, expected) in [
        (None, format!(">{again}<")),
        (
            Some(r#"{"folder": "/data/my jobs"}"#),
            format!(">cd '/data/my jobs' &amp;&amp; {again}<"),
        ),
    ] {
        if let Some(text) = environment {
            put(&home, &run, "environment.json", text);
        }
        let page = home.get(&format!("/runs/{}", run.id)).await.is(200).text();
        assert!(
            page.replace("&#39;", "'").contains(&expected),
            "{expected}: {page}"
        );
    }
    let trained = home.over("trained", Status::Done);
    put(
        &home,
        &trained,
        "job.toml",
        "memory = \"64MB\"\n[train]\nseed = 11\n",
    );
    let page = home.get(&format!("/runs/{}", trained.id)).await.is(200).text();
    assert!(page.contains(" train ") && page.contains("/job.toml"), "{page}");
    assert!(page.contains("<code>11</code>"), "{page}");
}
